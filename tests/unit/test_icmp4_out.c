/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMP out: echo replies, errors and when there are none (RFC 1122 3.2.2), the rate limit (RFC 1812
 * 4.3.2.8).
 */
#include "link_rig.h"

static struct rig rig;

/* A protocol without a port: refuses all it gets. */
static void
on_input(struct netisr *n, struct pkt *p, const struct ip_meta *meta)
{
	icmp_send_unreach(n, p, meta, IP_UNREACH_PORT);
	pkt_free(n, p);
}

static const struct ip_proto proto = { .input = on_input };

static int
setup(void **state)
{
	(void)state;
	rig_init(&rig, 1, NULL);
	rig_learn_peer(&rig);
	ip_register(rig.s, IP_PROTO_UDP, &proto);
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

static void
echo_reply_is_the_request_turned_round(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	struct ip4_view ip = { .tos = 0x29 }, v;
	const struct wire_frame *f;
	struct icmp4_view i;
	size_t len = rig_echo(frame, &ip, 77);

	(void)state;
	rig_inject(&rig, frame, len);
	f = rig_sent(&rig);
	assert_int_equal(f->len, len);
	assert_int_equal(ip4_parse(f->bytes + 14, f->len - 14, &v), WIRE_OK);
	assert_int_equal(be32_to_cpu(v.src), RIG_OWN_IP);
	assert_int_equal(be32_to_cpu(v.dst), RIG_PEER_IP);
	assert_int_equal(v.tos, 0x28);	/* the request's, but for ECN */
	assert_true(icmp4_csum_ok(v.payload, v.payload_bytes));
	assert_int_equal(icmp4_parse(v.payload, v.payload_bytes, &i), WIRE_OK);
	assert_int_equal(i.type, ICMP4_ECHO_REPLY);
	assert_int_equal(i.id, 0x1234);
	assert_int_equal(i.seq, 77);
	assert_memory_equal(i.data, frame + 42, 32);
	assert_int_equal(rig_count(&rig, CTR_icmp_echo_replies), 1);
}

static void
echo_of_the_whole_mtu_is_answered(void **state)
{
	static uint8_t data[1472], msg[1480], frame[RIG_FRAME_MAX];
	struct icmp4_view v = { .type = ICMP4_ECHO, .data = data, .data_bytes = sizeof(data) };

	(void)state;
	memset(data, 0x5a, sizeof(data));
	icmp4_emit(msg, &v);
	rig_inject(&rig, frame, rig_ip4(frame, &(struct ip4_view){ .proto = IP_PROTO_ICMP }, msg,
	    sizeof(msg)));
	assert_int_equal(rig_sent(&rig)->len, 1514);
}

/* RFC 1122 3.2.2.6: the checksum's change by the type is carried over every sum */
static void
reply_checksum_is_right_for_any_request(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];

	(void)state;
	for (unsigned seq = 0; seq < 65536; seq += 251) {
		const struct wire_frame *f;

		rig_inject(&rig, frame, rig_echo(frame, &(struct ip4_view){ 0 }, (uint16_t)seq));
		f = rig_sent(&rig);
		assert_true(icmp4_csum_ok(f->bytes + 34, f->len - 34));
	}
}

static void
port_unreachable_quotes_header_and_data(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = rig_udp(frame, &(struct ip4_view){ 0 }, 1000, 53);
	const struct wire_frame *f;

	(void)state;
	rig_inject(&rig, frame, len);
	f = rig_sent(&rig);
	assert_int_equal(f->bytes[15], 0xc0);
	assert_int_equal(f->bytes[34], ICMP4_UNREACH);
	assert_int_equal(f->bytes[35], ICMP4_UNREACH_PORT);
	assert_true(icmp4_csum_ok(f->bytes + 34, f->len - 34));
	assert_int_equal(f->len, 42 + len - 14);
	assert_memory_equal(f->bytes + 42, frame + 14, len - 14);
}

/* RFC 1812 4.3.2.3 */
static void
long_packets_are_quoted_up_to_576_bytes(void **state)
{
	static uint8_t body[1400], frame[RIG_FRAME_MAX];
	size_t len = rig_ip4(frame, &(struct ip4_view){ .proto = IP_PROTO_UDP }, body,
	    sizeof(body));

	(void)state;
	rig_inject(&rig, frame, len);
	assert_int_equal(rig_sent(&rig)->len, 14 + 576);
}

/* RFC 1122 3.2.2 */
static void
groups_and_icmp_errors_elicit_no_error(void **state)
{
	uint8_t frame[RIG_FRAME_MAX], msg[64];
	struct ip4_view bcast = { .dst = be32_from_cpu(0x0a0000ff) },
	    group = { .dst = be32_from_cpu(0xe0000001) };
	struct icmp4_view e = { .type = ICMP4_TIME_EXCEEDED, .data = frame, .data_bytes = 28 };
	struct netisr *n = rig.s->netisr[0];
	struct ip_meta meta = {
		.src = ipaddr_v4_cpu(RIG_PEER_IP), .dst = ipaddr_v4_cpu(RIG_OWN_IP),
		    .proto = IP_PROTO_ICMP, .ip_hlen = 20,
	};
	struct pkt *p;

	(void)state;
	rig_inject(&rig, frame, rig_udp(frame, &bcast, 1, 2));
	rig_inject(&rig, frame, rig_udp(frame, &group, 1, 2));
	rig_expect_silence(&rig);
	assert_true(netisr_take(n));
	p = rig_pkt(n, 20);
	pkt_pull(p, 20);
	memcpy(pkt_put(p, 36), msg, icmp4_emit(msg, &e));
	icmp_send_unreach(n, p, &meta, IP_UNREACH_PROTO);
	netisr_round(n);
	rig_expect_silence(&rig);
	/* but an echo request may be reported */
	p->data[0] = ICMP4_ECHO;
	icmp_send_unreach(n, p, &meta, IP_UNREACH_PROTO);
	netisr_round(n);
	rig_sent(&rig);
	pkt_free(n, p);
	netisr_give(n);
}

static unsigned
errors_sent(unsigned asked)
{
	uint8_t frame[RIG_FRAME_MAX];
	unsigned sent = 0;
	struct wire_frame *f;

	for (unsigned i = 0; i < asked; i++)
		rig_inject(&rig, frame, rig_udp(frame, &(struct ip4_view){ 0 }, 1, 2));
	while ((f = wire_dev_take(rig.w)) != NULL) {
		free(f);
		sent++;
	}
	return sent;
}

/* 200 a second, a tenth of a second's worth at once */
static void
errors_are_limited_by_a_token_bucket(void **state)
{
	(void)state;
	assert_int_equal(errors_sent(50), 20);
	assert_int_equal(rig_count(&rig, CTR_drop_icmp_rate), 30);
	rig_advance_ms(&rig, 10);
	assert_int_equal(errors_sent(50), 2);
	rig_advance_ms(&rig, 1000);
	assert_int_equal(errors_sent(50), 20);
	rig_knob(&rig, "net.inet.icmp.rate_pps", "1");
	rig_advance_ms(&rig, 1000);
	assert_int_equal(errors_sent(5), 1);
	rig_knob(&rig, "net.inet.icmp.rate_pps", "0");
	rig_advance_ms(&rig, 5000);
	assert_int_equal(errors_sent(5), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(echo_reply_is_the_request_turned_round),
		T(echo_of_the_whole_mtu_is_answered),
		T(reply_checksum_is_right_for_any_request),
		T(port_unreachable_quotes_header_and_data),
		T(long_packets_are_quoted_up_to_576_bytes),
		T(groups_and_icmp_errors_elicit_no_error),
		T(errors_are_limited_by_a_token_bucket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
