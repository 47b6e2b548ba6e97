/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the socket layer asks of a transport. "App" calls come from any thread, without a hold;
 * "owner" calls hold the socket's netisr.
 */
#ifndef TRANSPORT_ULP_H
#define TRANSPORT_ULP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ipaddr.h"

struct darter_stack;
struct layer;
struct netisr;
struct sockhalf;

struct ulp_ops {
	uint8_t proto;
	/*
	 * App: after the socket layer has zeroed and set up sh (rings initialised from opts). 0 or
	 * negative errno.
	 */
	int (*attach)(struct sockhalf *sh);
	/*
	 * App: bind under the control mutex; port 0 draws one. Sets sh->local and SH_BOUND.
	 * -EADDRINUSE, -EADDRNOTAVAIL, -EACCES (no privileged-port rule: never), -EINVAL (already
	 * bound).
	 */
	int (*bind)(struct sockhalf *sh, const struct endpoint *local);
	/*
	 * App: publishes sh as listener (binds first if need be), or changes the backlog. Visible
	 * on all netisrs at return.
	 */
	int (*listen)(struct sockhalf *sh, unsigned backlog);
	/*
	 * App: shutdown(SHUT_RD) of a listener. Sets SH_SHUT_RD; no netisr finds sh for a new
	 * connection from here on, until the next listen. NULL: does not listen.
	 */
	void (*unlisten)(struct sockhalf *sh);
	/*
	 * App: checks what is decidable at once, stores sh->peer, chooses the owner (`home` when
	 * the socket is not bound, else the owner of the tuple), sets SH_CONNECTING and posts
	 * SOCK_OP_CONNECT. 0: under way (TCP) or done (UDP). -ENETUNREACH, -EAFNOSUPPORT,
	 * -EADDRNOTAVAIL, -EISCONN, -EALREADY, …
	 */
	int (*connect)(struct sockhalf *sh, const struct endpoint *peer, struct netisr *home);
	/* UDP: dissolves the association (AF_UNSPEC). NULL: -EAFNOSUPPORT. */
	int (*disconnect)(struct sockhalf *sh);
	/* Owner: handles op bits in their order. */
	void (*ops)(struct netisr *n, struct sockhalf *sh, uint32_t ops);
	/*
	 * App: last user is out. Unbinds and unpublishes, then posts SOCK_OP_CLOSE, or frees at
	 * once what never had an owner. The transport calls sockhalf_ops.free when it is done.
	 * `lingers` false: reset if bytes are unread or SO_LINGER is 0.
	 */
	void (*close)(struct sockhalf *sh);
	/* App: IPPROTO_TCP-level options and TCP_INFO; -ENOPROTOOPT when unknown. */
	int (*setopt)(struct sockhalf *sh, int name, const void *val, size_t len);
	int (*getopt)(struct sockhalf *sh, int name, void *val, size_t *len);
};

extern const struct ulp_ops tcp_ulp;
extern const struct ulp_ops udp_ulp;
extern const struct layer tcp_layer;
extern const struct layer udp_layer;
extern const struct layer demux_layer;	/* binds and listeners, below both */
/* dispatch of MSG_SOCKET to ulp_ops.ops; every stack with sockets has it */
extern const struct layer ulp_layer;

#endif
