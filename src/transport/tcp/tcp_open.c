/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Active open, and pcbs: made here, their last step is in tcp_close.c.
 *
 * connect() runs in two halves (laws 1 and 2 of DESIGN.md). On the application's thread: what is
 * decidable at once (state, family, route), and the owner: the caller's home netisr when the local
 * port is still to be drawn, since a port is then drawn whose answers hash there; else the netisr
 * that the tuple's hash names. On the owner: source address, port, uniqueness of the tuple, SYN;
 * errors found there are reported like a refused connection, through so_error.
 *
 * The owner may find that the connect belongs to another netisr: its share of ports is spent, or
 * portalgo is `hash`, or the socket kept its owner from an earlier attempt. Then it makes that one
 * the owner and posts all ops there, once a netisr at most (hops, tried). No pcb exists yet, so
 * nothing but the op word moves; what others post to the old owner meanwhile it sends after
 * (ulp.c), and since ops are bits of one word their order cannot be lost.
 *
 * A port whose tuple sits in TIME_WAIT may be used after 1 s if both ends agreed on timestamps,
 * which tell the incarnations apart (RFC 6191 turned round); the new ISS is then above the old
 * connection's numbers.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "inet/ip.h"
#include "runtime/publish.h"
#include "transport/demux.h"
#include "transport/port.h"
#include "transport/tcp/tcp_priv.h"

#define ISS_GAP		65536u	/* above the numbers of the incarnation before */
#define CONNECT_HOPS_MAX 64u	/* netisrs that send a connect with a bound port on */

/* ---- pcbs ---- */

struct tcp_pcb *
tcp_pcb_new(struct netisr *n, struct sockhalf *sh, const struct tuple *t,
    const struct ip_route *route, uint32_t min_grant_bytes)
{
	struct tcp_netisr *tn = n->tcp;
	struct tcp_pcb **buckets = tn->table.bucket;
	struct tcp_pcb *p = NULL;

	if (slab_in_use(&tn->pcbs) < (uint64_t)knob_get(&tcp_knobs(n)->max_pcbs))
		p = tcp_obj_alloc(n, &tn->pcbs);
	if (p == NULL) {
		NETISR_COUNT(n, CTR_drop_tcp_pcb_limit);
		return NULL;
	}
	memset(p, 0, sizeof(*p));
	p->sh = sh;
	p->tuple = *t;
	p->hash = tcp_hash(n, t);
	p->route = *route;
	p->mss = tcp_route_mss(route, sh);
	p->rto_us = TCP_RTO_INITIAL_US;
	p->ts_offset = tcp_ts_offset(&n->stack->secret[TCP_SECRET_ISN], t);
	p->last_rcv_tick = tcp_tick32(n->now);
	p->flags = (uint32_t)port_share_of(sh) * TCPF_SHARE_ADDR;
	port_raise(n, t, port_share_of(sh));
	tcp_timers_init(p);
	tcp_rcv_grant_first(n, p, min_grant_bytes);
	tcp_table_insert(&tn->table, p);
	if (unlikely(tn->table.bucket != buckets))
		netisr_count_any(n, CTR_conn_allocs);
	atomic_store_explicit(&sh->pcb, p, memory_order_release);
	atomic_fetch_add_explicit(&tn->n_pcbs, 1, memory_order_relaxed);
	NETISR_COUNT(n, CTR_tcp_pcbs);
	return p;
}

enum port_use
tcp_tuple_use(struct netisr *n, const struct tuple *t)
{
	const struct tcp_tw *w;

	if (tcp_table_lookup(&n->tcp->table, t, tcp_hash(n, t)) != NULL ||
	    tcp_syn_lookup(n->tcp, t) != NULL)
		return PORT_TAKEN;
	w = tcp_tw_lookup(n->tcp, t);
	if (w == NULL)
		return PORT_FREE;
	if (!knob_get(&tcp_knobs(n)->tw_reuse) || !tcp_tw_has_ts(w))
		return PORT_TAKEN;
	return tcp_tw_reusable(w, tcp_tick32(n->now)) ? PORT_REUSABLE : PORT_RESTS;
}

static bool
is_usable(struct netisr *n, const struct tuple *t)
{
	enum port_use use = tcp_tuple_use(n, t);

	return use == PORT_FREE || use == PORT_REUSABLE;
}

/* ---- the owner's half ---- */

/* The port was bound by the application. Raises its count like a claim. */
static int
check_bound(struct netisr *n, const struct sockhalf *sh, const struct tuple *t,
    struct netisr **ret_owner)
{
	*ret_owner = stack_owner(n->stack, t);
	if (*ret_owner == n && !is_usable(n, t))
		return -EADDRNOTAVAIL;
	/* the route, and with it the source address, changes faster than netisrs can follow */
	if (*ret_owner != n && sh->connect_hops >= CONNECT_HOPS_MAX)
		return -EADDRNOTAVAIL;
	if (*ret_owner == n)
		port_raise(n, t, port_share_of(sh));
	return 0;
}

/* Another netisr has drawn the port and sent the connect here. */
static bool
takes_drawn(struct netisr *n, const struct sockhalf *sh, struct tuple *t)
{
	t->lport = sh->connect_port;
	return t->lport != 0 && stack_owner(n->stack, t) == n && is_usable(n, t) &&
	    port_claim(n, t, port_share_of(sh));
}

/*
 * 0: *ret_owner is n and the port is claimed, or it is another netisr, to which the connect is to
 * be sent.
 */
static int
choose_tuple(struct netisr *n, struct sockhalf *sh, const struct ip_route *route, struct tuple *t,
    struct netisr **ret_owner)
{
	bool is_bound = (sockhalf_state(sh) & SH_BOUND) != 0;
	struct port_ask ask = { .share = port_share_of(sh), .hops = sh->connect_hops,
		.tried = sh->connect_tried, .use = tcp_tuple_use,
		.range = atomic_load_explicit(&sh->opts.port_range, memory_order_relaxed) };
	int rc;

	t->local = is_bound && !ipaddr_is_any(&sh->local.addr) ? sh->local.addr : route->src;
	t->foreign = sh->peer.addr;
	t->fport = sh->peer.port;
	t->lport = is_bound ? sh->local.port : 0;
	*ret_owner = n;
	if (t->lport != 0)
		return check_bound(n, sh, t, ret_owner);
	if (takes_drawn(n, sh, t))
		return 0;
	t->lport = 0;
	ask.t = *t;
	rc = port_choose(n, &ask, ret_owner);
	t->lport = ask.t.lport;
	if (rc == 0 && *ret_owner != n) {
		sh->connect_tried = ask.tried;
		sh->connect_port = ask.t.lport;
	}
	return rc;
}

/* The ISS; a TIME_WAIT record of the same tuple ends here. */
static struct seq
choose_iss(struct netisr *n, const struct tuple *t)
{
	struct seq iss = tcp_isn(&n->stack->secret[TCP_SECRET_ISN], t, n->now);
	struct tcp_tw *w = tcp_tw_lookup(n->tcp, t);

	if (w == NULL)
		return iss;
	if (seq_leq(iss, seq_add(w->snd_nxt, ISS_GAP)))
		iss = seq_add(w->snd_nxt, ISS_GAP);
	NETISR_COUNT(n, CTR_tcp_timewait_reused);
	tcp_tw_take_over(n, w);
	return iss;
}

static uint32_t
offered_options(const struct netisr *n)
{
	const struct tcp_stack *k = tcp_knobs(n);

	return (knob_get(&k->timestamps) ? TCPF_TS : 0u) | (knob_get(&k->sack) ? TCPF_SACK : 0u) |
	    (knob_get(&k->window_scaling) ? TCPF_WSCALE : 0u);
}

/* The pcb of a connect that stays here. */
static int
open_pcb(struct netisr *n, struct sockhalf *sh, const struct tuple *tuple,
    const struct ip_route *route)
{
	struct tuple t = *tuple;
	struct tcp_pcb *p = tcp_pcb_new(n, sh, &t, route, 0);

	if (p == NULL) {
		port_freed(n, &t);
		return -ENOBUFS;
	}
	sh->local = (struct endpoint){ t.local, t.lport };
	sockhalf_set(sh, SH_NAMED, 0);
	waitword_post(&sh->news);	/* getsockname waits for the name */
	p->iss = choose_iss(n, &t);
	p->snd_una = p->iss;
	p->snd_nxt = seq_add(p->iss, 1);
	p->snd_max = p->snd_nxt;
	p->flags |= TCPF_ACTIVE | TCPF_TIMING | offered_options(n);
	p->rtt_seq = p->iss;
	p->rtt_start = n->now;
	p->rcv_wscale = p->flags & TCPF_WSCALE ? tcp_rcv_wscale(n) : 0;
	tcp_enter(n, p, TCP_SYN_SENT);
	NETISR_COUNT(n, CTR_tcp_connects);
	tcp_owe(n, p, TODO_SYN);
	return 0;
}

static int
start_connect(struct netisr *n, struct sockhalf *sh, struct netisr **ret_owner)
{
	static const struct ipaddr any;
	bool is_bound = (sockhalf_state(sh) & SH_BOUND) != 0;
	uint8_t share = port_share_of(sh);
	struct ip_route route;
	struct tuple t;
	int rc;

	*ret_owner = n;
	rc = ip_route_lookup(n->stack, &sh->peer.addr, is_bound ? &sh->local.addr : &any, &route);
	if (rc < 0)
		return rc;
	rc = choose_tuple(n, sh, &route, &t, ret_owner);
	if (rc < 0 || *ret_owner != n)
		return rc;
	rc = open_pcb(n, sh, &t, &route);
	port_lower(n, &t, share);	/* the claim: the pcb counts for itself */
	return rc;
}

/* sh may be in use elsewhere, or gone, when this returns. */
static void
send_on(struct netisr *n, struct sockhalf *sh, struct netisr *owner, uint32_t ops)
{
	sh->connect_hops++;
	NETISR_COUNT(n, CTR_tcp_connect_forwards);
	atomic_store_explicit(&sh->owner, owner, memory_order_release);
	sockhalf_post(sh, ops);
}

bool
tcp_op_connect(struct netisr *n, struct sockhalf *sh, uint32_t ops)
{
	struct netisr *owner;
	int rc;

	if (atomic_load_explicit(&sh->pcb, memory_order_relaxed) != NULL)
		return true;
	rc = start_connect(n, sh, &owner);
	if (rc == 0 && owner != n) {
		send_on(n, sh, owner, ops);
		return false;
	}
	if (rc == 0)
		return true;
	sockhalf_set_error(sh, -rc);
	sockhalf_set(sh, SH_DEAD | SH_WAS_RESET, SH_CONNECTING);
	n->stack->sockhalf_ops->event(sh, SOCK_EV_ERR | SOCK_EV_HUP | SOCK_EV_IN | SOCK_EV_OUT);
	return true;
}

/* ---- the application's half ---- */

static int
check_state(const struct sockhalf *sh)
{
	uint32_t st = sockhalf_state(sh);

	if (st & SH_LISTENING)
		return -EISCONN;
	if (st & SH_DEAD) {
		/* Linux lets a failed connect be tried again; what was up once is over. */
		if ((st & SH_CONNECTED) ||
		    atomic_load_explicit(&sh->pcb, memory_order_acquire) != NULL)
			return -EISCONN;
		return 0;
	}
	if (st & SH_CONNECTED)
		return -EISCONN;
	return st & SH_CONNECTING ? -EALREADY : 0;
}

/* Route and owner. Holder of a netisr of the stack, or control mutex. */
static int
choose_owner(struct sockhalf *sh, const struct endpoint *peer, struct netisr *home,
    struct netisr **ret_owner)
{
	static const struct ipaddr any;
	struct darter_stack *s = sh->stack;
	bool is_bound = (sockhalf_state(sh) & SH_BOUND) != 0;
	struct ip_route route;
	struct tuple t = { .foreign = peer->addr, .fport = peer->port };
	int rc;

	rc = ip_route_lookup(s, &peer->addr, is_bound ? &sh->local.addr : &any, &route);
	if (rc < 0)
		return rc;
	if (route.is_broadcast)
		return -ENETUNREACH;
	*ret_owner = home != NULL ? home : s->netisr[0];
	if (!is_bound || sh->local.port == 0 || knob_get(&s->op_knobs.initport) == INITPORT_ZERO)
		return 0;
	t.local = ipaddr_is_any(&sh->local.addr) ? route.src : sh->local.addr;
	t.lport = sh->local.port;
	*ret_owner = stack_owner(s, &t);
	return 0;
}

int
tcp_app_connect(struct sockhalf *sh, const struct endpoint *peer, struct netisr *home)
{
	struct endpoint to = *peer;
	struct netisr *owner;
	int rc = check_state(sh);

	if (rc < 0)
		return rc;
	/* bound to an address alone: the port of an earlier attempt was drawn, and is gone */
	if ((sockhalf_state(sh) & SH_BOUND) && sh->bind == NULL)
		sh->local.port = 0;
	if (to.port == 0)
		return -EADDRNOTAVAIL;
	/* as everywhere: the unspecified address means this host */
	if (ipaddr_is_any(&to.addr))
		to.addr = ipaddr_v4_cpu(INADDR_LOOPBACK);
	if (netisr_current() != NULL && netisr_current()->stack == sh->stack) {
		rc = choose_owner(sh, &to, home, &owner);
	} else {
		control_lock(sh->stack);
		rc = choose_owner(sh, &to, home, &owner);
		control_unlock(sh->stack);
	}
	if (rc < 0)
		return rc;
	sh->peer = to;
	sh->connect_tried = 0;
	sh->connect_port = 0;
	sh->connect_hops = 0;
	/* a second try begins at the owner of the first, which sends it on if need be */
	if (atomic_load_explicit(&sh->owner, memory_order_relaxed) == NULL)
		atomic_store_explicit(&sh->owner, owner, memory_order_release);
	sockhalf_set(sh, SH_CONNECTING, SH_DEAD | SH_WAS_RESET);
	sockhalf_post_app(sh, SOCK_OP_CONNECT);
	return 0;
}

int
tcp_app_bind(struct sockhalf *sh, const struct endpoint *local)
{
	struct darter_stack *s = sh->stack;
	struct endpoint got = *local;
	bool has_port = (sockhalf_state(sh) & SH_BOUND) != 0 && sh->local.port != 0;
	int rc = 0;

	control_lock(s);
	if (has_port || (sockhalf_state(sh) & (SH_NAMED | SH_CONNECTING | SH_DEAD)))
		rc = -EINVAL;
	else if (!ipaddr_is_any(&local->addr) && !ip_is_own(s, &local->addr))
		rc = -EADDRNOTAVAIL;
	else if (local->port != 0 ||
	    !atomic_load_explicit(&sh->opts.bind_no_port, memory_order_relaxed))
		rc = demux_bind(s, sh, IPPROTO_TCP, local, &got, &sh->bind);
	if (rc == 0) {
		sh->local = got;
		sockhalf_set(sh, SH_BOUND, 0);
	}
	control_unlock(s);
	return rc;
}
