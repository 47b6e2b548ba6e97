/* SPDX-License-Identifier: BSD-2-Clause */
/* Software offloads: checksums, segmentation, linearising, tag and padding. */
#include "link_rig.h"
#include "link/offload.h"
#include "wire/tcp.h"

static struct rig rig;
static struct netisr *n;

/* A device that can do what its caps say; frames end up in out[]. */
static struct dev fake;
static struct pkt *out[64];
static unsigned n_out;

static void
on_emit(struct netisr *on, struct dev *d, struct pkt *p)
{
	assert_ptr_equal(on, n);
	assert_ptr_equal(d, &fake);
	assert_true(n_out < ARRAY_LEN(out));
	out[n_out++] = p;
}

static int
setup(void **state)
{
	(void)state;
	rig_init(&rig, 1, NULL);
	n = rig.s->netisr[0];
	assert_true(netisr_take(n));
	memset(&fake, 0, sizeof(fake));
	fake.has_ether = true;
	fake.mtu = 1500;
	n_out = 0;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	while (n_out > 0)
		pkt_free(n, out[--n_out]);
	netisr_give(n);
	rig_expect_no_leak(&rig);
	rig_fini(&rig);
	return 0;
}

/*
 * An Ethernet frame with IPv4 and TCP headers and payload; checksum fields as ip_output and TCP
 * leave them.
 */
static struct pkt *
tcp_frame(uint32_t payload_bytes, uint8_t flags)
{
	struct tcp_view t = {
		.sport = 80, .dport = 5000, .seq = 0xfffffff0, .ack = 1, .wnd = 1000,
		    .flags = flags, .hdr_bytes = 20,
	};
	struct ip4_view v = {
		.src = be32_from_cpu(RIG_OWN_IP), .dst = be32_from_cpu(RIG_PEER_IP),
		.total_bytes = (uint16_t)(40 + payload_bytes), .has_df = true, .ttl = 64,
		    .proto = IP_PROTO_TCP,
	};
	struct ipaddr src = ipaddr_v4(v.src), dst = ipaddr_v4(v.dst);
	struct pkt *p = rig_pkt(n, 54), *last = p;
	uint32_t left = payload_bytes;

	t.csum_raw = csum_fold_raw(csum_pseudo(&src, &dst, IP_PROTO_TCP, 20 + payload_bytes));
	ether_emit(p->data, &RIG_PEER_MAC, &RIG_OWN_MAC, ETHER_TYPE_IP4);
	ip4_emit(p->data + 14, &v);
	memset(p->data + 24, 0, 2);
	tcp_emit(p->data + 34, &t);
	p->l2_len = 14;
	p->l3_len = 20;
	p->l4_len = 20;
	p->flags = PKT_TX_IP_CSUM | PKT_TX_TCP_CSUM;
	while (left > 0) {
		uint32_t part = min_u32(left, 1001);	/* odd: sums must not care */

		last->seg = rig_pkt(n, part);
		last = last->seg;
		p->total_len += part;
		left -= part;
	}
	return p;
}

/* Checks a finished frame's checksums and lengths; returns its TCP header. */
static struct tcp_view
check_tcp(const struct pkt *p)
{
	static uint8_t bytes[4096];
	struct ip4_view v;
	struct tcp_view t;
	struct ipaddr src, dst;

	assert_true(p->total_len <= sizeof(bytes));
	pkt_copy_out(p, 0, bytes, p->total_len);
	assert_int_equal(ip4_parse(bytes + 14, p->total_len - 14, &v), WIRE_OK);
	assert_true(ip4_csum_ok(bytes + 14, 20));
	src = ipaddr_v4(v.src);
	dst = ipaddr_v4(v.dst);
	assert_int_equal(csum_fold(csum_partial(v.payload, v.payload_bytes,
	    csum_pseudo(&src, &dst, IP_PROTO_TCP, v.payload_bytes))), 0);
	assert_int_equal(tcp_parse(v.payload, v.payload_bytes, &t), WIRE_OK);
	return t;
}

static void
checksums_are_filled_in_over_odd_segments(void **state)
{
	(void)state;
	fake.caps = DEV_CAP_MULTISEG;
	offload_transmit(n, &fake, tcp_frame(2003, TH_ACK), on_emit);
	assert_int_equal(n_out, 1);
	assert_non_null(out[0]->seg);
	assert_int_equal(out[0]->flags & (PKT_TX_IP_CSUM | PKT_TX_TCP_CSUM), 0);
	assert_int_equal(check_tcp(out[0]).payload_bytes, 2003);
}

static void
checksums_that_the_device_fills_in_are_left_to_it(void **state)
{
	(void)state;
	fake.caps = DEV_CAP_MULTISEG | DEV_CAP_TX_IP_CSUM | DEV_CAP_TX_L4_CSUM;
	offload_transmit(n, &fake, tcp_frame(100, TH_ACK), on_emit);
	assert_int_equal(out[0]->flags, PKT_TX_IP_CSUM | PKT_TX_TCP_CSUM);
	assert_int_equal(load_be16(out[0]->data + 24), 0);
}

static void
packet_is_made_contiguous_for_a_device_that_needs_it(void **state)
{
	(void)state;
	offload_transmit(n, &fake, tcp_frame(1400, TH_ACK), on_emit);
	assert_int_equal(n_out, 1);
	assert_null(out[0]->seg);
	assert_int_equal(out[0]->len, 1454);
	check_tcp(out[0]);
}

static void
large_segment_is_cut_with_flags_and_numbers_in_place(void **state)
{
	struct pkt *big = tcp_frame(4500, TH_ACK | TH_PUSH | TH_FIN | TH_CWR);
	uint8_t all[4500];
	uint32_t off = 0;

	(void)state;
	pkt_copy_out(big, 54, all, sizeof(all));
	big->flags |= PKT_TX_TSO;
	big->tso_mss = 1460;
	offload_transmit(n, &fake, big, on_emit);
	assert_int_equal(n_out, 4);
	for (unsigned i = 0; i < n_out; i++) {
		struct tcp_view t = check_tcp(out[i]);
		bool last = i == 3;

		assert_int_equal(t.seq, (uint32_t)(0xfffffff0 + off));
		assert_int_equal(t.payload_bytes, last ? 120 : 1460);
		assert_memory_equal(t.payload, all + off, t.payload_bytes);
		assert_int_equal(t.flags, TH_ACK | (last ? TH_PUSH | TH_FIN : 0) |
		    (i == 0 ? TH_CWR : 0));
		off += (uint32_t)t.payload_bytes;
	}
}

static void
large_segment_is_left_to_a_device_that_cuts(void **state)
{
	struct pkt *big = tcp_frame(4500, TH_ACK);

	(void)state;
	fake.caps = DEV_CAP_TSO | DEV_CAP_MULTISEG | DEV_CAP_TX_IP_CSUM | DEV_CAP_TX_L4_CSUM;
	big->flags |= PKT_TX_TSO;
	big->tso_mss = 1460;
	offload_transmit(n, &fake, big, on_emit);
	assert_int_equal(n_out, 1);
	assert_true(out[0]->flags & PKT_TX_TSO);
	assert_int_equal(out[0]->total_len, 4554);
}

/* The seed of a large segment may lack the length; a piece must not inherit that. */
static void
large_segment_that_fits_one_piece_gets_a_plain_checksum(void **state)
{
	struct pkt *p = tcp_frame(1000, TH_ACK | TH_PUSH);

	(void)state;
	p->flags |= PKT_TX_TSO;
	p->tso_mss = 1460;
	memset(p->data + 50, 0, 2);
	offload_transmit(n, &fake, p, on_emit);
	assert_int_equal(n_out, 1);
	assert_int_equal(check_tcp(out[0]).flags, TH_ACK | TH_PUSH);
}

static void
empty_pool_loses_pieces_and_counts_it(void **state)
{
	struct pkt *big = tcp_frame(4500, TH_ACK), *hoard = NULL, *p;

	(void)state;
	big->flags |= PKT_TX_TSO;
	big->tso_mss = 1460;
	while ((p = pkt_alloc(n)) != NULL) {
		p->next = hoard;
		hoard = p;
	}
	p = hoard;
	hoard = p->next;
	pkt_free(n, p);		/* one piece finds memory */
	offload_transmit(n, &fake, big, on_emit);
	assert_int_equal(n_out, 1);
	assert_int_equal(rig_count(&rig, CTR_drop_pkt_nomem), 1);
	while (hoard != NULL) {
		p = hoard;
		hoard = p->next;
		pkt_free(n, p);
	}
}

/* IEEE 802.1Q */
static void
tag_is_inserted_behind_the_addresses(void **state)
{
	(void)state;
	fake.vlan = 42;
	offload_transmit(n, &fake, tcp_frame(100, TH_ACK), on_emit);
	assert_int_equal(out[0]->total_len, 158);
	assert_int_equal(out[0]->l2_len, 18);
	assert_memory_equal(out[0]->data, RIG_PEER_MAC.b, 6);
	assert_memory_equal(out[0]->data + 6, RIG_OWN_MAC.b, 6);
	assert_int_equal(load_be32(out[0]->data + 12), 0x8100002a);
	assert_int_equal(load_be16(out[0]->data + 16), ETHER_TYPE_IP4);
}

static void
short_frame_is_padded_with_zeros_after_its_checksum(void **state)
{
	(void)state;
	offload_transmit(n, &fake, tcp_frame(1, TH_ACK), on_emit);
	assert_int_equal(out[0]->total_len, 60);
	assert_null(out[0]->seg);
	assert_int_equal(check_tcp(out[0]).payload_bytes, 1);
	for (unsigned i = 55; i < 60; i++)
		assert_int_equal(out[0]->data[i], 0);
}

/* RFC 768: 0 means "no checksum", so a sum of 0 is sent as 0xffff */
static void
udp_checksum_of_zero_is_sent_as_ones(void **state)
{
	struct pkt *p = rig_pkt(n, 44);

	(void)state;
	/* seed and words add up to 0xffff, whose complement is 0 */
	memset(p->data + 34, 0, 10);
	store_be16(p->data + 40, 0xfff0);
	store_be16(p->data + 34, 0x000f);
	p->l2_len = 14;
	p->l3_len = 20;
	p->flags = PKT_TX_UDP_CSUM;
	offload_fill_csums(p);
	assert_int_equal(load_be16(p->data + 40), 0xffff);
	pkt_free(n, p);
}

static void
sum_of_a_part_does_not_see_what_follows(void **state)
{
	struct pkt *p = rig_pkt(n, 7);
	uint8_t flat[12];

	(void)state;
	p->seg = rig_pkt(n, 9);
	p->total_len = 16;
	pkt_copy_out(p, 2, flat, 12);
	assert_int_equal(csum_fold(offload_sum(p, 2, 12, 0)), csum_fold(csum_partial(flat, 12, 0)));
	assert_int_not_equal(csum_fold(offload_sum(p, 2, 14, 0)),
	    csum_fold(csum_partial(flat, 12, 0)));
	pkt_free(n, p);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(checksums_are_filled_in_over_odd_segments),
		T(checksums_that_the_device_fills_in_are_left_to_it),
		T(packet_is_made_contiguous_for_a_device_that_needs_it),
		T(large_segment_is_cut_with_flags_and_numbers_in_place),
		T(large_segment_is_left_to_a_device_that_cuts),
		T(large_segment_that_fits_one_piece_gets_a_plain_checksum),
		T(empty_pool_loses_pieces_and_counts_it),
		T(tag_is_inserted_behind_the_addresses),
		T(short_frame_is_padded_with_zeros_after_its_checksum),
		T(udp_checksum_of_zero_is_sent_as_ones),
		T(sum_of_a_part_does_not_see_what_follows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
