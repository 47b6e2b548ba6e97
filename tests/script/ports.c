/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local ports on the wire: who gets one, who is refused and when, on which netisr the connection
 * ends up (RFC 6056, RFC 6191; Linux for the socket options; cases S05 c, S06).
 */
#include <stdlib.h>

#include <darter/event.h>
#include <darter/socket.h>

#include "base/ipaddr.h"
#include "runtime/netisr.h"
#include "wire/ether.h"
#include "wire/ip4.h"

#include "support/script.h"

/* not to be had together with the stack's names */
#define IP_BIND_ADDRESS_NO_PORT	24
#define IP_LOCAL_PORT_RANGE	51

/* ---- calls; a call on a core is made by its holder ---- */

static void
on_core(struct script *s, unsigned core)
{
	assert_true(netisr_take(s->ts.s->netisr[core]));
}

static void
off_core(struct script *s, unsigned core)
{
	netisr_give(s->ts.s->netisr[core]);
	teststack_run(&s->ts);
}

static int
make_socket(struct script *s)
{
	int fd;

	on_core(s, 0);
	fd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	off_core(s, 0);
	assert_true(fd >= 0);
	return fd;
}

static void
set_int(struct script *s, int fd, int level, int name, int v)
{
	on_core(s, 0);
	assert_int_equal(darter_setsockopt(fd, level, name, &v, sizeof(v)), 0);
	off_core(s, 0);
}

static int
bind_to(struct script *s, int fd, uint32_t addr, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(addr) };
	int rc;

	on_core(s, 0);
	rc = darter_bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 ? 0 : errno;
	off_core(s, 0);
	return rc;
}

static struct endpoint
name_of(struct script *s, int fd)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);

	on_core(s, 0);
	assert_int_equal(darter_getsockname(fd, (struct sockaddr *)&a, &len), 0);
	off_core(s, 0);
	return (struct endpoint){ ipaddr_v4_cpu(ntohl(a.sin_addr.s_addr)), ntohs(a.sin_port) };
}

/* Begins on `core`; 0: under way, else the error that connect or SO_ERROR tells. */
static int
connect_on(struct script *s, unsigned core, int fd, uint32_t addr)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(80),
		.sin_addr.s_addr = htonl(addr) };
	socklen_t len = sizeof(int);
	int e = 0;

	on_core(s, core);
	if (darter_connect(fd, (struct sockaddr *)&to, sizeof(to)) != -1 || errno != EINPROGRESS)
		e = errno;
	off_core(s, core);
	if (e != 0)
		return e;
	on_core(s, 0);
	assert_int_equal(darter_getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len), 0);
	off_core(s, 0);
	return e;
}

static void
close_fd(struct script *s, int fd)
{
	on_core(s, 0);
	assert_int_equal(darter_close(fd), 0);
	off_core(s, 0);
}

/* ---- the wire ---- */

/* The SYN that was sent becomes connection `i`; its tuple as this host sees it. */
static struct tuple
take_syn(struct script *s, unsigned i)
{
	struct wire_frame *f = stack_sent_frame(s);
	struct tuple t;
	struct ether_view eth;
	struct ip4_view ip;
	struct tcp_view v;

	assert_non_null(f);
	assert_int_equal(ether_parse(f->bytes, f->len, &eth), WIRE_OK);
	assert_int_equal(ip4_parse(f->bytes + eth.hdr_bytes, f->len - eth.hdr_bytes, &ip), WIRE_OK);
	assert_int_equal(tcp_parse(ip.payload, ip.payload_bytes, &v), WIRE_OK);
	assert_int_equal(v.flags, TH_SYN);
	t = (struct tuple){ ipaddr_v4(ip.src), ipaddr_v4(ip.dst), v.sport, v.dport };
	use_conn(s, i);
	s->c->faddr = be32_to_cpu(ip.dst);
	s->c->fport = v.dport;
	s->c->lport = v.sport;
	s->c->iss = v.seq;
	s->c->iss_known = true;
	s->c->snd_nxt = 0;
	s->c->rcv_nxt = 1;
	free(f);
	return t;
}

/* The peer refuses connection i. */
static void
refuse(struct script *s, unsigned i, int fd)
{
	use_conn(s, i);
	peer_sends(s, RSTACK(0, 1));
	close_fd(s, fd);
}

/* ---- names ---- */

/* Linux: IP_BIND_ADDRESS_NO_PORT leaves the port to connect */
SCRIPT(bind_to_an_address_alone_has_no_port_until_connect)
{
	int fd = make_socket(s);

	set_int(s, fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	assert_int_equal(bind_to(s, fd, TEST_STACK_IP, 0), 0);
	assert_int_equal(name_of(s, fd).port, 0);
	assert_true(name_of(s, fd).addr.v4.raw == htonl(TEST_STACK_IP));
	/* nothing is taken, so it may be named again */
	assert_int_equal(bind_to(s, fd, TEST_STACK_IP, 0), 0);
	assert_int_equal(connect_on(s, 0, fd, TEST_PEER_IP), 0);
	assert_int_equal(take_syn(s, 1).lport, name_of(s, fd).port);
	assert_int_equal(bind_to(s, fd, TEST_STACK_IP, 0), EINVAL);
	refuse(s, 1, fd);
}

/* … and a second attempt draws another one */
SCRIPT(refused_connect_of_an_address_alone_draws_again)
{
	int fd = make_socket(s);
	struct tuple a, b;

	set_int(s, fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	assert_int_equal(bind_to(s, fd, TEST_STACK_IP, 0), 0);
	assert_int_equal(connect_on(s, 0, fd, TEST_PEER_IP), 0);
	a = take_syn(s, 1);
	peer_sends(s, RSTACK(0, 1));
	assert_int_equal(connect_on(s, 0, fd, TEST_PEER_IP), ECONNREFUSED);
	assert_int_equal(connect_on(s, 0, fd, TEST_PEER_IP), 0);
	b = take_syn(s, 1);
	assert_int_not_equal(a.lport, b.lport);
	refuse(s, 1, fd);
}

/* … or to listen */
SCRIPT(listen_of_an_address_alone_draws_a_port)
{
	int fd = make_socket(s);

	set_int(s, fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	assert_int_equal(bind_to(s, fd, TEST_STACK_IP, 0), 0);
	on_core(s, 0);
	assert_int_equal(darter_listen(fd, 1), 0);
	off_core(s, 0);
	assert_in_range(name_of(s, fd).port, 32768, 60999);
	close_fd(s, fd);
}

/* Linux 6.3: IP_LOCAL_PORT_RANGE, lower half first, upper half last */
SCRIPT(socket_with_a_port_range_draws_from_it)
{
	uint32_t range = 40000 | 40003u << 16, got = 0;
	socklen_t len = sizeof(got);
	int fd[6], i, seen = 0;

	for (i = 0; i < 6; i++) {
		fd[i] = make_socket(s);
		set_int(s, fd[i], IPPROTO_IP, IP_LOCAL_PORT_RANGE, (int)range);
	}
	on_core(s, 0);
	assert_int_equal(darter_getsockopt(fd[0], IPPROTO_IP, IP_LOCAL_PORT_RANGE, &got, &len), 0);
	assert_int_equal(got, range);
	range = 40003 | 40000u << 16;
	assert_int_equal(darter_setsockopt(fd[0], IPPROTO_IP, IP_LOCAL_PORT_RANGE, &range, 4), -1);
	assert_int_equal(errno, EINVAL);
	off_core(s, 0);
	/* one by bind, three by connect, and that is all */
	assert_int_equal(bind_to(s, fd[0], TEST_STACK_IP, 0), 0);
	seen |= 1 << (name_of(s, fd[0]).port - 40000);
	for (i = 1; i < 4; i++) {
		assert_int_equal(connect_on(s, 0, fd[i], TEST_PEER_IP), 0);
		seen |= 1 << (take_syn(s, (unsigned)i).lport - 40000);
	}
	assert_int_equal(seen, 15);
	assert_int_equal(connect_on(s, 0, fd[4], TEST_PEER_IP), EADDRNOTAVAIL);
	assert_int_equal(bind_to(s, fd[5], TEST_STACK_IP, 0), EADDRINUSE);
	for (i = 1; i < 4; i++)
		refuse(s, (unsigned)i, fd[i]);
	close_fd(s, fd[0]);
	close_fd(s, fd[4]);
	close_fd(s, fd[5]);
}

/* ---- bind against connections ---- */

/* Binds D:port with SO_REUSEADDR or without, and lets go. */
static int
may_bind(struct script *s, uint16_t port, int reuseaddr)
{
	int fd = make_socket(s), rc;

	set_int(s, fd, SOL_SOCKET, SO_REUSEADDR, reuseaddr);
	rc = bind_to(s, fd, TEST_STACK_IP, port);
	close_fd(s, fd);
	return rc;
}

/* Case S05 c; Linux: a port in TIME_WAIT is in use as its connection's was */
SCRIPT(port_is_in_use_from_connect_to_the_end_of_time_wait)
{
	established(s, .active = true);
	assert_int_equal(may_bind(s, SCRIPT_ACTIVE_LPORT, 0), EADDRINUSE);
	app_closes(s);
	stack_sends(s, FIN(1));
	peer_sends(s, FIN(1, .ack = 2));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_TIME_WAIT);
	assert_int_equal(may_bind(s, SCRIPT_ACTIVE_LPORT, 0), EADDRINUSE);
	assert_int_equal(may_bind(s, SCRIPT_ACTIVE_LPORT, 1), EADDRINUSE);
	assert_int_equal(may_bind(s, SCRIPT_ACTIVE_LPORT + 1, 0), 0);
	stack_silent_ms(s, 62000);
	assert_int_equal(may_bind(s, SCRIPT_ACTIVE_LPORT, 0), 0);
}

/* A server that starts again: its children's TIME_WAIT keeps it out without SO_REUSEADDR */
SCRIPT(port_of_accepted_connections_is_in_use_after_the_listener_is_gone)
{
	established(s);
	app_closes_listener(s);
	assert_int_equal(may_bind(s, SCRIPT_LISTEN_PORT, 0), EADDRINUSE);
	app_closes(s);
	stack_sends(s, FIN(1));
	peer_sends(s, FIN(1, .ack = 2));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_TIME_WAIT);
	assert_int_equal(may_bind(s, SCRIPT_LISTEN_PORT, 0), EADDRINUSE);
	stack_silent_ms(s, 62000);
	assert_int_equal(may_bind(s, SCRIPT_LISTEN_PORT, 0), 0);
}

/* ---- the range is spent ---- */

#define FOUR_CORES .netisrs = 4, .queues = 4, .packets = 1024

#define TEN_PORTS .sysctls = { "net.inet.ip.portrange.first=40000", \
	"net.inet.ip.portrange.last=40009" }

/* Ten connects from core 0, wherever they end up; the ports are all different. */
static void
spend_ten(struct script *s, int fd[10])
{
	unsigned i, seen = 0;

	for (i = 0; i < 10; i++) {
		fd[i] = make_socket(s);
		assert_int_equal(connect_on(s, 0, fd[i], TEST_PEER_IP), 0);
		seen |= 1u << (take_syn(s, 1 + i).lport - 40000);
	}
	assert_int_equal(seen, 0x3ff);
}

static void
refuse_ten(struct script *s, int fd[10])
{
	unsigned i;

	for (i = 0; i < 10; i++)
		refuse(s, 1 + i, fd[i]);
}

/* Case S06 b, c: refused at once and without a packet; uniqueness is per 4-tuple */
static void
range_is_spent(struct script *s)
{
	int fd[10], late, q;
	uint64_t probes;

	spend_ten(s, fd);
	late = make_socket(s);
	assert_int_equal(connect_on(s, 0, late, TEST_PEER_IP), EADDRNOTAVAIL);
	probes = script_counter(s, "port_probes");
	assert_int_equal(connect_on(s, 0, late, TEST_PEER_IP), EADDRNOTAVAIL);
	assert_true(script_counter(s, "port_probes") == probes);
	stack_silent(s);
	q = make_socket(s);
	assert_int_equal(connect_on(s, 0, q, TEST_THIRD_IP), 0);
	take_syn(s, 11);
	/* one comes back */
	refuse(s, 4, fd[3]);
	assert_int_equal(connect_on(s, 0, late, TEST_PEER_IP), 0);
	take_syn(s, 12);
	refuse(s, 12, late);
	refuse(s, 11, q);
	fd[3] = make_socket(s);
	assert_int_equal(connect_on(s, 0, fd[3], TEST_PEER_IP), 0);
	take_syn(s, 4);
	refuse_ten(s, fd);
}

SCRIPT_ON(range_of_one_core_is_spent_then_connect_fails_at_once, .netisrs = 1, TEN_PORTS)
{
	range_is_spent(s);
	counter_is(s, "port_spills", 0);
}

/* … and with other cores' shares */
SCRIPT_ON(range_of_four_cores_is_spent_then_connect_fails_at_once, FOUR_CORES,
    TEN_PORTS)
{
	range_is_spent(s);
	assert_true(script_counter(s, "port_spills") > 0);
}

/* ---- TIME_WAIT ---- */

#define ONE_PORT .sysctls = { "net.inet.ip.portrange.first=40000", \
	"net.inet.ip.portrange.last=40000" }

/* The only port goes to TIME_WAIT, with timestamps or without. */
static void
rest_the_port(struct script *s, bool ts)
{
	int fd = make_socket(s);

	assert_int_equal(connect_on(s, 0, fd, TEST_PEER_IP), 0);
	take_syn(s, 1);
	s->c->ts = ts;
	peer_sends(s, SYNACK(.ts = ts));
	stack_sends(s, ACK(1));
	close_fd(s, fd);
	stack_sends(s, FIN(1));
	s->c->snd_nxt = 1;
	peer_sends(s, FIN(1, .ack = 2));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_TIME_WAIT);
}

/* Case S06 e; RFC 6191: both ends have timestamps, TIME_WAIT is more than 1 s old */
SCRIPT_ON(only_port_is_at_rest_then_connect_takes_it_over_after_a_second, ONE_PORT)
{
	int fd;

	rest_the_port(s, true);
	advance_ms(s, 900);
	fd = make_socket(s);
	assert_int_equal(connect_on(s, 0, fd, TEST_PEER_IP), EADDRNOTAVAIL);
	advance_ms(s, 700);
	assert_int_equal(connect_on(s, 0, fd, TEST_PEER_IP), 0);
	assert_int_equal(take_syn(s, 1).lport, 40000);
	counter_is(s, "tcp_timewait_reused", 1);
	refuse(s, 1, fd);
}

/* Case S06 d: else it waits for the end */
SCRIPT_ON(only_port_is_at_rest_without_timestamps_then_connect_waits, ONE_PORT)
{
	int fd;

	rest_the_port(s, false);
	advance_ms(s, 55000);
	fd = make_socket(s);
	assert_int_equal(connect_on(s, 0, fd, TEST_PEER_IP), EADDRNOTAVAIL);
	advance_ms(s, 6000);
	assert_int_equal(connect_on(s, 0, fd, TEST_PEER_IP), 0);
	assert_int_equal(take_syn(s, 1).lport, 40000);
	refuse(s, 1, fd);
}

/* ---- sent on ---- */

#define HASHED .netisrs = 2, .queues = 2, .sysctls = { "net.inet.ip.portalgo=hash" }

/* Half of the connects belong to the other core, and complete there; no packet is steered. */
SCRIPT_ON(ports_are_hashed_then_connects_are_sent_on_and_complete, HASHED)
{
	unsigned i, away = 0, owner;
	struct tuple t;
	int fd;

	for (i = 0; i < 200; i++) {
		fd = make_socket(s);
		assert_int_equal(connect_on(s, 0, fd, TEST_PEER_IP), 0);
		t = take_syn(s, 1);
		owner = stack_owner(s->ts.s, &t)->id;
		away += owner == 1;
		peer_sends(s, SYNACK(.queue = owner));
		stack_sends(s, ACK(1));
		state_is(s, TCP_ESTABLISHED);
		assert_int_equal(name_of(s, fd).port, t.lport);
		s->c->snd_nxt = 1;
		peer_sends(s, RST(1, .queue = owner));
		close_fd(s, fd);
	}
	assert_in_range(away, 60, 140);
	counter_is(s, "tcp_connect_forwards", away);
	counter_is(s, "steered_pkts", 0);
	counter_is(s, "drop_tcp_no_pcb", 0);
}

/* What is called before the connect has arrived goes after it: here close, or data and close. */
SCRIPT_ON(call_follows_a_connect_that_is_sent_on, HASHED)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(80),
		.sin_addr.s_addr = htonl(TEST_PEER_IP) };
	unsigned i;
	int fd;

	for (i = 0; i < 40; i++) {
		fd = make_socket(s);
		on_core(s, 0);
		assert_int_equal(darter_connect(fd, (struct sockaddr *)&to, sizeof(to)), -1);
		assert_int_equal(errno, EINPROGRESS);
		if (i % 2 == 0)
			assert_int_equal(darter_shutdown(fd, SHUT_RDWR), 0);
		assert_int_equal(darter_close(fd), 0);
		off_core(s, 0);
		stack_sends_anything(s);
		assert_int_equal(teststack_tcp_count(&s->ts), 0);
	}
	assert_in_range(script_counter(s, "tcp_connect_forwards"), 5, 35);
}

/* A bound port may belong to another core each time. */
SCRIPT_ON(second_attempt_of_a_bound_socket_goes_to_another_core, FOUR_CORES)
{
	int fd = make_socket(s);
	uint32_t peers[] = { TEST_PEER_IP, TEST_THIRD_IP };
	unsigned i, moved = 0, owner, last = UINT32_MAX;
	struct tuple t;

	set_int(s, fd, SOL_SOCKET, SO_REUSEADDR, 1);
	assert_int_equal(bind_to(s, fd, TEST_STACK_IP, 5001), 0);
	for (i = 0; i < 4; i++) {
		assert_int_equal(connect_on(s, 0, fd, peers[i % 2]), 0);
		t = take_syn(s, 1);
		assert_int_equal(t.lport, 5001);
		owner = stack_owner(s->ts.s, &t)->id;
		moved += i > 0 && owner != last;
		last = owner;
		peer_sends(s, RSTACK(0, 1, .queue = owner));
		assert_int_equal(connect_on(s, 0, fd, peers[i % 2]), ECONNREFUSED);
	}
	assert_int_equal(moved, 3);
	counter_is(s, "tcp_connect_forwards", 3);
	close_fd(s, fd);
}
