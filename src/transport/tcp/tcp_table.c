/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A netisr's private hash table of connections, by 4-tuple.
 *
 * Chained buckets, a power of two, keyed SipHash so that nobody outside can make chains long. The
 * table doubles when it holds as many pcbs as buckets; the old array is then emptied a few buckets
 * at each insertion, and until that is done look-ups try both. Without memory to double it simply
 * keeps its size. It never shrinks.
 *
 * Holder of the netisr only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/tcp/tcp_priv.h"

#define TABLE_FIRST_BUCKETS	256u
#define TABLE_MAX_BUCKETS	(1u << 22)
#define MOVE_BUCKETS		8u	/* an insertion; > 1: done before the next doubling */

int
tcp_table_init(struct tcp_table *t)
{
	memset(t, 0, sizeof(*t));
	t->bucket = calloc(TABLE_FIRST_BUCKETS, sizeof(struct tcp_pcb *));
	if (t->bucket == NULL)
		return -ENOMEM;
	t->mask = TABLE_FIRST_BUCKETS - 1;
	return 0;
}

void
tcp_table_fini(struct tcp_table *t)
{
	free(t->bucket);
	free(t->old);
	memset(t, 0, sizeof(*t));
}

uint32_t
tcp_hash(const struct netisr *n, const struct tuple *t)
{
	return (uint32_t)(siphash_tuple(&n->stack->secret[TCP_SECRET_TABLE], t) >> 16);
}

static struct tcp_pcb *
chain_find(struct tcp_pcb *p, const struct tuple *tuple, uint32_t hash)
{
	while (p != NULL && (p->hash != hash || !tuple_eq(&p->tuple, tuple)))
		p = p->hash_next;
	return p;
}

struct tcp_pcb *
tcp_table_lookup(const struct tcp_table *t, const struct tuple *tuple, uint32_t hash)
{
	struct tcp_pcb *p = chain_find(t->bucket[hash & t->mask], tuple, hash);

	if (p == NULL && unlikely(t->old != NULL))
		p = chain_find(t->old[hash & t->old_mask], tuple, hash);
	return p;
}

static void
chain_insert(struct tcp_table *t, struct tcp_pcb *p)
{
	struct tcp_pcb **head = &t->bucket[p->hash & t->mask];

	p->hash_next = *head;
	*head = p;
}

static void
move_some(struct tcp_table *t)
{
	struct tcp_pcb *p, *next;
	unsigned i;

	for (i = 0; i < MOVE_BUCKETS && t->moved <= t->old_mask; i++, t->moved++) {
		for (p = t->old[t->moved]; p != NULL; p = next) {
			next = p->hash_next;
			chain_insert(t, p);
		}
		t->old[t->moved] = NULL;
	}
	if (t->moved > t->old_mask) {
		free(t->old);
		t->old = NULL;
	}
}

static void
start_doubling(struct tcp_table *t)
{
	uint32_t buckets = (t->mask + 1) * 2;
	struct tcp_pcb **bigger;

	if (buckets > TABLE_MAX_BUCKETS)
		return;
	bigger = calloc(buckets, sizeof(struct tcp_pcb *));
	if (bigger == NULL)
		return;
	t->old = t->bucket;
	t->old_mask = t->mask;
	t->moved = 0;
	t->bucket = bigger;
	t->mask = buckets - 1;
}

void
tcp_table_insert(struct tcp_table *t, struct tcp_pcb *p)
{
	if (t->old != NULL)
		move_some(t);
	else if (t->count > t->mask)
		start_doubling(t);
	chain_insert(t, p);
	t->count++;
}

static bool
chain_remove(struct tcp_pcb **at, struct tcp_pcb *p)
{
	while (*at != NULL && *at != p)
		at = &(*at)->hash_next;
	if (*at == NULL)
		return false;
	*at = p->hash_next;
	return true;
}

void
tcp_table_remove(struct tcp_table *t, struct tcp_pcb *p)
{
	bool found = chain_remove(&t->bucket[p->hash & t->mask], p);

	if (!found && t->old != NULL)
		found = chain_remove(&t->old[p->hash & t->old_mask], p);
	if (found)
		t->count--;
}

static void
visit_buckets(struct tcp_pcb *const *bucket, uint32_t from, uint32_t end,
    void (*fn)(void *arg, struct tcp_pcb *p), void *arg)
{
	struct tcp_pcb *p, *next;
	uint32_t i;

	for (i = from; i < end; i++)
		for (p = bucket[i]; p != NULL; p = next) {
			next = p->hash_next;
			fn(arg, p);
		}
}

void
tcp_table_visit(const struct tcp_table *t, void (*fn)(void *arg, struct tcp_pcb *p), void *arg)
{
	visit_buckets(t->bucket, 0, t->mask + 1, fn, arg);
	if (t->old != NULL)
		visit_buckets(t->old, 0, t->old_mask + 1, fn, arg);
}

bool
tcp_table_visit_some(const struct tcp_table *t, uint32_t from, uint32_t count,
    void (*fn)(void *arg, struct tcp_pcb *p), void *arg)
{
	visit_buckets(t->bucket, from, min_u32(from + count, t->mask + 1), fn, arg);
	if (t->old != NULL)
		visit_buckets(t->old, from, min_u32(from + count, t->old_mask + 1), fn, arg);
	return from + count <= t->mask;
}
