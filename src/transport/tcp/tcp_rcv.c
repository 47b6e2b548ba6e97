/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data and FIN of an acceptable segment (RFC 9293 3.10.7.4, seventh and eighth step), and the
 * receive window.
 *
 * Every byte inside the window is copied once into the receive ring at its place; bytes ahead of
 * rcv_nxt are remembered by tcp_reass.c and published when the hole before them is filled. First
 * bytes received win. A FIN is remembered as a sequence number: nothing beyond it is taken, one
 * below data that are there already is refused. When memory runs out the segment is dropped without
 * being acknowledged, so the peer sends it again.
 *
 * The window is a grant (DESIGN.md 3): the first one is 64 KiB, charged to the netisr's budget; it
 * doubles while the peer fills it within a few round trips, the reader keeps up, and the budget is
 * below 3/4 (and would not pass 7/8), up to SO_RCVBUF. It never shrinks, and the right edge never
 * moves back: the ring has room for every byte up to rcv_adv.
 * - RFC 9293 3.8.6.2.2: the edge moves only by min(MSS, half the buffer) or more.
 * - RFC 7323 2.4: a scaled window can't say every number; we round up when there is room, else the
 *   field may read up to 2^shift - 1 lower than before, but what was promised is still accepted.
 *
 * ACKs: at once out of order, when a hole is filled, for a FIN, for every two full segments (RFC
 * 5681 4.2) and for the first full segments of a connection; else within delack_ms, so that an
 * answer carries it.
 */
#include "transport/tcp/tcp_priv.h"

#define FIRST_GRANT_TIGHT_BYTES	16384u	/* when the budget is spent */
#define QUICK_ACKS		16u

/* The part of a segment that is wanted. */
struct part {
	struct seq start;
	struct seq end;
	bool has_fin;
};

/* Nobody reads any more: bytes are counted and acknowledged, not kept. */
static bool
is_discarding(const struct tcp_pcb *p)
{
	return (p->flags & TCPF_CLOSED) || (sockhalf_state(p->sh) & SH_SHUT_RD);
}

/* ---- grants and the window ---- */

static uint32_t
rcvbuf_limit(const struct netisr *n, const struct sockhalf *sh)
{
	uint32_t want = atomic_load_explicit(&sh->opts.rcvbuf_bytes, memory_order_relaxed);
	uint32_t max = (uint32_t)knob_get(&tcp_knobs(n)->rcvbuf_max);

	return min_u32(max_u32(want, TCP_MSS_UNASKED), max);
}

uint32_t
tcp_rcv_initial_bytes(const struct netisr *n, const struct sockhalf *sh)
{
	const struct grant_budget *b = &n->rcv_budget;
	uint32_t first = (uint32_t)knob_get(&tcp_knobs(n)->initial_window);

	if ((b->used_bytes + first) * 8 > b->limit_bytes * 7)
		first = min_u32(first, FIRST_GRANT_TIGHT_BYTES);
	return min_u32(first, rcvbuf_limit(n, sh));
}

uint8_t
tcp_rcv_wscale(const struct netisr *n)
{
	/* SO_RCVBUF may still be raised, the shift can't: it is chosen for the largest buffer */
	return tcp_opt_wscale((uint32_t)knob_get(&tcp_knobs(n)->rcvbuf_max));
}

static void
set_grant(struct netisr *n, struct tcp_pcb *p, uint32_t bytes)
{
	n->rcv_budget.used_bytes += bytes - p->rcv_grant_bytes;
	p->rcv_grant_bytes = bytes;
	atomic_store_explicit(&p->sh->rx.cap_bytes, bytes, memory_order_relaxed);
}

void
tcp_rcv_grant_first(struct netisr *n, struct tcp_pcb *p, uint32_t min_bytes)
{
	set_grant(n, p, max_u32(tcp_rcv_initial_bytes(n, p->sh), min_bytes));
}

void
tcp_rcv_init(struct netisr *n, struct tcp_pcb *p, uint32_t promised_bytes)
{
	p->rcv_nxt = seq_add(p->irs, 1);
	p->rcv_acked = p->irs;
	p->rcv_adv = seq_add(p->rcv_nxt, promised_bytes);
	p->tune_edge = p->rcv_adv;
	p->tune_tick = tcp_tick32(n->now);
	p->rcv_mss = (uint16_t)min_u32(TCP_MSS_UNASKED, p->mss);
	p->quick_acks = QUICK_ACKS;
	p->ts_recent_s = tcp_seconds(n->now);
}

static void
charge_ooo(struct netisr *n, struct tcp_pcb *p, uint32_t bytes)
{
	n->rcv_budget.ooo_used_bytes += bytes;
	n->rcv_budget.ooo_used_bytes -= p->ooo_bytes;
	p->ooo_bytes = bytes;
}

static void
free_reass(struct netisr *n, struct tcp_pcb *p)
{
	charge_ooo(n, p, 0);
	slab_free(&n->tcp->reasses, p->reass);
	p->reass = NULL;
}

void
tcp_rcv_fini(struct netisr *n, struct tcp_pcb *p)
{
	if (p->reass != NULL)
		free_reass(n, p);
	n->rcv_budget.used_bytes -= p->rcv_grant_bytes;
	p->rcv_grant_bytes = 0;
}

/*
 * The peer used the whole window within a few round trips and the reader keeps up: the window is
 * the bottleneck.
 */
static void
tune_window(struct netisr *n, struct tcp_pcb *p)
{
	struct grant_budget *b = &n->rcv_budget;
	uint32_t took_us = (tcp_tick32(n->now) - p->tune_tick) << 10;
	uint32_t cap = p->rcv_grant_bytes;
	uint32_t more, limit = rcvbuf_limit(n, p->sh);

	p->tune_edge = p->rcv_adv;
	p->tune_tick = tcp_tick32(n->now);
	if (!(p->flags & TCPF_WSCALE))
		limit = min_u32(limit, UINT16_MAX);
	if (cap >= limit || took_us > (p->srtt8_us >> 1) + 1024 ||
	    ring_used_bytes(&p->sh->rx) > cap / 2 || !knob_get(&tcp_knobs(n)->autotune))
		return;
	more = min_u32(cap, limit - cap);
	if (b->used_bytes * 4 >= b->limit_bytes * 3 ||
	    (b->used_bytes + more) * 8 > b->limit_bytes * 7)
		return;
	set_grant(n, p, cap + more);
}

/* Right edge that the memory granted allows now. */
static struct seq
edge_of_memory(const struct tcp_pcb *p)
{
	uint32_t space = is_discarding(p) ? p->rcv_grant_bytes : ring_space_bytes(&p->sh->rx);

	return seq_add(p->rcv_nxt, space);
}

static uint32_t
open_bytes(const struct tcp_pcb *p)
{
	return seq_gt(p->rcv_adv, p->rcv_nxt) ? (uint32_t)seq_diff(p->rcv_adv, p->rcv_nxt) : 0;
}

/* By how much the edge must be able to move before the reader asks for an update of its own. */
static uint32_t
update_step_bytes(const struct tcp_pcb *p)
{
	uint32_t half = p->rcv_grant_bytes / 2;

	if (open_bytes(p) < 2u * p->rcv_mss)
		return min_u32(p->rcv_mss, half);
	return max_u32(min_u32(2u * p->rcv_mss, half), p->rcv_grant_bytes / 4);
}

/*
 * The reader compares tail + cap - rx_adv with rx_wnd_step after it has moved the tail. The
 * exchange orders our stores before the next look at the tail (tcp_rcv_update_due at the end of
 * tcp_out), so one of the two sides sees that an update is due.
 */
static void
tell_reader(struct tcp_pcb *p)
{
	uint32_t head = atomic_load_explicit(&p->sh->rx.head, memory_order_relaxed);

	atomic_store_explicit(&p->sh->rx_adv, head + open_bytes(p), memory_order_relaxed);
	atomic_exchange_explicit(&p->sh->rx_wnd_step, update_step_bytes(p), memory_order_seq_cst);
}

uint16_t
tcp_rcv_window(struct tcp_pcb *p, bool is_dup)
{
	struct seq memory = edge_of_memory(p);
	struct seq edge = p->rcv_adv;
	uint32_t field, unit = UINT32_C(1) << p->rcv_wscale;

	if (p->flags & TCPF_EOF)
		return (uint16_t)min_u32(open_bytes(p) >> p->rcv_wscale, UINT16_MAX);
	if (!is_dup && seq_diff(memory, edge) >=
	    (int32_t)min_u32(p->rcv_mss, p->rcv_grant_bytes / 2))
		edge = memory;
	field = (uint32_t)seq_diff(edge, p->rcv_nxt) >> p->rcv_wscale;
	if (seq_lt(seq_add(p->rcv_nxt, field << p->rcv_wscale), p->rcv_adv) &&
	    seq_leq(seq_add(p->rcv_nxt, (field << p->rcv_wscale) + unit), memory))
		field++;
	field = min_u32(field, UINT16_MAX);
	p->rcv_adv = seq_max(p->rcv_adv, seq_add(p->rcv_nxt, field << p->rcv_wscale));
	tell_reader(p);
	return (uint16_t)field;
}

bool
tcp_rcv_update_due(const struct tcp_pcb *p)
{
	int32_t gain;

	if ((p->flags & (TCPF_EOF | TCPF_CLOSED | TCPF_GONE)) || p->state < TCP_ESTABLISHED)
		return false;
	gain = seq_diff(edge_of_memory(p), p->rcv_adv);
	/* what the shift can't express is no update */
	return gain >= (int32_t)update_step_bytes(p) && gain >= INT32_C(1) << p->rcv_wscale;
}

/* ---- data ---- */

void
tcp_rcv_note_dup(struct tcp_pcb *p, struct seq start, struct seq end)
{
	if (!(p->flags & TCPF_SACK) || !seq_lt(start, end))
		return;
	p->dsack_start = start;
	p->dsack_bytes = (uint32_t)seq_diff(end, start);
}

/* Cuts off what is old, beyond the window or behind the FIN. */
static struct part
trim(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s)
{
	struct part d = { s->seq, seq_add(s->seq, s->data_bytes), (s->flags & TH_FIN) != 0 };
	struct seq known_end = p->reass != NULL ? tcp_reass_end(p->reass) : p->rcv_nxt;

	if (p->flags & TCPF_FIN_RCVD) {
		d.has_fin = false;
		d.end = seq_min(d.end, p->rcv_fin);
	} else if (seq_lt(d.end, known_end)) {
		d.has_fin = false;	/* data that we have say otherwise */
	}
	if (seq_lt(d.start, p->rcv_nxt)) {
		struct seq dup_end = seq_min(d.end, p->rcv_nxt);

		netisr_count(n, CTR_tcp_dup_bytes, (uint32_t)seq_diff(dup_end, d.start));
		tcp_rcv_note_dup(p, d.start, dup_end);
		d.start = p->rcv_nxt;
	}
	if (seq_gt(d.end, p->rcv_adv)) {
		d.end = p->rcv_adv;
		d.has_fin = false;
	}
	return d;
}

/* Copies [from, from + len) of the segment's payload into the ring. */
static bool
copy_to_ring(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s, struct seq from,
    uint32_t len)
{
	uint32_t skip = s->data_off + (uint32_t)seq_diff(from, s->seq);
	uint32_t at = (uint32_t)seq_diff(from, p->rcv_nxt);
	const struct pkt *k = s->pkt;
	uint32_t part;

	for (; len > 0; k = k->seg) {
		if (skip >= k->len) {
			skip -= k->len;
			continue;
		}
		part = min_u32(len, k->len - skip);
		if (!ring_write_at(&p->sh->rx, &n->chunks, at, k->data + skip, part))
			return false;
		skip = 0;
		at += part;
		len -= part;
	}
	return true;
}

/* Writes what of [start, end) is not there yet. False: no memory. *ret_any: was anything new? */
static bool
fill_holes(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s, const struct part *d,
    bool *ret_any)
{
	struct tcp_span hole;
	struct seq from = d->start;

	*ret_any = true;
	if (is_discarding(p))
		return true;
	if (p->reass == NULL)
		return copy_to_ring(n, p, s, from, (uint32_t)seq_diff(d->end, from));
	*ret_any = false;
	while (tcp_reass_next_hole(p->reass, from, d->end, &hole)) {
		if (!copy_to_ring(n, p, s, hole.start, (uint32_t)seq_diff(hole.end, hole.start)))
			return false;
		*ret_any = true;
		from = hole.end;
	}
	return true;
}

/* RFC 5681 4.2, RFC 9293 3.8.6.3. */
static void
owe_ack(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s, bool has_filled_hole)
{
	uint32_t unacked = (uint32_t)seq_diff(p->rcv_nxt, p->rcv_acked);
	bool is_full = s->data_bytes >= p->rcv_mss;

	if (s->data_bytes > p->rcv_mss)
		p->rcv_mss = (uint16_t)min_u32(s->data_bytes, UINT16_MAX);
	if (is_full && p->quick_acks != 0 && !(s->flags & TH_PUSH)) {
		p->quick_acks--;
		tcp_owe(n, p, TODO_ACK_NOW);
	} else if (has_filled_hole || unacked >= 2u * p->rcv_mss ||
	    atomic_load_explicit(&p->sh->opts.quickack, memory_order_relaxed)) {
		tcp_owe(n, p, TODO_ACK_NOW);
	} else {
		tcp_owe(n, p, TODO_ACK_DELAY);
	}
}

static void
take_in_order(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s, const struct part *d)
{
	struct seq nxt = d->end;
	bool had_ooo = p->reass != NULL;
	bool any;
	uint32_t bytes;

	if (!fill_holes(n, p, s, d, &any)) {
		NETISR_COUNT(n, CTR_drop_tcp_rcv_nomem);
		return;
	}
	if (had_ooo) {
		nxt = tcp_reass_advance(p->reass, nxt);
		/* duplicates owed for the old hole are answered by the ACK that fills it */
		p->todo.dup_acks = 0;
	}
	bytes = (uint32_t)seq_diff(nxt, p->rcv_nxt);
	if (!is_discarding(p)) {
		ring_advance(&p->sh->rx, bytes);
		p->events |= SOCK_EV_IN;
	}
	p->rcv_nxt = nxt;
	netisr_count(n, CTR_tcp_bytes_rcvd, bytes);
	if (had_ooo && p->reass->count == 0)
		free_reass(n, p);
	else if (had_ooo)
		charge_ooo(n, p, (uint32_t)seq_diff(tcp_reass_end(p->reass), p->rcv_nxt));
	owe_ack(n, p, s, had_ooo);
	if (seq_geq(p->rcv_nxt, p->tune_edge))
		tune_window(n, p);
}

/* Memory for bytes up to `end`, charged at the ring's full size in front of them. */
static bool
admit_ooo(struct netisr *n, struct tcp_pcb *p, struct seq end)
{
	struct grant_budget *b = &n->rcv_budget;
	uint32_t bytes = (uint32_t)seq_diff(end, p->rcv_nxt);

	if (bytes > p->ooo_bytes) {
		if (b->ooo_used_bytes + (bytes - p->ooo_bytes) > b->ooo_limit_bytes)
			return false;
	}
	if (p->reass == NULL) {
		p->reass = tcp_obj_alloc(n, &n->tcp->reasses);
		if (p->reass == NULL)
			return false;
		tcp_reass_init(p->reass);
	}
	return true;
}

static void
take_out_of_order(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s,
    const struct part *d)
{
	struct tcp_span in = { d->start, d->end };
	bool any = false;

	NETISR_COUNT(n, CTR_tcp_ooo_segs);
	/* RFC 5681 4.2: each is answered at once, kept or not */
	tcp_owe_dup_ack(n, p);
	if (!admit_ooo(n, p, d->end) || !fill_holes(n, p, s, d, &any)) {
		NETISR_COUNT(n, CTR_drop_tcp_rcv_nomem);
	} else if (!any) {
		NETISR_COUNT(n, CTR_drop_tcp_dup);
		tcp_reass_touch(p->reass, in.start);
		tcp_rcv_note_dup(p, in.start, in.end);
	} else if (!tcp_reass_insert(p->reass, in)) {
		NETISR_COUNT(n, CTR_drop_tcp_reass_limit);
	} else {
		netisr_count(n, CTR_tcp_ooo_bytes, (uint32_t)seq_diff(d->end, d->start));
		charge_ooo(n, p, (uint32_t)seq_diff(tcp_reass_end(p->reass), p->rcv_nxt));
	}
	if (p->reass != NULL && p->reass->count == 0)
		free_reass(n, p);
}

/* Eighth step, its common part: everything before the FIN is there. */
static void
reach_fin(struct netisr *n, struct tcp_pcb *p)
{
	p->rcv_nxt = seq_add(p->rcv_nxt, 1);
	p->flags |= TCPF_EOF;
	sockhalf_set(p->sh, SH_RX_EOF, 0);
	p->events |= SOCK_EV_IN | SOCK_EV_RDHUP;
	tcp_owe(n, p, TODO_ACK_NOW);
}

void
tcp_rcv(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s)
{
	struct part d;

	if (p->flags & TCPF_EOF)
		return;
	d = trim(n, p, s);
	if (d.has_fin) {
		p->flags |= TCPF_FIN_RCVD;
		p->rcv_fin = seq_add(s->seq, s->data_bytes);
	}
	if (seq_lt(d.start, d.end)) {
		if (seq_eq(d.start, p->rcv_nxt))
			take_in_order(n, p, s, &d);
		else
			take_out_of_order(n, p, s, &d);
	} else if (s->data_bytes != 0) {
		/* nothing of it was wanted: a probe, or beyond the FIN */
		tcp_owe(n, p, TODO_ACK_NOW);
	} else if (d.has_fin && seq_gt(p->rcv_fin, p->rcv_nxt)) {
		tcp_owe_dup_ack(n, p);
	}
	if ((p->flags & TCPF_FIN_RCVD) && seq_eq(p->rcv_nxt, p->rcv_fin))
		reach_fin(n, p);
}
