/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive-side scaling of DPDK devices.
 *
 * The stack's table has a power of two of entries, so a larger table of a device repeats it, and
 * the low bits of the hash that the stack looks at are among those that the device looks at. A
 * device with a smaller table than the stack's cannot agree with it. Entry i names the queue that
 * feeds the owner: queue = owner % n_queues, as steering assumes (link/dev.h).
 *
 * Some drivers accept a key or a table and do nothing with them; reading back finds those that keep
 * their own, and packets on a wrong queue are steered and counted in any case. rte_flow is never
 * used (net_tap's crashes on some kernels).
 */
#include "link/rss.h"

#include <string.h>

#include "base/compiler.h"
#include "runtime/stack.h"

/* DPDK last: its container_of gives way to ours. */
#include <rte_ethdev.h>

#define TABLE_MAX RTE_ETH_RSS_RETA_SIZE_512
#define GROUPS_MAX (TABLE_MAX / RTE_ETH_RETA_GROUP_SIZE)
#define WANTED_TYPES \
	(RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV4_UDP | \
	    RTE_ETH_RSS_NONFRAG_IPV6_TCP | RTE_ETH_RSS_NONFRAG_IPV6_UDP)

void
rss_make_plan(struct rss_plan *plan, const struct darter_stack *s,
    const struct rte_eth_dev_info *info, unsigned n_queues)
{
	memset(plan, 0, sizeof(*plan));
	plan->hash_types = info->flow_type_rss_offloads & WANTED_TYPES;
	plan->key_bytes = info->hash_key_size;
	plan->table_entries = info->reta_size;
	plan->is_possible =
	    n_queues > 1 && (plan->hash_types & RTE_ETH_RSS_NONFRAG_IPV4_TCP) != 0 &&
	    plan->key_bytes >= TOEPLITZ_KEY_MIN_BYTES &&
	    plan->key_bytes <= TOEPLITZ_KEY_MAX_BYTES && plan->table_entries >= s->reta_size &&
	    plan->table_entries <= TABLE_MAX && plan->table_entries % s->reta_size == 0;
	/* Bytes past the stack's key meet no input: whatever they are, the hash is the same. */
	memcpy(plan->key, s->rss.key, s->rss.key_bytes);
}

void
rss_fill_conf(struct rss_plan *plan, struct rte_eth_conf *conf)
{
	if (!plan->is_possible)
		return;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf->rx_adv_conf.rss_conf.rss_key = plan->key;
	conf->rx_adv_conf.rss_conf.rss_key_len = plan->key_bytes;
	conf->rx_adv_conf.rss_conf.rss_hf = plan->hash_types;
}

static uint16_t
queue_of(const struct darter_stack *s, unsigned entry, unsigned n_queues)
{
	return (uint16_t)(s->reta[entry % s->reta_size] % n_queues);
}

static void
select_all(struct rte_eth_rss_reta_entry64 *groups, unsigned entries)
{
	memset(groups, 0, sizeof(*groups) * GROUPS_MAX);
	for (unsigned i = 0; i < entries; i++)
		groups[i / RTE_ETH_RETA_GROUP_SIZE].mask |= UINT64_C(1)
							    << i % RTE_ETH_RETA_GROUP_SIZE;
}

static bool
program_table(
    const struct rss_plan *plan, const struct darter_stack *s, uint16_t port, unsigned n_queues)
{
	struct rte_eth_rss_reta_entry64 groups[GROUPS_MAX];

	select_all(groups, plan->table_entries);
	for (unsigned i = 0; i < plan->table_entries; i++)
		groups[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE] =
		    queue_of(s, i, n_queues);
	if (rte_eth_dev_rss_reta_update(port, groups, plan->table_entries) != 0)
		return false;
	select_all(groups, plan->table_entries);
	if (rte_eth_dev_rss_reta_query(port, groups, plan->table_entries) != 0)
		return false;
	for (unsigned i = 0; i < plan->table_entries; i++) {
		if (groups[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE] !=
		    queue_of(s, i, n_queues))
			return false;
	}
	return true;
}

static bool
is_key_kept(const struct rss_plan *plan, const struct darter_stack *s, uint16_t port)
{
	uint8_t key[TOEPLITZ_KEY_MAX_BYTES];
	struct rte_eth_rss_conf conf = { .rss_key = key, .rss_key_len = plan->key_bytes };

	memset(key, 0, sizeof(key));
	if (rte_eth_dev_rss_hash_conf_get(port, &conf) != 0)
		return false;
	/* Only the bytes that the stack's hash uses need to agree. */
	return memcmp(key, plan->key, min_u32(s->rss.key_bytes, plan->key_bytes)) == 0 &&
	       (conf.rss_hf & plan->hash_types) == plan->hash_types;
}

bool
rss_program(
    const struct rss_plan *plan, const struct darter_stack *s, uint16_t port, unsigned n_queues)
{
	return plan->is_possible && program_table(plan, s, port, n_queues) &&
	       is_key_kept(plan, s, port);
}
