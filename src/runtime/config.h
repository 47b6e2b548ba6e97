/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration of a stack: an INI file (inih) with every key overridable by
 * "section.key=value". Plain data; made and checked before anything is touched.
 *
 *   [stack]  netisrs=2  threads=background|manual  memory=heap|dpdk  packets=8192  ring_memory=256m
 * seed=0 (0: OS entropy) rcv_budget=64m  fd_base=1048576
 * rss_key=symmetric|microsoft|HEX rss_entries=128  cpus=0-1 (keepers' affinity, empty: none)
 * exit_linger_ms=1000  log=notice [eal]    args="--no-pci …"  (extra arguments; darter chooses
 * sensible ones)  hugepages=auto|no|yes [port.NAME] device=net_tap0,iface=dtap0 | pair:CABLE |
 * respond:… | PCI address   addr=10.0.0.2/24,10.0.0.3/24 queues=0 (0: as many as netisrs, if the
 * device has them)  mtu=1500  vlan=0  mac=02:…  fault=drop=0.01,seed=7,… capture=FILE.pcap [route]
 * default=10.0.0.1  192.0.2.0/24=10.0.0.254 [sysctl] net.inet.tcp.msl_ms=30000 …
 */
#ifndef RUNTIME_CONFIG_H
#define RUNTIME_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ipaddr.h"
#include "base/toeplitz.h"

#define CONFIG_MAX_PORTS 16
#define CONFIG_MAX_ADDRS 16 /* a port */
#define CONFIG_MAX_ROUTES 64
#define CONFIG_MAX_SYSCTLS 128
#define CONFIG_TEXT_MAX 256
#define CONFIG_RSS_ENTRIES 128 /* default of rss_entries: what most devices have */

struct config_addr {
	struct ipaddr addr;
	uint8_t prefix_bits; /* of the family: 0..32 for IPv4 */
};

struct config_port {
	char name[16];
	char device[CONFIG_TEXT_MAX];
	char fault[CONFIG_TEXT_MAX];
	char capture[CONFIG_TEXT_MAX];
	struct config_addr addrs[CONFIG_MAX_ADDRS];
	unsigned n_addrs;
	unsigned queues;
	unsigned mtu;
	unsigned vlan; /* 0: untagged */
	uint8_t mac[6];
	bool has_mac;
};

struct config_route {
	struct config_addr dst; /* prefix 0: default */
	struct ipaddr gateway;
};

struct config_sysctl {
	char name[64];
	char value[64];
	char where[64]; /* "file:line" or "-o", for error messages */
};

enum config_threads { CONFIG_THREADS_BACKGROUND, CONFIG_THREADS_MANUAL };

enum config_memory {
	CONFIG_MEMORY_AUTO, /* dpdk when a port needs EAL, else heap */
	CONFIG_MEMORY_HEAP,
	CONFIG_MEMORY_DPDK
};

enum config_hugepages { CONFIG_HUGEPAGES_AUTO, CONFIG_HUGEPAGES_NO, CONFIG_HUGEPAGES_YES };

struct config {
	unsigned netisrs;
	enum config_threads threads;
	enum config_memory memory;
	uint32_t packets;
	uint64_t ring_memory_bytes;
	uint64_t rcv_budget_bytes;
	uint64_t seed;
	int fd_base;
	/* law 1: who owns a flow. Set-up only, the devices are told */
	uint8_t rss_key[TOEPLITZ_KEY_MAX_BYTES];
	unsigned rss_key_bytes;		/* 40 to 52 */
	unsigned rss_entries;		/* of the table, a power of two from 64 to 512 */
	char cpus[CONFIG_TEXT_MAX];
	unsigned exit_linger_ms;
	int log_level;
	char eal_args[1024];
	enum config_hugepages hugepages;
	struct config_port ports[CONFIG_MAX_PORTS];
	unsigned n_ports;
	struct config_route routes[CONFIG_MAX_ROUTES];
	unsigned n_routes;
	struct config_sysctl sysctls[CONFIG_MAX_SYSCTLS];
	unsigned n_sysctls;
};

/* Defaults: one netisr, background threads, no port (loopback only). */
void config_init(struct config *c);

/*
 * Reads an INI file over c; lines of at most 198 bytes (args= and addr= may be given several times:
 * they add up). 0, or a negative errno with "file:line: [section] key: what was expected" in err.
 */
int config_read_file(struct config *c, const char *path, char *err, size_t err_size);

/* One "section.key=value", e.g. "stack.netisrs=2", "port.tap0.addr=10.0.0.2/24",
 * "sysctl.net.inet.tcp.sack=0". */
int config_override(struct config *c, const char *assignment, char *err, size_t err_size);

/* Does any port name a DPDK device (a vdev or a PCI address) rather than one of darter's own
 * (pair:, respond:)? */
bool config_needs_eal(const struct config *c);

/* True for device strings that DPDK opens (a vdev or a PCI address); false for "pair:…",
 * "respond:…" and other back ends. */
bool config_device_needs_eal(const char *device);

/* True when a port's device needs EAL or memory=dpdk asks for mbufs. */
bool config_needs_eal(const struct config *c);

/* True for "03:00.0" and "0000:03:00.0", alone or followed by ",devargs". */
bool config_device_is_pci(const char *device);

/* Fewest packets that a queue pair of a device can work with: descriptors of both directions. */
#define CONFIG_QUEUE_PKTS_MIN 128
/* Fewest packets that a netisr needs beside the devices' queues: its cache and what it has in hand.
 */
#define CONFIG_NETISR_PKTS_MIN 256

/* Cross-checks (a port without device, packets too few for the queues, duplicate names …). 0 or
 * -EINVAL with err. */
int config_check(const struct config *c, char *err, size_t err_size);

#endif
