/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's side of DPDK devices: checks before opening, advice after a failure, and net_tap's
 * signals.
 *
 * net_tap sets O_ASYNC and a real-time signal on each queue's descriptor; its handler bumps a
 * counter without which the receive function does not look. Such signals interrupt the
 * application's system calls. So the descriptors are found (they are this process's, lead to
 * /dev/net/tun and name the interface), O_ASYNC is cleared before the interface comes up, and the
 * receive path calls the handler itself.
 */
#define _GNU_SOURCE 1 /* F_GETSIG */

#include "link/dev_host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/config.h"

#define TUN_PATH "/dev/net/tun"

const char *
dev_host_arg(const char *device, const char *key, char *buf, size_t size)
{
	size_t key_len = strlen(key);

	for (const char *p = strchr(device, ','); p != NULL; p = strchr(p, ',')) {
		p++;
		if (strncmp(p, key, key_len) != 0 || p[key_len] != '=')
			continue;
		p += key_len + 1;
		snprintf(buf, size, "%.*s", (int)strcspn(p, ","), p);
		return buf;
	}
	return NULL;
}

static bool
has_driver(const char *device, const char *driver)
{
	return strncmp(device, driver, strlen(driver)) == 0;
}

static bool
is_tap(const char *device)
{
	return has_driver(device, "net_tap") || has_driver(device, "net_tun");
}

/* Up with a carrier: a tap has that only while a process has it open. */
static bool
is_running(const char *iface)
{
	struct ifreq ifr;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool up = false;

	if (fd < 0)
		return false;
	memset(&ifr, 0, sizeof(ifr));
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", iface);
	if (ioctl(fd, SIOCGIFFLAGS, &ifr) == 0)
		up = (ifr.ifr_flags & IFF_RUNNING) != 0;
	close(fd);
	return up;
}

/* The driver silently ignores arguments that it does not know. */
static int
check_tap_args(const char *device, char *err, size_t err_size)
{
	static const char *const known[] = { "iface", "remote", "mac", "persist" };

	for (const char *p = strchr(device, ','); p != NULL; p = strchr(p, ',')) {
		size_t len = strcspn(++p, ",="), i = 0;

		while (i < sizeof(known) / sizeof(known[0]) &&
		       (strlen(known[i]) != len || strncmp(known[i], p, len) != 0))
			i++;
		if (i < sizeof(known) / sizeof(known[0]))
			continue;
		snprintf(err, err_size,
		    "unknown argument %.*s; known are iface, remote, mac, persist", (int)len, p);
		return -EINVAL;
	}
	return 0;
}

/* Two processes that open one multi-queue tap would each get some of its packets; the kernel does
 * not refuse that. */
static int
check_tap(const char *device, char *err, size_t err_size)
{
	char iface[64];
	int fd = open(TUN_PATH, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		int rc = -errno;
		bool is_missing = rc == -ENOENT || rc == -ENODEV || rc == -ENXIO;

		snprintf(err, err_size, "%s: %s; %s", TUN_PATH, strerror(-rc),
		    is_missing ? "load the kernel's tun module (modprobe tun)"
			       : "give this user read and write access to it");
		return rc;
	}
	close(fd);
	if (check_tap_args(device, err, err_size) != 0)
		return -EINVAL;
	if (dev_host_arg(device, "iface", iface, sizeof(iface)) == NULL)
		return 0;
	if (strlen(iface) >= IFNAMSIZ) {
		snprintf(err, err_size, "interface name %s is too long; use at most %d letters",
		    iface, IFNAMSIZ - 1);
		return -EINVAL;
	}
	if (is_running(iface)) {
		snprintf(err, err_size,
		    "interface %s is in use by another process; stop that or choose another iface=",
		    iface);
		return -EBUSY;
	}
	return 0;
}

static int
check_interface(const char *device, char *err, size_t err_size)
{
	char iface[64];

	if (dev_host_arg(device, "iface", iface, sizeof(iface)) == NULL) {
		/* net_pcap can also read files. */
		if (has_driver(device, "net_pcap"))
			return 0;
		snprintf(err, err_size, "no interface named; add iface=NAME");
		return -EINVAL;
	}
	if (if_nametoindex(iface) != 0)
		return 0;
	snprintf(err, err_size,
	    "there is no interface %s; \"ip link\" lists those of this network namespace", iface);
	return -ENODEV;
}

static int
check_pci(const char *device, char *err, size_t err_size)
{
	static const char *const usable[] = { "vfio-pci", "uio_pci_generic", "igb_uio", "mlx4_core",
		"mlx5_core", NULL };
	char path[128], target[256];
	int len = (int)strcspn(device, ",");
	const char *driver;
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s%.*s", len < 12 ? "0000:" : "", len,
	    device);
	if (access(path, F_OK) != 0) {
		snprintf(err, err_size, "there is no such PCI device; \"lspci -D\" lists them");
		return -ENODEV;
	}
	strncat(path, "/driver", sizeof(path) - strlen(path) - 1);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0) {
		snprintf(err, err_size,
		    "no driver is bound to it; dpdk-devbind.py -b vfio-pci %.*s", len, device);
		return -ENODEV;
	}
	target[n] = '\0';
	driver = strrchr(target, '/') != NULL ? strrchr(target, '/') + 1 : target;
	for (int i = 0; usable[i] != NULL; i++) {
		if (strcmp(driver, usable[i]) == 0)
			return 0;
	}
	snprintf(err, err_size, "the kernel driver %s has it; dpdk-devbind.py -b vfio-pci %.*s",
	    driver, len, device);
	return -EBUSY;
}

int
dev_host_check(const char *device, char *err, size_t err_size)
{
	if (config_device_is_pci(device))
		return check_pci(device, err, err_size);
	if (is_tap(device))
		return check_tap(device, err, err_size);
	if (has_driver(device, "net_af_packet") || has_driver(device, "eth_af_packet") ||
	    has_driver(device, "net_af_xdp") || has_driver(device, "net_pcap"))
		return check_interface(device, err, err_size);
	return 0;
}

static bool
says(const char *why, int rc, int error)
{
	/* -1 is what drivers return when they did not think of an errno; it is not EPERM. */
	return (rc == -error && rc != -1) || strstr(why, strerror(error)) != NULL;
}

static bool
is_unknown_driver(const char *why)
{
	return strstr(why, "failed to parse device") != NULL;
}

int
dev_host_errno(int rc, const char *why)
{
	static const int errors[] = { EPERM, EACCES, EBUSY, EADDRINUSE, ENOMEM, ENOENT, ENODEV };

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (strstr(why, strerror(errors[i])) != NULL)
			return -errors[i];
	}
	if (is_unknown_driver(why))
		return -ENODEV;
	return rc < 0 && rc != -1 ? rc : -EIO;
}

const char *
dev_host_fix(const char *device, int rc, const char *why)
{
	if (is_unknown_driver(why))
		return "DPDK has no driver of that name; check the spelling and that the driver is "
		       "installed";
	if (says(why, rc, EPERM) || says(why, rc, EACCES)) {
		if (config_device_is_pci(device))
			return "give this user access to /dev/vfio and a larger RLIMIT_MEMLOCK, or "
			       "run as root";
		return "it needs CAP_NET_ADMIN: run as root or inside \"unshare -Urn\"";
	}
	if (says(why, rc, EBUSY) || says(why, rc, EADDRINUSE))
		return "stop the process that uses it or choose another name";
	if (says(why, rc, ENOMEM))
		return "give DPDK more memory (eal.args=-m MIB) or lower stack.packets";
	if (strstr(why, "max frame size") != NULL)
		return "set a smaller mtu for the port";
	return "check the arguments; stack.log=info shows DPDK's messages";
}

/* True when fd leads to what /proc calls `name`. */
static bool
leads_to(int fd, const char *name)
{
	char path[64], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return strcmp(target, name) == 0;
}

bool
dev_host_is_eventfd(int fd)
{
	return leads_to(fd, "anon_inode:[eventfd]");
}

/* True when fd is a queue of iface. */
static bool
is_queue_of(int fd, const char *iface)
{
	struct ifreq ifr;

	/* ioctl only on what is known to be a tun: to others the number may mean something. */
	if (!leads_to(fd, TUN_PATH))
		return false;
	memset(&ifr, 0, sizeof(ifr));
	return ioctl(fd, TUNGETIFF, &ifr) == 0 && strncmp(ifr.ifr_name, iface, IFNAMSIZ) == 0;
}

/*
 * Clears O_ASYNC; the signal that the descriptor used, 0 if none. Programs that the application
 * starts do not inherit it: they would keep the interface alive.
 */
static int
quiet_fd(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	int signal = fcntl(fd, F_GETSIG);

	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (flags >= 0 && (flags & O_ASYNC) != 0)
		(void)fcntl(fd, F_SETFL, flags & ~O_ASYNC);
	return signal > 0 ? signal : 0;
}

int
dev_host_quiet_tap(const char *iface, int *ret_signal, void (**ret_handler)(int))
{
	DIR *dir = opendir("/proc/self/fd");
	struct sigaction action;
	struct dirent *e;
	int signal = 0;

	if (dir == NULL)
		return -errno;
	while ((e = readdir(dir)) != NULL) {
		int fd = atoi(e->d_name);
		int used = e->d_name[0] != '.' && is_queue_of(fd, iface) ? quiet_fd(fd) : 0;

		if (used != 0)
			signal = used;
	}
	closedir(dir);
	if (signal == 0)
		return -ENOENT;
	if (sigaction(signal, NULL, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0 ||
	    action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
		return -EINVAL;
	*ret_signal = signal;
	*ret_handler = action.sa_handler;
	return 0;
}
