/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Readiness events with several threads in one epoll, letter by letter (case S03): what one thread
 * registers, changes or closes while others sleep in the wait. Each case runs on the kernel too and
 * the two transcripts must be equal; threads write down nothing, the main thread says what it came
 * to. The number of rounds of letter f can be given as argument; a soak takes a million.
 */
#include "threads/world.h"

#define SLEEPERS	3
#define CLIENTS		8
#define ROUND_BYTES	64
#define ROUND_MAX_MS	1000

static unsigned rounds = 2000;

/* Sleepers in one epoll: each wake-up is counted, and `act` does with it what the case asks. */
struct den {
	struct net *net;
	int ep;
	_Atomic unsigned woken;
	_Atomic unsigned events;	/* all that were told, ored */
	_Atomic unsigned data;		/* of the last one */
	_Atomic bool over;
	void (*act)(struct den *d, const struct epoll_event *ev);
	int fd;				/* for act */
	_Atomic unsigned done;
	pthread_t t[SLEEPERS];
};

static void *
sleeper(void *arg)
{
	struct den *d = arg;
	struct epoll_event ev;

	while (!atomic_load(&d->over)) {
		int n = d->net->epoll_wait(d->ep, &ev, 1, 20);

		if (n < 0)
			wrong("epoll_wait: %s\n", strerrorname_np(errno));
		if (n != 1)
			continue;
		atomic_fetch_or(&d->events, ev.events);
		atomic_store(&d->data, ev.data.u32);
		if (d->act != NULL)
			d->act(d, &ev);
		atomic_fetch_add(&d->woken, 1);
	}
	return NULL;
}

static void
den_open(struct den *d, struct net *n, void (*act)(struct den *d, const struct epoll_event *ev))
{
	unsigned i;

	memset(d, 0, sizeof(*d));
	d->net = n;
	d->act = act;
	d->fd = -1;
	d->ep = n->epoll_create1(0);
	for (i = 0; i < SLEEPERS; i++)
		assert_int_equal(pthread_create(&d->t[i], NULL, sleeper, d), 0);
	usleep(2000);	/* so that they sleep; the outcome is the same if they do not yet */
}

static void
den_close(struct den *d)
{
	unsigned i;

	atomic_store(&d->over, true);
	for (i = 0; i < SLEEPERS; i++)
		pthread_join(d->t[i], NULL);
	d->net->close(d->ep);
}

static int
ctl(struct net *n, int ep, int op, int fd, uint32_t events, uint32_t data)
{
	struct epoll_event ev = { .events = events, .data.u32 = data };

	return n->epoll_ctl(ep, op, fd, &ev);
}

/* Waits until `count` has reached `want`, then a little longer, for what must not come. */
static unsigned
settled(_Atomic unsigned *count, unsigned want)
{
	uint64_t until = now_ms() + SOON_MS;

	while (atomic_load(count) < want && now_ms() < until)
		usleep(200);
	usleep(NEVER_MS * 1000);
	return atomic_load(count);
}

/* So many wake-ups since the last call, and of what. */
static void
say_woken(struct den *d, const char *what, unsigned want)
{
	unsigned n = settled(&d->woken, want);

	say(d->net, "%s: woken %u, data %u;", what, n, n > 0 ? atomic_load(&d->data) : 0);
	say_events(d->net, "", atomic_exchange(&d->events, 0));
	atomic_store(&d->woken, 0);
}

static void
await_bytes(struct net *n, int fd, int bytes)
{
	uint64_t until = now_ms() + SOON_MS;
	int v = 0;

	while (v < bytes && now_ms() < until) {
		assert_int_equal(n->ioctl(fd, FIONREAD, &v), 0);
		usleep(100);
	}
	assert_int_equal(v, bytes);
}

/* ---- a: an accept that found nobody, then the listener is registered ---- */

static void
accept_all(struct den *d, const struct epoll_event *ev)
{
	int fd;

	(void)ev;
	while ((fd = d->net->accept4(d->fd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		d->net->close(fd);
		atomic_fetch_add(&d->done, 1);
	}
	if (errno != EAGAIN)
		wrong("accept: %s\n", strerrorname_np(errno));
}

static void
late_listener(struct net *n)
{
	int l = listener(n, CLIENTS), c;
	struct den d;

	set_nonblock(n, l);
	say_ok(n, "early accept", n->accept4(l, NULL, NULL, 0));
	den_open(&d, n, accept_all);
	d.fd = l;
	say_ok(n, "add", ctl(n, d.ep, EPOLL_CTL_ADD, l, EPOLLIN | EPOLLET, 1));
	say_woken(&d, "nobody yet", 0);
	c = n->socket(AF_INET, SOCK_STREAM, 0);
	say_ok(n, "connect", connect_to(n, c, port_of(n, l)));
	say_woken(&d, "one", 1);
	say(n, "accepted %u\n", atomic_load(&d.done));
	den_close(&d);
	n->close(c);
	n->close(l);
}

/* ---- b: bytes are there, then the descriptor is registered ---- */

static void
late_descriptor(struct net *n)
{
	char buf[100] = { 0 };
	struct den d;
	int fd[2];

	connected_pair(n, fd);
	n->send(fd[0], buf, sizeof(buf), 0);
	await_bytes(n, fd[1], sizeof(buf));
	den_open(&d, n, NULL);
	say_ok(n, "add", ctl(n, d.ep, EPOLL_CTL_ADD, fd[1], EPOLLIN | EPOLLET, 2));
	say_woken(&d, "at registration", 1);
	say_ok(n, "mod", ctl(n, d.ep, EPOLL_CTL_MOD, fd[1], EPOLLIN | EPOLLET, 3));
	say_woken(&d, "at change", 1);
	say_ok(n, "other events", ctl(n, d.ep, EPOLL_CTL_MOD, fd[1], EPOLLPRI | EPOLLET, 4));
	say_woken(&d, "not for these", 0);
	say_ok(n, "both", ctl(n, d.ep, EPOLL_CTL_MOD, fd[1], EPOLLIN | EPOLLOUT | EPOLLET, 5));
	say_woken(&d, "for both", 1);
	say_ok(n, "del", ctl(n, d.ep, EPOLL_CTL_DEL, fd[1], 0, 0));
	n->send(fd[0], buf, sizeof(buf), 0);
	say_woken(&d, "after removal", 0);
	den_close(&d);
	n->close(fd[0]);
	n->close(fd[1]);
}

/* ---- c: level means again and again, for all threads ---- */

struct tens {
	struct net *net;
	int ep;
	unsigned told;
};

static void *
wait_ten_times(void *arg)
{
	struct tens *t = arg;
	struct epoll_event ev;
	unsigned i;

	for (i = 0; i < 10; i++)
		t->told += t->net->epoll_wait(t->ep, &ev, 1, SOON_MS) == 1 &&
		    ev.events == EPOLLOUT;
	return NULL;
}

static void
level_repeats(struct net *n)
{
	struct tens t[SLEEPERS];
	pthread_t id[SLEEPERS];
	int fd[2], ep = n->epoll_create1(0);
	unsigned i;

	connected_pair(n, fd);
	ctl(n, ep, EPOLL_CTL_ADD, fd[0], EPOLLOUT, 0);
	for (i = 0; i < SLEEPERS; i++) {
		t[i] = (struct tens){ .net = n, .ep = ep };
		assert_int_equal(pthread_create(&id[i], NULL, wait_ten_times, &t[i]), 0);
	}
	for (i = 0; i < SLEEPERS; i++) {
		pthread_join(id[i], NULL);
		say(n, "told %u times\n", t[i].told);
	}
	n->close(fd[0]);
	n->close(fd[1]);
	n->close(ep);
}

/* ---- d: eight handshakes at once ---- */

static void
accept_one(struct den *d, const struct epoll_event *ev)
{
	int fd = d->net->accept4(d->fd, NULL, NULL, SOCK_NONBLOCK);

	(void)ev;
	if (fd >= 0) {
		d->net->close(fd);
		atomic_fetch_add(&d->done, 1);
	} else if (errno != EAGAIN) {
		wrong("accept: %s\n", strerrorname_np(errno));
	}
}

static void
connect_at_once(struct net *n, int l, int c[CLIENTS])
{
	unsigned i;

	for (i = 0; i < CLIENTS; i++) {
		c[i] = n->socket(AF_INET, SOCK_STREAM, 0);
		set_nonblock(n, c[i]);
		connect_to(n, c[i], port_of(n, l));
	}
}

static void
crowd_with(struct net *n, uint32_t flags, void (*act)(struct den *, const struct epoll_event *))
{
	int l = listener(n, 2 * CLIENTS), c[CLIENTS];
	struct den d;
	unsigned i;

	set_nonblock(n, l);
	den_open(&d, n, act);
	d.fd = l;
	ctl(n, d.ep, EPOLL_CTL_ADD, l, EPOLLIN | flags, 0);
	connect_at_once(n, l, c);
	say(n, "accepted %u\n", settled(&d.done, CLIENTS));
	den_close(&d);
	for (i = 0; i < CLIENTS; i++)
		n->close(c[i]);
	n->close(l);
}

static void
crowds(struct net *n)
{
	crowd_with(n, 0, accept_one);
	crowd_with(n, EPOLLET, accept_all);
}

/* All are there before anybody waits: the edge at registration stands for all of them. */
static void
crowd_before_the_wait(struct net *n)
{
	int l = listener(n, 2 * CLIENTS), c[CLIENTS];
	struct den d;
	unsigned i;

	set_nonblock(n, l);
	connect_at_once(n, l, c);
	for (i = 0; i < CLIENTS; i++)
		await(n, c[i], POLLOUT);
	den_open(&d, n, accept_all);
	d.fd = l;
	ctl(n, d.ep, EPOLL_CTL_ADD, l, EPOLLIN | EPOLLET, 6);
	say(n, "accepted %u\n", settled(&d.done, CLIENTS));
	den_close(&d);
	for (i = 0; i < CLIENTS; i++)
		n->close(c[i]);
	n->close(l);
}

/* ---- e: one-shot ---- */

static void
oneshot(struct net *n)
{
	struct den d;
	int fd[2];
	unsigned i;

	connected_pair(n, fd);
	den_open(&d, n, NULL);
	ctl(n, d.ep, EPOLL_CTL_ADD, fd[1], EPOLLIN | EPOLLONESHOT, 1);
	n->send(fd[0], "0123456789", 10, 0);
	say_woken(&d, "ten bytes", 1);
	n->send(fd[0], "0123456789", 10, 0);
	await_bytes(n, fd[1], 20);
	say_woken(&d, "ten more", 0);
	for (i = 0; i < 5; i++) {
		/* armed again while all sleep: the bytes are still there */
		ctl(n, d.ep, EPOLL_CTL_MOD, fd[1], EPOLLIN | EPOLLONESHOT, 2 + i);
		say_woken(&d, "armed", 1);
	}
	ctl(n, d.ep, EPOLL_CTL_MOD, fd[1], EPOLLIN | EPOLLRDHUP | EPOLLONESHOT | EPOLLET, 9);
	say_woken(&d, "armed as an edge", 1);
	n->shutdown(fd[0], SHUT_WR);
	await(n, fd[1], POLLRDHUP);
	say_woken(&d, "the end, disarmed", 0);
	ctl(n, d.ep, EPOLL_CTL_MOD, fd[1], EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, 10);
	say_woken(&d, "the end, armed", 1);
	den_close(&d);
	n->close(fd[0]);
	n->close(fd[1]);
}

/* ---- a partial read, then a new byte, all sleeping ---- */

static void
read_four(struct den *d, const struct epoll_event *ev)
{
	char buf[4];

	(void)ev;
	if (d->net->recv(d->fd, buf, sizeof(buf), MSG_DONTWAIT) != sizeof(buf))
		wrong("recv: not four bytes\n");
}

static void
partial_read(struct net *n)
{
	char buf[16];
	struct den d;
	int fd[2];

	connected_pair(n, fd);
	den_open(&d, n, read_four);
	d.fd = fd[1];
	ctl(n, d.ep, EPOLL_CTL_ADD, fd[1], EPOLLIN | EPOLLET, 1);
	n->send(fd[0], "0123456789", 10, 0);
	say_woken(&d, "ten bytes, four read", 1);
	n->send(fd[0], "x", 1, 0);
	say_woken(&d, "a new byte", 1);
	say_result(n, "left", n->recv(fd[1], buf, sizeof(buf), 0));
	say_woken(&d, "nothing new", 0);
	den_close(&d);
	n->close(fd[0]);
	n->close(fd[1]);
}

/* ---- a registered descriptor is closed under sleepers, a duplicate lives or not ---- */

static void
close_under_sleepers(struct net *n, uint32_t flags, bool has_copy)
{
	struct den d;
	int fd[2], copy = -1;

	connected_pair(n, fd);
	if (has_copy)
		copy = n->dup(fd[1]);
	den_open(&d, n, NULL);
	ctl(n, d.ep, EPOLL_CTL_ADD, fd[1], EPOLLIN | flags, 7);
	say_ok(n, "close", n->close(fd[1]));
	n->send(fd[0], "x", 1, MSG_NOSIGNAL);
	say_woken(&d, has_copy ? "duplicate lives" : "closed", has_copy);
	if (has_copy) {
		say_ok(n, "mod by number", ctl(n, d.ep, EPOLL_CTL_MOD, fd[1], EPOLLIN, 8));
		n->close(copy);
		n->send(fd[0], "y", 1, MSG_NOSIGNAL);
		say_woken(&d, "duplicate closed", 0);
	}
	den_close(&d);
	n->close(fd[0]);
}

static void
closes(struct net *n)
{
	close_under_sleepers(n, EPOLLET, true);
	close_under_sleepers(n, EPOLLONESHOT, true);
	close_under_sleepers(n, EPOLLET, false);
	close_under_sleepers(n, 0, false);
}

/* ---- added right after a non-blocking connect ---- */

static void
connect_then_add(struct net *n)
{
	int l = listener(n, CLIENTS), c, d_fd;
	struct den d;

	den_open(&d, n, NULL);
	c = n->socket(AF_INET, SOCK_STREAM, 0);
	set_nonblock(n, c);
	say_ok(n, "connect", connect_to(n, c, port_of(n, l)));
	ctl(n, d.ep, EPOLL_CTL_ADD, c, EPOLLIN | EPOLLOUT | EPOLLET, 1);
	settled(&d.woken, 1);
	say_events(n, "connected", atomic_load(&d.events) & (EPOLLOUT | EPOLLIN | EPOLLERR));
	d_fd = n->accept4(l, NULL, NULL, 0);
	den_close(&d);
	n->close(c);
	n->close(d_fd);
	n->close(l);
}

/* ---- f: rounds with sleeps between them ---- */

/*
 * How long this machine let somebody wait who only asked for a millisecond: no stack's fault, and
 * taken off what a round took.
 */
struct watchdog {
	_Atomic uint64_t lost_ms;
	_Atomic bool over;
};

static void *
watch(void *arg)
{
	struct watchdog *w = arg;

	while (!atomic_load(&w->over)) {
		uint64_t before = now_ms(), took;

		usleep(1000);
		took = now_ms() - before;
		if (took > 2)
			atomic_fetch_add(&w->lost_ms, took);
	}
	return NULL;
}

struct player {
	struct net *net;
	int ep, fd;
	bool is_first;
	unsigned done;
	unsigned too_long;	/* rounds */
	struct watchdog *dog;
};

/* One request and its answer, with a sleep in the wait before each. */
static bool
play(struct player *p)
{
	struct epoll_event ev;
	char buf[ROUND_BYTES] = { 0 };

	if (p->is_first && p->net->send(p->fd, buf, sizeof(buf), 0) != sizeof(buf))
		return false;
	if (p->net->epoll_wait(p->ep, &ev, 1, 10 * ROUND_MAX_MS) != 1)
		return false;
	if (p->net->recv(p->fd, buf, sizeof(buf), MSG_WAITALL) != sizeof(buf))
		return false;
	return p->is_first || p->net->send(p->fd, buf, sizeof(buf), 0) == sizeof(buf);
}

static void *
player_main(void *arg)
{
	struct player *p = arg;
	uint64_t rng = mix(p->is_first) << 20;

	for (p->done = 0; p->done < rounds; p->done++) {
		uint64_t lost = atomic_load(&p->dog->lost_ms), before;

		/* some rounds find the other side still polling, some find it asleep */
		if (p->is_first && below(&rng, 16) == 0)
			usleep(below(&rng, 300));
		before = now_ms();
		if (!play(p))
			break;
		lost = atomic_load(&p->dog->lost_ms) - lost;
		p->too_long += p->is_first && now_ms() - before > ROUND_MAX_MS + 2 * lost;
	}
	return NULL;
}

static void
rounds_with_sleeps(struct net *n)
{
	struct watchdog dog = { .over = false };
	struct player p[2];
	pthread_t t[2], w;
	int fd[2];
	unsigned i;

	connected_pair(n, fd);
	assert_int_equal(pthread_create(&w, NULL, watch, &dog), 0);
	for (i = 0; i < 2; i++) {
		p[i] = (struct player){ .net = n, .ep = n->epoll_create1(0), .fd = fd[i],
			.is_first = i == 0, .dog = &dog };
		ctl(n, p[i].ep, EPOLL_CTL_ADD, fd[i], EPOLLIN | (i == 0 ? EPOLLET : 0), 0);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, player_main, &p[i]), 0);
	pthread_join(t[0], NULL);
	n->shutdown(fd[0], SHUT_WR);
	pthread_join(t[1], NULL);
	atomic_store(&dog.over, true);
	pthread_join(w, NULL);
	say(n, "rounds %u, too long %u\n", p[0].done, p[0].too_long);
	for (i = 0; i < 2; i++) {
		n->close(fd[i]);
		n->close(p[i].ep);
	}
}

/* ---- on one netisr and on two ---- */

#define ON_BOTH(test, fn) \
	static void \
	test(void **state) \
	{ \
		struct world worlds[] = { WORLD_ONE, WORLD_TWO }; \
		unsigned i; \
		(void)state; \
		for (i = 0; i < 2; i++) { \
			world_open(&worlds[i]); \
			compare(fn); \
			world_close(&worlds[i]); \
		} \
		assert_int_equal(atomic_load(&wrongs), 0); \
	}

/* Case S03 a */
ON_BOTH(listener_registered_after_a_vain_accept_tells_of_the_next_client, late_listener)
/* Case S03 b */
ON_BOTH(condition_that_holds_at_registration_wakes_one_sleeper, late_descriptor)
/* Case S03 c */
ON_BOTH(level_item_is_told_to_every_thread_each_time, level_repeats)
/* Case S03 d */
ON_BOTH(handshakes_at_once_are_all_accepted_by_sleepers, crowds)
ON_BOTH(clients_that_wait_already_are_told_at_registration, crowd_before_the_wait)
/* Case S03 e */
ON_BOTH(oneshot_item_wakes_one_sleeper_each_time_it_is_armed, oneshot)
ON_BOTH(new_byte_after_a_partial_read_is_one_edge, partial_read)
ON_BOTH(item_closed_under_sleepers_ends_with_its_last_descriptor, closes)
/* Case S03 f */
ON_BOTH(no_round_is_stuck_when_both_sides_sleep_in_between, rounds_with_sleeps)
/* F-Stack's kindred report: the event was lost when the item came just after connect() */
ON_BOTH(item_added_right_after_connect_is_told, connect_then_add)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listener_registered_after_a_vain_accept_tells_of_the_next_client),
		cmocka_unit_test(condition_that_holds_at_registration_wakes_one_sleeper),
		cmocka_unit_test(level_item_is_told_to_every_thread_each_time),
		cmocka_unit_test(handshakes_at_once_are_all_accepted_by_sleepers),
		cmocka_unit_test(clients_that_wait_already_are_told_at_registration),
		cmocka_unit_test(oneshot_item_wakes_one_sleeper_each_time_it_is_armed),
		cmocka_unit_test(new_byte_after_a_partial_read_is_one_edge),
		cmocka_unit_test(item_closed_under_sleepers_ends_with_its_last_descriptor),
		cmocka_unit_test(no_round_is_stuck_when_both_sides_sleep_in_between),
		cmocka_unit_test(item_added_right_after_connect_is_told),
	};

	take_seeds(argc, argv, rounds);
	rounds = n_seeds;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
