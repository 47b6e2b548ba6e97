/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a stack tells about itself: counters (among them one for each reason why a packet was
 * dropped), its connections, its netisrs. Reading never stops the stack: counters are read one by
 * one while they grow, connections are visited netisr by netisr. s NULL means the calling thread's
 * stack everywhere. Results: 0 or negative errno (-ENETDOWN: no stack).
 */
#ifndef DARTER_STATS_H
#define DARTER_STATS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <darter/darter.h>

#ifdef __cplusplus
extern "C" {
#endif

enum darter_counter_kind {
	DARTER_COUNTER_DROP,	/* a packet or message that was lost, for this reason */
	DARTER_COUNTER_EVENT,	/* something that happened; only grows */
	DARTER_COUNTER_GAUGE	/* a level; goes up and down */
};

struct darter_counter {
	const char *name;	/* "drop_tcp_csum" */
	const char *text;	/* one sentence */
	enum darter_counter_kind kind;
	uint64_t value;		/* over all netisrs */
};

/* One counter by name, summed over all netisrs. 0, or -ENOENT. */
DARTER_API int darter_counter_get(struct darter_stack *s, const char *name, uint64_t *ret_value);

/* Calls fn for every counter, drops among them, until it returns non-zero; returns that, or 0. */
DARTER_API int darter_counter_visit(struct darter_stack *s,
    int (*fn)(void *arg, const struct darter_counter *c), void *arg);

/* One TCP connection (half-open and TIME_WAIT ones too), as its owner saw it at one moment. */
struct darter_conn {
	struct sockaddr_in local;
	struct sockaddr_in foreign;
	const char *state;	/* "ESTABLISHED", … (RFC 9293 3.3.2) */
	unsigned netisr;	/* its owner */
	uint32_t tx_queued_bytes;	/* written by the application, not yet acknowledged */
	uint32_t rx_queued_bytes;	/* received, not yet read */
	uint32_t snd_wnd_bytes;	/* the peer's window */
	uint32_t rcv_wnd_bytes;
	uint32_t cwnd_bytes;
	uint32_t ssthresh_bytes;
	uint32_t srtt_us;
	uint32_t rttvar_us;
	uint32_t rto_us;
	uint32_t retransmits;
	uint16_t mss_bytes;
	bool has_timestamps;
	bool has_sack;
};

/*
 * Calls fn for a copy of every connection until it returns non-zero; returns that, 0, or a negative
 * errno (-ENOMEM). fn runs in the calling thread without any lock held and may call the library.
 */
DARTER_API int darter_conn_visit(struct darter_stack *s,
    int (*fn)(void *arg, const struct darter_conn *c), void *arg);

struct darter_netisr_stats {
	uint64_t rounds;
	uint64_t longest_hold_us;	/* longest time that a borrower kept it */
	uint32_t tcp_pcbs;
	uint32_t tcp_half_open;
	uint32_t tcp_timewait;
	bool is_attached;		/* an application thread is its keeper */

	/* since the start: how the work is spread */
	int cpu;			/* pinned to, else where it ran last; -1: never ran */
	uint64_t msgs;			/* messages handled */
	uint64_t msgs_socket;		/* of these, operations of sockets */
	uint64_t forwards;		/* connects begun here and sent on to their owner */
	uint64_t doorbells;		/* wake-ups of its sleeping keeper */
	uint64_t sleeps;		/* naps of its keeper */
	uint64_t call_sleeps;		/* calls that slept while they waited for it */
	uint64_t conn_allocs;		/* memory taken from the system for connections */
	uint64_t segs_rcvd;		/* TCP segments */
	uint64_t segs_sent;
	uint64_t connects;		/* TCP connections begun here */
	uint64_t accepts;		/* … and handshakes of peers that ended here */
	uint64_t accept_steals;		/* accepted here though another netisr's */
};

/* State of one netisr. 0, or -EINVAL when there is no such netisr. */
DARTER_API int darter_netisr_stats(struct darter_stack *s, unsigned netisr,
    struct darter_netisr_stats *ret_stats);

struct darter_link_rate {
	unsigned ms;		/* in: how long, 1 to 2000 milliseconds */
	bool sends;		/* in: this end sends; else it counts what comes */
	uint64_t pkts;		/* out: frames that the device took, or that came */
	uint64_t elapsed_us;	/* out: from the first of them to the last */
};

/*
 * What a port carries by itself, to stand beside what the stack reaches over it: broadcast frames
 * of 60 bytes (EtherType 0x88b5) in a loop over the driver's calls on its first queue, without any
 * protocol. Run one end that sends and one that counts at the same time. Netisr 0 does nothing else
 * meanwhile: a measuring aid, not for a stack that serves. Any thread that may block. 0, -EINVAL
 * (ms), -ENODEV (no such port), -EOPNOTSUPP (the loopback).
 */
DARTER_API int darter_link_rate(struct darter_stack *s, const char *port,
    struct darter_link_rate *rate);

struct darter_msg_rate {
	unsigned count;		/* in: messages, 1 to 1000000 */
	unsigned batch;		/* in: sent before an answer is awaited, 1 to 64 */
	unsigned pause_us;	/* in: before each batch, 0 to 100000; not part of elapsed_ns */
	uint64_t elapsed_ns;	/* out: until the last answer */
};

/*
 * What a message to a netisr costs, by sending some that do nothing. They are sent also when the
 * netisr is free and the caller could run it himself: a pause lets its thread fall asleep before
 * each batch, so that waking it is measured. Any thread that may block and is not attached. 0,
 * -EINVAL (numbers, no such netisr), -EDEADLK (attached), -EOPNOTSUPP (stack.threads=manual:
 * nobody might answer).
 */
DARTER_API int darter_msg_rate(struct darter_stack *s, unsigned netisr,
    struct darter_msg_rate *rate);

/* Descriptors open in this process, over all stacks. */
DARTER_API unsigned darter_fd_count(void);

#ifdef __cplusplus
}
#endif

#endif
