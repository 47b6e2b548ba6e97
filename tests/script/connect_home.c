/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Outgoing connections whose answers come in on another core's queue (case S01 a-d; laws 1 and 2).
 * Four netisrs; the device spreads by its own Toeplitz key and table, or not at all. Wherever an
 * answer is received it reaches the connection, and no reset is sent.
 */
#include <stdlib.h>

#include <darter/event.h>
#include <darter/socket.h>

#include "base/ipaddr.h"
#include "base/toeplitz.h"
#include "runtime/netisr.h"
#include "wire/ether.h"
#include "wire/ip4.h"

#include "support/script.h"

#define CORES		4
#define EACH		1000
#define RETA_SIZE	128

/* Where the device puts the peer's packets. */
enum spread {
	BY_STACK,	/* the device took over the stack's key and table */
	BY_KEY,		/* the default key and a table of 128 entries over four queues */
	BY_TWO,		/* the same over two queues */
	BY_ONE,		/* every entry was set to queue 0 */
};

static unsigned
queue_for(struct script *s, enum spread how, const struct tuple *t)
{
	static struct toeplitz key;
	uint32_t entry;

	if (how == BY_STACK)
		return stack_owner(s->ts.s, t)->id;
	if (how == BY_ONE)
		return 0;
	assert_int_equal(toeplitz_init(&key, toeplitz_key_microsoft, 40), 0);
	entry = toeplitz_tuple(&key, t) % RETA_SIZE;
	return entry % (how == BY_TWO ? 2 : CORES);
}

/* A connect on a core: what is called there is called by its holder. */
static int
connect_on(struct script *s, unsigned core, uint16_t lport)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(80),
		.sin_addr.s_addr = htonl(TEST_PEER_IP) };
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_port = htons(lport) };
	struct netisr *n = s->ts.s->netisr[core];
	int fd;

	assert_true(netisr_take(n));
	fd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	if (lport != 0)
		assert_int_equal(darter_bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(darter_connect(fd, (struct sockaddr *)&to, sizeof(to)), -1);
	assert_int_equal(errno, EINPROGRESS);
	netisr_give(n);
	return fd;
}

static int
error_of(struct script *s, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int e = -1;

	assert_true(netisr_take(s->ts.s->netisr[0]));
	assert_int_equal(darter_poll(&p, 1, 0), 1);
	assert_int_equal(p.revents, POLLOUT);
	assert_int_equal(darter_getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len), 0);
	netisr_give(s->ts.s->netisr[0]);
	return e;
}

/* The SYN that is on the wire becomes the current connection; its tuple as this host sees it. */
static struct tuple
take_syn(struct script *s)
{
	struct wire_frame *f = stack_sent_frame(s);
	struct tuple t = { ipaddr_v4_cpu(TEST_STACK_IP), ipaddr_v4_cpu(TEST_PEER_IP), 0, 80 };
	struct ether_view eth;
	struct ip4_view ip;
	struct tcp_view v;

	assert_non_null(f);
	assert_int_equal(ether_parse(f->bytes, f->len, &eth), WIRE_OK);
	assert_int_equal(ip4_parse(f->bytes + eth.hdr_bytes, f->len - eth.hdr_bytes, &ip), WIRE_OK);
	assert_int_equal(tcp_parse(ip.payload, ip.payload_bytes, &v), WIRE_OK);
	assert_int_equal(v.flags, TH_SYN);
	assert_int_equal(v.dport, 80);
	use_conn(s, 1);
	s->c->faddr = TEST_PEER_IP;
	s->c->fport = 80;
	s->c->lport = v.sport;
	s->c->iss = v.seq;
	s->c->iss_known = true;
	s->c->snd_nxt = 0;
	s->c->rcv_nxt = 1;
	free(f);
	t.lport = v.sport;
	return t;
}

static void
finish(struct script *s, int fd, uint16_t lport, unsigned queue)
{
	use_conn(s, 1);
	s->c->lport = lport;
	peer_sends(s, RST(1, .queue = queue));
	script_close_fd(&s->ts, fd);
}

/* Opens EACH connections from every core; the answers come in where `how` says. */
static void
open_from_all_cores(struct script *s, enum spread how)
{
	static int fd[CORES * EACH];
	static uint16_t lport[CORES * EACH];
	static unsigned queue[CORES * EACH];
	unsigned i;

	for (i = 0; i < CORES * EACH; i++) {
		struct tuple t;

		fd[i] = connect_on(s, i / EACH, 0);
		t = take_syn(s);
		/* the port was drawn so that the answer leads home */
		assert_int_equal(stack_owner(s->ts.s, &t)->id, i / EACH);
		lport[i] = t.lport;
		queue[i] = queue_for(s, how, &t);
		peer_sends(s, SYNACK(.queue = queue[i]));
		stack_sends(s, ACK(1, .seq = 1));
		assert_int_equal(error_of(s, fd[i]), 0);
	}
	counter_is(s, "tcp_resets_sent", 0);
	counter_is(s, "drop_tcp_no_pcb", 0);
	for (i = 0; i < CORES * EACH; i++)
		finish(s, fd[i], lport[i], queue[i]);
	stack_silent(s);
}

#define ON_FOUR(name) SCRIPT_ON(name, .netisrs = CORES, .queues = CORES, .packets = 2048)

/* Case S01 a: a device that agrees with the stack: nothing crosses cores */
ON_FOUR(connects_from_all_cores_are_answered_at_home)
{
	open_from_all_cores(s, BY_STACK);
	counter_is(s, "steered_pkts", 0);
}

/* Case S01 a: the device has a key of its own */
ON_FOUR(connects_from_all_cores_survive_another_hash)
{
	open_from_all_cores(s, BY_KEY);
	assert_true(script_counter(s, "steered_pkts") > CORES * EACH / 2);
}

/* Case S01 b: four cores, two queues */
SCRIPT_ON(connects_from_four_cores_survive_two_queues, .netisrs = CORES, .queues = 2,
    .packets = 2048)
{
	open_from_all_cores(s, BY_TWO);
	assert_true(script_counter(s, "steered_pkts") > CORES * EACH / 2);
}

/* Case S01 c: every entry of the device's table leads to queue 0 */
ON_FOUR(connects_from_all_cores_survive_a_rewritten_table)
{
	open_from_all_cores(s, BY_ONE);
	assert_true(script_counter(s, "steered_pkts") >= (CORES - 1) * EACH);
}

/* Case S01 d: the port was chosen by the application and belongs to another core */
ON_FOUR(connect_from_a_port_of_another_core_completes)
{
	unsigned from, home, found = 0;
	uint16_t port = 20000;

	for (from = 0; from < CORES; from++) {
		for (home = 0; home < CORES; home++) {
			struct tuple t = { ipaddr_v4_cpu(TEST_STACK_IP),
				ipaddr_v4_cpu(TEST_PEER_IP), 0, 80 };
			int fd;

			do
				t.lport = ++port;
			while (stack_owner(s->ts.s, &t)->id != home);
			fd = connect_on(s, from, t.lport);
			assert_int_equal(take_syn(s).lport, t.lport);
			peer_sends(s, SYNACK(.queue = from));
			stack_sends(s, ACK(1, .seq = 1));
			assert_int_equal(error_of(s, fd), 0);
			state_is(s, TCP_ESTABLISHED);
			counter_is(s, "tcp_resets_sent", 0);
			finish(s, fd, t.lport, from);
			found += from != home;
		}
	}
	assert_int_equal(found, CORES * (CORES - 1));
}
