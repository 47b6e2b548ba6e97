/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The idle sweep: rings that have run empty give their memory back, so that an idle connection
 * costs its control block alone.
 *
 * A timer that is armed by activity only: a second later it walks the table of connections a slice
 * at a time, asks the socket layer to release the rings of those that have been quiet for a second
 * (it may refuse: a call is inside), and comes again as long as it has seen a connection that still
 * holds memory. A netisr whose connections are all idle and released is not woken.
 */
#include "transport/tcp/tcp_priv.h"

#define SWEEP_US		US_PER_SEC
#define SWEEP_STEP_US		(5 * US_PER_MS)
#define SWEEP_BUCKETS		2048u
#define QUIET_TICKS		1000u	/* of tcp_tick32 */

static bool
holds_memory(const struct ring *r)
{
	return atomic_load_explicit(&r->first, memory_order_relaxed) != NULL;
}

static bool
is_quiet(const struct netisr *n, const struct tcp_pcb *p)
{
	uint32_t now = tcp_tick32(n->now);

	return p->reass == NULL && now - p->last_rcv_tick >= QUIET_TICKS &&
	    now - tcp_tick32(p->last_snd) >= QUIET_TICKS;
}

static void
sweep_one(void *arg, struct tcp_pcb *p)
{
	struct netisr *n = arg;
	struct sockhalf *sh = p->sh;

	if (sh == NULL || (p->flags & TCPF_GONE) || (!holds_memory(&sh->tx) &&
	    !holds_memory(&sh->rx)))
		return;
	if (is_quiet(n, p) && ring_is_empty(&sh->tx) && ring_is_empty(&sh->rx)) {
		n->stack->sockhalf_ops->release_idle(n, sh);
		if (!holds_memory(&sh->tx) && !holds_memory(&sh->rx))
			return;
	}
	n->tcp->sweep_again = true;
}

static void
on_sweep(struct netisr *n, struct timer *t)
{
	struct tcp_netisr *tn = n->tcp;

	(void)t;
	if (tcp_table_visit_some(&tn->table, tn->sweep_from, SWEEP_BUCKETS, sweep_one, n)) {
		tn->sweep_from += SWEEP_BUCKETS;
		timer_arm(&n->wheel, &tn->sweep, time_add_us(n->now, SWEEP_STEP_US));
		return;
	}
	if (tn->sweep_again)
		timer_arm(&n->wheel, &tn->sweep, time_add_us(n->now, SWEEP_US));
	tn->sweep_from = 0;
	tn->sweep_again = false;
}

void
tcp_sweep_init(struct tcp_netisr *tn)
{
	timer_init(&tn->sweep, on_sweep);
}

void
tcp_sweep_start(struct netisr *n)
{
	timer_arm(&n->wheel, &n->tcp->sweep, time_add_us(n->now, SWEEP_US));
}
