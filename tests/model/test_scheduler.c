/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model scheduler itself: does it reach every outcome that a small program has, under
 * sequential consistency and with store buffers, and no other? The litmus programs are the usual
 * ones (store buffering, message passing, load buffering, independent reads of independent
 * writes). Outcomes with and without the reduction must be the same set.
 */
#include "support/cmocka_all.h"
#include "support/model_hooks.h"

#define OUTCOMES 256

static _Atomic unsigned x, y, z;
static unsigned r[4];			/* what the threads read, one writer each */
static bool reached[OUTCOMES];
static pthread_mutex_t m1, m2;

static void
reset(void)
{
	atomic_store(&x, 0);
	atomic_store(&y, 0);
	atomic_store(&z, 0);
	memset(r, 0, sizeof(r));
}

#define GET(v) atomic_load_explicit(&(v), memory_order_acquire)
#define SET(v, to) atomic_store_explicit(&(v), to, memory_order_release)

/* Outcome: the four results and the variables, two bits each but the last. */
static void
note(void)
{
	unsigned o =
	    r[0] | r[1] << 1 | r[2] << 2 | r[3] << 3 | (GET(x) & 3) << 4 | (GET(y) & 3) << 6;

	reached[o % OUTCOMES] = true;
}

static void
explore(const struct model *m, bool tso, bool is_unreduced, bool *ret_reached)
{
	struct model copy = *m;
	struct model_result res;

	copy.tso = tso;
	copy.is_unreduced = is_unreduced;
	memset(reached, 0, sizeof(reached));
	assert_true(model_explore(&copy, true, &res));
	memcpy(ret_reached, reached, sizeof(reached));
	printf("%s%s%s: %llu runs\n", m->name, tso ? " (store buffers)" : "",
	    is_unreduced ? " unreduced" : "", (unsigned long long)res.runs);
}

/* Explores both ways, compares, and tells whether outcome (r0, r1) was reached. */
static bool
is_reached(const struct model *m, bool tso, unsigned results)
{
	bool some[OUTCOMES], all[OUTCOMES], is_there = false;
	unsigned i;

	explore(m, tso, true, all);
	explore(m, tso, false, some);
	for (i = 0; i < OUTCOMES; i++) {
		assert_int_equal(some[i], all[i]);
		if (some[i] && (i & 15) == results)
			is_there = true;
	}
	return is_there;
}

static void sb0(void) { SET(x, 1); r[0] = GET(y); }
static void sb1(void) { SET(y, 1); r[1] = GET(x); }
static void sb0_rmw(void) { atomic_exchange(&x, 1); r[0] = GET(y); }
static void sb1_rmw(void) { atomic_exchange(&y, 1); r[1] = GET(x); }
static void sb1_fence(void) { SET(y, 1); atomic_thread_fence(memory_order_seq_cst); r[1] = GET(x); }
static void mp0(void) { SET(x, 1); SET(y, 1); }
static void mp1(void) { r[0] = GET(y); r[1] = GET(x); }
static void lb0(void) { r[0] = GET(y); SET(x, 1); }
static void lb1(void) { r[1] = GET(x); SET(y, 1); }
static void set_x(void) { SET(x, 1); }
static void set_y(void) { SET(y, 1); }
static void read_xy(void) { r[0] = GET(x); r[1] = GET(y); }
static void read_yx(void) { r[2] = GET(y); r[3] = GET(x); }
static void own0(void) { SET(x, 1); r[0] = GET(x); r[1] = GET(y); }
static void own1(void) { SET(y, 1); r[2] = GET(y); r[3] = GET(x); }
static void increment(void) { SET(x, GET(x) + 1); }
static void increment_rmw(void) { atomic_fetch_add(&x, 1); }

static void
store_buffering_is_seen_with_store_buffers_only(void **state)
{
	const struct model m = {
		.name = "store buffering", .setup = reset, .thread = { sb0, sb1 }, .check = note
	};

	(void)state;
	assert_false(is_reached(&m, false, 0));
	assert_true(is_reached(&m, true, 0));
}

static void
read_modify_writes_and_fences_forbid_store_buffering(void **state)
{
	struct model m = { .name = "store buffering with RMWs",
		.setup = reset,
		.thread = { sb0_rmw, sb1_rmw },
		.check = note };

	(void)state;
	assert_false(is_reached(&m, true, 0));
	m.thread[1] = sb1_fence;
	assert_false(is_reached(&m, true, 0));
	m.thread[1] = sb1;
	assert_true(is_reached(&m, true, 0));
}

static void
x86_keeps_message_passing_load_buffering_and_one_order_of_writes(void **state)
{
	const struct model mp = {
		.name = "message passing", .setup = reset, .thread = { mp0, mp1 }, .check = note
	};
	const struct model lb = {
		.name = "load buffering", .setup = reset, .thread = { lb0, lb1 }, .check = note
	};
	const struct model iriw = { .name = "independent reads of independent writes",
		.setup = reset,
		.thread = { set_x, set_y, read_xy, read_yx },
		.check = note };

	(void)state;
	assert_false(is_reached(&mp, true, 1));
	assert_false(is_reached(&lb, true, 3));
	assert_false(is_reached(&iriw, true, 1 | 4));
	assert_true(is_reached(&iriw, true, 15));
}

static void
a_thread_sees_its_own_store_before_others_do(void **state)
{
	const struct model m = {
		.name = "own stores", .setup = reset, .thread = { own0, own1 }, .check = note
	};

	(void)state;
	assert_true(is_reached(&m, true, 1 | 4));
	assert_false(is_reached(&m, true, 0));
}

static void
no_increment_is_lost(void)
{
	note();
	MODEL_ASSERT(GET(x) == 3);
}

static void
a_lost_update_is_found_and_an_atomic_one_is_not(void **state)
{
	struct model m = { .name = "increments", .setup = reset,
		.thread = { increment, increment, increment }, .check = no_increment_is_lost };

	(void)state;
	model_expect_found(&m, 0);
	m.thread[0] = m.thread[1] = m.thread[2] = increment_rmw;
	model_expect_good(&m);
}

static void
lock_both(pthread_mutex_t *a, pthread_mutex_t *b)
{
	pthread_mutex_lock(a);
	pthread_mutex_lock(b);
	SET(x, GET(x) + 1);
	pthread_mutex_unlock(b);
	pthread_mutex_unlock(a);
}

static void lock_12(void) { lock_both(&m1, &m2); }
static void lock_21(void) { lock_both(&m2, &m1); }

static void
both_have_locked(void)
{
	MODEL_ASSERT(GET(x) == 2);
}

static void
a_deadlock_is_found(void **state)
{
	struct model m = { .name = "two locks", .setup = reset, .thread = { lock_12, lock_21 },
		.check = both_have_locked };

	(void)state;
	model_expect_found(&m, 0);
	m.thread[1] = lock_12;
	model_expect_good(&m);
}

/* A sleeper that looks, then sleeps without a second look: the flag may come in between. */
static int bell;

static void
reset_bell(void)
{
	reset();
	bell = eventfd(0, 0);
}

static void
ring_if_asleep(void)
{
	uint64_t one = 1;

	atomic_exchange(&x, 1);
	if (GET(y))
		MODEL_ASSERT(write(bell, &one, sizeof(one)) == sizeof(one));
}

static void
sleep_after(bool looks_twice)
{
	struct pollfd fd = { .fd = bell, .events = POLLIN };

	if (!looks_twice && GET(x))
		return;
	atomic_exchange(&y, 1);
	if (looks_twice && GET(x))
		return;
	poll(&fd, 1, -1);
}

static void look_then_sleep(void) { sleep_after(false); }
static void sleep_then_look(void) { sleep_after(true); }

static void
a_lost_wake_up_is_found(void **state)
{
	struct model m = { .name = "sleeper",
		.setup = reset_bell,
		.thread = { ring_if_asleep, look_then_sleep } };

	(void)state;
	model_expect_found(&m, 0);
	m.thread[1] = sleep_then_look;
	m.tso = true;
	model_expect_good(&m);
}

static void
spin_until_x(void)
{
	while (GET(x) == 0)
		cpu_relax();
	r[0] = GET(y);
}

static void
a_spinning_thread_goes_on_when_what_it_reads_changes(void **state)
{
	struct model m = {
		.name = "spin", .setup = reset, .thread = { mp0, spin_until_x }, .check = note
	};

	(void)state;
	assert_true(is_reached(&m, true, 0));
	assert_true(is_reached(&m, true, 1));
	m.thread[0] = set_y;
	model_expect_found(&m, 0);	/* nobody sets x */
}

/* ---- random programs: the reduction must not lose an outcome ---- */

#define PROGRAMS	1000
#define RANDOM_OPS	3

enum random_op {
	RANDOM_LOAD,
	RANDOM_STORE,
	RANDOM_ADD,
	RANDOM_COMPARE,
	RANDOM_OR,
	RANDOM_LOCKED_STORE,
	RANDOM_TRYLOCK,
	RANDOM_AWAIT,
	RANDOM_RING,
	RANDOM_SLEEP,
	RANDOM_OPS_KINDS
};

static struct {
	enum random_op op;
	unsigned var, value;
} program[3][RANDOM_OPS];
static unsigned n_random_threads, n_random_ops;
static uint32_t history[3];
static bool random_reached[4096];

/* The steps that block or lock; returns what was seen. */
static unsigned
do_blocking(enum random_op op, _Atomic unsigned *v, unsigned value)
{
	struct pollfd fd = { .fd = bell, .events = POLLIN };
	unsigned got = 0;
	uint64_t bells = value;

	switch (op) {
	case RANDOM_LOCKED_STORE:
		pthread_mutex_lock(&m1);
		got = GET(*v);
		SET(*v, got + value);
		pthread_mutex_unlock(&m1);
		return got;
	case RANDOM_TRYLOCK:
		if (pthread_mutex_trylock(&m1) != 0)
			return 0;
		SET(*v, value);
		pthread_mutex_unlock(&m1);
		return 1;
	case RANDOM_AWAIT:
		while (GET(*v) == 0)
			cpu_relax();
		return 0;
	case RANDOM_RING:
		return (unsigned)write(bell, &bells, sizeof(bells));
	default:
		poll(&fd, 1, -1);
		return read(bell, &bells, sizeof(bells)) == sizeof(bells) ? (unsigned)bells : 0;
	}
}

static unsigned
do_random(enum random_op op, _Atomic unsigned *v, unsigned value)
{
	unsigned got = value;

	switch (op) {
	case RANDOM_LOAD:
		return GET(*v);
	case RANDOM_STORE:
		SET(*v, value);
		return 0;
	case RANDOM_ADD:
		return atomic_fetch_add(v, value);
	case RANDOM_COMPARE:
		atomic_compare_exchange_strong(v, &got, 3);
		return got;
	case RANDOM_OR:
		return atomic_fetch_or(v, value);
	default:
		return do_blocking(op, v, value);
	}
}

static void *
run_random(void *arg)
{
	_Atomic unsigned *vars[] = { &x, &y };
	unsigned self = model_self(), i;

	(void)arg;
	for (i = 0; i < n_random_ops; i++)
		history[self] = history[self] * 31 + 1 + do_random(program[self][i].op,
		    vars[program[self][i].var], program[self][i].value);
	return NULL;
}

/* The threads are spawned: those need not end, so a program that blocks has an outcome too. */
static void
reset_random(void)
{
	unsigned t;

	reset_bell();
	memset(history, 0, sizeof(history));
	for (t = 0; t < n_random_threads; t++) {
		pthread_t thread;

		pthread_create(&thread, NULL, run_random, NULL);
	}
}

static void
note_random(void)
{
	uint32_t h =
	    ((history[0] * 131 + history[1]) * 131 + history[2]) * 131 + GET(x) * 17 + GET(y);

	random_reached[(h * UINT32_C(2654435761)) >> 20] = true;
}

static unsigned
next_random(unsigned below)
{
	static uint64_t at = 88172645463325252u;

	at ^= at << 13;
	at ^= at >> 7;
	at ^= at << 17;
	return (unsigned)(at >> 33) % below;
}

static void
make_program(bool may_block)
{
	unsigned t, i;

	for (t = 0; t < n_random_threads; t++) {
		for (i = 0; i < RANDOM_OPS; i++) {
			program[t][i].op =
			    next_random(may_block ? RANDOM_OPS_KINDS : RANDOM_LOCKED_STORE);
			program[t][i].var = next_random(2);
			program[t][i].value = 1 + next_random(2);
		}
	}
}

static void
random_programs_have_the_same_outcomes_with_and_without_the_reduction(void **state)
{
	static bool all[4096];
	struct model m = { .name = "random", .setup = reset_random, .check = note_random };
	struct model_result res;
	unsigned i;

	(void)state;
	for (i = 0; i < PROGRAMS; i++) {
		n_random_threads = 2 + i % 2;
		n_random_ops = n_random_threads == 2 ? 3 : 2;
		make_program(i % 4 < 2);
		m.tso = i % 8 < 4;
		m.is_unreduced = true;
		memset(random_reached, 0, sizeof(random_reached));
		assert_true(model_explore(&m, true, &res));
		memcpy(all, random_reached, sizeof(all));
		m.is_unreduced = false;
		memset(random_reached, 0, sizeof(random_reached));
		assert_true(model_explore(&m, true, &res));
		assert_memory_equal(all, random_reached, sizeof(all));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(store_buffering_is_seen_with_store_buffers_only),
		cmocka_unit_test(read_modify_writes_and_fences_forbid_store_buffering),
		cmocka_unit_test(x86_keeps_message_passing_load_buffering_and_one_order_of_writes),
		cmocka_unit_test(a_thread_sees_its_own_store_before_others_do),
		cmocka_unit_test(a_lost_update_is_found_and_an_atomic_one_is_not),
		cmocka_unit_test(a_deadlock_is_found),
		cmocka_unit_test(a_lost_wake_up_is_found),
		cmocka_unit_test(a_spinning_thread_goes_on_when_what_it_reads_changes),
		cmocka_unit_test(
		    random_programs_have_the_same_outcomes_with_and_without_the_reduction),
	};

	return cmocka_run_group_tests_name("scheduler", tests, NULL, NULL);
}
