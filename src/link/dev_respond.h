/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of the stateless responder (dev_respond.c). */
#ifndef LINK_DEV_RESPOND_H
#define LINK_DEV_RESPOND_H

#include <stdint.h>

struct dev;

struct respond_stats {
	uint64_t frames;	/* that the stack has sent to it */
	uint64_t arp_replies;
	uint64_t echo_replies;
	uint64_t syn_acks;
	uint64_t data_bytes;	/* of TCP payload acknowledged (and echoed, with echo=on) */
	uint64_t acks;		/* for data */
	uint64_t fins;		/* connections closed by it in answer to a FIN */
	uint64_t udp_echoes;
	uint64_t silent;	/* frames that need no answer, or are not understood */
};

/*
 * Sums over the queues. Exact only while no netisr of d's stack runs. 0, or -EINVAL when d is no
 * responder.
 */
int respond_stats(const struct dev *d, struct respond_stats *ret);

#endif
