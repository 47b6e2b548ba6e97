/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link of 20 µs: losses are repaired without a stall longer than the smallest RTO, which is
 * 200 ms here (RFC 6298 2.4 says 1 s SHOULD; transport/tcp/tcp_rtt.c says why less). Case S23 e;
 * the loss of all that is left at the end costs one such time-out, as tests/script/rto.c has it.
 */
#include <stdlib.h>

#include "sim/flow.h"
#include "support/cmocka_all.h"

#define RTO_MIN_S	0.200
#define SLACK_S		0.010	/* rounds, delayed ACK */

/* Runs a flow and returns the longest time in which the receiver's application got nothing. */
static double
longest_stall_s(struct sim *m, struct flow *f, double limit_s)
{
	double longest = 0, last = sim_elapsed_s(m), end = last + limit_s;
	uint64_t seen = 0;

	while (!flow_is_over(f) && sim_elapsed_s(m) < end) {
		double now;

		while (flow_act(m, f))
			sim_run(m);
		now = sim_elapsed_s(m);
		if (f->end[1].received != seen) {
			longest = now - last > longest ? now - last : longest;
			seen = f->end[1].received;
			last = now;
		}
		sim_step(m, time_min(flow_next(f), time_add_us(sim_now(m), US_PER_SEC)));
	}
	assert_true(flow_is_over(f));
	return longest;
}

/* 1 GiB in the case's words; a sixteenth meets as many losses with as much more of them. */
static void
losses_on_a_short_link_stall_for_no_longer_than_the_smallest_rto(void **state)
{
	struct flow_plan plan = { .bytes = { 64 << 20, 0 }, .piece_max = 65536,
		.half_close = true, .abort_at = { UINT64_MAX, UINT64_MAX } };
	struct flow f;
	struct sim m;

	(void)state;
	sim_init(&m, &(struct sim_opts){ .seed = 23, .fault = "drop=0.0016,delay_us=10,dir=tx" });
	flow_start(&m, &f, &plan, 7000);
	assert_in_range((int)(longest_stall_s(&m, &f, 3600.0) * 1e3), 1,
	    (int)((RTO_MIN_S + SLACK_S) * 1e3));
	flow_check(&f, false, "short link");
	assert_true(sim_counter(&m, 0, CTR_tcp_retransmits) > 20);
	sim_advance(&m, 300 * US_PER_SEC);
	sim_expect_empty(&m);
	sim_fini(&m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_on_a_short_link_stall_for_no_longer_than_the_smallest_rto),
	};

	return cmocka_run_group_tests_name("sim short_rtt", tests, NULL, NULL);
}
