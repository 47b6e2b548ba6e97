/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of UDP share.
 *
 * A datagram socket's names change under the control mutex (bind, connect, disconnect, close);
 * datagrams come in on any netisr, found through demux; they go out from one, the owner, which is
 * set at first use and stays. struct udp_pcb has a part for each.
 */
#ifndef TRANSPORT_UDP_PRIV_H
#define TRANSPORT_UDP_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ipaddr.h"
#include "base/list.h"
#include "inet/ip.h"
#include "runtime/netisr.h"
#include "runtime/publish.h"
#include "runtime/sockhalf.h"
#include "runtime/wheel.h"

#define UDP_PCBS_MAX		(1u << 20)
#define UDP_SEND_BURST		64	/* datagrams of one socket before others get their turn */
#define UDP_DYING_CHECK_US	1000
#define UDP_IP_OVERHEAD_BYTES	28	/* IPv4 and UDP headers */

struct bind_entry;

/* The way to the last destination, looked up again when the routes or the destination change. */
struct udp_way {
	struct ipaddr dst;
	struct ipaddr src;	/* asked for: any, or an address of ours */
	struct ip_route route;
	bool is_valid;
};

enum udp_where {
	UDP_IDLE,
	UDP_BUSY,		/* on the owner's list: datagrams wait for the next round */
	UDP_DYING,		/* on the owner's list: closed, waiting for the grace period */
};

struct udp_pcb {
	struct sockhalf *sh;
	struct dgramq *dgramq;		/* sh's too; kept here for a stack that ends before sh */

	/* control mutex */
	struct bind_entry *entry;	/* NULL: not bound */
	struct ipaddr bound_addr;	/* what bind was told; any: connect chooses */
	struct ipaddr app_src;		/* as `src` below, for checks in the sending thread */
	bool has_drawn_port;		/* the port was not asked for: disconnect gives it back */

	/* thread with TX_BUSY */
	struct udp_way app_way;

	/* owner; until there is one, whoever holds the control mutex */
	struct udp_way out_way;
	struct ipaddr src;		/* any: the route's */
	uint16_t lport;
	enum udp_where where;
	bool is_counted;		/* in the gauge */
	TAILQ_ENTRY(udp_pcb) at;

	/* close: the entry's readers are gone when is_unseen is set (any thread) */
	struct retired retired;
	_Atomic bool is_unseen;

	LIST_ENTRY(udp_pcb) all;	/* udp_stack.lock */
};

TAILQ_HEAD(udp_pcb_queue, udp_pcb);

struct udp_netisr {
	struct udp_pcb_queue busy;
	struct udp_pcb_queue dying;
	struct timer dying_timer;
	uint8_t linear[65536];		/* a datagram that came in several segments */
};

struct udp_stack {
	pthread_mutex_t lock;
	LIST_HEAD(, udp_pcb) pcbs;
	uint32_t n_pcbs;
};

static inline struct udp_pcb *
udp_pcb_of(struct sockhalf *sh)
{
	return atomic_load_explicit(&sh->pcb, memory_order_acquire);
}

/* The netisr whose cache the calling thread warms: the one it holds, else the nearest by CPU. */
struct netisr *udp_near_netisr(struct darter_stack *s);

/* Sets sh's owner if it has none yet; any thread. */
void udp_set_home(struct sockhalf *sh, struct netisr *home);

/* Binds to any address and a drawn port unless bound. Control mutex held. 0, -EAGAIN, -ENOMEM. */
int udp_autobind(struct sockhalf *sh);

/* What is sent to: 0.0.0.0 means this host (as on Linux). */
static inline struct ipaddr
udp_real_dst(const struct ipaddr *dst)
{
	return ipaddr_is_any(dst) ? ipaddr_v4_cpu(0x7f000001) : *dst;
}

static inline bool
udp_is_multicast(const struct ipaddr *a)
{
	return ipaddr_is_v4(a) && (a->b[12] & 0xf0) == 0xe0;
}

/*
 * Looks the way up if it is not the one in w. Holder of a netisr of s, or control mutex. 0 or
 * ip_route_lookup's errors.
 */
int udp_way_find(struct darter_stack *s, struct udp_way *w, const struct ipaddr *dst,
    const struct ipaddr *src);

/* Owner: sends up to `budget` queued datagrams; true when some are left. */
bool udp_send_queued(struct netisr *n, struct udp_pcb *p, unsigned budget);

/* Holder of any netisr (inet/ip.h). */
void udp_input(struct netisr *n, struct pkt *p, const struct ip_meta *meta);
void udp_error(struct netisr *n, const struct ip_meta *meta, const uint8_t *quoted,
    uint32_t quoted_len, const struct ip_error *e);

#endif
