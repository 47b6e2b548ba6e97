/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of a configuration as a whole, and which devices need DPDK. */
#include <errno.h>
#include <string.h>

#include "support/cmocka_all.h"

#include "runtime/config.h"

static struct config cfg;
static char err[256];

static int
fresh(void **state)
{
	(void)state;
	config_init(&cfg);
	err[0] = '\0';
	return 0;
}

static void
set(const char *assignment)
{
	if (config_override(&cfg, assignment, err, sizeof(err)) != 0)
		fail_msg("%s", err);
}

static void
assert_refused(const char *what)
{
	assert_int_equal(config_check(&cfg, err, sizeof(err)), -EINVAL);
	if (strstr(err, what) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err, what);
}

static void
defaults_pass(void **state)
{
	(void)state;
	assert_int_equal(config_check(&cfg, err, sizeof(err)), 0);
	assert_false(config_needs_eal(&cfg));
}

static void
device_string_tells_whether_dpdk_is_needed(void **state)
{
	(void)state;
	assert_true(config_device_needs_eal("net_tap0,iface=dtap0"));
	assert_true(config_device_needs_eal("net_memif0,socket=/run/a:b"));
	assert_true(config_device_needs_eal("0000:03:00.0"));
	assert_true(config_device_needs_eal("03:00.0,mprq_en=1"));
	assert_false(config_device_needs_eal("pair:cable1"));
	assert_false(config_device_needs_eal("respond:echo"));
	assert_true(config_device_is_pci("03:00.0"));
	assert_false(config_device_is_pci("03:00.8"));
	assert_false(config_device_is_pci("net_tap0"));
	set("port.a.device=pair:x");
	assert_false(config_needs_eal(&cfg));
	set("port.b.device=net_null0");
	assert_true(config_needs_eal(&cfg));
}

static void
port_without_device_is_refused(void **state)
{
	(void)state;
	set("port.a.mtu=1500");
	assert_refused("[port.a] device: missing; set");
}

static void
more_queues_than_netisrs_are_refused(void **state)
{
	(void)state;
	set("port.a.device=net_tap0");
	set("port.a.queues=2");
	assert_refused("set stack.netisrs=2");
	set("stack.netisrs=2");
	assert_int_equal(config_check(&cfg, err, sizeof(err)), 0);
}

static void
dpdk_port_on_heap_memory_is_refused(void **state)
{
	(void)state;
	set("port.a.device=net_tap0");
	set("stack.memory=heap");
	assert_refused("set stack.memory=auto");
}

static void
two_ports_on_one_device_are_refused(void **state)
{
	(void)state;
	set("port.a.device=net_tap0,iface=a");
	set("port.b.device=net_tap0,iface=b");
	assert_refused("the same as [port.a]");
}

static void
address_that_no_host_can_have_is_refused(void **state)
{
	static const char *const bad[] = { "224.0.0.1/4", "127.0.0.2/8", "0.0.0.0/0",
		"255.255.255.255/32", "ff02::1/64" };
	char text[64] = "port.a.addr=";

	(void)state;
	set("port.a.device=pair:x");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		strcpy(text + strlen("port.a.addr="), bad[i]);
		set(text);
		assert_refused("cannot be a host's address");
	}
}

static void
address_on_two_ports_is_refused(void **state)
{
	(void)state;
	set("port.a.device=pair:x");
	set("port.a.addr=10.0.0.1/24");
	set("port.b.device=pair:y");
	set("port.b.addr=10.0.0.1/16");
	assert_refused("10.0.0.1 is also [port.a]'s");
}

static void
packets_too_few_for_the_queues_are_refused_with_the_count_needed(void **state)
{
	(void)state;
	set("stack.netisrs=2");
	set("port.a.device=net_tap0");
	set("stack.packets=700");
	assert_refused(
	    "700 are too few, 2 netisrs and 2 device queues need 768; set stack.packets=768");
	set("stack.packets=768");
	assert_int_equal(config_check(&cfg, err, sizeof(err)), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(defaults_pass, fresh),
		cmocka_unit_test_setup(device_string_tells_whether_dpdk_is_needed, fresh),
		cmocka_unit_test_setup(port_without_device_is_refused, fresh),
		cmocka_unit_test_setup(more_queues_than_netisrs_are_refused, fresh),
		cmocka_unit_test_setup(dpdk_port_on_heap_memory_is_refused, fresh),
		cmocka_unit_test_setup(two_ports_on_one_device_are_refused, fresh),
		cmocka_unit_test_setup(address_that_no_host_can_have_is_refused, fresh),
		cmocka_unit_test_setup(address_on_two_ports_is_refused, fresh),
		cmocka_unit_test_setup(
		    packets_too_few_for_the_queues_are_refused_with_the_count_needed, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
