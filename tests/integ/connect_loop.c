/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * darter as the client: connects COUNT times from each thread to ADDRESS PORT, sends a line of its
 * own, wants the same line back, closes. Prints "connected N echoed N" and a report; exit status 0
 * only when every connection did all of it.
 *
 * Options of prog.h first: connect_loop [OPTION]... ADDRESS PORT COUNT
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <darter/socket.h>

#include "prog.h"

static struct sockaddr_in peer = { .sin_family = AF_INET };
static unsigned count;
static atomic_ulong n_connected, n_echoed;

static bool
echo_line(int fd, unsigned thread, unsigned i)
{
	char line[48], answer[48];
	size_t len = (size_t)snprintf(line, sizeof(line), "thread %u turn %u\n", thread, i);

	if (darter_send(fd, line, len, MSG_NOSIGNAL) != (ssize_t)len)
		return false;
	if (darter_recv(fd, answer, len, MSG_WAITALL) != (ssize_t)len)
		return false;
	return memcmp(line, answer, len) == 0;
}

static void *
thread_main(void *arg)
{
	unsigned thread = (unsigned)(uintptr_t)arg;
	bool is_attached = thread < prog.n_attached;

	if (is_attached && darter_attach(prog.stack, thread) != 0)
		errx(1, "attach to netisr %u", thread);
	for (unsigned i = 0; i < count; i++) {
		int fd = darter_socket(AF_INET, SOCK_STREAM, 0);

		if (fd < 0)
			err(1, "socket");
		if (darter_connect(fd, (struct sockaddr *)&peer, sizeof(peer)) != 0) {
			warn("connect %u", i);
		} else {
			atomic_fetch_add(&n_connected, 1);
			if (echo_line(fd, thread, i))
				atomic_fetch_add(&n_echoed, 1);
			else
				warn("echo %u", i);
		}
		darter_close(fd);
	}
	if (is_attached)
		darter_detach();
	return NULL;
}

int
main(int argc, char **argv)
{
	int first = prog_parse(argc, argv);
	unsigned n_threads = prog.n_threads + prog.n_attached;
	pthread_t threads[128];
	sigset_t set;
	int sig;

	if (argc - first != 3 || inet_pton(AF_INET, argv[first], &peer.sin_addr) != 1)
		errx(2, "expected ADDRESS PORT COUNT");
	peer.sin_port = htons((uint16_t)atoi(argv[first + 1]));
	count = (unsigned)atoi(argv[first + 2]);
	prog_open();
	/* The driver gives the other end of the link an address now, then says go. */
	printf("listening on nothing: waiting for SIGUSR1\n");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &sig);
	for (uintptr_t i = 0; i < n_threads; i++) {
		if (pthread_create(&threads[i], NULL, thread_main, (void *)i) != 0)
			errx(1, "no thread");
	}
	for (unsigned i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	printf("connected %lu echoed %lu\n", n_connected, n_echoed);
	prog_close();
	return n_echoed == (unsigned long)count * n_threads ? 0 : 1;
}
