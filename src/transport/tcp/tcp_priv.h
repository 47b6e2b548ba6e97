/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What TCP's files share. A segment's way: tcp_in.c turns bytes into struct tcp_seg and finds whom it is for; tcp_check.c
 * judges it without side effects; tcp_fsm.c calls the steps (tcp_ack.c, tcp_rcv.c, …) in the order of RFC 9293 3.10.7;
 * the steps write what is owed into p->todo. Nobody sends before tcp_rollup(), which gives each touched pcb one tcp_out()
 * and one upcall. All of it runs as the holder of the pcb's netisr, at the time n->now.
 *
 * Sequence numbers and ring positions: snd_una is the byte at the tail of sh->tx (once the SYN is acknowledged), rcv_nxt
 * the byte at the head of sh->rx. Every offset is taken from these two, so the rings know nothing of SYN and FIN.
 *
 * A pcb's life: tcp_pcb_new (in the table) … tcp_die (out of the table, TCPF_GONE, touched) … tcp_rollup (upcall, detached
 * from the socket, freed). Between the last two, which are in one round, everybody must look at TCPF_GONE.
 */
#ifndef TRANSPORT_TCP_TCP_PRIV_H
#define TRANSPORT_TCP_TCP_PRIV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/seq.h"
#include "base/slab.h"
#include "inet/ip.h"
#include "runtime/netisr.h"
#include "runtime/sockhalf.h"
#include "runtime/stack.h"
#include "runtime/wheel.h"
#include "transport/tcp/tcp.h"
#include "wire/tcp.h"

#define TCP_MSS_UNASKED		536u	/* RFC 9293 3.7.1, no option seen */
#define TCP_MSS_MIN		88u	/* smaller offers are taken as this: a peer must not buy a flood of headers */
#define TCP_RTO_INITIAL_US	1000000u	/* RFC 6298 2.1 */
#define TCP_RTO_AFTER_SYN_LOSS_US 3000000u	/* RFC 6298 5.7 */
#define TCP_CORK_US		200000u	/* a corked partial segment waits no longer (as on Linux) */
#define TCP_DUP_ACKS		3u
#define TCP_BACKOFF_MAX		16u	/* doublings; rto_max_ms is reached long before */
#define TCP_PAWS_IDLE_S		(24u * 24 * 3600 * 1000 / 1049)	/* RFC 7323 5.5, in tcp_seconds() of 1.0486 s */
#define TCP_REASS_MAX		64u	/* intervals out of order a connection */
#define TCP_SYN_BUCKETS		4096u
#define TCP_TW_BUCKETS		65536u
#define TCP_TW_BLOCK		1024u
#define TCP_HARD_MAX_PCBS	(1u << 22)
#define TCP_HARD_MAX_SYNQ	(1u << 18)
#define TCP_HARD_MAX_TW		(1u << 20)
#define TCP_TW_REUSE_US		1000000u	/* RFC 6191: a record younger than this is not taken over */

struct acceptq;
struct pkt;
struct tcp_listener;

/* Indexes of stack->secret[]. */
enum tcp_secret {
	TCP_SECRET_ISN = 0,	/* ISN and timestamp offsets, told apart by a tag */
	TCP_SECRET_TABLE = 2,
};

enum tcp_flag {
	TCPF_TS = 1 << 0,		/* timestamps agreed */
	TCPF_SACK = 1 << 1,		/* SACK agreed */
	TCPF_WSCALE = 1 << 2,		/* window scaling agreed */
	TCPF_ACTIVE = 1 << 3,		/* opened by connect (RFC 9293 MUST-11) */
	TCPF_CLOSED = 1 << 4,		/* the application has closed: nobody reads any more */
	TCPF_FIN_QUEUED = 1 << 5,	/* a FIN follows the last byte of tx */
	TCPF_FIN_SENT = 1 << 6,		/* snd_fin is valid */
	TCPF_FIN_ACKED = 1 << 7,
	TCPF_FIN_RCVD = 1 << 8,		/* rcv_fin is valid: a FIN was seen, perhaps ahead of data */
	TCPF_EOF = 1 << 9,		/* rcv_nxt has passed the FIN */
	TCPF_RECOVERY = 1 << 10,	/* RFC 6582 fast recovery */
	TCPF_PARTIAL = 1 << 11,		/* … and the first partial ACK has come */
	TCPF_PERSIST = 1 << 12,		/* the REXMIT timer probes, or overrides SWS avoidance and CORK */
	TCPF_TIMING = 1 << 13,		/* rtt_seq, rtt_start are valid */
	TCPF_SYN_RESENT = 1 << 14,	/* a SYN of ours was sent more than once (RFC 6298 5.7, RFC 5681 3.1) */
	TCPF_TOUCHED = 1 << 15,
	TCPF_GONE = 1 << 16,
	TCPF_RESET = 1 << 17,		/* … by an RST or an abort */
	TCPF_TIMEOUT_SENT = 1 << 18,	/* snd_nxt was pulled back by a timeout and is below snd_max */
	TCPF_BROKEN_ROUTE = 1 << 19,	/* no route now; retransmissions go on */
};

/* What the steps leave for tcp_out(). */
enum tcp_todo_bit {
	TODO_OUT = 1 << 0,		/* look whether data may go out */
	TODO_ACK_NOW = 1 << 1,
	TODO_ACK_DELAY = 1 << 2,	/* an ACK is owed within delack_ms */
	TODO_REXMIT = 1 << 3,		/* send the first unacknowledged segment again */
	TODO_SYN = 1 << 4,		/* send SYN or SYN-ACK */
	TODO_RST = 1 << 5,
	TODO_PROBE = 1 << 6,		/* a segment below snd_una that draws an ACK: zero window, keepalive */
	TODO_FORCE = 1 << 7,		/* SWS avoidance, Nagle and CORK are overridden once */
	TODO_WINDOW = 1 << 8,		/* the reader has made room */
};

struct tcp_todo {
	uint16_t dup_acks;		/* each is sent by itself */
	uint16_t challenge_acks;	/* likewise */
	uint16_t what;			/* enum tcp_todo_bit */
};

enum tcp_timer_kind {
	TCP_T_REXMIT,			/* retransmission, or persist with TCPF_PERSIST */
	TCP_T_DELACK,
	TCP_T_KEEP,
	TCP_T_LIFE,			/* an orphan's FIN_WAIT_2 */
	TCP_TIMERS
};

struct tcp_pcb {
	struct tcp_pcb *hash_next;
	struct tcp_pcb *touched_next;
	struct sockhalf *sh;
	struct tcp_reass *reass;	/* NULL: nothing out of order */
	struct tuple tuple;
	uint32_t hash;
	uint32_t flags;			/* enum tcp_flag */
	uint8_t state;			/* enum tcp_state; written by tcp_enter() alone */
	uint8_t snd_wscale;		/* shift of the windows that the peer sends */
	uint8_t rcv_wscale;		/* shift of ours */
	uint8_t dupacks;		/* in a row */

	/* sender */
	struct seq iss;
	struct seq snd_una;
	struct seq snd_nxt;
	struct seq snd_max;		/* highest sent; above snd_nxt after a timeout */
	struct seq snd_wl1;
	struct seq snd_wl2;
	struct seq snd_fin;		/* TCPF_FIN_SENT */
	struct seq recover;		/* RFC 6582 */
	struct seq rtt_seq;		/* an ACK above it ends the measurement */
	uint32_t snd_wnd_bytes;		/* peer's window, already scaled */
	uint32_t max_snd_wnd_bytes;
	uint32_t cwnd_bytes;
	uint32_t ssthresh_bytes;
	uint32_t cwnd_acked_bytes;	/* acknowledged since cwnd last grew (congestion avoidance) */
	uint32_t srtt8_us;		/* srtt times 8; 0: no sample yet */
	uint32_t rttvar4_us;		/* rttvar times 4 */
	uint32_t rto_us;		/* without back-off */
	struct time rtt_start;
	struct time last_snd;		/* of data, for RFC 5681 4.1 */
	uint32_t stuck_since_tick;	/* first retransmission of what is unacknowledged, in tcp_tick32 */
	uint32_t retransmits;
	uint16_t mss;			/* bytes of a segment without options, both sides' limits and the path's */
	uint8_t backoff;		/* doublings of the RTO, kept until a valid sample (Karn) */
	uint8_t retries;		/* timeouts or probes in a row without progress or answer */
	uint8_t keep_probes;		/* unanswered */
	uint8_t soft_error;		/* errno of the last ICMP error, told when we give up */
	uint8_t quick_acks;		/* full segments that are still acknowledged at once */
	uint16_t rcv_mss;		/* largest segment that the peer has sent */

	/* receiver */
	struct seq irs;
	struct seq rcv_nxt;
	struct seq rcv_adv;		/* right edge promised; never moves back */
	struct seq rcv_acked;		/* rcv_nxt of the last segment sent */
	struct seq rcv_fin;		/* TCPF_FIN_RCVD */
	uint32_t rcv_grant_bytes;	/* promised memory, charged to the netisr's budget */
	uint32_t ooo_bytes;		/* charged to the out-of-order budget */
	struct seq tune_edge;		/* auto-tuning: the promise at tune_start */
	uint32_t tune_tick;
	uint32_t ts_recent;		/* RFC 7323 4.3 */
	uint32_t ts_recent_s;		/* when, in tcp_seconds */
	uint32_t ts_offset;		/* of our clock, keyed by the address pair */
	uint32_t last_rcv_tick;		/* for keepalive */
	struct seq dsack_start;		/* what came twice and is still to be told (RFC 2883) */
	uint32_t dsack_bytes;		/* 0: nothing */

	struct tcp_todo todo;
	uint16_t events;		/* enum sock_event for the upcall */
	uint16_t so_error;		/* why it is gone */
	struct time due[TCP_TIMERS];
	struct timer timer;		/* armed for the earliest of due[], or earlier */
	struct ip_route route;
};

STATIC_ASSERT(sizeof(struct tcp_pcb) <= 384, "a pcb's share of the byte budget of a connection");

/* One segment that came in, in host order. Lives in tcp_in()'s frame. */
struct tcp_seg {
	struct seq seq;
	struct seq ack;
	uint32_t len;			/* in sequence space: data, SYN, FIN */
	uint32_t data_bytes;
	uint32_t data_off;		/* of the payload in pkt */
	uint16_t wnd;			/* as on the wire */
	uint8_t flags;			/* TH_ */
	struct tuple tuple;
	struct tcp_opts opts;
	const struct pkt *pkt;
};

/* ---- tcp_layer.c: state of the stack and of a netisr ---- */

/* Knobs, net.inet.tcp.NAME. Their texts are in tcp_layer.c. */
struct tcp_stack {
	_Atomic int64_t msl_ms;
	_Atomic int64_t rto_min_ms;
	_Atomic int64_t rto_max_ms;
	_Atomic int64_t syn_retries;
	_Atomic int64_t synack_retries;
	_Atomic int64_t data_retries;
	_Atomic int64_t delack_ms;
	_Atomic int64_t keepidle_s;
	_Atomic int64_t keepintvl_s;
	_Atomic int64_t keepcnt;
	_Atomic int64_t init_cwnd;
	_Atomic int64_t sack;
	_Atomic int64_t timestamps;
	_Atomic int64_t window_scaling;
	_Atomic int64_t max_pcbs;
	_Atomic int64_t max_synq;
	_Atomic int64_t max_timewait;
	_Atomic int64_t max_orphans;
	_Atomic int64_t challenge_per_s;
	_Atomic int64_t fin_wait2_ms;
	_Atomic int64_t rcvbuf_max;
	_Atomic int64_t initial_window;
	_Atomic int64_t autotune;
	_Atomic int64_t tw_reuse;
};

/* Hash table of pcbs. While it grows `old` is emptied bucket by bucket, so no insertion takes long. */
struct tcp_table {
	struct tcp_pcb **bucket;
	struct tcp_pcb **old;
	uint32_t mask;
	uint32_t old_mask;
	uint32_t moved;			/* buckets of old below this are empty */
	uint32_t count;
};

/* A TIME_WAIT connection. Lists are by index + 1, 0 ends them. */
struct tcp_tw {
	struct ipaddr local;		/* not a struct tuple, whose padding would not fit */
	struct ipaddr foreign;
	uint16_t lport;
	uint16_t fport;
	uint32_t hash_next;
	uint32_t older;
	uint32_t newer;
	struct seq snd_nxt;
	struct seq rcv_nxt;
	uint32_t ts_recent;
	uint32_t since_ts;		/* tcp_tick32 of entry in the upper 31 bits; 1: timestamps agreed */
};

STATIC_ASSERT(sizeof(struct tcp_tw) == 64, "TIME_WAIT records are one cache line");

struct tcp_twtab {
	struct tcp_tw **block;		/* TCP_TW_BLOCK records each */
	uint32_t *bucket;		/* TCP_TW_BUCKETS */
	uint32_t n_blocks;
	uint32_t max_blocks;
	uint32_t free;			/* index + 1, linked by hash_next */
	uint32_t oldest;
	uint32_t newest;
	uint32_t count;
	struct timer timer;
};

/* A half-open connection of a listener's. */
struct tcp_syn {
	struct tcp_syn *hash_next;
	struct tcp_listener *listener;
	struct tuple tuple;
	struct seq iss;
	struct seq irs;
	uint32_t ts_recent;
	uint32_t ts_offset;
	TAILQ_ENTRY(tcp_syn) by_age;	/* of the listener's lane */
	struct timer timer;
	uint16_t peer_mss;		/* 0: none offered */
	uint16_t wnd;			/* promised in our SYN-ACK */
	uint8_t flags;			/* TCPF_TS, TCPF_SACK, TCPF_WSCALE, TCPF_… below 1 << 8 */
	uint8_t snd_wscale;
	uint8_t rcv_wscale;
	uint8_t sent;			/* SYN-ACKs */
	struct time first_sent;
};

STATIC_ASSERT(sizeof(struct tcp_syn) <= 144, "a half-open connection is small");

struct tcp_netisr {
	struct netisr *n;
	struct tcp_table table;
	struct slab pcbs;
	struct slab reasses;
	struct slab syns;
	struct tcp_syn **syn_bucket;	/* TCP_SYN_BUCKETS */
	struct tcp_twtab tw;
	struct tcp_pcb *touched;
	struct tcp_pcb **touched_end;
	struct time challenge_until;	/* end of the second that is being counted */
	uint32_t challenge_left;
	uint32_t n_orphans;
	_Atomic uint32_t n_pcbs;
	_Atomic uint32_t n_half_open;
	_Atomic uint32_t n_timewait;
};

/* Time units for compact stamps; shifts, since divisions have no place on the fast path. */
static inline uint32_t
tcp_tick32(struct time t)
{
	return (uint32_t)(t.us >> 10);	/* 1.024 ms, also the timestamp clock (RFC 7323 5.4: 1 ms to 1 s) */
}

static inline uint32_t
tcp_seconds(struct time t)
{
	return (uint32_t)(t.us >> 20);	/* 1.05 s */
}

static inline uint32_t
tcp_ticks_to_ms(uint32_t ticks)
{
	return ticks + (ticks >> 6) + (ticks >> 7);	/* times 1.0234 */
}

static inline struct tcp_stack *
tcp_knobs(const struct netisr *n)
{
	return n->stack->tcp;
}

static inline uint64_t
tcp_knob_ms_as_us(const _Atomic int64_t *knob)
{
	return (uint64_t)knob_get(knob) * US_PER_MS;
}

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
/* A connection whose handshake has ended (RFC 9293 3.10.7.3, 3.10.7.4). `s` acknowledged our SYN. */
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
/* The window field to send now; moves rcv_adv and tells the reader. is_dup: repeat the last promise. */
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

/* ---- tcp_open.c, tcp_listen.c, tcp_syn.c, tcp_close.c ---- */

/* In the table, state CLOSED, with its first grant. NULL: limit or memory (counted). */
struct tcp_pcb *tcp_pcb_new(struct netisr *n, struct sockhalf *sh, const struct tuple *t,
    const struct ip_route *route, uint32_t min_grant_bytes);
void tcp_op_connect(struct netisr *n, struct sockhalf *sh);
int tcp_app_connect(struct sockhalf *sh, const struct endpoint *peer, struct netisr *home);
int tcp_app_bind(struct sockhalf *sh, const struct endpoint *local);
int tcp_app_listen(struct sockhalf *sh, unsigned backlog);
void tcp_app_close(struct sockhalf *sh);
/* Sets the sender's limits from what the peer's SYN offered (0: no MSS option). */
void tcp_negotiate(struct tcp_pcb *p, const struct tcp_opts *o, uint32_t offered_flags);
/* Is this 4-tuple taken on n? (callback of port_choose) */
bool tcp_tuple_in_use(struct netisr *n, const struct tuple *t);

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
/* above: numbers of the tuple's incarnation before end here (NULL: none known). NULL: limit or memory. */
struct tcp_syn *tcp_syn_new(struct netisr *n, struct tcp_listener *l, const struct tcp_seg *s,
    const struct seq *above);
void tcp_syn_free(struct netisr *n, struct tcp_syn *e);
void tcp_syn_send(struct netisr *n, struct tcp_syn *e);
/* l is going away: its half-open entries go to a member of the same group, or are dropped. */
void tcp_syn_rehome(struct netisr *n, struct tcp_listener *l);
/* old: the TIME_WAIT record of the same tuple, NULL: none. */
void tcp_listen_syn(struct netisr *n, struct sockhalf *sh, const struct tcp_seg *s,
    const struct tcp_tw *old);

void tcp_op_shutdown(struct netisr *n, struct tcp_pcb *p);
void tcp_op_close(struct netisr *n, struct sockhalf *sh);
/* Ends a connection now; so_error 0: without error. The upcall and the freeing come in the roll-up. */
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
/* RFC 7323 5.4, RFC 6191: one offset an address pair, so that it is monotonic over ports and netisrs. */
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
struct tcp_pcb *tcp_table_lookup(const struct tcp_table *t, const struct tuple *tuple, uint32_t hash);
void tcp_table_insert(struct tcp_table *t, struct tcp_pcb *p);
void tcp_table_remove(struct tcp_table *t, struct tcp_pcb *p);
void tcp_table_visit(const struct tcp_table *t, void (*fn)(void *arg, struct tcp_pcb *p), void *arg);

/* ---- tcp_in.c, tcp_info.c, tcp_sockopt.c ---- */

void tcp_in(struct netisr *n, struct pkt *p, const struct ip_meta *meta);
void tcp_icmp_error(struct netisr *n, const struct ip_meta *meta, const uint8_t *quoted,
    uint32_t quoted_len, const struct ip_error *e);
void tcp_info_fill(const struct netisr *n, const struct tcp_pcb *p, struct tcp_conn_info *ret);
int tcp_app_setopt(struct sockhalf *sh, int name, const void *val, size_t len);
int tcp_app_getopt(struct sockhalf *sh, int name, void *val, size_t *len);

#endif
