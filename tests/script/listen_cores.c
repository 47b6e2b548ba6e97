/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening on all cores: accept queues per netisr and SO_REUSEPORT groups, on 1 to 8 netisrs
 * (cases S01 e and f, S03 d; DESIGN.md 4.1). Every client belongs to one address, from consecutive
 * ports, so its handshakes end on whichever netisr its tuple hashes to.
 */
#include <stdlib.h>

#include <darter/event.h>
#include <darter/socket.h>

#include "runtime/netisr.h"
#include "support/script.h"

#define CLIENTS		SCRIPT_CONNS
#define MEMBERS_MAX	8

/* A script on each number of netisrs that the design names; queues as the device may have. */
#define ON_CORES(fn) \
	static void fn(struct script *s); \
	SCRIPT_ON(fn##_on_1, .netisrs = 1, .queues = 1, .packets = 4096) { fn(s); } \
	SCRIPT_ON(fn##_on_2, .netisrs = 2, .queues = 2, .packets = 4096) { fn(s); } \
	SCRIPT_ON(fn##_on_3, .netisrs = 3, .queues = 2, .packets = 4096) { fn(s); } \
	SCRIPT_ON(fn##_on_4, .netisrs = 4, .queues = 4, .packets = 4096) { fn(s); } \
	SCRIPT_ON(fn##_on_7, .netisrs = 7, .queues = 4, .packets = 4096) { fn(s); } \
	SCRIPT_ON(fn##_on_8, .netisrs = 8, .queues = 1, .packets = 4096) { fn(s); } \
	static void fn(struct script *s)

/* … on one, two, and more netisrs than queues, where the number makes no other difference. */
#define ON_SOME_CORES(fn) \
	static void fn(struct script *s); \
	SCRIPT_ON(fn##_on_1, .netisrs = 1, .queues = 1, .packets = 4096) { fn(s); } \
	SCRIPT_ON(fn##_on_2, .netisrs = 2, .queues = 2, .packets = 4096) { fn(s); } \
	SCRIPT_ON(fn##_on_7, .netisrs = 7, .queues = 4, .packets = 4096) { fn(s); } \
	static void fn(struct script *s)

/* ---- the application: each of its threads is on a core ---- */

static void
on_core(struct script *s, unsigned core)
{
	assert_true(netisr_take(s->ts.s->netisr[core % s->ts.s->n_netisrs]));
}

static void
off_core(struct script *s)
{
	netisr_give(netisr_current());
	teststack_run(&s->ts);
}

static int
member(struct script *s, unsigned core, int backlog)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(SCRIPT_LISTEN_PORT) };
	int fd, on = 1;

	on_core(s, core);
	fd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	assert_int_equal(darter_setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
	assert_int_equal(darter_bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(darter_listen(fd, backlog), 0);
	off_core(s);
	return fd;
}

static void
closes(struct script *s, int fd)
{
	on_core(s, 0);
	assert_int_equal(darter_close(fd), 0);
	off_core(s);
}

static void
shuts(struct script *s, int fd)
{
	on_core(s, 0);
	assert_int_equal(darter_shutdown(fd, SHUT_RD), 0);
	off_core(s);
}

/* The client's number, -1 when none waits. Each comes once: its conn gets the descriptor. */
static int
accept_on(struct script *s, unsigned core, int lfd)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	int fd, client;

	on_core(s, core);
	fd = darter_accept4(lfd, (struct sockaddr *)&a, &len, SOCK_NONBLOCK);
	if (fd < 0)
		assert_int_equal(errno, EAGAIN);
	off_core(s);
	if (fd < 0)
		return -1;
	client = ntohs(a.sin_port) - SCRIPT_PEER_PORT;
	assert_in_range(client, 0, CLIENTS - 1);
	assert_int_equal(s->conns[client].fd, -1);
	s->conns[client].fd = fd;
	return client;
}

static unsigned
accept_all(struct script *s, unsigned core, int lfd)
{
	unsigned n = 0;

	while (accept_on(s, core, lfd) >= 0)
		n++;
	return n;
}

/* ---- clients ---- */

static void
half_handshake(struct script *s, unsigned i)
{
	use_conn(s, i);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
}

static void
handshakes(struct script *s, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		half_handshake(s, i);
		peer_sends(s, ACK(1));
		stack_silent(s);
	}
}

static unsigned
count_resets(struct script *s)
{
	return (unsigned)script_counter(s, "tcp_resets_sent");
}

/* ---- one listener ---- */

/* Case S01 e: who listens on one core and accepts on another gets everybody */
ON_CORES(clients_on_all_cores_are_accepted_on_any)
{
	int l = member(s, 0, 128);

	handshakes(s, 0, CLIENTS);
	assert_int_equal(accept_all(s, 1, l), CLIENTS);
	assert_int_equal(count_resets(s), 0);
	closes(s, l);
}

/* A core's own connections come first; then it takes from the longest of the other queues */
SCRIPT_ON(accept_takes_its_own_netisrs_connections_first, .netisrs = 4, .packets = 4096)
{
	struct tcp_conn_info info;
	unsigned waiting[4] = { 0 }, i, core;
	int l = member(s, 0, 128), client;

	handshakes(s, 0, CLIENTS);
	for (i = 0; i < CLIENTS; i++) {
		use_conn(s, i);
		assert_true(script_conn_info(s, &info));
		waiting[info.netisr]++;
	}
	for (i = 0; i < CLIENTS; i++) {
		unsigned longest = 0, own = waiting[2];

		client = accept_on(s, 2, l);
		assert_true(client >= 0);
		use_conn(s, (unsigned)client);
		assert_true(script_conn_info(s, &info));
		for (core = 0; core < 4; core++)
			longest = waiting[core] > longest ? waiting[core] : longest;
		if (own > 0)
			assert_int_equal(info.netisr, 2);
		else
			assert_int_equal(waiting[info.netisr], longest);
		waiting[info.netisr]--;
	}
	assert_true(script_counter(s, "accept_steals") > 0);
	closes(s, l);
}

/* Case S03 d: a burst of handshakes; level-triggered one a report, edge-triggered until EAGAIN */
ON_SOME_CORES(handshakes_of_one_burst_are_all_reported)
{
	struct epoll_event ev = { .events = EPOLLIN }, got;
	int l = member(s, 0, 128), ep, i;

	on_core(s, 0);
	ep = darter_epoll_create1(0);
	assert_int_equal(darter_epoll_ctl(ep, EPOLL_CTL_ADD, l, &ev), 0);
	off_core(s);
	handshakes(s, 0, 8);
	for (i = 0; i < 8; i++) {
		on_core(s, 0);
		assert_int_equal(darter_epoll_wait(ep, &got, 1, 0), 1);
		off_core(s);
		assert_true(accept_on(s, 0, l) >= 0);
	}
	on_core(s, 0);
	assert_int_equal(darter_epoll_wait(ep, &got, 1, 0), 0);
	ev.events |= EPOLLET;
	assert_int_equal(darter_epoll_ctl(ep, EPOLL_CTL_MOD, l, &ev), 0);
	off_core(s);
	handshakes(s, 8, 16);
	on_core(s, 0);
	assert_int_equal(darter_epoll_wait(ep, &got, 1, 0), 1);
	assert_int_equal(darter_epoll_wait(ep, &got, 1, 0), 0);
	off_core(s);
	assert_int_equal(accept_all(s, 0, l), 8);
	closes(s, ep);
	closes(s, l);
}

/* Case S07 a on many netisrs: the backlog is one over all of them, and nobody is reset */
ON_SOME_CORES(backlog_holds_over_all_netisrs)
{
	int l = member(s, 0, 4);
	unsigned i, answered = 0;

	for (i = 0; i < 20; i++) {
		use_conn(s, i);
		peer_sends(s, SYN());
		if (stack_sends_anything(s) > 0) {
			answered++;
			peer_sends(s, ACK(1));
			stack_sends_anything(s);
		}
	}
	assert_int_equal(answered, 5);	/* n + 1, as on Linux; the others try again */
	assert_int_equal(accept_all(s, 0, l), 5);
	for (i = 5; i < 10; i++) {
		half_handshake(s, i);
		peer_sends(s, ACK(1));
	}
	assert_int_equal(accept_all(s, 0, l), 5);
	assert_int_equal(count_resets(s), 0);
	closes(s, l);
}

/* ---- groups ---- */

/* Case S01 f: a listener a core and all clients behind one address: each is accepted once */
ON_CORES(members_share_the_clients)
{
	unsigned members = s->ts.s->n_netisrs, i, n, sum = 0, most = 0;
	int l[MEMBERS_MAX];

	for (i = 0; i < members; i++)
		l[i] = member(s, i, 128);
	handshakes(s, 0, CLIENTS);
	for (i = 0; i < members; i++) {
		n = accept_all(s, i, l[i]);
		sum += n;
		most = n > most ? n : most;
	}
	assert_int_equal(sum, CLIENTS);
	/* none gets more than all others together and then some: 64 clients, shares of 64 / n */
	assert_true(members == 1 || most < CLIENTS * 3 / 4);
	assert_int_equal(count_resets(s), 0);
	for (i = 0; i < members; i++)
		closes(s, l[i]);
}

/* A member that was shut down draws no new connections, until it listens again */
ON_SOME_CORES(member_that_was_shut_down_draws_nobody)
{
	int a = member(s, 0, 128), b = member(s, 1, 128);
	unsigned of_a;

	shuts(s, a);
	handshakes(s, 0, 32);
	assert_int_equal(accept_all(s, 0, b), 32);
	on_core(s, 0);
	assert_int_equal(darter_listen(a, 128), 0);
	off_core(s);
	handshakes(s, 32, CLIENTS);
	of_a = accept_all(s, 0, a);
	assert_in_range(of_a, 1, 31);
	assert_int_equal(of_a + accept_all(s, 0, b), 32);
	assert_int_equal(count_resets(s), 0);
	closes(s, a);
	closes(s, b);
}

/* … nor handshakes that end after it: which member gets a connection is decided at their end */
ON_SOME_CORES(handshake_that_ends_after_the_shutdown_goes_to_another_member)
{
	int a = member(s, 0, 128), b = member(s, 1, 128);
	unsigned i;

	for (i = 0; i < 32; i++)
		half_handshake(s, i);
	shuts(s, a);
	for (i = 0; i < 32; i++) {
		use_conn(s, i);
		peer_sends(s, ACK(1));
	}
	stack_silent(s);
	assert_int_equal(accept_all(s, 0, b), 32);
	closes(s, a);
	closes(s, b);
}

/* The last member was shut down: as if nobody listened */
ON_SOME_CORES(group_without_a_member_that_listens_refuses)
{
	int a = member(s, 0, 128), b = member(s, 1, 128);

	shuts(s, a);
	shuts(s, b);
	use_conn(s, 0);
	peer_sends(s, SYN());
	stack_sends(s, RSTACK(0, 1));
	closes(s, a);
	closes(s, b);
}

/* soinherit: what waits at a member that is closed goes to a survivor, half open or finished */
ON_CORES(closing_a_member_hands_its_connections_on)
{
	int a = member(s, 0, 128), b = member(s, 1, 128), c = member(s, 2, 128);
	unsigned i;

	handshakes(s, 0, 32);
	for (i = 32; i < CLIENTS; i++)
		half_handshake(s, i);
	closes(s, a);
	closes(s, c);
	for (i = 32; i < CLIENTS; i++) {
		use_conn(s, i);
		peer_sends(s, ACK(1));
	}
	stack_silent(s);
	assert_int_equal(accept_all(s, 0, b), CLIENTS);
	assert_int_equal(count_resets(s), 0);
	/* they are whole connections, and stay where they were */
	use_conn(s, 5);
	peer_sends(s, DATA(1, 101));
	app_reads(s, 100);
	stack_acks(s, 101);
	closes(s, b);
}

/* … also after a shutdown, while the survivor's own wait beside them */
ON_SOME_CORES(what_waited_at_a_shut_down_member_is_handed_on_at_its_close)
{
	int a = member(s, 0, 128), b = member(s, 1, 128);
	unsigned first;

	handshakes(s, 0, CLIENTS);
	shuts(s, a);
	first = accept_all(s, 0, b);
	assert_in_range(first, 1, CLIENTS - 1);
	closes(s, a);
	assert_int_equal(accept_all(s, 0, b), CLIENTS - first);
	closes(s, b);
}

/* The heir's backlog is not passed: who finds no place is reset, and told so */
ON_SOME_CORES(heir_without_room_lets_the_rest_be_reset)
{
	int a = member(s, 0, 128), b;
	unsigned kept, i;

	handshakes(s, 0, 32);
	b = member(s, 1, 9);
	closes(s, a);
	kept = accept_all(s, 0, b);
	assert_int_equal(kept, 10);
	assert_int_equal(count_resets(s), 22);
	for (i = 0; i < 32; i++) {
		use_conn(s, i);
		state_is(s, s->c->fd >= 0 ? TCP_ESTABLISHED : TCP_CLOSED);
	}
	wire_dev_clear(s->ts.wire);	/* the 22 */
	closes(s, b);
}

/* ---- stable places ---- */

#define NOBODY	99u

/* Who gets which client: three members accept what has come. */
static void
note_owners(struct script *s, const int l[3], unsigned owner[CLIENTS])
{
	unsigned i;
	int client;

	for (i = 0; i < CLIENTS; i++)
		owner[i] = NOBODY;
	for (i = 0; i < 3; i++) {
		while (l[i] >= 0 && (client = accept_on(s, 0, l[i])) >= 0)
			owner[client] = i;
	}
}

/* The clients of before go away and come again from the same ports. */
static void
reset_clients(struct script *s)
{
	unsigned i;

	for (i = 0; i < CLIENTS; i++) {
		use_conn(s, i);
		peer_sends(s, RST(1));
		script_close_fd(&s->ts, s->c->fd);
		s->c->fd = -1;
		s->c->iss_known = false;
	}
	stack_silent(s);
}

/*
 * A member that goes takes only its own clients' tuples with it, and has them back when it is
 * restarted
 */
SCRIPT_ON(restarted_member_regains_its_place, .netisrs = 2, .packets = 4096)
{
	unsigned before[CLIENTS], without[CLIENTS], after[CLIENTS], i, moved = 0;
	int l[3];

	for (i = 0; i < 3; i++)
		l[i] = member(s, i, 128);
	handshakes(s, 0, CLIENTS);
	note_owners(s, l, before);
	reset_clients(s);

	closes(s, l[1]);
	l[1] = -1;
	handshakes(s, 0, CLIENTS);
	note_owners(s, l, without);
	reset_clients(s);
	for (i = 0; i < CLIENTS; i++) {
		if (before[i] != 1)
			assert_int_equal(without[i], before[i]);
		else
			moved++;
	}
	assert_in_range(moved, 1, CLIENTS / 2);

	l[1] = member(s, 1, 128);
	handshakes(s, 0, CLIENTS);
	note_owners(s, l, after);
	assert_memory_equal(after, before, sizeof(after));
	for (i = 0; i < 3; i++)
		closes(s, l[i]);
}

/* ---- SO_INCOMING_CPU ---- */

static int
incoming_cpu(struct script *s, int fd)
{
	socklen_t len = sizeof(int);
	int cpu = -2;

	on_core(s, 0);
	assert_int_equal(darter_getsockopt(fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, &len), 0);
	off_core(s);
	return cpu;
}

static void
set_incoming_cpu(struct script *s, int fd, int cpu)
{
	on_core(s, 0);
	assert_int_equal(darter_setsockopt(fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, sizeof(cpu)), 0);
	off_core(s);
}

/* As stack.cpus does: netisr i is on CPU 10 + i. */
static void
pin_netisrs(struct script *s)
{
	struct darter_stack *st = s->ts.s;

	for (unsigned i = 0; i < st->n_netisrs; i++)
		st->keeper_cpu[i] = (uint16_t)(10 + i);
	st->n_keeper_cpus = st->n_netisrs;
}

/* A program finds out where a connection is, and a member that names a CPU gets what is there */
ON_CORES(member_that_names_a_cpu_gets_its_connections)
{
	unsigned members = s->ts.s->n_netisrs, i, sum = 0;
	int l[MEMBERS_MAX], client;

	pin_netisrs(s);
	for (i = 0; i < members; i++) {
		l[i] = member(s, i, 128);
		assert_int_equal(incoming_cpu(s, l[i]), -1);
		set_incoming_cpu(s, l[i], 10 + (int)i);
		assert_int_equal(incoming_cpu(s, l[i]), 10 + (int)i);
	}
	handshakes(s, 0, CLIENTS);
	for (i = 0; i < members; i++) {
		while ((client = accept_on(s, i, l[i])) >= 0) {
			assert_int_equal(incoming_cpu(s, s->conns[client].fd), 10 + (int)i);
			sum++;
		}
	}
	assert_int_equal(sum, CLIENTS);
	assert_int_equal(script_counter(s, "accept_steals"), 0);
	for (i = 0; i < members; i++)
		closes(s, l[i]);
}

/* CPUs that no member names: everybody gets a share, as without the option (Linux) */
SCRIPT_ON(connections_of_a_cpu_that_nobody_names_are_shared, .netisrs = 2, .packets = 4096)
{
	int a = member(s, 0, 128), b = member(s, 1, 128);
	unsigned i, of_a = 0, of_b = 0, on_1 = 0;
	int client;

	pin_netisrs(s);
	set_incoming_cpu(s, a, 10);
	handshakes(s, 0, CLIENTS);
	while ((client = accept_on(s, 0, b)) >= 0) {
		assert_int_equal(incoming_cpu(s, s->conns[client].fd), 11);
		of_b++;
	}
	while ((client = accept_on(s, 0, a)) >= 0)
		of_a++;
	for (i = 0; i < CLIENTS; i++)
		on_1 += incoming_cpu(s, s->conns[i].fd) == 11;
	assert_int_equal(of_a + of_b, CLIENTS);
	assert_in_range(of_b, 1, on_1 - 1);
	closes(s, a);
	closes(s, b);
}
