/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices: a table of operations, so that DPDK ports (dev_dpdk.c), the memory cable (dev_pair.c),
 * the stateless responder (dev_respond.c), the fault injector (dev_fault.c, wraps another) and the
 * loopback look the same to the link layer. Queue q of a device is fed by netisr q (q < n_queues);
 * netisrs beyond that get their frames by steering and hand theirs to netisr (id % n_queues) to
 * send.
 */
#ifndef LINK_DEV_H
#define LINK_DEV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

struct dev;
struct netisr;
struct pkt;
struct darter_stack;
struct config_port;
struct capture;

#define DEV_BURST_PKTS	32
#define DEV_MAX		17	/* CONFIG_MAX_PORTS and the loopback */

enum dev_cap {
	DEV_CAP_RX_IP_CSUM = 1 << 0,
	DEV_CAP_RX_L4_CSUM = 1 << 1,
	DEV_CAP_TX_IP_CSUM = 1 << 2,
	DEV_CAP_TX_L4_CSUM = 1 << 3,
	DEV_CAP_TSO = 1 << 4,
	DEV_CAP_MULTISEG = 1 << 5,	/* packets of several segments may be sent */
	DEV_CAP_RX_VLAN_STRIP = 1 << 6,
	DEV_CAP_RSS = 1 << 7,		/* key and table read back and equal to the stack's */
	DEV_CAP_POLL_ONLY = 1 << 8,	/* no descriptor to sleep on: the keeper's nap is bounded */
};

struct dev_ops {
	const char *name;
	/*
	 * Opens with cfg->device; fills caps, mac, mtu, n_queues. One line in err on failure,
	 * nothing left behind. Set before: name, index, vlan, mtu (configured or 1500), mac if
	 * configured, has_ether (true).
	 */
	int (*open)(struct dev *d, const struct config_port *cfg, char *err, size_t err_size);
	int (*start)(struct dev *d, char *err, size_t err_size);
	/* Up to max frames of queue q. Holder of n = the queue's netisr. */
	unsigned (*rx)(struct dev *d, struct netisr *n, unsigned q, struct pkt **pkts,
	    unsigned max);
	/*
	 * Sends; returns how many were taken (their ownership goes with them), the caller keeps the
	 * rest.
	 */
	unsigned (*tx)(struct dev *d, struct netisr *n, unsigned q, struct pkt **pkts,
	    unsigned count);
	/* descriptor that is readable while frames wait, or -1 */
	int (*rx_fd)(struct dev *d, unsigned q);
	bool (*link_is_up)(struct dev *d);
	/* when frames that wait inside are due: n->now, a delay's end; NULL or TIME_NEVER: none */
	struct time (*next_deadline)(struct dev *d, struct netisr *n);
	void (*stop)(struct dev *d);
	void (*close)(struct dev *d);
};

struct dev {
	const struct dev_ops *ops;
	struct darter_stack *stack;
	char name[16];
	uint8_t index;
	uint8_t mac[6];
	uint16_t mtu;			/* IP packet bytes */
	uint16_t vlan;			/* 0: untagged */
	uint16_t n_queues;
	uint32_t caps;			/* enum dev_cap */
	bool is_loop;
	bool has_ether;			/* frames carry an Ethernet header */
	/* DEV_CAP_RSS is not to be believed (rss_check.h); set once, by any holder */
	_Atomic bool hash_is_wrong;
	_Atomic bool hash_is_told;	/* … and the log has a line about it */
	struct capture *_Atomic capture;	/* NULL: none; published (capture.h) */
	void *priv;
};

/* Are the hashes of received packets the stack's own? */
static inline bool
dev_hashes(const struct dev *d)
{
	return (d->caps & DEV_CAP_RSS) != 0 &&
	    !atomic_load_explicit(&d->hash_is_wrong, memory_order_relaxed);
}

/* Devices of a stack. Filled at set-up, constant afterwards. */
struct dev *dev_get(const struct darter_stack *s, unsigned index);
unsigned dev_count(const struct darter_stack *s);
struct dev *dev_find(const struct darter_stack *s, const char *name);

/* The loopback device; always there. */
struct dev *dev_loop(const struct darter_stack *s);

/*
 * Back ends, chosen by the device string's prefix: "pair:", "respond:", else DPDK. A fault spec
 * wraps what was opened.
 */
extern const struct dev_ops dev_pair_ops;
extern const struct dev_ops dev_respond_ops;
extern const struct dev_ops dev_fault_ops;
extern const struct dev_ops dev_dpdk_ops;

/*
 * Adds a back end for device strings that begin with `prefix` (tests' own devices). Process-wide,
 * before stacks are made.
 */
int dev_backend_add(const char *prefix, const struct dev_ops *ops);

/* The link layer as a layer of the stack (runtime/stack.h). */
struct layer;
extern const struct layer link_layer;

#endif
