/* SPDX-License-Identifier: BSD-2-Clause */
/* transport/tcp/tcp_table: every pcb is found at every moment of the table's growth. */
#include "support/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "transport/tcp/tcp_priv.h"

#define MANY 5000u

static const struct siphash_key key = { { 3, 4 } };

static void
fill(struct tcp_pcb *p, unsigned i, bool collide)
{
	memset(p, 0, sizeof(*p));
	p->tuple.local = ipaddr_v4_cpu(1);
	p->tuple.foreign = ipaddr_v4_cpu(2 + i / 60000);
	p->tuple.lport = 80;
	p->tuple.fport = (uint16_t)(i % 60000);
	p->hash = collide ? 12345 : (uint32_t)siphash_tuple(&key, &p->tuple);
}

static void
count_one(void *arg, struct tcp_pcb *p)
{
	(void)p;
	(*(unsigned *)arg)++;
}

static void
grown_by_insertions_then_all_are_found(void **state)
{
	struct tcp_pcb *p = calloc(MANY, sizeof(*p));
	struct tcp_table t;
	unsigned i, k, seen = 0;

	(void)state;
	assert_non_null(p);
	assert_int_equal(tcp_table_init(&t), 0);
	for (i = 0; i < MANY; i++) {
		fill(&p[i], i, false);
		assert_null(tcp_table_lookup(&t, &p[i].tuple, p[i].hash));
		tcp_table_insert(&t, &p[i]);
		for (k = i % 7; k <= i; k += 97)
			assert_ptr_equal(tcp_table_lookup(&t, &p[k].tuple, p[k].hash), &p[k]);
	}
	assert_int_equal(t.count, MANY);
	tcp_table_visit(&t, count_one, &seen);
	assert_int_equal(seen, MANY);
	tcp_table_fini(&t);
	free(p);
}

static void
inserted_and_removed_at_random_then_only_the_rest_is_found(void **state)
{
	struct tcp_pcb *p = calloc(MANY, sizeof(*p));
	bool *is_in = calloc(MANY, sizeof(*is_in));
	struct tcp_table t;
	struct rng rng;
	unsigned step, i, in = 0;

	(void)state;
	assert_non_null(p);
	assert_non_null(is_in);
	rng_init(&rng, 5);
	assert_int_equal(tcp_table_init(&t), 0);
	for (i = 0; i < MANY; i++)
		fill(&p[i], i, false);
	for (step = 0; step < 40000; step++) {
		i = rng_below(&rng, MANY);
		if (is_in[i])
			tcp_table_remove(&t, &p[i]);
		else
			tcp_table_insert(&t, &p[i]);
		is_in[i] = !is_in[i];
		in += is_in[i] ? 1 : -1u;
		assert_int_equal(t.count, in);
		i = rng_below(&rng, MANY);
		assert_ptr_equal(tcp_table_lookup(&t, &p[i].tuple, p[i].hash), is_in[i] ? &p[i]
		    : NULL);
	}
	tcp_table_fini(&t);
	free(is_in);
	free(p);
}

static void
equal_hashes_then_tuples_decide(void **state)
{
	struct tcp_pcb p[3];
	struct tcp_table t;
	unsigned i;

	(void)state;
	assert_int_equal(tcp_table_init(&t), 0);
	for (i = 0; i < 3; i++) {
		fill(&p[i], i, true);
		tcp_table_insert(&t, &p[i]);
	}
	tcp_table_remove(&t, &p[1]);
	assert_ptr_equal(tcp_table_lookup(&t, &p[0].tuple, 12345), &p[0]);
	assert_null(tcp_table_lookup(&t, &p[1].tuple, 12345));
	assert_ptr_equal(tcp_table_lookup(&t, &p[2].tuple, 12345), &p[2]);
	tcp_table_fini(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grown_by_insertions_then_all_are_found),
		cmocka_unit_test(inserted_and_removed_at_random_then_only_the_rest_is_found),
		cmocka_unit_test(equal_hashes_then_tuples_decide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
