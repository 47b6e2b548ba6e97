/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP echo server with blocking calls: one thread a connection, as one would write it for the
 * kernel.
 *
 *         tcp_echo [-p port] [--conf file] [-o section.key=value]...
 *
 * With no configuration it listens on the stack's loopback only; give it a port of a device with,
 * for example, -o port.tap0.device=net_tap0,iface=dtap0 -o port.tap0.addr=10.0.0.2/24.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <darter/darter.h>
#include <darter/socket.h>

#include "server.h"

static volatile sig_atomic_t must_stop;

static void
on_signal(int sig)
{
	(void)sig;
	darter_signal_note();	/* interrupts a call that is about to sleep, too */
	must_stop = 1;
}

static void *
serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buf[16384];
	ssize_t n;

	while ((n = darter_recv(fd, buf, sizeof(buf), 0)) > 0) {
		if (darter_send(fd, buf, (size_t)n, MSG_NOSIGNAL) < n)
			break;
	}
	darter_close(fd);
	return NULL;
}

static void
accept_all(int fd)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	while (!must_stop) {
		int conn = darter_accept(fd, NULL, NULL);
		pthread_t thread;

		if (conn < 0 && errno == EINTR)
			continue;
		if (conn < 0) {
			perror("accept");
			return;
		}
		if (pthread_create(&thread, &attr, serve, (void *)(intptr_t)conn) != 0)
			darter_close(conn);
	}
}

int
main(int argc, char **argv)
{
	struct options o = { .program = "tcp_echo", .port = 7 };
	struct sigaction stop = { .sa_handler = on_signal };
	int fd;

	options_parse(&o, argc, argv, false);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	options_open(&o);
	fd = server_listen(&o, 0);
	printf("listening on port %u\n", o.port);
	fflush(stdout);
	accept_all(fd);
	/* connection threads may be inside calls: exit delivers what is queued, and that is all */
	return 0;
}
