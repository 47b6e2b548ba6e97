/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagram queues of a socket: records in byte rings. Receive: one ring per netisr (any core may
 * deliver without a lock), each with its share counted against SO_RCVBUF. Send: sockhalf.tx holds
 * records {destination, length, bytes}, written under TX_BUSY.
 */
#ifndef TRANSPORT_DGRAMQ_H
#define TRANSPORT_DGRAMQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ipaddr.h"
#include "runtime/ring.h"

struct darter_stack;
struct netisr;
struct sockhalf;

#define DGRAM_MAX_BYTES		65507	/* IPv4: 65535 - 20 - 8 */

/* In front of each datagram in a ring. */
struct dgram_rec {
	uint32_t len_bytes;	/* of the payload that follows */
	uint16_t flags;		/* DGRAM_* */
	uint16_t port;		/* receive: peer's port; send: destination's */
	struct ipaddr addr;	/* likewise */
	/* receive: address that it was sent to; send: any, or the source to use */
	struct ipaddr local;
};

struct dgramq {
	_Atomic uint32_t rx_bytes;	/* payload and records on all lanes, against SO_RCVBUF */
	_Atomic uint32_t rx_count;	/* datagrams on all lanes: readable when not 0 */
	_Atomic uint64_t drops;
	uint32_t n_lanes;
	uint32_t next_lane;		/* consumer */
	uint32_t cur_lane;		/* consumer: lane of the record being read */
	struct ring lane[];
};

struct dgramq *dgramq_new(struct darter_stack *s);
void dgramq_free(struct darter_stack *s, struct dgramq *q);

/*
 * Netisr n delivers one datagram; false when it is dropped, for lack of room (a queue at or below
 * SO_RCVBUF takes one more, as on Linux) or of memory: counted here, by reason and in `drops`.
 * Holder of n.
 */
bool dgramq_put(struct netisr *n, struct sockhalf *sh, const struct dgram_rec *rec,
    const void *payload);

/*
 * Reader with RX_BUSY: the next datagram's record, and up to len bytes of it into dst; the rest is
 * dropped unless peek. Returns payload bytes copied, or -EAGAIN. ret_rec->len_bytes is the true
 * length.
 */
int64_t dgramq_get(struct sockhalf *sh, void *dst, uint32_t len, bool peek,
    struct dgram_rec *ret_rec);

/*
 * Writer with TX_BUSY: queues one datagram for sending, all or nothing. 0, -EAGAIN (no room now),
 * -EMSGSIZE. The caller posts SOCK_OP_SEND afterwards.
 */
int dgramq_send(struct sockhalf *sh, const struct dgram_rec *rec, const void *payload);

/*
 * UDP (udp_out.c), before dgramq_send: everything about a send that can be known at once. Binds and
 * chooses the owner at first use. `to` NULL: the connected peer. Thread with TX_BUSY, without the
 * control mutex. 0; -EMSGSIZE, -EDESTADDRREQ (neither to nor connected), -EINVAL (port 0),
 * -EAFNOSUPPORT, -ENETUNREACH, -EADDRNOTAVAIL, -EACCES (broadcast without SO_BROADCAST), -EAGAIN
 * (no port is left), -ENOMEM, or the socket's pending error, which is then no longer pending.
 */
int udp_check_send(struct sockhalf *sh, const struct endpoint *to, uint32_t len);

#endif
