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
#include "transport/tcp/tcp_priv.h"

#define ISS_GAP		65536u	/* above the numbers of the incarnation before */

/* ---- pcbs ---- */

struct tcp_pcb *
tcp_pcb_new(struct netisr *n, struct sockhalf *sh, const struct tuple *t,
    const struct ip_route *route, uint32_t min_grant_bytes)
{
	struct tcp_netisr *tn = n->tcp;
	struct tcp_pcb *p = NULL;

	if (slab_in_use(&tn->pcbs) < (uint64_t)knob_get(&tcp_knobs(n)->max_pcbs))
		p = slab_alloc(&tn->pcbs);
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
	tcp_timers_init(p);
	tcp_rcv_grant_first(n, p, min_grant_bytes);
	tcp_table_insert(&tn->table, p);
	atomic_store_explicit(&sh->pcb, p, memory_order_release);
	atomic_fetch_add_explicit(&tn->n_pcbs, 1, memory_order_relaxed);
	NETISR_COUNT(n, CTR_tcp_pcbs);
	return p;
}

bool
tcp_tuple_in_use(struct netisr *n, const struct tuple *t)
{
	const struct tcp_tw *w;

	if (tcp_table_lookup(&n->tcp->table, t, tcp_hash(n, t)) != NULL ||
	    tcp_syn_lookup(n->tcp, t) != NULL)
		return true;
	w = tcp_tw_lookup(n->tcp, t);
	if (w == NULL)
		return false;
	return !knob_get(&tcp_knobs(n)->tw_reuse) || !tcp_tw_reusable(w, tcp_tick32(n->now));
}

/* ---- the owner's half ---- */

static int
choose_tuple(struct netisr *n, struct sockhalf *sh, const struct ip_route *route, struct tuple *t)
{
	bool is_bound = (sockhalf_state(sh) & SH_BOUND) != 0;

	t->local = is_bound && !ipaddr_is_any(&sh->local.addr) ? sh->local.addr : route->src;
	t->foreign = sh->peer.addr;
	t->fport = sh->peer.port;
	t->lport = is_bound ? sh->local.port : 0;
	if (!is_bound)
		return port_choose(n, t, IPPROTO_TCP, tcp_tuple_in_use);
	/* the route, and with it the source address, has changed since the owner was chosen */
	if (stack_owner(n->stack, t) != n)
		return -EADDRNOTAVAIL;
	return tcp_tuple_in_use(n, t) ? -EADDRNOTAVAIL : 0;
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
	tcp_tw_remove(n, w);
	return iss;
}

static uint32_t
offered_options(const struct netisr *n)
{
	const struct tcp_stack *k = tcp_knobs(n);

	return (knob_get(&k->timestamps) ? TCPF_TS : 0u) | (knob_get(&k->sack) ? TCPF_SACK : 0u) |
	    (knob_get(&k->window_scaling) ? TCPF_WSCALE : 0u);
}

static int
start_connect(struct netisr *n, struct sockhalf *sh)
{
	static const struct ipaddr any;
	bool is_bound = (sockhalf_state(sh) & SH_BOUND) != 0;
	struct ip_route route;
	struct tcp_pcb *p;
	struct tuple t;
	int rc;

	rc = ip_route_lookup(n->stack, &sh->peer.addr, is_bound ? &sh->local.addr : &any, &route);
	if (rc < 0)
		return rc;
	rc = choose_tuple(n, sh, &route, &t);
	if (rc < 0)
		return rc;
	p = tcp_pcb_new(n, sh, &t, &route, 0);
	if (p == NULL)
		return -ENOBUFS;
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

void
tcp_op_connect(struct netisr *n, struct sockhalf *sh)
{
	int rc;

	if (atomic_load_explicit(&sh->pcb, memory_order_relaxed) != NULL)
		return;
	rc = start_connect(n, sh);
	if (rc == 0)
		return;
	sockhalf_set_error(sh, -rc);
	sockhalf_set(sh, SH_DEAD | SH_WAS_RESET, SH_CONNECTING);
	n->stack->sockhalf_ops->event(sh, SOCK_EV_ERR | SOCK_EV_HUP | SOCK_EV_IN | SOCK_EV_OUT);
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
	if (!is_bound)
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
	struct netisr *owner, *old;
	int rc = check_state(sh);

	if (rc < 0)
		return rc;
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
	/* the owner is written once: a second try stays there, which a bound port may forbid */
	old = atomic_load_explicit(&sh->owner, memory_order_relaxed);
	if (old != NULL && old != owner) {
		if (sockhalf_state(sh) & SH_BOUND)
			return -EADDRNOTAVAIL;
		owner = old;
	}
	sh->peer = to;
	if (old == NULL)
		atomic_store_explicit(&sh->owner, owner, memory_order_release);
	sockhalf_set(sh, SH_CONNECTING, SH_DEAD | SH_WAS_RESET);
	sockhalf_post(sh, SOCK_OP_CONNECT);
	return 0;
}

int
tcp_app_bind(struct sockhalf *sh, const struct endpoint *local)
{
	struct darter_stack *s = sh->stack;
	struct endpoint got;
	int rc = 0;

	control_lock(s);
	if (sockhalf_state(sh) & (SH_BOUND | SH_NAMED | SH_CONNECTING | SH_DEAD))
		rc = -EINVAL;
	else if (!ipaddr_is_any(&local->addr) && !ip_is_own(s, &local->addr))
		rc = -EADDRNOTAVAIL;
	else
		rc = demux_bind(s, sh, IPPROTO_TCP, local, &got, &sh->bind);
	if (rc == 0) {
		sh->local = got;
		sockhalf_set(sh, SH_BOUND, 0);
	}
	control_unlock(s);
	return rc;
}
