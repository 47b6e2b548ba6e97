/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listeners: published on every netisr (transport/demux.h), so a SYN is answered where its tuple
 * hashes to. What each netisr has of a listener is a count of half-open entries and a lane of the
 * accept queue.
 *
 * A SYN is dropped while the accept queue is full (as on Linux; the peer tries again). When the
 * listener's or the netisr's share of half-open entries is spent, the listener's oldest entry makes
 * room, so that a flood does not lock honest peers out (drop_tcp_syn_full).
 *
 * shutdown(SHUT_RD) takes the listener out of the look-ups until the next listen(): SYNs, and
 * handshakes that end, go to the other members of its SO_REUSEPORT group, or are refused. Where we
 * differ from Linux: who waits in its accept queue by then is handed on, or reset, at close() only.
 *
 * Its end: close() takes the bind entry away, so no netisr finds it in a later look-up, and sends
 * each netisr a message. The nodes are part of the listener. A netisr that handles its message has
 * ended every look-up that could still have found the listener; it hands its half-open entries, and
 * the children in its lane that nobody accepted, to the surviving members of the group. Those go
 * into the heir's lane of the same netisr, which stays their owner. Without an heir, or when its
 * queue is full, entries are forgotten and children reset (RFC 9293 3.10.5). The last netisr to
 * answer frees listener and socket.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "runtime/publish.h"
#include "transport/acceptq.h"
#include "transport/demux.h"
#include "transport/tcp/tcp_priv.h"

#define LANE_MIN	128u	/* so that a backlog may be raised later */
#define HALF_OPEN_MIN	128u	/* half-open entries of a listener and netisr, at least */

static struct tcp_listener *
listener_of(struct sockhalf *sh)
{
	return atomic_load_explicit(&sh->pcb, memory_order_acquire);
}

static struct tcp_listener *
listener_new(struct sockhalf *sh)
{
	struct darter_stack *s = sh->stack;
	struct tcp_listener *l = calloc(1, sizeof(*l) + s->n_netisrs * sizeof(l->lane[0]));
	unsigned i;

	if (l == NULL)
		return NULL;
	l->sh = sh;
	l->stack = s;
	l->n_lanes = s->n_netisrs;
	atomic_init(&l->unanswered, s->n_netisrs);
	for (i = 0; i < l->n_lanes; i++) {
		l->lane[i].listener = l;
		l->lane[i].node.kind = MSG_LISTENER;
		TAILQ_INIT(&l->lane[i].half_open_list);
	}
	return l;
}

/* Bound, not yet published. Control mutex held. */
static int
make_listener(struct sockhalf *sh, uint32_t backlog)
{
	struct darter_stack *s = sh->stack;
	struct tcp_listener *l = listener_new(sh);
	struct acceptq *q = acceptq_new(s->n_netisrs, max_u32(backlog, LANE_MIN));
	int rc = l == NULL || q == NULL ? -ENOMEM : 0;

	if (rc == 0) {
		atomic_store_explicit(&q->backlog, backlog, memory_order_relaxed);
		atomic_store_explicit(&sh->acceptq, q, memory_order_release);
		atomic_store_explicit(&sh->pcb, l, memory_order_release);
		rc = demux_set_listener(s, sh->bind);
	}
	if (rc < 0) {
		atomic_store_explicit(&sh->acceptq, NULL, memory_order_release);
		atomic_store_explicit(&sh->pcb, NULL, memory_order_release);
		acceptq_free(q);
		free(l);
		return rc;
	}
	if (atomic_load_explicit(&sh->owner, memory_order_relaxed) == NULL)
		atomic_store_explicit(&sh->owner, s->netisr[sh->local.port % s->n_netisrs],
		    memory_order_release);
	sockhalf_set(sh, SH_LISTENING, 0);
	return 0;
}

/* Control mutex held. */
static int
listen_locked(struct sockhalf *sh, uint32_t backlog)
{
	struct endpoint any = { .port = 0 };
	struct acceptq *q = atomic_load_explicit(&sh->acceptq, memory_order_acquire);
	uint32_t st = sockhalf_state(sh);
	int rc;

	if (st & SH_LISTENING) {
		rc = st & SH_SHUT_RD ? demux_set_listener(sh->stack, sh->bind) : 0;
		if (rc < 0)
			return rc;
		atomic_store_explicit(&q->backlog, backlog, memory_order_relaxed);
		sockhalf_set(sh, 0, SH_SHUT_RD);	/* listens again */
		return 0;
	}
	if (st & (SH_CONNECTING | SH_CONNECTED | SH_DEAD))
		return -EINVAL;
	if (sh->bind == NULL) {
		if (st & SH_BOUND)	/* to an address alone */
			any.addr = sh->local.addr;
		else if (sh->family == AF_INET)
			any.addr = ipaddr_v4_cpu(INADDR_ANY);
		rc = demux_bind(sh->stack, sh, IPPROTO_TCP, &any, &sh->local, &sh->bind);
		if (rc < 0)
			return rc;
		sockhalf_set(sh, SH_BOUND, 0);
	}
	return make_listener(sh, backlog);
}

int
tcp_app_listen(struct sockhalf *sh, unsigned backlog)
{
	int rc;

	control_lock(sh->stack);
	rc = listen_locked(sh, min_u32(backlog, ACCEPTQ_MAX));
	control_unlock(sh->stack);
	return rc;
}

void
tcp_app_unlisten(struct sockhalf *sh)
{
	control_lock(sh->stack);
	/* in this order: who still finds it and sees the state bit looks again, and finds others */
	atomic_store_explicit(&sh->bind->is_listener, false, memory_order_release);
	sockhalf_set(sh, SH_SHUT_RD, 0);
	control_unlock(sh->stack);
}

/* ---- the end of a listener ---- */

void
tcp_listener_shut(struct tcp_listener *l)
{
	struct darter_stack *s = l->stack;
	unsigned i, lanes = l->n_lanes;

	/* after the last send l may be gone already */
	for (i = 0; i < lanes; i++)
		netisr_send(s->netisr[i], &l->lane[i].node);
}

/* Holder of n, which owns the child, as producer of n's lane in a surviving member's queue. */
static bool
hand_over(struct netisr *n, struct sockhalf *child)
{
	struct tuple t = { .local = child->local.addr, .foreign = child->peer.addr,
		.lport = child->local.port, .fport = child->peer.port };
	struct sockhalf *heir = demux_lookup_listener(n->stack, &t);
	struct acceptq *q = NULL;

	if (heir != NULL)
		q = atomic_load_explicit(&heir->acceptq, memory_order_acquire);
	if (q == NULL || !acceptq_put(q, n->id, child))
		return false;
	n->stack->sockhalf_ops->event(heir, SOCK_EV_IN);
	return true;
}

/* Nobody accepts any more, and n puts none in: its lane is n's alone. */
static void
empty_lane(struct netisr *n, struct acceptq *q)
{
	struct sockhalf *child;

	while ((child = acceptq_get_own(q, n->id)) != NULL) {
		if (hand_over(n, child))
			continue;
		/* as with SO_LINGER 0: reset */
		atomic_store_explicit(&child->opts.linger_s, 0, memory_order_relaxed);
		sockhalf_post(child, SOCK_OP_CLOSE);
	}
}

static void
finish_listener(struct netisr *n, struct tcp_listener *l)
{
	struct sockhalf *sh = l->sh;
	struct acceptq *q = atomic_load_explicit(&sh->acceptq, memory_order_acquire);

	assert(acceptq_count(q) == 0);
	atomic_store_explicit(&sh->acceptq, NULL, memory_order_release);
	atomic_store_explicit(&sh->pcb, NULL, memory_order_release);
	acceptq_free(q);
	n->stack->sockhalf_ops->free(n, sh);
	free(l);
}

void
tcp_on_listener_message(struct netisr *n, struct msg_node *m)
{
	struct tcp_listener_lane *lane = container_of(m, struct tcp_listener_lane, node);
	struct tcp_listener *l = lane->listener;

	tcp_syn_rehome(n, l);
	empty_lane(n, atomic_load_explicit(&l->sh->acceptq, memory_order_acquire));
	if (atomic_fetch_sub_explicit(&l->unanswered, 1, memory_order_acq_rel) == 1)
		finish_listener(n, l);
}

/* ---- segments ---- */

static uint32_t
half_open_limit(struct acceptq *q)
{
	return max_u32(HALF_OPEN_MIN, 2 * atomic_load_explicit(&q->backlog, memory_order_relaxed));
}

/* sh, or another one when it was shut down since it was found; NULL: as if nobody listened. */
static struct sockhalf *
who_listens(struct netisr *n, struct sockhalf *sh, const struct tcp_seg *s)
{
	struct sockhalf *before = NULL;

	while (sh != NULL && sh != before && (sockhalf_state(sh) & SH_SHUT_RD)) {
		before = sh;
		sh = demux_lookup_listener(n->stack, &s->tuple);
	}
	return sh != before ? sh : NULL;
}

/* RFC 9293 3.10.7.2, third step. */
void
tcp_listen_syn(struct netisr *n, struct sockhalf *found, const struct tcp_seg *s,
    const struct tcp_tw *old)
{
	struct sockhalf *sh = who_listens(n, found, s);
	const struct seq *above = old != NULL ? &old->snd_nxt : NULL;
	struct tcp_listener *l;
	struct acceptq *q;
	struct tcp_syn *e;

	if (s->flags & TH_FIN) {
		NETISR_COUNT(n, CTR_drop_tcp_flags);
		return;
	}
	if (sh == NULL) {
		NETISR_COUNT(n, CTR_drop_tcp_no_pcb);
		tcp_reply_rst(n, s);
		return;
	}
	l = listener_of(sh);
	q = atomic_load_explicit(&sh->acceptq, memory_order_acquire);
	if (acceptq_is_full(q)) {
		NETISR_COUNT(n, CTR_drop_tcp_listen_full);
		return;
	}
	e = l->lane[n->id].half_open < half_open_limit(q) ? tcp_syn_new(n, l, s, above) : NULL;
	if (e == NULL) {
		/* one of the two is lost; the oldest has had its time (RFC 4987 3.4) */
		NETISR_COUNT(n, CTR_drop_tcp_syn_full);
		if (tcp_syn_evict(n, l))
			e = tcp_syn_new(n, l, s, above);
	}
	if (e != NULL)
		tcp_syn_send(n, e);
}

/* RFC 9293 3.10.7.2. */
void
tcp_listen_input(struct netisr *n, struct sockhalf *sh, const struct tcp_seg *s)
{
	if (s->flags & TH_RST) {
		NETISR_COUNT(n, CTR_drop_tcp_no_pcb);
	} else if (s->flags & TH_ACK) {
		NETISR_COUNT(n, CTR_drop_tcp_no_pcb);
		tcp_reply_rst(n, s);
	} else if (s->flags & TH_SYN) {
		tcp_listen_syn(n, sh, s, NULL);
	} else {
		NETISR_COUNT(n, CTR_drop_tcp_flags);
	}
}
