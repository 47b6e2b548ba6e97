/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fault injector's own face: rules of tests, and what it has done. A port gets one by its
 * configuration, fault = "key=value,…":
 *
 *   drop=P dup=P corrupt=P reorder=P   probabilities 0..1 a frame
 *   drop_nth=N      every N-th frame is dropped (N >= 1)
 *   delay_us=A[-B]  each frame is late by A, or by a uniform draw from A to B (which may reorder)
 *   fifo=1          a random delay keeps the order
 *   reorder_us=T    longest time for which a reordered frame is held back (default 1000)
 *   rate_kbps=R     frames pass at this rate; what comes while queue_pkts=Q (default 256) full-size
 *                   frames wait is dropped
 *   badhash=P       the device claims to hash what it receives by the stack's key, but gives a
 *                   share P of the TCP and UDP packets another hash; the queues stay as they are
 *   dir=rx|tx|both  which frames (default both)
 *   seed=S          of the device's own generator (default 1)
 *   none            no fault: a place for a rule
 *
 * Equal seeds and equal frames give equal faults: each queue and direction has a generator of its
 * own.
 */
#ifndef LINK_DEV_FAULT_H
#define LINK_DEV_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

struct dev;
struct pkt;

enum fault_dir {
	FAULT_RX,
	FAULT_TX
};

enum fault_verdict {
	FAULT_AS_CONFIGURED,	/* the rule has no opinion: the probabilities decide */
	FAULT_PASS,
	FAULT_DROP,
	FAULT_DUP,
	FAULT_CORRUPT,		/* one bit of an IPv4 packet; any other frame is dropped */
	FAULT_REORDER,
	FAULT_DELAY,		/* by the rule's *ret_delay_us */
};

/*
 * Decides about frame number `nth` (from 1) of a queue and direction; frame->data is at the link
 * header. Called while holding the queue's netisr; must not send.
 */
typedef enum fault_verdict fault_rule_fn(void *arg, enum fault_dir dir, uint64_t nth,
    const struct pkt *frame, uint64_t *ret_delay_us);

/*
 * Installs fn for all queues of d, or removes it with NULL. Only while no netisr of d's stack runs.
 * -EINVAL: no fault device.
 */
int fault_set_rule(struct dev *d, fault_rule_fn *fn, void *arg);

struct fault_stats {
	uint64_t seen;
	uint64_t dropped;
	uint64_t duplicated;
	uint64_t corrupted;
	uint64_t reordered;
	uint64_t delayed;
	uint64_t overflowed;	/* dropped since too many frames were held */
	uint64_t misshashed;	/* badhash */
};

/* Sums over the queues. Exact only while no netisr of d's stack runs. 0 or -EINVAL. */
int fault_stats(const struct dev *d, enum fault_dir dir, struct fault_stats *ret);

struct fault_spec {
	double drop;
	double dup;
	double corrupt;
	double reorder;
	double badhash;
	bool claims_hash;	/* badhash was given, be it 0 */
	uint32_t drop_nth;
	uint64_t delay_min_us;
	uint64_t delay_max_us;
	uint64_t reorder_us;
	uint32_t rate_kbps;
	uint32_t queue_pkts;
	bool is_fifo;
	bool applies[2];	/* enum fault_dir */
	uint64_t seed;
};

/* Reads the text above. 0, or -EINVAL with one line in err. */
int fault_parse(const char *text, struct fault_spec *ret, char *err, size_t err_size);

#endif
