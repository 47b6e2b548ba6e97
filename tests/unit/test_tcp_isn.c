/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transport/tcp/tcp_isn: numbers follow clock, tuple and key (RFC 6528), offsets only the
 * addresses.
 */
#include "support/cmocka_all.h"

#include "transport/tcp/tcp_priv.h"

static const struct siphash_key key = { { 1, 2 } };

static struct tuple
some_tuple(void)
{
	return (struct tuple){ ipaddr_v4_cpu(0x0a000001), ipaddr_v4_cpu(0x0a000002), 1000, 80 };
}

/* RFC 9293 3.4.1: incremented every 4 microseconds */
static void
isn_grows_by_one_every_4_us_and_wraps(void **state)
{
	struct tuple t = some_tuple();
	struct seq a = tcp_isn(&key, &t, (struct time){ 0 });

	(void)state;
	assert_int_equal(tcp_isn(&key, &t, (struct time){ 3 }).v, a.v);
	assert_int_equal(tcp_isn(&key, &t, (struct time){ 4 }).v, a.v + 1);
	assert_int_equal(tcp_isn(&key, &t, (struct time){ US_PER_SEC }).v, a.v + 250000);
	/* round in 2^34 us, about 4.8 hours */
	assert_int_equal(tcp_isn(&key, &t, (struct time){ UINT64_C(1) << 34 }).v, a.v);
}

/* RFC 6528 3 */
static void
isn_depends_on_every_part_of_the_tuple_and_on_the_key(void **state)
{
	const struct siphash_key other_key = { { 1, 3 } };
	struct time now = { 12345 };
	struct tuple t = some_tuple();
	struct tuple v[5] = { t, t, t, t, t };
	struct seq a = tcp_isn(&key, &t, now);
	int i;

	(void)state;
	v[1].lport++;
	v[2].fport++;
	v[3].local = ipaddr_v4_cpu(0x0a000003);
	v[4].foreign = ipaddr_v4_cpu(0x0a000003);
	assert_int_equal(tcp_isn(&key, &v[0], now).v, a.v);
	for (i = 1; i < 5; i++)
		assert_int_not_equal(tcp_isn(&key, &v[i], now).v, a.v);
	assert_int_not_equal(tcp_isn(&other_key, &t, now).v, a.v);
	/* swapped ends are another tuple */
	v[1] = (struct tuple){ t.foreign, t.local, t.fport, t.lport };
	assert_int_not_equal(tcp_isn(&key, &v[1], now).v, a.v);
}

/* RFC 7323 5.4; RFC 6191's reuse of TIME_WAIT rests on it */
static void
timestamp_offset_is_one_for_all_ports_of_an_address_pair(void **state)
{
	struct tuple a = some_tuple(), b = a, c = a;

	(void)state;
	b.lport = 2222;
	b.fport = 443;
	c.foreign = ipaddr_v4_cpu(0x0a000009);
	assert_int_equal(tcp_ts_offset(&key, &a), tcp_ts_offset(&key, &b));
	assert_int_not_equal(tcp_ts_offset(&key, &a), tcp_ts_offset(&key, &c));
}

/* RFC 7323 5.4: between 1 ms and 1 s a tick */
static void
timestamp_clock_ticks_in_its_range(void **state)
{
	uint32_t a = tcp_ts_now(7, (struct time){ 0 });

	(void)state;
	assert_int_equal(tcp_ts_now(7, (struct time){ 1000 }), a);
	assert_in_range(tcp_ts_now(7, (struct time){ 1000 * US_PER_SEC }) - a, 1000, 1000000);
	assert_in_range(tcp_ticks_to_ms(tcp_tick32((struct time){ 1000 * US_PER_SEC })), 998000,
	    1002000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(isn_grows_by_one_every_4_us_and_wraps),
		cmocka_unit_test(isn_depends_on_every_part_of_the_tuple_and_on_the_key),
		cmocka_unit_test(timestamp_offset_is_one_for_all_ports_of_an_address_pair),
		cmocka_unit_test(timestamp_clock_ticks_in_its_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
