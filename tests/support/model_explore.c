/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choices of a model: which process takes each step, run after run.
 *
 * A node is a state on the current path: who could go, who has been tried, who must still be
 * tried, who sleeps (would only repeat what was seen). Runs are repeated from the start: up to
 * the node where another choice is made, nodes are followed; behind it, new ones are made.
 *
 * At each new state, for the next step of every process, the last earlier steps are looked for
 * that touch the same object (one of them writing), are not of the same process and did not
 * happen before: the two could have come in the other order, and a run in which they do must be
 * tried too. "Happened before" is program order and the order of dependent steps, kept as vector
 * clocks. Which process is tried is chosen by source sets (Abdulla, Aronis, Jonsson, Sagonas,
 * POPL 2014): the choice of the 2005 algorithm is not sound together with sleep sets.
 * test_scheduler.c compares with exploring everything.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"
#include "support/model_hooks.h"
#include "support/model_priv.h"

#define RUNS_MAX_DEFAULT 2000000
#define PRINT_MAX	300		/* steps of a schedule */

struct node {
	uint32_t enabled, tried, wanted, asleep;	/* sets of processes */
	uint32_t chosen;
};

struct step {
	uint32_t proc;
	const struct model_site *at;
	struct vclock clock;
};

static struct node nodes[STEPS_MAX];
static struct step steps[STEPS_MAX];	/* of this run */
static unsigned depth;
static unsigned branch;		/* up to this node the run before is followed */
static bool has_branch;
static uint32_t asleep;			/* in the state that is reached now */
static struct vclock clocks[PROCS_MAX];
static bool is_settling;		/* only daemons go */
static bool is_unreduced;

static uint32_t
bit(unsigned p)
{
	return UINT32_C(1) << p;
}

static void
join(struct vclock *c, const struct vclock *other)
{
	unsigned i;

	for (i = 0; i < PROCS_MAX; i++) {
		if (other->at[i] > c->at[i])
			c->at[i] = other->at[i];
	}
}

/* What a depends on has happened before. */
static void
join_access(struct vclock *c, const struct access *a)
{
	join(c, &a->o->write_clock);
	if (a->is_write)
		join(c, &a->o->read_clock);
}

static bool
is_buffer(unsigned p)
{
	return p >= MODEL_THREADS_MAX;
}

static struct pending_store *
oldest_store(unsigned p)
{
	struct thread *t = &model_threads[p - MODEL_THREADS_MAX];

	return &t->stores[t->first_store];
}

void model_note_store(struct pending_store *s);

void
model_note_store(struct pending_store *s)
{
	s->clock = clocks[model_current];
}

/* Does process p have a next step, ready or not? */
static bool
has_step(unsigned p)
{
	if (is_buffer(p))
		return p - MODEL_THREADS_MAX < model_n_threads &&
		       model_threads[p - MODEL_THREADS_MAX].n_stores != 0;
	return p < model_n_threads && model_threads[p].state == THREAD_RUNS;
}

static bool
is_enabled(unsigned p)
{
	struct op *op;

	if (!has_step(p))
		return false;
	if (is_buffer(p))
		return true;
	op = model_threads[p].op;
	if (op->needs_drain && model_threads[p].n_stores != 0)
		return false;
	return op->is_ready == NULL || op->is_ready(op);
}

/* Does the read-modify-write leave the value as it is now? */
static bool
changes_nothing(const struct op *op)
{
	uint64_t v = 0, operand = 0;

	if (op->lock == LOCK_TRY)
		return op->access[0].o->owner != 0;
	if (op->operand == NULL)
		return false;
	memcpy(&v, (const void *)(uintptr_t)op->p, op->size);
	memcpy(&operand, op->operand, op->size);
	switch ((enum model_rmw_kind)op->kind) {
	case MODEL_RMW_COMPARE:
		return v != operand;
	case MODEL_RMW_EXCHANGE:
		return v == operand;
	case MODEL_RMW_OR:
		return (v | operand) == v;
	case MODEL_RMW_AND:
		return (v & operand) == v;
	default:
		return operand == 0;
	}
}

/* What p's next step touches; as it would be now, or (find_races) at the most. */
static unsigned
next_accesses(unsigned p, struct access *ret, bool is_now)
{
	struct op *op;

	if (is_buffer(p)) {
		ret[0] = (struct access){ .o = oldest_store(p)->o, .is_write = true };
		return 1;
	}
	op = model_threads[p].op;
	memcpy(ret, op->access, op->n * sizeof(*ret));
	if (is_now && changes_nothing(op))
		ret[0].is_write = false;
	return op->n;
}

/* What happened before p's next step by p itself. */
static struct vclock
clock_before(unsigned p)
{
	struct vclock c = clocks[p];

	if (is_buffer(p))
		join(&c, &oldest_store(p)->clock);
	else if (model_threads[p].op->needs_drain)
		join(&c, &clocks[MODEL_THREADS_MAX + p]);
	return c;
}

/*
 * Step i and p's next step could have come in the other order. Then what comes after i without
 * depending on it, and p's step, are a run from node i that must be seen: one of the processes
 * that could begin it must be tried there. If one of them sleeps the run has been seen. with: all
 * that happened before p's step.
 */
static void
want(unsigned i, unsigned p, const struct vclock *with)
{
	struct node *nd = &nodes[i];
	unsigned first[PROCS_MAX] = { 0 };	/* step + 1 */
	unsigned q, r, j;
	uint32_t begin = 0;

	for (j = i + 1; j < depth; j++) {
		if (steps[j].clock.at[steps[i].proc] <= i && first[steps[j].proc] == 0)
			first[steps[j].proc] = j + 1;
	}
	for (q = 0; q < PROCS_MAX; q++) {
		const struct vclock *c = first[q] != 0 ? &steps[first[q] - 1].clock : with;

		if (first[q] == 0 && q != p)
			continue;
		for (r = 0; r < PROCS_MAX; r++) {
			if (r != q && first[r] != 0 && c->at[r] >= first[r])
				break;
		}
		if (r == PROCS_MAX)
			begin |= nd->enabled & bit(q);
	}
	if (begin == 0 || (begin & (nd->wanted | nd->tried | nd->asleep)))
		return;
	nd->wanted |= begin & bit(p) ? bit(p) : begin & -begin;
}

/* p's next step: what happened before it by p itself, and by all that it depends on. */
struct next_step {
	unsigned p;
	struct vclock before, with;
};

static void
want_unless_before(unsigned at, unsigned proc, const struct next_step *next)
{
	if (at != 0 && proc != next->p && at > next->before.at[proc])
		want(at - 1, next->p, &next->with);
}

/* Who has touched o, so that p's next step could have come before it? */
static void
find_races_at(const struct access *a, const struct next_step *next, enum lock_op lock)
{
	const struct object *o = a->o;
	bool is_read = false;
	unsigned q;

	for (q = 0; a->is_write && q < PROCS_MAX; q++) {
		if (o->last_read[q] == 0 || q == next->p)
			continue;
		is_read = true;
		want_unless_before(o->last_read[q], q, next);
	}
	if (lock == LOCK_TRY)
		want_unless_before(o->last_release, o->last_releaser, next);
	/* a write that others have read since comes before those reads anyway */
	if (!is_read || lock != LOCK_NONE)
		want_unless_before(o->last_write, o->last_writer, next);
}

static void
find_races(void)
{
	struct access a[ACCESSES_MAX];
	unsigned p, i, n;

	for (p = 0; p < PROCS_MAX; p++) {
		struct next_step next = { .p = p };

		if (!has_step(p))
			continue;
		n = next_accesses(p, a, false);
		next.before = next.with = clock_before(p);
		for (i = 0; i < n; i++)
			join_access(&next.with, &a[i]);
		for (i = 0; i < n; i++)
			find_races_at(
			    &a[i], &next, is_buffer(p) ? LOCK_NONE : model_threads[p].op->lock);
	}
}

static bool
are_dependent(const struct access *a, unsigned n, unsigned q)
{
	struct access b[ACCESSES_MAX];
	unsigned m = next_accesses(q, b, true), i, j;

	for (i = 0; i < n; i++) {
		for (j = 0; j < m; j++) {
			if (a[i].o == b[j].o && (a[i].is_write || b[j].is_write))
				return true;
		}
	}
	return false;
}

/* Own writes are no news to who has seen all before. */
static void
write_version(unsigned p, struct object *o)
{
	struct thread *t = &model_threads[p % MODEL_THREADS_MAX];
	unsigned i;

	for (i = 0; i < t->n_seen; i++) {
		if (t->seen[i].o == o && t->seen[i].version == o->version)
			t->seen[i].version++;
	}
	o->version++;
}

/* Step `depth`, p's, touches a. */
static void
note_access(const struct access *a, unsigned p, bool is_release)
{
	struct object *o = a->o;
	uint16_t at = (uint16_t)(depth + 1);

	if (!a->is_write) {
		o->last_read[p] = at;
		join(&o->read_clock, &clocks[p]);
		return;
	}
	write_version(p, o);
	if (is_release) {
		o->last_release = at;
		o->last_releaser = (uint8_t)p;
	} else {
		o->last_write = at;
		o->last_writer = (uint8_t)p;
		o->last_release = 0;
	}
	o->write_clock = clocks[p];
	memset(o->last_read, 0, sizeof(o->last_read));
	memset(&o->read_clock, 0, sizeof(o->read_clock));
}

/* Step `depth` is p's. */
static void
take_step(unsigned p)
{
	struct access a[ACCESSES_MAX];
	unsigned n = next_accesses(p, a, true), i, q;
	struct vclock c = clock_before(p);
	uint32_t sleepers = (nodes[depth].asleep | nodes[depth].tried) & ~bit(p);

	asleep = 0;
	for (q = 0; q < PROCS_MAX; q++) {
		if (!is_unreduced && (sleepers & bit(q)) && !are_dependent(a, n, q))
			asleep |= bit(q);
	}
	steps[depth] = (struct step){ .proc = p,
		.at = is_buffer(p) ? oldest_store(p)->at : model_threads[p].op->at };
	for (i = 0; i < n; i++)
		join_access(&c, &a[i]);
	c.at[p] = (uint16_t)(depth + 1);
	clocks[p] = c;
	steps[depth].clock = c;
	for (i = 0; i < n; i++)
		note_access(&a[i], p, !is_buffer(p) && model_threads[p].op->lock == LOCK_RELEASE);
	depth++;
}

void
model_choices_begin(const struct model *m)
{
	is_settling = m->settles;
	is_unreduced = m->is_unreduced;
	depth = 0;
	asleep = 0;
	memset(clocks, 0, sizeof(clocks));
}

/*
 * The process whose turn it is at a new node: the same as before if it can go, since that costs
 * no switch.
 */
static unsigned
first_choice(uint32_t set)
{
	unsigned last = depth > 0 ? steps[depth - 1].proc : 0;

	return set & bit(last) ? last : (unsigned)__builtin_ctz(set);
}

static uint32_t
all_enabled(void)
{
	uint32_t all = 0, daemons = 0;
	unsigned p;

	for (p = 0; p < PROCS_MAX; p++) {
		if (!is_enabled(p))
			continue;
		all |= bit(p);
		if (model_threads[p % MODEL_THREADS_MAX].is_daemon)
			daemons |= bit(p);
	}
	if (is_settling && daemons != 0)
		return daemons;
	is_settling = false;
	return all;
}

int
model_choose(void)
{
	struct node *nd = &nodes[depth];
	uint32_t enabled;
	unsigned p;

	if (depth == STEPS_MAX)
		model_fail(__FILE__, __LINE__, "the run does not end");
	enabled = all_enabled();
	if (!has_branch || depth > branch) {
		find_races();
		if (enabled == 0)
			return CHOICE_END;
		if ((enabled & ~asleep) == 0)
			return CHOICE_CUT;
		*nd = (struct node){ .enabled = enabled, .asleep = asleep };
		nd->chosen = first_choice(enabled & ~asleep);
		nd->wanted = is_unreduced ? enabled : bit(nd->chosen);
	} else if (nd->enabled != enabled) {
		model_fail(
		    __FILE__, __LINE__, "the model is not the same in each run (step %u)", depth);
	}
	p = nd->chosen;
	take_step(p);
	return (int)p;
}

/* The deepest node with something left to try becomes the branch; false when there is none. */
static bool
next_branch(void)
{
	unsigned i;

	for (i = depth; i-- > 0;) {
		struct node *nd = &nodes[i];
		uint32_t left;

		nd->tried |= bit(nd->chosen);
		left = nd->wanted & ~nd->tried & ~nd->asleep;
		if (left == 0)
			continue;
		nd->chosen = (unsigned)__builtin_ctz(left);
		branch = i;
		has_branch = true;
		return true;
	}
	return false;
}

static void
print_schedule(const struct model *m)
{
	unsigned i = depth > PRINT_MAX ? depth - PRINT_MAX : 0, last = PROCS_MAX;

	fprintf(stderr, "model %s: %s\nschedule (thread: step), the last %u of %u:\n", m->name,
	    model_why, depth - i, depth);
	for (; i < depth; i++) {
		const struct step *t = &steps[i];
		const char *file = strrchr(t->at->file, '/');

		if (t->proc != last)
			fprintf(stderr, "  -- %s %u\n",
			    is_buffer(t->proc) ? "store buffer of" : "thread",
			    t->proc % MODEL_THREADS_MAX);
		last = t->proc;
		fprintf(stderr, "  %s:%u %s\n", file != NULL ? file + 1 : t->at->file, t->at->line,
		    t->at->what);
	}
}

/* All runs. False after a bad one. */
static bool
run_all(const struct model *m, uint64_t max_runs, struct model_result *ret)
{
	do {
		enum run_end end = model_run_once(m);

		ret->steps_max = depth > ret->steps_max ? depth : ret->steps_max;
		ret->runs += end != RUN_CUT;
		ret->cut += end == RUN_CUT;
		if (end == RUN_FAILED)
			return false;
		if (ret->runs + ret->cut >= max_runs) {
			snprintf(model_why, sizeof(model_why), "more than %llu runs",
			    (unsigned long long)max_runs);
			return false;
		}
	} while (next_branch());
	return true;
}

bool
model_explore(const struct model *m, bool is_loud, struct model_result *ret)
{
	bool is_good;

	memset(ret, 0, sizeof(*ret));
	has_branch = false;
	model_catch_faults(true);
	is_good = run_all(m, m->max_runs != 0 ? m->max_runs : RUNS_MAX_DEFAULT, ret);
	model_catch_faults(false);
	if (is_good)
		return true;
	ret->has_failed = true;
	memcpy(ret->why, model_why, sizeof(ret->why));
	if (is_loud)
		print_schedule(m);
	return false;
}

void
model_expect_good(const struct model *m)
{
	struct model_result r;
	clock_t began;

	model_seed = 0;
	began = clock();
	if (!model_explore(m, true, &r))
		fail_msg("%s: %s", m->name, r.why);
	printf("%s%s: %llu runs, %llu cut short, up to %u steps, %.1f s\n", m->name,
	    m->tso ? " (store buffers)" : "", (unsigned long long)r.runs, (unsigned long long)r.cut,
	    r.steps_max, (double)(clock() - began) / CLOCKS_PER_SEC);
	fflush(stdout);
}

void
model_expect_found(const struct model *m, int seed)
{
	struct model_result r;
	bool is_good;

	model_seed = seed;
	is_good = model_explore(m, getenv("MODEL_LOUD") != NULL, &r);
	model_seed = 0;
	if (is_good)
		fail_msg("%s: the seeded bug %d was not found in %llu runs", m->name, seed,
		    (unsigned long long)r.runs);
	printf("%s: seed %d found in run %llu: %s\n", m->name, seed,
	    (unsigned long long)(r.runs + r.cut), r.why);
	fflush(stdout);
}
