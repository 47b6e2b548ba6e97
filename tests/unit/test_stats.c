/* SPDX-License-Identifier: BSD-2-Clause */
/* api/stats.c: counters by name and all of them, connections, the state of a netisr. */
#include <darter/stats.h>

#include "unit/both_nets.h"

static int
look_at_counter(void *arg, const struct darter_counter *c)
{
	unsigned *left = arg;
	uint64_t value;

	assert_int_equal(darter_counter_get(NULL, c->name, &value), 0);
	assert_true(strlen(c->text) > 5);
	assert_int_equal(strncmp(c->name, "drop_", 5) == 0, c->kind == DARTER_COUNTER_DROP);
	/* what only grows: the second look is the later one */
	if (c->kind != DARTER_COUNTER_GAUGE)
		assert_true(value >= c->value);
	return *left > 0 && --*left == 0 ? 5 : 0;
}

static void
every_counter_is_visited_and_has_a_name_of_its_kind(void **state)
{
	unsigned all = 0, three = 3;
	uint64_t value;

	(void)state;
	assert_int_equal(darter_counter_visit(NULL, look_at_counter, &all), 0);
	assert_int_equal(darter_counter_visit(NULL, look_at_counter, &three), 5);
	assert_int_equal(darter_counter_get(NULL, "no_such_counter", &value), -ENOENT);
}

struct seen {
	unsigned count;
	unsigned by_netisr[2];
	uint16_t listen_port;
	int answer;
};

static int
look_at_conn(void *arg, const struct darter_conn *c)
{
	struct seen *s = arg;

	assert_true(c->netisr < 2);
	assert_string_equal(c->state, "ESTABLISHED");
	assert_true(c->local.sin_port == s->listen_port || c->foreign.sin_port == s->listen_port);
	assert_true(c->mss_bytes > 0 && c->cwnd_bytes > 0 && c->rto_us > 0);
	s->count++;
	s->by_netisr[c->netisr]++;
	return s->answer;
}

static uint64_t
sum_of(uint64_t (*value)(const struct darter_netisr_stats *))
{
	struct darter_netisr_stats st[2];

	assert_int_equal(darter_netisr_stats(NULL, 0, &st[0]), 0);
	assert_int_equal(darter_netisr_stats(the_stack, 1, &st[1]), 0);
	return value(&st[0]) + value(&st[1]);
}

static uint64_t
connects(const struct darter_netisr_stats *st)
{
	return st->connects;
}

static uint64_t
accepts(const struct darter_netisr_stats *st)
{
	return st->accepts;
}

static uint64_t
pcbs(const struct darter_netisr_stats *st)
{
	return st->tcp_pcbs;
}

static void
connections_are_visited_and_counted_where_they_live(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int l = darter_socket(AF_INET, SOCK_STREAM, 0), fd[8];
	uint64_t before_c = sum_of(connects), before_a = sum_of(accepts);
	struct darter_netisr_stats st;
	struct seen seen = { 0 };
	socklen_t len = sizeof(a);

	(void)state;
	assert_int_equal(darter_bind(l, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(darter_listen(l, 4), 0);
	assert_int_equal(darter_getsockname(l, (struct sockaddr *)&a, &len), 0);
	for (unsigned i = 0; i < 8; i += 2) {
		fd[i] = darter_socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(darter_connect(fd[i], (struct sockaddr *)&a, sizeof(a)), 0);
		fd[i + 1] = darter_accept(l, NULL, NULL);
		assert_true(fd[i + 1] >= 0);
	}
	seen.listen_port = a.sin_port;
	assert_int_equal(darter_conn_visit(NULL, look_at_conn, &seen), 0);
	assert_int_equal(seen.count, 8);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(darter_netisr_stats(NULL, i, &st), 0);
		assert_false(st.is_attached);
		assert_int_equal(st.tcp_half_open, 0);
	}
	assert_true(sum_of(pcbs) >= 8);
	assert_int_equal(sum_of(connects) - before_c, 4);
	assert_int_equal(sum_of(accepts) - before_a, 4);
	seen = (struct seen){ .listen_port = a.sin_port, .answer = 9 };
	assert_int_equal(darter_conn_visit(NULL, look_at_conn, &seen), 9);
	assert_int_equal(seen.count, 1);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(darter_close(fd[i]), 0);
	assert_int_equal(darter_close(l), 0);
}

static void
netisr_that_is_not_there_is_refused(void **state)
{
	struct darter_netisr_stats st;

	(void)state;
	assert_int_equal(darter_netisr_stats(NULL, 2, &st), -EINVAL);
}

static void
without_a_stack_there_is_nothing_to_tell(void **state)
{
	struct darter_netisr_stats st;
	unsigned all = 0;
	uint64_t value;

	(void)state;
	assert_int_equal(darter_counter_get(NULL, "sockets", &value), -ENETDOWN);
	assert_int_equal(darter_counter_visit(NULL, look_at_counter, &all), -ENETDOWN);
	assert_int_equal(darter_conn_visit(NULL, look_at_conn, NULL), -ENETDOWN);
	assert_int_equal(darter_netisr_stats(NULL, 0, &st), -ENETDOWN);
}

int
main(void)
{
	const struct CMUnitTest with[] = {
		cmocka_unit_test(every_counter_is_visited_and_has_a_name_of_its_kind),
		cmocka_unit_test(connections_are_visited_and_counted_where_they_live),
		cmocka_unit_test(netisr_that_is_not_there_is_refused),
	};
	const struct CMUnitTest without[] = {
		cmocka_unit_test(without_a_stack_there_is_nothing_to_tell),
	};
	int failed = cmocka_run_group_tests_name("stats", with, open_stack, close_stack);

	return failed + cmocka_run_group_tests_name("stats without stack", without, NULL, NULL);
}
