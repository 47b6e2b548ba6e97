/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a connection costs, counted (DESIGN.md 4.1): messages, forwards, memory from the system. Two
 * stacks with threads and a cable between them; the calls come from this thread, which is an
 * application's or attached. malloc is counted for the whole process, the netisrs' threads
 * included. And the knobs by which calls wait for the owner: what has happened when they return.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <darter/darter.h>
#include <darter/event.h>
#include <darter/socket.h>
#include <darter/stats.h>

#include "support/cmocka_all.h"

#define CONNS		400u
#define WARM_UP		3000u	/* until every pool has what the rest needs */
#define SERVER_IP	0x0a090002
#define PORT		80

/* ---- malloc, counted ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool has_malloc_count = false;
static _Atomic uint64_t mallocs;
#else
static const bool has_malloc_count = true;
static _Atomic uint64_t mallocs;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);

static void
count_one(void)
{
	atomic_fetch_add_explicit(&mallocs, 1, memory_order_relaxed);
}

void *
malloc(size_t size)
{
	count_one();
	return __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
	count_one();
	return __libc_calloc(n, size);
}

void *
realloc(void *p, size_t size)
{
	count_one();
	return __libc_realloc(p, size);
}

void *
aligned_alloc(size_t align, size_t size)
{
	count_one();
	return __libc_memalign(align, size);
}
#endif

/* ---- the scene ---- */

struct scene {
	struct darter_stack *client, *server;
	int l;
};

static unsigned cable;	/* a fresh one a scene: one that fails leaves its own behind */

static struct darter_stack *
open_side(unsigned netisrs, unsigned host)
{
	char n[40], addr[60], device[40];
	const char *over[] = { n, addr, device, "stack.exit_linger_ms=100",
		"sysctl.net.inet.tcp.msl_ms=1", NULL };
	struct darter_options o = { .size = sizeof(o), .overrides = over };
	char err[DARTER_ERR_MAX];
	struct darter_stack *s;

	snprintf(n, sizeof(n), "stack.netisrs=%u", netisrs);
	snprintf(device, sizeof(device), "port.c.device=pair:cost%u", cable);
	snprintf(addr, sizeof(addr), "port.c.addr=10.9.0.%u/24", host);
	s = darter_open(&o, err, sizeof(err));
	if (s == NULL)
		fail_msg("%s", err);
	return s;
}

static struct sockaddr_in
server_addr(void)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(SERVER_IP) };
}

static void
open_scene(struct scene *sc, unsigned netisrs)
{
	struct sockaddr_in a = server_addr();

	cable++;
	sc->client = open_side(netisrs, 1);
	sc->server = open_side(netisrs, 2);
	darter_stack_use(sc->server);
	sc->l = darter_socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(darter_bind(sc->l, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(darter_listen(sc->l, 128), 0);
	darter_stack_use(sc->client);
}

static void
close_scene(struct scene *sc)
{
	assert_int_equal(darter_close(sc->l), 0);
	assert_int_equal(darter_fd_count(), 0);
	darter_stack_use(NULL);
	darter_stack_close(sc->client);
	darter_stack_close(sc->server);
}

static void
set(struct scene *sc, const char *knob, const char *value)
{
	char err[DARTER_ERR_MAX];

	assert_int_equal(darter_sysctl_set(sc->client, knob, value, err, sizeof(err)), 0);
}

static int
ignore_conn(void *arg, const struct darter_conn *c)
{
	(void)arg;
	(void)c;
	return 0;
}

/* Whatever was posted is handled, in a round that has ended. */
static void
settle(struct darter_stack *s)
{
	assert_int_equal(darter_conn_visit(s, ignore_conn, NULL), 0);
	assert_int_equal(darter_conn_visit(s, ignore_conn, NULL), 0);
}

static uint64_t
count(struct darter_stack *s, const char *name)
{
	uint64_t v = 0;

	settle(s);
	assert_int_equal(darter_counter_get(s, name, &v), 0);
	return v;
}

static struct darter_netisr_stats
stats(struct darter_stack *s, unsigned netisr)
{
	struct darter_netisr_stats st;

	settle(s);
	assert_int_equal(darter_netisr_stats(s, netisr, &st), 0);
	return st;
}

/* fd[0] connected, fd[1] accepted. */
static void
connect_pair(struct scene *sc, int fd[2])
{
	struct sockaddr_in a = server_addr();

	fd[0] = darter_socket(AF_INET, SOCK_STREAM, 0);
	assert_true(fd[0] >= 0);
	assert_int_equal(darter_connect(fd[0], (struct sockaddr *)&a, sizeof(a)), 0);
	fd[1] = darter_accept4(sc->l, NULL, NULL, 0);
	assert_true(fd[1] >= 0);
}

/* The client ends it; the server sees the end and follows. */
static void
end_pair(int fd[2])
{
	char c;

	assert_int_equal(darter_close(fd[0]), 0);
	assert_int_equal(darter_recv(fd[1], &c, 1, 0), 0);
	assert_int_equal(darter_close(fd[1]), 0);
}

static void
run_connections(struct scene *sc, unsigned n)
{
	int fd[2];

	while (n-- > 0) {
		connect_pair(sc, fd);
		end_pair(fd);
	}
}

/* ---- messages ---- */

/*
 * connect and close, and the accepted end's close. No other: nothing is sent for socket, accept,
 * or for what was received.
 */
static void
connection_from_an_application_thread_is_two_messages(void **state)
{
	unsigned netisrs;

	(void)state;
	for (netisrs = 1; netisrs <= 4; netisrs++) {
		struct scene sc;
		uint64_t client, server;

		open_scene(&sc, netisrs);
		client = count(sc.client, "msgs_socket");
		server = count(sc.server, "msgs_socket");
		run_connections(&sc, CONNS);
		client = count(sc.client, "msgs_socket") - client;
		server = count(sc.server, "msgs_socket") - server;
		assert_int_equal(client, 2 * CONNS);
		assert_int_equal(server, CONNS);
		assert_int_equal(count(sc.client, "tcp_connect_forwards"), 0);
		close_scene(&sc);
	}
}

static void
connection_from_an_attached_thread_is_no_message(void **state)
{
	unsigned netisrs, i;

	(void)state;
	for (netisrs = 1; netisrs <= 4; netisrs++) {
		struct scene sc;

		open_scene(&sc, netisrs);
		assert_int_equal(darter_attach(sc.client, netisrs - 1), 0);
		run_connections(&sc, CONNS);
		assert_int_equal(count(sc.client, "msgs_socket"), 0);
		assert_int_equal(count(sc.client, "tcp_connect_forwards"), 0);
		/* ports that come home: no other netisr has had a segment of theirs */
		for (i = 0; i < netisrs - 1; i++)
			assert_int_equal(stats(sc.client, i).segs_rcvd, 0);
		assert_in_range(stats(sc.client, netisrs - 1).segs_sent, 3 * CONNS, 4 * CONNS);
		assert_int_equal(darter_detach(), 0);
		close_scene(&sc);
	}
}

/* ---- memory ---- */

static void
connections_in_steady_state_take_no_memory(void **state)
{
	struct scene sc;
	uint64_t before, after, took;

	(void)state;
	open_scene(&sc, 2);
	run_connections(&sc, WARM_UP);
	took = count(sc.client, "conn_allocs") + count(sc.server, "conn_allocs");
	assert_true(took > 0);
	before = atomic_load(&mallocs);
	run_connections(&sc, CONNS);
	after = atomic_load(&mallocs);
	assert_int_equal(count(sc.client, "conn_allocs") + count(sc.server, "conn_allocs"), took);
	if (has_malloc_count)
		assert_int_equal(after - before, 0);
	close_scene(&sc);
}

/* ---- rand_initport ---- */

/* The world before 2013: netisr 0 makes every socket and begins every connect. */
static void
initport_zero_begins_everything_on_netisr_0_and_forwards(void **state)
{
	struct darter_netisr_stats zero, one;
	struct scene sc;

	(void)state;
	open_scene(&sc, 2);
	set(&sc, "kern.ipc.rand_initport", "zero");
	set(&sc, "net.inet.ip.portalgo", "hash");
	run_connections(&sc, CONNS);
	zero = stats(sc.client, 0);
	one = stats(sc.client, 1);
	/* of those that netisr 1 owns, each was forwarded; netisr 1 forwards none */
	assert_int_equal(zero.connects + one.connects, CONNS);
	assert_int_equal(zero.forwards, one.connects);
	assert_int_equal(one.forwards, 0);
	assert_in_range(zero.forwards, CONNS / 4, CONNS * 3 / 4);
	/* attach, connect, and close of its own; the forward and close of theirs */
	assert_int_equal(zero.msgs_socket, 2 * CONNS + zero.connects);
	assert_int_equal(one.msgs_socket, 2 * one.connects);
	close_scene(&sc);
}

/* … also those with a bound port, which otherwise go straight to where the hash says */
static void
initport_zero_begins_bound_connects_there_too(void **state)
{
	struct sockaddr_in a = server_addr(), from = { .sin_family = AF_INET };
	struct scene sc;
	unsigned i;
	int fd[2];

	(void)state;
	open_scene(&sc, 2);
	set(&sc, "kern.ipc.rand_initport", "zero");
	for (i = 0; i < CONNS; i++) {
		fd[0] = darter_socket(AF_INET, SOCK_STREAM, 0);
		from.sin_port = htons((uint16_t)(20000 + i));
		assert_int_equal(darter_bind(fd[0], (struct sockaddr *)&from, sizeof(from)), 0);
		assert_int_equal(darter_connect(fd[0], (struct sockaddr *)&a, sizeof(a)), 0);
		fd[1] = darter_accept4(sc.l, NULL, NULL, 0);
		end_pair(fd);
	}
	assert_int_equal(stats(sc.client, 0).forwards, stats(sc.client, 1).connects);
	assert_in_range(stats(sc.client, 0).forwards, CONNS / 4, CONNS * 3 / 4);
	close_scene(&sc);
}

/* ---- calls that wait for the owner ---- */

static void
connect_that_waits_has_begun_when_it_returns(void **state)
{
	struct sockaddr_in a = server_addr();
	struct scene sc;
	uint64_t begun;
	unsigned i;
	int fd[2];

	(void)state;
	open_scene(&sc, 2);
	set(&sc, "kern.ipc.soconnect_async", "0");
	set(&sc, "net.isr.borrow", "never");
	for (i = 1; i <= CONNS; i++) {
		fd[0] = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		assert_int_equal(darter_connect(fd[0], (struct sockaddr *)&a, sizeof(a)), -1);
		assert_int_equal(errno, EINPROGRESS);
		/* no look at the netisrs in between */
		assert_int_equal(darter_counter_get(sc.client, "tcp_connects", &begun), 0);
		assert_int_equal(begun, i);
		fd[1] = darter_accept4(sc.l, NULL, NULL, 0);
		assert_true(fd[1] >= 0);
		end_pair(fd);
	}
	assert_int_equal(count(sc.client, "msgs_socket"), 2 * CONNS);
	close_scene(&sc);
}

static int
note_established(void *arg, const struct darter_conn *c)
{
	*(unsigned *)arg += strcmp(c->state, "ESTABLISHED") == 0;
	return 0;
}

static void
close_that_waits_has_ended_it_when_it_returns(void **state)
{
	struct scene sc;
	unsigned i;
	int fd[2];

	(void)state;
	open_scene(&sc, 2);
	set(&sc, "kern.ipc.soclose_fast", "0");
	set(&sc, "net.isr.borrow", "never");
	for (i = 0; i < CONNS; i++) {
		unsigned established = 0;

		connect_pair(&sc, fd);
		assert_int_equal(darter_close(fd[0]), 0);
		assert_int_equal(darter_conn_visit(sc.client, note_established, &established), 0);
		assert_int_equal(established, 0);
		assert_int_equal(darter_close(fd[1]), 0);
	}
	assert_int_equal(count(sc.client, "msgs_socket"), 2 * CONNS);
	close_scene(&sc);
}

/* One message a send; those that do not wait may share one */
static void
send_that_waits_is_one_message_each(void **state)
{
	struct scene sc;
	uint64_t before;
	char buf[CONNS];
	unsigned i;
	int fd[2];

	(void)state;
	open_scene(&sc, 2);
	set(&sc, "kern.ipc.sosend_async", "0");
	connect_pair(&sc, fd);
	before = count(sc.client, "msgs_socket");
	for (i = 0; i < CONNS; i++)
		assert_int_equal(darter_send(fd[0], "x", 1, 0), 1);
	assert_int_equal(count(sc.client, "msgs_socket") - before, CONNS);
	assert_int_equal(darter_recv(fd[1], buf, sizeof(buf), MSG_WAITALL), CONNS);
	end_pair(fd);
	close_scene(&sc);
}

/* Reads that make room in a window that is wide open tell nobody; without coalescing each does */
static void
reads_tell_the_owner_only_without_coalescing(void **state)
{
	struct scene sc;
	uint64_t before;
	char buf[CONNS];
	unsigned i, coalesce;
	int fd[2];

	(void)state;
	open_scene(&sc, 2);
	connect_pair(&sc, fd);
	for (coalesce = 0; coalesce < 2; coalesce++) {
		set(&sc, "kern.ipc.sorcvd_coalesce", coalesce ? "1" : "0");
		memset(buf, 'x', sizeof(buf));
		assert_int_equal(darter_send(fd[1], buf, sizeof(buf), 0), CONNS);
		/* all of it is there before the first read */
		while (darter_recv(fd[0], buf, sizeof(buf), MSG_PEEK | MSG_WAITALL) != CONNS)
			;
		before = count(sc.client, "msgs_socket");
		for (i = 0; i < CONNS; i++)
			assert_int_equal(darter_recv(fd[0], buf, 1, 0), 1);
		assert_int_equal(count(sc.client, "msgs_socket") - before, coalesce ? 0 : CONNS);
	}
	end_pair(fd);
	close_scene(&sc);
}

/* A thread that has attached itself may never wait again: nobody waits for it */
static void
close_of_an_attached_netisrs_connection_does_not_wait(void **state)
{
	struct scene sc;
	int fd[2];

	(void)state;
	open_scene(&sc, 1);
	set(&sc, "kern.ipc.soclose_fast", "0");
	set(&sc, "kern.ipc.sosend_async", "0");
	set(&sc, "kern.ipc.soconnect_async", "0");
	assert_int_equal(darter_attach(sc.client, 0), 0);
	connect_pair(&sc, fd);
	assert_int_equal(darter_send(fd[0], "x", 1, 0), 1);
	assert_int_equal(darter_detach(), 0);
	assert_int_equal(darter_attach(sc.server, 0), 0);
	assert_int_equal(darter_close(fd[0]), 0);
	assert_int_equal(darter_close(fd[1]), 0);
	assert_int_equal(darter_detach(), 0);
	close_scene(&sc);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connection_from_an_application_thread_is_two_messages),
		cmocka_unit_test(connection_from_an_attached_thread_is_no_message),
		cmocka_unit_test(connections_in_steady_state_take_no_memory),
		cmocka_unit_test(initport_zero_begins_everything_on_netisr_0_and_forwards),
		cmocka_unit_test(initport_zero_begins_bound_connects_there_too),
		cmocka_unit_test(connect_that_waits_has_begun_when_it_returns),
		cmocka_unit_test(close_that_waits_has_ended_it_when_it_returns),
		cmocka_unit_test(send_that_waits_is_one_message_each),
		cmocka_unit_test(reads_tell_the_owner_only_without_coalescing),
		cmocka_unit_test(close_of_an_attached_netisrs_connection_does_not_wait),
	};

	return cmocka_run_group_tests_name("cost of a connection", tests, NULL, NULL);
}
