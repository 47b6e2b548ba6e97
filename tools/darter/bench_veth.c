/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's variant: a network namespace for each worker, joined by a veth pair. Without root a
 * user namespace comes first. The namespaces have no name and go with the last process in them:
 * nothing is left behind, however the benchmark ends. Time-wait ports may be reused after a second
 * (tcp_tw_reuse), as darter does, or the local ports would be spent at once.
 *
 * The loopback's variant has one namespace for both. The port benchmark's holds the client alone:
 * its range of local ports is darter's (32768 to 60999), or as much of it as the descriptors of a
 * process allow.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

extern char **environ;

static bool
write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text);
}

/* Runs `ip` with the words of a line; false with why. */
static bool
ip(char *why, const char *line)
{
	char words[256], *argv[24], *save;
	posix_spawn_file_actions_t acts;
	int argc = 0, status = 0, rc;
	pid_t pid;

	snprintf(words, sizeof(words), "ip %s", line);
	for (argv[argc] = strtok_r(words, " ", &save); argv[argc] != NULL && argc < 22;)
		argv[++argc] = strtok_r(NULL, " ", &save);
	argv[argc] = NULL;
	posix_spawn_file_actions_init(&acts);
	posix_spawn_file_actions_addopen(&acts, 2, "/dev/null", O_WRONLY, 0);
	rc = posix_spawnp(&pid, "ip", &acts, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&acts);
	if (rc != 0) {
		snprintf(why, BENCH_WHY_MAX, "cannot run `ip`: %s; install iproute2", strerror(rc));
		return false;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	snprintf(why, BENCH_WHY_MAX,
	    "`ip %.160s` failed in a new namespace; are veth devices allowed here?",
	    line);
	return false;
}

static bool
enter_namespaces(char *why)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWNET) == 0)
		return true;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0) {
		snprintf(why, BENCH_WHY_MAX, "no network namespace: %s; run as root, or allow user "
		    "namespaces (sysctl kernel.unprivileged_userns_clone=1)", strerror(errno));
		return false;
	}
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	if (write_file("/proc/self/uid_map", map)) {
		snprintf(map, sizeof(map), "0 %u 1", gid);
		if (write_file("/proc/self/gid_map", map))
			return true;
	}
	snprintf(why, BENCH_WHY_MAX, "user namespace: cannot map the user: %s", strerror(errno));
	return false;
}

static bool
configure(char *why, const char *dev, uint32_t addr)
{
	char line[128];

	snprintf(line, sizeof(line), "addr add %u.%u.%u.%u/24 dev %s", addr >> 24,
	    (addr >> 16) & 255, (addr >> 8) & 255, addr & 255, dev);
	write_file("/proc/sys/net/ipv4/tcp_tw_reuse", "1");
	return ip(why, line) && ip(why, "link set lo up") &&
	    (snprintf(line, sizeof(line), "link set %s up", dev), ip(why, line));
}

/* The server's process: a namespace of its own, then wait for the device to arrive. */
static void __attribute__((noreturn))
server_main(const struct bench_worker *w, pid_t parent, int to_parent, int from_parent)
{
	char why[BENCH_WHY_MAX] = "";
	char byte = 'k';

	bench_child_init(parent);
	if (unshare(CLONE_NEWNET) < 0) {
		snprintf(why, sizeof(why), "second network namespace: %s", strerror(errno));
		bench_worker_fail(w, why);
		_exit(1);
	}
	if (write(to_parent, &byte, 1) != 1 || read(from_parent, &byte, 1) != 1)
		_exit(1);
	if (!configure(why, "bench1", w->server_ip)) {
		bench_worker_fail(w, why);
		_exit(1);
	}
	bench_worker_run(w);
	_exit(0);
}

static bool
join_namespaces(const struct bench_worker *client, pid_t server, int to_server, int from_server,
    char *why)
{
	char line[128], byte;

	if (read(from_server, &byte, 1) != 1) {
		snprintf(why, BENCH_WHY_MAX, "the server's namespace could not be made");
		return false;
	}
	snprintf(line, sizeof(line), "link add bench0 type veth peer name bench1 netns %d",
	    (int)server);
	if (!ip(why, line) || !configure(why, "bench0", client->server_ip + 1))
		return false;
	return write(to_server, &byte, 1) == 1;
}

void
bench_veth_main(const struct bench_worker *w)
{
	char why[BENCH_WHY_MAX] = "";
	int up[2], down[2];
	pid_t self = getpid(), server;

	if (!enter_namespaces(why) || pipe(up) < 0 || pipe(down) < 0) {
		bench_worker_fail(&w[BENCH_SERVER], why);
		_exit(1);
	}
	server = fork();
	if (server == 0)
		server_main(&w[BENCH_SERVER], self, up[1], down[0]);
	close(up[1]);
	close(down[0]);
	if (server < 0 || !join_namespaces(&w[BENCH_CLIENT], server, down[1], up[0], why)) {
		bench_worker_fail(&w[BENCH_SERVER], why);
		_exit(1);
	}
	bench_worker_run(&w[BENCH_CLIENT]);
	waitpid(server, NULL, 0);
	_exit(0);
}

/* The range of local ports in this namespace: all of it may be held open at once. */
static bool
set_ports(char *why)
{
	struct rlimit lim;
	unsigned count = BENCH_LOCAL_PORTS;
	char text[32];

	if (getrlimit(RLIMIT_NOFILE, &lim) == 0) {
		lim.rlim_cur = lim.rlim_max;
		setrlimit(RLIMIT_NOFILE, &lim);
		if (lim.rlim_cur < count + BENCH_SPARE_FDS)
			count = lim.rlim_cur < 4096 ? 1024 :
			    (unsigned)lim.rlim_cur - BENCH_SPARE_FDS;
	}
	snprintf(text, sizeof(text), "%d %u", BENCH_LOCAL_FIRST, BENCH_LOCAL_FIRST + count - 1);
	if (!write_file("/proc/sys/net/ipv4/ip_local_port_range", text)) {
		snprintf(why, BENCH_WHY_MAX, "ip_local_port_range: %s", strerror(errno));
		return false;
	}
	write_file("/proc/sys/net/core/somaxconn", "65535");
	return true;
}

static bool
enter_loopback(char *why)
{
	return enter_namespaces(why) && ip(why, "link set lo up") &&
	    ip(why, "addr add 10.99.0.1/32 dev lo") &&
	    write_file("/proc/sys/net/ipv4/tcp_tw_reuse", "1");
}

void
bench_loopback_main(const struct bench_worker *w)
{
	char why[BENCH_WHY_MAX] = "tcp_tw_reuse cannot be set";
	pid_t self = getpid(), server = -1;

	if (enter_loopback(why))
		server = fork();
	if (server < 0) {
		bench_worker_fail(&w[BENCH_SERVER], why);
		_exit(1);
	}
	if (server == 0) {
		bench_child_init(self);
		bench_worker_run(&w[BENCH_SERVER]);
		_exit(0);
	}
	bench_worker_run(&w[BENCH_CLIENT]);
	waitpid(server, NULL, 0);
	_exit(0);
}

void
bench_loop_main(const struct bench_worker *w)
{
	char why[BENCH_WHY_MAX] = "tcp_tw_reuse cannot be set";

	if (!enter_loopback(why) || !set_ports(why)) {
		bench_worker_fail(w, why);
		_exit(1);
	}
	bench_worker_run(w);
	_exit(0);
}
