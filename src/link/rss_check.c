/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verification of a device's hashes by the packets it delivers; rss_check.h says which. One that
 * differs is enough: a device that is right for one kind of packet and wrong for another is as
 * useless, and the price of distrust is a hash a packet. A peer who finds packets that a device
 * hashes otherwise can thus take away that optimisation, not more.
 *
 * The flags belong to the device and are only ever set. The line in the log waits for a holder that
 * is no borrower: the sink is the application's, and a borrowed netisr runs none of its code.
 */
#include "link/rss_check.h"

#include "base/log.h"

void
rss_check(struct netisr *n, struct dev *d, const struct pkt *p)
{
	uint32_t hash;

	/* of what has no ports a device hashes what it likes, and nobody looks at it */
	if (!steer_hash(n->stack, p->data, p->len, &hash) || hash == p->rss_hash)
		return;
	NETISR_COUNT(n, CTR_rss_hash_wrong);
	atomic_store_explicit(&d->hash_is_wrong, true, memory_order_relaxed);
	rss_tell(n, d);
}

void
rss_tell(struct netisr *n, struct dev *d)
{
	if (n->is_borrowed ||
	    atomic_exchange_explicit(&d->hash_is_told, true, memory_order_relaxed))
		return;
	log_write(&n->stack->log, LOG_LVL_WARN,
	    "port %s: the device's hashes are not what its key gives; they are not used any more, "
	    "packets are steered in software", d->name);
}
