/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting. wait_until is the only place where a call of an application sleeps, but for msgrate.c,
 * which measures the sleep itself. What it does meanwhile depends on who calls: an attached thread
 * runs its netisr and naps in it; any other thread borrows a free netisr for a bounded time, spins
 * shortly while somebody on another CPU is at work for it, and then sleeps on the word.
 *
 * A thread that must also watch descriptors sleeps in poll instead of the futex. It hangs its
 * `napper` on the word (one slot; a second such thread on the same word polls every millisecond)
 * and is woken through an eventfd of its own. The waker takes the napper off before it writes, so
 * the sleeper knows whether a write is still to come.
 *
 * Cancellation acts in the sleeping system calls and nowhere else, and only where the caller has
 * said that it can undo its part. futex is no cancellation point, so the type is asynchronous for
 * the length of that one system call, which has no effect that could be half done.
 */
#include "runtime/waitword.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/netisr_priv.h"
#include "runtime/stack.h"

#define FALLBACK_NAP_US		1000	/* fake clock, or the napper slot is taken */
#define SPIN_MIN_US		1
#define FOREVER_S		1000000000	/* a poll that long has no time-out */

struct napper {
	int fd;			/* eventfd, made at the first use by the thread */
};

/* What a thread is waiting for, for wait_signal_note. */
static __thread struct waitword *volatile sleeping_on;
static __thread volatile sig_atomic_t signal_noted;

static __thread int sleep_cancel_state = PTHREAD_CANCEL_DISABLE;

static pthread_key_t napper_key;
static pthread_once_t napper_once = PTHREAD_ONCE_INIT;

static void
napper_free(void *arg)
{
	struct napper *np = arg;

	close(np->fd);
	free(np);
}

static void
napper_key_new(void)
{
	pthread_key_create(&napper_key, napper_free);
}

/*
 * The calling thread's napper, NULL when descriptors or memory ran out (the caller then naps
 * briefly).
 */
static struct napper *
napper_own(void)
{
	struct napper *np;

	pthread_once(&napper_once, napper_key_new);
	np = pthread_getspecific(napper_key);
	if (np != NULL)
		return np;
	np = malloc(sizeof(*np));
	if (np == NULL)
		return NULL;
	np->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (np->fd < 0 || pthread_setspecific(napper_key, np) != 0) {
		if (np->fd >= 0)
			close(np->fd);
		free(np);
		return NULL;
	}
	return np;
}

static long
futex(_Atomic uint32_t *word, int op, uint32_t val, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, val, timeout, NULL, 0);
}

void
waitword_post(struct waitword *w)
{
	atomic_fetch_add_explicit(&w->seq, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&w->sleepers, memory_order_seq_cst) != 0)
		futex(&w->seq, FUTEX_WAKE, INT_MAX, NULL);
	if (atomic_load_explicit(&w->napper, memory_order_seq_cst) != NULL) {
		struct napper *np = atomic_exchange_explicit(&w->napper, NULL,
		    memory_order_acq_rel);
		uint64_t one = 1;
		ssize_t ignored = np == NULL ? 0 : write(np->fd, &one, sizeof(one));

		(void)ignored;
	}
}

int
wait_set_cancel(int state)
{
	int old = sleep_cancel_state;

	sleep_cancel_state = state;
	return old;
}

void
wait_cancel_open(bool is_async)
{
	int old;

	if (sleep_cancel_state != PTHREAD_CANCEL_ENABLE)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
	if (is_async)
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
}

void
wait_cancel_shut(void)
{
	int old;

	if (sleep_cancel_state != PTHREAD_CANCEL_ENABLE)
		return;
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
}

void
wait_cancelled(void)
{
	wait_cancel_shut();
	sleeping_on = NULL;
}

static void
futex_cancelled(void *arg)
{
	struct waitword *w = arg;

	wait_cancelled();
	atomic_fetch_sub_explicit(&w->sleepers, 1, memory_order_release);
}

/* 0, or -EINTR. */
static int
futex_sleep(struct waitword *w, uint32_t seen, uint64_t timeout_us)
{
	struct timespec ts = { .tv_sec = (time_t)(timeout_us / US_PER_SEC),
		.tv_nsec = (long)(timeout_us % US_PER_SEC) * 1000 };
	const struct timespec *timeout = timeout_us == UINT64_MAX ? NULL : &ts;
	volatile bool is_interrupted = false;	/* survives the cleanup frame's longjmp */

	atomic_fetch_add_explicit(&w->sleepers, 1, memory_order_seq_cst);
	pthread_cleanup_push(futex_cancelled, w);
	if (atomic_load_explicit(&w->seq, memory_order_seq_cst) == seen) {
		wait_cancel_open(true);
		is_interrupted = futex(&w->seq, FUTEX_WAIT, seen, timeout) < 0 && errno == EINTR;
		wait_cancel_shut();
	}
	pthread_cleanup_pop(0);
	atomic_fetch_sub_explicit(&w->sleepers, 1, memory_order_release);
	return is_interrupted ? -EINTR : 0;
}

void
waitword_sleep(struct waitword *w, uint32_t seen, uint64_t timeout_us)
{
	futex_sleep(w, seen, timeout_us);
}

void
wait_signal_note(void)
{
	struct waitword *w = sleeping_on;

	signal_noted = 1;
	if (w != NULL)
		waitword_post(w);
}

/* Hangs the thread's napper on w; NULL when the slot is taken or there is none. */
static struct napper *
napper_hang(struct waitword *w)
{
	struct napper *np = napper_own(), *empty = NULL;

	if (np == NULL || !atomic_compare_exchange_strong_explicit(&w->napper, &empty, np,
	    memory_order_seq_cst, memory_order_relaxed))
		return NULL;
	return np;
}

static void
napper_take_off(struct waitword *w, struct napper *np)
{
	struct napper *expected = np;
	uint64_t v;
	ssize_t ignored;

	if (!atomic_compare_exchange_strong_explicit(&w->napper, &expected, NULL,
	    memory_order_acq_rel,
	    memory_order_relaxed)) {
		/* the waker has it and will write */
		struct pollfd fd = { .fd = np->fd, .events = POLLIN };

		while (poll(&fd, 1, -1) < 0)
			;
	}
	ignored = read(np->fd, &v, sizeof(v));
	(void)ignored;
}

static uint64_t
sleep_bound_us(struct darter_stack *s, struct time deadline)
{
	if (time_is_never(deadline))
		return s->clock->is_fake ? FALLBACK_NAP_US : UINT64_MAX;
	if (s->clock->is_fake)
		return FALLBACK_NAP_US;
	return max_u64(time_since_us(deadline, stack_now(s)), 1);
}

struct napping {
	struct waitword *w;
	struct napper *np;	/* NULL: none */
};

static void
poll_cancelled(void *arg)
{
	struct napping *g = arg;

	wait_cancelled();
	if (g->np != NULL)
		napper_take_off(g->w, g->np);
}

/* Sleeps in poll on extra_fd. 0 or -EINTR; *ret_ready tells that extra_fd is readable. */
static int
poll_sleep(struct darter_stack *s, struct waitword *w, uint32_t seen, struct time deadline,
    int extra_fd,
    bool *ret_ready)
{
	struct napping g = { .w = w, .np = napper_hang(w) };
	struct pollfd fds[2] = { { .fd = extra_fd, .events = POLLIN },
		{ .fd = g.np != NULL ? g.np->fd : -1, .events = POLLIN } };
	uint64_t us = sleep_bound_us(s, deadline), most_us = g.np != NULL ? us : FALLBACK_NAP_US;
	struct timespec ts;
	volatile int r = 0, err = 0;	/* survive the cleanup frame's longjmp */

	us = min_u64(us, most_us);
	ts.tv_sec = (time_t)(us / US_PER_SEC);
	ts.tv_nsec = (long)(us % US_PER_SEC) * 1000;
	pthread_cleanup_push(poll_cancelled, &g);
	wait_cancel_open(false);
	if (atomic_load_explicit(&w->seq, memory_order_seq_cst) == seen) {
		r = ppoll(fds, 2, ts.tv_sec >= FOREVER_S ? NULL : &ts, NULL);
		err = errno;
	}
	wait_cancel_shut();
	pthread_cleanup_pop(0);
	if (g.np != NULL)
		napper_take_off(w, g.np);
	*ret_ready = r > 0 && fds[0].revents != 0;
	return r < 0 && err == EINTR ? -EINTR : 0;
}

static bool
is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

/* The attached thread naps in its netisr. */
static int
nap_attached(struct netisr *n, struct waitword *w, uint32_t seen, struct time deadline,
    int extra_fd)
{
	struct napping g = { .w = w, .np = napper_hang(w) };
	struct nap nap = { .w = w, .seen = seen, .deadline = deadline, .extra_fd = extra_fd,
		.wake_fd = g.np != NULL ? g.np->fd : -1 };
	volatile int err;	/* survives the cleanup frame's longjmp */

	if (g.np == NULL)
		nap.deadline = time_min(deadline, time_add_us(n->now, FALLBACK_NAP_US));
	pthread_cleanup_push(poll_cancelled, &g);
	err = keeper_nap(n, &nap);
	pthread_cleanup_pop(0);
	if (g.np != NULL)
		napper_take_off(w, g.np);
	while (!netisr_take(n))
		sched_yield();	/* a borrower, who may have lost his CPU to this thread */
	return err;
}

static int
wait_attached(struct netisr *n, struct waitword *w, uint32_t seen, struct time deadline,
    int extra_fd)
{
	struct time idle_since = n->now;
	unsigned idle_rounds = 0;

	for (;;) {
		int64_t poll_us = atomic_load_explicit(&n->stack->poll_idle_us,
		    memory_order_relaxed);
		unsigned work = netisr_round(n);
		int err;

		if (waitword_seq(w) != seen)
			return 0;
		if (time_reached(n->now, deadline))
			return -ETIMEDOUT;
		if (work != 0) {
			idle_since = n->now;
			continue;
		}
		if (extra_fd >= 0 && (idle_rounds++ & 15) == 0 && is_readable(extra_fd))
			return 0;
		if (poll_us < 0 || time_since_us(n->now, idle_since) < (uint64_t)poll_us) {
			if (signal_noted)
				return -EINTR;
			continue;
		}
		err = nap_attached(n, w, seen, deadline, extra_fd);
		if (waitword_seq(w) != seen)
			return 0;
		if (err < 0 || signal_noted)
			return -EINTR;
		if (is_readable(extra_fd))
			return 0;
	}
}

/* Makes progress in the caller's context if a netisr is free for it. */
static void
try_borrow(struct darter_stack *s, struct netisr *owner, struct waitword *w, uint32_t seen)
{
	unsigned i;

	if (owner != NULL) {
		if (netisr_can_borrow(owner) && netisr_take(owner))
			netisr_run_borrowed(owner, w, seen);
		return;
	}
	for (i = 0; i < s->n_netisrs && waitword_seq(w) == seen; i++) {
		struct netisr *n = s->netisr[i];

		if (netisr_can_borrow(n) && netisr_take(n))
			netisr_run_borrowed(n, w, seen);
	}
}

static bool
somebody_works(struct darter_stack *s, struct netisr *owner)
{
	unsigned i;

	if (owner != NULL)
		return msgport_is_held(&owner->port);
	for (i = 0; i < s->n_netisrs; i++) {
		if (msgport_is_held(&s->netisr[i]->port))
			return true;
	}
	return false;
}

/*
 * Spins while another CPU holds the netisr that must answer. The bound adapts to whether spinning
 * has paid lately.
 */
static bool
spin(struct darter_stack *s, struct netisr *owner, struct waitword *w, uint32_t seen)
{
	static __thread uint64_t bound_us = 8;
	uint64_t max_us = (uint64_t)atomic_load_explicit(&s->spin_us, memory_order_relaxed);
	struct time until;

	if (max_us == 0 || s->clock->is_fake || !somebody_works(s, owner))
		return false;
	until = time_add_us(stack_now(s), min_u64(bound_us, max_us));
	while (somebody_works(s, owner) && !time_reached(stack_now(s), until)) {
		unsigned i;

		for (i = 0; i < 32; i++) {
			if (waitword_seq(w) != seen) {
				bound_us = min_u64(bound_us * 2, max_us);
				return true;
			}
			cpu_relax();
		}
	}
	bound_us = max_u64(bound_us / 2, SPIN_MIN_US);
	return waitword_seq(w) != seen;
}

static int
wait_detached(struct darter_stack *s, struct netisr *owner, struct waitword *w, uint32_t seen,
    struct time deadline, int extra_fd)
{
	for (;;) {
		bool is_ready = false;
		int err;

		try_borrow(s, owner, w, seen);
		if (waitword_seq(w) != seen || spin(s, owner, w, seen))
			return signal_noted ? -EINTR : 0;
		if (time_reached(stack_now(s), deadline))
			return -ETIMEDOUT;
		netisr_count_any(owner != NULL ? owner : s->netisr[0], CTR_call_sleeps);
		if (extra_fd >= 0)
			err = poll_sleep(s, w, seen, deadline, extra_fd, &is_ready);
		else
			err = futex_sleep(w, seen, sleep_bound_us(s, deadline));
		if (signal_noted)
			return -EINTR;
		if (waitword_seq(w) != seen || is_ready)
			return 0;
		if (err < 0)
			return err;
	}
}

int
wait_until(struct darter_stack *s, struct netisr *owner, struct waitword *w, uint32_t seen,
    struct time deadline, int extra_fd)
{
	struct netisr *n = netisr_current();
	int err;

	if (waitword_seq(w) != seen)
		return 0;
	if (n != NULL && !atomic_load_explicit(&n->is_attached, memory_order_relaxed))
		return -EDEADLK;
	signal_noted = 0;
	sleeping_on = w;
	if (n != NULL)
		err = wait_attached(n, w, seen, deadline, extra_fd);
	else
		err = wait_detached(s, owner, w, seen, deadline, extra_fd);
	sleeping_on = NULL;
	return err;
}
