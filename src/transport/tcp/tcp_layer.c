/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP as a layer of the stack and as a transport for sockets: set-up, knobs, operations posted by
 * the application, the roll-up, and the rate limit of challenge ACKs (RFC 5961 7; its number a
 * second is drawn anew each second, so that an outsider cannot count with it).
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/tcp/tcp_priv.h"
#include "transport/ulp.h"

/* ---- knobs ---- */

#define KNOB(nm, txt, ty, df, lo, hi) { .name = "net.inet.tcp." #nm, .text = txt, .type = ty, \
	.dflt = df, .min = lo, .max = hi, .value = &k->nm }

static int
register_knobs(struct darter_stack *s)
{
	struct tcp_stack *k = s->tcp;
	const struct knob knobs[] = {
		KNOB(msl_ms, "maximum segment lifetime in ms; TIME_WAIT lasts twice this", KNOB_INT,
		    30000, 1, 600000),
		KNOB(rto_min_ms, "smallest retransmission timeout in ms", KNOB_INT, 200, 1, 60000),
		KNOB(rto_max_ms, "largest retransmission timeout in ms", KNOB_INT,
		    60000, 1000, 600000),
		KNOB(syn_retries, "SYNs sent again before a connect times out", KNOB_INT,
		    6, 0, 127),
		KNOB(synack_retries, "SYN-ACKs sent again before a half-open one is forgotten",
		    KNOB_INT, 5, 0, 127),
		KNOB(data_retries, "timeouts in a row before a connection is given up", KNOB_INT,
		    15, 1, 255),
		KNOB(delack_ms, "longest wait of an acknowledgment in ms", KNOB_INT, 40, 0, 500),
		KNOB(connect_ack_us, "longest wait of the acknowledgment that ends a connect for "
		    "data or FIN to go with it, on a netisr that polls or is attached to, in us",
		    KNOB_INT, 100, 0, 40000),
		KNOB(keepidle_s, "seconds without a segment before keepalive probes", KNOB_INT,
		    7200, 1, 1000000),
		KNOB(keepintvl_s, "seconds between keepalive probes", KNOB_INT, 75, 1, 1000000),
		KNOB(keepcnt, "unanswered keepalive probes that end a connection", KNOB_INT,
		    9, 1, 127),
		KNOB(init_cwnd, "initial congestion window in segments", KNOB_INT, 10, 1, 1000),
		KNOB(sack, "offer and accept selective acknowledgments", KNOB_BOOL, 1, 0, 1),
		KNOB(timestamps, "offer and accept timestamps", KNOB_BOOL, 1, 0, 1),
		KNOB(window_scaling, "offer and accept window scaling", KNOB_BOOL, 1, 0, 1),
		KNOB(max_pcbs, "connections a netisr", KNOB_INT, 1 << 20, 1, TCP_HARD_MAX_PCBS),
		KNOB(max_synq, "half-open connections a netisr", KNOB_INT,
		    8192, 1, TCP_HARD_MAX_SYNQ),
		KNOB(max_timewait, "TIME_WAIT records a netisr", KNOB_INT,
		    262144, 1, TCP_HARD_MAX_TW),
		KNOB(max_orphans, "closed but unfinished connections a netisr", KNOB_INT,
		    65536, 0, TCP_HARD_MAX_PCBS),
		KNOB(challenge_per_s, "challenge ACKs a second and netisr, about", KNOB_INT,
		    1000, 1, 1000000),
		KNOB(fin_wait2_ms, "longest FIN_WAIT_2 of a closed connection in ms", KNOB_INT,
		    60000, 1, 3600000),
		KNOB(rcvbuf_max, "largest receive buffer in bytes; window scale is chosen for it",
		    KNOB_INT, 4 << 20, 4096, 1 << 30),
		KNOB(initial_window, "first receive window in bytes", KNOB_INT,
		    65536, 2048, 1 << 24),
		KNOB(autotune, "raise receive windows that are the bottleneck", KNOB_BOOL, 1, 0, 1),
		KNOB(tw_reuse, "let a connect take over a TIME_WAIT record after 1 s", KNOB_BOOL,
		    1, 0, 1),
		KNOB(tso, "hand large segments to devices that cut them", KNOB_BOOL, 1, 0, 1),
	};

	return knob_register(s, knobs, ARRAY_LEN(knobs));
}

/* ---- set-up ---- */

static const struct ip_proto tcp_proto = {
	.input = tcp_in,
	.error = tcp_icmp_error,
};

static int
fail_init(char *err, size_t err_size, int rc)
{
	snprintf(err, err_size, "tcp: tables: %s; free some memory", strerror(-rc));
	return rc;
}

static int
stack_init(struct darter_stack *s, char *err, size_t err_size)
{
	int rc = -ENOMEM;

	s->tcp = calloc(1, sizeof(*s->tcp));
	if (s->tcp != NULL)
		rc = register_knobs(s);
	if (rc < 0) {
		free(s->tcp);
		s->tcp = NULL;
		return fail_init(err, err_size, rc);
	}
	ip_register(s, IPPROTO_TCP, &tcp_proto);
	return 0;
}

static void
stack_fini(struct darter_stack *s)
{
	free(s->tcp);
	s->tcp = NULL;
}

static void
forget_timer(void *arg, struct tcp_pcb *p)
{
	struct netisr *n = arg;

	timer_disarm(&n->wheel, &p->timer);
}

/* Lower layers' timers may hang in the wheel beside ours: none stays when its memory goes. */
static void
forget_timers(struct netisr *n)
{
	struct tcp_netisr *tn = n->tcp;
	struct tcp_syn *e;
	unsigned i;

	if (tn->table.bucket != NULL)
		tcp_table_visit(&tn->table, forget_timer, n);
	for (i = 0; tn->syn_bucket != NULL && i < TCP_SYN_BUCKETS; i++)
		for (e = tn->syn_bucket[i]; e != NULL; e = e->hash_next)
			timer_disarm(&n->wheel, &e->timer);
	timer_disarm(&n->wheel, &tn->tw.timer);
	timer_disarm(&n->wheel, &tn->sweep);
}

static void
netisr_fini(struct netisr *n)
{
	struct tcp_netisr *tn = n->tcp;

	if (tn == NULL)
		return;
	forget_timers(n);
	tcp_table_fini(&tn->table);
	tcp_tw_fini(tn);
	slab_fini(&tn->pcbs);
	slab_fini(&tn->reasses);
	slab_fini(&tn->syns);
	free(tn->syn_bucket);
	free(tn);
	n->tcp = NULL;
}

static int
init_slabs(struct tcp_netisr *tn)
{
	int rc = slab_init(&tn->pcbs, sizeof(struct tcp_pcb), CACHELINE_BYTES, TCP_HARD_MAX_PCBS);

	if (rc == 0)
		rc = slab_init(&tn->reasses, sizeof(struct tcp_reass), 0, TCP_HARD_MAX_PCBS);
	if (rc == 0)
		rc = slab_init(&tn->syns, sizeof(struct tcp_syn), 0, TCP_HARD_MAX_SYNQ);
	return rc;
}

static int
netisr_init(struct netisr *n, char *err, size_t err_size)
{
	struct tcp_netisr *tn = calloc(1, sizeof(*tn));
	int rc;

	if (tn == NULL)
		return fail_init(err, err_size, -ENOMEM);
	n->tcp = tn;
	tn->n = n;
	tn->touched_end = &tn->touched;
	tcp_sweep_init(tn);
	rc = tcp_tw_init(tn);
	if (rc == 0)
		rc = tcp_table_init(&tn->table);
	if (rc == 0)
		rc = init_slabs(tn);
	if (rc == 0) {
		tn->syn_bucket = calloc(TCP_SYN_BUCKETS, sizeof(struct tcp_syn *));
		rc = tn->syn_bucket != NULL ? 0 : -ENOMEM;
	}
	if (rc < 0) {
		netisr_fini(n);
		return fail_init(err, err_size, rc);
	}
	return 0;
}

/* ---- the round ---- */

void
tcp_touch(struct netisr *n, struct tcp_pcb *p)
{
	struct tcp_netisr *tn = n->tcp;

	if (p->flags & TCPF_TOUCHED)
		return;
	p->flags |= TCPF_TOUCHED;
	p->touched_next = NULL;
	if (unlikely(!timer_is_armed(&tn->sweep)))
		tcp_sweep_start(n);
	*tn->touched_end = p;
	tn->touched_end = &p->touched_next;
}

void
tcp_rollup(struct netisr *n)
{
	struct tcp_netisr *tn = n->tcp;
	struct tcp_pcb *p;
	uint32_t events;

	while ((p = tn->touched) != NULL) {
		tn->touched = p->touched_next;
		if (tn->touched == NULL)
			tn->touched_end = &tn->touched;
		p->flags &= ~(uint32_t)TCPF_TOUCHED;
		tcp_out(n, p);
		if (p->flags & TCPF_GONE) {
			tcp_pcb_finish(n, p);
			continue;
		}
		events = p->events;
		p->events = 0;
		if (events != 0 && !(p->flags & TCPF_CLOSED))
			n->stack->sockhalf_ops->event(p->sh, events);
	}
}

bool
tcp_may_challenge(struct netisr *n)
{
	struct tcp_netisr *tn = n->tcp;
	uint32_t per_s;

	if (time_reached(n->now, tn->challenge_until)) {
		per_s = (uint32_t)knob_get(&tcp_knobs(n)->challenge_per_s);
		tn->challenge_until = time_add_us(n->now, US_PER_SEC);
		tn->challenge_left = (per_s + 1) / 2 + rng_below(&n->rng, per_s);
	}
	if (tn->challenge_left == 0) {
		NETISR_COUNT(n, CTR_tcp_challenge_limited);
		return false;
	}
	tn->challenge_left--;
	return true;
}

void
tcp_owe_challenge(struct netisr *n, struct tcp_pcb *p)
{
	if (!tcp_may_challenge(n))
		return;
	if (p->todo.challenge_acks < UINT16_MAX)
		p->todo.challenge_acks++;
	tcp_touch(n, p);
}

void
tcp_owe_dup_ack(struct netisr *n, struct tcp_pcb *p)
{
	if (p->todo.dup_acks < UINT16_MAX)
		p->todo.dup_acks++;
	tcp_touch(n, p);
}

/* ---- operations posted by the application ---- */

static void
apply_options(struct netisr *n, struct tcp_pcb *p)
{
	/* SO_RCVBUF bounds what auto-tuning may reach; the ring has what was granted */
	atomic_store_explicit(&p->sh->rx.cap_bytes, p->rcv_grant_bytes, memory_order_relaxed);
	tcp_keep_update(n, p);
	tcp_owe(n, p, TODO_OUT);
}

static void
ops_for_pcb(struct netisr *n, struct tcp_pcb *p, uint32_t ops)
{
	if (ops & SOCK_OP_SEND)
		tcp_owe(n, p, TODO_OUT);
	if (ops & SOCK_OP_WINDOW)
		tcp_owe(n, p, TODO_WINDOW);
	if (ops & SOCK_OP_OPTION)
		apply_options(n, p);
	if (ops & SOCK_OP_SHUTDOWN)
		tcp_op_shutdown(n, p);
}

static void
handle_ops(struct netisr *n, struct sockhalf *sh, uint32_t ops)
{
	struct tcp_pcb *p;

	if (sockhalf_state(sh) & SH_LISTENING)
		return;		/* no pcb hangs there, and its end has messages of its own */
	if ((ops & SOCK_OP_CONNECT) && !tcp_op_connect(n, sh, ops))
		return;
	p = atomic_load_explicit(&sh->pcb, memory_order_relaxed);
	if (p != NULL && !(p->flags & TCPF_GONE))
		ops_for_pcb(n, p, ops);
	if (ops & SOCK_OP_CLOSE)
		tcp_op_close(n, sh);
}

static int
attach(struct sockhalf *sh UNUSED)
{
	/* born at home: nothing exists before the first packet (DESIGN.md, law 2) */
	return 0;
}

const struct ulp_ops tcp_ulp = {
	.proto = IPPROTO_TCP,
	.attach = attach,
	.bind = tcp_app_bind,
	.listen = tcp_app_listen,
	.unlisten = tcp_app_unlisten,
	.connect = tcp_app_connect,
	.disconnect = NULL,
	.ops = handle_ops,
	.close = tcp_app_close,
	.setopt = tcp_app_setopt,
	.getopt = tcp_app_getopt,
};

const struct layer tcp_layer = {
	.name = "tcp",
	.stack_init = stack_init,
	.stack_fini = stack_fini,
	.netisr_init = netisr_init,
	.netisr_fini = netisr_fini,
	.rollup = tcp_rollup,
	.message = { [MSG_LISTENER] = tcp_on_listener_message },
};
