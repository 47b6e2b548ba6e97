/* SPDX-License-Identifier: BSD-2-Clause */
/* The stateless responder: its answer to each kind of frame, made from that frame alone. */
#include "link_rig.h"
#include "link/dev_respond.h"
#include "wire/tcp.h"

static struct darter_stack *s;
static struct dev *d;
static struct netisr *n;
static struct clock the_clock;

static void
start(const char *device)
{
	clock_init_fake(&the_clock, (struct time){ 1000000 });
	s = rig_stack(&the_clock, (const char *const[]){ device, "port.p0.addr=10.0.0.1/24",
	    NULL });
	d = dev_find(s, "p0");
	n = s->netisr[0];
	assert_true(netisr_take(n));
}

static void
stop(void)
{
	netisr_give(n);
	stack_free(s);
}

static struct respond_stats
stats(void)
{
	struct respond_stats st;

	assert_int_equal(respond_stats(d, &st), 0);
	return st;
}

/* Gives the frame to the device; its answer, or NULL. */
static struct pkt *
ask(const uint8_t *frame, size_t len)
{
	struct pkt *p = pkt_alloc(n), *answer = NULL;

	memcpy(pkt_put(p, (uint16_t)len), frame, len);
	assert_int_equal(d->ops->tx(d, n, 0, &p, 1), 1);
	if (d->ops->rx(d, n, 0, &answer, 1) == 0)
		return NULL;
	return answer;
}

/* The answer's IP packet goes back to who asked, from whom was asked. */
static struct ip4_view
answer_ip(const struct pkt *p)
{
	struct ip4_view v;

	assert_memory_equal(p->data, RIG_PEER_MAC.b, 6);
	assert_int_equal(ip4_parse(p->data + 14, p->len - 14u, &v), WIRE_OK);
	assert_true(ip4_csum_ok(p->data + 14, v.hdr_bytes));
	assert_int_equal(be32_to_cpu(v.src), RIG_OWN_IP);
	assert_int_equal(be32_to_cpu(v.dst), RIG_PEER_IP);
	return v;
}

static struct pkt *
ask_tcp(uint32_t seq, uint32_t ack, uint8_t flags, const void *payload, size_t bytes)
{
	struct tcp_view t = { .sport = 5000, .dport = 80, .seq = seq, .ack = ack, .flags = flags,
	    .hdr_bytes = 20 };
	uint8_t frame[RIG_FRAME_MAX], msg[1600];

	tcp_emit(msg, &t);
	memcpy(msg + 20, payload, bytes);
	return ask(frame, rig_ip4(frame, &(struct ip4_view){ .proto = IP_PROTO_TCP }, msg, 20 +
	    bytes));
}

static struct tcp_view
answer_tcp(const struct pkt *p)
{
	struct ip4_view v = answer_ip(p);
	struct tcp_view t;

	assert_int_equal(v.proto, IP_PROTO_TCP);
	assert_int_equal(tcp_parse(v.payload, v.payload_bytes, &t), WIRE_OK);
	assert_int_equal(t.sport, 80);
	assert_int_equal(t.dport, 5000);
	return t;
}

static void
arp_is_answered_for_any_address(void **state)
{
	uint8_t frame[64];
	struct arp_view a;
	struct pkt *p;

	(void)state;
	start("port.p0.device=respond:");
	p = ask(frame, rig_arp(frame, ARP_OP_REQUEST, RIG_PEER_MAC, RIG_PEER_IP, 0x0a0000c8));
	assert_non_null(p);
	assert_int_equal(arp_parse(p->data + 14, p->len - 14u, &a), WIRE_OK);
	assert_int_equal(a.op, ARP_OP_REPLY);
	assert_int_equal(be32_to_cpu(a.sender_ip), 0x0a0000c8);
	assert_memory_equal(a.target_mac.b, RIG_PEER_MAC.b, 6);
	pkt_free(n, p);
	/* not to an announcement */
	assert_null(ask(frame, rig_arp(frame, ARP_OP_REQUEST, RIG_PEER_MAC, RIG_PEER_IP,
	    RIG_PEER_IP)));
	stop();
}

static void
echo_request_gets_its_reply(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	struct icmp4_view i;
	struct ip4_view v;
	struct pkt *p;

	(void)state;
	start("port.p0.device=respond:");
	p = ask(frame, rig_echo(frame, &(struct ip4_view){ 0 }, 9));
	assert_non_null(p);
	v = answer_ip(p);
	assert_true(icmp4_csum_ok(v.payload, v.payload_bytes));
	assert_int_equal(icmp4_parse(v.payload, v.payload_bytes, &i), WIRE_OK);
	assert_int_equal(i.type, ICMP4_ECHO_REPLY);
	assert_int_equal(i.seq, 9);
	assert_int_equal(i.data_bytes, 32);
	pkt_free(n, p);
	stop();
}

static void
syn_gets_a_syn_ack_that_is_the_same_every_time(void **state)
{
	struct pkt *p;
	struct tcp_view t;
	uint32_t isn;

	(void)state;
	start("port.p0.device=respond:");
	p = ask_tcp(1000, 0, TH_SYN, "", 0);
	assert_non_null(p);
	t = answer_tcp(p);
	isn = t.seq;
	assert_int_equal(t.flags, TH_SYN | TH_ACK);
	assert_int_equal(t.ack, 1001);
	pkt_free(n, p);
	p = ask_tcp(1000, 0, TH_SYN, "", 0);
	assert_int_equal(answer_tcp(p).seq, isn);
	pkt_free(n, p);
	p = ask_tcp(2000, 0, TH_SYN, "", 0);
	assert_int_not_equal(answer_tcp(p).seq, isn);
	pkt_free(n, p);
	stop();
}

static void
window_scale_is_offered_only_when_asked(void **state)
{
	struct tcp_opts o = { .has_mss = true, .mss = 1460, .has_wscale = true, .wscale = 3 }, back;
	struct tcp_view t = { .sport = 5000, .dport = 80, .seq = 1, .flags = TH_SYN };
	uint8_t frame[RIG_FRAME_MAX], msg[64];
	size_t opts_bytes = tcp_opts_emit(msg + 20, &o, true);
	struct pkt *p;

	(void)state;
	start("port.p0.device=respond:");
	p = ask_tcp(1, 0, TH_SYN, "", 0);
	t = answer_tcp(p);
	tcp_opts_parse(t.opts, t.opts_bytes, true, &back);
	assert_true(back.has_mss && !back.has_wscale);
	pkt_free(n, p);
	t = (struct tcp_view){ .sport = 5000, .dport = 80, .seq = 1, .flags = TH_SYN };
	t.hdr_bytes = (uint8_t)(20 + opts_bytes);
	tcp_emit(msg, &t);
	p = ask(frame, rig_ip4(frame, &(struct ip4_view){ .proto = IP_PROTO_TCP }, msg,
	    t.hdr_bytes));
	t = answer_tcp(p);
	tcp_opts_parse(t.opts, t.opts_bytes, true, &back);
	assert_true(back.has_mss && back.has_wscale && !back.has_ts && !back.sack_ok);
	pkt_free(n, p);
	stop();
}

static void
data_is_acknowledged_and_echoed_on_wish(void **state)
{
	struct tcp_view t;
	struct pkt *p;

	(void)state;
	start("port.p0.device=respond:");
	p = ask_tcp(1001, 77, TH_ACK | TH_PUSH, "hello", 5);
	t = answer_tcp(p);
	assert_int_equal(t.flags, TH_ACK);
	assert_int_equal(t.seq, 77);
	assert_int_equal(t.ack, 1006);
	assert_int_equal(t.payload_bytes, 0);
	assert_int_equal(stats().data_bytes, 5);
	pkt_free(n, p);
	stop();
	start("port.p0.device=respond:echo=on");
	p = ask_tcp(1001, 77, TH_ACK | TH_PUSH, "hello", 5);
	t = answer_tcp(p);
	assert_int_equal(t.flags, TH_ACK | TH_PUSH);
	assert_int_equal(t.payload_bytes, 5);
	assert_memory_equal(t.payload, "hello", 5);
	pkt_free(n, p);
	stop();
}

static void
fin_is_answered_by_fin_and_ack(void **state)
{
	struct tcp_view t;
	struct pkt *p;

	(void)state;
	start("port.p0.device=respond:");
	p = ask_tcp(1001, 77, TH_ACK | TH_FIN, "ab", 2);
	t = answer_tcp(p);
	assert_int_equal(t.flags, TH_ACK | TH_FIN);
	assert_int_equal(t.ack, 1004);
	assert_int_equal(t.seq, 77);
	assert_int_equal(stats().fins, 1);
	pkt_free(n, p);
	stop();
}

static void
pure_acks_and_resets_get_no_answer(void **state)
{
	(void)state;
	start("port.p0.device=respond:");
	assert_null(ask_tcp(1001, 77, TH_ACK, "", 0));
	assert_null(ask_tcp(1001, 77, TH_RST | TH_ACK, "", 0));
	assert_null(ask_tcp(1001, 77, TH_SYN | TH_ACK, "", 0));
	assert_int_equal(stats().silent, 3);
	stop();
}

static void
datagram_comes_back_with_a_real_checksum_on_wish(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	struct ip4_view v;
	struct udp_view u;
	struct pkt *p;

	(void)state;
	start("port.p0.device=respond:csum=off");
	assert_int_equal(d->caps, 0);
	p = ask(frame, rig_udp(frame, &(struct ip4_view){ 0 }, 1111, 53));
	v = answer_ip(p);
	assert_int_equal(udp_parse(v.payload, v.payload_bytes, &u), WIRE_OK);
	assert_int_equal(u.sport, 53);
	assert_int_equal(u.dport, 1111);
	assert_int_equal(p->flags, 0);
	assert_int_equal(csum_fold(csum_partial(v.payload, v.payload_bytes,
	    csum_pseudo(&(struct ipaddr){ .mapped = be32_from_cpu(0xffff), .v4 = v.src },
	    &(struct ipaddr){ .mapped = be32_from_cpu(0xffff), .v4 = v.dst }, IP_PROTO_UDP,
	    v.payload_bytes))), 0);
	pkt_free(n, p);
	stop();
}

static void
garbage_gets_no_answer(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = rig_udp(frame, &(struct ip4_view){ .has_mf = true }, 1, 2);
	size_t i;

	(void)state;
	start("port.p0.device=respond:");
	assert_null(ask(frame, len));
	len = rig_echo(frame, &(struct ip4_view){ 0 }, 1);
	for (i = 0; i < 42; i++)
		assert_null(ask(frame, i));
	assert_int_equal(stats().silent, 43);
	stop();
}

/* End to end: a stack pings the world. */
static void
stack_sees_the_responder_as_a_neighbour(void **state)
{
	struct ip_out o = { .dst = ipaddr_v4_cpu(0x0a000077), .proto = IP_PROTO_ICMP,
	    .dont_fragment = true };
	struct icmp4_view v = { .type = ICMP4_ECHO, .id = 1, .seq = 2 };
	struct ip_route route;
	struct pkt *p;

	(void)state;
	start("port.p0.device=respond:");
	assert_int_equal(ip_route_lookup(s, &o.dst, NULL, &route), 0);
	o.src = route.src;
	p = pkt_alloc(n);
	icmp4_emit(pkt_put(p, 8), &v);
	assert_int_equal(ip_output(n, p, &route, &o), 0);
	for (unsigned i = 0; i < 5; i++)
		netisr_round(n);
	assert_int_equal(stats().arp_replies, 1);
	assert_int_equal(stats().echo_replies, 1);
	assert_int_equal(stack_counter(s, CTR_icmp_rcvd), 1);
	stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arp_is_answered_for_any_address),
		cmocka_unit_test(echo_request_gets_its_reply),
		cmocka_unit_test(syn_gets_a_syn_ack_that_is_the_same_every_time),
		cmocka_unit_test(window_scale_is_offered_only_when_asked),
		cmocka_unit_test(data_is_acknowledged_and_echoed_on_wish),
		cmocka_unit_test(fin_is_answered_by_fin_and_ack),
		cmocka_unit_test(pure_acks_and_resets_get_no_answer),
		cmocka_unit_test(datagram_comes_back_with_a_real_checksum_on_wish),
		cmocka_unit_test(garbage_gets_no_answer),
		cmocka_unit_test(stack_sees_the_responder_as_a_neighbour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
