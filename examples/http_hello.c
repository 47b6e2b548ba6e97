/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small HTTP/1.1 server on epoll: "hello" for every request, connections kept, pipelining.
 *
 *	http_hello [-p port] [--threads N] [--attach] [--conf file] [-o section.key=value]...
 *
 * Each of the N threads (one a netisr by default) has an epoll and a SO_REUSEPORT listener of its
 * own. With --attach, thread i also runs netisr i itself: the same program without a thread switch
 * between a packet and its answer. SIGINT or SIGTERM end it.
 */
#define _GNU_SOURCE 1	/* strcasestr */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include <darter/darter.h>
#include <darter/event.h>
#include <darter/socket.h>

#include "server.h"

enum { THREADS_MAX = 64, REQUEST_MAX = 8192, EVENTS = 64, LOOK_MS = 100 };
#define REPLY(more) \
	"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n" more "\r\nhello\n"

struct conn {
	int fd;
	bool must_close;	/* once everything is sent */
	size_t in_len, out_len;
	char in[REQUEST_MAX], out[REQUEST_MAX];
};

struct worker {
	pthread_t thread;
	unsigned id;
	int ep, listener;
	unsigned long connections, requests;
};

static atomic_bool must_stop;
static bool must_attach;

/* HTTP/1.1 keeps the connection unless told to close it, HTTP/1.0 only when told to keep it. */
static bool
asks_to_close(const char *head)
{
	const char *line = strcasestr(head, "\r\nconnection:"), *end = strstr(head, "\r\n");

	if (end - head >= 8 && memcmp(end - 8, "HTTP/1.0", 8) == 0)
		return line == NULL || strcasestr(line, "keep-alive") == NULL;
	return line != NULL && strncasecmp(line + 13 + strspn(line + 13, " \t"), "close", 5) == 0;
}

/* Turns complete requests into answers while there is room; bodies are not expected. */
static void
answer(struct worker *w, struct conn *c)
{
	char *end;

	while (!c->must_close && c->out_len +
	    sizeof(REPLY("Connection: close\r\n")) < sizeof(c->out) &&
	    (end = strstr(c->in, "\r\n\r\n")) != NULL) {
		const char *text;

		end[2] = '\0';
		c->must_close = asks_to_close(c->in);
		text = c->must_close ? REPLY("Connection: close\r\n") : REPLY("");
		memcpy(c->out + c->out_len, text, strlen(text));
		c->out_len += strlen(text);
		c->in_len -= (size_t)(end + 4 - c->in);
		memmove(c->in, end + 4, c->in_len + 1);
		w->requests++;
	}
}

/* Answers, writes and reads until it would block. False when the connection is over. */
static bool
work(struct worker *w, struct conn *c)
{
	for (;;) {
		ssize_t n;

		answer(w, c);
		if (c->out_len > 0) {
			n = darter_send(c->fd, c->out, c->out_len, MSG_NOSIGNAL);
			if (n < 0)
				return errno == EAGAIN;
			c->out_len -= (size_t)n;
			memmove(c->out, c->out + n, c->out_len);
			continue;
		}
		if (c->must_close || c->in_len == REQUEST_MAX - 1)
			return false;
		n = darter_recv(c->fd, c->in + c->in_len, REQUEST_MAX - 1 - c->in_len, 0);
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		c->in_len += (size_t)n;
		c->in[c->in_len] = '\0';
	}
}

static void
accept_all(struct worker *w)
{
	int fd;

	while ((fd = darter_accept4(w->listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		struct conn *c = calloc(1, sizeof(*c));
		struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c };

		if (c == NULL || darter_epoll_ctl(w->ep, EPOLL_CTL_ADD, fd, &ev) < 0) {
			darter_close(fd);
			free(c);
			continue;
		}
		c->fd = fd;
		w->connections++;
	}
}

static void *
serve(void *arg)
{
	struct epoll_event ev[EVENTS];
	struct worker *w = arg;
	int i, n;

	if (must_attach && darter_attach(NULL, w->id) < 0)
		fprintf(stderr, "http_hello: netisr %u has a thread already\n", w->id);
	while (!atomic_load(&must_stop)) {
		n = darter_epoll_wait(w->ep, ev, EVENTS, LOOK_MS);
		for (i = 0; i < n; i++) {
			struct conn *c = ev[i].data.ptr;

			if (c == NULL) {
				accept_all(w);
			} else if (!work(w, c)) {
				darter_close(c->fd);
				free(c);
			}
		}
	}
	darter_detach();
	return NULL;
}

static void
prepare(struct worker *w, unsigned id, const struct options *o)
{
	struct epoll_event ev = { .events = EPOLLIN };	/* data.ptr NULL: the listener */

	w->id = id;
	w->listener = server_listen(o, SOCK_NONBLOCK);
	w->ep = darter_epoll_create1(0);
	darter_epoll_ctl(w->ep, EPOLL_CTL_ADD, w->listener, &ev);
}

static void
run(unsigned n_threads, const struct options *o, const sigset_t *stop)
{
	static struct worker workers[THREADS_MAX];
	unsigned long connections = 0, requests = 0;
	unsigned i;
	int sig;

	for (i = 0; i < n_threads; i++)
		prepare(&workers[i], i, o);
	for (i = 0; i < n_threads; i++)
		pthread_create(&workers[i].thread, NULL, serve, &workers[i]);
	printf("listening on port %u, %u threads\n", o->port, n_threads);
	fflush(stdout);
	sigwait(stop, &sig);
	atomic_store(&must_stop, true);
	for (i = 0; i < n_threads; i++) {
		pthread_join(workers[i].thread, NULL);
		connections += workers[i].connections;
		requests += workers[i].requests;
	}
	printf("answered %lu requests on %lu connections\n", requests, connections);
}

int
main(int argc, char **argv)
{
	struct options o = { .program = "http_hello", .port = 80 };
	struct darter_stack *s;
	sigset_t stop;

	options_parse(&o, argc, argv, true);
	must_attach = o.attach;
	server_block_signals(&stop);
	s = options_open(&o);
	if (o.threads == 0 || o.attach)
		o.threads = darter_netisr_count(s);
	run(o.threads < THREADS_MAX ? o.threads : THREADS_MAX, &o, &stop);
	darter_stack_close(s);
	return 0;
}
