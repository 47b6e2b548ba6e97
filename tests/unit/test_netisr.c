/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * runtime/netisr, keeper, waitword, publish: holding, borrowing, sleeping keepers, attach, grace
 * periods, on a stack without layers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "runtime/stack.h"

static const struct layer *const no_layers[] = { NULL };
static char err[256];

static struct darter_stack *
stack_of(unsigned netisrs, enum config_threads threads, struct clock *clock)
{
	struct darter_stack *s;
	struct config cfg;
	int r;

	config_init(&cfg);
	cfg.netisrs = netisrs;
	cfg.threads = threads;
	cfg.memory = CONFIG_MEMORY_HEAP;
	cfg.packets = 256;
	s = stack_new(&cfg, no_layers, clock, NULL, &r, err, sizeof(err));
	if (s == NULL)
		fail_msg("stack_new: %s", err);
	return s;
}

static void
count_call(struct netisr *n, void *arg)
{
	assert_ptr_equal(netisr_current(), n);
	(*(unsigned *)arg)++;
}

static void
a_call_runs_as_holder_by_borrowing(void **state)
{
	struct darter_stack *s = stack_of(2, CONFIG_THREADS_MANUAL, NULL);
	unsigned calls = 0;

	(void)state;
	netisr_call(s->netisr[1], count_call, &calls);
	assert_int_equal(calls, 1);
	assert_null(netisr_current());
	stack_free(s);
}

static void
a_call_to_a_sleeping_keeper_wakes_it_when_borrowing_is_off(void **state)
{
	struct darter_stack *s = stack_of(1, CONFIG_THREADS_BACKGROUND, NULL);
	struct timespec pause = { .tv_nsec = 1000000 };
	unsigned calls = 0, i;

	(void)state;
	atomic_store(&s->borrow, 0);
	assert_int_equal(netisr_start_keepers(s), 0);
	for (i = 0; i < 200; i++) {
		if (i % 20 == 0)
			nanosleep(&pause, NULL);
		netisr_call(s->netisr[0], count_call, &calls);
	}
	assert_int_equal(calls, 200);
	netisr_stop_keepers(s);
	stack_free(s);
}

struct caller {
	struct darter_stack *s;
	unsigned calls;
};

static void *
call_often(void *arg)
{
	struct caller *c = arg;
	unsigned i;

	for (i = 0; i < 20000; i++)
		netisr_call(c->s->netisr[i % c->s->n_netisrs], count_call, &c->calls);
	return NULL;
}

static void
calls_from_many_threads_are_all_carried_out(void **state)
{
	struct darter_stack *s = stack_of(2, CONFIG_THREADS_BACKGROUND, NULL);
	struct caller c[3];
	pthread_t t[3];
	unsigned i;

	(void)state;
	assert_int_equal(netisr_start_keepers(s), 0);
	for (i = 0; i < 3; i++) {
		c[i] = (struct caller){ .s = s };
		assert_int_equal(pthread_create(&t[i], NULL, call_often, &c[i]), 0);
	}
	for (i = 0; i < 3; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(c[i].calls, 20000);
	}
	stack_free(s);
}

static void
an_attached_thread_holds_until_it_detaches(void **state)
{
	struct darter_stack *s = stack_of(2, CONFIG_THREADS_BACKGROUND, NULL);

	(void)state;
	assert_int_equal(netisr_start_keepers(s), 0);
	assert_int_equal(netisr_attach(s->netisr[0]), 0);
	assert_ptr_equal(netisr_current(), s->netisr[0]);
	assert_int_equal(netisr_attach(s->netisr[1]), -EDEADLK);
	assert_int_equal(netisr_detach(s->netisr[1]), -EINVAL);
	assert_int_equal(netisr_detach(s->netisr[0]), 0);
	assert_null(netisr_current());
	stack_free(s);
}

static void *
post_after_a_while(void *arg)
{
	struct timespec pause = { .tv_nsec = 5000000 };

	nanosleep(&pause, NULL);
	waitword_post(arg);
	return NULL;
}

static void
wait_for_a_post(struct darter_stack *s, int extra_fd)
{
	struct waitword w = { 0 };
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, post_after_a_while, &w), 0);
	assert_int_equal(wait_until(s, NULL, &w, 0, time_add_us(stack_now(s), 10 * US_PER_SEC),
	    extra_fd), 0);
	assert_int_equal(waitword_seq(&w), 1);
	pthread_join(t, NULL);
}

static void
a_waiting_thread_is_woken_attached_or_not_with_a_fd_or_without(void **state)
{
	struct darter_stack *s = stack_of(1, CONFIG_THREADS_BACKGROUND, NULL);
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(netisr_start_keepers(s), 0);
	wait_for_a_post(s, -1);
	wait_for_a_post(s, fds[0]);
	assert_int_equal(netisr_attach(s->netisr[0]), 0);
	wait_for_a_post(s, -1);
	wait_for_a_post(s, fds[0]);
	netisr_detach(s->netisr[0]);
	close(fds[0]);
	close(fds[1]);
	stack_free(s);
}

static void
a_readable_descriptor_ends_the_wait(void **state)
{
	struct darter_stack *s = stack_of(1, CONFIG_THREADS_BACKGROUND, NULL);
	struct waitword w = { 0 };
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(netisr_start_keepers(s), 0);
	assert_int_equal(wait_until(s, NULL, &w, 0, TIME_NEVER, fds[0]), 0);
	assert_int_equal(netisr_attach(s->netisr[0]), 0);
	assert_int_equal(wait_until(s, NULL, &w, 0, TIME_NEVER, fds[0]), 0);
	netisr_detach(s->netisr[0]);
	close(fds[0]);
	close(fds[1]);
	stack_free(s);
}

static void
the_deadline_ends_the_wait(void **state)
{
	struct darter_stack *s = stack_of(1, CONFIG_THREADS_BACKGROUND, NULL);
	struct waitword w = { 0 };
	struct time deadline;

	(void)state;
	assert_int_equal(netisr_start_keepers(s), 0);
	deadline = time_add_us(stack_now(s), 3000);
	assert_int_equal(wait_until(s, NULL, &w, 0, deadline, -1), -ETIMEDOUT);
	assert_true(time_reached(stack_now(s), deadline));
	assert_int_equal(netisr_attach(s->netisr[0]), 0);
	deadline = time_add_us(stack_now(s), 3000);
	assert_int_equal(wait_until(s, NULL, &w, 0, deadline, -1), -ETIMEDOUT);
	assert_true(time_reached(stack_now(s), deadline));
	netisr_detach(s->netisr[0]);
	stack_free(s);
}

static void *
advance_after_a_while(void *arg)
{
	struct timespec pause = { .tv_nsec = 5000000 };

	nanosleep(&pause, NULL);
	clock_advance_us(arg, 3600 * US_PER_SEC);
	return NULL;
}

static void
advancing_a_fake_clock_ends_the_wait_of_an_hour(void **state)
{
	struct darter_stack *s;
	struct waitword w = { 0 };
	struct clock clock;
	pthread_t t;

	(void)state;
	clock_init_fake(&clock, (struct time){ 1000 });
	s = stack_of(1, CONFIG_THREADS_MANUAL, &clock);
	assert_int_equal(pthread_create(&t, NULL, advance_after_a_while, &clock), 0);
	assert_int_equal(wait_until(s, NULL, &w, 0, time_add_us(stack_now(s), 3600 * US_PER_SEC),
	    -1), -ETIMEDOUT);
	pthread_join(t, NULL);
	stack_free(s);
}

static void
a_blocking_wait_while_holding_is_refused(void **state)
{
	struct darter_stack *s = stack_of(1, CONFIG_THREADS_MANUAL, NULL);
	struct waitword w = { 0 };

	(void)state;
	assert_true(netisr_take(s->netisr[0]));
	assert_int_equal(wait_until(s, NULL, &w, 0, TIME_NEVER, -1), -EDEADLK);
	netisr_give(s->netisr[0]);
	stack_free(s);
}

static void
on_signal(int sig)
{
	(void)sig;
	wait_signal_note();
}

static void *
signal_after_a_while(void *arg)
{
	struct timespec pause = { .tv_nsec = 5000000 };

	nanosleep(&pause, NULL);
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	return NULL;
}

static void
a_noted_signal_ends_the_wait_with_eintr(void **state)
{
	struct darter_stack *s = stack_of(1, CONFIG_THREADS_BACKGROUND, NULL);
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, old;
	struct waitword w = { 0 };
	pthread_t self = pthread_self(), t;

	(void)state;
	sigaction(SIGUSR1, &sa, &old);
	assert_int_equal(netisr_start_keepers(s), 0);
	assert_int_equal(pthread_create(&t, NULL, signal_after_a_while, &self), 0);
	assert_int_equal(wait_until(s, NULL, &w, 0, time_add_us(stack_now(s), 10 * US_PER_SEC), -1),
	    -EINTR);
	pthread_join(t, NULL);
	sigaction(SIGUSR1, &old, NULL);
	stack_free(s);
}

/* Takes as long as if the thread had lost its CPU. */
static void
handle_slowly(struct netisr *n, struct msg_node *m)
{
	(void)m;
	clock_advance_us(n->stack->clock, 5000);
}

static void
a_borrower_that_held_for_long_leaves_the_work_to_the_keeper_for_a_while(void **state)
{
	static const struct layer slow = { .message = { [MSG_LISTENER] = handle_slowly } };
	static const struct layer *const layers[] = { &slow, NULL };
	struct msg_node m = { .kind = MSG_LISTENER };
	struct darter_stack *s;
	struct config cfg;
	struct clock clock;
	struct netisr *n;
	int r;

	(void)state;
	clock_init_fake(&clock, (struct time){ 1000 });
	config_init(&cfg);
	cfg.packets = 256;
	s = stack_new(&cfg, layers, &clock, NULL, &r, err, sizeof(err));
	assert_non_null(s);
	n = s->netisr[0];
	n->keeper_nice = 19;	/* there is no keeper: this thread does its work */
	netisr_send(n, &m);
	assert_int_equal(stack_counter(s, CTR_borrows), 1);
	assert_int_equal(stack_counter(s, CTR_holds_over_1ms), 1);
	assert_int_equal(stack_counter(s, CTR_msgs), 1);
	clock_advance_us(&clock, 8 * 5000 - 1);
	netisr_send(n, &m);
	assert_int_equal(stack_counter(s, CTR_borrows), 1);
	assert_int_equal(stack_counter(s, CTR_msgs), 1);
	assert_true(netisr_take(n));
	netisr_round(n);
	netisr_give(n);
	assert_int_equal(stack_counter(s, CTR_msgs), 2);
	netisr_send(n, &m);
	assert_int_equal(stack_counter(s, CTR_borrows), 2);
	assert_int_equal(stack_counter(s, CTR_msgs), 3);
	stack_free(s);
}

struct thing {
	struct retired retired;
	bool *is_freed;
};

static void
free_thing(struct darter_stack *s, struct retired *r)
{
	struct thing *t = container_of(r, struct thing, retired);

	(void)s;
	*t->is_freed = true;
	free(t);
}

static void
retire_thing(struct darter_stack *s, bool *is_freed)
{
	struct thing *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->is_freed = is_freed;
	control_lock(s);
	publish_retire(s, &t->retired, free_thing);
	control_unlock(s);
}

static void
what_is_retired_lives_until_the_holders_round_has_ended(void **state)
{
	struct darter_stack *s = stack_of(2, CONFIG_THREADS_MANUAL, NULL);
	bool is_freed = false;

	(void)state;
	assert_true(netisr_take(s->netisr[1]));
	retire_thing(s, &is_freed);
	publish_reap(s);
	assert_false(is_freed);
	netisr_round(s->netisr[1]);
	publish_reap(s);
	assert_true(is_freed);
	netisr_give(s->netisr[1]);
	stack_free(s);
}

static void
what_is_retired_while_nobody_holds_is_freed_at_once(void **state)
{
	struct darter_stack *s = stack_of(2, CONFIG_THREADS_MANUAL, NULL);
	bool is_freed = false;

	(void)state;
	retire_thing(s, &is_freed);
	assert_true(is_freed);
	stack_free(s);
}

static void
a_seeded_stack_repeats_its_secrets_and_an_unseeded_one_does_not(void **state)
{
	struct siphash_key first[2], other[2];
	struct config cfg;
	unsigned i;
	int r;

	(void)state;
	for (i = 0; i < 4; i++) {
		struct darter_stack *s;

		config_init(&cfg);
		cfg.threads = CONFIG_THREADS_MANUAL;
		cfg.packets = 64;
		cfg.seed = i < 2 ? 77 : 0;
		s = stack_new(&cfg, no_layers, NULL, NULL, &r, err, sizeof(err));
		assert_non_null(s);
		(i < 2 ? first : other)[i % 2] = s->secret[0];
		stack_free(s);
	}
	assert_memory_equal(&first[0], &first[1], sizeof(first[0]));
	assert_memory_not_equal(&other[0], &other[1], sizeof(other[0]));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_runs_as_holder_by_borrowing),
		cmocka_unit_test(a_call_to_a_sleeping_keeper_wakes_it_when_borrowing_is_off),
		cmocka_unit_test(calls_from_many_threads_are_all_carried_out),
		cmocka_unit_test(an_attached_thread_holds_until_it_detaches),
		cmocka_unit_test(a_waiting_thread_is_woken_attached_or_not_with_a_fd_or_without),
		cmocka_unit_test(a_readable_descriptor_ends_the_wait),
		cmocka_unit_test(the_deadline_ends_the_wait),
		cmocka_unit_test(advancing_a_fake_clock_ends_the_wait_of_an_hour),
		cmocka_unit_test(a_blocking_wait_while_holding_is_refused),
		cmocka_unit_test(a_noted_signal_ends_the_wait_with_eintr),
		cmocka_unit_test(
		    a_borrower_that_held_for_long_leaves_the_work_to_the_keeper_for_a_while),
		cmocka_unit_test(what_is_retired_lives_until_the_holders_round_has_ended),
		cmocka_unit_test(what_is_retired_while_nobody_holds_is_freed_at_once),
		cmocka_unit_test(a_seeded_stack_repeats_its_secrets_and_an_unseeded_one_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
