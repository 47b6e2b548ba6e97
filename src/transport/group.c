/* SPDX-License-Identifier: BSD-2-Clause */
/* SO_REUSEPORT groups: see group.h. */
#include "transport/group.h"

#include <string.h>

#include "runtime/netisr.h"
#include "runtime/publish.h"
#include "runtime/sockhalf.h"
#include "transport/demux.h"

#define MEMBERS	(UINT16_MAX + 1)

static bool
is_fellow(const struct bind_entry *a, const struct bind_entry *b)
{
	return a->is_reuseport && a->proto == b->proto && a->local.port == b->local.port &&
	    ipaddr_eq(&a->local.addr, &b->local.addr);
}

uint16_t
group_free_member(const struct bind_entry *all, const struct bind_entry *e)
{
	uint64_t taken[MEMBERS / 64];
	const struct bind_entry *i;
	unsigned word;

	memset(taken, 0, sizeof(taken));
	for (i = all; i != NULL; i = i->port_next) {
		if (i != e && is_fellow(i, e))
			taken[i->member / 64] |= UINT64_C(1) << (i->member % 64);
	}
	for (word = 0; word < MEMBERS / 64; word++) {
		if (taken[word] != UINT64_MAX)
			return (uint16_t)(word * 64 + (unsigned)__builtin_ctzll(~taken[word]));
	}
	return UINT16_MAX;
}

/* SplitMix64's finaliser: every bit of both counts. */
static uint64_t
weigh(uint64_t hash, uint16_t member)
{
	uint64_t x = hash + (member + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

struct group_pick
group_pick_start(uint64_t hash)
{
	const struct netisr *n = netisr_current();

	return (struct group_pick){ .hash = hash, .cpu = n != NULL ? netisr_cpu(n) : -1 };
}

static bool
wants_cpu(struct bind_entry *e, int cpu)
{
	const struct sockhalf *sh = published_load(&e->sh);

	return sh != NULL && cpu >= 0 &&
	    atomic_load_explicit(&sh->opts.incoming_cpu, memory_order_relaxed) == cpu + 1;
}

void
group_pick_offer(struct group_pick *p, struct bind_entry *e)
{
	uint64_t weight = weigh(p->hash, e->member);
	bool is_near = wants_cpu(e, p->cpu);

	if (p->found != NULL && (is_near < p->is_near ||
	    (is_near == p->is_near && weight <= p->weight)))
		return;
	p->found = e;
	p->weight = weight;
	p->is_near = is_near;
}
