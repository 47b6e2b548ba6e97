/* SPDX-License-Identifier: BSD-2-Clause */
/* transport/tcp/tcp_cc: the arithmetic of RFC 5681, RFC 6582, RFC 6928, step by step. */
#include "support/cmocka_all.h"

#include "transport/tcp/tcp_priv.h"

#define MSS	1000u

static struct tcp_pcb
pcb(uint32_t cwnd, uint32_t ssthresh, uint32_t flight)
{
	struct tcp_pcb p = { .state = TCP_ESTABLISHED, .mss = MSS };

	p.snd_una = seq_of(0xfffffe00);
	p.snd_max = seq_add(p.snd_una, flight);
	p.snd_nxt = p.snd_max;
	p.cwnd_bytes = cwnd;
	p.ssthresh_bytes = ssthresh;
	return p;
}

/* RFC 6928 2 */
static void
initial_window_is_ten_segments_but_no_more_than_14600(void **state)
{
	(void)state;
	assert_int_equal(tcp_cc_initial_bytes(1460, 10), 14600);
	assert_int_equal(tcp_cc_initial_bytes(536, 10), 5360);
	assert_int_equal(tcp_cc_initial_bytes(1448, 10), 14480);
	assert_int_equal(tcp_cc_initial_bytes(8960, 10), 17920);
	assert_int_equal(tcp_cc_initial_bytes(1460, 1), 1460);
}

/* RFC 5681 3.1, RFC 3465 2.2 */
static void
slow_start_grows_by_bytes_acknowledged_at_most_two_segments(void **state)
{
	struct tcp_pcb p = pcb(10000, 1u << 30, 10000);

	(void)state;
	tcp_cc_on_ack(&p, 1000, 10000);
	assert_int_equal(p.cwnd_bytes, 11000);
	tcp_cc_on_ack(&p, 2000, 11000);
	assert_int_equal(p.cwnd_bytes, 13000);
	tcp_cc_on_ack(&p, 9000, 13000);
	assert_int_equal(p.cwnd_bytes, 15000);
	/* a peer that splits its ACKs gains nothing */
	tcp_cc_on_ack(&p, 1, 15000);
	assert_int_equal(p.cwnd_bytes, 15001);
	/* RFC 3465 2.3: one segment while a timeout is repaired */
	p.flags |= TCPF_TIMEOUT_SENT;
	tcp_cc_on_ack(&p, 9000, 15001);
	assert_int_equal(p.cwnd_bytes, 16001);
}

/* RFC 5681 3.1 */
static void
congestion_avoidance_grows_by_one_segment_a_window(void **state)
{
	struct tcp_pcb p = pcb(10000, 10000, 10000);
	unsigned i;

	(void)state;
	for (i = 0; i < 9; i++)
		tcp_cc_on_ack(&p, MSS, 10000);
	assert_int_equal(p.cwnd_bytes, 10000);
	tcp_cc_on_ack(&p, MSS, 10000);
	assert_int_equal(p.cwnd_bytes, 11000);
	for (i = 0; i < 11; i++)
		tcp_cc_on_ack(&p, MSS, 11000);
	assert_int_equal(p.cwnd_bytes, 12000);
}

/* RFC 2861 3; case S14 h: a connection limited by its peer's window */
static void
window_that_is_not_used_does_not_grow(void **state)
{
	struct tcp_pcb p = pcb(200000, 1u << 30, 65000);
	unsigned i;

	(void)state;
	for (i = 0; i < 1000; i++)
		tcp_cc_on_ack(&p, 2 * MSS, 65000);
	assert_int_equal(p.cwnd_bytes, 200000);
}

/* RFC 5681 eqn. 4, RFC 6582 3.2 */
static void
recovery_halves_inflates_deflates_and_ends(void **state)
{
	struct tcp_pcb p = pcb(10000, 1u << 30, 10000);

	(void)state;
	tcp_cc_enter_recovery(&p);
	assert_int_equal(p.ssthresh_bytes, 5000);
	assert_int_equal(p.cwnd_bytes, 8000);
	assert_int_equal(p.recover.v, p.snd_max.v);
	tcp_cc_on_dup_in_recovery(&p);
	assert_int_equal(p.cwnd_bytes, 9000);
	/* partial: less what was acknowledged, plus one segment */
	p.snd_una = seq_add(p.snd_una, 3000);
	tcp_cc_on_partial_ack(&p, 3000);
	assert_int_equal(p.cwnd_bytes, 7000);
	/* never below a segment */
	tcp_cc_on_partial_ack(&p, 500000);
	assert_int_equal(p.cwnd_bytes, MSS);
	p.snd_una = p.recover;
	p.snd_max = seq_add(p.recover, 2000);
	tcp_cc_exit_recovery(&p);
	assert_int_equal(p.cwnd_bytes, 3000);	/* min(ssthresh, max(flight, mss) + mss) */
	assert_false(p.flags & TCPF_RECOVERY);
}

static void
small_flight_then_threshold_is_two_segments(void **state)
{
	struct tcp_pcb p = pcb(10000, 1u << 30, 1500);

	(void)state;
	tcp_cc_enter_recovery(&p);
	assert_int_equal(p.ssthresh_bytes, 2 * MSS);
}

/* RFC 5681 3.1: cwnd one segment, ssthresh from the first timeout only */
static void
timeout_then_one_segment_and_threshold_moves_once(void **state)
{
	struct tcp_pcb p = pcb(20000, 1u << 30, 16000);

	(void)state;
	p.retries = 1;
	p.flags |= TCPF_RECOVERY;
	tcp_cc_on_timeout(&p);
	assert_int_equal(p.cwnd_bytes, MSS);
	assert_int_equal(p.ssthresh_bytes, 8000);
	assert_false(p.flags & TCPF_RECOVERY);
	assert_int_equal(p.recover.v, p.snd_max.v);
	p.retries = 2;
	p.snd_max = seq_add(p.snd_una, 1000);
	tcp_cc_on_timeout(&p);
	assert_int_equal(p.ssthresh_bytes, 8000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(initial_window_is_ten_segments_but_no_more_than_14600),
		cmocka_unit_test(slow_start_grows_by_bytes_acknowledged_at_most_two_segments),
		cmocka_unit_test(congestion_avoidance_grows_by_one_segment_a_window),
		cmocka_unit_test(window_that_is_not_used_does_not_grow),
		cmocka_unit_test(recovery_halves_inflates_deflates_and_ends),
		cmocka_unit_test(small_flight_then_threshold_is_two_segments),
		cmocka_unit_test(timeout_then_one_segment_and_threshold_moves_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
