/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections made and closed by several threads at once, as DragonFly's connect_client and
 * kq_connect_client do: blocking, one at a time in each of many threads; or non-blocking, some
 * under way in each of a few. With BENCH_ATTACHED each thread runs a netisr as well.
 *
 * Threads are made for the slice and begin together. Destinations take turns, so that local ports
 * are never scarce: the listeners of the server, or with the responder also many addresses. At the
 * end of its time each thread finishes what it has begun; what hangs is a failure.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <darter/darter.h>

#include "bench.h"

#define THREADS_MAX	512
#define STACK_BYTES	(256 << 10)
#define ADDRS		32	/* that the responder is asked for */
#define CLOCK_EVERY	8
#define FAILED_MAX	10	/* then a thread gives up */
#define STUCK_NS	UINT64_C(2000000000)
#define SETTLE_MS	3	/* for the last ends of connections */

struct churn {
	const struct bench_worker *w;
	const struct bench_cmd *cmd;
	struct darter_stack *stack;
	pthread_barrier_t start;
	uint64_t end_ns;	/* written before the barrier */
};

struct churner {
	struct churn *c;
	pthread_t thread;
	unsigned id;
	uint32_t turn;
	uint64_t done_ns;
	struct bench_reply reply;
};

struct slots {
	struct churner *t;
	int fd[BENCH_MAX_INFLIGHT];
	unsigned active;
	int ep;
};

static struct sockaddr_in
next_server(struct churner *t)
{
	const struct bench_worker *w = t->c->w;
	uint32_t turn = t->turn++;
	uint32_t host = w->has_peer ? 0 : 2 + turn / BENCH_PORTS % ADDRS;

	return (struct sockaddr_in){ .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)(BENCH_PORT + turn % BENCH_PORTS)),
	    .sin_addr.s_addr = htonl(w->server_ip + host) };
}

/* ---- blocking ---- */

static void
connect_once(struct churner *t)
{
	const struct net_calls *net = t->c->w->net;
	struct sockaddr_in a = next_server(t);
	int fd = net->socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0) {
		bench_note_failure(&t->reply, "socket");
		return;
	}
	if (net->connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		bench_note_failure(&t->reply, "connect");
	else
		t->reply.ops++;
	net->close(fd);
}

/* One at least: on a busy machine the time may be over before the last thread has begun. */
static void
churn_blocking(struct churner *t)
{
	do {
		connect_once(t);
	} while (t->reply.failed < FAILED_MAX && bench_now_ns() < t->c->end_ns);
}

/* ---- non-blocking ---- */

static void
slot_start(struct slots *s, unsigned i)
{
	struct churner *t = s->t;
	const struct net_calls *net = t->c->w->net;
	struct sockaddr_in a = next_server(t);
	struct epoll_event ev = { .events = EPOLLOUT, .data.u32 = i };

	s->fd[i] = net->socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (s->fd[i] < 0) {
		bench_note_failure(&t->reply, "socket");
		return;
	}
	if ((net->connect(s->fd[i], (struct sockaddr *)&a, sizeof(a)) < 0 &&
	    errno != EINPROGRESS) ||
	    net->epoll_ctl(s->ep, EPOLL_CTL_ADD, s->fd[i], &ev) < 0) {
		bench_note_failure(&t->reply, "connect");
		net->close(s->fd[i]);
		s->fd[i] = -1;
		return;
	}
	s->active++;
}

static void
slot_end(struct slots *s, unsigned i, uint32_t events)
{
	struct churner *t = s->t;
	socklen_t len = sizeof(int);
	int err = 0;

	if (events & (EPOLLERR | EPOLLHUP)) {
		t->c->w->net->getsockopt(s->fd[i], SOL_SOCKET, SO_ERROR, &err, &len);
		errno = err != 0 ? err : ECONNRESET;
		bench_note_failure(&t->reply, "connect");
	} else {
		t->reply.ops++;
	}
	t->c->w->net->close(s->fd[i]);
	s->fd[i] = -1;
	s->active--;
}

static void
run_slots(struct slots *s)
{
	struct churner *t = s->t;
	struct epoll_event evs[64];
	uint64_t now = 0;
	int i, n;

	while (s->active > 0 && now < t->c->end_ns + STUCK_NS) {
		n = t->c->w->net->epoll_wait(s->ep, evs, ARRAY_SIZE(evs), 100);
		now = bench_now_ns();
		for (i = 0; i < n; i++) {
			slot_end(s, evs[i].data.u32, evs[i].events);
			if (now < t->c->end_ns && t->reply.failed < FAILED_MAX)
				slot_start(s, evs[i].data.u32);
		}
	}
}

static void
churn_nonblocking(struct churner *t)
{
	const struct net_calls *net = t->c->w->net;
	struct slots s = { .t = t, .ep = net->epoll_create1(0) };
	unsigned i, n = t->c->cmd->c.inflight;

	if (s.ep < 0 || n > BENCH_MAX_INFLIGHT) {
		bench_note_failure(&t->reply, "epoll_create1");
		return;
	}
	for (i = 0; i < n; i++)
		slot_start(&s, i);
	run_slots(&s);
	for (i = 0; i < n && s.active > 0; i++) {
		if (s.fd[i] < 0)
			continue;
		errno = ETIMEDOUT;
		bench_note_failure(&t->reply, "a connection that never came up");
		net->close(s.fd[i]);
		s.active--;
	}
	net->close(s.ep);
}

/* ---- threads ---- */

static void
churn(struct churner *t)
{
	if (t->c->cmd->calls == BENCH_BLOCKING)
		churn_blocking(t);
	else
		churn_nonblocking(t);
	t->done_ns = bench_now_ns();
}

/* An attached thread stays with its netisr until the last ends of connections are through. */
static void
linger_attached(struct churner *t)
{
	struct epoll_event ev;
	int ep = t->c->w->net->epoll_create1(0);

	if (ep >= 0) {
		t->c->w->net->epoll_wait(ep, &ev, 1, SETTLE_MS);
		t->c->w->net->close(ep);
	}
	darter_detach();
}

static void *
churner_main(void *arg)
{
	struct churner *t = arg;
	struct churn *c = t->c;
	bool is_attached = false;
	int rc = 0;

	if (c->cmd->calls != BENCH_BLOCKING)
		bench_pin(c->w->cpus[t->id % BENCH_ROLES]);
	if (c->stack != NULL) {
		darter_stack_use(c->stack);
		if (c->cmd->calls == BENCH_ATTACHED)
			rc = darter_attach(c->stack, t->id);
		is_attached = c->cmd->calls == BENCH_ATTACHED && rc == 0;
	}
	pthread_barrier_wait(&c->start);	/* all are here */
	pthread_barrier_wait(&c->start);	/* the time is set */
	if (rc == 0) {
		churn(t);
	} else {
		errno = -rc;
		bench_note_failure(&t->reply, "darter_attach");
	}
	if (is_attached)
		linger_attached(t);
	return NULL;
}

/* As many as there are to be, or none. */
static unsigned
start_threads(struct churn *c, struct churner *threads, unsigned n)
{
	pthread_attr_t attr;
	unsigned i;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (i = 0; i < n; i++) {
		threads[i].c = c;
		threads[i].id = i;
		threads[i].turn = i * 37;
		if (pthread_create(&threads[i].thread, &attr, churner_main, &threads[i]) != 0)
			break;
	}
	pthread_attr_destroy(&attr);
	return i;
}

static void
run_threads(struct churn *c, struct churner *threads, unsigned n, struct bench_reply *ret)
{
	const struct timespec settle = { .tv_nsec = SETTLE_MS * 1000000L };
	uint64_t start_ns, done_ns = 0;
	unsigned i;

	pthread_barrier_wait(&c->start);
	if (c->stack != NULL)
		bench_counters_begin(ret);
	start_ns = bench_now_ns();
	c->end_ns = start_ns + (uint64_t)c->cmd->slice_ms * 1000000;
	pthread_barrier_wait(&c->start);
	for (i = 0; i < n; i++) {
		pthread_join(threads[i].thread, NULL);
		ret->ops += threads[i].reply.ops;
		ret->failed += threads[i].reply.failed;
		if (ret->why[0] == '\0')
			memcpy(ret->why, threads[i].reply.why, sizeof(ret->why));
		if (threads[i].done_ns > done_ns)
			done_ns = threads[i].done_ns;
	}
	ret->elapsed_ns = done_ns > start_ns ? done_ns - start_ns : 0;
	nanosleep(&settle, NULL);
	if (c->stack != NULL)
		bench_counters_end(ret);
}

void
bench_churn_slice(const struct bench_worker *w, const struct bench_cmd *cmd,
    struct bench_reply *ret)
{
	struct churn c = { .w = w, .cmd = cmd };
	unsigned n = cmd->n_threads;
	struct churner *threads = n <= THREADS_MAX ? calloc(n, sizeof(*threads)) : NULL;

	if (threads == NULL) {
		bench_note_failure(ret, "memory for threads");
		return;
	}
	if (w->net == &net_darter)
		c.stack = darter_stack_current();
	pthread_barrier_init(&c.start, NULL, n + 1);
	if (start_threads(&c, threads, n) == n) {
		run_threads(&c, threads, n, ret);
	} else {
		/* Those that exist wait for a barrier that is never full. */
		fprintf(stderr, "darter bench: no more threads\n");
		exit(1);
	}
	pthread_barrier_destroy(&c.start);
	free(threads);
}
