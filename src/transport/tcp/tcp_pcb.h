/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP's objects: the pcb, a segment that came in, half-open entries, TIME-WAIT records, and what a
 * stack and a netisr hold of them. How they are used is in tcp_priv.h.
 */
#ifndef TRANSPORT_TCP_TCP_PCB_H
#define TRANSPORT_TCP_TCP_PCB_H

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
#define TCP_MSS_MIN		88u	/* a peer must not buy a flood of headers */
#define TCP_RTO_INITIAL_US	1000000u	/* RFC 6298 2.1 */
#define TCP_RTO_AFTER_SYN_LOSS_US 3000000u	/* RFC 6298 5.7 */
#define TCP_CORK_US		200000u	/* a corked partial segment waits no longer (as on Linux) */
#define TCP_DUP_ACKS		3u
#define TCP_BACKOFF_MAX		16u	/* doublings; rto_max_ms is reached long before */
#define TCP_PAWS_IDLE_S		(24u * 24 * 3600 * 1000 / 1049)	/* RFC 7323 5.5, in tcp_seconds() */
#define TCP_REASS_MAX		64u	/* intervals out of order a connection */
#define TCP_SYN_BUCKETS		4096u
#define TCP_TW_BUCKETS		65536u
#define TCP_TW_BLOCK		1024u
#define TCP_HARD_MAX_PCBS	(1u << 22)
#define TCP_HARD_MAX_SYNQ	(1u << 18)
#define TCP_HARD_MAX_TW		(1u << 20)
#define TCP_TW_REUSE_US		1000000u	/* RFC 6191: younger ones are not taken over */

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
	TCPF_FIN_RCVD = 1 << 8,		/* rcv_fin is valid; data may be missing before it */
	TCPF_EOF = 1 << 9,		/* rcv_nxt has passed the FIN */
	TCPF_RECOVERY = 1 << 10,	/* RFC 6582 fast recovery */
	TCPF_PARTIAL = 1 << 11,		/* … and the first partial ACK has come */
	TCPF_PERSIST = 1 << 12,		/* REXMIT probes, or overrides SWS avoidance and CORK */
	TCPF_TIMING = 1 << 13,		/* rtt_seq, rtt_start are valid */
	TCPF_SYN_RESENT = 1 << 14,	/* our SYN was repeated (RFC 6298 5.7, RFC 5681 3.1) */
	TCPF_TOUCHED = 1 << 15,
	TCPF_GONE = 1 << 16,
	TCPF_RESET = 1 << 17,		/* … by an RST or an abort */
	TCPF_TIMEOUT_SENT = 1 << 18,	/* a timeout pulled snd_nxt back; until recover */
	TCPF_BROKEN_ROUTE = 1 << 19,	/* no route now; retransmissions go on */
	/* what its port is counted under: PORT_SHARE_ of the socket when the pcb was made */
	TCPF_SHARE_ADDR = 1 << 20,
	TCPF_SHARE_PORT = 1 << 21,
};

/* What the steps leave for tcp_out(). */
enum tcp_todo_bit {
	TODO_OUT = 1 << 0,		/* look whether data may go out */
	TODO_ACK_NOW = 1 << 1,
	TODO_ACK_DELAY = 1 << 2,	/* an ACK is owed within delack_ms */
	TODO_REXMIT = 1 << 3,		/* send the first unacknowledged segment again */
	TODO_SYN = 1 << 4,		/* send SYN or SYN-ACK */
	TODO_RST = 1 << 5,
	TODO_PROBE = 1 << 6,		/* below snd_una, draws an ACK: zero window, keepalive */
	TODO_FORCE = 1 << 7,		/* SWS avoidance, Nagle and CORK are overridden once */
	TODO_WINDOW = 1 << 8,		/* the reader has made room */
	TODO_ACK_SOON = 1 << 9,		/* an ACK is owed within connect_ack_us */
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
	uint32_t cwnd_acked_bytes;	/* acknowledged since cwnd last grew (avoidance) */
	uint32_t srtt8_us;		/* srtt times 8; 0: no sample yet */
	uint32_t rttvar4_us;		/* rttvar times 4 */
	uint32_t rto_us;		/* without back-off */
	struct time rtt_start;
	struct time last_snd;		/* of data, for RFC 5681 4.1 */
	uint32_t stuck_since_tick;	/* when snd_una began to be overdue, in ticks */
	uint32_t retransmits;
	uint16_t mss;			/* without options; both sides' limits and the path's */
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
	_Atomic int64_t connect_ack_us;
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
	_Atomic int64_t tso;
};

/* Hash table of pcbs. While it grows `old` is emptied bucket by bucket. */
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
	uint32_t older : 30;
	uint32_t share : 2;		/* what its port is counted under, PORT_SHARE_ */
	uint32_t newer;
	struct seq snd_nxt;
	struct seq rcv_nxt;
	uint32_t ts_recent;
	uint32_t since_ts;		/* tcp_tick32 of entry, upper 31 bits; 1: has timestamps */
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
	struct timer sweep;		/* tcp_sweep.c */
	uint32_t sweep_from;
	bool sweep_again;
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
	return (uint32_t)(t.us >> 10);	/* 1.024 ms; also the timestamp clock (RFC 7323 5.4) */
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

#endif
