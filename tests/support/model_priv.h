/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What model.c (coroutines), model_explore.c (choices) and model_sys.c (system calls) share.
 *
 * A process is a thread or the store buffer of one: process MODEL_THREADS_MAX + i writes the
 * oldest store of thread i to memory. All state but the explorer's choices is of one run.
 */
#ifndef TEST_SUPPORT_MODEL_PRIV_H
#define TEST_SUPPORT_MODEL_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/model.h"

struct model_site;

#define PROCS_MAX	(2 * MODEL_THREADS_MAX)
#define STEPS_MAX	3000
#define ACCESSES_MAX	28
#define SEEN_MAX	24
#define STORES_MAX	32
#define KEYS_MAX	4

/* Step number + 1 of each process's last step that happened before. */
struct vclock {
	uint16_t at[PROCS_MAX];
};

/* Something that steps depend on: an atomic variable, a mutex, a descriptor, a futex's queue. */
struct object {
	uintptr_t key;
	uint32_t run;			/* valid in this run only */
	uint32_t version;		/* writes so far */
	uint16_t last_write;		/* step + 1, 0: none */
	uint8_t last_writer;		/* process */
	uint16_t last_release; /* lock: step + 1 of the last time it was let go, after last_write */
	uint8_t last_releaser;
	uint16_t last_read[PROCS_MAX];	/* step + 1 since the last write */
	struct vclock write_clock;
	struct vclock read_clock;	/* join of the reads since the last write */
	uint32_t owner;			/* mutex: thread + 1 */
	uint32_t wakes;			/* futex queue */
};

struct access {
	struct object *o;
	bool is_write;
};

/*
 * What a step does to a lock, its only access: letting go can't be done in another order with
 * taking, only the takings can.
 */
enum lock_op {
	LOCK_NONE,
	LOCK_TAKE,
	LOCK_TRY,
	LOCK_RELEASE
};

/* The next step of a thread. Lives on the thread's stack until it is done. */
struct op {
	const struct model_site *at;
	unsigned n;
	struct access access[ACCESSES_MAX];
	bool needs_drain;		/* waits for the store buffer to be empty */
	bool is_blind;			/* learns nothing: model_has_news */
	enum lock_op lock;
	bool (*is_ready)(struct op *op);	/* NULL: always */
	const void *arg;
	uint64_t value;
	uint32_t thread;
	/* read-modify-write: what it does, to tell whether it changes the value */
	const volatile void *p;
	const void *operand;
	uint8_t size;
	uint8_t kind;
};

struct pending_store {
	struct object *o;
	volatile void *p;
	const struct model_site *at;
	uint64_t v;
	uint8_t size;
	struct vclock clock;
};

/* What a thread has read since it polled last. */
struct seen {
	struct object *o;
	uint32_t version;
};

enum thread_state {
	THREAD_NONE,
	THREAD_RUNS,
	THREAD_ENDED
};

struct thread {
	enum thread_state state;
	bool is_daemon;			/* need not end */
	void (*fn)(void);
	void *(*fn_arg)(void *arg);
	void *arg;
	struct op *op;			/* pending */
	struct pending_store stores[STORES_MAX];
	unsigned first_store, n_stores;
	struct seen seen[SEEN_MAX];
	unsigned n_seen;
	void *specific[KEYS_MAX];
};

extern struct thread model_threads[MODEL_THREADS_MAX];
extern unsigned model_n_threads;
extern unsigned model_current;	/* thread that runs; MODEL_THREADS_MAX: none, set-up or check */
extern bool model_is_tso;
extern uint32_t model_run;	/* number of the run, from 1 */

/* ---- model.c ---- */

enum run_end {
	RUN_GOOD,
	RUN_CUT,	/* by sleep sets */
	RUN_FAILED
};

/* One run: set-up, threads, check. On RUN_FAILED model_why tells. */
enum run_end model_run_once(const struct model *m);
extern char model_why[256];

/* Around all runs: a bad pointer in the code under test is a failed run. */
void model_catch_faults(bool catch);

struct object *model_object(uintptr_t key);

static inline void
op_touch(struct op *op, struct object *o, bool is_write)
{
	op->access[op->n++] = (struct access){ .o = o, .is_write = is_write };
}

/* The running thread's next step: returns when it has been chosen. Nothing outside of threads. */
void model_step(struct op *op);

/* Has somebody else written what `thread` has read since it polled last? */
bool model_has_news(uint32_t thread);

/* A poll has been made: what was read so far counts no more. */
void model_polled(void);

/* A thread that starts before the first step. */
unsigned model_spawn(void *(*fn)(void *arg), void *arg);

/* ---- model_explore.c ---- */

#define CHOICE_END	(-1)
#define CHOICE_CUT	(-2)

/*
 * Which process does the next step; CHOICE_END when none can, CHOICE_CUT when all that can are
 * seen.
 */
int model_choose(void);

/* Begins a run. */
void model_choices_begin(const struct model *m);

/* ---- model_sys.c ---- */
void model_sys_begin(void);

#endif
