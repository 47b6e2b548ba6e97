/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading the configuration: what a file and overrides set, and that a refusal names place, key and
 * what was expected. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka_all.h"

#include "base/log.h"
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

/* Reads text as a file. */
static int
read_text(const char *text)
{
	char path[] = "/tmp/darter-config-XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	rc = config_read_file(&cfg, path, err, sizeof(err));
	unlink(path);
	return rc;
}

static void
assert_refused(const char *text, const char *what)
{
	assert_int_not_equal(read_text(text), 0);
	if (strstr(err, what) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err, what);
}

static void
every_section_of_a_file_is_stored(void **state)
{
	(void)state;
	assert_int_equal(
	    read_text("# comment\n[stack]\nnetisrs = 2\nring_memory=64m ; inline\nthreads=manual\n"
		      "log=debug\ncpus=0-1,3\n[eal]\nargs=\"-m 64\"\nhugepages=no\n"
		      "[port.tap0]\ndevice=net_tap0,iface=dtap0\naddr=10.0.0.2/24,10.0.0.3/24\n  "
		      "mtu=1400\n"
		      "mac=02:00:00:00:00:0a\nqueues=1\n[route]\ndefault=10.0.0.1\n192.0.2.0/"
		      "24=10.0.0.254\n"
		      "[sysctl]\nnet.inet.tcp.sack=0\n"),
	    0);
	assert_int_equal(cfg.netisrs, 2);
	assert_true(cfg.ring_memory_bytes == UINT64_C(64) << 20);
	assert_int_equal(cfg.threads, CONFIG_THREADS_MANUAL);
	assert_int_equal(cfg.log_level, LOG_LVL_DEBUG);
	assert_string_equal(cfg.cpus, "0-1,3");
	assert_string_equal(cfg.eal_args, "-m 64");
	assert_int_equal(cfg.hugepages, CONFIG_HUGEPAGES_NO);
	assert_int_equal(cfg.n_ports, 1);
	assert_string_equal(cfg.ports[0].name, "tap0");
	assert_string_equal(cfg.ports[0].device, "net_tap0,iface=dtap0");
	assert_int_equal(cfg.ports[0].n_addrs, 2);
	assert_int_equal(cfg.ports[0].addrs[1].prefix_bits, 24);
	assert_int_equal(cfg.ports[0].addrs[1].addr.b[15], 3);
	assert_int_equal(cfg.ports[0].mtu, 1400);
	assert_int_equal(cfg.ports[0].mac[5], 10);
	assert_true(cfg.ports[0].has_mac);
	assert_int_equal(cfg.n_routes, 2);
	assert_int_equal(cfg.routes[0].dst.prefix_bits, 0);
	assert_int_equal(cfg.routes[1].dst.addr.b[12], 192);
	assert_int_equal(cfg.n_sysctls, 1);
	assert_string_equal(cfg.sysctls[0].name, "net.inet.tcp.sack");
	assert_non_null(strstr(cfg.sysctls[0].where, ":21"));
	assert_int_equal(config_check(&cfg, err, sizeof(err)), 0);
}

static void
repeated_args_and_addr_add_up_within_a_file(void **state)
{
	(void)state;
	assert_int_equal(
	    read_text("[eal]\nargs=-m "
		      "64\nargs=--no-huge\n[port.a]\naddr=10.0.0.1/24\naddr=10.0.0.2/24\n"),
	    0);
	assert_string_equal(cfg.eal_args, "-m 64 --no-huge");
	assert_int_equal(cfg.ports[0].n_addrs, 2);
	assert_int_equal(config_override(&cfg, "port.a.addr=10.0.0.9/24", err, sizeof(err)), 0);
	assert_int_equal(cfg.ports[0].n_addrs, 1);
	assert_int_equal(cfg.ports[0].addrs[0].addr.b[15], 9);
}

static void
key_of_the_hash_is_a_name_or_hex(void **state)
{
	char text[200] = "stack.rss_key=";
	unsigned i;

	(void)state;
	assert_int_equal(cfg.rss_key_bytes, TOEPLITZ_KEY_MIN_BYTES);
	assert_memory_equal(cfg.rss_key, toeplitz_key_symmetric, TOEPLITZ_KEY_MIN_BYTES);
	assert_int_equal(config_override(&cfg, "stack.rss_key=microsoft", err, sizeof(err)), 0);
	assert_memory_equal(cfg.rss_key, toeplitz_key_microsoft, TOEPLITZ_KEY_MIN_BYTES);
	for (i = 0; i < TOEPLITZ_KEY_MAX_BYTES; i++)
		snprintf(text + strlen(text), 4, "%s%02X", i == 0 ? "" : ":", 0xa0 + i);
	assert_int_equal(config_override(&cfg, text, err, sizeof(err)), 0);
	assert_int_equal(cfg.rss_key_bytes, TOEPLITZ_KEY_MAX_BYTES);
	for (i = 0; i < TOEPLITZ_KEY_MAX_BYTES; i++)
		assert_int_equal(cfg.rss_key[i], 0xa0 + i);
}

/* count bytes of key, then `tail`. */
static void
assert_key_refused(unsigned count, const char *tail)
{
	struct config before = cfg;
	char text[200] = "stack.rss_key=";

	while (count-- > 0)
		strcat(text, "5a");
	strcat(text, tail);
	if (config_override(&cfg, text, err, sizeof(err)) != -EINVAL)
		fail_msg("%s was accepted", text);
	assert_non_null(strstr(err, "40 to 52 bytes"));
	assert_memory_equal(cfg.rss_key, before.rss_key, sizeof(cfg.rss_key));
}

static void
key_of_another_length_or_not_hex_is_refused(void **state)
{
	(void)state;
	assert_key_refused(0, "");
	assert_key_refused(0, "symmetrical");
	assert_key_refused(39, "");
	assert_key_refused(53, "");
	assert_key_refused(40, "5");
	assert_key_refused(40, ":");
	assert_key_refused(39, "5g");
}

static void
table_of_the_hash_is_a_power_of_two(void **state)
{
	static const char *const bad[] = { "0", "32", "96", "1024", "x" };
	char text[64];

	(void)state;
	assert_int_equal(cfg.rss_entries, 128);
	assert_int_equal(config_override(&cfg, "stack.rss_entries=512", err, sizeof(err)), 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "stack.rss_entries=%s", bad[i]);
		assert_int_equal(config_override(&cfg, text, err, sizeof(err)), -EINVAL);
		assert_non_null(strstr(err, "64, 128, 256 or 512"));
	}
	assert_int_equal(cfg.rss_entries, 512);
}

static void
ipv6_route_survives_the_colons(void **state)
{
	(void)state;
	assert_int_equal(read_text("[route]\n2001:db8::/32 = fe80::1\ndefault=2001:db8::1\n"), 0);
	assert_int_equal(cfg.n_routes, 2);
	assert_int_equal(cfg.routes[0].dst.prefix_bits, 32);
	assert_int_equal(cfg.routes[0].dst.addr.b[0], 0x20);
	assert_int_equal(cfg.routes[0].gateway.b[0], 0xfe);
	assert_true(ipaddr_is_any(&cfg.routes[1].dst.addr));
	assert_false(ipaddr_is_v4(&cfg.routes[1].dst.addr));
}

static void
unknown_key_is_refused_with_line_and_known_keys(void **state)
{
	(void)state;
	assert_refused("[stack]\nnetisrs=1\nnetisr=2\n",
	    ":3: [stack] netisr: unknown key; known are netisrs,");
	assert_refused("[port.a]\nadress=1\n", "known are device, addr,");
	assert_refused("[stak]\nnetisrs=1\n",
	    "[stak]: unknown section; known are stack, eal, port.NAME, route, sysctl");
	assert_refused("netisrs=1\n", "expected a section");
}

static void
bad_value_is_refused_with_what_was_expected_and_found(void **state)
{
	(void)state;
	assert_refused("[stack]\nnetisrs=0\n", "expected a number from 1 to 64, got \"0\"");
	assert_refused("[stack]\nnetisrs=two\n", "got \"two\"");
	assert_refused("[stack]\nlog=loud\n", "err, warn, notice, info or debug");
	assert_refused("[stack]\ncpus=3-1\n", "list of CPUs");
	assert_refused("[stack]\ncpus=1,\n", "list of CPUs");
	assert_refused("[port.a]\naddr=10.0.0.256/24\n", "[port.a] addr: expected addresses");
	assert_refused("[port.a]\naddr=10.0.0.1/33\n", "10.0.0.1/33");
	assert_refused("[port.a]\nmac=03:00:00:00:00:01\n", "unicast");
	assert_refused("[port.a]\nmac=02:00:00:00:00:01:02\n", "unicast");
	assert_refused("[port.lo]\nmtu=1500\n", "port name");
	assert_refused("[port.a_name_too_long_x]\nmtu=1500\n", "port name");
	assert_refused("[route]\n10.0.0.1/24=10.0.0.254\n", "network such as");
	assert_refused("[route]\ndefault=nowhere\n", "gateway");
	assert_refused("[route]\n192.0.2.0/24=fe80::1\n", "other address family");
}

static void
line_that_is_no_assignment_is_refused_with_its_number(void **state)
{
	char text[400];

	(void)state;
	assert_refused("[stack]\n\nnetisrs\n", ":3: expected [section], key=value");
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text, "[stack]\ncpus=", 13);
	assert_refused(text, ":2: line longer than 198 bytes");
}

static void
missing_file_is_refused_with_its_name(void **state)
{
	(void)state;
	assert_int_equal(
	    config_read_file(&cfg, "/nonexistent/darter.conf", err, sizeof(err)), -ENOENT);
	assert_non_null(strstr(err, "/nonexistent/darter.conf"));
	assert_int_not_equal(config_read_file(&cfg, "/", err, sizeof(err)), 0);
}

static void
override_wins_over_what_was_there(void **state)
{
	(void)state;
	assert_int_equal(
	    read_text("[stack]\nnetisrs=2\n[sysctl]\na.b=1\n[route]\ndefault=10.0.0.1\n"), 0);
	assert_int_equal(config_override(&cfg, "stack.netisrs=3", err, sizeof(err)), 0);
	assert_int_equal(cfg.netisrs, 3);
	assert_int_equal(config_override(&cfg, "sysctl.a.b=2", err, sizeof(err)), 0);
	assert_int_equal(cfg.n_sysctls, 1);
	assert_string_equal(cfg.sysctls[0].value, "2");
	assert_string_equal(cfg.sysctls[0].where, "-o");
	assert_int_equal(config_override(&cfg, "route.default=10.0.0.9", err, sizeof(err)), 0);
	assert_int_equal(cfg.n_routes, 1);
	assert_int_equal(cfg.routes[0].gateway.b[15], 9);
	assert_int_equal(config_override(&cfg, "route.192.0.2.0/24=10.0.0.9", err, sizeof(err)), 0);
	assert_int_equal(cfg.n_routes, 2);
	assert_int_equal(
	    config_override(&cfg, "port.t.device=net_tap0,iface=x", err, sizeof(err)), 0);
	assert_string_equal(cfg.ports[0].device, "net_tap0,iface=x");
}

static void
malformed_override_is_refused(void **state)
{
	static const char *const bad[] = { "", "x", "=1", "stack=1", "stack.=1", ".netisrs=1",
		"port.mtu=1", "port.a=1" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(config_override(&cfg, bad[i], err, sizeof(err)), -EINVAL);
		assert_ptr_equal(strstr(err, "-o: "), err);
	}
	assert_int_equal(config_override(&cfg, "stak.netisrs=1", err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "[stak]: unknown section"));
}

static void
table_that_is_full_refuses_one_more(void **state)
{
	char text[64];

	(void)state;
	for (int i = 0; i < CONFIG_MAX_PORTS; i++) {
		snprintf(text, sizeof(text), "port.p%d.mtu=1500", i);
		assert_int_equal(config_override(&cfg, text, err, sizeof(err)), 0);
	}
	assert_int_equal(config_override(&cfg, "port.more.mtu=1500", err, sizeof(err)), -ENOSPC);
	assert_non_null(strstr(err, "16 at most"));
	for (int i = 0; i < CONFIG_MAX_SYSCTLS; i++) {
		snprintf(text, sizeof(text), "sysctl.k%d=1", i);
		assert_int_equal(config_override(&cfg, text, err, sizeof(err)), 0);
	}
	assert_int_equal(config_override(&cfg, "sysctl.more=1", err, sizeof(err)), -ENOSPC);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_section_of_a_file_is_stored, fresh),
		cmocka_unit_test_setup(repeated_args_and_addr_add_up_within_a_file, fresh),
		cmocka_unit_test_setup(key_of_the_hash_is_a_name_or_hex, fresh),
		cmocka_unit_test_setup(key_of_another_length_or_not_hex_is_refused, fresh),
		cmocka_unit_test_setup(table_of_the_hash_is_a_power_of_two, fresh),
		cmocka_unit_test_setup(ipv6_route_survives_the_colons, fresh),
		cmocka_unit_test_setup(unknown_key_is_refused_with_line_and_known_keys, fresh),
		cmocka_unit_test_setup(
		    bad_value_is_refused_with_what_was_expected_and_found, fresh),
		cmocka_unit_test_setup(
		    line_that_is_no_assignment_is_refused_with_its_number, fresh),
		cmocka_unit_test_setup(missing_file_is_refused_with_its_name, fresh),
		cmocka_unit_test_setup(override_wins_over_what_was_there, fresh),
		cmocka_unit_test_setup(malformed_override_is_refused, fresh),
		cmocka_unit_test_setup(table_that_is_full_refuses_one_more, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
