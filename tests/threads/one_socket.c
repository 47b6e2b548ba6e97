/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many threads on one TCP socket: two readers, two writers, one that duplicates it, one that waits
 * for it in epoll, and one that ends it, in orders that a seed shakes. The peer has a reader and a
 * writer of its own.
 *
 * Oracle. A writer's bytes carry its number and count up, so whatever way the pieces of two writers
 * interleave, each one's bytes arrive complete and in order, and never more than the calls said.
 * The bytes to the readers never repeat, so the pieces that the two got are merged back: they are
 * the stream's beginning, all of it when nobody cut the connection. Errors come from the list that
 * the way of ending allows. The kernel is held to the same, and so are threads that run the netisrs
 * themselves: as many as there are netisrs, chosen by the seed, or changing ones.
 */
#include <sched.h>

#include "threads/world.h"

#define WRITER_BYTES	40000u	/* each of the two */
#define STREAM_BYTES	60000u	/* to the two readers */
#define PIECE_BYTES	4096u
#define CHUNKS_MAX	(STREAM_BYTES + 1)
#define COOKIE		UINT64_C(0x0123456789abcdef)
#define HANG_SECONDS	50
#define ROLES		9u

/* How the socket ends. */
enum ending {
	END_GRACEFUL,	/* half closed when the writers are through */
	END_CLOSE,	/* closed at any moment */
	END_SHUTDOWN,	/* shut down both ways at any moment */
	ENDINGS
};

static const char *const ending_names[] = { "graceful", "close", "shutdown" };

struct reader_log {
	uint8_t bytes[STREAM_BYTES];
	uint32_t n_bytes;
	uint32_t len[CHUNKS_MAX];
	uint32_t n_chunks;
};

struct run {
	const struct world *world;
	struct net *net;
	uint64_t seed;
	enum ending ending;
	uint32_t waiter_flags;		/* EPOLLET, EPOLLONESHOT or neither */
	int a, b, ep;			/* a is the one */
	pthread_barrier_t start;
	_Atomic unsigned writers_done;
	_Atomic bool over;		/* readers and writers have ended */
	uint32_t sent[2];		/* by each writer, as the calls said */
	uint32_t received[2];		/* of each writer, by the peer */
	struct reader_log log[2];
	uint32_t events;
};

struct worker {
	struct run *run;
	unsigned role;
	unsigned id;		/* of two that have the same one */
	pthread_t thread;
};

static struct run the_run;
static uint8_t stream[STREAM_BYTES];

static void
on_alarm(int sig)
{
	(void)sig;
	dprintf(2, "hangs: %s, attaching %d, seed %u, %s\n", the_run.world->name,
	    (int)the_run.world->attaching, (unsigned)the_run.seed, ending_names[the_run.ending]);
	_exit(3);
}

/* The netisrs go to threads that sit beside each other, from one that the seed draws on. */
static void
attach_for_the_run(const struct worker *w)
{
	unsigned first = below(&(uint64_t){ mix(w->run->seed) << 10 }, ROLES);
	unsigned k = (w->role + ROLES - first) % ROLES;

	if (k < world_netisrs(w->run->world) && !world_attach(w->run->world, k))
		wrong("netisr %u has a thread already\n", k);
}

static uint64_t
start_worker(const struct worker *w)
{
	if (w->run->world->attaching == ATTACH_SOME)
		attach_for_the_run(w);
	pthread_barrier_wait(&w->run->start);
	return mix(w->run->seed * 64 + w->role) << 20;
}

/* Shakes the order. */
static void
pause_somehow(const struct worker *w, uint64_t *rng)
{
	const struct world *world = w->run->world;
	uint32_t r = below(rng, 16);

	if (r == 0)
		world_sleep_us(below(rng, 300));
	else if (r < 4)
		sched_yield();
	else if (r == 4 && world->attaching == ATTACH_CHANGING && darter_detach() != 0)
		world_attach(world, below(rng, world_netisrs(world)));
}

/* May a call on a, or of the peer, fail so? */
static bool
is_allowed(const struct run *r, bool is_peer, int err)
{
	if (err == EAGAIN)
		return true;
	if (r->ending == END_GRACEFUL)
		return false;
	if (err == ECONNRESET || err == EPIPE)
		return true;
	return !is_peer && r->ending == END_CLOSE && err == EBADF;
}

/* The result of a call that moves bytes: true when the thread goes on. */
static bool
goes_on(const struct run *r, bool is_peer, const char *what, ssize_t rc)
{
	int err = errno;

	if (rc >= 0)
		return true;
	if (!is_allowed(r, is_peer, err))
		wrong("%s, seed %u, %s: %s: %s\n", r->world->name, (unsigned)r->seed,
		    ending_names[r->ending], what, strerrorname_np(err));
	return err == EAGAIN;
}

/* ---- threads on the socket ---- */

static void *
reader(void *arg)
{
	static const int flags[] = { 0, 0, MSG_DONTWAIT, MSG_PEEK | MSG_DONTWAIT };
	struct worker *w = arg;
	struct reader_log *log = &w->run->log[w->id];
	uint64_t rng = start_worker(w);
	uint8_t buf[PIECE_BYTES];

	for (;;) {
		int f = flags[below(&rng, 4)];
		size_t want = 1 + below(&rng, below(&rng, 2) ? 16 : PIECE_BYTES);
		ssize_t n = w->run->net->recv(w->run->a, buf, want, f);

		if (!goes_on(w->run, false, "recv", n) || n == 0)
			return NULL;
		if (n > 0 && !(f & MSG_PEEK)) {
			if (log->n_bytes + (uint32_t)n > STREAM_BYTES) {
				wrong("reader %u got more than was sent\n", w->id);
				return NULL;
			}
			memcpy(log->bytes + log->n_bytes, buf, (size_t)n);
			log->n_bytes += (uint32_t)n;
			log->len[log->n_chunks++] = (uint32_t)n;
		}
		pause_somehow(w, &rng);
	}
}

static ssize_t
write_piece(struct run *r, uint64_t *rng, uint8_t *buf, size_t len)
{
	struct iovec iov[2] = { { buf, len / 2 }, { buf + len / 2, len - len / 2 } };

	switch (below(rng, 4)) {
	case 0:
		return r->net->writev(r->a, iov, 2);
	case 1:
		return r->net->send(r->a, buf, len, MSG_DONTWAIT);
	case 2:
		return r->net->send(r->a, buf, len, MSG_MORE);
	default:
		return r->net->write(r->a, buf, len);
	}
}

static void *
writer(void *arg)
{
	struct worker *w = arg;
	struct run *r = w->run;
	uint64_t rng = start_worker(w);
	uint8_t buf[PIECE_BYTES];
	uint32_t done = 0;

	while (done < WRITER_BYTES) {
		uint32_t len = 1 + below(&rng, below(&rng, 2) ? 64 : PIECE_BYTES), i;
		ssize_t n;

		if (len > WRITER_BYTES - done)
			len = WRITER_BYTES - done;
		for (i = 0; i < len; i++)
			buf[i] = (uint8_t)(w->id << 7 | ((done + i) & 127));
		n = write_piece(r, &rng, buf, len);
		if (!goes_on(r, false, "write", n))
			break;
		if (n > 0)
			done += (uint32_t)n;
		pause_somehow(w, &rng);
	}
	r->sent[w->id] = done;
	atomic_fetch_add(&r->writers_done, 1);
	return NULL;
}

static void
use_duplicate(struct run *r, uint64_t *rng, int d)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = COOKIE };
	struct pollfd p = { .fd = d, .events = POLLIN | POLLOUT };
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	char c;

	switch (below(rng, 4)) {
	case 0:
		goes_on(r, false, "peek", r->net->recv(d, &c, 1, MSG_PEEK | MSG_DONTWAIT));
		break;
	case 1:
		goes_on(r, false, "poll", r->net->poll(&p, 1, 0));
		break;
	case 2:
		goes_on(r, false, "name", r->net->getsockname(d, (struct sockaddr *)&a, &len));
		break;
	default:
		/* when d has the number that a had, that item may still be there */
		if (r->net->epoll_ctl(r->ep, EPOLL_CTL_ADD, d, &ev) == 0)
			goes_on(r, false, "del", r->net->epoll_ctl(r->ep, EPOLL_CTL_DEL, d, NULL));
		else if (errno != EEXIST)
			goes_on(r, false, "add", -1);
	}
}

static void *
duplicator(void *arg)
{
	struct worker *w = arg;
	struct run *r = w->run;
	uint64_t rng = start_worker(w);

	while (!atomic_load(&r->over)) {
		int d = r->net->dup(r->a);

		if (!goes_on(r, false, "dup", d))
			break;
		use_duplicate(r, &rng, d);
		pause_somehow(w, &rng);
		goes_on(r, false, "close of duplicate", r->net->close(d));
		world_sleep_us(50);
	}
	return NULL;
}

static void *
waiter(void *arg)
{
	const uint32_t known = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP | EPOLLERR;
	struct worker *w = arg;
	struct run *r = w->run;
	struct epoll_event ev[4], again = { .data.u64 = COOKIE };
	uint64_t rng = start_worker(w);

	again.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | r->waiter_flags;
	while (!atomic_load(&r->over)) {
		int n = r->net->epoll_wait(r->ep, ev, 4, 5), i;

		goes_on(r, true, "epoll_wait", n);
		for (i = 0; i < n; i++) {
			if ((ev[i].events & ~known) || ev[i].data.u64 != COOKIE)
				wrong("event %x of %llx\n", ev[i].events,
				    (unsigned long long)ev[i].data.u64);
			r->events++;
		}
		if (n > 0 && (r->waiter_flags & EPOLLONESHOT) &&
		    r->net->epoll_ctl(r->ep, EPOLL_CTL_MOD, r->a, &again) < 0 && errno != ENOENT)
			goes_on(r, false, "mod", -1);
		world_sleep_us(100 + below(&rng, 200));
	}
	return NULL;
}

static void *
ender(void *arg)
{
	struct worker *w = arg;
	struct run *r = w->run;
	uint64_t rng = start_worker(w);
	int rc;

	if (r->ending == END_GRACEFUL) {
		while (atomic_load(&r->writers_done) < 2)
			world_sleep_us(200);
		rc = r->net->shutdown(r->a, SHUT_WR);
	} else {
		world_sleep_us(below(&rng, 8000));
		rc = r->ending == END_CLOSE ? r->net->close(r->a) :
		    r->net->shutdown(r->a, SHUT_RDWR);
	}
	if (rc < 0 && !(r->ending == END_SHUTDOWN && errno == ENOTCONN))
		wrong("%s, seed %u: end: %s\n", r->world->name, (unsigned)r->seed,
		    strerrorname_np(errno));
	return NULL;
}

/* ---- the peer ---- */

static void *
peer_reader(void *arg)
{
	struct worker *w = arg;
	struct run *r = w->run;
	uint64_t rng = start_worker(w);
	uint8_t buf[PIECE_BYTES];

	for (;;) {
		ssize_t n = r->net->recv(r->b, buf, 1 + below(&rng, PIECE_BYTES), 0), i;

		if (!goes_on(r, true, "peer's recv", n) || n == 0)
			return NULL;
		for (i = 0; i < n; i++) {
			unsigned id = buf[i] >> 7;

			if ((buf[i] & 127) != (r->received[id] & 127)) {
				wrong("%s, seed %u: byte %u of writer %u is %u\n", r->world->name,
				    (unsigned)r->seed, r->received[id], id, buf[i] & 127u);
				return NULL;
			}
			r->received[id]++;
		}
		pause_somehow(w, &rng);
	}
}

static void *
peer_writer(void *arg)
{
	struct worker *w = arg;
	struct run *r = w->run;
	uint64_t rng = start_worker(w);
	uint32_t done = 0;

	while (done < STREAM_BYTES) {
		uint32_t len = 1 + below(&rng, below(&rng, 2) ? 64 : PIECE_BYTES);
		ssize_t n;

		if (len > STREAM_BYTES - done)
			len = STREAM_BYTES - done;
		n = r->net->send(r->b, stream + done, len, 0);
		if (!goes_on(r, true, "peer's send", n))
			return NULL;
		done += n > 0 ? (uint32_t)n : 0;
		pause_somehow(w, &rng);
	}
	if (r->net->shutdown(r->b, SHUT_WR) < 0 &&
	    (r->ending == END_GRACEFUL || errno != ENOTCONN))
		goes_on(r, true, "peer's shutdown", -1);
	return NULL;
}

/* ---- the oracle ---- */

/*
 * Puts the two readers' pieces back together; pieces that fit both ways are tried both ways. True:
 * all of both fit.
 */
static bool
merge(const struct reader_log *l[2], uint32_t at[2], uint32_t chunk[2])
{
	while (chunk[0] < l[0]->n_chunks || chunk[1] < l[1]->n_chunks) {
		uint32_t pos = at[0] + at[1], i, fits = 0, one;

		for (i = 0; i < 2; i++) {
			if (chunk[i] < l[i]->n_chunks &&
			    memcmp(l[i]->bytes + at[i], stream + pos, l[i]->len[chunk[i]]) == 0)
				fits |= 1u << i;
		}
		if (fits == 0)
			return false;
		if (fits == 3) {
			uint32_t at2[2] = { at[0] + l[0]->len[chunk[0]], at[1] };
			uint32_t chunk2[2] = { chunk[0] + 1, chunk[1] };

			if (merge(l, at2, chunk2))
				return true;
		}
		one = fits == 1 ? 0 : 1;
		at[one] += l[one]->len[chunk[one]];
		chunk[one]++;
	}
	return true;
}

static void
check(struct run *r)
{
	const struct reader_log *l[2] = { &r->log[0], &r->log[1] };
	uint32_t at[2] = { 0 }, chunk[2] = { 0 }, got = l[0]->n_bytes + l[1]->n_bytes, i;

	if (got > STREAM_BYTES || !merge(l, at, chunk))
		wrong("the readers' pieces are not the beginning of the stream\n");
	if (r->ending == END_GRACEFUL && got != STREAM_BYTES)
		wrong("the readers got %u of %u bytes\n", got, STREAM_BYTES);
	for (i = 0; i < 2; i++) {
		if (r->received[i] > r->sent[i] ||
		    (r->ending == END_GRACEFUL && r->received[i] != WRITER_BYTES))
			wrong("writer %u: sent %u, received %u\n", i, r->sent[i], r->received[i]);
	}
	if (r->events == 0 && r->ending != END_CLOSE)
		wrong("no event of a socket that can be written to\n");
	if (atomic_load(&wrongs) != 0)
		fprintf(stderr, "%s, seed %u, %s\n", r->world->name, (unsigned)r->seed,
		    ending_names[r->ending]);
	assert_int_equal(atomic_load(&wrongs), 0);
}

/* ---- runs ---- */

static void
prepare(struct run *r, const struct world *world, uint64_t seed)
{
	static const uint32_t kinds[] = { 0, EPOLLET, EPOLLONESHOT };
	uint64_t rng = mix(seed) << 8;
	struct epoll_event ev = { .data.u64 = COOKIE };
	int fd[2];

	memset(r, 0, sizeof(*r));
	r->world = world;
	r->net = world->net;
	r->seed = seed;
	r->ending = (enum ending)(seed % ENDINGS);
	r->waiter_flags = kinds[below(&rng, 3)];
	world_pair(world, fd);
	r->a = fd[0];
	r->b = fd[1];
	if (below(&rng, 2) != 0) {
		set_int(r->net, r->a, SOL_SOCKET, SO_SNDBUF, 4096);
		set_int(r->net, r->b, SOL_SOCKET, SO_SNDBUF, 8192);
	}
	r->ep = r->net->epoll_create1(0);
	assert_true(r->ep >= 0);
	ev.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | r->waiter_flags;
	assert_int_equal(r->net->epoll_ctl(r->ep, EPOLL_CTL_ADD, r->a, &ev), 0);
}

static void
run_seed(const struct world *world, uint64_t seed)
{
	static const struct {
		void *(*fn)(void *);
		unsigned id;
	} roles[ROLES] = {
		/* the last two go on until the others have ended */
		{ reader, 0 }, { reader, 1 }, { writer, 0 }, { writer, 1 }, { ender, 0 },
		{ peer_reader, 0 }, { peer_writer, 0 }, { duplicator, 0 }, { waiter, 0 },
	};
	struct worker w[ROLES];
	struct run *r = &the_run;
	struct epoll_event ev;
	unsigned i;

	prepare(r, world, seed);
	pthread_barrier_init(&r->start, NULL, ROLES);
	for (i = 0; i < ROLES; i++) {
		w[i].run = r;
		w[i].role = i;
		w[i].id = roles[i].id;
		assert_int_equal(pthread_create(&w[i].thread, NULL, roles[i].fn, &w[i]), 0);
	}
	for (i = 0; i < ROLES; i++) {
		if (i == ROLES - 2)
			atomic_store(&r->over, true);
		pthread_join(w[i].thread, NULL);
	}
	pthread_barrier_destroy(&r->start);
	if (r->ending != END_CLOSE)
		assert_int_equal(r->net->close(r->a), 0);
	/* whichever way: the last descriptor took the item with it */
	assert_int_equal(r->net->epoll_wait(r->ep, &ev, 1, 0), 0);
	assert_int_equal(r->net->close(r->b), 0);
	assert_int_equal(r->net->close(r->ep), 0);
	check(r);
}

static void
run_world(struct world w)
{
	unsigned i, before = atomic_load(&attaches);

	signal(SIGALRM, on_alarm);
	world_open(&w);
	for (i = 0; i < n_seeds; i++) {
		alarm(HANG_SECONDS);
		run_seed(&w, first_seed + i);
	}
	alarm(0);
	world_close(&w);
	if (w.attaching != ATTACH_NOBODY)
		assert_true(atomic_load(&attaches) - before >= n_seeds);
}

static void
run_attached(struct world w)
{
	w.attaching = ATTACH_SOME;
	run_world(w);
	w.attaching = ATTACH_CHANGING;
	run_world(w);
}

static void
bytes_and_errors_are_in_order_on_the_kernel(void **state)
{
	(void)state;
	run_world((struct world)WORLD_KERNEL);
}

static void
bytes_and_errors_are_in_order_on_one_netisr(void **state)
{
	(void)state;
	run_world((struct world)WORLD_ONE);
}

static void
bytes_and_errors_are_in_order_on_two_netisrs(void **state)
{
	(void)state;
	run_world((struct world)WORLD_TWO);
}

static void
bytes_and_errors_are_in_order_over_a_cable(void **state)
{
	(void)state;
	run_world((struct world)WORLD_CABLE);
}

static void
attached_threads_keep_the_order_on_one_netisr(void **state)
{
	(void)state;
	run_attached((struct world)WORLD_ONE);
}

static void
attached_threads_keep_the_order_on_two_netisrs(void **state)
{
	(void)state;
	run_attached((struct world)WORLD_TWO);
}

static void
attached_threads_keep_the_order_over_a_cable(void **state)
{
	(void)state;
	run_attached((struct world)WORLD_CABLE);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_and_errors_are_in_order_on_the_kernel),
		cmocka_unit_test(bytes_and_errors_are_in_order_on_one_netisr),
		cmocka_unit_test(bytes_and_errors_are_in_order_on_two_netisrs),
		cmocka_unit_test(bytes_and_errors_are_in_order_over_a_cable),
		cmocka_unit_test(attached_threads_keep_the_order_on_one_netisr),
		cmocka_unit_test(attached_threads_keep_the_order_on_two_netisrs),
		cmocka_unit_test(attached_threads_keep_the_order_over_a_cable),
	};
	unsigned i;

	take_seeds(argc, argv, 18);
	for (i = 0; i < STREAM_BYTES; i++)
		stream[i] = (uint8_t)mix(i);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
