/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * socket/{close,call,sock}.c: what has no counterpart in a comparison with the kernel, over the
 * stack's own loopback: several threads on one socket, close under a sleeper, signals, fork,
 * attached threads, lingering.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "unit/both_nets.h"

/* ---- threads ---- */

struct pump {
	struct net *net;
	int fd;
	size_t bytes;
	uint64_t sum;
};

static void *
pump_main(void *arg)
{
	struct pump *p = arg;
	uint8_t buf[10000];
	size_t done = 0;
	unsigned seed = 1;

	while (done < p->bytes) {
		size_t len = (size_t)rand_r(&seed) % sizeof(buf) + 1, i;

		len = len < p->bytes - done ? len : p->bytes - done;
		for (i = 0; i < len; i++) {
			buf[i] = (uint8_t)(done + i) ^ (uint8_t)((done + i) >> 8);
			p->sum = p->sum * 31 + buf[i];
		}
		assert_int_equal(p->net->send(p->fd, buf, len, 0), (ssize_t)len);
		done += len;
	}
	p->net->shutdown(p->fd, SHUT_WR);
	return NULL;
}

static void *
echo_main(void *arg)
{
	struct pump *p = arg;
	uint8_t buf[7000];
	ssize_t n;

	while ((n = p->net->recv(p->fd, buf, sizeof(buf), 0)) > 0)
		assert_int_equal(p->net->send(p->fd, buf, (size_t)n, 0), n);
	assert_int_equal(n, 0);
	p->net->shutdown(p->fd, SHUT_WR);
	return NULL;
}

static void
echoed_stream_comes_back_whole(void **state)
{
	struct pump out = { .net = &darter_net, .bytes = 8 << 20 }, echo = { .net = &darter_net };
	pthread_t t[2];
	uint8_t buf[5000];
	uint64_t sum = 0;
	size_t got = 0;
	ssize_t n, i;
	int fd[2];

	(void)state;
	connected_pair(&darter_net, fd);
	out.fd = fd[0];
	echo.fd = fd[1];
	pthread_create(&t[0], NULL, pump_main, &out);
	pthread_create(&t[1], NULL, echo_main, &echo);
	while ((n = darter_recv(fd[0], buf, sizeof(buf), 0)) > 0) {
		for (i = 0; i < n; i++)
			sum = sum * 31 + buf[i];
		got += (size_t)n;
	}
	assert_int_equal(n, 0);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	assert_int_equal(got, out.bytes);
	assert_true(sum == out.sum);
	darter_close(fd[0]);
	darter_close(fd[1]);
}

struct sleeper {
	int fd;
	long rc;
	int (*call)(int fd);
};

static int
call_recv(int fd)
{
	char c;

	return (int)darter_recv(fd, &c, 1, 0);
}

static int
call_accept(int fd)
{
	return darter_accept(fd, NULL, NULL);
}

static int
call_poll(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int rc = darter_poll(&p, 1, SOON_MS);

	return rc == 1 ? p.revents : rc;
}

static void *
sleeper_main(void *arg)
{
	struct sleeper *s = arg;
	int rc = s->call(s->fd);

	s->rc = rc < 0 ? -errno : rc;
	return NULL;
}

static long
close_under(int fd, int (*call)(int fd))
{
	struct sleeper s = { .fd = fd, .call = call };
	pthread_t t;

	pthread_create(&t, NULL, sleeper_main, &s);
	usleep(30000);
	assert_int_equal(darter_close(fd), 0);
	pthread_join(t, NULL);
	return s.rc;
}

static void
close_wakes_sleepers_with_ebadf(void **state)
{
	int fd[2];

	(void)state;
	connected_pair(&darter_net, fd);
	assert_int_equal(close_under(fd[0], call_recv), -EBADF);
	darter_close(fd[1]);
	assert_int_equal(close_under(listener(&darter_net, 1), call_accept), -EBADF);
	assert_int_equal(close_under(bound(&darter_net, SOCK_DGRAM), call_recv), -EBADF);
	assert_int_equal(close_under(bound(&darter_net, SOCK_DGRAM), call_poll), POLLNVAL);
}

static void
shutdown_wakes_sleepers(void **state)
{
	struct sleeper s = { .call = call_recv };
	pthread_t t;
	int fd[2], l = listener(&darter_net, 1);

	(void)state;
	connected_pair(&darter_net, fd);
	s.fd = fd[0];
	pthread_create(&t, NULL, sleeper_main, &s);
	usleep(30000);
	darter_shutdown(fd[0], SHUT_RD);
	pthread_join(t, NULL);
	assert_int_equal(s.rc, 0);
	s.fd = l;
	s.call = call_accept;
	pthread_create(&t, NULL, sleeper_main, &s);
	usleep(30000);
	darter_shutdown(l, SHUT_RDWR);
	pthread_join(t, NULL);
	assert_int_equal(s.rc, -EINVAL);
	darter_close(fd[0]);
	darter_close(fd[1]);
	darter_close(l);
}

/* Two readers and two writers share one connection: no byte is lost or doubled. */
struct crowd {
	int fd[2];
	_Atomic uint64_t sent;
	_Atomic uint64_t got;
};

static void *
crowd_writer(void *arg)
{
	struct crowd *c = arg;
	uint8_t buf[300];
	unsigned i, k;

	for (i = 0; i < 2000; i++) {
		for (k = 0; k < sizeof(buf); k++)
			buf[k] = (uint8_t)(i + k);
		assert_int_equal(darter_send(c->fd[0], buf, sizeof(buf), 0), (ssize_t)sizeof(buf));
		for (k = 0; k < sizeof(buf); k++)
			atomic_fetch_add(&c->sent, buf[k] + 1u);
	}
	return NULL;
}

static void *
crowd_reader(void *arg)
{
	struct crowd *c = arg;
	uint8_t buf[777];
	ssize_t n, k;

	while ((n = darter_recv(c->fd[1], buf, sizeof(buf), 0)) > 0) {
		for (k = 0; k < n; k++)
			atomic_fetch_add(&c->got, buf[k] + 1u);
	}
	assert_int_equal(n, 0);
	return NULL;
}

static void
several_readers_and_writers_share_a_stream(void **state)
{
	struct crowd c = { .sent = 0 };
	pthread_t w[2], r[2];
	unsigned i;

	(void)state;
	connected_pair(&darter_net, c.fd);
	for (i = 0; i < 2; i++) {
		pthread_create(&w[i], NULL, crowd_writer, &c);
		pthread_create(&r[i], NULL, crowd_reader, &c);
	}
	for (i = 0; i < 2; i++)
		pthread_join(w[i], NULL);
	darter_shutdown(c.fd[0], SHUT_WR);
	for (i = 0; i < 2; i++)
		pthread_join(r[i], NULL);
	assert_true(c.sent == c.got);
	darter_close(c.fd[0]);
	darter_close(c.fd[1]);
}

/* Threads that open, use and close while others use the same numbers. */
static void *
churn_main(void *arg)
{
	uint16_t port = *(uint16_t *)arg;
	unsigned i;
	char b;

	for (i = 0; i < 150; i++) {
		int fd = darter_socket(AF_INET, SOCK_STREAM, 0);

		assert_true(fd >= 0);
		assert_int_equal(connect_to(&darter_net, fd, port), 0);
		assert_int_equal(darter_send(fd, "a", 1, 0), 1);
		assert_int_equal(darter_recv(fd, &b, 1, 0), 1);
		darter_close(fd);
	}
	return NULL;
}

static void *
serve_main(void *arg)
{
	int l = *(int *)arg, fd;
	char b;

	while ((fd = darter_accept(l, NULL, NULL)) >= 0) {
		while (darter_recv(fd, &b, 1, 0) == 1)
			darter_send(fd, &b, 1, MSG_NOSIGNAL);
		darter_close(fd);
	}
	return NULL;
}

static void
connections_churn_on_all_threads(void **state)
{
	int l = listener(&darter_net, 64);
	uint16_t port = port_of(&darter_net, l);
	pthread_t c[3], s[2];
	unsigned i;

	(void)state;
	for (i = 0; i < 2; i++)
		pthread_create(&s[i], NULL, serve_main, &l);
	for (i = 0; i < 3; i++)
		pthread_create(&c[i], NULL, churn_main, &port);
	for (i = 0; i < 3; i++)
		pthread_join(c[i], NULL);
	darter_shutdown(l, SHUT_RDWR);
	for (i = 0; i < 2; i++)
		pthread_join(s[i], NULL);
	darter_close(l);
}

/* ---- signals, fork, attach ---- */

static void
on_signal(int sig)
{
	(void)sig;
	darter_signal_note();
}

static void
signal_interrupts_a_sleeping_call(void **state)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct sleeper s = { .call = call_recv, .fd = bound(&darter_net, SOCK_DGRAM) };
	pthread_t t;

	(void)state;
	sigaction(SIGUSR1, &sa, NULL);
	pthread_create(&t, NULL, sleeper_main, &s);
	usleep(30000);
	pthread_kill(t, SIGUSR1);
	pthread_join(t, NULL);
	assert_int_equal(s.rc, -EINTR);
	darter_close(s.fd);
}

static void
broken_stream_raises_sigpipe(void **state)
{
	sigset_t pipe_set, pending;
	int fd[2];

	(void)state;
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&pipe_set);
	sigaddset(&pipe_set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_set, NULL);
	connected_pair(&darter_net, fd);
	darter_shutdown(fd[0], SHUT_WR);
	assert_int_equal(darter_send(fd[0], "x", 1, MSG_NOSIGNAL), -1);
	sigpending(&pending);
	assert_false(sigismember(&pending, SIGPIPE));
	assert_int_equal(darter_write(fd[0], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	sigpending(&pending);
	assert_true(sigismember(&pending, SIGPIPE));
	signal(SIGPIPE, SIG_IGN);
	pthread_sigmask(SIG_UNBLOCK, &pipe_set, NULL);
	darter_close(fd[0]);
	darter_close(fd[1]);
}

static void
forked_child_has_no_stack(void **state)
{
	int fd[2], status;
	char b;
	pid_t pid;

	(void)state;
	connected_pair(&darter_net, fd);
	pid = fork();
	if (pid == 0) {
		bool ok = darter_send(fd[0], "x", 1, 0) == -1 && errno == ENOTSUP &&
		    darter_socket(AF_INET, SOCK_STREAM, 0) == -1 && errno == ENOTSUP &&
		    darter_close(fd[0]) == 0 && darter_open(NULL, NULL, 0) == NULL;

		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* the child's close has sent nothing */
	assert_int_equal(darter_send(fd[0], "x", 1, 0), 1);
	assert_int_equal(darter_recv(fd[1], &b, 1, 0), 1);
	darter_close(fd[0]);
	darter_close(fd[1]);
}

static int
count_down(void *arg)
{
	int *left = arg;

	return --*left == 0 ? 77 : 0;
}

static void
attached_thread_runs_its_netisr_itself(void **state)
{
	int left = 100, fd[2], ep;
	struct epoll_event ev = { .events = EPOLLIN };
	char b;

	(void)state;
	assert_int_equal(darter_run(count_down, &left), -EINVAL);
	assert_int_equal(darter_attach(the_stack, 9), -EINVAL);
	assert_int_equal(darter_attach(the_stack, 0), 0);
	assert_int_equal(darter_attach(the_stack, 1), -EDEADLK);
	connected_pair(&darter_net, fd);
	ep = darter_epoll_create1(0);
	assert_int_equal(darter_epoll_ctl(ep, EPOLL_CTL_ADD, fd[1], &ev), 0);
	assert_int_equal(darter_send(fd[0], "x", 1, 0), 1);
	assert_int_equal(darter_epoll_wait(ep, &ev, 1, SOON_MS), 1);
	assert_int_equal(darter_recv(fd[1], &b, 1, 0), 1);
	assert_int_equal(darter_epoll_wait(ep, &ev, 1, NEVER_MS), 0);
	assert_int_equal(darter_run(count_down, &left), 77);
	darter_close(ep);
	darter_close(fd[0]);
	darter_close(fd[1]);
	assert_int_equal(darter_detach(), 0);
	assert_int_equal(darter_detach(), -EINVAL);
}

static void
select_tells_both_kinds(void **state)
{
	struct darter_fd_set rd, wr;
	struct timeval tv = { .tv_usec = 20000 };
	int fd[2], p[2];

	(void)state;
	connected_pair(&darter_net, fd);
	assert_int_equal(pipe(p), 0);
	darter_fd_zero(&rd);
	darter_fd_zero(&wr);
	assert_true(darter_fd_set(fd[1], &rd));
	assert_true(darter_fd_set(p[0], &rd));
	assert_false(darter_fd_set(darter_fd_base() + DARTER_FD_SETSIZE, &rd));
	assert_int_equal(darter_select(fd[1] + 1, &rd, NULL, NULL, &tv), 0);
	assert_false(darter_fd_isset(fd[1], &rd));
	darter_fd_set(fd[1], &rd);
	darter_fd_set(p[0], &rd);
	darter_fd_set(fd[0], &wr);
	darter_send(fd[0], "x", 1, 0);
	await(&darter_net, fd[1], POLLIN);
	assert_int_equal(write(p[1], "x", 1), 1);
	assert_int_equal(darter_select((fd[0] > fd[1] ? fd[0] : fd[1]) + 1, &rd, &wr, NULL, NULL),
	    3);
	assert_true(darter_fd_isset(fd[1], &rd) && darter_fd_isset(p[0], &rd) &&
	    darter_fd_isset(fd[0], &wr));
	close(p[0]);
	close(p[1]);
	darter_close(fd[0]);
	darter_close(fd[1]);
}

static int
find_conn(void *arg, const struct darter_conn *c)
{
	return strcmp(c->state, "ESTABLISHED") == 0 && ntohs(c->local.sin_port) == *(uint16_t *)arg;
}

static void
connections_and_counters_are_told(void **state)
{
	uint64_t socks = 0, more = 0;
	uint16_t port;
	int fd[2];

	(void)state;
	assert_int_equal(darter_counter_get(NULL, "sockets", &socks), 0);
	connected_pair(&darter_net, fd);
	port = port_of(&darter_net, fd[0]);
	assert_int_equal(darter_conn_visit(NULL, find_conn, &port), 1);
	assert_int_equal(darter_counter_get(NULL, "sockets", &more), 0);
	assert_true(more >= socks + 2);
	assert_int_equal(darter_counter_get(NULL, "no_such", &more), -ENOENT);
	darter_close(fd[0]);
	darter_close(fd[1]);
}

static void
linger_waits_until_the_peer_has_it(void **state)
{
	struct linger l = { .l_onoff = 1, .l_linger = 1 };
	static char buf[65536];
	struct timeval t0, t1;
	int fd[2];
	long ms;

	(void)state;
	connected_pair(&darter_net, fd);
	darter_setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	set_nonblock(&darter_net, fd[0]);
	/* more than the peer's window: without a reader it can't be delivered */
	while (darter_send(fd[0], buf, sizeof(buf), 0) > 0)
		;
	gettimeofday(&t0, NULL);
	assert_int_equal(darter_close(fd[0]), 0);
	gettimeofday(&t1, NULL);
	ms = (t1.tv_sec - t0.tv_sec) * 1000 + (t1.tv_usec - t0.tv_usec) / 1000;
	assert_in_range(ms, 900, 3000);
	while (darter_recv(fd[1], buf, sizeof(buf), 0) > 0)
		;
	darter_close(fd[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(echoed_stream_comes_back_whole),
		cmocka_unit_test(close_wakes_sleepers_with_ebadf),
		cmocka_unit_test(shutdown_wakes_sleepers),
		cmocka_unit_test(several_readers_and_writers_share_a_stream),
		cmocka_unit_test(connections_churn_on_all_threads),
		cmocka_unit_test(signal_interrupts_a_sleeping_call),
		cmocka_unit_test(broken_stream_raises_sigpipe),
		cmocka_unit_test(forked_child_has_no_stack),
		cmocka_unit_test(attached_thread_runs_its_netisr_itself),
		cmocka_unit_test(select_tells_both_kinds),
		cmocka_unit_test(connections_and_counters_are_told),
		cmocka_unit_test(linger_waits_until_the_peer_has_it),
	};

	return cmocka_run_group_tests(tests, open_stack, close_stack);
}
