/* SPDX-License-Identifier: BSD-2-Clause */
/* transport/tcp/tcp_opt: what is agreed, what goes on a segment. */
#include "support/cmocka_all.h"

#include "transport/tcp/tcp_priv.h"

#define ALL ((uint32_t)(TCPF_TS | TCPF_SACK | TCPF_WSCALE))

static struct tcp_pcb
offering(uint32_t flags)
{
	return (struct tcp_pcb){ .flags = flags, .mss = 1460, .rcv_wscale = 7 };
}

/* RFC 7323 2.3 */
static void
shift_is_the_smallest_that_expresses_the_buffer(void **state)
{
	static const struct {
		uint32_t bytes;
		uint8_t shift;
	} t[] = {
		{ 0, 0 }, { 65535, 0 }, { 65536, 1 }, { 131071, 1 }, { 131072, 2 }, { 1 << 20, 5 },
		{ 4 << 20, 7 }, { 1 << 30, 14 }, { UINT32_MAX, 14 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(t); i++)
		assert_int_equal(tcp_opt_wscale(t[i].bytes), t[i].shift);
}

static void
only_what_both_offer_is_agreed(void **state)
{
	const struct tcp_opts o = { .has_mss = true, .mss = 1400, .has_wscale = true, .wscale = 9,
		.sack_ok = true, .has_ts = true, .tsval = 77 };
	struct tcp_pcb p = offering(ALL);

	(void)state;
	tcp_negotiate(&p, &o, ALL);
	assert_int_equal(p.flags & ALL, ALL);
	assert_int_equal(p.mss, 1400);
	assert_int_equal(p.snd_wscale, 9);
	assert_int_equal(p.rcv_wscale, 7);
	assert_int_equal(p.ts_recent, 77);
	p = offering(TCPF_SACK);
	tcp_negotiate(&p, &o, TCPF_SACK);
	assert_int_equal(p.flags & ALL, TCPF_SACK);
	/* RFC 7323 2.2: no scaling in either direction */
	assert_int_equal(p.snd_wscale, 0);
	assert_int_equal(p.rcv_wscale, 0);
}

/* RFC 9293 3.7.1 */
static void
peer_without_options_then_defaults(void **state)
{
	const struct tcp_opts none = { 0 };
	struct tcp_pcb p = offering(ALL);

	(void)state;
	tcp_negotiate(&p, &none, ALL);
	assert_int_equal(p.flags & ALL, 0);
	assert_int_equal(p.mss, 536);
	assert_int_equal(p.rcv_wscale, 0);
}

static void
tiny_mss_is_raised_and_large_one_bounded_by_ours(void **state)
{
	struct tcp_opts o = { .has_mss = true, .mss = 1 };
	struct tcp_pcb p = offering(0);

	(void)state;
	tcp_negotiate(&p, &o, 0);
	assert_int_equal(p.mss, TCP_MSS_MIN);
	p = offering(0);
	o.mss = 65000;
	tcp_negotiate(&p, &o, 0);
	assert_int_equal(p.mss, 1460);
}

/* RFC 2883 4.1: the duplicate first, once; RFC 2018 3: three blocks beside a timestamp */
static void
duplicate_is_told_once_and_first(void **state)
{
	struct tcp_reass r;
	struct tcp_pcb p = offering(TCPF_SACK | TCPF_TS);
	struct tcp_opts o;
	unsigned i;

	(void)state;
	tcp_reass_init(&r);
	for (i = 0; i < 5; i++)
		tcp_reass_insert(&r, (struct tcp_span){ seq_of(1000 + 20 * i),
		seq_of(1010 + 20 * i) });
	p.reass = &r;
	p.dsack_start = seq_of(0xfffffffe);
	p.dsack_bytes = 5;
	assert_int_equal(tcp_opt_sack_count(&p), 3);
	tcp_opt_fill(&p, (struct time){ 1u << 20 }, &o);
	assert_true(o.has_ts);
	assert_int_equal(o.tsval, 1024);
	assert_int_equal(o.sack_count, 3);
	assert_int_equal(o.sack[0].start, 0xfffffffe);
	assert_int_equal(o.sack[0].end, 3);
	assert_int_equal(o.sack[1].start, 1080);
	tcp_opt_fill(&p, (struct time){ 0 }, &o);
	assert_int_equal(o.sack_count, 3);
	assert_int_equal(o.sack[0].start, 1080);
	p.flags = TCPF_SACK;
	tcp_opt_fill(&p, (struct time){ 0 }, &o);
	assert_int_equal(o.sack_count, 4);
	p.flags = 0;
	tcp_opt_fill(&p, (struct time){ 0 }, &o);
	assert_int_equal(o.sack_count, 0);
	assert_false(o.has_ts);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shift_is_the_smallest_that_expresses_the_buffer),
		cmocka_unit_test(only_what_both_offer_is_agreed),
		cmocka_unit_test(peer_without_options_then_defaults),
		cmocka_unit_test(tiny_mss_is_raised_and_large_one_bounded_by_ours),
		cmocka_unit_test(duplicate_is_told_once_and_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
