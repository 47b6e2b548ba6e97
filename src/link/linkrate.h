/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a device carries by itself: equal small frames in a loop over the driver's own calls, with
 * no protocol above. It stands beside every figure that the stack reaches over that device.
 */
#ifndef LINK_LINKRATE_H
#define LINK_LINKRATE_H

#include <stdbool.h>
#include <stdint.h>

struct dev;
struct netisr;

/* The longest a netisr may be kept from its work. */
#define LINKRATE_MAX_MS		2000

/*
 * Sends or takes frames on d's first queue for `ms` milliseconds (at most LINKRATE_MAX_MS).
 * *ret_pkts: frames that the device took, or frames of this kind that came. *ret_us: from the first
 * of them to the last. Other frames that come in meanwhile are handled as ever. Holder of n, which
 * must feed d's queue n->id (n->id < d->n_queues).
 */
void linkrate_run(struct netisr *n, struct dev *d, bool sends, unsigned ms, uint64_t *ret_pkts,
    uint64_t *ret_us);

#endif
