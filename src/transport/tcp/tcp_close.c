/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a connection, from either side.
 *
 * close(): with bytes unread, or SO_LINGER 0, the peer gets RST (RFC 9293 3.6.1, RFC 2525 2.17: it
 * must not believe that all was read). Else the FIN follows what is queued and the connection goes
 * on as an orphan: bounded in number (max_orphans, past it RST), in retransmissions, and in
 * FIN_WAIT_2 by fin_wait2_ms. Data that arrive for an orphan draw RST (tcp_check.c).
 *
 * A pcb ends in two steps: tcp_die() takes it out of the table and of the wheel at once,
 * tcp_pcb_finish() in the same round's roll-up tells the application (state bits before the upcall)
 * and frees. The socket is freed when both SOCK_OP_CLOSE was handled and the pcb is gone.
 */
#include <errno.h>

#include "runtime/publish.h"
#include "transport/demux.h"
#include "transport/tcp/tcp_priv.h"

/* States in which the peer must be told of an abort (RFC 9293 3.10.5). */
#define NEEDS_RST	(1u << TCP_SYN_RCVD | 1u << TCP_ESTABLISHED | 1u << TCP_FIN_WAIT_1 | \
			 1u << TCP_FIN_WAIT_2 | 1u << TCP_CLOSE_WAIT)

void
tcp_die(struct netisr *n, struct tcp_pcb *p, int so_error)
{
	if (p->flags & TCPF_GONE)
		return;
	tcp_table_remove(&n->tcp->table, p);
	port_freed(n, &p->tuple);
	timer_disarm(&n->wheel, &p->timer);
	p->flags |= TCPF_GONE;
	p->so_error = (uint16_t)so_error;
	if (so_error != 0)
		p->flags |= TCPF_RESET;
	tcp_enter(n, p, TCP_CLOSED);
	tcp_touch(n, p);
}

void
tcp_abort(struct netisr *n, struct tcp_pcb *p, int so_error)
{
	if (p->flags & TCPF_GONE)
		return;
	if ((1u << p->state) & NEEDS_RST)
		p->todo.what |= TODO_RST;
	p->flags |= TCPF_RESET;
	tcp_die(n, p, so_error);
}

static void
abort_one(void *arg, struct tcp_pcb *p)
{
	struct netisr *n = arg;

	/* leaves the table in the roll-up: tcp_die would change it under the visit */
	if (p->state != TCP_FIN_WAIT_2)
		tcp_touch(n, p);
}

void
tcp_abort_all(struct netisr *n)
{
	struct tcp_pcb *p;

	tcp_table_visit(&n->tcp->table, abort_one, n);
	for (p = n->tcp->touched; p != NULL; p = p->touched_next) {
		if (p->state == TCP_FIN_WAIT_2)
			continue;
		/* RFC 9293 3.10.5 has none in these states: there somebody repeats the FIN */
		if (p->state == TCP_CLOSING || p->state == TCP_LAST_ACK)
			p->todo.what |= TODO_RST;
		tcp_abort(n, p, ECONNABORTED);
	}
}

/* Tells the application. A clean end leaves what was received readable. */
static void
tell_socket(struct netisr *n, struct tcp_pcb *p)
{
	struct sockhalf *sh = p->sh;
	uint32_t events = p->events | SOCK_EV_HUP | SOCK_EV_RDHUP | SOCK_EV_IN | SOCK_EV_OUT;

	if (p->so_error != 0) {
		sockhalf_set_error(sh, p->so_error);
		events |= SOCK_EV_ERR;
	}
	atomic_store_explicit(&sh->pcb, NULL, memory_order_release);
	sockhalf_set(sh, SH_DEAD | (p->flags & TCPF_RESET ? SH_WAS_RESET : 0u), SH_CONNECTING);
	n->stack->sockhalf_ops->event(sh, events);
}

void
tcp_pcb_finish(struct netisr *n, struct tcp_pcb *p)
{
	struct tcp_netisr *tn = n->tcp;

	tcp_rcv_fini(n, p);
	port_lower(n, &p->tuple, tcp_share(p));
	if (p->flags & TCPF_CLOSED) {
		tn->n_orphans--;
		atomic_store_explicit(&p->sh->pcb, NULL, memory_order_release);
		n->stack->sockhalf_ops->free(n, p->sh);
	} else {
		tell_socket(n, p);
	}
	atomic_fetch_sub_explicit(&tn->n_pcbs, 1, memory_order_relaxed);
	netisr_count(n, CTR_tcp_pcbs, (uint64_t)-1);
	slab_free(&tn->pcbs, p);
}

void
tcp_op_shutdown(struct netisr *n, struct tcp_pcb *p)
{
	/* an attempt that is under way ends without an error (as on Linux) */
	if (p->state == TCP_SYN_SENT) {
		tcp_die(n, p, 0);
		return;
	}
	if (sockhalf_state(p->sh) & SH_SHUT_WR)
		tcp_fsm_close(n, p);
	/* SHUT_RD shows in the window: what comes is thrown away, and room is never short */
	tcp_owe(n, p, TODO_WINDOW);
}

static bool
must_reset(struct netisr *n, const struct tcp_pcb *p)
{
	if (!ring_is_empty(&p->sh->rx))
		return true;
	if (atomic_load_explicit(&p->sh->opts.linger_s, memory_order_relaxed) == 0)
		return true;
	if (n->tcp->n_orphans <= (uint64_t)knob_get(&tcp_knobs(n)->max_orphans))
		return false;
	NETISR_COUNT(n, CTR_tcp_orphans_reset);
	return true;
}

void
tcp_op_close(struct netisr *n, struct sockhalf *sh)
{
	struct tcp_pcb *p = atomic_load_explicit(&sh->pcb, memory_order_relaxed);

	if (p == NULL) {
		n->stack->sockhalf_ops->free(n, sh);
		return;
	}
	p->flags |= TCPF_CLOSED;
	n->tcp->n_orphans++;
	if (p->flags & TCPF_GONE)
		return;
	tcp_timer_stop(p, TCP_T_KEEP);
	if (p->state == TCP_SYN_SENT) {
		tcp_die(n, p, 0);
	} else if (must_reset(n, p)) {
		tcp_abort(n, p, 0);
	} else {
		tcp_fsm_close(n, p);
		if (p->state == TCP_FIN_WAIT_2)
			tcp_timer_set(n, p, TCP_T_LIFE,
			    tcp_knob_ms_as_us(&tcp_knobs(n)->fin_wait2_ms));
	}
}

void
tcp_app_close(struct sockhalf *sh)
{
	struct darter_stack *s = sh->stack;

	/* nobody else is inside: a NULL stays one, and most sockets (accepted ones) have no bind */
	if (sh->bind != NULL) {
		control_lock(s);
		demux_unbind(s, sh->bind);
		sh->bind = NULL;
		control_unlock(s);
	}
	if (sockhalf_state(sh) & SH_LISTENING)
		tcp_listener_shut(atomic_load_explicit(&sh->pcb, memory_order_acquire));
	else if (atomic_load_explicit(&sh->owner, memory_order_acquire) == NULL)
		s->sockhalf_ops->free(netisr_current(), sh);
	else
		sockhalf_post_app(sh, SOCK_OP_CLOSE);
}
