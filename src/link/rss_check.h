/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Are a device's hashes what it claims? A device whose key and table read back as the stack's
 * (DEV_CAP_RSS) may still hash otherwise: another byte order, fewer fields, a driver that fills in
 * what it likes. Believed, such hashes would take packets to a netisr that does not own them.
 *
 * So every netisr compares the first RSS_CHECK_FIRST hashes that it sees from a device with its
 * own, and of the later ones one in RSS_CHECK_EVERY. The first that differs is counted
 * (rss_hash_wrong) and soon logged, and from that packet on nobody uses the device's hashes: its
 * packets are steered in software, counted as steered_no_rss. That is slower, never wrong.
 */
#ifndef LINK_RSS_CHECK_H
#define LINK_RSS_CHECK_H

#include <stdint.h>

#include "base/compiler.h"
#include "link/link_priv.h"
#include "wire/ether.h"

#define RSS_CHECK_FIRST	64
#define RSS_CHECK_EVERY	256

/* Compares the hash of an IPv4 packet, data at the network header. Holder of n. */
void rss_check(struct netisr *n, struct dev *d, const struct pkt *p);

/* Logs, once, that d's hashes are wrong; nothing while n is borrowed. Holder of n. */
void rss_tell(struct netisr *n, struct dev *d);

/* rss_check for the packets whose turn it is. Before the hash is used. Holder of n. */
static inline void
rss_check_some(struct netisr *n, struct dev *d, const struct pkt *p, uint16_t ethertype)
{
	uint16_t seen;

	if (!(p->flags & PKT_RX_RSS_HASH) || ethertype != ETHER_TYPE_IP4)
		return;
	if (unlikely(!dev_hashes(d))) {
		if (atomic_load_explicit(&d->hash_is_wrong, memory_order_relaxed) &&
		    !atomic_load_explicit(&d->hash_is_told, memory_order_relaxed))
			rss_tell(n, d);
		return;
	}
	/* wraps: then some are first ones again */
	seen = n->link->hashes_seen[d->index]++;
	if (unlikely(seen < RSS_CHECK_FIRST || seen % RSS_CHECK_EVERY == 0))
		rss_check(n, d, p);
}

#endif
