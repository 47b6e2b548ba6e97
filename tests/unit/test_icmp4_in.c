/* SPDX-License-Identifier: BSD-2-Clause */
/* ICMP in: errors and their meaning, what is not believed (RFC 1122 3.2.2, 4.2.3.9, RFC 5927). */
#include "link_rig.h"
#include "inet/inet_priv.h"

static struct rig rig;

static struct {
	unsigned count;
	struct ip_error e;
	struct ip_meta meta;
	uint8_t quoted[8];
} told;

static void
on_error(struct netisr *n, const struct ip_meta *meta, const uint8_t *quoted, uint32_t len,
    const struct ip_error *e)
{
	(void)n;
	assert_true(len >= 8);
	told.count++;
	told.e = *e;
	told.meta = *meta;
	memcpy(told.quoted, quoted, 8);
}

static const struct ip_proto proto = { .error = on_error };

static int
setup(void **state)
{
	(void)state;
	rig_init(&rig, 1, NULL);
	rig_learn_peer(&rig);
	ip_register(rig.s, IP_PROTO_UDP, &proto);
	memset(&told, 0, sizeof(told));
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	rig_expect_no_leak(&rig);
	rig_fini(&rig);
	return 0;
}

/* What we are supposed to have sent. */
static size_t
our_datagram(uint8_t *packet, const struct ip4_view *fields)
{
	uint8_t frame[RIG_FRAME_MAX];
	struct ip4_view v = *fields;
	size_t len;

	if (v.src.raw == 0)
		v.src = be32_from_cpu(RIG_OWN_IP);
	if (v.dst.raw == 0)
		v.dst = be32_from_cpu(RIG_FAR_IP);
	len = rig_udp(frame, &v, 1111, 2222) - 14;
	memcpy(packet, frame + 14, len);
	return len;
}

/* An ICMP message from the peer that quotes `quoted`. */
static size_t
icmp(uint8_t *frame, uint8_t type, uint8_t code, uint16_t mtu, const uint8_t *quoted, size_t len)
{
	struct icmp4_view v = { .type = type, .code = code, .next_mtu_bytes = mtu, .data = quoted,
	    .data_bytes = len };
	uint8_t msg[RIG_FRAME_MAX];
	size_t n = icmp4_emit(msg, &v);

	return rig_ip4(frame, &(struct ip4_view){ .proto = IP_PROTO_ICMP }, msg, n);
}

static void
error_is_told_with_the_quoted_flow(void **state)
{
	uint8_t frame[RIG_FRAME_MAX], q[RIG_FRAME_MAX];
	size_t q_len = our_datagram(q, &(struct ip4_view){ 0 });

	(void)state;
	rig_inject(&rig, frame, icmp(frame, ICMP4_UNREACH, ICMP4_UNREACH_PORT, 0, q, q_len));
	assert_int_equal(told.count, 1);
	assert_int_equal(told.e.err, ECONNREFUSED);
	assert_false(told.e.is_soft);
	assert_int_equal(be32_to_cpu(told.meta.src.v4), RIG_OWN_IP);
	assert_int_equal(be32_to_cpu(told.meta.dst.v4), RIG_FAR_IP);
	assert_int_equal(told.meta.proto, IP_PROTO_UDP);
	assert_int_equal(load_be16(told.quoted), 1111);
	assert_int_equal(load_be16(told.quoted + 2), 2222);
	assert_int_equal(rig_count(&rig, CTR_icmp_errors_rcvd), 1);
}

/* RFC 792: eight bytes of the transport's are enough */
static void
shortest_quote_is_enough_and_less_is_not(void **state)
{
	uint8_t frame[RIG_FRAME_MAX], q[RIG_FRAME_MAX];

	(void)state;
	our_datagram(q, &(struct ip4_view){ 0 });
	rig_inject(&rig, frame, icmp(frame, ICMP4_UNREACH, 1, 0, q, 28));
	assert_int_equal(told.count, 1);
	rig_inject(&rig, frame, icmp(frame, ICMP4_UNREACH, 1, 0, q, 27));
	rig_inject(&rig, frame, icmp(frame, ICMP4_UNREACH, 1, 0, q, 10));
	rig_inject(&rig, frame, icmp(frame, ICMP4_UNREACH, 1, 0, q, 0));
	assert_int_equal(told.count, 1);
	assert_int_equal(rig_count(&rig, CTR_drop_icmp_bad), 3);
}

static void
errors_have_the_meaning_of_rfc_1122(void **state)
{
	static const struct {
		uint8_t type, code;
		int err;
		bool is_soft;
	} rows[] = {
		{ ICMP4_UNREACH, 0, ENETUNREACH, true },
		{ ICMP4_UNREACH, 1, EHOSTUNREACH, true },
		{ ICMP4_UNREACH, 2, ENOPROTOOPT, false },
		{ ICMP4_UNREACH, 3, ECONNREFUSED, false },
		{ ICMP4_UNREACH, 5, EOPNOTSUPP, true },
		{ ICMP4_UNREACH, 13, EHOSTUNREACH, true },
		{ ICMP4_TIME_EXCEEDED, 0, EHOSTUNREACH, true },
		{ ICMP4_TIME_EXCEEDED, 1, EHOSTUNREACH, true },
		{ ICMP4_PARAM_PROBLEM, 0, EPROTO, true },
	};
	struct ip_error e;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		assert_true(icmp4_error_of(rows[i].type, rows[i].code, 0, 1500, &e));
		assert_int_equal(e.err, rows[i].err);
		assert_int_equal(e.is_soft, rows[i].is_soft);
	}
	assert_false(icmp4_error_of(ICMP4_UNREACH, 16, 0, 1500, &e));
	assert_false(icmp4_error_of(ICMP4_TIME_EXCEEDED, 2, 0, 1500, &e));
	assert_false(icmp4_error_of(ICMP4_REDIRECT, 0, 0, 1500, &e));
}

/* RFC 1191 3, 7.1 */
static void
mtu_is_the_routers_or_the_next_plateau(void **state)
{
	struct ip_error e;

	(void)state;
	assert_true(icmp4_error_of(ICMP4_UNREACH, 4, 1400, 1500, &e));
	assert_int_equal(e.err, EMSGSIZE);
	assert_true(e.is_soft);
	assert_int_equal(e.mtu, 1400);
	assert_true(icmp4_error_of(ICMP4_UNREACH, 4, 0, 1500, &e));
	assert_int_equal(e.mtu, 1492);
	assert_true(icmp4_error_of(ICMP4_UNREACH, 4, 0, 1492, &e));
	assert_int_equal(e.mtu, 1006);
	assert_true(icmp4_error_of(ICMP4_UNREACH, 4, 0, 200, &e));
	assert_int_equal(e.mtu, 68);
	/* lies */
	assert_false(icmp4_error_of(ICMP4_UNREACH, 4, 67, 1500, &e));
	assert_false(icmp4_error_of(ICMP4_UNREACH, 4, 1500, 1500, &e));
	assert_false(icmp4_error_of(ICMP4_UNREACH, 4, 0, 68, &e));
}

static void
error_about_what_we_never_sent_is_not_believed(void **state)
{
	static const struct ip4_view quotes[] = {
		{ .src = { 0x0300000a } },				/* not from us */
		{ .dst = { 0xff00000a } },				/* to a broadcast */
		{ .dst = { 0x010000e0 } },				/* to a group */
		{ .frag_offset_bytes = 8 },				/* a later fragment */
	};
	uint8_t frame[RIG_FRAME_MAX], q[RIG_FRAME_MAX];

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(quotes); i++) {
		size_t len = our_datagram(q, &quotes[i]);

		rig_inject(&rig, frame, icmp(frame, ICMP4_UNREACH, 3, 0, q, len));
		assert_int_equal(told.count, 0);
		assert_int_equal(rig_count(&rig, CTR_drop_icmp_bad), i + 1);
	}
	/* a protocol that nobody speaks */
	our_datagram(q, &(struct ip4_view){ 0 });
	q[9] = 200;
	rig_inject(&rig, frame, icmp(frame, ICMP4_UNREACH, 3, 0, q, 36));
	assert_int_equal(rig_count(&rig, CTR_drop_icmp_bad), 5);
	assert_int_equal(told.count, 0);
}

static void
damaged_message_is_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX], q[RIG_FRAME_MAX];
	size_t len = our_datagram(q, &(struct ip4_view){ 0 });

	(void)state;
	len = icmp(frame, ICMP4_UNREACH, 3, 0, q, len);
	frame[len - 1] ^= 1;
	rig_inject(&rig, frame, len);
	assert_int_equal(rig_count(&rig, CTR_drop_icmp_csum), 1);
	len = rig_ip4(frame, &(struct ip4_view){ .proto = IP_PROTO_ICMP }, "\x08\0\xf7\xff\0\0\0",
	    7);
	rig_inject(&rig, frame, len);
	assert_int_equal(rig_count(&rig, CTR_drop_icmp_short), 1);
	assert_int_equal(told.count, 0);
	rig_expect_silence(&rig);
}

/* RFC 6633; RFC 1122 3.2.2.2 against the security of the host */
static void
source_quench_redirect_and_replies_are_not_acted_upon(void **state)
{
	uint8_t frame[RIG_FRAME_MAX], q[RIG_FRAME_MAX];
	size_t len = our_datagram(q, &(struct ip4_view){ 0 });
	static const uint8_t types[] = { ICMP4_SOURCE_QUENCH, ICMP4_REDIRECT, ICMP4_ECHO_REPLY, 13,
	    17, 42 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(types); i++) {
		rig_inject(&rig, frame, icmp(frame, types[i], 0, 0, q, len));
		assert_int_equal(rig_count(&rig, CTR_drop_icmp_type), i + 1);
	}
	assert_int_equal(told.count, 0);
	rig_expect_silence(&rig);
}

/* RFC 1122 3.2.2.6: may be discarded silently, and is unless the operator wants it */
static void
echo_to_a_broadcast_is_answered_only_by_knob(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	struct ip4_view v = { .dst = be32_from_cpu(0x0a0000ff) };
	const struct wire_frame *f;
	size_t len = rig_echo(frame, &v, 1);

	(void)state;
	rig_inject(&rig, frame, len);
	rig_expect_silence(&rig);
	rig_knob(&rig, "net.inet.icmp.bmcastecho", "1");
	rig_inject(&rig, frame, len);
	f = rig_sent(&rig);
	/* from an address of ours, never from the broadcast */
	assert_int_equal(load_be32(f->bytes + 26), RIG_OWN_IP);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(error_is_told_with_the_quoted_flow),
		T(shortest_quote_is_enough_and_less_is_not),
		T(errors_have_the_meaning_of_rfc_1122),
		T(mtu_is_the_routers_or_the_next_plateau),
		T(error_about_what_we_never_sent_is_not_believed),
		T(damaged_message_is_dropped),
		T(source_quench_redirect_and_replies_are_not_acted_upon),
		T(echo_to_a_broadcast_is_answered_only_by_knob),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
