/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transport/udp: what comes in, what goes out, names, errors from the network, the end of a socket.
 */
#include "unit/udp_world.h"

/* ---- in ---- */

static void
datagram_for_bound_socket_then_it_is_queued_with_its_names(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, 0, 53);
	struct dgram_rec rec;
	char buf[16];

	receive(f, A2, 53, PEER, 4000, "query");
	assert_int_equal(net.events, SOCK_EV_IN);
	assert_int_equal(dgramq_get(sh, buf, sizeof(buf), false, &rec), 5);
	assert_int_equal(rec.port, 4000);
	assert_int_equal(v4(&rec.addr), PEER);
	assert_int_equal(v4(&rec.local), A2);
	assert_true(counted(f, CTR_udp_rcvd) == 1);
	close_sock(f, sh);
}

/* RFC 1122 4.1.3.1 */
static void
no_socket_has_the_port_then_port_unreachable_is_sent(void **state)
{
	struct fixture *f = *state;

	receive(f, A1, 54, PEER, 4000, "?");
	assert_int_equal(net.unreach, 1);
	assert_true(counted(f, CTR_drop_udp_no_port) == 1);
	receive(f, BCAST, 54, PEER, 4000, "?");
	assert_int_equal(net.unreach, 1);
	assert_true(counted(f, CTR_drop_udp_no_port) == 2);
}

static void
datagram_is_empty_then_it_is_delivered(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, A1, 53);

	receive(f, A1, 53, PEER, 4000, "");
	expect_text(sh, "");
	expect_text(sh, NULL);
	close_sock(f, sh);
}

static void
lengths_are_wrong_then_the_packet_is_dropped(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, A1, 53);
	struct tuple t = tup(A1, 53, PEER, 4000);
	struct pkt *p;

	p = packet(f, &t, "abcd", 4);
	store_be16(p->data + 4, 13);
	receive_packet(f, p, &t);
	p = packet(f, &t, "abcd", 4);
	store_be16(p->data + 4, 7);
	receive_packet(f, p, &t);
	assert_true(counted(f, CTR_drop_udp_len) == 2);
	p = packet(f, &t, "", 0);
	pkt_trim(f->n, p, 7);
	receive_packet(f, p, &t);
	assert_true(counted(f, CTR_drop_udp_short) == 1);
	expect_text(sh, NULL);
	close_sock(f, sh);
}

static void
length_field_is_shorter_than_the_packet_then_the_rest_is_cut(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, A1, 53);
	struct tuple t = tup(A1, 53, PEER, 4000);
	struct pkt *p = packet(f, &t, "abcd", 4);

	memcpy(pkt_put(p, 3), "xyz", 3);
	receive_packet(f, p, &t);
	expect_text(sh, "abcd");
	close_sock(f, sh);
}

static void
checksum_is_wrong_then_dropped_and_zero_then_accepted(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, A1, 53);
	struct tuple t = tup(A1, 53, PEER, 4000);
	struct pkt *p;

	p = packet(f, &t, "abcd", 4);
	p->data[9] ^= 1;
	receive_packet(f, p, &t);
	assert_true(counted(f, CTR_drop_udp_csum) == 1);
	p = packet(f, &t, "abcd", 4);
	p->flags |= PKT_RX_L4_CSUM_BAD;
	receive_packet(f, p, &t);
	assert_true(counted(f, CTR_drop_udp_csum) == 2);
	expect_text(sh, NULL);
	p = packet(f, &t, "none", 4);
	memset(p->data + 6, 0, 2);
	receive_packet(f, p, &t);
	expect_text(sh, "none");
	close_sock(f, sh);
}

static void
datagram_lies_in_several_segments_then_it_arrives_in_one_piece(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, A1, 53);
	struct tuple t = tup(A1, 53, PEER, 4000);
	struct pkt *p = packet(f, &t, "abcdefghijk", 11), *seg = pkt_alloc(f->n);

	/* the first segment ends at an odd offset, within the payload */
	memcpy(seg->data, p->data + 13, 6);
	seg->len = 6;
	p->len = 13;
	p->seg = seg;
	receive_packet(f, p, &t);
	expect_text(sh, "abcdefghijk");
	close_sock(f, sh);
}

static void
datagram_is_broadcast_then_each_socket_gets_a_copy(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *a = sock(f), *b = sock(f);
	struct endpoint local = ep(0, 67);

	atomic_store(&a->opts.reuseaddr, 1);
	atomic_store(&b->opts.reuseaddr, 1);
	assert_int_equal(udp_ulp.bind(a, &local), 0);
	assert_int_equal(udp_ulp.bind(b, &local), 0);
	receive(f, BCAST, 67, PEER, 68, "offer");
	expect_text(a, "offer");
	expect_text(b, "offer");
	close_sock(f, a);
	close_sock(f, b);
}

/* ---- out ---- */

static void
datagram_sent_then_header_and_checksum_are_right(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, 0, 5000);
	struct endpoint to = ep(PEER, 53);
	struct udp_view v;

	assert_int_equal(send_to(sh, &to, "hello", 5), 0);
	assert_int_equal(net.frames, 1);
	assert_int_equal(net.frame[0].len, 13);
	assert_int_equal(v4(&net.frame[0].o.src), A1);
	assert_int_equal(v4(&net.frame[0].o.dst), PEER);
	assert_int_equal(udp_parse(net.frame[0].bytes, 13, &v), WIRE_OK);
	assert_int_equal(v.sport, 5000);
	assert_int_equal(v.dport, 53);
	assert_memory_equal(v.payload, "hello", 5);
	assert_int_equal(csum_fold(csum_partial(net.frame[0].bytes, 13,
	    csum_pseudo(&net.frame[0].o.src, &net.frame[0].o.dst, IPPROTO_UDP, 13))), 0);
	close_sock(f, sh);
}

/* RFC 768: a computed zero is sent as all ones. */
static void
checksum_computes_to_zero_then_ffff_is_sent(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, 0, 5000);
	struct endpoint to = ep(PEER, 53);
	uint16_t filler;
	char text[2] = { 0, 0 };

	assert_int_equal(send_to(sh, &to, text, 2), 0);
	/* Adding the sum's complement makes the new sum all ones, whose complement is 0. */
	memcpy(&filler, net.frame[0].bytes + 6, 2);
	memcpy(text, &filler, 2);
	assert_int_equal(send_to(sh, &to, text, 2), 0);
	assert_int_equal(net.frame[1].bytes[6], 0xff);
	assert_int_equal(net.frame[1].bytes[7], 0xff);
	close_sock(f, sh);
}

static void
device_sums_then_the_field_holds_the_pseudo_headers_sum(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, 0, 5000);
	struct endpoint to = ep(PEER, 53);
	struct frame *out = &net.frame[0];
	uint16_t seed;

	net.dev.caps = DEV_CAP_TX_L4_CSUM;
	assert_int_equal(send_to(sh, &to, "hello", 5), 0);
	assert_true(out->flags & PKT_TX_UDP_CSUM);
	seed = csum_fold_raw(csum_pseudo(&out->o.src, &out->o.dst, IPPROTO_UDP, 13));
	assert_memory_equal(out->bytes + 6, &seed, 2);
	close_sock(f, sh);
}

static void
nothing_is_bound_then_the_first_send_draws_a_port_and_names_the_socket(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = sock(f);
	struct endpoint to = ep(PEER, 53);

	assert_int_equal(send_to(sh, &to, "x", 1), 0);
	assert_true(sockhalf_state(sh) & SH_NAMED);
	assert_in_range(sh->local.port, 32768, 60999);
	assert_int_equal(load_be16(net.frame[0].bytes), sh->local.port);
	assert_ptr_equal(atomic_load(&sh->owner), f->n);
	/* the answer finds it */
	receive(f, A1, sh->local.port, PEER, 53, "y");
	expect_text(sh, "y");
	close_sock(f, sh);
}

static void
send_is_impossible_then_it_says_so_at_once(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = sock(f);
	struct endpoint peer = ep(PEER, 53), nowhere = ep(NOWHERE, 53), zero = ep(PEER, 0);
	struct endpoint bcast = ep(BCAST, 67), v6 = { { .q = { 1, 1 } }, 53 };

	assert_int_equal(udp_check_send(sh, NULL, 1), -EDESTADDRREQ);
	assert_int_equal(udp_check_send(sh, &zero, 1), -EINVAL);
	assert_int_equal(udp_check_send(sh, &v6, 1), -EAFNOSUPPORT);
	assert_int_equal(udp_check_send(sh, &nowhere, 1), -ENETUNREACH);
	assert_int_equal(udp_check_send(sh, &peer, MTU - 28), 0);
	assert_int_equal(udp_check_send(sh, &peer, MTU - 27), -EMSGSIZE);
	assert_int_equal(udp_check_send(sh, &peer, 70000), -EMSGSIZE);
	assert_int_equal(udp_check_send(sh, &bcast, 1), -EACCES);
	atomic_store(&sh->opts.broadcast, 1);
	assert_int_equal(udp_check_send(sh, &bcast, 1), 0);
	atomic_store(&sh->so_error, ECONNREFUSED);
	assert_int_equal(udp_check_send(sh, &peer, 1), -ECONNREFUSED);
	assert_int_equal(udp_check_send(sh, &peer, 1), 0);
	close_sock(f, sh);
}

static void
same_destination_again_then_no_route_is_looked_up_until_routes_change(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, 0, 5000);
	struct endpoint to = ep(PEER, 53);
	unsigned i;

	for (i = 0; i < 10; i++)
		assert_int_equal(send_to(sh, &to, "x", 1), 0);
	assert_int_equal(net.lookups, 2);	/* the application's and the owner's */
	net.gen++;
	assert_int_equal(send_to(sh, &to, "x", 1), 0);
	assert_int_equal(net.lookups, 4);
	close_sock(f, sh);
}

static void
route_goes_away_after_the_check_then_the_error_is_kept_for_the_socket(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, 0, 5000);
	struct dgram_rec rec = { .len_bytes = 1, .port = 53, .addr = ipaddr_v4_cpu(PEER) };
	struct endpoint to = ep(PEER, 53);

	assert_int_equal(udp_check_send(sh, &to, 1), 0);
	net.is_down = true;
	net.gen++;
	assert_int_equal(dgramq_send(sh, &rec, "x"), 0);
	sockhalf_post(sh, SOCK_OP_SEND);
	assert_int_equal(net.frames, 0);
	assert_int_equal(atomic_load(&sh->so_error), ENETUNREACH);
	assert_true(net.events & SOCK_EV_ERR);
	assert_true(ring_is_empty(&sh->tx));
	close_sock(f, sh);
}

static void
many_are_queued_then_they_leave_over_several_rounds_and_the_writer_is_woken(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, 0, 5000);
	struct dgram_rec rec = { .len_bytes = 1, .port = 53, .addr = ipaddr_v4_cpu(PEER) };
	struct endpoint to = ep(PEER, 53);
	unsigned i;

	assert_int_equal(udp_check_send(sh, &to, 1), 0);
	for (i = 0; i < 150; i++)
		assert_int_equal(dgramq_send(sh, &rec, "x"), 0);
	sockhalf_set(sh, SH_TX_WANT, 0);
	sockhalf_post(sh, SOCK_OP_SEND);
	assert_int_equal(net.frames, UDP_SEND_BURST);
	assert_int_equal(net.events, SOCK_EV_OUT);
	assert_false(sockhalf_state(sh) & SH_TX_WANT);
	assert_true(netisr_next_deadline(f->n).us <= f->n->now.us);
	for (i = 0; i < 3; i++)
		netisr_round(f->n);
	assert_int_equal(net.frames, 150);
	assert_true(time_is_never(netisr_next_deadline(f->n)));
	close_sock(f, sh);
}

/* ---- names ---- */

static void
bind_is_refused_then_errno_is_linuxs(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *a = bound(f, 0, 53), *b = sock(f);
	struct endpoint same = ep(A1, 53), other = ep(A1, 54), foreign = ep(PEER, 54);

	assert_int_equal(udp_ulp.bind(b, &same), -EADDRINUSE);
	assert_int_equal(udp_ulp.bind(b, &foreign), -EADDRNOTAVAIL);
	assert_int_equal(udp_ulp.bind(a, &other), -EINVAL);
	assert_int_equal(udp_ulp.bind(b, &other), 0);
	assert_int_equal(b->local.port, 54);
	assert_int_equal(udp_ulp.listen(b, 1), -EOPNOTSUPP);
	close_sock(f, a);
	/* the port is free again */
	a = bound(f, A2, 53);
	close_sock(f, a);
	close_sock(f, b);
}

static void
socket_connected_then_it_is_named_and_filters_its_peer(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, 0, 5000);
	struct endpoint peer = ep(PEER, 53);

	assert_int_equal(udp_ulp.connect(sh, &peer, f->n), 0);
	assert_true(sockhalf_state(sh) & SH_CONNECTED);
	assert_int_equal(v4(&sh->local.addr), A1);
	assert_int_equal(sh->local.port, 5000);
	receive(f, A1, 5000, PEER, 54, "stranger");
	assert_int_equal(net.unreach, 1);
	receive(f, A1, 5000, PEER, 53, "friend");
	expect_text(sh, "friend");
	assert_int_equal(send_to(sh, NULL, "x", 1), 0);
	assert_int_equal(load_be16(net.frame[0].bytes + 2), 53);
	close_sock(f, sh);
}

static void
asked_port_disconnected_then_kept_and_drawn_port_then_given_back(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *asked = bound(f, 0, 5000), *drawn = sock(f);
	struct endpoint peer = ep(PEER, 53);

	assert_int_equal(udp_ulp.connect(asked, &peer, f->n), 0);
	assert_int_equal(udp_ulp.disconnect(asked), 0);
	assert_true(ipaddr_is_any(&asked->local.addr));
	assert_int_equal(asked->local.port, 5000);
	receive(f, A2, 5000, PEER, 54, "anyone");
	expect_text(asked, "anyone");

	assert_int_equal(udp_ulp.connect(drawn, &peer, f->n), 0);
	assert_int_not_equal(drawn->local.port, 0);
	assert_int_equal(udp_ulp.disconnect(drawn), 0);
	assert_int_equal(drawn->local.port, 0);
	assert_int_equal(sockhalf_state(drawn) & (SH_CONNECTED | SH_NAMED | SH_BOUND), 0);
	assert_int_equal(send_to(drawn, NULL, "x", 1), -EDESTADDRREQ);
	assert_int_equal(udp_ulp.connect(drawn, &peer, f->n), 0);
	close_sock(f, asked);
	close_sock(f, drawn);
}

static void
queued_datagram_then_reconnect_leaves_it_its_old_names(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = sock(f);
	struct endpoint peer = ep(PEER, 53), next = ep(LOOP, 54);
	struct dgram_rec rec = { .len_bytes = 1, .port = 53, .addr = ipaddr_v4_cpu(PEER) };

	assert_int_equal(udp_ulp.connect(sh, &peer, f->n), 0);
	assert_int_equal(dgramq_send(sh, &rec, "1"), 0);
	assert_int_equal(udp_ulp.connect(sh, &next, f->n), 0);
	assert_int_equal(v4(&sh->local.addr), LOOP);
	assert_int_equal(send_to(sh, NULL, "2", 1), 0);
	assert_int_equal(net.frames, 2);
	assert_int_equal(v4(&net.frame[0].o.src), A1);
	assert_int_equal(v4(&net.frame[0].o.dst), PEER);
	assert_int_equal(v4(&net.frame[1].o.src), LOOP);
	close_sock(f, sh);
}

static void
connect_is_impossible_then_the_socket_is_as_before(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = sock(f);
	struct endpoint nowhere = ep(NOWHERE, 53), bcast = ep(BCAST, 53);

	assert_int_equal(udp_ulp.connect(sh, &nowhere, f->n), -ENETUNREACH);
	assert_int_equal(udp_ulp.connect(sh, &bcast, f->n), -EACCES);
	assert_int_equal(sockhalf_state(sh), 0);
	close_sock(f, sh);
}

/* ---- errors from the network ---- */

static void
quote(struct fixture *f, const struct sockhalf *sh, uint32_t dst, uint16_t dport, int err,
    bool is_soft)
{
	struct ip_meta meta = { .src = ipaddr_v4_cpu(A1), .dst = ipaddr_v4_cpu(dst) };
	struct ip_error e = { .err = err, .is_soft = is_soft };
	uint8_t quoted[8] = { 0 };

	store_be16(quoted, sh->local.port);
	store_be16(quoted + 2, dport);
	udp_error(f->n, &meta, quoted, sizeof(quoted), &e);
}

static void
icmp_error_arrives_then_only_the_connected_socket_hears_of_it(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = sock(f), *open = bound(f, 0, 6000);
	struct endpoint peer = ep(PEER, 53);

	assert_int_equal(udp_ulp.connect(sh, &peer, f->n), 0);
	quote(f, sh, PEER, 54, ECONNREFUSED, false);
	quote(f, open, PEER, 53, ECONNREFUSED, false);
	quote(f, sh, PEER, 53, EHOSTUNREACH, true);
	assert_int_equal(atomic_load(&sh->so_error) + atomic_load(&open->so_error), 0);
	assert_int_equal(net.events, 0);
	quote(f, sh, PEER, 53, ECONNREFUSED, false);
	assert_int_equal(atomic_load(&sh->so_error), ECONNREFUSED);
	assert_int_equal(net.events, SOCK_EV_ERR);
	assert_int_equal(send_to(sh, NULL, "x", 1), -ECONNREFUSED);
	assert_int_equal(send_to(sh, NULL, "x", 1), 0);
	close_sock(f, sh);
	close_sock(f, open);
}

/* ---- end ---- */

static void
closed_with_datagrams_queued_then_they_leave_first(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, 0, 5000);
	struct dgram_rec rec = { .len_bytes = 1, .port = 53, .addr = ipaddr_v4_cpu(PEER) };
	struct endpoint to = ep(PEER, 53);
	unsigned i;

	assert_int_equal(udp_check_send(sh, &to, 1), 0);
	for (i = 0; i < 100; i++)
		assert_int_equal(dgramq_send(sh, &rec, "x"), 0);
	close_sock(f, sh);
	assert_int_equal(net.frames, 100);
	assert_true(counted(f, CTR_udp_pcbs) == 0);
}

static void
closed_within_a_round_then_it_is_freed_only_after_that_round(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, 0, 5000);
	struct tuple t = tup(A1, 5000, PEER, 53);

	/* the holder (this thread) might still deliver in this round */
	assert_ptr_equal(demux_lookup_dgram(f->s, &t), sh);
	udp_ulp.close(sh);
	assert_null(demux_lookup_dgram(f->s, &t));
	assert_int_equal(net.freed, 0);
	netisr_round(f->n);
	clock_advance_us(&f->clock, 3 * UDP_DYING_CHECK_US);
	netisr_round(f->n);
	assert_int_equal(net.freed, 1);
}

static void
stack_ends_with_open_sockets_then_their_memory_goes_with_it(void **state)
{
	struct fixture *f = *state;
	struct sockhalf *sh = bound(f, 0, 5000);

	receive(f, A1, 5000, PEER, 53, "unread");
	assert_true(counted(f, CTR_udp_rcvd) == 1);
	/* what the socket layer does when it ends: the object, no close; the queues are UDP's */
	free(sh);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(datagram_for_bound_socket_then_it_is_queued_with_its_names),
		T(no_socket_has_the_port_then_port_unreachable_is_sent),
		T(datagram_is_empty_then_it_is_delivered),
		T(lengths_are_wrong_then_the_packet_is_dropped),
		T(length_field_is_shorter_than_the_packet_then_the_rest_is_cut),
		T(checksum_is_wrong_then_dropped_and_zero_then_accepted),
		T(datagram_lies_in_several_segments_then_it_arrives_in_one_piece),
		T(datagram_is_broadcast_then_each_socket_gets_a_copy),
		T(datagram_sent_then_header_and_checksum_are_right),
		T(checksum_computes_to_zero_then_ffff_is_sent),
		T(device_sums_then_the_field_holds_the_pseudo_headers_sum),
		T(nothing_is_bound_then_the_first_send_draws_a_port_and_names_the_socket),
		T(send_is_impossible_then_it_says_so_at_once),
		T(same_destination_again_then_no_route_is_looked_up_until_routes_change),
		T(route_goes_away_after_the_check_then_the_error_is_kept_for_the_socket),
		T(many_are_queued_then_they_leave_over_several_rounds_and_the_writer_is_woken),
		T(bind_is_refused_then_errno_is_linuxs),
		T(socket_connected_then_it_is_named_and_filters_its_peer),
		T(asked_port_disconnected_then_kept_and_drawn_port_then_given_back),
		T(queued_datagram_then_reconnect_leaves_it_its_old_names),
		T(connect_is_impossible_then_the_socket_is_as_before),
		T(icmp_error_arrives_then_only_the_connected_socket_hears_of_it),
		T(closed_with_datagrams_queued_then_they_leave_first),
		T(closed_within_a_round_then_it_is_freed_only_after_that_round),
		T(stack_ends_with_open_sockets_then_their_memory_goes_with_it),
	};

	return cmocka_run_group_tests_name("udp", tests, NULL, NULL);
}
