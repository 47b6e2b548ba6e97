/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long streams both ways with 1 % loss whose sequence numbers begin just below 2^32, each side's in
 * turn (case S16 f). Every byte is compared. The MiB of each direction can be given as argument;
 * from 4,096 on the numbers go round completely.
 *
 * An ISN is hash plus clock (RFC 6528): a first run of the same seed measures it, the second starts
 * the clock where it comes out right.
 */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/netisr.h"
#include "sim/flow.h"
#include "support/cmocka_all.h"
#include "transport/tcp/tcp.h"

#define SEED		16
#define PORT		7000
#define US_PER_ISN_TICK	4
#define ISN_TARGET	UINT32_C(0xffffff00)
#define RETRANS_PERCENT	8	/* 1 % is lost, both ways; a timeout sends a few more */

static unsigned mib = 8;

static void
note_iss(void *arg, const struct tcp_conn_info *i)
{
	uint32_t *iss = arg;

	*iss = i->iss.v;
}

static uint32_t
iss_of(struct sim *m, unsigned side)
{
	struct netisr *n = m->s[side]->netisr[0];
	uint32_t iss = 0;

	assert_true(netisr_take(n));
	tcp_visit(n, note_iss, &iss);
	netisr_give(n);
	return iss;
}

/* One flow on a clock that starts shift_us later; the ISNs that both sides chose. */
static void
run_once(uint64_t bytes, uint64_t shift_us, uint32_t ret_iss[2])
{
	const struct flow_plan plan = {
		.bytes = { bytes, bytes },
		.piece_max = 32768,
		.sndbuf = 262144,
		.rcvbuf = 262144,
		.half_close = true,
		.abort_at = { UINT64_MAX, UINT64_MAX },
	};
	uint64_t sent, again;
	struct flow f;
	struct sim m;

	sim_init(&m, &(struct sim_opts){ .seed = SEED, .fault = "drop=0.01,delay_us=1000" });
	clock_advance_us(&m.clock, shift_us);
	m.started = sim_now(&m);
	sim_run(&m);
	flow_start(&m, &f, &plan, PORT);
	/* ARP and the SYN have got there by then; nobody has written yet */
	sim_advance(&m, 10 * US_PER_MS);
	ret_iss[0] = iss_of(&m, 0);
	ret_iss[1] = iss_of(&m, 1);
	assert_true(flows_run(&m, &f, 1, 60.0 + (double)bytes / 100000.0));
	flow_check(&f, false, "long stream");
	assert_int_equal(f.end[0].received, bytes);
	assert_int_equal(f.end[1].received, bytes);
	sent = sim_counter(&m, 0, CTR_tcp_segs_sent) + sim_counter(&m, 1, CTR_tcp_segs_sent);
	again = sim_counter(&m, 0, CTR_tcp_retransmits) + sim_counter(&m, 1, CTR_tcp_retransmits);
	assert_true(again <= sent / 100 * RETRANS_PERCENT + 50);
	if (bytes > 1)
		printf("%llu MiB each way: %.1f s of virtual time, %llu of %llu segments again\n",
		    (unsigned long long)(bytes >> 20), sim_elapsed_s(&m),
		    (unsigned long long)again, (unsigned long long)sent);
	sim_advance(&m, 2000 * US_PER_SEC);
	sim_expect_empty(&m);
	sim_fini(&m);
}

static void
stream_over_the_wrap(unsigned side)
{
	uint32_t iss[2];

	run_once(1, 0, iss);
	assert_int_not_equal(iss[side], 0);
	run_once((uint64_t)mib << 20, (uint64_t)(uint32_t)(ISN_TARGET - iss[side]) *
	    US_PER_ISN_TICK, iss);
	assert_in_range(iss[side], ISN_TARGET - 200, ISN_TARGET + 200);
}

/* Case S16 f */
static void
stream_whose_connector_starts_at_the_wrap_keeps_its_bytes(void **state)
{
	(void)state;
	stream_over_the_wrap(0);
}

/* Case S16 f */
static void
stream_whose_listener_starts_at_the_wrap_keeps_its_bytes(void **state)
{
	(void)state;
	stream_over_the_wrap(1);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream_whose_connector_starts_at_the_wrap_keeps_its_bytes),
		cmocka_unit_test(stream_whose_listener_starts_at_the_wrap_keeps_its_bytes),
	};

	if (argc > 1)
		mib = (unsigned)atoi(argv[1]);
	return cmocka_run_group_tests_name("sim long_stream", tests, NULL, NULL);
}
