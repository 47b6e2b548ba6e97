/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory cable: two stacks that hear one another, queues, checksums, plugging and pulling,
 * sleeping threads.
 */
#include "link_rig.h"

#include <pthread.h>
#include <time.h>

static struct rig a, b;
static struct clock shared_clock;

static struct {
	_Atomic unsigned count;
	_Atomic unsigned by_netisr[4];
	uint32_t len;
	uint32_t flags;
	uint32_t sum;
} got;

static void
on_input(struct netisr *n, struct pkt *p, const struct ip_meta *meta)
{
	(void)meta;
	got.len = p->total_len;
	got.flags = p->flags;
	got.sum = csum_fold_raw(csum_partial(p->data, p->len, 0));
	atomic_fetch_add(&got.by_netisr[n->id], 1);
	pkt_free(n, p);
	atomic_fetch_add(&got.count, 1);
}

static const struct ip_proto proto = { .input = on_input };

static void
open_side(struct rig *r, const char *device, const char *addr, unsigned netisrs, bool with_threads)
{
	const char *overrides[8] = { NULL };
	char dev[64], ip[64], isr[32];
	unsigned n = 0;

	memset(r, 0, sizeof(*r));
	snprintf(dev, sizeof(dev), "port.p0.device=%s", device);
	snprintf(ip, sizeof(ip), "port.p0.addr=%s/24", addr);
	snprintf(isr, sizeof(isr), "stack.netisrs=%u", netisrs);
	overrides[n++] = dev;
	overrides[n++] = ip;
	overrides[n++] = isr;
	if (with_threads)
		overrides[n++] = "stack.threads=background";
	r->s = rig_stack(with_threads ? NULL : &shared_clock, overrides);
	r->d = dev_find(r->s, "p0");
	rig_knob(r, "net.inet.announce_count", "0");
	ip_register(r->s, 253, &proto);
	ip_register(r->s, IP_PROTO_UDP, &proto);
	r->packets_idle = r->s->pkt_ops->available(r->s);
}

static void
run_both(void)
{
	for (unsigned i = 0; i < 4; i++) {
		rig_run(&a);
		rig_run(&b);
	}
}

static int
setup(void **state)
{
	(void)state;
	clock_init_fake(&shared_clock, (struct time){ 1000000 });
	memset(&got, 0, sizeof(got));
	return 0;
}

static void
close_both(void)
{
	rig_expect_no_leak(&a);
	rig_expect_no_leak(&b);
	stack_free(a.s);
	stack_free(b.s);
}

static void
stacks_resolve_and_ping_one_another(void **state)
{
	struct netisr *n;
	uint8_t frame[RIG_FRAME_MAX];
	size_t len;
	struct pkt *p;

	(void)state;
	open_side(&a, "pair:t1", "10.0.0.1", 1, false);
	open_side(&b, "pair:t1", "10.0.0.2", 1, false);
	assert_memory_not_equal(a.d->mac, b.d->mac, 6);
	assert_int_equal(rig_send(&a, RIG_PEER_IP, 700), 0);
	run_both();
	assert_int_equal(got.count, 1);
	assert_int_equal(got.len, 700);
	assert_int_equal(stack_counter(b.s, CTR_arp_replies_sent), 1);

	len = rig_echo(frame, &(struct ip4_view){ .src = be32_from_cpu(RIG_OWN_IP),
	    .dst = be32_from_cpu(RIG_PEER_IP) }, 1);
	memcpy(frame, b.d->mac, 6);
	memcpy(frame + 6, a.d->mac, 6);
	n = a.s->netisr[0];
	assert_true(netisr_take(n));
	p = pkt_alloc(n);
	memcpy(pkt_put(p, (uint16_t)len), frame, len);
	ether_output_frame(n, a.d, p);
	netisr_give(n);
	run_both();
	assert_int_equal(stack_counter(b.s, CTR_icmp_echo_replies), 1);
	assert_int_equal(stack_counter(a.s, CTR_icmp_rcvd), 1);
	close_both();
}

/* What the sender leaves to the cable arrives as good; what it has not left to it is checked. */
static void
checksum_is_vouched_for_only_when_it_was_left_to_the_cable(void **state)
{
	(void)state;
	open_side(&a, "pair:t2", "10.0.0.1", 1, false);
	open_side(&b, "pair:t2,csum=off", "10.0.0.2", 1, false);
	rig_send(&a, RIG_PEER_IP, 100);
	run_both();
	assert_int_equal(got.count, 1);
	assert_true(got.flags & PKT_RX_IP_CSUM_GOOD);
	assert_false(got.flags & PKT_RX_L4_CSUM_GOOD);
	rig_send(&b, RIG_OWN_IP, 100);
	run_both();
	assert_int_equal(got.count, 2);
	assert_false(got.flags & PKT_RX_IP_CSUM_GOOD);
	close_both();
}

static void
frames_without_a_peer_are_dropped_and_counted(void **state)
{
	(void)state;
	open_side(&a, "pair:t3", "10.0.0.1", 1, false);
	assert_false(a.d->ops->link_is_up(a.d));
	rig_send(&a, RIG_PEER_IP, 100);
	rig_run(&a);
	assert_int_equal(stack_counter(a.s, CTR_drop_dev_down), 1);
	open_side(&b, "pair:t3", "10.0.0.2", 1, false);
	assert_true(a.d->ops->link_is_up(a.d));
	stack_free(b.s);
	assert_false(a.d->ops->link_is_up(a.d));
	open_side(&b, "pair:t3", "10.0.0.2", 1, false);
	rig_send(&a, RIG_PEER_IP, 100);
	clock_advance_us(&shared_clock, 1100000);
	run_both();
	assert_int_equal(got.count, 2);
	close_both();
}

static void
third_end_is_refused(void **state)
{
	static const struct layer *const layers[] = { &link_layer, &inet_layer, NULL };
	struct config cfg;
	char err[128] = "";
	int rc = 0;

	(void)state;
	open_side(&a, "pair:t4", "10.0.0.1", 1, false);
	open_side(&b, "pair:t4", "10.0.0.2", 1, false);
	config_init(&cfg);
	cfg.threads = CONFIG_THREADS_MANUAL;
	cfg.memory = CONFIG_MEMORY_HEAP;
	cfg.packets = 128;
	assert_int_equal(config_override(&cfg, "port.p0.device=pair:t4", err, sizeof(err)), 0);
	assert_null(stack_new(&cfg, layers, &shared_clock, NULL, &rc, err, sizeof(err)));
	assert_int_equal(rc, -EBUSY);
	assert_non_null(strstr(err, "t4"));
	close_both();
}

/* A ring of 4: the rest waits at the sender, in order, and nothing is lost. */
static void
full_ring_pushes_back(void **state)
{
	uint8_t mac[6];
	struct ipaddr peer = ipaddr_v4_cpu(RIG_PEER_IP);
	struct netisr *n;

	(void)state;
	open_side(&a, "pair:t5,slots=4", "10.0.0.1", 1, false);
	open_side(&b, "pair:t5", "10.0.0.2", 1, false);
	n = a.s->netisr[0];
	memcpy(mac, b.d->mac, 6);
	assert_true(netisr_take(n));
	assert_int_equal(neigh_set_static(n, a.d, &peer, mac), 0);
	netisr_give(n);
	for (uint32_t i = 0; i < 10; i++)
		rig_send(&a, RIG_PEER_IP, 100 + i);
	assert_int_equal(got.count, 0);
	rig_run(&b);
	assert_int_equal(got.count, 4);
	assert_int_equal(got.len, 103);
	run_both();
	assert_int_equal(got.count, 10);
	assert_int_equal(got.len, 109);
	close_both();
}

static void
learn(struct rig *r, const struct rig *peer, uint32_t ip)
{
	struct ipaddr addr = ipaddr_v4_cpu(ip);

	for (unsigned i = 0; i < r->s->n_netisrs; i++) {
		assert_true(netisr_take(r->s->netisr[i]));
		assert_int_equal(neigh_set_static(r->s->netisr[i], r->d, &addr, peer->d->mac), 0);
		netisr_give(r->s->netisr[i]);
	}
}

/* UDP datagrams to many ports, all from netisr 0 of a. */
static void
send_flows(unsigned count)
{
	struct ip_out o = { .dst = ipaddr_v4_cpu(RIG_PEER_IP), .proto = IP_PROTO_UDP,
	    .dont_fragment = true };
	struct netisr *n = a.s->netisr[0];
	struct ip_route route;

	assert_true(netisr_take(n));
	assert_int_equal(ip_route_lookup(a.s, &o.dst, NULL, &route), 0);
	o.src = route.src;
	for (unsigned i = 0; i < count; i++) {
		struct pkt *p = rig_pkt(n, 16);

		udp_emit(p->data, (uint16_t)(1000 + i), 53, 8, 0);
		assert_int_equal(ip_output(n, p, &route, &o), 0);
	}
	netisr_round(n);
	netisr_give(n);
}

static void
frames_arrive_at_the_queue_of_the_senders_number(void **state)
{
	(void)state;
	open_side(&a, "pair:t6", "10.0.0.1", 1, false);
	open_side(&b, "pair:t6", "10.0.0.2", 2, false);
	learn(&a, &b, RIG_PEER_IP);
	send_flows(64);
	run_both();
	assert_int_equal(got.count, 64);
	assert_true(got.by_netisr[0] > 0 && got.by_netisr[1] > 0);
	assert_int_equal(stack_counter(b.s, CTR_steered_no_rss), got.by_netisr[1]);
	close_both();
}

static void
cable_that_hashes_delivers_to_the_owner_without_steering(void **state)
{
	(void)state;
	open_side(&a, "pair:t7", "10.0.0.1", 1, false);
	open_side(&b, "pair:t7,rss=on", "10.0.0.2", 2, false);
	learn(&a, &b, RIG_PEER_IP);
	send_flows(64);
	run_both();
	assert_int_equal(got.count, 64);
	assert_true(got.by_netisr[0] > 0 && got.by_netisr[1] > 0);
	assert_int_equal(stack_counter(b.s, CTR_steered_pkts), 0);
	close_both();
}

static void
waiting_frame_makes_the_receiver_due_now(void **state)
{
	struct netisr *n;

	(void)state;
	open_side(&a, "pair:t8", "10.0.0.1", 1, false);
	open_side(&b, "pair:t8", "10.0.0.2", 1, false);
	n = b.s->netisr[0];
	rig_run(&b);
	assert_true(netisr_take(n));
	assert_false(time_reached(n->now, netisr_next_deadline(n)));
	netisr_give(n);
	rig_send(&a, RIG_PEER_IP, 100);
	assert_true(netisr_take(n));
	assert_true(time_reached(n->now, netisr_next_deadline(n)));
	netisr_give(n);
	run_both();
	close_both();
}

static void
wait_for_count(unsigned want)
{
	for (unsigned i = 0; i < 5000 && atomic_load(&got.count) < want; i++)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	assert_int_equal(atomic_load(&got.count), want);
}

static void
send_one(struct netisr *n, void *arg)
{
	struct ip_out o = { .dst = ipaddr_v4_cpu(RIG_PEER_IP), .proto = 253,
	    .dont_fragment = true };
	struct ip_route route;

	(void)arg;
	assert_int_equal(ip_route_lookup(n->stack, &o.dst, NULL, &route), 0);
	o.src = route.src;
	assert_int_equal(ip_output(n, rig_pkt(n, 100), &route, &o), 0);
}

/* Each frame finds the peer's thread asleep, or about to: none may be slept over. */
static void
sleeping_thread_is_woken_by_every_frame(void **state)
{
	(void)state;
	open_side(&a, "pair:t9", "10.0.0.1", 1, true);
	open_side(&b, "pair:t9", "10.0.0.2", 1, true);
	assert_int_equal(netisr_start_keepers(a.s), 0);
	assert_int_equal(netisr_start_keepers(b.s), 0);
	for (unsigned i = 1; i <= 300; i++) {
		netisr_call(a.s->netisr[0], send_one, NULL);
		wait_for_count(i);
	}
	stack_free(a.s);
	stack_free(b.s);
}

static void *
stream_frames(void *arg)
{
	_Atomic bool *stop = arg;

	while (!atomic_load(stop))
		netisr_call(a.s->netisr[0], send_one, NULL);
	return NULL;
}

/* The peer comes and goes while frames flow. */
static void
cable_is_pulled_and_plugged_under_traffic(void **state)
{
	_Atomic bool stop = false;
	pthread_t thread;

	(void)state;
	open_side(&a, "pair:t10", "10.0.0.1", 1, true);
	assert_int_equal(netisr_start_keepers(a.s), 0);
	assert_int_equal(pthread_create(&thread, NULL, stream_frames, &stop), 0);
	for (unsigned i = 0; i < 20; i++) {
		unsigned before = atomic_load(&got.count);

		open_side(&b, "pair:t10", "10.0.0.2", 1, true);
		assert_int_equal(netisr_start_keepers(b.s), 0);
		for (unsigned k = 0; k < 3000 && atomic_load(&got.count) == before; k++)
			nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
		assert_true(atomic_load(&got.count) > before);
		stack_free(b.s);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	assert_true(stack_counter(a.s, CTR_drop_dev_down) > 0);
	stack_free(a.s);
}

#define T(name) cmocka_unit_test_setup(name, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(stacks_resolve_and_ping_one_another),
		T(checksum_is_vouched_for_only_when_it_was_left_to_the_cable),
		T(frames_without_a_peer_are_dropped_and_counted),
		T(third_end_is_refused),
		T(full_ring_pushes_back),
		T(frames_arrive_at_the_queue_of_the_senders_number),
		T(cable_that_hashes_delivers_to_the_owner_without_steering),
		T(waiting_frame_makes_the_receiver_due_now),
		T(sleeping_thread_is_woken_by_every_frame),
		T(cable_is_pulled_and_plugged_under_traffic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
