/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An HTTP server whose worker threads are of both kinds at once: application threads, and threads
 * attached to a netisr; over one shared listener, or one listener each (--each). Each thread counts
 * what it accepted, answered and closed, so that sums can be compared with what the clients did.
 *
 * Every worker has an epoll of its own with the listener in it, level-triggered: a connection wakes
 * one or several of them, and must come out of exactly one accept.
 */
#define _GNU_SOURCE 1	/* strcasestr, memmem */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <darter/event.h>
#include <darter/socket.h>

#include "prog.h"

#define WORKERS_MAX	64
#define HEAD_BYTES	2048

struct worker {
	pthread_t thread;
	int listener;
	int epfd;
	int netisr;		/* attached to it; -1: an application thread */
	atomic_ulong accepted;
	atomic_ulong requests;
	atomic_ulong closed;
	atomic_ulong errors;
};

struct client {
	int fd;			/* -1 marks the listener's item */
	size_t used;
	char head[HEAD_BYTES];
};

static struct worker workers[WORKERS_MAX];
static unsigned n_workers;
static atomic_bool stopping;

static const char keep_answer[] =
    "HTTP/1.1 200 OK\r\nContent-Length: 14\r\nContent-Type: text/plain\r\n\r\nhello, darter\n";
static const char close_answer[] =
    "HTTP/1.1 200 OK\r\nContent-Length: 14\r\nContent-Type: text/plain\r\n"
    "Connection: close\r\n\r\nhello, darter\n";

static void
end_client(struct worker *w, struct client *c)
{
	darter_close(c->fd);
	free(c);
	atomic_fetch_add(&w->closed, 1);
}

/* A client may reset in the middle of a request: wrk does when its time is over. */
static void
count_error(struct worker *w)
{
	if (errno != ECONNRESET && errno != EPIPE)
		atomic_fetch_add(&w->errors, 1);
}

static void
accept_all(struct worker *w)
{
	int fd;

	while ((fd = darter_accept4(w->listener, NULL, NULL, 0)) >= 0) {
		struct client *c = calloc(1, sizeof(*c));
		struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };

		if (c == NULL)
			err(1, "client");
		c->fd = fd;
		atomic_fetch_add(&w->accepted, 1);
		if (darter_epoll_ctl(w->epfd, EPOLL_CTL_ADD, fd, &ev) != 0)
			err(1, "epoll_ctl of a client");
	}
	if (errno != EAGAIN && errno != EINTR)
		err(1, "accept");
}

/* Answers every whole request in the buffer. False when the connection is over. */
static bool
answer_all(struct worker *w, struct client *c)
{
	char *end;

	while ((end = memmem(c->head, c->used, "\r\n\r\n", 4)) != NULL) {
		size_t len = (size_t)(end - c->head) + 4;
		bool is_last;
		ssize_t n, want;

		*end = '\0';
		is_last = strcasestr(c->head, "\r\nConnection: close") != NULL;
		want = (ssize_t)(is_last ? sizeof(close_answer) : sizeof(keep_answer)) - 1;
		n = darter_send(c->fd, is_last ? close_answer : keep_answer, (size_t)want,
		    MSG_NOSIGNAL);
		if (n != want) {
			count_error(w);
			return false;
		}
		atomic_fetch_add(&w->requests, 1);
		if (is_last)
			return false;
		c->used -= len;
		memmove(c->head, c->head + len, c->used);
	}
	return c->used < HEAD_BYTES;
}

static void
serve_client(struct worker *w, struct client *c)
{
	ssize_t n = darter_recv(c->fd, c->head + c->used, HEAD_BYTES - c->used, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		count_error(w);
	if (n <= 0) {
		end_client(w, c);
		return;
	}
	c->used += (size_t)n;
	if (!answer_all(w, c))
		end_client(w, c);
}

static void *
worker_main(void *arg)
{
	struct worker *w = arg;
	struct epoll_event evs[64];
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = NULL };
	int rc = w->netisr >= 0 ? darter_attach(prog.stack, (unsigned)w->netisr) : 0;

	if (rc != 0)
		errx(1, "attach to netisr %d: %s", w->netisr, strerror(-rc));
	w->epfd = darter_epoll_create1(0);
	if (w->epfd < 0 || darter_epoll_ctl(w->epfd, EPOLL_CTL_ADD, w->listener, &ev) != 0)
		err(1, "epoll");
	while (!atomic_load(&stopping)) {
		int n = darter_epoll_wait(w->epfd, evs, 64, 100);

		if (n < 0 && errno != EINTR)
			err(1, "epoll_wait");
		for (int i = 0; i < n; i++) {
			if (evs[i].data.ptr == NULL)
				accept_all(w);
			else
				serve_client(w, evs[i].data.ptr);
		}
	}
	darter_close(w->epfd);
	if (w->netisr >= 0)
		darter_detach();
	return NULL;
}

static void
report(FILE *out)
{
	unsigned long accepted = 0, requests = 0, closed = 0, errors = 0;

	for (unsigned i = 0; i < n_workers; i++) {
		struct worker *w = &workers[i];

		fprintf(out, "report worker %s accepted %lu requests %lu\n",
		    w->netisr >= 0 ? "attached" : "application", w->accepted, w->requests);
		accepted += w->accepted;
		requests += w->requests;
		closed += w->closed;
		errors += w->errors;
	}
	fprintf(out, "report accepted %lu\nreport requests %lu\nreport closed %lu\n"
	    "report errors %lu\n", accepted, requests, closed, errors);
}

static int
make_listener(void)
{
	int fd = prog_listen(1024);

	if (darter_fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
		err(1, "O_NONBLOCK");
	return fd;
}

int
main(int argc, char **argv)
{
	int shared = -1;

	prog_parse(argc, argv);
	n_workers = prog.n_threads + prog.n_attached;
	if (n_workers < 1 || n_workers > WORKERS_MAX)
		errx(2, "1 to %d threads", WORKERS_MAX);
	prog.report = report;
	prog_open();
	if (!prog.one_listener_each)
		shared = make_listener();
	for (unsigned i = 0; i < n_workers; i++) {
		struct worker *w = &workers[i];

		w->netisr = i < prog.n_attached ? (int)i : -1;
		w->listener = prog.one_listener_each ? make_listener() : shared;
		if (pthread_create(&w->thread, NULL, worker_main, w) != 0)
			errx(1, "no thread");
	}
	printf("listening on port %u\n", prog.port);
	prog_wait();
	atomic_store(&stopping, true);
	for (unsigned i = 0; i < n_workers; i++)
		pthread_join(workers[i].thread, NULL);
	prog_close();
	return 0;
}
