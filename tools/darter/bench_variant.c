/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairs of workers: starting, running and ending them. Workers are forked from the conductor, which
 * never has a stack or a thread. They die with it (PR_SET_PDEATHSIG), whatever happens to it.
 *
 *   cable        one process, two threads, two stacks, device "pair:"
 *   memif        two processes, net_memif (shared memory, copied by both sides)
 *   vhost        two processes, net_vhost and net_virtio_user
 *   kernel       two processes in two namespaces (bench_veth.c)
 *   loopback     two processes in one namespace
 *   respond      one process, a client; the device "respond:" plays all other hosts
 *   kernel loop  a client in a namespace of its own (bench_veth.c)
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define READY_MS	30000
#define REPLY_MS	10000	/* beyond the slice */
#define QUIT_MS		3000
#define NET_DARTER	0x0a620000u	/* 10.98.0.0/24 */
#define NET_KERNEL	0x0a630000u	/* 10.99.0.0/24 */
#define MAX_OVERRIDES	16

struct overrides {
	char text[MAX_OVERRIDES][256];
	const char *list[MAX_OVERRIDES + 1];
	unsigned n;
};

static void __attribute__((format(printf, 2, 3)))
override(struct overrides *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(o->text[o->n], sizeof(o->text[0]), fmt, ap);
	va_end(ap);
	o->list[o->n] = o->text[o->n];
	o->n++;
	o->list[o->n] = NULL;
}

static void
device_of(enum bench_link link, enum bench_role role, const struct bench_options *o, char *dev,
    size_t size)
{
	bool is_server = role == BENCH_SERVER;

	if (link == BENCH_CABLE)
		snprintf(dev, size, "pair:bench");
	else if (link == BENCH_RESPOND)
		snprintf(dev, size, "respond:");
	else if (link == BENCH_MEMIF)
		snprintf(dev, size,
		    "net_memif0,role=%s,id=0,socket=%s/memif.sock,socket-abstract=no,rsize=10",
		    is_server ? "server" : "client", o->dir);
	else if (is_server)
		snprintf(dev, size, "net_vhost0,iface=%s/vhost.sock,queues=1,tso=1", o->dir);
	else
		snprintf(dev, size, "net_virtio_user0,path=%s/vhost.sock,queues=1,queue_size=1024",
		    o->dir);
}

/*
 * The background threads: one on each CPU when the stack has several, else on this end's CPU.
 * Attached threads poll; the shared profile is the stack's default.
 */
static void
make_overrides(struct overrides *o, const struct bench_setup *su, enum bench_role role,
    const struct bench_options *opts)
{
	char dev[200];
	unsigned i;

	device_of(su->link, role, opts, dev, sizeof(dev));
	override(o, "stack.netisrs=%u", su->n_netisrs);
	override(o, "stack.packets=%u", 16384 * su->n_netisrs);
	override(o, "port.link.device=%s", dev);
	override(o, "port.link.addr=10.98.0.%d/24", role == BENCH_SERVER ? 1 : 2);
	if (su->n_netisrs > 1)
		override(o, "stack.cpus=%d,%d", opts->cpu[0], opts->cpu[1]);
	else
		override(o, "stack.cpus=%d", opts->cpu[role]);
	if (su->profile[role] == BENCH_PROFILE_ATTACHED && su->n_netisrs == 1)
		override(o, "sysctl.net.isr.poll_idle_us=-1");
	if (su->profile[role] == BENCH_PROFILE_PINNED)
		override(o, "sysctl.net.isr.borrow=never");
	for (i = 0; i < ARRAY_SIZE(su->more) && su->more[i] != NULL; i++)
		override(o, "%s", su->more[i]);
}

/* ---- starting ---- */

static void *
thread_main(void *arg)
{
	bench_worker_run(arg);
	return NULL;
}

static void __attribute__((noreturn))
cable_main(struct bench_worker *w)
{
	pthread_t t;

	if (pthread_create(&t, NULL, thread_main, &w[BENCH_SERVER]) != 0) {
		bench_worker_fail(&w[BENCH_SERVER], "no thread");
		_exit(1);
	}
	bench_worker_run(&w[BENCH_CLIENT]);
	pthread_join(t, NULL);
	_exit(0);
}

/* Control sockets: ours in v->ctl_fd, the workers' in ret. */
static bool
make_sockets(struct bench_variant *v, int ret[BENCH_ROLES])
{
	int sv[2];
	unsigned i;

	for (i = 0; i < BENCH_ROLES; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
			return false;
		v->ctl_fd[i] = sv[0];
		ret[i] = sv[1];
	}
	v->shared = mmap(NULL, sizeof(*v->shared), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return v->shared != MAP_FAILED;
}

static pid_t
fork_workers(struct bench_variant *v, enum bench_link link, struct bench_worker *w,
    enum bench_role role)
{
	pid_t self = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid != 0)
		return pid;
	bench_child_init(self);
	close(v->ctl_fd[BENCH_SERVER]);
	close(v->ctl_fd[BENCH_CLIENT]);
	if (link == BENCH_CABLE)
		cable_main(w);
	if (link == BENCH_KERNEL)
		bench_veth_main(w);
	if (link == BENCH_LOOPBACK)
		bench_loopback_main(w);
	if (link == BENCH_KERNEL_LOOP)
		bench_loop_main(&w[BENCH_CLIENT]);
	close(w[role == BENCH_SERVER ? BENCH_CLIENT : BENCH_SERVER].ctl_fd);
	bench_worker_run(&w[role]);
	_exit(0);
}

static bool
await(struct bench_variant *v, enum bench_role role, int timeout_ms, struct bench_reply *ret)
{
	int rc = bench_msg_recv(v->ctl_fd[role], ret, sizeof(*ret), timeout_ms);

	if (rc == 0)
		return true;
	snprintf(v->why, sizeof(v->why), "%s: %s", role == BENCH_SERVER ? "server" : "client",
	    rc == -ETIMEDOUT ? "no answer" : rc == -EPIPE ? "its process ended" : strerror(-rc));
	return false;
}

static bool
await_ready(struct bench_variant *v, enum bench_role role)
{
	struct bench_reply ready;

	if (!await(v, role, READY_MS, &ready))
		return false;
	if (ready.failed)
		snprintf(v->why, sizeof(v->why), "%s", ready.why);
	return !ready.failed;
}

/* The server answers while the client says hello. */
static bool
introduce(struct bench_variant *v)
{
	struct bench_cmd hello = { .what = BENCH_WHAT_SLICE, .c = { .kind = BENCH_CRR } };
	struct bench_reply reply;

	atomic_store(&v->shared->stop, 0);
	atomic_store(&v->shared->expect, 1);
	if (bench_msg_send(v->ctl_fd[BENCH_SERVER], &hello, sizeof(hello)) < 0 ||
	    !await_ready(v, BENCH_CLIENT))
		return false;
	atomic_store_explicit(&v->shared->stop, 1, memory_order_release);
	return await(v, BENCH_SERVER, REPLY_MS, &reply);
}

static bool
is_kernel(enum bench_link link)
{
	return link == BENCH_KERNEL || link == BENCH_LOOPBACK || link == BENCH_KERNEL_LOOP;
}

static void
make_workers(struct bench_variant *v, const struct bench_setup *su, const struct bench_options *o,
    const int ctl[BENCH_ROLES], struct overrides ov[BENCH_ROLES], struct bench_worker *w)
{
	unsigned i;

	for (i = 0; i < BENCH_ROLES; i++) {
		w[i] = (struct bench_worker){ .role = i, .profile = su->profile[i],
		    .ctl_fd = ctl[i], .cpu = su->is_unpinned ? -1 : o->cpu[i], .cpus = o->cpu,
		    .net = &net_darter, .shared = v->shared, .overrides = ov[i].list,
		    .has_peer = v->has_server,
		    .server_ip = (is_kernel(su->link) ? NET_KERNEL : NET_DARTER) + 1 };
		/* It would only share the CPU of the thread that polls for it. */
		if (su->profile[i] == BENCH_PROFILE_PINNED)
			w[i].cpu = o->cpu[BENCH_ROLES - 1 - i];
		if (is_kernel(su->link))
			w[i].net = o->kernel_spins ? bench_net_spinning() : &net_kernel;
		else
			make_overrides(&ov[i], su, i, o);
	}
}

/* Both workers are in one process, which is forked. */
static bool
start_one(struct bench_variant *v, enum bench_link link, struct bench_worker *w, const int *ctl)
{
	v->pid[BENCH_CLIENT] = fork_workers(v, link, w, BENCH_CLIENT);
	close(ctl[BENCH_SERVER]);
	close(ctl[BENCH_CLIENT]);
	if (v->pid[BENCH_CLIENT] < 0)
		return false;
	return v->has_server ? await_ready(v, BENCH_SERVER) && introduce(v) :
	    await_ready(v, BENCH_CLIENT);
}

/* A server makes the link's socket; a client that comes too early would not find it. */
static bool
start_two(struct bench_variant *v, enum bench_link link, struct bench_worker *w, const int *ctl)
{
	bool is_good;

	v->pid[BENCH_SERVER] = fork_workers(v, link, w, BENCH_SERVER);
	close(ctl[BENCH_SERVER]);
	is_good = v->pid[BENCH_SERVER] > 0 && await_ready(v, BENCH_SERVER);
	if (is_good)
		v->pid[BENCH_CLIENT] = fork_workers(v, link, w, BENCH_CLIENT);
	close(ctl[BENCH_CLIENT]);
	return is_good && v->pid[BENCH_CLIENT] > 0 && introduce(v);
}

bool
bench_variant_start(struct bench_variant *v, const struct bench_setup *su,
    const struct bench_options *o)
{
	static struct overrides ov[BENCH_ROLES];	/* read by the forked workers */
	struct bench_worker w[BENCH_ROLES];
	int ctl[BENCH_ROLES];

	memset(ov, 0, sizeof(ov));
	v->has_server = su->link < BENCH_VARIANTS;
	if (!make_sockets(v, ctl)) {
		snprintf(v->why, sizeof(v->why), "control sockets: %s", strerror(errno));
		return false;
	}
	make_workers(v, su, o, ctl, ov, w);
	v->is_up = su->link == BENCH_MEMIF || su->link == BENCH_VHOST ?
	    start_two(v, su->link, w, ctl) : start_one(v, su->link, w, ctl);
	if (!v->is_up)
		bench_variant_stop(v);
	return v->is_up;
}

/* ---- ending ---- */

/* Waits for a child of ours; after the time it is killed. */
static void
reap(pid_t pid)
{
	uint64_t end = bench_now_ns() + UINT64_C(1000000) * QUIT_MS;
	struct timespec nap = { .tv_nsec = 5000000 };

	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (bench_now_ns() > end) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			return;
		}
		nanosleep(&nap, NULL);
	}
}

void
bench_variant_stop(struct bench_variant *v)
{
	struct bench_cmd quit = { .what = BENCH_WHAT_QUIT };
	unsigned i;

	if (v->shared == NULL)
		return;
	atomic_store(&v->shared->stop, 1);
	for (i = 0; i < BENCH_ROLES; i++) {
		bench_msg_send(v->ctl_fd[i], &quit, sizeof(quit));
		close(v->ctl_fd[i]);
	}
	for (i = 0; i < BENCH_ROLES; i++) {
		if (v->pid[i] > 0)
			reap(v->pid[i]);
		v->pid[i] = 0;
	}
	munmap(v->shared, sizeof(*v->shared));
	v->shared = NULL;
	v->is_up = false;
}

/* ---- slices ---- */

/* The server's half of a slice, when the client is done. */
static bool
end_slice(struct bench_variant *v, const struct bench_cmd *cmd,
    struct bench_reply ret[BENCH_ROLES])
{
	enum bench_kind kind = cmd->c.kind;

	if (kind == BENCH_CONNECT || kind == BENCH_CRR || kind == BENCH_CHURN)
		atomic_store(&v->shared->expect, ret[BENCH_CLIENT].ops);
	atomic_store_explicit(&v->shared->stop, 1, memory_order_release);
	return await(v, BENCH_SERVER, REPLY_MS, &ret[BENCH_SERVER]);
}

bool
bench_variant_slice(struct bench_variant *v, const struct bench_cmd *cmd,
    struct bench_reply ret[BENCH_ROLES])
{
	memset(ret, 0, BENCH_ROLES * sizeof(*ret));
	atomic_store(&v->shared->stop, 0);
	atomic_store(&v->shared->expect, 0);
	if ((!v->has_server ||
	    bench_msg_send(v->ctl_fd[BENCH_SERVER], cmd, sizeof(*cmd)) == 0) &&
	    bench_msg_send(v->ctl_fd[BENCH_CLIENT], cmd, sizeof(*cmd)) == 0 &&
	    await(v, BENCH_CLIENT, (int)cmd->slice_ms + REPLY_MS, &ret[BENCH_CLIENT]) &&
	    (!v->has_server || end_slice(v, cmd, ret)))
		return true;
	bench_variant_stop(v);
	return false;
}
