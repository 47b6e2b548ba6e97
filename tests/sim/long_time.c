/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long stretches of virtual time, simultaneous open over a lossy link, and churn: nothing is left
 * (cases S10 f, S21 f, S06 f).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <darter/socket.h>

#include "sim/flow.h"
#include "support/cmocka_all.h"

static unsigned n_crossings = 1000;	/* or the argument */

static double
real_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A slow talk of an hour with keep-alive sized pauses, in seconds of real time. */
static void
hour_of_tcp_takes_seconds(void **state)
{
	const struct flow_plan plan = {
		.bytes = { 20000, 20000 },
		.pace_us = 1000000,
		.piece_max = 20,
		.half_close = true,
		.abort_at = { UINT64_MAX, UINT64_MAX },
	};
	double start = real_seconds();
	struct flow f[4];
	struct sim m;
	unsigned i;

	(void)state;
	sim_init(&m, &(struct sim_opts){ .seed = 3, .fault = "drop=0.02,delay_us=20000-60000" });
	for (i = 0; i < 4; i++)
		flow_start(&m, &f[i], &plan, (uint16_t)(7000 + i));
	assert_true(flows_run(&m, f, 4, 20000.0));
	for (i = 0; i < 4; i++)
		flow_check(&f[i], false, "slow talk");
	if (sim_elapsed_s(&m) < 3600)
		sim_advance(&m, (uint64_t)((3600 - sim_elapsed_s(&m)) * 1e6));
	sim_advance(&m, 300 * US_PER_SEC);
	sim_expect_empty(&m);
	sim_fini(&m);
	assert_true(real_seconds() - start < 60.0);
}

static int
bound_socket(struct sim *m, unsigned side, uint32_t addr, uint16_t port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(addr)
	};
	int fd;

	sim_enter(m, side);
	fd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	assert_int_equal(darter_bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	sim_leave(m, side);
	return fd;
}

static void
begin_connect(struct sim *m, unsigned side, int fd, uint32_t addr, uint16_t port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(addr)
	};

	sim_enter(m, side);
	assert_true(darter_connect(fd, (const struct sockaddr *)&a, sizeof(a)) == -1 &&
		    errno == EINPROGRESS);
	sim_leave(m, side);
}

static int
so_error(struct sim *m, unsigned side, int fd)
{
	socklen_t len = sizeof(int);
	int e = -1;

	sim_enter(m, side);
	darter_getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len);
	sim_leave(m, side);
	return e;
}

static ssize_t
send_byte(struct sim *m, unsigned side, int fd)
{
	ssize_t rc;

	sim_enter(m, side);
	rc = darter_send(fd, "x", 1, MSG_NOSIGNAL);
	sim_leave(m, side);
	return rc;
}

static ssize_t
recv_byte(struct sim *m, unsigned side, int fd)
{
	ssize_t rc;
	char c;

	sim_enter(m, side);
	rc = darter_recv(fd, &c, 1, 0);
	sim_leave(m, side);
	return rc;
}

static void
close_fd(struct sim *m, unsigned side, int fd)
{
	sim_enter(m, side);
	darter_close(fd);
	sim_leave(m, side);
}

/* Case S10 f: two stacks connect to each other with crossing SYNs and 10 % loss: all establish */
static void
crossing_connects_establish_over_a_lossy_link(void **state)
{
	unsigned seed;

	(void)state;
	for (seed = 1; seed <= n_crossings; seed++) {
		struct sim m;
		int a, b;

		/* little memory: most of a run's time goes into making the stacks */
		sim_init(&m, &(struct sim_opts){ .seed = seed, .fault = "drop=0.1,delay_us=5000",
		    .packets = 512, .ring_memory_bytes = { 8 << 20, 8 << 20 } });
		a = bound_socket(&m, 0, SIM_A_IP, 5000);
		b = bound_socket(&m, 1, SIM_B_IP, 6000);
		begin_connect(&m, 0, a, SIM_B_IP, 6000);
		begin_connect(&m, 1, b, SIM_A_IP, 5000);
		sim_advance(&m, 120 * US_PER_SEC);
		assert_int_equal(so_error(&m, 0, a), 0);
		assert_int_equal(so_error(&m, 1, b), 0);
		assert_int_equal(send_byte(&m, 0, a), 1);
		assert_int_equal(send_byte(&m, 1, b), 1);
		sim_advance(&m, 60 * US_PER_SEC);
		assert_int_equal(recv_byte(&m, 0, a), 1);
		assert_int_equal(recv_byte(&m, 1, b), 1);
		close_fd(&m, 0, a);
		close_fd(&m, 1, b);
		sim_advance(&m, 2000 * US_PER_SEC);
		sim_expect_empty(&m);
		sim_fini(&m);
	}
}

/* Cases S06 f, S21 f: thousands of short connections with loss: no record, timer or port is left */
static void
churn_leaves_nothing_behind(void **state)
{
	struct flow f[8];
	struct sim m;
	unsigned round, i;

	(void)state;
	sim_init(&m, &(struct sim_opts){ .seed = 9, .fault = "drop=0.05,delay_us=1000-3000" });
	for (round = 0; round < 400; round++) {
		for (i = 0; i < 8; i++) {
			const struct flow_plan plan = {
				.bytes = { rng_below(&m.rng, 300), rng_below(&m.rng, 300) },
				.half_close = rng_below(&m.rng, 2),
				.abort_at = { rng_below(&m.rng, 10) ? UINT64_MAX : 0, UINT64_MAX },
			};

			flow_start(&m, &f[i], &plan, (uint16_t)(7000 + i));
		}
		assert_true(flows_run(&m, f, 8, 3600.0));
		for (i = 0; i < 8; i++)
			flow_check(&f[i], false, "churn");
	}
	sim_advance(&m, 2000 * US_PER_SEC);
	sim_expect_empty(&m);
	sim_fini(&m);
}

/* A cable that is cut for good: both ends report it, nothing stays */
static void
dead_link_is_reported_by_both_ends(void **state)
{
	const struct flow_plan plan = {
		.bytes = { 1 << 20, 1 << 20 },
		.pace_us = 1000,
		.piece_max = 3000,
		.abort_at = { UINT64_MAX, UINT64_MAX },
	};
	struct flow f;
	struct sim m;

	(void)state;
	sim_init(&m, &(struct sim_opts){ .seed = 5, .fault = "delay_us=5000,drop_nth=1000000" });
	flow_start(&m, &f, &plan, 7000);
	assert_false(flows_run(&m, &f, 1, 0.3));
	sim_cut(&m);
	assert_true(flows_run(&m, &f, 1, 3 * 3600.0));
	/*
	 * the neighbour is found absent before the retransmissions are spent: either is a true
	 * answer
	 */
	assert_true(f.end[0].error == ETIMEDOUT || f.end[0].error == EHOSTUNREACH);
	assert_true(f.end[1].error == ETIMEDOUT || f.end[1].error == EHOSTUNREACH);
	sim_advance(&m, 3600 * US_PER_SEC);
	sim_expect_empty(&m);
	sim_fini(&m);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hour_of_tcp_takes_seconds),
		cmocka_unit_test(crossing_connects_establish_over_a_lossy_link),
		cmocka_unit_test(churn_leaves_nothing_behind),
		cmocka_unit_test(dead_link_is_reported_by_both_ends),
	};

	if (argc > 1)
		n_crossings = (unsigned)atoi(argv[1]);
	return cmocka_run_group_tests_name("sim long_time", tests, NULL, NULL);
}
