/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several threads in one epoll: level, edge and one-shot items, partial reads, descriptors that are
 * closed while a duplicate lives. Each case runs on the kernel too, and what it writes down must be
 * equal; what threads do in changing orders is written down as what it comes to (case S03). Each
 * runs with background threads and once more with some of its threads attached to the netisrs.
 */
#include "threads/world.h"

#define THREADS		3
#define CONNS		6
#define CONN_BYTES	3000u
#define LOST_MS		10000	/* an event that has not come by then was lost */
#define ROUNDS		1000
#define ROUND_BYTES	64

static const struct kind {
	const char *name;
	uint32_t flags;
} kinds[] = { { "level", 0 }, { "edge", EPOLLET }, { "oneshot", EPOLLONESHOT } };

static unsigned the_seed;
static struct world *the_world;		/* of darter's turn */

/*
 * In darter's turn of a run with attached threads, this one runs netisr k if there is one. A thread
 * that ends is detached.
 */
static void
attach_to(struct net *n, unsigned k)
{
	if (n == &darter_net && the_world->attaching == ATTACH_SOME &&
	    k < world_netisrs(the_world) && !world_attach(the_world, k))
		wrong("netisr %u has a thread already\n", k);
}

static int
ctl(struct net *n, int ep, int op, int fd, uint32_t events, uint32_t data)
{
	struct epoll_event ev = { .events = events, .data.u32 = data };

	return n->epoll_ctl(ep, op, fd, &ev);
}

static void
say_wait(struct net *n, const char *what, int ep, int timeout_ms)
{
	struct epoll_event ev[4];
	int rc = n->epoll_wait(ep, ev, 4, timeout_ms);

	if (rc == 1)
		say_events(n, what, ev[0].events);
	else
		say_result(n, what, rc);
}

/* darter's loopback takes its time: until so many bytes can be read. */
static void
await_bytes(struct net *n, int fd, int bytes)
{
	uint64_t until = now_ms() + LOST_MS;
	int v = 0;

	while (v < bytes && now_ms() < until) {
		assert_int_equal(n->ioctl(fd, FIONREAD, &v), 0);
		world_sleep_us(100);
	}
	assert_int_equal(v, bytes);
}

/* ---- all bytes of all connections, whoever is woken for them ---- */

struct conn {
	int fd, peer;
	pthread_mutex_t lock;
	_Atomic bool is_served;	/* one-shot: by one thread at a time, without a lock */
	uint32_t got;
	bool is_torn;		/* a byte was not the next one */
};

struct share {
	struct net *net;
	const struct kind *kind;
	int ep;
	struct conn conn[CONNS];
	_Atomic uint32_t total;
	_Atomic uint32_t calls;
	_Atomic uint32_t collisions;	/* one-shot: two threads had the same item */
	_Atomic bool over;
};

/* One piece of any size; false when nothing was there. */
static bool
read_piece(struct share *s, struct conn *c, uint64_t *rng)
{
	uint8_t buf[256];
	ssize_t n = s->net->recv(c->fd, buf, 1 + below(rng, sizeof(buf)), MSG_DONTWAIT), i;

	if (n < 0 && errno != EAGAIN)
		wrong("recv: %s\n", strerrorname_np(errno));
	for (i = 0; i < n; i++) {
		if (buf[i] != (uint8_t)c->got)
			c->is_torn = true;
		c->got++;
	}
	if (n > 0)
		atomic_fetch_add(&s->total, (uint32_t)n);
	return n > 0;
}

static void
serve(struct share *s, uint32_t idx, uint64_t *rng)
{
	struct conn *c = &s->conn[idx];

	if (s->kind->flags & EPOLLONESHOT) {
		if (atomic_exchange(&c->is_served, true))
			atomic_fetch_add(&s->collisions, 1);
		read_piece(s, c, rng);
		atomic_store(&c->is_served, false);
		if (ctl(s->net, s->ep, EPOLL_CTL_MOD, c->fd, EPOLLIN | EPOLLONESHOT, idx) < 0)
			wrong("mod: %s\n", strerrorname_np(errno));
		return;
	}
	pthread_mutex_lock(&c->lock);
	while (read_piece(s, c, rng) && (s->kind->flags & EPOLLET))
		;
	pthread_mutex_unlock(&c->lock);
}

static void *
server(void *arg)
{
	struct share *s = arg;
	unsigned me = atomic_fetch_add(&s->calls, 1);
	uint64_t rng = mix(the_seed + 1000 * (uint64_t)me) << 20;
	struct epoll_event ev[2];

	attach_to(s->net, me);
	while (!atomic_load(&s->over)) {
		int n = s->net->epoll_wait(s->ep, ev, 1 + (int)below(&rng, 2), 20), i;

		if (n < 0)
			wrong("epoll_wait: %s\n", strerrorname_np(errno));
		for (i = 0; i < n; i++) {
			if (ev[i].events != EPOLLIN)
				wrong("events %x\n", ev[i].events);
			serve(s, ev[i].data.u32, &rng);
		}
	}
	return NULL;
}

/* Writes to all connections in turns that the seed shakes. */
static void
feed(struct share *s)
{
	uint64_t rng = mix(the_seed) << 20;
	uint32_t sent[CONNS] = { 0 }, left = CONNS * CONN_BYTES;
	uint8_t buf[400];

	while (left > 0) {
		uint32_t i = below(&rng, CONNS), len = 1 + below(&rng, sizeof(buf)), k;

		if (len > CONN_BYTES - sent[i])
			len = CONN_BYTES - sent[i];
		for (k = 0; k < len; k++)
			buf[k] = (uint8_t)(sent[i] + k);
		if (len > 0 && s->net->send(s->conn[i].peer, buf, len, 0) != (ssize_t)len)
			wrong("send: %s\n", strerrorname_np(errno));
		sent[i] += len;
		left -= len;
		if (below(&rng, 8) == 0)
			usleep(below(&rng, 400));
	}
}

static void
share_once(struct net *n, const struct kind *kind)
{
	static struct share s;
	pthread_t t[THREADS];
	uint64_t until;
	uint32_t i;

	memset(&s, 0, sizeof(s));
	s.net = n;
	s.kind = kind;
	s.ep = n->epoll_create1(0);
	for (i = 0; i < CONNS; i++) {
		int fd[2];

		connected_pair(n, fd);
		s.conn[i].fd = fd[0];
		s.conn[i].peer = fd[1];
		pthread_mutex_init(&s.conn[i].lock, NULL);
		assert_int_equal(ctl(n, s.ep, EPOLL_CTL_ADD, fd[0], EPOLLIN | kind->flags, i), 0);
	}
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, server, &s), 0);
	feed(&s);
	until = now_ms() + LOST_MS;
	while (atomic_load(&s.total) < CONNS * CONN_BYTES && now_ms() < until)
		usleep(500);
	atomic_store(&s.over, true);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	say(n, "%s: collisions %u\n", kind->name, atomic_load(&s.collisions));
	for (i = 0; i < CONNS; i++) {
		say(n, "got %u%s\n", s.conn[i].got, s.conn[i].is_torn ? " torn" : "");
		n->close(s.conn[i].fd);
		n->close(s.conn[i].peer);
		pthread_mutex_destroy(&s.conn[i].lock);
	}
	say_wait(n, "all closed", s.ep, 0);
	n->close(s.ep);
}

static void
share_all(struct net *n)
{
	unsigned i, k;

	for (i = 0; i < n_seeds; i++) {
		the_seed = first_seed + i;
		for (k = 0; k < 3; k++)
			share_once(n, &kinds[k]);
	}
}

/* ---- who is woken ---- */

struct crowd {
	struct net *net;
	int ep;
	_Atomic uint32_t calls;
	_Atomic uint32_t woken;
	_Atomic bool over;
};

static void *
stand_in_crowd(void *arg)
{
	struct crowd *c = arg;
	struct epoll_event ev;

	attach_to(c->net, atomic_fetch_add(&c->calls, 1));
	while (!atomic_load(&c->over)) {
		if (c->net->epoll_wait(c->ep, &ev, 1, 20) == 1)
			atomic_fetch_add(&c->woken, 1);
	}
	return NULL;
}

/*
 * Arrivals that nobody reads: an edge goes to one thread, a one-shot item to one until it is armed.
 */
static void
crowd_with(struct net *n, const struct kind *kind)
{
	struct crowd c = { .net = n, .ep = n->epoll_create1(0) };
	pthread_t t[THREADS];
	int fd[2], i;

	connected_pair(n, fd);
	assert_int_equal(ctl(n, c.ep, EPOLL_CTL_ADD, fd[1], EPOLLIN | kind->flags, 0), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, stand_in_crowd, &c), 0);
	for (i = 0; i < 10; i++) {
		uint32_t before = atomic_load(&c.woken);
		uint64_t until = now_ms() + LOST_MS;

		n->send(fd[0], "x", 1, 0);
		/* the second of a pair finds a one-shot item disarmed */
		if ((kind->flags & EPOLLONESHOT) && (i & 1))
			until = now_ms() + NEVER_MS;
		while (atomic_load(&c.woken) == before && now_ms() < until)
			usleep(200);
		usleep(2000);
		say(n, "%s %d: woken %u\n", kind->name, i, atomic_load(&c.woken) - before);
		if ((kind->flags & EPOLLONESHOT) && (i & 1)) {
			char buf[16];

			await_bytes(n, fd[1], 2);
			say_result(n, "drain", n->recv(fd[1], buf, sizeof(buf), 0));
			ctl(n, c.ep, EPOLL_CTL_MOD, fd[1], EPOLLIN | kind->flags, 0);
		}
	}
	atomic_store(&c.over, true);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	n->close(fd[0]);
	n->close(fd[1]);
	n->close(c.ep);
}

static void
crowd_all(struct net *n)
{
	crowd_with(n, &kinds[1]);
	crowd_with(n, &kinds[2]);
}

/* ---- a partial read, then a new byte ---- */

static void
partial_with(struct net *n, const struct kind *kind)
{
	int fd[2], ep = n->epoll_create1(0);
	char buf[16];

	say(n, "%s\n", kind->name);
	attach_to(n, 0);
	connected_pair(n, fd);
	ctl(n, ep, EPOLL_CTL_ADD, fd[1], EPOLLIN | kind->flags, 0);
	n->send(fd[0], "0123456789", 10, 0);
	say_wait(n, "ten bytes", ep, SOON_MS);
	say_result(n, "part", n->recv(fd[1], buf, 4, 0));
	say_wait(n, "the rest", ep, kind->flags == 0 ? SOON_MS : NEVER_MS);
	n->send(fd[0], "x", 1, 0);
	await_bytes(n, fd[1], 7);
	say_wait(n, "a new byte", ep, kind->flags & EPOLLONESHOT ? NEVER_MS : SOON_MS);
	ctl(n, ep, EPOLL_CTL_MOD, fd[1], EPOLLIN | kind->flags, 0);
	say_wait(n, "armed", ep, SOON_MS);
	say_result(n, "all", n->recv(fd[1], buf, sizeof(buf), 0));
	say_wait(n, "empty", ep, NEVER_MS);
	n->close(fd[0]);
	n->close(fd[1]);
	n->close(ep);
	darter_detach();
}

static void
partial_all(struct net *n)
{
	unsigned k;

	for (k = 0; k < 3; k++)
		partial_with(n, &kinds[k]);
}

/* ---- a registered descriptor is closed, its duplicate lives ---- */

struct one_wait {
	struct net *net;
	int ep;
	int rc;
	struct epoll_event ev;
};

static void *
wait_once(void *arg)
{
	struct one_wait *w = arg;

	attach_to(w->net, 1);
	w->rc = w->net->epoll_wait(w->ep, &w->ev, 1, SOON_MS);
	return NULL;
}

static void
say_item_of(struct net *n, const char *what, int ep, int fd)
{
	say(n, "%s ", what);
	say_ok(n, "mod", ctl(n, ep, EPOLL_CTL_MOD, fd, EPOLLIN, 9));
	say(n, "%s ", what);
	say_ok(n, "del", ctl(n, ep, EPOLL_CTL_DEL, fd, 0, 0));
}

/* A thread waits before the close and is woken by what arrives after it. */
static void
duplicate_with(struct net *n, const struct kind *kind)
{
	struct one_wait w = { .net = n, .ep = n->epoll_create1(0) };
	pthread_t t;
	int fd[2], copy;
	char buf[16];

	say(n, "%s\n", kind->name);
	attach_to(n, 0);
	connected_pair(n, fd);
	copy = n->dup(fd[1]);
	ctl(n, w.ep, EPOLL_CTL_ADD, fd[1], EPOLLIN | kind->flags, 7);
	assert_int_equal(pthread_create(&t, NULL, wait_once, &w), 0);
	world_sleep_us(2000);
	say_ok(n, "close", n->close(fd[1]));
	say_item_of(n, "closed number", w.ep, fd[1]);
	say_item_of(n, "duplicate", w.ep, copy);
	n->send(fd[0], "x", 1, 0);
	world_join(t);
	say_result(n, "woken", w.rc);
	say_events(n, "by", w.rc == 1 ? w.ev.events : 0);
	say(n, "of %u\n", w.ev.data.u32);
	say_result(n, "recv", n->recv(copy, buf, sizeof(buf), 0));
	n->send(fd[0], "y", 1, 0);
	say_wait(n, "another", w.ep, kind->flags & EPOLLONESHOT ? NEVER_MS : SOON_MS);
	/* registered by its own number beside the item that is left */
	say_ok(n, "add", ctl(n, w.ep, EPOLL_CTL_ADD, copy, EPOLLIN, 8));
	say_ok(n, "add twice", ctl(n, w.ep, EPOLL_CTL_ADD, copy, EPOLLIN, 8));
	n->close(copy);
	say_wait(n, "last one closed", w.ep, NEVER_MS);
	n->close(fd[0]);
	n->close(w.ep);
	darter_detach();
}

static void
duplicate_all(struct net *n)
{
	unsigned k;

	for (k = 0; k < 3; k++)
		duplicate_with(n, &kinds[k]);
}

/* ---- rounds with sleeps between them ---- */

static bool
exchange(struct net *n, int ep, int fd, bool is_first)
{
	struct epoll_event ev;
	char buf[ROUND_BYTES] = { 0 };

	if (is_first && n->send(fd, buf, sizeof(buf), 0) != sizeof(buf))
		return false;
	if (n->epoll_wait(ep, &ev, 1, LOST_MS) != 1)
		return false;
	if (n->recv(fd, buf, sizeof(buf), MSG_WAITALL) != sizeof(buf))
		return false;
	return is_first || n->send(fd, buf, sizeof(buf), 0) == sizeof(buf);
}

struct end {
	struct net *net;
	int ep, fd;
};

static void *
answer(void *arg)
{
	struct end *e = arg;
	int i;

	attach_to(e->net, 1);
	for (i = 0; i < ROUNDS; i++) {
		if (!exchange(e->net, e->ep, e->fd, false))
			break;
	}
	return NULL;
}

static void
rounds(struct net *n)
{
	struct end e = { .net = n, .ep = n->epoll_create1(0) };
	int fd[2], ep = n->epoll_create1(0), i;
	uint64_t rng = mix(first_seed);
	pthread_t t;

	attach_to(n, 0);
	connected_pair(n, fd);
	e.fd = fd[1];
	ctl(n, e.ep, EPOLL_CTL_ADD, fd[1], EPOLLIN, 0);
	ctl(n, ep, EPOLL_CTL_ADD, fd[0], EPOLLIN | EPOLLET, 0);
	assert_int_equal(pthread_create(&t, NULL, answer, &e), 0);
	for (i = 0; i < ROUNDS; i++) {
		if (below(&rng, 16) == 0)
			world_sleep_us(below(&rng, 300));
		if (!exchange(n, ep, fd[0], true))
			break;
	}
	n->shutdown(fd[0], SHUT_WR);
	world_join(t);
	say(n, "rounds %d\n", i);
	n->close(fd[0]);
	n->close(fd[1]);
	n->close(ep);
	n->close(e.ep);
	darter_detach();
}

/* ---- on one netisr and on two ---- */

static void
on_one(struct world w, enum attaching attaching, void (*fn)(struct net *n))
{
	unsigned before = atomic_load(&attaches);

	w.attaching = attaching;
	the_world = &w;
	world_open(&w);
	compare(fn);
	world_close(&w);
	the_world = NULL;
	assert_true((atomic_load(&attaches) != before) == (attaching != ATTACH_NOBODY));
}

static void
on_both(void (*fn)(struct net *n))
{
	static const enum attaching ways[] = { ATTACH_NOBODY, ATTACH_SOME };
	unsigned i;

	for (i = 0; i < 2; i++) {
		on_one((struct world)WORLD_ONE, ways[i], fn);
		on_one((struct world)WORLD_TWO, ways[i], fn);
	}
	assert_int_equal(atomic_load(&wrongs), 0);
}

#define ON_BOTH(test, fn) \
	static void \
	test(void **state) \
	{ \
		(void)state; \
		on_both(fn); \
	}

ON_BOTH(all_bytes_are_read_by_threads_that_share_a_queue, share_all)
ON_BOTH(arrival_wakes_as_many_threads_as_on_the_kernel, crowd_all)
ON_BOTH(new_byte_after_a_partial_read_is_told_as_on_the_kernel, partial_all)
ON_BOTH(item_of_a_closed_number_tells_while_a_duplicate_lives, duplicate_all)
ON_BOTH(no_round_is_stuck_when_threads_sleep_between_them, rounds)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_bytes_are_read_by_threads_that_share_a_queue),
		cmocka_unit_test(arrival_wakes_as_many_threads_as_on_the_kernel),
		cmocka_unit_test(new_byte_after_a_partial_read_is_told_as_on_the_kernel),
		cmocka_unit_test(item_of_a_closed_number_tells_while_a_duplicate_lives),
		cmocka_unit_test(no_round_is_stuck_when_threads_sleep_between_them),
	};

	take_seeds(argc, argv, 2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
