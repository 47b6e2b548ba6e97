/* SPDX-License-Identifier: BSD-2-Clause */
/* What the host is asked about devices, and the advice after a failure. No device is opened. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "support/cmocka_all.h"

#include "link/dev_host.h"

static char err[256];

static void
argument_is_found_by_its_whole_key(void **state)
{
	char buf[16];

	(void)state;
	assert_string_equal(
	    dev_host_arg("net_tap0,myiface=a,iface=b,mac=c", "iface", buf, sizeof(buf)), "b");
	assert_string_equal(dev_host_arg("net_tap0,iface=", "iface", buf, sizeof(buf)), "");
	assert_null(dev_host_arg("net_tap0,iface", "iface", buf, sizeof(buf)));
	assert_null(dev_host_arg("iface=b", "iface", buf, sizeof(buf)));
}

static void
missing_interface_is_named(void **state)
{
	(void)state;
	assert_int_equal(
	    dev_host_check("net_af_packet0,iface=nosuchif0", err, sizeof(err)), -ENODEV);
	assert_non_null(strstr(err, "nosuchif0"));
	assert_int_equal(dev_host_check("net_af_packet0", err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "iface="));
	assert_int_equal(dev_host_check("net_af_packet0,iface=lo", err, sizeof(err)), 0);
	assert_int_equal(dev_host_check("net_pcap0,rx_pcap=a.pcap", err, sizeof(err)), 0);
}

static void
missing_pci_device_is_refused(void **state)
{
	(void)state;
	assert_int_equal(dev_host_check("ffff:ff:1f.7", err, sizeof(err)), -ENODEV);
	assert_non_null(strstr(err, "no such PCI device"));
}

static void
tap_argument_that_the_driver_would_ignore_is_refused(void **state)
{
	(void)state;
	if (access("/dev/net/tun", R_OK | W_OK) != 0)
		skip();
	assert_int_equal(dev_host_check("net_tap0,ifacex=a", err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "unknown argument ifacex"));
	assert_int_equal(
	    dev_host_check("net_tap0,iface=name_longer_than_15", err, sizeof(err)), -EINVAL);
}

static void
device_of_other_kinds_is_left_to_its_driver(void **state)
{
	(void)state;
	assert_int_equal(dev_host_check("net_null0", err, sizeof(err)), 0);
	assert_int_equal(dev_host_check("net_memif0,role=server", err, sizeof(err)), 0);
}

static void
advice_follows_the_drivers_words_or_its_errno(void **state)
{
	(void)state;
	assert_non_null(
	    strstr(dev_host_fix("net_tap0", -EINVAL, "TUNSETIFF: Operation not permitted"),
		"CAP_NET_ADMIN"));
	assert_non_null(strstr(dev_host_fix("03:00.0", -EACCES, ""), "/dev/vfio"));
	assert_non_null(strstr(
	    dev_host_fix("net_x0", -14, "EAL: failed to parse device \"net_x0\""), "no driver"));
	assert_non_null(strstr(dev_host_fix("net_vhost0", -EADDRINUSE, ""), "stop the process"));
	assert_null(strstr(dev_host_fix("net_tap0", -1, ""), "CAP_NET_ADMIN"));
}

static void
errno_follows_the_drivers_words(void **state)
{
	(void)state;
	assert_int_equal(dev_host_errno(-EINVAL, "x: Operation not permitted"), -EPERM);
	assert_int_equal(dev_host_errno(-1, "x: Device or resource busy"), -EBUSY);
	assert_int_equal(dev_host_errno(-14, "EAL: failed to parse device \"x\""), -ENODEV);
	assert_int_equal(dev_host_errno(-1, ""), -EIO);
	assert_int_equal(dev_host_errno(-ENOTSUP, ""), -ENOTSUP);
}

static void
interface_without_descriptor_here_has_no_signal(void **state)
{
	void (*handler)(int);
	int signal;

	(void)state;
	assert_int_equal(dev_host_quiet_tap("nosuchif0", &signal, &handler), -ENOENT);
}

static void
eventfd_is_told_from_other_descriptors(void **state)
{
	int event = eventfd(0, EFD_NONBLOCK), fds[2];

	(void)state;
	assert_true(event >= 0);
	assert_int_equal(pipe(fds), 0);
	assert_true(dev_host_is_eventfd(event));
	assert_false(dev_host_is_eventfd(fds[0]));
	assert_false(dev_host_is_eventfd(-1));
	close(event);
	close(fds[0]);
	close(fds[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(argument_is_found_by_its_whole_key),
		cmocka_unit_test(missing_interface_is_named),
		cmocka_unit_test(missing_pci_device_is_refused),
		cmocka_unit_test(tap_argument_that_the_driver_would_ignore_is_refused),
		cmocka_unit_test(device_of_other_kinds_is_left_to_its_driver),
		cmocka_unit_test(advice_follows_the_drivers_words_or_its_errno),
		cmocka_unit_test(errno_follows_the_drivers_words),
		cmocka_unit_test(eventfd_is_told_from_other_descriptors),
		cmocka_unit_test(interface_without_descriptor_here_has_no_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
