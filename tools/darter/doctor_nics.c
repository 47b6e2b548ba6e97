/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of network cards: which there are, which driver has each, and whether VFIO could have
 * them. A card that the kernel uses is not a fault; the line says how to take it.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

#define PCI_DIR "/sys/bus/pci/devices"

static bool
is_network_card(const char *address)
{
	char path[512], line[32];

	snprintf(path, sizeof(path), PCI_DIR "/%s/class", address);
	return read_line(path, line, sizeof(line)) && strncmp(line, "0x02", 4) == 0;
}

/* Name of the bound driver, "" if none. */
static void
driver_of(const char *address, char *buf, size_t size)
{
	char path[512], target[512];
	ssize_t n;

	buf[0] = '\0';
	snprintf(path, sizeof(path), PCI_DIR "/%s/driver", address);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = '\0';
	snprintf(
	    buf, size, "%.63s", strrchr(target, '/') != NULL ? strrchr(target, '/') + 1 : target);
}

static bool
is_for_dpdk(const char *driver)
{
	static const char *const drivers[] = { "vfio-pci", "uio_pci_generic", "igb_uio",
		"mlx4_core", "mlx5_core" };

	for (unsigned i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		if (strcmp(driver, drivers[i]) == 0)
			return true;
	}
	return false;
}

static void
check_card(struct report *r, const char *address)
{
	char driver[64], fix[TEXT_MAX], path[512];
	long node;

	driver_of(address, driver, sizeof(driver));
	snprintf(path, sizeof(path), PCI_DIR "/%s/numa_node", address);
	node = read_number(path, -1);
	snprintf(fix, sizeof(fix),
	    "to give it to DPDK: dpdk-devbind.py -b vfio-pci %.20s (as root; its kernel "
	    "interface goes away)",
	    address);
	if (is_for_dpdk(driver))
		report_add(r, VERDICT_OK, "nic", NULL,
		    "%.20s: driver %s, NUMA node %ld; device=%.20s", address, driver, node,
		    address);
	else
		report_add(r, VERDICT_OK, "nic", fix, "%.20s: %s, NUMA node %ld", address,
		    driver[0] != '\0' ? driver : "no driver", node);
}

static unsigned
count_entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;
	struct dirent *e;

	while (dir != NULL && (e = readdir(dir)) != NULL)
		n += e->d_name[0] != '.';
	if (dir != NULL)
		closedir(dir);
	return n;
}

static void
check_vfio(struct report *r)
{
	bool has_iommu = count_entries("/sys/kernel/iommu_groups") > 0;

	if (access("/dev/vfio/vfio", F_OK) != 0)
		report_add(r, VERDICT_WARN, "vfio", "modprobe vfio-pci (as root)",
		    "not there; NICs cannot be used");
	else if (!has_iommu)
		report_add(r, VERDICT_WARN, "vfio",
		    "enable the IOMMU (intel_iommu=on or amd_iommu=on), or vfio's "
		    "enable_unsafe_noiommu_mode",
		    "there, but the machine has no IOMMU groups");
	else if (access("/dev/vfio/vfio", R_OK | W_OK) != 0)
		report_add(r, VERDICT_WARN, "vfio", "give this user access to /dev/vfio",
		    "there, but not for this user");
	else
		report_add(r, VERDICT_OK, "vfio", NULL, "there, with IOMMU");
}

void
doctor_nics(struct report *r)
{
	DIR *dir = opendir(PCI_DIR);
	unsigned n_cards = 0;
	struct dirent *e;

	while (dir != NULL && (e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.' || !is_network_card(e->d_name) || n_cards == CHECKS_MAX / 4)
			continue;
		check_card(r, e->d_name);
		n_cards++;
	}
	if (dir != NULL)
		closedir(dir);
	if (n_cards == 0)
		report_add(r, VERDICT_OK, "nic", NULL,
		    "no PCI network card; tap, af_packet, memif, vhost and loopback need none");
	else
		check_vfio(r);
}
