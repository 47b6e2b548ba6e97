/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the cases with many threads run: the kernel, which shows that the oracle is right, one
 * stack with one netisr or with two, and two stacks with two netisrs each and a memory cable
 * between them. In each of darter's, threads may attach to netisrs while others do not. cmocka's
 * assertions are for the main thread only; a worker counts what is wrong with wrong().
 */
#ifndef TEST_THREADS_WORLD_H
#define TEST_THREADS_WORLD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include "unit/both_nets.h"

/* Who runs the netisrs. */
enum attaching {
	ATTACH_NOBODY,	/* background threads and borrowers */
	ATTACH_SOME,	/* a thread each, all the time */
	ATTACH_CHANGING	/* threads attach and detach as they go */
};

struct world {
	const char *name;
	struct net *net;
	const char *netisrs;	/* NULL: the kernel */
	bool is_cable;
	enum attaching attaching;
	struct darter_stack *stack[2];
};

#define WORLD_KERNEL	{ .name = "kernel", .net = &kernel_net }
#define WORLD_ONE	{ .name = "one netisr", .net = &darter_net, .netisrs = "stack.netisrs=1" }
#define WORLD_TWO	{ .name = "two netisrs", .net = &darter_net, .netisrs = "stack.netisrs=2" }
#define WORLD_CABLE \
	{ .name = "cable", .net = &darter_net, .netisrs = "stack.netisrs=2", .is_cable = true }

static inline struct darter_stack *
world_stack(const struct world *w, const char *device, const char *addr)
{
	const char *over[] = { w->netisrs, "stack.exit_linger_ms=100", device, addr, NULL };
	struct darter_options o = { .size = sizeof(o), .overrides = over };
	char err[DARTER_ERR_MAX];
	struct darter_stack *s = darter_open(&o, err, sizeof(err));

	if (s == NULL)
		fprintf(stderr, "%s\n", err);
	assert_non_null(s);
	return s;
}

/*
 * Cases close descriptors that other threads use, on purpose. ThreadSanitizer calls that a race
 * when it sees the kernel's close(), which here is only the yardstick.
 */
static int
unseen_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

static inline void
world_open(struct world *w)
{
	static const char cable[] = "port.c.device=pair:threads";

	signal(SIGPIPE, SIG_IGN);
	kernel_net.close = unseen_close;
	if (w->netisrs == NULL)
		return;
	w->stack[0] = world_stack(w, w->is_cable ? cable : NULL, "port.c.addr=10.9.0.1/24");
	if (w->is_cable)
		w->stack[1] = world_stack(w, cable, "port.c.addr=10.9.0.2/24");
}

/* Every case closes what it opens. */
static inline void
world_close(struct world *w)
{
	if (w->netisrs == NULL)
		return;
	assert_int_equal(darter_fd_count(), 0);
	if (w->is_cable)
		darter_stack_close(w->stack[1]);
	darter_stack_close(w->stack[0]);
}

/* A TCP connection: [0] connected, in the first stack; [1] accepted, in the last. */
static inline void
world_pair(const struct world *w, int fd[2])
{
	struct net *n = w->net;
	struct sockaddr_in a = loopback(0);
	socklen_t len = sizeof(a);
	int l;

	if (!w->is_cable) {
		connected_pair(n, fd);
		return;
	}
	darter_stack_use(w->stack[1]);
	l = n->socket(AF_INET, SOCK_STREAM, 0);
	a.sin_addr.s_addr = htonl(0x0a090002);
	assert_int_equal(n->bind(l, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(n->listen(l, 1), 0);
	assert_int_equal(n->getsockname(l, (struct sockaddr *)&a, &len), 0);
	darter_stack_use(w->stack[0]);
	fd[0] = n->socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(n->connect(fd[0], (struct sockaddr *)&a, sizeof(a)), 0);
	fd[1] = n->accept4(l, NULL, NULL, 0);
	assert_true(fd[1] >= 0);
	n->close(l);
	darter_stack_use(NULL);
}

static inline uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static inline uint64_t
now_ms(void)
{
	return now_us() / 1000;
}

/* ---- seeds ---- */

/* The byte of a stream at a position; no part of it repeats (SplitMix64's finaliser). */
static inline uint64_t
mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* A number below `bound` from a generator that belongs to one thread. */
static inline uint32_t
below(uint64_t *rng, uint32_t bound)
{
	*rng += 1;
	return (uint32_t)(mix(*rng) % bound);
}

/* Seeds to run, from the command line: how many, the first. */
static unsigned n_seeds, first_seed;

static inline void
take_seeds(int argc, char **argv, unsigned dflt)
{
	n_seeds = argc > 1 ? (unsigned)atoi(argv[1]) : dflt;
	first_seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
}

/* ---- what worker threads find ---- */

static _Atomic unsigned wrongs;

static inline void wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static inline void
wrong(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	atomic_fetch_add(&wrongs, 1);
}

/* ---- attached threads ---- */

static _Atomic unsigned attaches;

/* Over all stacks of the world. */
static inline unsigned
world_netisrs(const struct world *w)
{
	unsigned i, n = 0;

	for (i = 0; i < 2; i++)
		n += w->stack[i] == NULL ? 0 : darter_netisr_count(w->stack[i]);
	return n;
}

/* Attaches the calling thread to the world's netisr `k`; false when another thread has it. */
static inline bool
world_attach(const struct world *w, unsigned k)
{
	unsigned each = darter_netisr_count(w->stack[0]);
	int rc = darter_attach(w->stack[k / each], k % each);

	if (rc != 0 && rc != -EBUSY)
		wrong("attach to %u: %s\n", k, strerrorname_np(-rc));
	if (rc == 0)
		atomic_fetch_add(&attaches, 1);
	return rc == 0;
}

static int
is_time_over(void *until_us)
{
	return now_us() >= *(uint64_t *)until_us;
}

/* An attached thread runs its netisr meanwhile: nobody else would. */
static inline void
world_sleep_us(unsigned us)
{
	uint64_t until_us = now_us() + us;

	if (darter_run(is_time_over, &until_us) == -EINVAL)
		usleep(us);
}

static int
has_ended(void *thread)
{
	return pthread_tryjoin_np(*(pthread_t *)thread, NULL) == 0;
}

static inline void
world_join(pthread_t t)
{
	if (darter_run(has_ended, &t) == -EINVAL)
		pthread_join(t, NULL);
}

#endif
