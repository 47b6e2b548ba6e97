/* SPDX-License-Identifier: BSD-2-Clause */
/* IPv4 out: the header's fields. */
#include "link_rig.h"

static struct rig rig;

static int
setup(void **state)
{
	(void)state;
	rig_init(&rig, 2, NULL);
	rig_learn_peer(&rig);
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

/* Sends 50 bytes as o says from a netisr; the header that came out. */
static struct ip4_view
send(unsigned id, struct ip_out o)
{
	struct netisr *n = rig.s->netisr[id];
	const struct wire_frame *f;
	struct ip_route r;
	struct ip4_view v;

	if (o.dst.q[1] == 0)
		o.dst = ipaddr_v4_cpu(RIG_PEER_IP);
	assert_true(netisr_take(n));
	assert_int_equal(ip_route_lookup(rig.s, &o.dst, NULL, &r), 0);
	o.src = r.src;
	assert_int_equal(ip_output(n, rig_pkt(n, 50), &r, &o), 0);
	netisr_round(n);
	netisr_give(n);
	f = rig_sent(&rig);
	assert_int_equal(ip4_parse(f->bytes + 14, f->len - 14, &v), WIRE_OK);
	assert_true(ip4_csum_ok(f->bytes + 14, 20));
	return v;
}

static void
fields_are_as_asked_for(void **state)
{
	struct ip4_view v = send(0, (struct ip_out){ .proto = 253, .ttl = 7, .tos = 0xb8,
	    .dont_fragment = true });

	(void)state;
	assert_int_equal(v.total_bytes, 70);
	assert_int_equal(v.ttl, 7);
	assert_int_equal(v.tos, 0xb8);
	assert_int_equal(v.proto, 253);
	assert_true(v.has_df);
	assert_int_equal(be32_to_cpu(v.src), RIG_OWN_IP);
	assert_int_equal(be32_to_cpu(v.dst), RIG_PEER_IP);
	assert_int_equal(rig_count(&rig, CTR_ip_sent), 1);
}

static void
time_to_live_has_a_knob_and_multicast_stays_on_the_link(void **state)
{
	(void)state;
	assert_int_equal(send(0, (struct ip_out){ .proto = 253 }).ttl, 64);
	rig_knob(&rig, "net.inet.ip.ttl", "99");
	assert_int_equal(send(0, (struct ip_out){ .proto = 253 }).ttl, 99);
	assert_int_equal(send(0, (struct ip_out){ .proto = 253,
	    .dst = ipaddr_v4_cpu(0xe0010203) }).ttl, 1);
}

/* RFC 6864 4.1 */
static void
identification_is_zero_when_fragments_are_forbidden(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(send(0, (struct ip_out){ .proto = 253, .dont_fragment = true }).id,
		    0);
}

/*
 * RFC 6864 4.3: unique within source, destination and protocol; not to be guessed from other
 * traffic
 */
static void
identification_is_unique_across_netisrs(void **state)
{
	static bool seen[65536];
	uint16_t first = 0, second;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		uint16_t id = send(i & 1, (struct ip_out){ .proto = 253 }).id;

		if (i == 0)
			first = id;
		if (i % 2 == 0)
			assert_int_equal((uint16_t)(id - first), i);
		assert_false((i & 1) && id % 2 == first % 2);
		assert_false(seen[id]);
		seen[id] = true;
	}
	second = send(0, (struct ip_out){ .proto = 252 }).id;
	assert_int_not_equal((uint16_t)(second - first), 1000);
}

static void
packet_longer_than_the_mtu_is_refused(void **state)
{
	(void)state;
	assert_int_equal(rig_send(&rig, RIG_PEER_IP, 1480), 0);
	assert_int_equal(rig_sent(&rig)->len, 1514);
	assert_int_equal(rig_send(&rig, RIG_PEER_IP, 1481), -EMSGSIZE);
	assert_int_equal(rig_count(&rig, CTR_drop_ip_needs_frag), 1);
	rig_expect_silence(&rig);
}

static void
packet_without_headroom_is_refused(void **state)
{
	struct ip_out o = { .src = ipaddr_v4_cpu(RIG_OWN_IP), .dst = ipaddr_v4_cpu(RIG_PEER_IP),
	    .proto = 253 };
	struct netisr *n = rig.s->netisr[0];
	struct ip_route r;
	struct pkt *p;

	(void)state;
	assert_true(netisr_take(n));
	assert_int_equal(ip_route_lookup(rig.s, &o.dst, NULL, &r), 0);
	p = rig_pkt(n, 50);
	assert_non_null(pkt_push(p, PKT_HEADROOM_BYTES - 19));
	assert_int_equal(ip_output(n, p, &r, &o), -ENOBUFS);
	p = rig_pkt(n, 50);
	assert_int_equal(ipaddr_parse("fe80::1", &o.dst), 0);
	assert_int_equal(ip_output(n, p, &r, &o), -EAFNOSUPPORT);
	netisr_give(n);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(fields_are_as_asked_for),
		T(time_to_live_has_a_knob_and_multicast_stays_on_the_link),
		T(identification_is_zero_when_fragments_are_forbidden),
		T(identification_is_unique_across_netisrs),
		T(packet_longer_than_the_mtu_is_refused),
		T(packet_without_headroom_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
