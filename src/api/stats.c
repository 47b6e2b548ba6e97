/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.h. Counters are summed over the netisrs, each of which alone writes its own. Connections
 * are copied netisr by netisr by its holder, then shown to the application's function, which may
 * take its time and call the library.
 */
#include <stdlib.h>
#include <string.h>

#include <darter/stats.h>

#include "api/api.h"
#include "base/counter.h"
#include "link/dev.h"
#include "link/linkrate.h"
#include "runtime/stack.h"
#include "socket/sock.h"
#include "transport/tcp/tcp.h"

/* ---- counters ---- */

static uint64_t
value_of(struct darter_stack *s, enum counter c)
{
	uint64_t sum = 0;
	unsigned i;

	switch (c) {
	case CTR_sockets:	/* made by threads that hold no netisr */
		return atomic_load_explicit(&s->sock->n_socks, memory_order_relaxed);
	case CTR_pkts_in_use:
		return s->config.packets - min_u32(s->pkt_ops->available(s), s->config.packets);
	case CTR_ring_bytes:
		return atomic_load_explicit(&s->depot.used_bytes, memory_order_relaxed);
	case CTR_rounds:
		for (i = 0; i < s->n_netisrs; i++)
			sum += atomic_load_explicit(&s->netisr[i]->rounds, memory_order_relaxed);
		return sum;
	default:
		return stack_counter(s, c);
	}
}

int
darter_counter_get(struct darter_stack *s, const char *name, uint64_t *ret_value)
{
	int c = counter_find(name);

	s = api_stack(s);
	if (s == NULL)
		return -ENETDOWN;
	if (c < 0)
		return -ENOENT;
	*ret_value = value_of(s, (enum counter)c);
	return 0;
}

static enum darter_counter_kind
kind_of(unsigned c)
{
	switch (counter_kind_of(c)) {
	case COUNTER_DROP:
		return DARTER_COUNTER_DROP;
	case COUNTER_GAUGE:
		return DARTER_COUNTER_GAUGE;
	default:
		return DARTER_COUNTER_EVENT;
	}
}

int
darter_counter_visit(struct darter_stack *s, int (*fn)(void *arg, const struct darter_counter *c),
    void *arg)
{
	unsigned i;
	int rc = 0;

	s = api_stack(s);
	if (s == NULL)
		return -ENETDOWN;
	for (i = 0; i < CTR_MAX && rc == 0; i++) {
		struct darter_counter c = { .name = counter_name(i), .text = counter_text(i),
			.kind = kind_of(i), .value = value_of(s, (enum counter)i) };

		rc = fn(arg, &c);
	}
	return rc;
}

/* ---- connections ---- */

struct conn_list {
	struct darter_conn *conns;
	size_t n;
	size_t size;
	bool is_short;		/* memory ran out */
};

static struct sockaddr_in
to_sockaddr(const struct ipaddr *a, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = be16_from_cpu(port).raw };

	if (ipaddr_is_v4(a))
		in.sin_addr.s_addr = a->v4.raw;
	return in;
}

/* Holder. */
static void
copy_conn(void *arg, const struct tcp_conn_info *i)
{
	struct conn_list *l = arg;
	struct darter_conn *c;

	if (l->n == l->size) {
		size_t size = l->size == 0 ? 64 : l->size * 2;

		c = realloc(l->conns, size * sizeof(*c));
		if (c == NULL) {
			l->is_short = true;
			return;
		}
		l->conns = c;
		l->size = size;
	}
	c = &l->conns[l->n++];
	memset(c, 0, sizeof(*c));
	c->local = to_sockaddr(&i->tuple.local, i->tuple.lport);
	c->foreign = to_sockaddr(&i->tuple.foreign, i->tuple.fport);
	c->state = tcp_state_name(i->state);
	c->netisr = i->netisr;
	c->tx_queued_bytes = i->tx_queued_bytes;
	c->rx_queued_bytes = i->rx_queued_bytes;
	c->snd_wnd_bytes = i->snd_wnd_bytes;
	c->rcv_wnd_bytes = i->rcv_wnd_bytes;
	c->cwnd_bytes = i->cwnd_bytes;
	c->ssthresh_bytes = i->ssthresh_bytes;
	c->srtt_us = i->srtt_us;
	c->rttvar_us = i->rttvar_us;
	c->rto_us = i->rto_us;
	c->retransmits = i->retransmits;
	c->mss_bytes = i->mss;
	c->has_timestamps = i->has_ts;
	c->has_sack = i->has_sack;
}

static void
copy_conns(struct netisr *n, void *arg)
{
	tcp_visit(n, copy_conn, arg);
}

int
darter_conn_visit(struct darter_stack *s, int (*fn)(void *arg, const struct darter_conn *c),
    void *arg)
{
	unsigned i;
	int rc = 0;

	s = api_stack(s);
	if (s == NULL)
		return -ENETDOWN;
	for (i = 0; i < s->n_netisrs && rc == 0; i++) {
		struct conn_list l = { .n = 0 };
		size_t k;

		rc = call_enter();
		if (rc < 0)
			return rc;
		netisr_call(s->netisr[i], copy_conns, &l);
		call_leave();
		if (l.is_short)
			rc = -ENOMEM;
		for (k = 0; k < l.n && rc == 0; k++)
			rc = fn(arg, &l.conns[k]);
		free(l.conns);
	}
	return rc;
}

/* ---- netisrs, descriptors ---- */

static uint64_t
one_value(const struct netisr *n, enum counter c)
{
	return atomic_load_explicit(&n->counters[c], memory_order_relaxed);
}

static void
copy_work(const struct netisr *n, struct darter_netisr_stats *ret_stats)
{
	ret_stats->cpu = netisr_cpu(n);
	ret_stats->msgs = one_value(n, CTR_msgs);
	ret_stats->msgs_socket = one_value(n, CTR_msgs_socket);
	ret_stats->forwards = one_value(n, CTR_tcp_connect_forwards);
	ret_stats->doorbells = one_value(n, CTR_doorbells);
	ret_stats->sleeps = one_value(n, CTR_sleeps);
	ret_stats->call_sleeps = one_value(n, CTR_call_sleeps);
	ret_stats->conn_allocs = one_value(n, CTR_conn_allocs);
	ret_stats->segs_rcvd = one_value(n, CTR_tcp_segs_rcvd);
	ret_stats->segs_sent = one_value(n, CTR_tcp_segs_sent);
	ret_stats->connects = one_value(n, CTR_tcp_connects);
	ret_stats->accepts = one_value(n, CTR_tcp_accepts);
	ret_stats->accept_steals = one_value(n, CTR_accept_steals);
}

int
darter_netisr_stats(struct darter_stack *s, unsigned netisr, struct darter_netisr_stats *ret_stats)
{
	struct netisr *n;

	s = api_stack(s);
	if (s == NULL)
		return -ENETDOWN;
	if (netisr >= s->n_netisrs)
		return -EINVAL;
	n = s->netisr[netisr];
	memset(ret_stats, 0, sizeof(*ret_stats));
	ret_stats->rounds = atomic_load_explicit(&n->rounds, memory_order_relaxed);
	ret_stats->longest_hold_us = atomic_load_explicit(&n->longest_hold_us,
	    memory_order_relaxed);
	ret_stats->is_attached = atomic_load_explicit(&n->is_attached, memory_order_relaxed);
	tcp_counts(n, &ret_stats->tcp_pcbs, &ret_stats->tcp_half_open, &ret_stats->tcp_timewait);
	copy_work(n, ret_stats);
	return 0;
}

struct rate_call {
	struct dev *d;
	struct darter_link_rate *rate;
};

static void
run_rate(struct netisr *n, void *arg)
{
	struct rate_call *c = arg;

	linkrate_run(n, c->d, c->rate->sends, c->rate->ms, &c->rate->pkts, &c->rate->elapsed_us);
}

int
darter_link_rate(struct darter_stack *s, const char *port, struct darter_link_rate *rate)
{
	struct rate_call c = { .rate = rate };
	int rc;

	s = api_stack(s);
	if (s == NULL)
		return -ENETDOWN;
	if (rate->ms == 0 || rate->ms > LINKRATE_MAX_MS)
		return -EINVAL;
	c.d = dev_find(s, port);
	if (c.d == NULL)
		return -ENODEV;
	if (c.d->is_loop || !c.d->has_ether)
		return -EOPNOTSUPP;
	rc = call_enter();
	if (rc < 0)
		return rc;
	netisr_call(s->netisr[0], run_rate, &c);
	call_leave();
	return 0;
}

unsigned
darter_fd_count(void)
{
	return fdtab_count();
}
