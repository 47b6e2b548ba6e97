/* SPDX-License-Identifier: BSD-2-Clause */
/* The network layer's set-up: gratuitous ARPs of our addresses, configurations that are refused. */
#include "link_rig.h"

static struct rig rig;

/* A stack that has not yet run a round, announcing as configured. */
static void
start(bool link_is_down)
{
	memset(&rig, 0, sizeof(rig));
	clock_init_fake(&rig.clock, (struct time){ 1000000 });
	wire_dev_register();
	rig.w = wire_dev_reset(0);
	rig.w->queues = 1;
	rig.w->link_down = link_is_down;
	rig.s = rig_stack(&rig.clock, (const char *const[]){ "port.p0.device=wire:0",
	    "port.p0.addr=10.0.0.1/24,10.0.0.9/24", NULL });
	rig.d = dev_find(rig.s, "p0");
}

static void
expect_announcement(uint32_t ip)
{
	const struct wire_frame *f = rig_sent(&rig);
	struct arp_view a;

	assert_memory_equal(f->bytes, MAC_BROADCAST.b, 6);
	assert_int_equal(arp_parse(f->bytes + 14, f->len - 14, &a), WIRE_OK);
	assert_int_equal(a.op, ARP_OP_REQUEST);
	assert_int_equal(be32_to_cpu(a.sender_ip), ip);
	assert_int_equal(be32_to_cpu(a.target_ip), ip);
	assert_memory_equal(a.sender_mac.b, RIG_OWN_MAC.b, 6);
}

/* RFC 5227 2.3: twice, two seconds apart */
static void
addresses_are_announced_twice_at_the_start(void **state)
{
	(void)state;
	start(false);
	rig_advance_ms(&rig, 1);
	expect_announcement(RIG_OWN_IP);
	expect_announcement(0x0a000009);
	rig_expect_silence(&rig);
	rig_advance_ms(&rig, 1999);
	rig_expect_silence(&rig);
	rig_advance_ms(&rig, 2);
	expect_announcement(RIG_OWN_IP);
	expect_announcement(0x0a000009);
	rig_advance_ms(&rig, 10000);
	rig_expect_silence(&rig);
	rig_fini(&rig);
}

static void
announcement_waits_for_the_link(void **state)
{
	(void)state;
	start(true);
	rig_run(&rig);
	rig_advance_ms(&rig, 5000);
	rig_expect_silence(&rig);
	rig.w->link_down = false;
	rig_advance_ms(&rig, 1001);
	expect_announcement(RIG_OWN_IP);
	rig_fini(&rig);
}

static void
link_that_never_comes_is_given_up(void **state)
{
	struct netisr *n;

	(void)state;
	start(true);
	rig_run(&rig);
	rig_advance_ms(&rig, 61000);
	n = rig.s->netisr[0];
	assert_true(netisr_take(n));
	assert_true(time_is_never(netisr_next_deadline(n)));
	netisr_give(n);
	rig_fini(&rig);
}

static void
added_address_is_announced(void **state)
{
	struct ipaddr a = ipaddr_v4_cpu(0x0a000033);

	(void)state;
	rig_init(&rig, 1, NULL);
	rig_knob(&rig, "net.inet.announce_count", "1");
	assert_int_equal(ip_addr_add(rig.s, rig.d, &a, 24), 0);
	rig_run(&rig);
	expect_announcement(RIG_OWN_IP);
	expect_announcement(0x0a000033);
	rig_expect_silence(&rig);
	rig_fini(&rig);
}

static void
expect_refusal(const char *const *overrides, const char *word)
{
	static const struct layer *const layers[] = { &link_layer, &inet_layer, NULL };
	struct darter_stack *s;
	struct config cfg;
	char err[256] = "";
	int rc = 0;

	config_init(&cfg);
	cfg.threads = CONFIG_THREADS_MANUAL;
	cfg.memory = CONFIG_MEMORY_HEAP;
	cfg.packets = 128;
	for (; *overrides != NULL; overrides++)
		assert_int_equal(config_override(&cfg, *overrides, err, sizeof(err)), 0);
	s = stack_new(&cfg, layers, NULL, NULL, &rc, err, sizeof(err));
	assert_null(s);
	assert_true(rc < 0);
	if (strstr(err, word) == NULL)
		fail_msg("\"%s\" does not say %s", err, word);
}

static void
configuration_that_cannot_be_is_refused_with_a_reason(void **state)
{
	(void)state;
	expect_refusal((const char *const[]){ "port.p0.device=respond:", "port.p0.addr=fe80::1/64",
	    NULL }, "IPv4");
	expect_refusal((const char *const[]){ "port.p0.device=respond:",
	    "port.p0.addr=10.0.0.255/24", NULL }, "10.0.0.255");
	expect_refusal((const char *const[]){ "port.p0.device=respond:",
	    "port.p0.addr=10.0.0.1/24,10.0.0.1/24", NULL }, "twice");
	expect_refusal((const char *const[]){ "port.p0.device=respond:", "port.p0.addr=10.0.0.1/24",
	    "route.default=224.0.0.1", NULL }, "gateway");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_announced_twice_at_the_start),
		cmocka_unit_test(announcement_waits_for_the_link),
		cmocka_unit_test(link_that_never_comes_is_given_up),
		cmocka_unit_test(added_address_is_announced),
		cmocka_unit_test(configuration_that_cannot_be_is_refused_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
