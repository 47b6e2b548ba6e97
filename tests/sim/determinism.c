/* SPDX-License-Identifier: BSD-2-Clause */
/* Law 4: the same seed gives the same packets at the same moments, another seed others. */
#include <stdio.h>

#include "sim/flow.h"
#include "support/cmocka_all.h"

static uint64_t
hash_of_run(uint64_t seed, uint64_t *ret_frames)
{
	const struct flow_plan plan = {
		.bytes = { 200000, 50000 },
		.pace_us = 3000,
		.piece_max = 8000,
		.half_close = true,
		.abort_at = { UINT64_MAX, UINT64_MAX },
	};
	struct flow f[3];
	struct sim m;
	uint64_t hash;
	unsigned i;

	sim_init(&m, &(struct sim_opts){
		.seed = seed,
		.fault = "drop=0.03,dup=0.01,reorder=0.02,corrupt=0.01,delay_us=2000-9000",
	});
	for (i = 0; i < 3; i++)
		flow_start(&m, &f[i], &plan, (uint16_t)(7000 + i));
	assert_true(flows_run(&m, f, 3, 3600.0));
	for (i = 0; i < 3; i++)
		flow_check(&f[i], false, "determinism");
	sim_advance(&m, 200 * US_PER_SEC);
	hash = m.hash;
	*ret_frames = m.frames;
	sim_fini(&m);
	return hash;
}

static void
same_seed_gives_same_packets(void **state)
{
	uint64_t frames_a, frames_b, seed;

	(void)state;
	for (seed = 1; seed <= 5; seed++) {
		uint64_t a = hash_of_run(seed, &frames_a), b = hash_of_run(seed, &frames_b);

		assert_true(frames_a > 300);
		assert_int_equal(frames_a, frames_b);
		assert_true(a == b);
	}
}

static void
another_seed_gives_other_packets(void **state)
{
	uint64_t frames, a, b;

	(void)state;
	a = hash_of_run(1, &frames);
	b = hash_of_run(2, &frames);
	assert_true(a != b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_seed_gives_same_packets),
		cmocka_unit_test(another_seed_gives_other_packets),
	};

	return cmocka_run_group_tests_name("sim determinism", tests, NULL, NULL);
}
