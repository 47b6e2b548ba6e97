/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports used up by TIME_WAIT on four cores (case S06): a client, A, whose side closes first, and a
 * range of 1,000 ports towards one server on B. Rounds of connect, accept and close are spread over
 * A's cores; nothing but the range's own size ends them, and at the end no port is left in use.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include <darter/socket.h>

#include "base/ipaddr.h"
#include "runtime/netisr.h"
#include "sim/sim.h"
#include "support/cmocka_all.h"
#include "transport/port.h"
#include "transport/tcp/tcp.h"

#define CORES	4u
#define FIRST	10000u
#define COUNT	1000u
#define BATCH	50u

static const char *const range_knobs[] = { "net.inet.ip.portrange.first=10000",
	"net.inet.ip.portrange.last=10999" };

struct scene {
	struct sim m;
	int lfd[2];		/* B:80, B:81 */
	uint8_t used[65536];
};

static struct scene sc;

static void
set_up(uint64_t seed, const char *fault, const char *more)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct sim_opts o = { .seed = seed, .fault = fault, .netisrs = CORES,
		.sysctls = { range_knobs[0], range_knobs[1], more } };
	unsigned i;

	memset(&sc, 0, sizeof(sc));
	sim_init(&sc.m, &o);
	for (i = 0; i < 2; i++) {
		a.sin_port = htons((uint16_t)(80 + i));
		sim_enter(&sc.m, 1);
		sc.lfd[i] = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		assert_int_equal(darter_bind(sc.lfd[i], (struct sockaddr *)&a, sizeof(a)), 0);
		assert_int_equal(darter_listen(sc.lfd[i], 256), 0);
		sim_leave(&sc.m, 1);
	}
}

/* Begins on a core of A; a negative errno when it fails at once. */
static int
begin(unsigned core, uint16_t fport)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(fport),
		.sin_addr.s_addr = htonl(SIM_B_IP) };
	int fd, rc = 0;

	sim_enter_at(&sc.m, 0, core);
	fd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	assert_int_equal(darter_connect(fd, (struct sockaddr *)&to, sizeof(to)), -1);
	if (errno != EINPROGRESS) {
		rc = -errno;
		assert_int_equal(darter_close(fd), 0);
	}
	sim_leave_at(&sc.m, 0, core);
	return rc < 0 ? rc : fd;
}

/* 0: not known yet; 1: connected; else a negative errno. */
static int
outcome(int fd)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a), elen = sizeof(int);
	int e = 0, rc;

	sim_enter(&sc.m, 0);
	assert_int_equal(darter_getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &elen), 0);
	rc = darter_getpeername(fd, (struct sockaddr *)&a, &len);
	sim_leave(&sc.m, 0);
	return e != 0 ? -e : rc == 0;
}

static uint16_t
port_of(int fd)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);

	sim_enter(&sc.m, 0);
	assert_int_equal(darter_getsockname(fd, (struct sockaddr *)&a, &len), 0);
	sim_leave(&sc.m, 0);
	return ntohs(a.sin_port);
}

static void
close_on(unsigned side, int fd)
{
	sim_enter(&sc.m, side);
	assert_int_equal(darter_close(fd), 0);
	sim_leave(&sc.m, side);
}

/* All that wait at B's listener, and end: the server closes when the client has. */
static unsigned
accept_all(unsigned listener, int *fds)
{
	unsigned count = 0;
	int fd;

	for (;;) {
		sim_enter(&sc.m, 1);
		fd = darter_accept(sc.lfd[listener], NULL, NULL);
		sim_leave(&sc.m, 1);
		if (fd < 0)
			return count;
		fds[count++] = fd;
	}
}

/* One batch of rounds to B:80 + listener; every connect must succeed. once: no port comes twice. */
static void
rounds(unsigned from, unsigned count, unsigned listener, bool once)
{
	int fd[BATCH], peer[BATCH];
	unsigned i, up = 0, accepted = 0, tries;

	for (i = 0; i < count; i++) {
		fd[i] = begin((from + i) % CORES, (uint16_t)(80 + listener));
		assert_true(fd[i] >= 0);
	}
	for (tries = 0; up < count || accepted < count; tries++) {
		assert_true(tries < 100000);
		sim_advance(&sc.m, 2000);
		accepted += accept_all(listener, peer + accepted);
		for (up = 0; up < count && outcome(fd[up]) == 1; up++)
			;
	}
	for (i = 0; i < count; i++) {
		uint16_t port = port_of(fd[i]);

		assert_in_range(port, FIRST, FIRST + COUNT - 1);
		assert_false(once && sc.used[port]);
		sc.used[port] = 1;
		close_on(0, fd[i]);
	}
	sim_advance(&sc.m, 2000);
	for (i = 0; i < count; i++)
		close_on(1, peer[i]);
	sim_advance(&sc.m, 2000);
}

static void
all_rounds(unsigned total, unsigned listener, bool once)
{
	unsigned from;

	memset(sc.used, 0, sizeof(sc.used));
	for (from = 0; from < total; from += BATCH)
		rounds(from, BATCH, listener, once);
}

/* A connect from each core that must fail. */
static void
expect_none_left(void)
{
	unsigned core;
	int fd, rc;

	for (core = 0; core < CORES; core++) {
		fd = begin(core, 80);
		sim_run(&sc.m);
		rc = fd < 0 ? fd : outcome(fd);
		if (fd >= 0)
			close_on(0, fd);
		assert_int_equal(rc, -EADDRNOTAVAIL);
	}
}

static void
tear_down(void)
{
	static const struct ipaddr any;
	unsigned side, port;

	close_on(1, sc.lfd[0]);
	close_on(1, sc.lfd[1]);
	sim_advance(&sc.m, 130 * US_PER_SEC);
	sim_expect_empty(&sc.m);
	for (side = 0; side < 2; side++)
		for (port = 1; port < 65536; port++)
			assert_false(port_has_conns(sc.m.s[side], &any, (uint16_t)port, 0));
	sim_fini(&sc.m);
}

/* Case S06 a to d */
static void
range_goes_to_time_wait_then_connect_fails_until_it_is_over(void **state)
{
	uint64_t frames;

	(void)state;
	set_up(1, NULL, "net.inet.tcp.tw_reuse=0");
	all_rounds(COUNT, 0, true);
	assert_true(sim_counter(&sc.m, 0, CTR_tcp_timewait) == COUNT);
	frames = sc.m.frames;
	expect_none_left();
	assert_true(sc.m.frames == frames);
	/* another destination: uniqueness is per 4-tuple */
	all_rounds(COUNT, 1, true);
	sim_advance(&sc.m, 61 * US_PER_SEC);
	all_rounds(COUNT, 0, true);
	tear_down();
}

/* Case S06 e: with timestamps a port comes back after a second (RFC 6191) */
static void
range_goes_to_time_wait_with_timestamps_then_ports_come_back_after_a_second(void **state)
{
	(void)state;
	set_up(2, NULL, NULL);
	all_rounds(COUNT, 0, false);
	sim_advance(&sc.m, 1700 * US_PER_MS);
	assert_true(sim_counter(&sc.m, 0, CTR_tcp_timewait_reused) == 0);
	all_rounds(COUNT, 0, true);
	assert_true(sim_counter(&sc.m, 0, CTR_tcp_timewait_reused) == COUNT);
	tear_down();
}

/* Case S06 f, fewer rounds: over a link that loses, no connection, timer or port is left */
static void
rounds_over_a_lossy_link_then_nothing_is_left(void **state)
{
	unsigned i;

	(void)state;
	set_up(3, "drop=0.01", NULL);
	for (i = 0; i < 200; i++) {
		rounds(i, BATCH, 0, false);
		sim_advance(&sc.m, 100 * US_PER_MS);
	}
	tear_down();
}

/* The same where each connect is hashed and sent on. */
static void
ports_are_hashed_then_the_range_serves_as_many(void **state)
{
	(void)state;
	set_up(4, NULL, "net.inet.ip.portalgo=hash");
	all_rounds(COUNT, 0, false);
	assert_in_range(sim_counter(&sc.m, 0, CTR_tcp_connect_forwards), COUNT / 2, 3 * COUNT);
	tear_down();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(range_goes_to_time_wait_then_connect_fails_until_it_is_over),
		cmocka_unit_test(
		    range_goes_to_time_wait_with_timestamps_then_ports_come_back_after_a_second),
		cmocka_unit_test(rounds_over_a_lossy_link_then_nothing_is_left),
		cmocka_unit_test(ports_are_hashed_then_the_range_serves_as_many),
	};

	return cmocka_run_group_tests_name("ports", tests, NULL, NULL);
}
