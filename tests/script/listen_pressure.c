/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listeners under pressure, at the numbers of cases S07 and S12 d: twenty clients for a backlog of
 * four, a flood of SYNs with honest clients among them, an accept queue full of dead connections.
 */
#include "base/rng.h"
#include "runtime/netisr.h"

#include "support/script.h"

/* Gives the turn to connection i and lets its SYN be answered or not; true when it was. */
static bool
syn_of(struct script *s, unsigned i)
{
	use_conn(s, i);
	peer_sends(s, SYN(.seq = 0));
	return stack_sends_anything(s) > 0;
}

/* ---- S07 a ---- */

#define CLIENTS	20

/* What a client does next: it repeats what has not been acknowledged. */
static void
client_turn(struct script *s, unsigned i, bool *has_syn_ack)
{
	use_conn(s, i);
	if (!*has_syn_ack) {
		*has_syn_ack = syn_of(s, i);
		if (!*has_syn_ack)
			return;
	}
	if (s->c->stack_ack >= 101)
		return;
	peer_sends(s, ACK(1, .seq = 1), DATA(1, 101));
	stack_sends_anything(s);
	advance_ms(s, 50);
	stack_sends_anything(s);
}

/*
 * Case S07 a: nobody that got our SYN-ACK is reset because the queue is full; all twenty are served
 * in the end, by their own repetitions
 */
SCRIPT_ON(twenty_clients_of_a_backlog_of_four_are_all_served, .netisrs = 1)
{
	bool has_syn_ack[CLIENTS] = { false };
	unsigned round, i, queued = 0, accepted = 0;

	app_listens_backlog(s, 4);
	for (i = 0; i < CLIENTS; i++)
		client_turn(s, i, &has_syn_ack[i]);
	teststack_advance(&s->ts, 5 * US_PER_SEC);
	wire_dev_clear(s->ts.wire);
	for (i = 0; i < CLIENTS; i++) {
		use_conn(s, i);
		queued += s->c->stack_ack >= 101;
	}
	/* one more than the backlog, as on Linux */
	assert_int_equal(queued, 5);
	for (round = 0; round < CLIENTS && accepted < CLIENTS; round++) {
		for (i = 0; i < CLIENTS; i++) {
			use_conn(s, i);
			if (s->c->fd >= 0 || s->c->stack_ack < 101)
				continue;
			app_accepts(s);
			app_reads(s, 100);
			accepted++;
		}
		for (i = 0; i < CLIENTS; i++)
			client_turn(s, i, &has_syn_ack[i]);
	}
	assert_int_equal(accepted, CLIENTS);
	counter_is(s, "tcp_resets_sent", 0);
	/* late repetitions of SYN-ACKs are no business of this script */
	advance_ms(s, 1000);
	wire_dev_clear(s->ts.wire);
}

/* Case S07 b: backlog 0: one gets through, the next when that one was accepted */
SCRIPT(backlog_of_zero_takes_one_at_a_time)
{
	app_listens_backlog(s, 0);
	assert_true(syn_of(s, 0));
	peer_sends(s, ACK(1));
	assert_false(syn_of(s, 1));
	use_conn(s, 0);
	app_accepts(s);
	assert_true(syn_of(s, 1));
	peer_sends(s, ACK(1));
	app_accepts(s);
	state_is(s, TCP_ESTABLISHED);
	counter_is(s, "tcp_resets_sent", 0);
}

/* ---- S07 c, e ---- */

static uint32_t
half_open_of(struct script *s)
{
	uint32_t pcbs, half_open, timewait, sum = 0;
	unsigned i;

	for (i = 0; i < s->ts.s->n_netisrs; i++) {
		tcp_counts(s->ts.s->netisr[i], &pcbs, &half_open, &timewait);
		sum += half_open;
	}
	return sum;
}

/* A whole short conversation. */
static void
honest_client(struct script *s, unsigned i)
{
	use_conn(s, 1);
	s->c->fport = (uint16_t)(50000 + i);
	s->c->irs = 77 * i;
	s->c->iss_known = false;
	s->c->snd_nxt = s->c->rcv_nxt = 0;
	s->c->app_rd = s->c->app_wr = 1;
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, ACK(1));
	app_accepts(s);
	peer_sends(s, DATA(1, 11));
	app_reads(s, 10);
	peer_sends(s, RST(11));
	wire_dev_clear(s->ts.wire);
	app_closes(s);
}

static void
flood(struct script *s, unsigned syns, unsigned a_second)
{
	struct rng r;
	unsigned i;

	rng_init(&r, 7);
	app_listens(s);
	for (i = 0; i < syns; i++) {
		/* random hosts beyond the router: each SYN has a tuple of its own */
		peer_sends(s, SYN(.src = 0xc6336400 + rng_below(&r, 65536), .sport = 1024 +
		    rng_below(&r, 60000), .seq = rng_below(&r, 1u << 30)));
		assert_true(half_open_of(s) <= 256 * s->ts.s->n_netisrs);
		wire_dev_clear(s->ts.wire);
		if (i % a_second == a_second - 1) {
			honest_client(s, i / a_second);
			teststack_advance(&s->ts, US_PER_SEC);
			wire_dev_clear(s->ts.wire);
		}
	}
	counter_is(s, "tcp_resets_sent", 0);
	/* each SYN beyond the table's room has pushed an older entry out */
	if (syns > 1000)
		assert_true(script_counter(s, "drop_tcp_syn_full") >
		    syns - 2 * 256 * (uint64_t)(syns / a_second));
	/* case S07 e: five minutes later the table is empty */
	teststack_advance(&s->ts, 300 * US_PER_SEC);
	wire_dev_clear(s->ts.wire);
	assert_int_equal(half_open_of(s), 0);
	counter_is(s, "tcp_half_open", 0);
	assert_int_equal(teststack_tcp_count(&s->ts), 0);
	honest_client(s, 60000 - 50000);
}

#define FLOODED	.sysctls = { "net.inet.tcp.max_synq=256" }

/* Case S07 c: fifty, which crashed another stack */
SCRIPT_ON(fifty_unanswered_syns_are_harmless, FLOODED) { flood(s, 50, 10); }

/* Case S07 c: a hundred thousand, an honest client every second */
SCRIPT_ON(flood_of_a_hundred_thousand_syns_lets_honest_clients_in, FLOODED)
{
	flood(s, 100000, 5000);
}

/*
 * Case S07 d: the same SYN ten times within ten seconds: one entry, one ISS, beside the timer's own
 * repetitions
 */
SCRIPT(syn_repeated_for_ten_seconds_has_one_iss)
{
	unsigned i;

	app_listens(s);
	for (i = 0; i < 10; i++) {
		peer_sends(s, SYN());
		/* every answer is checked against the ISN of the first */
		stack_sends(s, SYNACK());
		assert_int_equal(half_open_of(s), 1);
		advance_ms(s, 1000);
		if (s->ts.wire->out.first != NULL)
			stack_sends(s, SYNACK());
	}
	peer_sends(s, ACK(1));
	app_accepts(s);
	assert_int_equal(half_open_of(s), 0);
}

/* ---- S12 d ---- */

/* Eight dead connections that nobody accepts leave room for one; a ninth makes others wait. */
SCRIPT_ON(dead_connections_do_not_eat_the_backlog_for_ever, .netisrs = 1)
{
	unsigned i;

	app_listens_backlog(s, 8);
	for (i = 0; i < 8; i++) {
		assert_true(syn_of(s, i));
		peer_sends(s, ACK(1));
		peer_sends(s, RST(1));
	}
	assert_true(syn_of(s, 8));
	peer_sends(s, ACK(1));
	state_is(s, TCP_ESTABLISHED);
	/* the queue is full now: the next one is not refused but waits */
	assert_false(syn_of(s, 9));
	for (i = 0; i < 8; i++) {
		use_conn(s, i);
		app_accepts(s);
		app_read_fails(s, ECONNRESET);
		app_closes(s);
	}
	use_conn(s, 8);
	app_accepts(s);
	assert_true(syn_of(s, 9));
	peer_sends(s, ACK(1));
	app_accepts(s);
	state_is(s, TCP_ESTABLISHED);
	counter_is(s, "tcp_resets_sent", 0);
}
