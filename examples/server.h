/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line that the servers share: -p port, --conf file, -o section.key=value, and flags.
 */
#ifndef EXAMPLES_SERVER_H
#define EXAMPLES_SERVER_H

#include <getopt.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <darter/darter.h>
#include <darter/socket.h>

#define OVERRIDES_MAX 64

struct options {
	const char *program;
	unsigned port;
	unsigned threads;	/* --threads, 0: not given */
	bool attach;		/* --attach */
	const char *overrides[OVERRIDES_MAX + 1];
	struct darter_options darter;
};

/* Parses, or ends the program with the usage. */
static inline void
options_parse(struct options *o, int argc, char **argv, bool has_threads)
{
	static const struct option longs[] = {
		{ "conf", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ "threads", required_argument, NULL, 't' },
		{ "attach", no_argument, NULL, 'a' },
		{ NULL, 0, NULL, 0 },
	};
	unsigned n = 0;
	int c;

	o->darter.size = sizeof(o->darter);
	o->darter.overrides = o->overrides;
	while ((c = getopt_long(argc, argv, "p:o:", longs, NULL)) != -1) {
		if (c == 'p') {
			o->port = (unsigned)atoi(optarg);
		} else if (c == 'c') {
			o->darter.conf_file = optarg;
		} else if (c == 'o' && n < OVERRIDES_MAX) {
			o->overrides[n++] = optarg;
		} else if (c == 't' && has_threads) {
			o->threads = (unsigned)atoi(optarg);
		} else if (c == 'a' && has_threads) {
			o->attach = true;
		} else {
			fprintf(c == 'h' ? stdout : stderr,
			    "usage: %s [-p port] %s[--conf file] [-o section.key=value]...\n",
			    o->program,
			    has_threads ? "[--threads N] [--attach] " : "");
			exit(c == 'h' ? 0 : 2);
		}
	}
}

/* Opens the stack, or ends the program with the reason. */
static inline struct darter_stack *
options_open(const struct options *o)
{
	char err[DARTER_ERR_MAX];
	struct darter_stack *s = darter_open(&o->darter, err, sizeof(err));

	if (s == NULL) {
		fprintf(stderr, "%s: %s\n", o->program, err);
		exit(1);
	}
	return s;
}

/* A listener on all addresses, or the end of the program. flags: SOCK_NONBLOCK. */
static inline int
server_listen(const struct options *o, int flags)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)o->port) };
	int fd = darter_socket(AF_INET, SOCK_STREAM | flags, 0), on = 1;

	darter_setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	darter_setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (darter_bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || darter_listen(fd, 4096) < 0) {
		fprintf(stderr, "%s: port %u: ", o->program, o->port);
		perror(NULL);
		exit(1);
	}
	return fd;
}

/*
 * SIGINT and SIGTERM wait for sigwait(): before any thread is made, since threads inherit the mask.
 */
static inline void
server_block_signals(sigset_t *ret_stop)
{
	sigemptyset(ret_stop);
	sigaddset(ret_stop, SIGINT);
	sigaddset(ret_stop, SIGTERM);
	pthread_sigmask(SIG_BLOCK, ret_stop, NULL);
}

#endif
