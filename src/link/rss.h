/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Teaching a DPDK device the stack's idea of who owns a flow (law 1): its Toeplitz key, its table,
 * TCP and UDP 4-tuples. What the device then does is an optimisation and only believed when it
 * reads back equal. Set-up only. No rte_*.h here.
 */
#ifndef LINK_RSS_H
#define LINK_RSS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/toeplitz.h"

struct darter_stack;
struct rte_eth_conf;
struct rte_eth_dev_info;

struct rss_plan {
	bool is_possible;
	uint8_t key[TOEPLITZ_KEY_MAX_BYTES];
	uint8_t key_bytes;
	uint16_t table_entries;
	uint64_t hash_types;
};

/* What to ask of a device with these abilities; is_possible false: let it alone. */
void rss_make_plan(struct rss_plan *plan, const struct darter_stack *s,
    const struct rte_eth_dev_info *info, unsigned n_queues);

/* Puts the plan into a port's configuration, which keeps a pointer to plan->key. */
void rss_fill_conf(struct rss_plan *plan, struct rte_eth_conf *conf);

/* After start: writes the table, reads key, hash types and table back. True when the device agrees
 * with the stack. */
bool rss_program(
    const struct rss_plan *plan, const struct darter_stack *s, uint16_t port, unsigned n_queues);

#endif
