/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP's sockets: what the socket layer asks for (ulp.h), names, life and death.
 *
 * Life. attach makes the pcb and the receive queue. bind, connect and disconnect are synchronous:
 * they change the published entry under the control mutex, then (once there is an owner) have the
 * owner send what was queued before and take over the new source, so a datagram leaves with the
 * names it was written under. The owner is set at the first send or connect: the netisr the caller
 * holds or the nearest, and stays. A socket that only receives never has one; any netisr delivers
 * to it.
 *
 * Death. close removes the entry and retires the pcb, so when `is_unseen` is set no netisr can be
 * delivering any more; it posts CLOSE to the owner, which sends what is queued, waits for is_unseen
 * on its `dying` list (a timer looks), and only then frees. The retirement's callback runs on any
 * thread with the control mutex held and therefore does nothing but set the flag.
 *
 * Names follow Linux: connect on a socket bound to any address takes the route's source address,
 * disconnect gives a drawn port back and keeps one that was asked for.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/stack.h"
#include "transport/demux.h"
#include "transport/dgramq.h"
#include "transport/udp_priv.h"
#include "transport/ulp.h"

static const struct ipaddr addr_any;	/* of either family */

struct netisr *
udp_near_netisr(struct darter_stack *s)
{
	struct netisr *n = netisr_current();
	int cpu;

	if (n != NULL && n->stack == s)
		return n;
	cpu = sched_getcpu();
	return s->netisr[cpu < 0 ? 0 : (unsigned)cpu % s->n_netisrs];
}

void
udp_set_home(struct sockhalf *sh, struct netisr *home)
{
	struct netisr *none = NULL;

	atomic_compare_exchange_strong_explicit(&sh->owner, &none, home, memory_order_acq_rel,
	    memory_order_acquire);
}

/* ---- attach, names ---- */

static void
pcb_free(struct darter_stack *s, struct udp_pcb *p)
{
	struct udp_stack *us = s->udp;

	pthread_mutex_lock(&us->lock);
	LIST_REMOVE(p, all);
	us->n_pcbs--;
	pthread_mutex_unlock(&us->lock);
	free(p);
}

static bool
pcb_insert(struct udp_stack *us, struct udp_pcb *p)
{
	bool has_room;

	pthread_mutex_lock(&us->lock);
	has_room = us->n_pcbs < UDP_PCBS_MAX;
	if (has_room) {
		LIST_INSERT_HEAD(&us->pcbs, p, all);
		us->n_pcbs++;
	}
	pthread_mutex_unlock(&us->lock);
	return has_room;
}

static int
udp_attach(struct sockhalf *sh)
{
	struct udp_pcb *p = calloc(1, sizeof(*p));
	struct dgramq *q = dgramq_new(sh->stack);
	int rc = -ENOMEM;

	if (p != NULL && q != NULL) {
		p->sh = sh;
		p->dgramq = q;
		rc = pcb_insert(sh->stack->udp, p) ? 0 : -ENOBUFS;
	}
	if (rc < 0) {
		dgramq_free(sh->stack, q);
		free(p);
		return rc;
	}
	atomic_store_explicit(&sh->dgramq, q, memory_order_release);
	atomic_store_explicit(&sh->pcb, p, memory_order_release);
	return 0;
}

/*
 * A socket may receive for a broadcast or multicast address; what it sends has the route's source.
 */
static struct ipaddr
source_for(struct darter_stack *s, const struct ipaddr *bound)
{
	return ipaddr_is_any(bound) || !ip_is_own(s, bound) ? addr_any : *bound;
}

/* Control mutex held; sh is not bound. */
static int
bind_locked(struct sockhalf *sh, struct udp_pcb *p, const struct endpoint *local)
{
	struct endpoint got;
	int rc = demux_bind(sh->stack, sh, IPPROTO_UDP, local, &got, &p->entry);

	if (rc < 0)
		return rc;
	p->bound_addr = local->addr;
	p->has_drawn_port = local->port == 0;
	p->src = p->app_src = source_for(sh->stack, &local->addr);
	p->lport = got.port;
	sh->local = got;
	return 0;
}

int
udp_autobind(struct sockhalf *sh)
{
	struct udp_pcb *p = udp_pcb_of(sh);
	struct endpoint any = { ipaddr_v4_cpu(INADDR_ANY), 0 };
	int rc;

	if (p->entry != NULL)
		return 0;
	rc = bind_locked(sh, p, &any);
	if (rc == 0)
		sockhalf_set(sh, SH_NAMED, 0);
	return rc == -EADDRINUSE ? -EAGAIN : rc;	/* as Linux says it for a send */
}

static int
udp_bind(struct sockhalf *sh, const struct endpoint *local)
{
	struct darter_stack *s = sh->stack;
	struct udp_pcb *p = udp_pcb_of(sh);
	int rc;

	if (!ipaddr_is_any(&local->addr) && !ipaddr_is_v4(&local->addr))
		return -EADDRNOTAVAIL;
	control_lock(s);
	if (p->entry != NULL)
		rc = -EINVAL;
	else if (!ipaddr_is_any(&local->addr) && !ip_is_own(s, &local->addr) &&
	    !ip_is_broadcast(s, &local->addr) && !udp_is_multicast(&local->addr))
		rc = -EADDRNOTAVAIL;
	else
		rc = bind_locked(sh, p, local);
	if (rc == 0)
		sockhalf_set(sh, SH_BOUND | SH_NAMED, 0);
	control_unlock(s);
	return rc;
}

static int
udp_listen(struct sockhalf *sh UNUSED, unsigned backlog UNUSED)
{
	return -EOPNOTSUPP;
}

/* ---- connect and disconnect ---- */

struct new_names {
	struct udp_pcb *pcb;
	struct ipaddr src;
	uint16_t lport;
};

/*
 * Owner: what was written under the old names leaves under them. The queue is bounded, hence no
 * budget.
 */
static void
take_names(struct netisr *n, void *arg)
{
	const struct new_names *names = arg;

	udp_send_queued(n, names->pcb, UINT32_MAX);
	names->pcb->src = names->src;
	names->pcb->lport = names->lport;
}

static void
apply_names(struct sockhalf *sh, struct new_names *names)
{
	struct netisr *owner = atomic_load_explicit(&sh->owner, memory_order_acquire);

	if (owner != NULL) {
		netisr_call(owner, take_names, names);
		return;
	}
	names->pcb->src = names->src;
	names->pcb->lport = names->lport;
}

/* Control mutex held. Checks the peer and says which local address goes with it. */
static int
check_peer(struct sockhalf *sh, const struct udp_pcb *p, const struct endpoint *peer,
    struct ipaddr *ret_local)
{
	struct ipaddr src = source_for(sh->stack, &p->bound_addr);
	struct ip_route r;
	int rc;

	if (!ipaddr_is_v4(&peer->addr))
		return -EAFNOSUPPORT;
	if (peer->port == 0)
		return -EINVAL;
	rc = ip_route_lookup(sh->stack, &peer->addr, &src, &r);
	if (rc < 0)
		return rc;
	if (r.is_broadcast && !udp_is_multicast(&peer->addr) &&
	    !atomic_load_explicit(&sh->opts.broadcast, memory_order_relaxed))
		return -EACCES;
	*ret_local = ipaddr_is_any(&p->bound_addr) ? r.src : p->bound_addr;
	return 0;
}

static int
connect_locked(struct sockhalf *sh, struct udp_pcb *p, const struct endpoint *peer,
    struct new_names *names)
{
	struct endpoint local;
	int rc = check_peer(sh, p, peer, &local.addr);

	if (rc == 0)
		rc = udp_autobind(sh);
	if (rc < 0)
		return rc;
	local.port = sh->local.port;
	rc = demux_set_foreign(sh->stack, &p->entry, &local, peer);
	if (rc < 0)
		return rc;
	sockhalf_set(sh, 0, SH_CONNECTED);
	sh->local = local;
	sh->peer = *peer;
	sockhalf_set(sh, SH_CONNECTED | SH_NAMED, 0);
	p->app_src = source_for(sh->stack, &local.addr);
	*names = (struct new_names){ p, p->app_src, local.port };
	return 0;
}

static int
udp_connect(struct sockhalf *sh, const struct endpoint *peer, struct netisr *home)
{
	struct endpoint real = { udp_real_dst(&peer->addr), peer->port };
	struct new_names names;
	int rc;

	control_lock(sh->stack);
	rc = connect_locked(sh, udp_pcb_of(sh), &real, &names);
	control_unlock(sh->stack);
	if (rc < 0)
		return rc;
	apply_names(sh, &names);
	udp_set_home(sh, home != NULL ? home : udp_near_netisr(sh->stack));
	return 0;
}

/* Control mutex held. */
static int
disconnect_locked(struct sockhalf *sh, struct udp_pcb *p, struct new_names *names)
{
	struct endpoint local = { p->bound_addr, sh->local.port };
	static const struct endpoint nobody;
	int rc;

	if (p->has_drawn_port) {
		demux_unbind(sh->stack, p->entry);
		p->entry = NULL;
		sockhalf_set(sh, 0, SH_CONNECTED | SH_BOUND | SH_NAMED);
		local.port = 0;
	} else {
		rc = demux_set_foreign(sh->stack, &p->entry, &local, &nobody);
		if (rc < 0)
			return rc;
		sockhalf_set(sh, 0, SH_CONNECTED);
	}
	sh->local = local;
	p->app_src = source_for(sh->stack, &p->bound_addr);
	*names = (struct new_names){ p, p->app_src, local.port };
	return 0;
}

static int
udp_disconnect(struct sockhalf *sh)
{
	struct udp_pcb *p = udp_pcb_of(sh);
	struct new_names names;
	int rc = 0;

	control_lock(sh->stack);
	if ((sockhalf_state(sh) & SH_CONNECTED) == 0) {
		control_unlock(sh->stack);
		return 0;
	}
	rc = disconnect_locked(sh, p, &names);
	control_unlock(sh->stack);
	if (rc == 0)
		apply_names(sh, &names);
	return rc;
}

/* ---- the owner: op bits ---- */

static void
leave_list(struct netisr *n, struct udp_pcb *p)
{
	if (p->where == UDP_BUSY)
		TAILQ_REMOVE(&n->udp->busy, p, at);
	else if (p->where == UDP_DYING)
		TAILQ_REMOVE(&n->udp->dying, p, at);
	p->where = UDP_IDLE;
}

static void
finish(struct netisr *n, struct udp_pcb *p)
{
	struct sockhalf *sh = p->sh;
	struct dgramq *q = atomic_load_explicit(&sh->dgramq, memory_order_relaxed);

	leave_list(n, p);
	if (p->is_counted)
		netisr_count(n, CTR_udp_pcbs, (uint64_t)-1);
	atomic_store_explicit(&sh->pcb, NULL, memory_order_release);
	atomic_store_explicit(&sh->dgramq, NULL, memory_order_release);
	dgramq_free(n->stack, q);
	pcb_free(n->stack, p);
	n->stack->sockhalf_ops->free(n, sh);
}

static void
close_owned(struct netisr *n, struct udp_pcb *p)
{
	udp_send_queued(n, p, UINT32_MAX);
	if (atomic_load_explicit(&p->is_unseen, memory_order_acquire)) {
		finish(n, p);
		return;
	}
	leave_list(n, p);
	p->where = UDP_DYING;
	TAILQ_INSERT_TAIL(&n->udp->dying, p, at);
	if (!timer_is_armed(&n->udp->dying_timer))
		timer_arm(&n->wheel, &n->udp->dying_timer,
		    time_add_us(n->now, UDP_DYING_CHECK_US));
}

static void
send_some(struct netisr *n, struct udp_pcb *p)
{
	bool has_more = udp_send_queued(n, p, UDP_SEND_BURST);

	if (has_more == (p->where == UDP_BUSY))
		return;
	if (!has_more) {
		leave_list(n, p);
		return;
	}
	p->where = UDP_BUSY;
	TAILQ_INSERT_TAIL(&n->udp->busy, p, at);
}

static void
shut(struct sockhalf *sh)
{
	uint32_t state = sockhalf_state(sh);
	uint32_t events = 0;

	if (state & SH_SHUT_RD)
		events |= SOCK_EV_IN | SOCK_EV_RDHUP;
	if ((state & SH_SHUT_RD) && (state & SH_SHUT_WR))
		events |= SOCK_EV_HUP;
	if (state & SH_SHUT_WR)
		events |= SOCK_EV_OUT;	/* a write says EPIPE at once */
	if (events != 0)
		sh->stack->sockhalf_ops->event(sh, events);
}

static void
udp_ops(struct netisr *n, struct sockhalf *sh, uint32_t ops)
{
	struct udp_pcb *p = udp_pcb_of(sh);

	if (!p->is_counted) {
		p->is_counted = true;
		NETISR_COUNT(n, CTR_udp_pcbs);
	}
	if (ops & SOCK_OP_SEND)
		send_some(n, p);
	if (ops & SOCK_OP_SHUTDOWN)
		shut(sh);
	if (ops & SOCK_OP_CLOSE)
		close_owned(n, p);
}

/* ---- close ---- */

static void
on_grace_over(struct darter_stack *s UNUSED, struct retired *r)
{
	struct udp_pcb *p = container_of(r, struct udp_pcb, retired);

	atomic_store_explicit(&p->is_unseen, true, memory_order_release);
}

static void
udp_close(struct sockhalf *sh)
{
	struct darter_stack *s = sh->stack;
	struct udp_pcb *p = udp_pcb_of(sh);

	control_lock(s);
	if (p->entry != NULL)
		demux_unbind(s, p->entry);
	p->entry = NULL;
	/* Also without an entry: a disconnect may have removed one a moment ago. */
	publish_retire(s, &p->retired, on_grace_over);
	control_unlock(s);
	udp_set_home(sh, udp_near_netisr(s));
	sockhalf_post(sh, SOCK_OP_CLOSE);
}

/* ---- options ---- */

static int
udp_setopt(struct sockhalf *sh UNUSED, int name UNUSED, const void *val UNUSED, size_t len UNUSED)
{
	return -ENOPROTOOPT;
}

static int
udp_getopt(struct sockhalf *sh UNUSED, int name UNUSED, void *val UNUSED, size_t *len UNUSED)
{
	return -ENOPROTOOPT;
}

const struct ulp_ops udp_ulp = {
	.proto = IPPROTO_UDP,
	.attach = udp_attach,
	.bind = udp_bind,
	.listen = udp_listen,
	.connect = udp_connect,
	.disconnect = udp_disconnect,
	.ops = udp_ops,
	.close = udp_close,
	.setopt = udp_setopt,
	.getopt = udp_getopt,
};

/* ---- the layer ---- */

static unsigned
udp_poll(struct netisr *n)
{
	struct udp_pcb *p = TAILQ_FIRST(&n->udp->busy);
	struct udp_pcb *last = TAILQ_LAST(&n->udp->busy, udp_pcb_queue);
	unsigned work = 0;

	/* Each once: who is not done goes to the end and waits for the next round. */
	while (p != NULL) {
		work++;
		leave_list(n, p);
		send_some(n, p);
		if (p == last)
			break;
		p = TAILQ_FIRST(&n->udp->busy);
	}
	return work;
}

/* While datagrams wait, the netisr does not sleep. */
static struct time
udp_next_deadline(struct netisr *n)
{
	return TAILQ_EMPTY(&n->udp->busy) ? TIME_NEVER : n->now;
}

static void
check_dying(struct netisr *n, struct timer *t)
{
	struct udp_pcb *p, *after;

	publish_reap(n->stack);
	for (p = TAILQ_FIRST(&n->udp->dying); p != NULL; p = after) {
		after = TAILQ_NEXT(p, at);
		if (atomic_load_explicit(&p->is_unseen, memory_order_acquire))
			finish(n, p);
	}
	if (!TAILQ_EMPTY(&n->udp->dying))
		timer_arm(&n->wheel, t, time_add_us(n->now, UDP_DYING_CHECK_US));
}

static int
udp_netisr_init(struct netisr *n, char *err, size_t err_size)
{
	struct udp_netisr *un = calloc(1, sizeof(*un));

	if (un == NULL) {
		snprintf(err, err_size, "udp: netisr %u: out of memory; free some", n->id);
		return -ENOMEM;
	}
	TAILQ_INIT(&un->busy);
	TAILQ_INIT(&un->dying);
	timer_init(&un->dying_timer, check_dying);
	n->udp = un;
	return 0;
}

static void
udp_netisr_fini(struct netisr *n)
{
	timer_disarm(&n->wheel, &n->udp->dying_timer);
	free(n->udp);
	n->udp = NULL;
}

static int
udp_stack_init(struct darter_stack *s, char *err, size_t err_size)
{
	static const struct ip_proto ops = { .input = udp_input, .error = udp_error };
	struct udp_stack *us = calloc(1, sizeof(*us));

	if (us == NULL) {
		snprintf(err, err_size, "udp: out of memory; free some");
		return -ENOMEM;
	}
	pthread_mutex_init(&us->lock, NULL);
	LIST_INIT(&us->pcbs);
	s->udp = us;
	ip_register(s, IPPROTO_UDP, &ops);
	return 0;
}

/* The sockets themselves are gone with the socket layer; what is left is ours alone. */
static void
udp_stack_fini(struct darter_stack *s)
{
	struct udp_pcb *p;

	control_lock(s);
	publish_drain(s);
	control_unlock(s);
	while ((p = LIST_FIRST(&s->udp->pcbs)) != NULL) {
		/*
		 * its close was still on the way when the stack ended; the socket's memory is gone
		 */
		LIST_REMOVE(p, all);
		dgramq_free(s, p->dgramq);
		free(p);
	}
	pthread_mutex_destroy(&s->udp->lock);
	free(s->udp);
	s->udp = NULL;
}

const struct layer udp_layer = {
	.name = "udp",
	.stack_init = udp_stack_init,
	.stack_fini = udp_stack_fini,
	.netisr_init = udp_netisr_init,
	.netisr_fini = udp_netisr_fini,
	.poll = udp_poll,
	.next_deadline = udp_next_deadline,
};
