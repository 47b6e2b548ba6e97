/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of the host's software: DPDK and its drivers (found through the library that darter is
 * linked with), huge pages, rights for a tap, limits.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "doctor.h"

#define CAP_NET_ADMIN_BIT 12
#define HUGE_DIR "/sys/kernel/mm/hugepages"

/* ---- DPDK ---- */

/* True when the driver's library lies in a plug-in folder beside DPDK's libraries. */
static bool
has_driver(const char *lib_dir, const char *driver)
{
	char pattern[PATH_MAX + 64];
	glob_t found;
	bool ok;

	snprintf(pattern, sizeof(pattern), "%s/dpdk/pmds-*/librte_%s.so*", lib_dir, driver);
	ok = glob(pattern, 0, NULL, &found) == 0;
	globfree(&found);
	return ok;
}

static void
check_drivers(struct report *r, const char *lib_dir)
{
	static const char *const drivers[] = { "net_tap", "net_af_packet", "net_memif", "net_vhost",
		"net_virtio", "net_ring", "net_ixgbe", "mempool_stack" };
	char missing[TEXT_MAX] = "";

	for (unsigned i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		size_t used = strlen(missing);

		if (!has_driver(lib_dir, drivers[i]))
			snprintf(missing + used, sizeof(missing) - used, " %s", drivers[i]);
	}
	if (missing[0] == '\0')
		report_add(r, VERDICT_OK, "dpdk drivers", NULL,
		    "tap, af_packet, memif, vhost, virtio, ring and NICs are installed");
	else
		report_add(r, VERDICT_WARN, "dpdk drivers",
		    "install DPDK's driver packages (Debian: librte-net-*, librte-mempool-*)",
		    "not found under %.120s:%.100s", lib_dir, missing);
}

static void
check_dpdk(struct report *r)
{
	const char *(*version)(void);
	void *symbol = dlsym(RTLD_DEFAULT, "rte_version");
	char dir[PATH_MAX];
	Dl_info info;
	char *slash;

	if (symbol == NULL) {
		report_add(r, VERDICT_WARN, "dpdk", NULL,
		    "linked statically; version and drivers are those it was built with");
		return;
	}
	memcpy(&version, &symbol, sizeof(version));
	report_add(r, VERDICT_OK, "dpdk", NULL, "%s", version());
	if (dladdr(symbol, &info) == 0 || realpath(info.dli_fname, dir) == NULL)
		return;
	slash = strrchr(dir, '/');
	if (slash == NULL)
		return;
	*slash = '\0';
	check_drivers(r, dir);
}

/* ---- memory ---- */

static void
check_huge_size(struct report *r, const char *entry, unsigned *n_total)
{
	char path[512], name[32];
	unsigned long kib;
	long total, n_free;

	if (sscanf(entry, "hugepages-%lukB", &kib) != 1)
		return;
	snprintf(path, sizeof(path), HUGE_DIR "/%s/nr_hugepages", entry);
	total = read_number(path, 0);
	snprintf(path, sizeof(path), HUGE_DIR "/%s/free_hugepages", entry);
	n_free = read_number(path, 0);
	if (total == 0)
		return;
	(*n_total)++;
	snprintf(name, sizeof(name), "huge pages");
	report_add(r, n_free > 0 ? VERDICT_OK : VERDICT_WARN, name,
	    n_free > 0 ? NULL : "find who has them, or raise vm.nr_hugepages",
	    "%ld of %ld pages of %lu KiB are free", n_free, total, kib);
}

static void
check_huge_pages(struct report *r)
{
	DIR *dir = opendir(HUGE_DIR);
	unsigned n_total = 0;
	struct dirent *e;

	while (dir != NULL && (e = readdir(dir)) != NULL)
		check_huge_size(r, e->d_name, &n_total);
	if (dir != NULL)
		closedir(dir);
	if (n_total == 0)
		report_add(r, VERDICT_WARN, "huge pages",
		    "sysctl -w vm.nr_hugepages=256 (as root); only NICs need them",
		    "none; ordinary memory will be used");
}

/* ---- rights ---- */

static bool
has_net_admin(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long caps = 0;
	char line[256];

	if (f == NULL)
		return false;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	}
	fclose(f);
	return (caps >> CAP_NET_ADMIN_BIT & 1) != 0;
}

static bool
has_user_namespaces(void)
{
	return read_number("/proc/sys/user/max_user_namespaces", 0) > 0 &&
	       read_number("/proc/sys/kernel/unprivileged_userns_clone", 1) != 0 &&
	       read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) == 0;
}

static void
check_tap(struct report *r)
{
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	int error = errno;

	if (fd < 0) {
		report_add(r, VERDICT_WARN, "tap",
		    error == EACCES ? "give this user read and write access to /dev/net/tun"
				    : "modprobe tun (as root)",
		    "/dev/net/tun: %s; net_tap ports will not open", strerror(error));
		return;
	}
	close(fd);
	if (has_net_admin())
		report_add(
		    r, VERDICT_OK, "tap", NULL, "/dev/net/tun opens, and CAP_NET_ADMIN is there");
	else if (has_user_namespaces())
		report_add(r, VERDICT_WARN, "tap",
		    "start the program inside \"unshare -Urn\", or setcap cap_net_admin+ep PROGRAM",
		    "no CAP_NET_ADMIN; user namespaces are there");
	else
		report_add(r, VERDICT_WARN, "tap", "run as root or setcap cap_net_admin+ep PROGRAM",
		    "no CAP_NET_ADMIN and no user namespaces; use memif, vhost or loopback");
}

/* ---- limits ---- */

static void
check_limits(struct report *r)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) == 0)
		report_add(r, lim.rlim_cur >= 256 ? VERDICT_OK : VERDICT_WARN, "open files",
		    lim.rlim_cur >= 256 ? NULL : "ulimit -n 1024",
		    "%llu allowed; darter's sockets take none, each netisr takes 3",
		    (unsigned long long)lim.rlim_cur);
	if (getrlimit(RLIMIT_MEMLOCK, &lim) != 0)
		return;
	if (lim.rlim_cur == RLIM_INFINITY)
		report_add(r, VERDICT_OK, "locked memory", NULL, "unlimited");
	else if (geteuid() == 0 || access("/dev/vfio/vfio", F_OK) != 0)
		report_add(r, VERDICT_OK, "locked memory", NULL,
		    "%llu KiB; enough, as VFIO does not count here",
		    (unsigned long long)(lim.rlim_cur >> 10));
	else
		report_add(r, VERDICT_WARN, "locked memory",
		    "raise RLIMIT_MEMLOCK (memlock in /etc/security/limits.conf) above "
		    "stack.packets * 2.5 KiB + 64 MiB",
		    "%llu KiB; VFIO pins DPDK's memory under this limit",
		    (unsigned long long)(lim.rlim_cur >> 10));
}

void
doctor_host(struct report *r)
{
	check_dpdk(r);
	check_huge_pages(r);
	check_tap(r);
	check_limits(r);
}
