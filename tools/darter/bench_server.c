/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server of a slice: one thread, one epoll over 16 listeners. A new connection is tried at
 * once, before it is put into the epoll, since its request or its end often came along with it. The
 * client closes first; what the server has accepted and echoed goes into the self-check.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define IS_LISTENER	(UINT64_C(1) << 32)
#define IS_UDP		(UINT64_C(2) << 32)
#define ACCEPT_BATCH	64
#define WAIT_MS		2
#define IDLE_WAIT_MS	20	/* looking around costs CPU time too */
/* for what is still on its way when the client is done */
#define GRACE_NS	UINT64_C(500000000)
#define ECHO_WAIT_S	2

struct serving {
	struct bench_server *s;
	const struct bench_case *c;
	struct bench_reply *reply;
	unsigned open;
};

/* Does a connection of this case stay, for one request after the other? */
static bool
has_trips(const struct serving *v)
{
	return v->c->kind == BENCH_RR || v->c->kind == BENCH_LATENCY;
}

static int
complain(char *why, const char *what)
{
	snprintf(why, BENCH_WHY_MAX, "server: %s: %s", what, strerror(errno));
	return -1;
}

static void
note_failure(struct serving *v, const char *what)
{
	if (v->reply->failed++ == 0)
		complain(v->reply->why, what);
}

static int
add_to_epoll(struct bench_server *s, int fd, uint64_t data)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = data };

	return s->net->epoll_ctl(s->ep, EPOLL_CTL_ADD, fd, &ev);
}

static int
open_bound(const struct net_calls *net, int type, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = net->socket(AF_INET, type | SOCK_NONBLOCK, 0);
	int one = 1;

	if (fd < 0)
		return -1;
	net->setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (net->bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	net->close(fd);
	return -1;
}

int
bench_server_init(struct bench_server *s, const struct net_calls *net, char *why)
{
	unsigned i;

	s->net = net;
	s->buf = malloc(BENCH_MAX_BYTES);
	s->ep = net->epoll_create1(0);
	if (s->buf == NULL || s->ep < 0)
		return complain(why, "epoll_create1");
	for (i = 0; i < BENCH_PORTS; i++) {
		s->listener[i] = open_bound(net, SOCK_STREAM, (uint16_t)(BENCH_PORT + i));
		if (s->listener[i] < 0 || net->listen(s->listener[i], 1024) < 0 ||
		    add_to_epoll(s, s->listener[i], IS_LISTENER | (uint32_t)s->listener[i]) < 0)
			return complain(why, "listen");
	}
	s->udp = open_bound(net, SOCK_DGRAM, BENCH_UDP_PORT);
	if (s->udp < 0 || add_to_epoll(s, s->udp, IS_UDP) < 0)
		return complain(why, "UDP socket");
	return 0;
}

/*
 * Echoes messages of n_bytes until the client closes: blocking calls, as a simple server has them.
 */
static void
echo_until_eof(struct serving *v, int fd)
{
	const struct net_calls *net = v->s->net;
	uint32_t got = 0;
	ssize_t n;

	for (;;) {
		n = net->recv(fd, v->s->buf + got, v->c->n_bytes - got, 0);
		if (n <= 0)
			break;
		got += (uint32_t)n;
		if (got < v->c->n_bytes)
			continue;
		if (net->send(fd, v->s->buf, got, MSG_NOSIGNAL) != (ssize_t)got) {
			note_failure(v, "send");
			break;
		}
		v->reply->bytes += got;
		got = 0;
	}
	if (n < 0)
		note_failure(v, "recv");
	net->close(fd);
}

/* What can be done on a connection without waiting. */
static void
serve(struct serving *v, int fd, bool is_new)
{
	const struct net_calls *net = v->s->net;
	ssize_t n;

	while ((n = net->recv(fd, v->s->buf, 16, MSG_DONTWAIT)) > 0) {
		if (net->send(fd, v->s->buf, (size_t)n, MSG_NOSIGNAL) != n)
			note_failure(v, "send");
		v->reply->bytes += (uint64_t)n;
	}
	if (n < 0 && errno == EAGAIN) {
		if (is_new && add_to_epoll(v->s, fd, (uint32_t)fd) < 0)
			note_failure(v, "epoll_ctl");
		v->open += is_new;
		return;
	}
	/* With SO_LINGER 0 the client's reset is the expected end. */
	if (n < 0 && !(v->c->is_reset && errno == ECONNRESET))
		note_failure(v, "recv");
	net->close(fd);
	v->open -= !is_new;
}

static void
accept_some(struct serving *v, int listener)
{
	const struct net_calls *net = v->s->net;
	struct timeval wait = { .tv_sec = ECHO_WAIT_S };
	int one = 1, fd;
	unsigned i;

	for (i = 0; i < ACCEPT_BATCH; i++) {
		fd = net->accept4(listener, NULL, NULL, has_trips(v) ? 0 : SOCK_NONBLOCK);
		if (fd < 0) {
			if (errno != EAGAIN && errno != EINTR)
				note_failure(v, "accept");
			return;
		}
		v->reply->ops++;
		if (has_trips(v)) {
			net->setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
			net->setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
			echo_until_eof(v, fd);
		} else {
			serve(v, fd, true);
		}
	}
}

static void
count_datagrams(struct serving *v)
{
	unsigned i;

	for (i = 0; i < 256; i++) {
		if (v->s->net->recv(v->s->udp, v->s->buf, 16, MSG_DONTWAIT) < 0)
			return;
		/* Those of another slice are not this one's. */
		v->reply->ops += v->c->kind == BENCH_UDP;
	}
}

static void
handle(struct serving *v, const struct epoll_event *ev)
{
	if (ev->data.u64 & IS_LISTENER)
		accept_some(v, (int)(uint32_t)ev->data.u64);
	else if (ev->data.u64 & IS_UDP)
		count_datagrams(v);
	else
		serve(v, (int)(uint32_t)ev->data.u64, false);
}

void
bench_server_slice(struct bench_server *s, const struct bench_cmd *cmd, struct bench_shared *shared,
    struct bench_reply *ret)
{
	struct serving v = { .s = s, .c = &cmd->c, .reply = ret };
	struct epoll_event evs[64];
	uint64_t stopped_at = 0;
	int i, n;

	for (;;) {
		n = s->net->epoll_wait(s->ep, evs, ARRAY_SIZE(evs),
		    v.c->kind == BENCH_IDLE ? IDLE_WAIT_MS : WAIT_MS);
		for (i = 0; i < n; i++)
			handle(&v, &evs[i]);
		if (!atomic_load_explicit(&shared->stop, memory_order_acquire))
			continue;
		/*
		 * All seen and nothing more for one wait: the ends of the last connections are
		 * through too.
		 */
		if (n == 0 && v.open == 0 && ret->ops >= atomic_load(&shared->expect))
			return;
		if (stopped_at == 0)
			stopped_at = bench_now_ns();
		else if (bench_now_ns() - stopped_at > GRACE_NS)
			return;
	}
}
