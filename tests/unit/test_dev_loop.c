/* SPDX-License-Identifier: BSD-2-Clause */
/* The loopback: what is sent to ourselves comes back, in order, at its owner. */
#include "link_rig.h"
#include "wire/tcp.h"

static struct rig rig;

static struct {
	unsigned count;
	unsigned netisr;
	uint32_t len[64];
	uint32_t flags;
	uint32_t src;
	uint8_t first;
	bool is_loop;
} got;

static void
on_input(struct netisr *n, struct pkt *p, const struct ip_meta *meta)
{
	assert_null(p->seg);
	if (got.count < ARRAY_LEN(got.len))
		got.len[got.count] = p->total_len;
	got.count++;
	got.netisr = n->id;
	got.flags = p->flags;
	got.src = be32_to_cpu(meta->src.v4);
	got.first = p->data[0];
	got.is_loop = meta->dev->is_loop;
	pkt_free(n, p);
}

static const struct ip_proto proto = { .input = on_input };

static void
start(unsigned netisrs)
{
	rig_init(&rig, netisrs, NULL);
	ip_register(rig.s, 253, &proto);
	ip_register(rig.s, IP_PROTO_TCP, &proto);
	memset(&got, 0, sizeof(got));
}

static int
setup(void **state)
{
	(void)state;
	start(1);
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
packet_to_an_address_of_ours_comes_back(void **state)
{
	static const uint32_t destinations[] = { RIG_OWN_IP, 0x7f000001, 0x7f010203 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(destinations); i++) {
		assert_int_equal(rig_send(&rig, destinations[i], 100 + i), 0);
		rig_run(&rig);
		assert_int_equal(got.count, i + 1);
		assert_int_equal(got.len[i], 100 + i);
		assert_true(got.is_loop);
		assert_true(got.flags & PKT_RX_LOOP);
		assert_int_equal(got.src, i == 0 ? RIG_OWN_IP : 0x7f000001);
	}
	rig_expect_silence(&rig);
}

/* Never inside the call that sends: a transport that answers itself must not recurse. */
static void
packet_comes_back_in_a_later_round(void **state)
{
	(void)state;
	rig_send(&rig, RIG_OWN_IP, 10);
	assert_int_equal(got.count, 0);
	assert_true(netisr_take(rig.s->netisr[0]));
	assert_true(time_reached(rig.s->netisr[0]->now, netisr_next_deadline(rig.s->netisr[0])));
	netisr_round(rig.s->netisr[0]);
	netisr_give(rig.s->netisr[0]);
	assert_int_equal(got.count, 1);
}

static void
packet_of_the_mtu_fits_and_one_byte_more_does_not(void **state)
{
	(void)state;
	assert_int_equal(dev_loop(rig.s)->mtu, 2000);
	assert_int_equal(rig_send(&rig, 0x7f000001, 1980), 0);
	assert_int_equal(rig_send(&rig, 0x7f000001, 1981), -EMSGSIZE);
	rig_run(&rig);
	assert_int_equal(got.len[0], 1980);
	assert_int_equal(got.count, 1);
}

static void
large_segment_comes_back_in_pieces_of_its_mss(void **state)
{
	struct ip_out o = { .dst = ipaddr_v4_cpu(RIG_OWN_IP), .proto = IP_PROTO_TCP,
	    .dont_fragment = true };
	struct tcp_view t = { .sport = 1, .dport = 2, .flags = TH_ACK, .hdr_bytes = 20 };
	struct netisr *n = rig.s->netisr[0];
	struct ip_route r;
	struct pkt *p;

	(void)state;
	assert_true(netisr_take(n));
	assert_int_equal(ip_route_lookup(rig.s, &o.dst, NULL, &r), 0);
	o.src = r.src;
	p = rig_pkt(n, 20);
	tcp_emit(p->data, &t);
	p->seg = rig_pkt(n, 2000);
	p->seg->seg = rig_pkt(n, 1500);
	p->total_len = 3520;
	p->flags = PKT_TX_TCP_CSUM | PKT_TX_TSO;
	p->l4_len = 20;
	p->tso_mss = 1000;
	assert_int_equal(ip_output(n, p, &r, &o), 0);
	netisr_round(n);
	netisr_give(n);
	rig_run(&rig);
	assert_int_equal(got.count, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(got.len[i], i == 3 ? 520 : 1020);
}

static void
many_packets_of_one_round_all_come_back(void **state)
{
	struct netisr *n = rig.s->netisr[0];
	struct ip_out o = { .src = ipaddr_v4_cpu(0x7f000001), .dst = ipaddr_v4_cpu(0x7f000001),
	    .proto = 253 };
	struct ip_route r;

	(void)state;
	assert_true(netisr_take(n));
	assert_int_equal(ip_route_lookup(rig.s, &o.dst, NULL, &r), 0);
	for (unsigned i = 0; i < 400; i++)
		assert_int_equal(ip_output(n, rig_pkt(n, 10), &r, &o), 0);
	netisr_give(n);
	rig_run(&rig);
	assert_int_equal(got.count, 400);
}

static void
packet_comes_back_at_the_owner_of_its_addresses(void **state)
{
	unsigned seen[2] = { 0, 0 };

	(void)state;
	rig_fini(&rig);
	start(2);
	for (uint32_t i = 1; i <= 32; i++) {
		struct ipaddr a = ipaddr_v4_cpu(0x7f000000 + i), src = ipaddr_v4_cpu(0x7f000001);
		unsigned owner = rig.s->reta[toeplitz_addrs(&rig.s->rss, &src,
		    &a) & (rig.s->reta_size - 1u)];

		assert_int_equal(rig_send_from(&rig, i & 1, 0x7f000000 + i, 50), 0);
		rig_run(&rig);
		assert_int_equal(got.count, i);
		assert_int_equal(got.netisr, owner);
		seen[owner]++;
	}
	assert_true(seen[0] > 0 && seen[1] > 0);
	assert_true(rig_count(&rig, CTR_steered_loopback) > 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(packet_to_an_address_of_ours_comes_back),
		T(packet_comes_back_in_a_later_round),
		T(packet_of_the_mtu_fits_and_one_byte_more_does_not),
		T(large_segment_comes_back_in_pieces_of_its_mss),
		T(many_packets_of_one_round_all_come_back),
		T(packet_comes_back_at_the_owner_of_its_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
