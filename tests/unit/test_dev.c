/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of devices: back ends by prefix, options in device strings, errors that say what to do.
 */
#include "link_rig.h"
#include "link/link_priv.h"

static struct darter_stack *
try_stack(struct clock *clock, const char *const *overrides, int *ret_err, char *err,
    size_t err_size)
{
	static const struct layer *const layers[] = { &link_layer, &inet_layer, NULL };
	struct config cfg;

	config_init(&cfg);
	clock_init_fake(clock, (struct time){ 1000000 });
	cfg.threads = CONFIG_THREADS_MANUAL;
	cfg.memory = CONFIG_MEMORY_HEAP;
	cfg.packets = 256;
	cfg.ring_memory_bytes = 16u << 20;
	for (; *overrides != NULL; overrides++)
		assert_int_equal(config_override(&cfg, *overrides, err, err_size), 0);
	err[0] = '\0';
	return stack_new(&cfg, layers, clock, NULL, ret_err, err, err_size);
}

static void
prefix_chooses_the_back_end(void **state)
{
	(void)state;
	assert_ptr_equal(dev_backend("pair:x"), &dev_pair_ops);
	assert_ptr_equal(dev_backend("respond:"), &dev_respond_ops);
	assert_ptr_equal(dev_backend("net_tap0,iface=t0"), &dev_dpdk_ops);
	assert_ptr_equal(dev_backend("0000:01:00.0"), &dev_dpdk_ops);
}

static void
added_back_end_is_found_and_replaced_by_prefix(void **state)
{
	static const struct dev_ops one, two;

	(void)state;
	assert_int_equal(dev_backend_add("test:", &one), 0);
	assert_ptr_equal(dev_backend("test:abc"), &one);
	assert_int_equal(dev_backend_add("test:", &two), 0);
	assert_ptr_equal(dev_backend("test:abc"), &two);
}

static void
option_is_found_by_its_whole_key(void **state)
{
	char text[16];

	(void)state;
	assert_true(dev_option("pair:a,queues=2,csum=off", "csum", text, sizeof(text)));
	assert_string_equal(text, "off");
	assert_true(dev_option("respond:echo=on", "echo", text, sizeof(text)));
	assert_string_equal(text, "on");
	assert_false(dev_option("pair:a,queues=2", "queue", text, sizeof(text)));
	assert_false(dev_option("pair:a,xqueues=2", "queues", text, sizeof(text)));
	assert_false(dev_option("pair:a", "queues", text, sizeof(text)));
}

static void
number_option_is_checked_against_its_range(void **state)
{
	char err[128] = "";
	uint32_t v;

	(void)state;
	assert_int_equal(dev_option_u32("pair:a", "slots", 512, 2, 1024, &v, err, sizeof(err)), 0);
	assert_int_equal(v, 512);
	assert_int_equal(dev_option_u32("pair:a,slots=64", "slots", 512, 2, 1024, &v, err,
	    sizeof(err)), 0);
	assert_int_equal(v, 64);
	assert_int_equal(dev_option_u32("pair:a,slots=1", "slots", 512, 2, 1024, &v, err,
	    sizeof(err)), -EINVAL);
	assert_int_equal(dev_option_u32("pair:a,slots=4x", "slots", 512, 2, 1024, &v, err,
	    sizeof(err)), -EINVAL);
	assert_int_equal(dev_option_u32("pair:a,slots=-4", "slots", 512, 2, 1024, &v, err,
	    sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "slots"));
}

static void
loopback_is_device_zero_and_ports_follow(void **state)
{
	struct darter_stack *s;
	struct clock clock;
	char err[256];
	int rc;

	(void)state;
	s = try_stack(&clock, (const char *const[]){ "port.a.device=respond:",
	    "port.b.device=respond:", NULL }, &rc, err, sizeof(err));
	assert_non_null(s);
	assert_int_equal(dev_count(s), 3);
	assert_ptr_equal(dev_get(s, 0), dev_loop(s));
	assert_string_equal(dev_get(s, 0)->name, "lo");
	assert_ptr_equal(dev_get(s, 1), dev_find(s, "a"));
	assert_ptr_equal(dev_get(s, 2), dev_find(s, "b"));
	assert_int_equal(dev_get(s, 2)->index, 2);
	assert_null(dev_get(s, 3));
	assert_null(dev_find(s, "c"));
	stack_free(s);
}

static void
configured_mac_mtu_and_vlan_are_the_devices(void **state)
{
	static const uint8_t mac[6] = { 2, 1, 2, 3, 4, 5 };
	struct darter_stack *s;
	struct clock clock;
	char err[256];
	int rc;

	(void)state;
	s = try_stack(&clock, (const char *const[]){ "port.a.device=respond:",
	    "port.a.mac=02:01:02:03:04:05", "port.a.mtu=1400", "port.a.vlan=9", NULL }, &rc, err,
	    sizeof(err));
	assert_non_null(s);
	assert_memory_equal(dev_find(s, "a")->mac, mac, 6);
	assert_int_equal(dev_find(s, "a")->mtu, 1400);
	assert_int_equal(dev_find(s, "a")->vlan, 9);
	stack_free(s);
}

static void
device_that_does_not_open_fails_the_stack_with_a_reason(void **state)
{
	struct clock clock;
	char err[256];
	int rc = 0;

	(void)state;
	assert_null(try_stack(&clock, (const char *const[]){ "port.a.device=respond:",
	    "port.b.device=pair:", NULL }, &rc, err, sizeof(err)));
	assert_int_equal(rc, -EINVAL);
	assert_non_null(strstr(err, "pair"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefix_chooses_the_back_end),
		cmocka_unit_test(added_back_end_is_found_and_replaced_by_prefix),
		cmocka_unit_test(option_is_found_by_its_whole_key),
		cmocka_unit_test(number_option_is_checked_against_its_range),
		cmocka_unit_test(loopback_is_device_zero_and_ports_follow),
		cmocka_unit_test(configured_mac_mtu_and_vlan_are_the_devices),
		cmocka_unit_test(device_that_does_not_open_fails_the_stack_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
