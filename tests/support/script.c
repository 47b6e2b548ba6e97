/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scene of a script: registration, set-up, the handshake behind established(), questions about
 * the stack's state, and the end, where every connection is reset and the stack must be empty.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <darter/darter.h>

#include "runtime/knob.h"
#include "runtime/netisr.h"

#include "support/script.h"
#include "support/script_priv.h"

#define SCRIPTS_MAX		512
#define PEER_TS_START		UINT32_C(0xfffffc18)	/* TSval wraps one second into a script */
#define END_ADVANCE_MS 150000 /* past TIME_WAIT and every linger of a dead connection */

struct entry {
	const char *name;
	const struct teststack_opts *opts;
	script_fn *fn;
};

static struct entry entries[SCRIPTS_MAX];
static unsigned n_entries;

void
script_register(const char *name, const struct teststack_opts *opts, script_fn *fn)
{
	if (n_entries == SCRIPTS_MAX)
		abort();
	entries[n_entries++] = (struct entry){ name, opts, fn };
}

unsigned
script_count(void)
{
	return n_entries;
}

const char *
script_name(unsigned i)
{
	return entries[i].name;
}

unsigned
script_netisrs(unsigned i)
{
	return entries[i].opts->netisrs;
}

void
script_fail(struct script *s, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_error("%s:%d: %s (%s) at %.3f ms\n%s\n", s->place.file, s->place.line, s->name,
	    s->variant, (double)teststack_elapsed_us(&s->ts) / 1000.0, text);
	_fail(s->place.file, s->place.line);
	abort();	/* _fail does not return, but is not declared so */
}

static void
conn_init(struct script *s, unsigned i)
{
	struct conn *c = &s->conns[i];

	memset(c, 0, sizeof(*c));
	c->fd = -1;
	c->faddr = TEST_PEER_IP;
	c->fport = (uint16_t)(SCRIPT_PEER_PORT + i);
	c->lport = SCRIPT_LISTEN_PORT;
	c->irs = s->isn_base + i;
	c->wnd = 65535;
	c->mss = 1460;
	c->wscale = SEG_NONE;
	c->stack_wscale = SEG_NONE;
	c->ts_val = PEER_TS_START;
	c->app_wr = 1;
	c->app_rd = 1;
}

struct script *
script_begin(unsigned i, const char *variant, uint32_t wrap, unsigned netisrs)
{
	struct script *s = calloc(1, sizeof(*s));
	unsigned k;

	if (s == NULL)
		abort();
	s->name = entries[i].name;
	s->variant = variant;
	s->isn_base = wrap - SCRIPT_ISN_BELOW;
	s->opts = *entries[i].opts;
	if (netisrs != 0)
		s->opts.netisrs = netisrs;
	s->place = (struct place){ "set-up", 0 };
	for (k = 0; k < SCRIPT_CONNS; k++)
		conn_init(s, k);
	s->c = &s->conns[0];
	s->lfd = -1;
	s->ufd = -1;
	s->dup_fd = -1;
	teststack_init(&s->ts, &s->opts, 0);
	darter_stack_use(s->ts.s);
	s->mark_us = teststack_now(&s->ts).us;
	return s;
}

void
script_run(struct script *s, unsigned i)
{
	entries[i].fn(s);
}

static void
close_descriptors(struct script *s)
{
	unsigned k;

	for (k = 0; k < SCRIPT_CONNS; k++) {
		if (s->conns[k].fd >= 0)
			script_close_fd(&s->ts, s->conns[k].fd);
		s->conns[k].fd = -1;
	}
	if (s->lfd >= 0)
		script_close_fd(&s->ts, s->lfd);
	if (s->ufd >= 0)
		script_close_fd(&s->ts, s->ufd);
	if (s->dup_fd >= 0)
		script_close_fd(&s->ts, s->dup_fd);
	s->lfd = -1;
	s->ufd = -1;
	s->dup_fd = -1;
}

struct live {
	struct tcp_conn_info info[SCRIPT_CONNS];
	unsigned count;
};

static void
note_live(void *arg, const struct tcp_conn_info *i)
{
	struct live *l = arg;

	if (i->tuple.fport != 0 && l->count < SCRIPT_CONNS)
		l->info[l->count++] = *i;
}

/*
 * Ends what is still open as a peer would that has lost its state: an exact RST (RFC 9293 3.10.7.4,
 * second step).
 */
static void
reset_live(struct script *s)
{
	struct live l = { .count = 0 };
	uint8_t frame[256];
	struct conn c;
	unsigned k;

	for (k = 0; k < s->ts.s->n_netisrs; k++) {
		struct netisr *n = s->ts.s->netisr[k];

		assert_true(netisr_take(n));
		tcp_visit(n, note_live, &l);
		netisr_give(n);
	}
	for (k = 0; k < l.count; k++) {
		const struct tcp_conn_info *i = &l.info[k];

		memset(&c, 0, sizeof(c));
		c.faddr = be32_to_cpu(i->tuple.foreign.v4);
		c.fport = i->tuple.fport;
		c.lport = i->tuple.lport;
		s->c = &c;
		if (i->state == TCP_SYN_SENT)
			wire_dev_inject(s->ts.wire, 0, frame, script_build(s, &RSTACK(0,
			    (int64_t)(uint32_t)(i->iss.v + 1)), frame, sizeof(frame)));
		else
			wire_dev_inject(s->ts.wire, 0, frame,
			    script_build(s, &RST((int64_t)i->rcv_nxt.v), frame, sizeof(frame)));
	}
	s->c = &s->conns[0];
	teststack_run(&s->ts);
}

/*
 * The script has said all it wants: nothing unasked may be on the wire, and nothing may be left in
 * the stack.
 */
void
script_end(struct script *s)
{
	s->place = (struct place){ "end of script", 0 };
	script_stack_silent(s, s->place, 0);
	close_descriptors(s);
	reset_live(s);
	teststack_advance(&s->ts, END_ADVANCE_MS * US_PER_MS);
	wire_dev_clear(s->ts.wire);
	if (teststack_tcp_count(&s->ts) != 0)
		script_fail(s, "%u connections are left after everything was closed and reset",
		    teststack_tcp_count(&s->ts));
	teststack_expect_no_leak(&s->ts);
}

void
script_discard(struct script *s)
{
	if (s->ts.s != NULL) {
		s->ts.wire->tx_room = UINT32_MAX;
		close_descriptors(s);
	}
	darter_stack_use(NULL);
	teststack_fini(&s->ts);
	free(s);
}

void
script_use_conn(struct script *s, unsigned i)
{
	assert_true(i < SCRIPT_CONNS);
	s->c = &s->conns[i];
}

/* ---- questions ---- */

struct wanted {
	const struct conn *c;
	struct tcp_conn_info *info;
	bool found;
};

static void
match_conn(void *arg, const struct tcp_conn_info *i)
{
	struct wanted *w = arg;

	if (i->tuple.lport != w->c->lport || i->tuple.fport != w->c->fport ||
	    be32_to_cpu(i->tuple.foreign.v4) != w->c->faddr)
		return;
	*w->info = *i;
	w->found = true;
}

bool
script_conn_info(struct script *s, struct tcp_conn_info *ret_info)
{
	struct wanted w = { .c = s->c, .info = ret_info };
	unsigned k;

	for (k = 0; k < s->ts.s->n_netisrs && !w.found; k++) {
		struct netisr *n = s->ts.s->netisr[k];

		assert_true(netisr_take(n));
		tcp_visit(n, match_conn, &w);
		netisr_give(n);
	}
	return w.found;
}

void
script_state(struct script *s, struct place at, enum tcp_state want)
{
	struct tcp_conn_info i;
	enum tcp_state got = TCP_CLOSED;

	s->place = at;
	teststack_run(&s->ts);
	if (script_conn_info(s, &i))
		got = i.state;
	if (got != want)
		script_fail(s, "wanted state %s\n   got state %s", tcp_state_name(want),
		    tcp_state_name(got));
}

uint64_t
script_counter(struct script *s, const char *name)
{
	int c = counter_find(name);

	if (c < 0)
		script_fail(s, "there is no counter %s", name);
	return stack_counter(s->ts.s, (enum counter)c);
}

void
script_counts(struct script *s, struct place at, const char *name, uint64_t want)
{
	uint64_t got;

	s->place = at;
	got = script_counter(s, name);
	if (got != want)
		script_fail(s, "wanted %s = %" PRIu64 "\n   got %" PRIu64, name, want, got);
}

void
script_sysctl(struct script *s, struct place at, const char *name, const char *value)
{
	char err[256] = "";

	s->place = at;
	if (knob_set(s->ts.s, name, value, err, sizeof(err)) != 0)
		script_fail(s, "%s = %s: %s", name, value, err);
}

/* ---- established() ---- */

static void
apply_setup(struct conn *c, const struct script_setup *o)
{
	if (o->mss != 0)
		c->mss = o->mss;
	if (o->wscale != 0)
		c->wscale = o->wscale > 0 ? o->wscale : 0;
	c->sack_ok = o->sack;
	c->ts = o->ts;
}

static void
open_passive(struct script *s, struct place at, const struct script_setup *o)
{
	if (s->lfd < 0)
		script_app_listens(s, at, 128, o->rcvbuf);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	script_advance_ms(s, at, o->rtt_ms);
	if (o->wnd != 0)
		s->c->wnd = o->wnd;
	peer_sends(s, ACK(1));
	script_app_accepts(s, at, 0);
}

static void
open_active(struct script *s, struct place at, const struct script_setup *o)
{
	s->c->lport = (uint16_t)(SCRIPT_ACTIVE_LPORT + (s->c - s->conns));
	s->c->fport = (uint16_t)(SCRIPT_ACTIVE_FPORT + (s->c - s->conns));
	script_app_connects(s, at, TEST_PEER_IP, EINPROGRESS);
	stack_sends(s, SYN());
	script_advance_ms(s, at, o->rtt_ms);
	peer_sends(s, SYNACK());
	stack_sends(s, ACK(1));
	if (o->wnd != 0) {
		/* the SYN's window is never scaled (RFC 7323 2.2): tell the wanted one */
		s->c->wnd = o->wnd;
		peer_sends(s, ACK(1));
	}
}

void
script_established(struct script *s, struct place at, const struct script_setup *o)
{
	struct tcp_conn_info i;

	s->place = at;
	apply_setup(s->c, o);
	if (o->active)
		open_active(s, at, o);
	else
		open_passive(s, at, o);
	script_state(s, at, TCP_ESTABLISHED);
	if (o->sndbuf != 0)
		script_app_sets(s, at, SOL_SOCKET, SO_SNDBUF, &o->sndbuf, sizeof(o->sndbuf));
	if (o->nodelay)
		app_sets_int(s, IPPROTO_TCP, TCP_NODELAY, 1);
	script_stack_silent(s, at, 0);
	if (o->cwnd_segs != 0 && (!script_conn_info(s, &i) || i.cwnd_bytes < o->cwnd_segs * i.mss))
		script_fail(s, "the initial window is %u bytes, the script needs %u segments of %u",
		    i.cwnd_bytes, o->cwnd_segs, i.mss);
}
