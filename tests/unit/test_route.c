/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses and routes: longest prefix, sources, groups, changes at run time (RFC 1122 3.3). */
#include "link_rig.h"

static struct rig rig;
static struct dev *p0, *p1;

static int
setup(void **state)
{
	(void)state;
	rig_init(&rig, 1, (const char *const[]){
	    "port.p0.addr=10.0.0.1/24,10.0.0.5/24,10.9.0.1/31",
	    "port.p1.device=respond:", "port.p1.addr=172.16.0.1/16", "port.p1.mtu=1400",
	    "route.default=10.0.0.254", "route.198.51.100.0/24=172.16.0.9",
	    "route.198.51.100.128/25=10.0.0.253", "route.203.0.113.0/24=192.168.7.7", NULL });
	p0 = rig.d;
	p1 = dev_find(rig.s, "p1");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	rig_fini(&rig);
	return 0;
}

static int
lookup(const char *dst, const char *src, struct ip_route *r)
{
	struct ipaddr d, s;

	assert_int_equal(ipaddr_parse(dst, &d), 0);
	if (src != NULL)
		assert_int_equal(ipaddr_parse(src, &s), 0);
	memset(r, 0, sizeof(*r));
	return ip_route_lookup(rig.s, &d, src != NULL ? &s : NULL, r);
}

static void
expect_addr(const struct ipaddr *a, const char *text)
{
	char buf[IPADDR_STR_MAX];

	assert_string_equal(ipaddr_format(a, buf, sizeof(buf)), text);
}

static void
neighbour_is_reached_directly(void **state)
{
	struct ip_route r;

	(void)state;
	assert_int_equal(lookup("10.0.0.77", NULL, &r), 0);
	assert_ptr_equal(r.dev, p0);
	expect_addr(&r.next_hop, "10.0.0.77");
	assert_int_equal(r.mtu, 1500);
	assert_false(r.is_local || r.is_broadcast);
	assert_int_equal(lookup("172.16.44.1", NULL, &r), 0);
	assert_ptr_equal(r.dev, p1);
	expect_addr(&r.src, "172.16.0.1");
	assert_int_equal(r.mtu, 1400);
}

static void
longest_prefix_wins(void **state)
{
	struct ip_route r;

	(void)state;
	assert_int_equal(lookup("8.8.8.8", NULL, &r), 0);
	expect_addr(&r.next_hop, "10.0.0.254");
	assert_int_equal(lookup("198.51.100.1", NULL, &r), 0);
	expect_addr(&r.next_hop, "172.16.0.9");
	expect_addr(&r.src, "172.16.0.1");
	assert_int_equal(lookup("198.51.100.129", NULL, &r), 0);
	expect_addr(&r.next_hop, "10.0.0.253");
	assert_ptr_equal(r.dev, p0);
}

static void
route_by_an_unknown_gateway_is_not_used(void **state)
{
	struct ip_route r;

	(void)state;
	assert_int_equal(lookup("203.0.113.1", NULL, &r), 0);
	expect_addr(&r.next_hop, "10.0.0.254");
}

/* RFC 1122 3.3.4.3 */
static void
bound_source_wins_when_it_is_ours(void **state)
{
	struct ip_route r;

	(void)state;
	assert_int_equal(lookup("10.0.0.77", "10.0.0.5", &r), 0);
	expect_addr(&r.src, "10.0.0.5");
	assert_int_equal(lookup("10.0.0.77", "10.0.0.6", &r), -EADDRNOTAVAIL);
	assert_int_equal(lookup("10.0.0.77", "0.0.0.0", &r), 0);
	/* 127/8 never leaves this host (RFC 1122 3.2.1.3) */
	assert_int_equal(lookup("10.0.0.77", "127.0.0.1", &r), -EADDRNOTAVAIL);
}

static void
own_addresses_go_to_the_loopback(void **state)
{
	struct ip_route r;

	(void)state;
	assert_int_equal(lookup("10.0.0.5", NULL, &r), 0);
	assert_true(r.is_local);
	assert_ptr_equal(r.dev, dev_loop(rig.s));
	expect_addr(&r.src, "10.0.0.5");
	assert_int_equal(lookup("127.9.9.9", NULL, &r), 0);
	assert_true(r.is_local);
	expect_addr(&r.src, "127.0.0.1");
	assert_int_equal(lookup("127.0.0.1", "172.16.0.1", &r), 0);
	expect_addr(&r.src, "172.16.0.1");
}

static void
broadcasts_are_found_and_go_to_every_host(void **state)
{
	struct ip_route r;

	(void)state;
	assert_int_equal(lookup("172.16.255.255", NULL, &r), 0);
	assert_true(r.is_broadcast);
	assert_ptr_equal(r.dev, p1);
	expect_addr(&r.next_hop, "255.255.255.255");
	assert_int_equal(lookup("255.255.255.255", "172.16.0.1", &r), 0);
	assert_ptr_equal(r.dev, p1);
	assert_int_equal(lookup("255.255.255.255", NULL, &r), 0);
	assert_ptr_equal(r.dev, p0);	/* where the default route leads */
	assert_true(r.is_broadcast);
}

static void
multicast_leaves_by_the_source_or_the_default_route(void **state)
{
	struct ip_route r;

	(void)state;
	assert_int_equal(lookup("224.1.2.3", NULL, &r), 0);
	assert_ptr_equal(r.dev, p0);
	assert_true(r.is_broadcast);
	expect_addr(&r.next_hop, "224.1.2.3");
	assert_int_equal(lookup("224.1.2.3", "172.16.0.1", &r), 0);
	assert_ptr_equal(r.dev, p1);
}

/* RFC 3021 */
static void
prefix_of_31_bits_has_two_hosts_and_no_broadcast(void **state)
{
	struct ip_route r;

	(void)state;
	assert_int_equal(lookup("10.9.0.0", NULL, &r), 0);
	assert_false(r.is_broadcast);
	expect_addr(&r.next_hop, "10.9.0.0");
	expect_addr(&r.src, "10.9.0.1");
}

static void
what_is_no_destination_has_no_route(void **state)
{
	struct ip_route r;

	(void)state;
	assert_int_equal(lookup("0.0.0.1", NULL, &r), -ENETUNREACH);
	assert_int_equal(lookup("0.0.0.0", NULL, &r), -ENETUNREACH);
	assert_int_equal(lookup("240.0.0.1", NULL, &r), -ENETUNREACH);
	assert_int_equal(lookup("fe80::1", NULL, &r), -EAFNOSUPPORT);
}

static int
add_route(const char *dst, uint8_t bits, const char *gw)
{
	struct ipaddr d, g;

	assert_int_equal(ipaddr_parse(dst, &d), 0);
	assert_int_equal(ipaddr_parse(gw, &g), 0);
	return ip_route_add(rig.s, &d, bits, &g);
}

static int
add_addr(struct dev *d, const char *text, uint8_t bits)
{
	struct ipaddr a;

	assert_int_equal(ipaddr_parse(text, &a), 0);
	return ip_addr_add(rig.s, d, &a, bits);
}

static void
route_changes_at_run_time_move_the_generation(void **state)
{
	uint32_t gen = ip_route_gen(rig.s);
	struct ipaddr net = ipaddr_v4_cpu(0x0a640000);
	struct ip_route r;

	(void)state;
	assert_int_equal(lookup("10.100.0.1", NULL, &r), 0);
	assert_int_equal(r.gen, gen);
	assert_int_equal(add_route("10.100.0.0", 16, "172.16.0.3"), 0);
	assert_int_not_equal(ip_route_gen(rig.s), gen);
	assert_int_equal(lookup("10.100.0.1", NULL, &r), 0);
	expect_addr(&r.next_hop, "172.16.0.3");
	assert_int_equal(add_route("10.100.0.0", 16, "172.16.0.4"), -EEXIST);
	assert_int_equal(ip_route_del(rig.s, &net, 16), 0);
	assert_int_equal(ip_route_del(rig.s, &net, 16), -ESRCH);
	assert_int_equal(lookup("10.100.0.1", NULL, &r), 0);
	expect_addr(&r.next_hop, "10.0.0.254");
}

static void
route_that_makes_no_sense_is_refused(void **state)
{
	(void)state;
	assert_int_equal(add_route("10.100.0.1", 16, "172.16.0.3"), -EINVAL);
	assert_int_equal(add_route("10.100.0.0", 33, "172.16.0.3"), -EINVAL);
	assert_int_equal(add_route("10.100.0.0", 16, "192.168.1.1"), -ENETUNREACH);
	assert_int_equal(add_route("fe80::", 16, "172.16.0.3"), -EAFNOSUPPORT);
}

static void
route_comes_alive_with_the_gateways_network(void **state)
{
	struct ipaddr a = ipaddr_v4_cpu(0xc0a80701);
	struct ip_route r;

	(void)state;
	assert_int_equal(add_addr(p1, "192.168.7.1", 24), 0);
	assert_int_equal(lookup("203.0.113.1", NULL, &r), 0);
	expect_addr(&r.next_hop, "192.168.7.7");
	expect_addr(&r.src, "192.168.7.1");
	assert_int_equal(ip_addr_del(rig.s, p1, &a), 0);
	assert_int_equal(lookup("203.0.113.1", NULL, &r), 0);
	expect_addr(&r.next_hop, "10.0.0.254");
	assert_int_equal(ip_addr_del(rig.s, p1, &a), -EADDRNOTAVAIL);
}

/* RFC 1122 3.2.1.3 */
static void
addresses_that_no_host_can_have_are_refused(void **state)
{
	(void)state;
	assert_int_equal(add_addr(p1, "10.1.0.0", 24), -EINVAL);
	assert_int_equal(add_addr(p1, "10.1.0.255", 24), -EINVAL);
	assert_int_equal(add_addr(p1, "224.0.0.5", 24), -EINVAL);
	assert_int_equal(add_addr(p1, "0.1.2.3", 24), -EINVAL);
	assert_int_equal(add_addr(p1, "127.0.0.2", 8), -EINVAL);
	assert_int_equal(add_addr(p1, "255.255.255.255", 32), -EINVAL);
	assert_int_equal(add_addr(p1, "10.0.0.5", 24), -EEXIST);
	assert_int_equal(add_addr(p1, "fe80::5", 64), -EAFNOSUPPORT);
}

/* A service address that is on no link, announced by routing. */
static void
address_on_the_loopback_is_ours_but_not_chosen_as_source(void **state)
{
	struct ipaddr a = ipaddr_v4_cpu(0xc6330001);
	struct ip_route r;

	(void)state;
	assert_false(ip_is_own(rig.s, &a));
	assert_int_equal(add_addr(dev_loop(rig.s), "198.51.0.1", 32), 0);
	assert_true(ip_is_own(rig.s, &a));
	assert_int_equal(lookup("8.8.8.8", NULL, &r), 0);
	expect_addr(&r.src, "10.0.0.1");
	assert_int_equal(lookup("8.8.8.8", "198.51.0.1", &r), 0);
	expect_addr(&r.src, "198.51.0.1");
	expect_addr(&r.next_hop, "10.0.0.254");
}

static void
predicates_know_our_addresses_and_broadcasts(void **state)
{
	struct ipaddr own = ipaddr_v4_cpu(RIG_OWN_IP), loop = ipaddr_v4_cpu(0x7f112233);
	struct ipaddr peer = ipaddr_v4_cpu(RIG_PEER_IP), bcast = ipaddr_v4_cpu(0xac10ffff);
	struct ipaddr limited = ipaddr_v4_cpu(0xffffffff), six;

	(void)state;
	assert_int_equal(ipaddr_parse("fe80::1", &six), 0);
	assert_true(ip_is_own(rig.s, &own) && ip_is_own(rig.s, &loop));
	assert_false(ip_is_own(rig.s, &peer) || ip_is_own(rig.s, &bcast) || ip_is_own(rig.s, &six));
	assert_true(ip_is_broadcast(rig.s, &bcast) && ip_is_broadcast(rig.s, &limited));
	assert_false(ip_is_broadcast(rig.s, &own) || ip_is_broadcast(rig.s, &six));
}

static void
old_snapshots_are_freed(void **state)
{
	struct ipaddr a = ipaddr_v4_cpu(0x0a070001);

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(add_addr(p1, "10.7.0.1", 24), 0);
		assert_int_equal(ip_addr_del(rig.s, p1, &a), 0);
	}
	assert_null(rig.s->retired);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(neighbour_is_reached_directly),
		T(longest_prefix_wins),
		T(route_by_an_unknown_gateway_is_not_used),
		T(bound_source_wins_when_it_is_ours),
		T(own_addresses_go_to_the_loopback),
		T(broadcasts_are_found_and_go_to_every_host),
		T(multicast_leaves_by_the_source_or_the_default_route),
		T(prefix_of_31_bits_has_two_hosts_and_no_broadcast),
		T(what_is_no_destination_has_no_route),
		T(route_changes_at_run_time_move_the_generation),
		T(route_that_makes_no_sense_is_refused),
		T(route_comes_alive_with_the_gateways_network),
		T(addresses_that_no_host_can_have_are_refused),
		T(address_on_the_loopback_is_ours_but_not_chosen_as_source),
		T(predicates_know_our_addresses_and_broadcasts),
		T(old_snapshots_are_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
