/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the link layer share: the stack's devices and handlers, and each netisr's
 * queues.
 *
 * struct link_stack is filled at set-up and constant afterwards (knobs apart); struct link_netisr
 * belongs to the holder.
 */
#ifndef LINK_LINK_PRIV_H
#define LINK_LINK_PRIV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "link/dev.h"
#include "link/ether.h"
#include "link/neigh.h"
#include "link/steer.h"
#include "runtime/netisr.h"
#include "runtime/pkt.h"
#include "runtime/stack.h"

#define LINK_RX_BURSTS		2	/* receive bursts of a queue in one round */
#define LINK_TXQ_PKTS		256	/* frames that wait for a device, per netisr and device */
/* a transmit array this full is handed over before the round ends */
#define LINK_TX_FLUSH_PKTS	64
#define LINK_TX_RETRY_US	50
/* a device that takes nothing for so long loses what waits for it */
#define LINK_TX_STALL_US	10000
#define LINK_LOOPQ_PKTS		1024
#define LINK_ETHERTYPES		8

struct neigh_table;

struct link_proto {
	uint16_t ethertype;
	ether_input_fn *input;
};

struct link_stack {
	struct dev *dev[DEV_MAX];
	unsigned n_devs;
	struct dev *loop;
	struct link_proto proto[LINK_ETHERTYPES];
	unsigned n_protos;
	const struct neigh_addr_ops *addr_ops;
	struct steer_ring *rings;	/* [from * n_netisrs + to]; NULL with one netisr */
	struct siphash_key neigh_key;
	_Atomic int64_t nap_max_us;
	_Atomic int64_t neigh_max;
	_Atomic int64_t neigh_queue_pkts;
	_Atomic int64_t neigh_reachable_ms;
	_Atomic int64_t neigh_delay_ms;
	_Atomic int64_t neigh_retrans_ms;
	_Atomic int64_t neigh_stale_s;
};

/* Frames ready for the device: all offloads that it lacks are done. */
struct link_txq {
	struct pkt *pkts[LINK_TXQ_PKTS];
	unsigned count;
	struct time stuck_since;	/* TIME_NEVER while the device takes what it is given */
};

struct link_netisr {
	uint64_t steer_dirty;		/* netisrs that were handed packets and not told yet */
	uint64_t steer_ready;		/* netisrs whose ring may hold packets for this one */
	struct pkt *loop_head;		/* packets to ourselves, linked by next */
	struct pkt **loop_tail;
	unsigned n_loop;
	struct time last_rx;		/* last frame from a poll-only device */
	uint32_t tx_pending;		/* devices with frames in txq, by index */
	uint16_t hashes_seen[DEV_MAX];	/* from each device; wraps (rss_check.h) */
	/* last announcement against a claim on our address (RFC 5227 2.4) */
	struct time defended_at;
	bool has_defended;
	struct neigh_table *neigh;
	struct link_txq txq[DEV_MAX];
};

STATIC_ASSERT(DEV_MAX <= 32, "a bit a device");
STATIC_ASSERT(NETISR_MAX <= 64, "a bit a netisr");

/* ---- dev.c ---- */

/* The back end for a device string; its prefix is not cut off. */
const struct dev_ops *dev_backend(const char *device);

/*
 * Options of a device string, "prefix:first,key=value,…": copies the value of `key` into buf. False
 * when it has none.
 */
bool dev_option(const char *device, const char *key, char *buf, size_t size);

/* The same as a number in [min, max], dflt when absent. 0 or -EINVAL with a line in err. */
int dev_option_u32(const char *device, const char *key, uint32_t dflt, uint32_t min, uint32_t max,
    uint32_t *ret, char *err, size_t err_size);

/* Opens all ports and the loopback; closes them. */
int dev_open_all(struct darter_stack *s, char *err, size_t err_size);
void dev_close_all(struct darter_stack *s);

/* ---- dev_loop.c ---- */

extern const struct dev_ops dev_loop_ops;

/* ---- ether_in.c ---- */

/*
 * A receive burst of d: checks each frame and delivers it here or steers it to its owner. Takes all
 * packets.
 */
void ether_input(struct netisr *n, struct dev *d, struct pkt **pkts, unsigned count);

/* A packet whose owner is n: data at the network header. Takes p. */
void ether_deliver(struct netisr *n, struct dev *d, struct pkt *p);

/* ---- ether_out.c ---- */

/* Puts the Ethernet header in front and sends. Takes p. */
void ether_encap(struct netisr *n, struct dev *d, struct pkt *p, const uint8_t dst_mac[6],
    uint16_t ethertype);

/* A frame that is ready for the device; from another netisr too (steer.c). Takes p. */
void ether_enqueue(struct netisr *n, struct dev *d, struct pkt *p);

/* Hands what waits to the devices. */
void ether_flush(struct netisr *n);

/* ---- arp.c ---- */

ether_input_fn arp_input;

/* A copy of an ARP packet that another netisr has received: learns, never answers. Takes p. */
void arp_input_copy(struct netisr *n, struct dev *d, struct pkt *p);

/* Asks who has target: broadcast, or to `mac` alone when that is not NULL (a probe). */
void arp_request(struct netisr *n, struct dev *d, const struct ipaddr *target, const uint8_t *mac);

/* ---- neigh.c ---- */

int neigh_netisr_init(struct netisr *n);
void neigh_netisr_fini(struct netisr *n);

/* What an ARP packet said about addr. */
enum neigh_news {
	/* it exists with this address: only updates an entry that we have */
	NEIGH_NEWS_HEARD,
	NEIGH_NEWS_ASKED_US,	/* it asked for us, so we shall answer it: makes an entry */
	NEIGH_NEWS_ANSWERED,	/* it answered us: confirms */
};

void neigh_learn(struct netisr *n, struct dev *d, const struct ipaddr *addr, const uint8_t mac[6],
    enum neigh_news news);

#endif
