/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limits of connections and of their ring memory, and of stacks: see limits.c. Virtual time.
 */
#include "proof/limits.h"
#include "transport/tcp/tcp.h"

#define CALLERS	6

static void
accept_queue_beyond_its_backlog_is_counted_and_all_get_in(void **state)
{
	struct teststack_opts o = { .seed = 8 };
	struct sockaddr_in a = here(80);
	struct teststack ts;
	int lfd, fd[CALLERS], i, n = 0;
	socklen_t len = sizeof(a);

	(void)state;
	teststack_init(&ts, &o, 0);
	lfd = listen_on(80, 1);
	for (i = 0; i < CALLERS; i++) {
		fd[i] = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		darter_connect(fd[i], (struct sockaddr *)&a, len);
	}
	/* all their SYNs find room, their last ACKs do not; a later SYN does not either */
	teststack_run(&ts);
	assert_true(stack_counter(ts.s, CTR_tcp_listen_overflows) > 0);
	i = connect_here(&ts, 80);
	assert_true(stack_counter(ts.s, CTR_drop_tcp_listen_full) >
	    stack_counter(ts.s, CTR_tcp_listen_overflows));
	assert_int_equal(stack_counter(ts.s, CTR_tcp_resets_sent), 0);
	while (n <= CALLERS && teststack_elapsed_us(&ts) < 120 * US_PER_SEC) {
		int child = darter_accept4(lfd, NULL, NULL, 0);

		if (child < 0) {
			teststack_advance(&ts, 100000);
			continue;
		}
		reset_close(child);
		n++;
	}
	assert_int_equal(n, CALLERS + 1);
	darter_close(i);
	for (i = 0; i < CALLERS; i++)
		darter_close(fd[i]);
	darter_close(lfd);
	teststack_advance(&ts, 120 * US_PER_SEC);
	teststack_expect_no_leak(&ts);
	teststack_fini(&ts);
}

static void
closed_connection_beyond_max_orphans_is_reset_and_counted(void **state)
{
	struct teststack_opts o = { .seed = 9, .sysctls = { "net.inet.tcp.max_orphans=4" } };
	struct teststack ts;
	int lfd, fd[10], child[10], i, n_reset = 0;

	(void)state;
	teststack_init(&ts, &o, 0);
	lfd = listen_on(80, 100);
	for (i = 0; i < 10; i++) {
		fd[i] = connect_here(&ts, 80);
		child[i] = darter_accept4(lfd, NULL, NULL, SOCK_NONBLOCK);
		assert_true(child[i] >= 0);
	}
	for (i = 0; i < 10; i++)
		darter_close(fd[i]);
	teststack_run(&ts);
	assert_int_equal(stack_counter(ts.s, CTR_tcp_orphans_reset), 6);
	for (i = 0; i < 10; i++) {
		char c;
		ssize_t n = darter_recv(child[i], &c, 1, 0);

		if (n < 0) {
			assert_int_equal(errno, ECONNRESET);
			n_reset++;
		}
		darter_close(child[i]);
	}
	assert_int_equal(n_reset, 6);
	darter_close(lfd);
	teststack_advance(&ts, 120 * US_PER_SEC);
	assert_int_equal(teststack_tcp_count(&ts), 0);
	teststack_expect_no_leak(&ts);
	teststack_fini(&ts);
}

/* Reads what is there; true while there was something. */
static bool
drink(struct teststack *ts, int fd, size_t *total)
{
	static char buf[65536];
	ssize_t n = darter_recv(fd, buf, sizeof(buf), 0);

	if (n > 0)
		*total += (size_t)n;
	teststack_advance(ts, 1000);
	return n > 0;
}

static void
send_that_finds_no_ring_memory_is_counted_and_goes_on(void **state)
{
	struct teststack_opts o = { .seed = 10, .ring_memory_bytes = UINT64_C(1) << 20 };
	static char buf[65536];
	int lfd, fd, child, size = 4 << 20;
	size_t sent = 0, got = 0;
	struct teststack ts;
	ssize_t n;

	(void)state;
	teststack_init(&ts, &o, 0);
	lfd = listen_on(80, 8);
	fd = connect_here(&ts, 80);
	child = darter_accept4(lfd, NULL, NULL, SOCK_NONBLOCK);
	assert_int_equal(darter_setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	while ((n = darter_send(fd, buf, sizeof(buf), 0)) > 0)
		sent += (size_t)n;
	assert_int_equal(errno, EAGAIN);
	assert_true(sent < (size_t)size);
	assert_true(stack_counter(ts.s, CTR_snd_nomem) > 0);
	while (drink(&ts, child, &got) || got < sent)
		assert_true(teststack_elapsed_us(&ts) < 600 * US_PER_SEC);
	assert_int_equal(got, sent);
	assert_int_equal(darter_send(fd, buf, sizeof(buf), 0), sizeof(buf));
	teststack_run(&ts);
	while (drink(&ts, child, &got) || got < sent + sizeof(buf))
		assert_true(teststack_elapsed_us(&ts) < 600 * US_PER_SEC);
	darter_close(fd);
	darter_close(child);
	darter_close(lfd);
	teststack_advance(&ts, 120 * US_PER_SEC);
	teststack_expect_no_leak(&ts);
	teststack_fini(&ts);
}

static void
connection_beyond_max_pcbs_is_refused_and_counted(void **state)
{
	struct teststack_opts o = { .seed = 5, .sysctls = { "net.inet.tcp.max_pcbs=10" } };
	struct teststack ts;
	int lfd, fd[12], i, err = 0;
	socklen_t len = sizeof(err);

	(void)state;
	teststack_init(&ts, &o, 0);
	lfd = listen_on(80, 100);
	for (i = 0; i < 5; i++)		/* both ends are on this stack */
		fd[i] = connect_here(&ts, 80);
	assert_int_equal(stack_counter(ts.s, CTR_drop_tcp_pcb_limit), 0);
	fd[5] = connect_here(&ts, 80);
	assert_int_equal(darter_getsockopt(fd[5], SOL_SOCKET, SO_ERROR, &err, &len), 0);
	assert_int_equal(err, ENOBUFS);
	assert_true(stack_counter(ts.s, CTR_drop_tcp_pcb_limit) > 0);
	for (i = 0; i < 6; i++)
		darter_close(fd[i]);
	for (i = 0; i < 5; i++)
		darter_close(darter_accept4(lfd, NULL, NULL, 0));
	teststack_advance(&ts, 120 * US_PER_SEC);
	fd[0] = connect_here(&ts, 80);
	assert_int_equal(darter_send(fd[0], "x", 1, 0), 1);
	darter_close(fd[0]);
	darter_close(lfd);
	teststack_advance(&ts, 120 * US_PER_SEC);
	teststack_expect_no_leak(&ts);
	teststack_fini(&ts);
}

static void
time_wait_beyond_its_limit_pushes_out_the_oldest(void **state)
{
	struct teststack_opts o = { .seed = 6, .sysctls = { "net.inet.tcp.max_timewait=8" } };
	uint32_t pcbs, half, timewait;
	struct teststack ts;
	int lfd, fd, i;

	(void)state;
	teststack_init(&ts, &o, 0);
	lfd = listen_on(80, 100);
	for (i = 0; i < 20; i++) {
		int child;

		fd = connect_here(&ts, 80);
		child = darter_accept4(lfd, NULL, NULL, 0);
		assert_true(child >= 0);
		darter_close(fd);
		teststack_run(&ts);
		darter_close(child);
		teststack_advance(&ts, 100000);
	}
	tcp_counts(ts.s->netisr[0], &pcbs, &half, &timewait);
	assert_int_equal(timewait, 8);
	assert_int_equal(stack_counter(ts.s, CTR_tcp_timewait_evicted), 12);
	darter_close(lfd);
	teststack_advance(&ts, 120 * US_PER_SEC);
	assert_int_equal(teststack_tcp_count(&ts), 0);
	teststack_fini(&ts);
}

static void
stacks_beyond_the_limit_are_emfile(void **state)
{
	const char *const over[] = { "stack.threads=manual", "stack.packets=256",
		"stack.netisrs=1", "stack.ring_memory=1m", NULL };
	struct darter_options o = { .size = sizeof(o), .overrides = over };
	struct darter_stack *s[80];
	char err[DARTER_ERR_MAX];
	unsigned n = 0;

	(void)state;
	while (n < 80 && (s[n] = darter_open(&o, err, sizeof(err))) != NULL)
		n++;
	assert_int_equal(errno, EMFILE);
	assert_true(n >= 16 && n < 80);
	darter_stack_close(s[--n]);
	s[n] = darter_open(&o, err, sizeof(err));
	assert_non_null(s[n]);
	do
		darter_stack_close(s[n]);
	while (n-- > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accept_queue_beyond_its_backlog_is_counted_and_all_get_in),
		cmocka_unit_test(closed_connection_beyond_max_orphans_is_reset_and_counted),
		cmocka_unit_test(send_that_finds_no_ring_memory_is_counted_and_goes_on),
		cmocka_unit_test(connection_beyond_max_pcbs_is_refused_and_counted),
		cmocka_unit_test(time_wait_beyond_its_limit_pushes_out_the_oldest),
		cmocka_unit_test(stacks_beyond_the_limit_are_emfile),
	};

	return cmocka_run_group_tests_name("proof limits of connections", tests, NULL, NULL);
}
