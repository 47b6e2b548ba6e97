/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small scheduler that runs the real lock-free code over all interleavings of a few threads.
 *
 * A model is a handful of threads with bounded work, a set-up and a check. The source files under
 * test are included into the model's program behind support/model_hooks.h, which turns every
 * atomic operation, cpu_relax and the system calls they use into scheduling points. The threads
 * are coroutines of one real thread; the explorer runs the model again and again, each time with
 * another choice at one of the points, until nothing new is left.
 *
 *   - Depth first, with dynamic partial-order reduction (Flanagan and Godefroid, POPL 2005:
 *     vector clocks find the races of a run, and only they make new choices; source sets, POPL
 *     2014) and sleep sets (Godefroid 1996): of runs that differ only in the order of independent
 *     steps one is run.
 *   - Memory: sequentially consistent, or with `.tso` also x86's: a store that is not a
 *     read-modify-write waits in the thread's store buffer and reaches memory at a step of its
 *     own. Weaker orders are not modelled: they are for ThreadSanitizer and for the law that
 *     lock-free parts use read-modify-writes (DESIGN.md 2).
 *   - Plain (not atomic) accesses are not scheduling points. Races between them are
 *     ThreadSanitizer's to find. What a model itself notes down in more than one thread at a time
 *     must be atomic too, or orders of it may be missed.
 *   - A loop that polls (cpu_relax, sched_yield, a sleep with a time-out) goes on only after
 *     somebody else has written something that it has read since it polled last; so it is finite.
 *     Time stands still.
 *   - A run ends when no thread can go on. It fails when a thread that was to end has not (lost
 *     wake-up, deadlock), when an assertion fails, or when check() says so. The schedule is
 *     printed.
 *
 * All of it is one thread: nothing here is to be called from another one.
 */
#ifndef TEST_SUPPORT_MODEL_H
#define TEST_SUPPORT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_THREADS_MAX 6

struct model {
	const char *name;
	void (*setup)(void);		/* before each run; not scheduled, may be NULL */
	void (*thread[MODEL_THREADS_MAX])(void);
	void (*check)(void);		/* after each run, not scheduled, may be NULL */
	bool tso;			/* store buffers */
	bool settles;			/* spawned threads first run alone until they sleep */
	bool is_unreduced;		/* none spared: to check the reduction itself */
	uint64_t max_runs;		/* more: the model is too large. 0: 2 million */
};

struct model_result {
	uint64_t runs;			/* complete ones */
	uint64_t cut;			/* given up: everything they could show was seen already */
	unsigned steps_max;		/* of a run */
	bool has_failed;
	char why[256];
};

/*
 * Explores. Returns true when all runs were good. In a failed run *ret says why; with `is_loud`
 * the schedule goes to stderr.
 */
bool model_explore(const struct model *m, bool is_loud, struct model_result *ret);

/* For tests: every run is good, else the cmocka test fails. Prints the numbers. */
void model_expect_good(const struct model *m);

/* For tests: with `seed` switched on a bad run is found, else the cmocka test fails. */
void model_expect_found(const struct model *m, int seed);

/* Number of the seeded bug that is switched on, 0: none. See tests/model/seeds.py. */
extern int model_seed;

/* Fails the run, from a thread, set-up or check. */
void model_fail(const char *file, unsigned line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#define MODEL_ASSERT(cond) \
	((cond) ? (void)0 : model_fail(__FILE__, __LINE__, "%s does not hold", #cond))

/*
 * Atomics in this range are not scheduling points: counters that nothing depends on. Forgotten
 * after the run.
 */
void model_ignore(const volatile void *p, size_t len);

/* The calling model thread: 0 for thread[0], then in order; spawned ones follow. */
unsigned model_self(void);

/*
 * An expiry of a model timerfd that is armed (time itself stands still). A step of the calling
 * thread.
 */
void model_timer_expire(int fd);

/* Is a model eventfd readable? For checks. */
bool model_fd_is_ready(int fd);

#endif
