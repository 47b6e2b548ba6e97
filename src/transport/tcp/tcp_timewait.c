/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIME-WAIT: what is left of a connection whose two FINs are acknowledged, for 2 MSL (RFC 9293 3.6,
 * MUST-13), in a record of one cache line. Neither socket nor pcb is kept.
 *
 * Records are numbered and allocated in blocks; the hash chains, the free list and the list by age
 * hold numbers, not pointers. All live equally long, so the list by age is the order of expiry, and
 * one timer a netisr suffices. The table is bounded (max_timewait); when it is full the oldest
 * goes, counted.
 *
 * RFC 1337: RSTs are ignored. RFC 6191 and RFC 9293 MAY-2: a SYN with a newer timestamp, or without
 * timestamps a higher sequence number, opens a new incarnation. A repeated FIN is acknowledged and
 * 2 MSL begin anew. Holder of the netisr only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/tcp/tcp_priv.h"

#define HAS_TS		1u	/* in since_ts */
#define NUMBER_MASK	((1u << 30) - 1)

STATIC_ASSERT(TCP_HARD_MAX_TW <= NUMBER_MASK, "a record's number leaves two bits");

static struct tcp_tw *
record(const struct tcp_twtab *t, uint32_t number)
{
	uint32_t i = number - 1;

	return &t->block[i / TCP_TW_BLOCK][i % TCP_TW_BLOCK];
}

static struct tuple
tuple_of(const struct tcp_tw *w)
{
	return (struct tuple){ w->local, w->foreign, w->lport, w->fport };
}

static bool
is_of(const struct tcp_tw *w, const struct tuple *t)
{
	return w->lport == t->lport && w->fport == t->fport &&
	    ipaddr_eq(&w->foreign, &t->foreign) && ipaddr_eq(&w->local, &t->local);
}

static uint32_t
bucket_index(const struct tcp_netisr *tn, const struct tuple *t)
{
	return tcp_hash(tn->n, t) & (TCP_TW_BUCKETS - 1);
}

static uint32_t
age_ticks(const struct tcp_tw *w, uint32_t now_tick)
{
	/* the lowest bit is the flag: 2 ms are precise enough */
	return (now_tick & ~HAS_TS) - (w->since_ts & ~HAS_TS);
}

static uint32_t
lifetime_ticks(const struct netisr *n)
{
	return (uint32_t)((2 * tcp_knob_ms_as_us(&tcp_knobs(n)->msl_ms)) >> 10);
}

struct tcp_tw *
tcp_tw_lookup(struct tcp_netisr *tn, const struct tuple *tuple)
{
	struct tcp_tw *w;
	uint32_t i;

	if (tn->tw.count == 0)
		return NULL;
	for (i = tn->tw.bucket[bucket_index(tn, tuple)]; i != 0; i = w->hash_next) {
		w = record(&tn->tw, i);
		if (is_of(w, tuple))
			return w;
	}
	return NULL;
}

/* ---- the list by age ---- */

static void
append_newest(struct tcp_twtab *t, struct tcp_tw *w, uint32_t number)
{
	w->older = t->newest & NUMBER_MASK;
	w->newer = 0;
	if (t->newest != 0)
		record(t, t->newest)->newer = number;
	else
		t->oldest = number;
	t->newest = number;
}

static void
unlink_age(struct tcp_twtab *t, const struct tcp_tw *w)
{
	if (w->older != 0)
		record(t, w->older)->newer = w->newer;
	else
		t->oldest = w->newer;
	if (w->newer != 0)
		record(t, w->newer)->older = w->older;
	else
		t->newest = w->older;
}

/* ---- making and ending records ---- */

/* Finds w's number on its hash chain and takes it off. */
static uint32_t
unlink_hash(struct tcp_netisr *tn, struct tcp_tw *w)
{
	struct tuple t = tuple_of(w);
	uint32_t *at = &tn->tw.bucket[bucket_index(tn, &t)];
	uint32_t number;

	while (record(&tn->tw, *at) != w)
		at = &record(&tn->tw, *at)->hash_next;
	number = *at;
	*at = w->hash_next;
	return number;
}

void
tcp_tw_take_over(struct netisr *n, struct tcp_tw *w)
{
	struct tcp_twtab *t = &n->tcp->tw;
	struct tuple tuple = tuple_of(w);
	uint32_t number = unlink_hash(n->tcp, w);

	port_lower(n, &tuple, w->share);
	unlink_age(t, w);
	w->hash_next = t->free;
	t->free = number;
	t->count--;
	atomic_fetch_sub_explicit(&n->tcp->n_timewait, 1, memory_order_relaxed);
	netisr_count(n, CTR_tcp_timewait, (uint64_t)-1);
}

void
tcp_tw_remove(struct netisr *n, struct tcp_tw *w)
{
	struct tuple t = tuple_of(w);

	tcp_tw_take_over(n, w);
	port_freed(n, &t);
}

static bool
add_block(struct tcp_twtab *t)
{
	struct tcp_tw *b;
	uint32_t i;

	if (t->n_blocks == t->max_blocks)
		return false;
	b = aligned_alloc(CACHELINE_BYTES, TCP_TW_BLOCK * sizeof(struct tcp_tw));
	if (b == NULL)
		return false;
	memset(b, 0, TCP_TW_BLOCK * sizeof(struct tcp_tw));
	t->block[t->n_blocks] = b;
	for (i = TCP_TW_BLOCK; i > 0; i--) {
		b[i - 1].hash_next = t->free;
		t->free = t->n_blocks * TCP_TW_BLOCK + i;
	}
	t->n_blocks++;
	return true;
}

/* A free record's number, the oldest one's if need be; 0: no memory for the first block. */
static uint32_t
alloc_record(struct netisr *n)
{
	struct tcp_twtab *t = &n->tcp->tw;
	uint32_t number, blocks = t->n_blocks;

	if (t->count >= (uint64_t)knob_get(&tcp_knobs(n)->max_timewait) ||
	    (t->free == 0 && !add_block(t))) {
		if (t->oldest == 0)
			return 0;
		NETISR_COUNT(n, CTR_tcp_timewait_evicted);
		tcp_tw_remove(n, record(t, t->oldest));
	}
	if (unlikely(t->n_blocks != blocks))
		netisr_count_any(n, CTR_conn_allocs);
	number = t->free;
	t->free = record(t, number)->hash_next;
	return number;
}

static void
arm_for_oldest(struct netisr *n)
{
	struct tcp_twtab *t = &n->tcp->tw;
	uint32_t age, life = lifetime_ticks(n);
	uint64_t left_us = 0;

	if (t->oldest == 0 || timer_is_armed(&t->timer))
		return;
	age = age_ticks(record(t, t->oldest), tcp_tick32(n->now));
	if (age < life)
		left_us = ((uint64_t)(life - age) + 2) << 10;
	timer_arm(&n->wheel, &t->timer, time_add_us(n->now, left_us));
}

static void
on_timer(struct netisr *n, struct timer *timer UNUSED)
{
	struct tcp_twtab *t = &n->tcp->tw;
	uint32_t life = lifetime_ticks(n);
	unsigned budget = TCP_TW_BLOCK;

	while (budget-- > 0 && t->oldest != 0 &&
	    age_ticks(record(t, t->oldest), tcp_tick32(n->now)) >= life)
		tcp_tw_remove(n, record(t, t->oldest));
	arm_for_oldest(n);
}

void
tcp_tw_enter(struct netisr *n, const struct tcp_pcb *p)
{
	struct tcp_netisr *tn = n->tcp;
	uint32_t number = alloc_record(n);
	uint32_t *head;
	struct tcp_tw *w;

	if (number == 0)
		return;
	w = record(&tn->tw, number);
	w->local = p->tuple.local;
	w->foreign = p->tuple.foreign;
	w->lport = p->tuple.lport;
	w->fport = p->tuple.fport;
	w->snd_nxt = p->snd_max;
	w->rcv_nxt = p->rcv_nxt;
	w->ts_recent = p->ts_recent;
	w->since_ts = (tcp_tick32(n->now) & ~HAS_TS) | (p->flags & TCPF_TS ? HAS_TS : 0);
	w->share = tcp_share(p) & (PORT_SHARES - 1);
	port_raise(n, &p->tuple, tcp_share(p));
	port_rests(n, &p->tuple, (p->flags & TCPF_TS) != 0);
	head = &tn->tw.bucket[bucket_index(tn, &p->tuple)];
	w->hash_next = *head;
	*head = number;
	append_newest(&tn->tw, w, number);
	tn->tw.count++;
	atomic_fetch_add_explicit(&tn->n_timewait, 1, memory_order_relaxed);
	NETISR_COUNT(n, CTR_tcp_timewait);
	arm_for_oldest(n);
}

/* ---- segments ---- */

bool
tcp_tw_has_ts(const struct tcp_tw *w)
{
	return (w->since_ts & HAS_TS) != 0;
}

bool
tcp_tw_reusable(const struct tcp_tw *w, uint32_t now_tick)
{
	return (w->since_ts & HAS_TS) && age_ticks(w, now_tick) > TCP_TW_REUSE_US >> 10;
}

/* RFC 6191 2, without its cases that need the peer's clock to be known. */
static bool
is_newer_syn(const struct tcp_tw *w, const struct tcp_seg *s)
{
	if ((w->since_ts & HAS_TS) && s->opts.has_ts && s->opts.tsval != w->ts_recent)
		return (int32_t)(s->opts.tsval - w->ts_recent) > 0;
	return seq_gt(s->seq, w->rcv_nxt);
}

enum tcp_tw_verdict
tcp_tw_check(const struct tcp_tw *w, const struct tcp_seg *s)
{
	if (s->flags & TH_RST)
		return TCP_TW_IGNORE;
	if ((s->flags & (TH_SYN | TH_ACK | TH_FIN)) == TH_SYN && is_newer_syn(w, s))
		return TCP_TW_REOPEN;
	if (s->flags & TH_SYN)
		return TCP_TW_ACK;
	if (!(s->flags & TH_ACK))
		return TCP_TW_IGNORE;
	/* RFC 9293 3.10.7.4, eighth step: only a retransmitted FIN */
	if ((s->flags & TH_FIN) && seq_eq(seq_add(s->seq, s->len), w->rcv_nxt))
		return TCP_TW_ACK_RESTART;
	/* an ACK in place needs no answer: two ends in TIME-WAIT would never stop */
	if (s->len == 0 && seq_eq(s->seq, w->rcv_nxt))
		return TCP_TW_IGNORE;
	return TCP_TW_ACK;
}

static void
answer(struct netisr *n, const struct tcp_tw *w)
{
	struct tuple t = tuple_of(w);
	struct tcp_reply r = { .tuple = &t, .flags = TH_ACK, .seq = w->snd_nxt, .ack = w->rcv_nxt };

	if (w->since_ts & HAS_TS) {
		r.opts.has_ts = true;
		r.opts.tsval = tcp_ts_now(
		    tcp_ts_offset(&n->stack->secret[TCP_SECRET_ISN], &t), n->now);
		r.opts.tsecr = w->ts_recent;
	}
	tcp_reply(n, &r);
}

static void
restart(struct netisr *n, struct tcp_tw *w)
{
	struct tcp_twtab *t = &n->tcp->tw;
	struct tuple tuple = tuple_of(w);
	uint32_t number;

	/* its own number: a neighbour by age knows it, or an end of the list does */
	if (w->newer != 0)
		number = record(t, w->newer)->older;
	else
		number = t->newest;
	unlink_age(t, w);
	append_newest(t, w, number);
	w->since_ts = (tcp_tick32(n->now) & ~HAS_TS) | (w->since_ts & HAS_TS);
	port_rests(n, &tuple, tcp_tw_has_ts(w));
}

bool
tcp_tw_input(struct netisr *n, struct tcp_tw *w, const struct tcp_seg *s)
{
	switch (tcp_tw_check(w, s)) {
	case TCP_TW_REOPEN:
		return true;
	case TCP_TW_ACK_RESTART:
		restart(n, w);
		answer(n, w);
		break;
	case TCP_TW_ACK:
		/* limited: what is out of place may come from an end that is confused */
		if (tcp_may_challenge(n)) {
			NETISR_COUNT(n, CTR_tcp_challenge_acks);
			answer(n, w);
		}
		break;
	case TCP_TW_IGNORE:
		break;
	}
	return false;
}

/* ---- set-up ---- */

int
tcp_tw_init(struct tcp_netisr *tn)
{
	struct tcp_twtab *t = &tn->tw;

	t->max_blocks = TCP_HARD_MAX_TW / TCP_TW_BLOCK;
	t->bucket = calloc(TCP_TW_BUCKETS, sizeof(*t->bucket));
	t->block = calloc(t->max_blocks, sizeof(struct tcp_tw *));
	timer_init(&t->timer, on_timer);
	if (t->bucket != NULL && t->block != NULL)
		return 0;
	tcp_tw_fini(tn);
	return -ENOMEM;
}

void
tcp_tw_fini(struct tcp_netisr *tn)
{
	struct tcp_twtab *t = &tn->tw;
	uint32_t i;

	for (i = 0; i < t->n_blocks; i++)
		free(t->block[i]);
	free(t->block);
	free(t->bucket);
	memset(t, 0, sizeof(*t));
}
