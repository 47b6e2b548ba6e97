/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What TCP's files share. A segment's way: tcp_in.c turns bytes into struct tcp_seg and finds whom
 * it is for; tcp_check.c judges it without side effects; tcp_fsm.c calls the steps (tcp_ack.c,
 * tcp_rcv.c, …) in the order of RFC 9293 3.10.7; the steps write what is owed into p->todo. Nobody
 * sends before tcp_rollup(), which gives each touched pcb one tcp_out() and one upcall. All of it
 * runs as the holder of the pcb's netisr, at the time n->now.
 *
 * Sequence numbers and ring positions: snd_una is the byte at the tail of sh->tx (once the SYN is
 * acknowledged), rcv_nxt the byte at the head of sh->rx. Every offset is taken from these two, so
 * the rings know nothing of SYN and FIN.
 *
 * A pcb's life: tcp_pcb_new (in the table) … tcp_die (out of the table, TCPF_GONE, touched) …
 * tcp_rollup (upcall, detached from the socket, freed). Between the last two, which are in one
 * round, everybody must look at TCPF_GONE.
 */
#ifndef TRANSPORT_TCP_TCP_PRIV_H
#define TRANSPORT_TCP_TCP_PRIV_H

#include "transport/port.h"
#include "transport/tcp/tcp_pcb.h"

/* ---- tcp_layer.c ---- */

void tcp_rollup(struct netisr *n);

/* Puts p on the list of pcbs that get their tcp_out() and upcall at the end of this round. */
void tcp_touch(struct netisr *n, struct tcp_pcb *p);

static inline void
tcp_owe(struct netisr *n, struct tcp_pcb *p, unsigned todo)
{
	p->todo.what = (uint16_t)(p->todo.what | todo);
	tcp_touch(n, p);
}

/* One challenge ACK more for p, if the netisr's limit allows it (RFC 5961 7). */
bool tcp_may_challenge(struct netisr *n);
void tcp_owe_challenge(struct netisr *n, struct tcp_pcb *p);
void tcp_owe_dup_ack(struct netisr *n, struct tcp_pcb *p);

/* ---- tcp_fsm.c ---- */

/* The only writer of p->state. */
void tcp_enter(struct netisr *n, struct tcp_pcb *p, enum tcp_state st);
void tcp_segment(struct netisr *n, struct tcp_pcb *p, struct tcp_seg *s);
/* The handshake has ended (RFC 9293 3.10.7.3, 3.10.7.4): `s` acknowledged our SYN. */
void tcp_become_established(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s);
/* The application's CLOSE call or shutdown for writing (RFC 9293 3.10.4). */
void tcp_fsm_close(struct netisr *n, struct tcp_pcb *p);

/* ---- tcp_check.c: pure ---- */

enum tcp_verdict {
	TCP_ACCEPT,
	TCP_DROP,		/* silently */
	TCP_DROP_ACK,		/* and answer with an ACK */
	TCP_DROP_CHALLENGE,	/* and answer with a challenge ACK (RFC 5961) */
	TCP_DROP_RST,		/* and answer <SEQ=SEG.ACK><CTL=RST>; the connection stays */
	TCP_ABORT,		/* answer with RST and end the connection (data after close) */
	TCP_RESET,		/* a valid RST: the connection ends */
};

struct tcp_check {
	enum tcp_verdict verdict;
	enum counter why;
};

/* Sequence numbers, PAWS, RST, SYN, ACK in a synchronized state or SYN-RECEIVED. */
struct tcp_check tcp_check(const struct tcp_pcb *p, const struct tcp_seg *s, struct time now);
/* RFC 9293 3.10.7.3 first to third steps. TCP_ACCEPT: a SYN to act on. */
struct tcp_check tcp_check_syn_sent(const struct tcp_pcb *p, const struct tcp_seg *s);
/* The four cases of RFC 9293 3.10.7.4 table 6, with the relaxations explained in tcp_check.c. */
bool tcp_seq_acceptable(struct seq nxt, struct seq edge, const struct tcp_seg *s);
/* Does s need none of the tests? Then the steps are run without them. */
bool tcp_is_plain(const struct tcp_pcb *p, const struct tcp_seg *s);

/* ---- tcp_ack.c ---- */

void tcp_ack(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s);
/* RFC 7323 4.3: TS.Recent moves with segments at the left edge of what we have acknowledged. */
void tcp_ts_update(struct tcp_pcb *p, const struct tcp_seg *s, struct time now);

/* ---- tcp_rcv.c ---- */

void tcp_rcv(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s);
/* The window field to send now; moves rcv_adv and tells the reader. is_dup: as promised last. */
uint16_t tcp_rcv_window(struct tcp_pcb *p, bool is_dup);
/* Is a window update of its own worth a segment (RFC 9293 3.8.6.2.2)? */
bool tcp_rcv_update_due(const struct tcp_pcb *p);
/* [start, end) has come twice: the next segment tells (RFC 2883). */
void tcp_rcv_note_dup(struct tcp_pcb *p, struct seq start, struct seq end);
/* Takes the first grant (at least min_bytes) and gives it to the ring. */
void tcp_rcv_grant_first(struct netisr *n, struct tcp_pcb *p, uint32_t min_bytes);
/* p->irs is known; promised_bytes were in our SYN's window field. */
void tcp_rcv_init(struct netisr *n, struct tcp_pcb *p, uint32_t promised_bytes);
void tcp_rcv_fini(struct netisr *n, struct tcp_pcb *p);
/* First window for a socket with this SO_RCVBUF on n, and the shift to offer (RFC 7323 2.3). */
uint32_t tcp_rcv_initial_bytes(const struct netisr *n, const struct sockhalf *sh);
uint8_t tcp_rcv_wscale(const struct netisr *n);

/* ---- tcp_reass.c: which bytes above rcv_nxt are there; knows nothing of rings ---- */

struct tcp_span {
	struct seq start;
	struct seq end;
};

struct tcp_reass {
	uint32_t count;
	struct seq recent[TCP_SACK_MAX];	/* where the newest segments began, newest first */
	struct tcp_span span[TCP_REASS_MAX];	/* sorted, disjoint, not adjacent */
};

void tcp_reass_init(struct tcp_reass *r);
/* The first part of [from, end) that is not there yet; false: none. */
bool tcp_reass_next_hole(const struct tcp_reass *r, struct seq from, struct seq end,
    struct tcp_span *ret_hole);
/* Adds a span, merging; false when it would need one interval too many. */
bool tcp_reass_insert(struct tcp_reass *r, struct tcp_span in);
/* rcv_nxt has come to `nxt`: forgets what lies below and returns where the data that follow end. */
struct seq tcp_reass_advance(struct tcp_reass *r, struct seq nxt);
/* Notes that the segment at `start`, all of which is there, has come (again). */
void tcp_reass_touch(struct tcp_reass *r, struct seq start);
/* Up to max SACK blocks, the most recently changed first (RFC 2018 4). */
unsigned tcp_reass_sack(const struct tcp_reass *r, struct tcp_span *blocks, unsigned max);
/* End of the highest span; r->count > 0. */
struct seq tcp_reass_end(const struct tcp_reass *r);

/* ---- tcp_out.c: what to send; tcp_xmit.c: how ---- */

void tcp_out(struct netisr *n, struct tcp_pcb *p);
/* From snd_una to snd_max: what may be in the network. */
static inline uint32_t
tcp_flight_bytes(const struct tcp_pcb *p)
{
	return (uint32_t)seq_diff(p->snd_max, p->snd_una);
}

/* Payload bytes of a full segment with the options in use now. */
uint32_t tcp_eff_mss(const struct tcp_pcb *p);
/* Bytes of tx from snd_nxt to the end of the queue. */
uint32_t tcp_unsent_bytes(const struct tcp_pcb *p);
/* Bytes that peer's window and cwnd still allow from snd_nxt on. */
uint32_t tcp_usable_bytes(const struct tcp_pcb *p);
/* Does a queued FIN still have to go out from snd_nxt on? */
static inline bool
tcp_fin_is_waiting(const struct tcp_pcb *p)
{
	return (p->flags & TCPF_FIN_QUEUED) &&
	    (!(p->flags & TCPF_FIN_SENT) || seq_leq(p->snd_nxt, p->snd_fin));
}

/* One segment: [seq, seq + len) of tx. 0, or a negative errno when no packet was to be had. */
int tcp_xmit(struct netisr *n, struct tcp_pcb *p, struct seq seq, uint32_t len, uint8_t flags,
    bool is_dup_ack);
void tcp_xmit_syn(struct netisr *n, struct tcp_pcb *p);
/* MSS from the route and TCP_MAXSEG (RFC 6691); the value to offer. */
uint16_t tcp_route_mss(const struct ip_route *r, const struct sockhalf *sh);
/* Looks the route up again if it is stale; false: none now. */
bool tcp_refresh_route(struct netisr *n, struct tcp_pcb *p);

/* A segment without a pcb. */
struct tcp_reply {
	const struct tuple *tuple;	/* local is the sender */
	struct seq seq;
	struct seq ack;
	uint16_t wnd;
	uint8_t flags;
	uint8_t tos;
	struct tcp_opts opts;
};
void tcp_reply(struct netisr *n, const struct tcp_reply *r);
/* RFC 9293 3.10.7.1: the RST that answers s. */
void tcp_reply_rst(struct netisr *n, const struct tcp_seg *s);

/* ---- tcp_rexmit.c, tcp_rtt.c, tcp_cc.c, tcp_timer.c ---- */

void tcp_rexmit_fire(struct netisr *n, struct tcp_pcb *p);
/* Arms or stops REXMIT for what is in flight or waits for a window; at the end of tcp_out(). */
void tcp_rexmit_arm(struct netisr *n, struct tcp_pcb *p);
uint64_t tcp_rto_backed_off_us(const struct netisr *n, const struct tcp_pcb *p);

struct tcp_rtt {
	uint32_t srtt8_us;
	uint32_t rttvar4_us;
};
/* RFC 6298 2.2, 2.3. */
void tcp_rtt_sample(struct tcp_rtt *r, uint32_t sample_us);
/* RFC 6298 2.2 to 2.5. */
uint32_t tcp_rtt_rto_us(const struct tcp_rtt *r, uint32_t min_us, uint32_t max_us);
void tcp_rtt_take(struct netisr *n, struct tcp_pcb *p, uint64_t sample_us);

uint32_t tcp_cc_initial_bytes(uint32_t mss, uint32_t segs);
void tcp_cc_init(struct netisr *n, struct tcp_pcb *p);
void tcp_cc_on_ack(struct tcp_pcb *p, uint32_t acked_bytes, uint32_t flight_before_bytes);
void tcp_cc_enter_recovery(struct tcp_pcb *p);
void tcp_cc_on_dup_in_recovery(struct tcp_pcb *p);
void tcp_cc_on_partial_ack(struct tcp_pcb *p, uint32_t acked_bytes);
void tcp_cc_exit_recovery(struct tcp_pcb *p);
void tcp_cc_on_timeout(struct tcp_pcb *p);
void tcp_cc_after_idle(struct netisr *n, struct tcp_pcb *p);

void tcp_timers_init(struct tcp_pcb *p);
void tcp_timer_set(struct netisr *n, struct tcp_pcb *p, enum tcp_timer_kind k, uint64_t after_us);
void tcp_timer_stop(struct tcp_pcb *p, enum tcp_timer_kind k);
static inline bool
tcp_timer_is_set(const struct tcp_pcb *p, enum tcp_timer_kind k)
{
	return !time_is_never(p->due[k]);
}
/* Starts, moves or stops keepalive after an option or the state has changed. */
void tcp_keep_update(struct netisr *n, struct tcp_pcb *p);

/* slab_alloc, counting when memory had to be taken from the system. */
static inline void *
tcp_obj_alloc(struct netisr *n, struct slab *s)
{
	uint32_t blocks = s->block_count;
	void *obj = slab_alloc(s);

	if (unlikely(s->block_count != blocks))
		netisr_count_any(n, CTR_conn_allocs);
	return obj;
}

/* ---- tcp_open.c, tcp_listen.c, tcp_syn.c, tcp_close.c ---- */

/* In the table, state CLOSED, with its first grant. NULL: limit or memory (counted). */
struct tcp_pcb *tcp_pcb_new(struct netisr *n, struct sockhalf *sh, const struct tuple *t,
    const struct ip_route *route, uint32_t min_grant_bytes);
/* False: sh has been sent on to another netisr, with all of `ops`, and is no longer ours. */
bool tcp_op_connect(struct netisr *n, struct sockhalf *sh, uint32_t ops);
int tcp_app_connect(struct sockhalf *sh, const struct endpoint *peer, struct netisr *home);
int tcp_app_bind(struct sockhalf *sh, const struct endpoint *local);
int tcp_app_listen(struct sockhalf *sh, unsigned backlog);
void tcp_app_unlisten(struct sockhalf *sh);
void tcp_app_close(struct sockhalf *sh);
/* Sets the sender's limits from what the peer's SYN offered (0: no MSS option). */
void tcp_negotiate(struct tcp_pcb *p, const struct tcp_opts *o, uint32_t offered_flags);
/* Under what p's port is counted. */
static inline uint8_t
tcp_share(const struct tcp_pcb *p)
{
	return (uint8_t)((p->flags / TCPF_SHARE_ADDR) & (PORT_SHARES - 1));
}
/* What n has of this 4-tuple (callback of port_choose). */
enum port_use tcp_tuple_use(struct netisr *n, const struct tuple *t);

struct tcp_listener {
	struct sockhalf *sh;
	struct darter_stack *stack;
	_Atomic uint32_t unanswered;	/* netisrs that have not let go of it yet */
	unsigned n_lanes;
	struct tcp_listener_lane {
		struct msg_node node;
		struct tcp_listener *listener;
		/* holder of the lane's netisr only */
		TAILQ_HEAD(, tcp_syn) half_open_list;	/* oldest first */
		uint32_t half_open;
	} lane[];
};

void tcp_listener_shut(struct tcp_listener *l);
void tcp_on_listener_message(struct netisr *n, struct msg_node *m);
void tcp_listen_input(struct netisr *n, struct sockhalf *sh, const struct tcp_seg *s);
struct tcp_syn *tcp_syn_lookup(struct tcp_netisr *t, const struct tuple *tuple);
void tcp_syn_input(struct netisr *n, struct tcp_syn *e, struct tcp_seg *s);
/* Forgets the listener's oldest entry on n; false: it has none. */
bool tcp_syn_evict(struct netisr *n, struct tcp_listener *l);
/* above: where the numbers of the incarnation before end, or NULL. NULL: limit or memory. */
struct tcp_syn *tcp_syn_new(struct netisr *n, struct tcp_listener *l, const struct tcp_seg *s,
    const struct seq *above);
void tcp_syn_free(struct netisr *n, struct tcp_syn *e);
void tcp_syn_send(struct netisr *n, struct tcp_syn *e);
/* l is going away: its half-open entries go to a member of the same group, or are dropped. */
void tcp_syn_rehome(struct netisr *n, struct tcp_listener *l);
/* old: the TIME_WAIT record of the same tuple, NULL: none. */
void tcp_listen_syn(struct netisr *n, struct sockhalf *found, const struct tcp_seg *s,
    const struct tcp_tw *old);

void tcp_op_shutdown(struct netisr *n, struct tcp_pcb *p);
void tcp_op_close(struct netisr *n, struct sockhalf *sh);
/* Ends a connection now; so_error 0: without error. Upcall and freeing come in the roll-up. */
void tcp_die(struct netisr *n, struct tcp_pcb *p, int so_error);
/* … with an RST to the peer (RFC 9293 3.10.5). */
void tcp_abort(struct netisr *n, struct tcp_pcb *p, int so_error);
/* Last step of a gone pcb, in the roll-up. */
void tcp_pcb_finish(struct netisr *n, struct tcp_pcb *p);

/* ---- tcp_timewait.c ---- */

int tcp_tw_init(struct tcp_netisr *t);
void tcp_tw_fini(struct tcp_netisr *t);
void tcp_tw_enter(struct netisr *n, const struct tcp_pcb *p);
struct tcp_tw *tcp_tw_lookup(struct tcp_netisr *t, const struct tuple *tuple);
void tcp_tw_remove(struct netisr *n, struct tcp_tw *w);
/* … whose port a connection of ours goes on with. */
void tcp_tw_take_over(struct netisr *n, struct tcp_tw *w);
bool tcp_tw_has_ts(const struct tcp_tw *w);
/* True when s, a SYN, may open a new incarnation: the caller looks for a listener. */
bool tcp_tw_input(struct netisr *n, struct tcp_tw *w, const struct tcp_seg *s);

enum tcp_tw_verdict {
	TCP_TW_IGNORE,
	TCP_TW_ACK,
	TCP_TW_ACK_RESTART,	/* … and 2 MSL begin anew */
	TCP_TW_REOPEN,
};
/* RFC 9293 3.10.7.4, RFC 1337, RFC 6191; pure. */
enum tcp_tw_verdict tcp_tw_check(const struct tcp_tw *w, const struct tcp_seg *s);
/* May a connection of ours take the record over (RFC 6191, after 1 s)? Pure. */
bool tcp_tw_reusable(const struct tcp_tw *w, uint32_t now_tick);

/* ---- tcp_opt.c, tcp_isn.c ---- */

/* SACK blocks that go on the next segment, the D-SACK among them. */
unsigned tcp_opt_sack_count(const struct tcp_pcb *p);
/* Options of the next segment. A D-SACK is told once: has been, when this returns. */
void tcp_opt_fill(struct tcp_pcb *p, struct time now, struct tcp_opts *ret);
void tcp_opt_fill_syn(const struct tcp_pcb *p, struct netisr *n, struct tcp_opts *ret);
/* Smallest shift by which 16 bits express `bytes`, at most 14. */
uint8_t tcp_opt_wscale(uint32_t bytes);

/* RFC 6528: keyed by the tuple, on a 4 us clock. */
struct seq tcp_isn(const struct siphash_key *key, const struct tuple *t, struct time now);
/* RFC 7323 5.4, RFC 6191: one an address pair, hence monotonic over ports and netisrs. */
uint32_t tcp_ts_offset(const struct siphash_key *key, const struct tuple *t);

static inline uint32_t
tcp_ts_now(uint32_t offset, struct time now)
{
	return tcp_tick32(now) + offset;
}

/* ---- tcp_table.c ---- */

int tcp_table_init(struct tcp_table *t);
void tcp_table_fini(struct tcp_table *t);
uint32_t tcp_hash(const struct netisr *n, const struct tuple *t);
struct tcp_pcb *tcp_table_lookup(const struct tcp_table *t, const struct tuple *tuple,
    uint32_t hash);
void tcp_table_insert(struct tcp_table *t, struct tcp_pcb *p);
void tcp_table_remove(struct tcp_table *t, struct tcp_pcb *p);
void tcp_table_visit(const struct tcp_table *t, void (*fn)(void *arg, struct tcp_pcb *p),
    void *arg);

/* Buckets [from, from + count); false when the end was reached. */
bool tcp_table_visit_some(const struct tcp_table *t, uint32_t from, uint32_t count,
    void (*fn)(void *arg, struct tcp_pcb *p), void *arg);

/* ---- tcp_sweep.c ---- */

void tcp_sweep_init(struct tcp_netisr *tn);
void tcp_sweep_start(struct netisr *n);

/* ---- tcp_in.c, tcp_info.c, tcp_sockopt.c ---- */

void tcp_in(struct netisr *n, struct pkt *p, const struct ip_meta *meta);
void tcp_icmp_error(struct netisr *n, const struct ip_meta *meta, const uint8_t *quoted,
    uint32_t quoted_len, const struct ip_error *e);
void tcp_info_fill(const struct netisr *n, const struct tcp_pcb *p, struct tcp_conn_info *ret);
int tcp_app_setopt(struct sockhalf *sh, int name, const void *val, size_t len);
int tcp_app_getopt(struct sockhalf *sh, int name, void *val, size_t *len);

#endif
