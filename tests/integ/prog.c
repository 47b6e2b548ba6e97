/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Start and end of the test programs, and their reports. See prog.h.
 *
 * A report is lines of "report counter NAME VALUE", "report conn STATE COUNT", "report fds COUNT"
 * and what the program adds, closed by "report end"; drivers compare them with what the other host
 * counted.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <darter/socket.h>
#include <darter/stats.h>

#include "prog.h"

struct prog prog = { .n_threads = 1, .port = 8080 };

struct state_count {
	const char *state;
	unsigned count;
};

struct states {
	struct state_count of[16];
	unsigned n;
};

static void
log_line(void *arg, int level, const char *line)
{
	(void)arg;
	(void)level;
	fprintf(stderr, "darter: %s\n", line);
}

static void
usage(const char *name)
{
	fprintf(stderr, "usage: %s [--conf FILE] [-o key=value]... [-p PORT] [--threads N] "
	    "[--attached N] [--each] [OPERAND]...\n", name);
	exit(2);
}

static unsigned
parse_number(const char *text, unsigned long max)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno != 0 || *end != '\0' || end == text || v > max)
		errx(2, "%s: expected a number up to %lu", text, max);
	return (unsigned)v;
}

int
prog_parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "conf", required_argument, NULL, 'c' },
		{ "threads", required_argument, NULL, 't' },
		{ "attached", required_argument, NULL, 'a' },
		{ "each", no_argument, NULL, 'e' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "o:p:", options, NULL)) != -1) {
		if (c == 'c')
			prog.conf_file = optarg;
		else if (c == 't')
			prog.n_threads = parse_number(optarg, 64);
		else if (c == 'a')
			prog.n_attached = parse_number(optarg, 64);
		else if (c == 'e')
			prog.one_listener_each = true;
		else if (c == 'p')
			prog.port = (uint16_t)parse_number(optarg, 65535);
		else if (c == 'o' && prog.n_overrides < PROG_OVERRIDES_MAX)
			prog.overrides[prog.n_overrides++] = optarg;
		else
			usage(argv[0]);
	}
	return optind;
}

static void
wanted_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGUSR1);
}

void
prog_open(void)
{
	char why[DARTER_ERR_MAX];
	struct darter_options opts = {
		.size = sizeof(opts),
		.conf_file = prog.conf_file,
		.overrides = prog.overrides,
		.log = log_line,
	};
	sigset_t set;

	wanted_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	prog.stack = darter_open(&opts, why, sizeof(why));
	if (prog.stack == NULL)
		errx(1, "%s", why);
}

int
prog_listen(int backlog)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(prog.port) };
	int fd = darter_socket(AF_INET, SOCK_STREAM, 0);
	int on = 1;

	if (fd < 0)
		err(1, "socket");
	if (prog.one_listener_each &&
	    darter_setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0)
		err(1, "SO_REUSEPORT");
	if (darter_bind(fd, (struct sockaddr *)&sin, sizeof(sin)) != 0)
		err(1, "bind to port %u", prog.port);
	if (darter_listen(fd, backlog) != 0)
		err(1, "listen on port %u", prog.port);
	return fd;
}

static int
print_counter(void *arg, const struct darter_counter *c)
{
	(void)arg;
	printf("report counter %s %llu\n", c->name, (unsigned long long)c->value);
	return 0;
}

static int
count_state(void *arg, const struct darter_conn *c)
{
	struct states *s = arg;

	for (unsigned i = 0; i < s->n; i++) {
		if (strcmp(s->of[i].state, c->state) == 0) {
			s->of[i].count++;
			return 0;
		}
	}
	if (s->n == sizeof(s->of) / sizeof(s->of[0]))
		return -ENOSPC;
	s->of[s->n].state = c->state;
	s->of[s->n++].count = 1;
	return 0;
}

void
prog_report(void)
{
	struct states states = { .n = 0 };
	int rc;

	darter_counter_visit(prog.stack, print_counter, NULL);
	rc = darter_conn_visit(prog.stack, count_state, &states);
	if (rc != 0)
		printf("report broken darter_conn_visit: %s\n", strerror(-rc));
	for (unsigned i = 0; i < states.n; i++)
		printf("report conn %s %u\n", states.of[i].state, states.of[i].count);
	printf("report fds %u\n", darter_fd_count());
	if (prog.report != NULL)
		prog.report(stdout);
	printf("report end\n");
	fflush(stdout);
}

void
prog_wait(void)
{
	sigset_t set;
	int sig;

	wanted_signals(&set);
	while (sigwait(&set, &sig) == 0 && sig == SIGUSR1)
		prog_report();
}

void
prog_close(void)
{
	prog_report();
	darter_stack_close(prog.stack);
}
