/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP's face to the rest of the stack: everything else goes through tcp_ulp (transport/ulp.h) and
 * ip_register().
 */
#ifndef TRANSPORT_TCP_TCP_H
#define TRANSPORT_TCP_TCP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ipaddr.h"
#include "base/seq.h"
#include "base/time.h"

struct darter_stack;
struct netisr;
struct sockhalf;

/* RFC 9293 3.3.2; TIME_WAIT lives in records of its own. */
enum tcp_state {
	TCP_CLOSED,
	TCP_LISTEN,
	TCP_SYN_SENT,
	TCP_SYN_RCVD,
	TCP_ESTABLISHED,
	TCP_FIN_WAIT_1,
	TCP_FIN_WAIT_2,
	TCP_CLOSE_WAIT,
	TCP_CLOSING,
	TCP_LAST_ACK,
	TCP_TIME_WAIT,
	TCP_STATES
};

const char *tcp_state_name(enum tcp_state st);

/* A connection as tools and tests see it. */
struct tcp_conn_info {
	struct tuple tuple;
	enum tcp_state state;
	unsigned netisr;
	struct seq iss, irs;
	struct seq snd_una, snd_nxt, rcv_nxt;
	uint32_t snd_wnd_bytes, rcv_wnd_bytes;
	uint32_t cwnd_bytes, ssthresh_bytes;
	uint32_t srtt_us, rttvar_us, rto_us;
	uint32_t tx_queued_bytes, rx_queued_bytes;
	uint16_t mss;
	uint8_t snd_wscale, rcv_wscale;
	bool has_ts, has_sack;
	uint32_t retransmits;
};

/* Holder of n: visits every connection (pcbs, half-open entries, TIME_WAIT records) of n. */
void tcp_visit(struct netisr *n, void (*fn)(void *arg, const struct tcp_conn_info *i), void *arg);

/* Holder of n: the connection of a socket; false when it has no pcb. */
bool tcp_info_of(struct netisr *n, struct sockhalf *sh, struct tcp_conn_info *ret_info);

/* Connections of all kinds on n, listeners not among them (for leak checks). Any thread. */
void tcp_counts(struct netisr *n, uint32_t *ret_pcbs, uint32_t *ret_half_open,
    uint32_t *ret_timewait);

/*
 * Holder of n, in a round or before one: resets every connection that is not closed on both sides,
 * so that peers of a stack that goes away do not wait. What the peer has in full (FIN_WAIT_2)
 * stays.
 */
void tcp_abort_all(struct netisr *n);

#endif
