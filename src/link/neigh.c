/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The neighbour table: one a netisr, private to its holder, so resolving is a probe without locks
 * or shared lines.
 *
 * How answers reach every table: the netisr that receives an ARP packet which concerns us copies it
 * to all others (arp.c), since the answer to netisr 3's request may well arrive at queue 0. Each
 * netisr runs its own timers and asks for itself; N netisrs may send N requests for one neighbour,
 * bounded by the retry limit.
 *
 * States (RFC 4861 7.3.2, used for IPv4 too as RFC 1122 2.3.2.1 leaves the method open):
 *   INCOMPLETE   asked, packets wait; 3 requests 1 s apart, then FAILED
 *   REACHABLE    confirmed within reachable_ms, by an answer to us or by a transport's progress
 *   STALE        address known, not confirmed; the first use turns it to DELAY
 *   DELAY        in use and doubted: time for an upper layer to confirm before we
 *   PROBE        ask it alone, 3 times 1 s apart; then FAILED
 *   FAILED       did not answer: packets are refused for FAILED_HOLD_US, then it is asked anew
 *   STATIC       set by hand: never changes, never evicted
 *
 * An entry is made only for whom we want to reach or who asked for us; anything else heard updates
 * what is there (RFC 826). A REACHABLE entry does not change its address within LOCK_US of its
 * confirmation, so that two boxes which fight for an address do not make us flap; after that the
 * new one is taken, but as STALE: its use leads to a probe.
 *
 * Bounds: entries (the least recently used that nobody waits for is evicted), packets an entry,
 * packets of all entries together. The hash is keyed: outsiders who choose addresses can't make one
 * chain long.
 */
#include "link/neigh.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/slab.h"
#include "link/link_priv.h"
#include "runtime/config.h"
#include "runtime/wheel.h"
#include "wire/ether.h"

#define BUCKETS		1024
#define ENTRIES_MAX	65536
#define REQUESTS_MAX	3
#define LOCK_US		(1 * US_PER_SEC)
#define FAILED_HOLD_US	(1 * US_PER_SEC)
#define FAILED_FORGET_US (20 * US_PER_SEC)
#define CONFIRM_EVERY_US (100 * US_PER_MS)	/* confirmations closer together change nothing */
#define TOUCH_EVERY_US	(100 * US_PER_MS)	/* so does recency, for the eviction order */
#define EVICT_SEARCH	32
#define HELD_SHARE	8	/* of the stack's packets, for all queues of all netisrs */

struct neigh {
	LIST_ENTRY(neigh) chain;
	TAILQ_ENTRY(neigh) lru;
	struct dev *dev;
	struct ipaddr addr;
	uint8_t mac[ETHER_ADDR_BYTES];
	uint8_t state;		/* enum neigh_state */
	uint8_t tries;		/* requests sent in INCOMPLETE or PROBE */
	uint16_t n_held;
	struct time confirmed;
	struct time used;
	struct time failed_at;
	struct timer timer;
	struct pkt *held;	/* packets waiting, oldest first, linked by next */
	struct pkt **held_tail;
};

LIST_HEAD(neigh_chain, neigh);
TAILQ_HEAD(neigh_lru, neigh);

struct neigh_table {
	struct neigh_chain bucket[BUCKETS];
	struct neigh_lru lru;		/* least recently used first */
	struct neigh *last;		/* the one looked up last: bursts go to one gateway */
	struct slab slab;
	uint32_t n_held;
	uint32_t held_max;
};

static void on_timer(struct netisr *n, struct timer *t);

static uint64_t
knob_us(_Atomic int64_t *ms)
{
	return (uint64_t)knob_get(ms) * US_PER_MS;
}

int
neigh_netisr_init(struct netisr *n)
{
	struct darter_stack *s = n->stack;
	struct neigh_table *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	/* the knob net.link.neigh.max_entries limits it further, at run time */
	if (slab_init(&t->slab, sizeof(struct neigh), 0, ENTRIES_MAX) < 0) {
		free(t);
		return -ENOMEM;
	}
	TAILQ_INIT(&t->lru);
	t->held_max = max_u32(s->config.packets / HELD_SHARE / s->n_netisrs, 16);
	n->link->neigh = t;
	return 0;
}

void
neigh_netisr_fini(struct netisr *n)
{
	struct neigh_table *t = n->link->neigh;
	struct neigh *e;

	if (t == NULL)
		return;
	TAILQ_FOREACH(e, &t->lru, lru)
		timer_disarm(&n->wheel, &e->timer);
	slab_fini(&t->slab);
	free(t);
	n->link->neigh = NULL;
}

void
neigh_register(struct darter_stack *s, const struct neigh_addr_ops *ops)
{
	s->link->addr_ops = ops;
}

static struct neigh_chain *
bucket_of(struct netisr *n, const struct dev *d, const struct ipaddr *a)
{
	struct {
		struct ipaddr addr;
		uint64_t dev;
	} key = { *a, d->index };
	uint64_t h;

	h = siphash(&n->stack->link->neigh_key, &key, sizeof(key));
	return &n->link->neigh->bucket[h % BUCKETS];
}

static struct neigh *
lookup(struct netisr *n, const struct dev *d, const struct ipaddr *a)
{
	struct neigh_table *t = n->link->neigh;
	struct neigh *e = t->last;

	if (e != NULL && e->dev == d && ipaddr_eq(&e->addr, a))
		return e;
	LIST_FOREACH(e, bucket_of(n, d, a), chain) {
		if (e->dev == d && ipaddr_eq(&e->addr, a)) {
			t->last = e;
			return e;
		}
	}
	return NULL;
}

static void
touch(struct netisr *n, struct neigh *e)
{
	struct neigh_table *t = n->link->neigh;

	if (time_since_us(n->now, e->used) < TOUCH_EVERY_US)
		return;
	e->used = n->now;
	TAILQ_REMOVE(&t->lru, e, lru);
	TAILQ_INSERT_TAIL(&t->lru, e, lru);
}

static void
give_up_packet(struct netisr *n, struct dev *d, struct pkt *p)
{
	const struct neigh_addr_ops *ops = n->stack->link->addr_ops;

	NETISR_COUNT(n, CTR_drop_neigh_failed);
	if (ops != NULL && ops->unreachable != NULL)
		ops->unreachable(n, d, p);
	else
		pkt_free(n, p);
}

static struct pkt *
take_held(struct netisr *n, struct neigh *e)
{
	struct pkt *list = e->held;

	n->link->neigh->n_held -= e->n_held;
	e->n_held = 0;
	e->held = NULL;
	e->held_tail = &e->held;
	return list;
}

static void
refuse_held(struct netisr *n, struct neigh *e)
{
	struct pkt *p = take_held(n, e), *next;
	struct dev *d = e->dev;

	/* e may go away below: the network layer may send */
	for (; p != NULL; p = next) {
		next = p->next;
		p->next = NULL;
		give_up_packet(n, d, p);
	}
}

static void
send_held(struct netisr *n, struct neigh *e)
{
	struct pkt *p = take_held(n, e), *next;
	uint16_t type = ipaddr_is_v4(&e->addr) ? ETHER_TYPE_IP4 : ETHER_TYPE_IP6;
	struct dev *d = e->dev;
	uint8_t mac[ETHER_ADDR_BYTES];

	memcpy(mac, e->mac, sizeof(mac));
	for (; p != NULL; p = next) {
		next = p->next;
		ether_encap(n, d, p, mac, type);
	}
}

static void
remove_entry(struct netisr *n, struct neigh *e)
{
	struct neigh_table *t = n->link->neigh;
	struct pkt *p = take_held(n, e), *next;

	for (; p != NULL; p = next) {
		next = p->next;
		NETISR_COUNT(n, CTR_drop_neigh_failed);
		pkt_free(n, p);
	}
	if (t->last == e)
		t->last = NULL;
	timer_disarm(&n->wheel, &e->timer);
	LIST_REMOVE(e, chain);
	TAILQ_REMOVE(&t->lru, e, lru);
	slab_free(&t->slab, e);
	netisr_count(n, CTR_neigh_entries, UINT64_MAX);	/* gauge: one less */
}

/*
 * Makes room among the least recently used. Entries that packets wait for, or that were set by
 * hand, stay.
 */
static bool
evict(struct netisr *n)
{
	struct neigh *e;
	unsigned seen = 0;

	TAILQ_FOREACH(e, &n->link->neigh->lru, lru) {
		if (e->state != NEIGH_STATIC && e->state != NEIGH_INCOMPLETE) {
			remove_entry(n, e);
			NETISR_COUNT(n, CTR_neigh_evicted);
			return true;
		}
		if (++seen == EVICT_SEARCH)
			break;
	}
	return false;
}

static struct neigh *
insert(struct netisr *n, struct dev *d, const struct ipaddr *a)
{
	struct neigh_table *t = n->link->neigh;
	struct neigh *e;

	if (slab_in_use(&t->slab) >= (uint32_t)knob_get(&n->stack->link->neigh_max) && !evict(n))
		return NULL;
	e = slab_alloc(&t->slab);
	if (e == NULL)
		return NULL;
	memset(e, 0, sizeof(*e));
	e->dev = d;
	e->addr = *a;
	e->held_tail = &e->held;
	e->used = n->now;
	timer_init(&e->timer, on_timer);
	LIST_INSERT_HEAD(bucket_of(n, d, a), e, chain);
	TAILQ_INSERT_TAIL(&t->lru, e, lru);
	NETISR_COUNT(n, CTR_neigh_entries);
	return e;
}

static void
arm(struct netisr *n, struct neigh *e, uint64_t us)
{
	timer_arm(&n->wheel, &e->timer, time_add_us(n->now, us));
}

static void
solicit(struct netisr *n, struct neigh *e)
{
	e->tries++;
	if (e->state == NEIGH_PROBE)
		NETISR_COUNT(n, CTR_neigh_probes_sent);
	arm(n, e, knob_us(&n->stack->link->neigh_retrans_ms));
	arp_request(n, e->dev, &e->addr, e->state == NEIGH_PROBE ? e->mac : NULL);
}

static void
enter(struct netisr *n, struct neigh *e, enum neigh_state state)
{
	struct link_stack *l = n->stack->link;

	e->state = (uint8_t)state;
	e->tries = 0;
	switch (state) {
	case NEIGH_INCOMPLETE:
	case NEIGH_PROBE:
		solicit(n, e);
		break;
	case NEIGH_REACHABLE:
		e->confirmed = n->now;
		arm(n, e, knob_us(&l->neigh_reachable_ms));
		break;
	case NEIGH_DELAY:
		arm(n, e, knob_us(&l->neigh_delay_ms));
		break;
	case NEIGH_STALE:
		arm(n, e, (uint64_t)knob_get(&l->neigh_stale_s) * US_PER_SEC);
		break;
	case NEIGH_FAILED:
		e->failed_at = n->now;
		arm(n, e, FAILED_FORGET_US);
		refuse_held(n, e);
		break;
	case NEIGH_NONE:
	case NEIGH_STATIC:
		timer_disarm(&n->wheel, &e->timer);
		break;
	}
}

/*
 * REACHABLE's time is over unless it was confirmed meanwhile (confirmations do not move the timer).
 */
static void
end_reachable(struct netisr *n, struct neigh *e)
{
	struct time until = time_add_us(e->confirmed, knob_us(&n->stack->link->neigh_reachable_ms));

	if (time_reached(n->now, until))
		enter(n, e, NEIGH_STALE);
	else
		timer_arm(&n->wheel, &e->timer, until);
}

static void
on_timer(struct netisr *n, struct timer *t)
{
	struct neigh *e = container_of(t, struct neigh, timer);

	switch ((enum neigh_state)e->state) {
	case NEIGH_INCOMPLETE:
	case NEIGH_PROBE:
		if (e->tries < REQUESTS_MAX)
			solicit(n, e);
		else
			enter(n, e, NEIGH_FAILED);
		break;
	case NEIGH_REACHABLE:
		end_reachable(n, e);
		break;
	case NEIGH_DELAY:
		enter(n, e, NEIGH_PROBE);
		break;
	case NEIGH_STALE:
	case NEIGH_FAILED:
		remove_entry(n, e);
		break;
	case NEIGH_NONE:
	case NEIGH_STATIC:
		break;
	}
}

/* Queues p behind the others; the oldest one makes room. Takes p. */
static void
hold(struct netisr *n, struct neigh *e, struct pkt *p)
{
	struct neigh_table *t = n->link->neigh;
	bool is_full = e->n_held >= (uint64_t)knob_get(&n->stack->link->neigh_queue_pkts);

	if (is_full || t->n_held >= t->held_max) {
		struct pkt *oldest = e->held;

		NETISR_COUNT(n, CTR_drop_neigh_queue_full);
		if (oldest == NULL) {
			pkt_free(n, p);
			return;
		}
		e->held = oldest->next;
		if (e->held == NULL)
			e->held_tail = &e->held;
		e->n_held--;
		t->n_held--;
		pkt_free(n, oldest);
	}
	p->next = NULL;
	*e->held_tail = p;
	e->held_tail = &p->next;
	e->n_held++;
	t->n_held++;
}

/* An entry without a usable address: p waits or is refused. Takes p. */
static void
resolve_slowly(struct netisr *n, struct neigh *e, struct pkt *p)
{
	if (e->state == NEIGH_FAILED && time_since_us(n->now, e->failed_at) < FAILED_HOLD_US) {
		give_up_packet(n, e->dev, p);
		return;
	}
	hold(n, e, p);
	if (e->state != NEIGH_INCOMPLETE)
		enter(n, e, NEIGH_INCOMPLETE);
}

bool
neigh_resolve(struct netisr *n, struct dev *d, const struct ipaddr *next_hop, struct pkt *p,
    uint8_t ret_mac[6])
{
	struct neigh *e = lookup(n, d, next_hop);

	if (e == NULL) {
		if (!ipaddr_is_v4(next_hop)) {
			give_up_packet(n, d, p);
			return false;
		}
		e = insert(n, d, next_hop);
		if (e == NULL) {
			NETISR_COUNT(n, CTR_drop_neigh_table_full);
			pkt_free(n, p);
			return false;
		}
		resolve_slowly(n, e, p);
		return false;
	}
	touch(n, e);
	if (e->state == NEIGH_INCOMPLETE || e->state == NEIGH_FAILED) {
		resolve_slowly(n, e, p);
		return false;
	}
	if (e->state == NEIGH_STALE)
		enter(n, e, NEIGH_DELAY);
	memcpy(ret_mac, e->mac, sizeof(e->mac));
	return true;
}

void
neigh_confirm(struct netisr *n, struct dev *d, const struct ipaddr *next_hop)
{
	struct neigh *e;

	if (d->is_loop)
		return;
	e = lookup(n, d, next_hop);
	if (e == NULL)
		return;
	switch ((enum neigh_state)e->state) {
	case NEIGH_REACHABLE:
		if (time_since_us(n->now, e->confirmed) >= CONFIRM_EVERY_US)
			e->confirmed = n->now;
		break;
	case NEIGH_STALE:
	case NEIGH_DELAY:
	case NEIGH_PROBE:
		enter(n, e, NEIGH_REACHABLE);
		break;
	default:
		break;
	}
}

/* What was heard about an entry that has an address. */
static void
update(struct netisr *n, struct neigh *e, const uint8_t mac[6], enum neigh_news news)
{
	bool is_same = memcmp(e->mac, mac, sizeof(e->mac)) == 0;

	if (e->state == NEIGH_STATIC)
		return;
	if (!is_same) {
		if (e->state == NEIGH_REACHABLE && time_since_us(n->now, e->confirmed) < LOCK_US)
			return;
		memcpy(e->mac, mac, sizeof(e->mac));
	}
	if (news == NEIGH_NEWS_ANSWERED)
		enter(n, e, NEIGH_REACHABLE);
	else if (!is_same)
		enter(n, e, NEIGH_STALE);
}

void
neigh_learn(struct netisr *n, struct dev *d, const struct ipaddr *addr, const uint8_t mac[6],
    enum neigh_news news)
{
	struct neigh *e = lookup(n, d, addr);

	if (e == NULL) {
		if (news != NEIGH_NEWS_ASKED_US)
			return;
		e = insert(n, d, addr);
		if (e == NULL) {
			NETISR_COUNT(n, CTR_drop_neigh_table_full);
			return;
		}
		memcpy(e->mac, mac, sizeof(e->mac));
		enter(n, e, NEIGH_STALE);
		return;
	}
	if (e->state != NEIGH_INCOMPLETE && e->state != NEIGH_FAILED) {
		update(n, e, mac, news);
		return;
	}
	memcpy(e->mac, mac, sizeof(e->mac));
	enter(n, e, news == NEIGH_NEWS_ANSWERED ? NEIGH_REACHABLE : NEIGH_STALE);
	send_held(n, e);
}

int
neigh_set_static(struct netisr *n, struct dev *d, const struct ipaddr *addr, const uint8_t mac[6])
{
	struct neigh *e = lookup(n, d, addr);

	if (e == NULL)
		e = insert(n, d, addr);
	if (e == NULL)
		return -ENOBUFS;
	memcpy(e->mac, mac, sizeof(e->mac));
	enter(n, e, NEIGH_STATIC);
	send_held(n, e);
	return 0;
}

void
neigh_visit(struct netisr *n, void (*fn)(void *arg, const struct dev *d, const struct ipaddr *a,
    enum neigh_state state, const uint8_t mac[6]), void *arg)
{
	struct neigh *e;

	TAILQ_FOREACH(e, &n->link->neigh->lru, lru)
		fn(arg, e->dev, &e->addr, (enum neigh_state)e->state, e->mac);
}
