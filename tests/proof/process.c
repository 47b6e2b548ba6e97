/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library and the process around it: affinity, fork, and the end. Two processes, a stack each,
 * on a cable that is a pair of the kernel's sockets ("cable:FD"): what one process has sent when it
 * is gone is what the other one finds there.
 *
 * Each test forks before it opens a stack; the child's exit status says what it saw.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "unit/both_nets.h"

#include "base/compiler.h"
#include "link/dev.h"
#include "runtime/config.h"
#include "runtime/netisr.h"
#include "runtime/pkt.h"

#define CHILD_IP	"10.9.0.1"
#define PARENT_IP	"10.9.0.2"
#define PORT		7000
#define BYTES		300000
#define CABLE_BYTES	(4 << 20)

/* ---- the cable ---- */

static int
cable_open(struct dev *d, const struct config_port *cfg, char *err, size_t err_size)
{
	(void)err;
	(void)err_size;
	d->priv = (void *)(intptr_t)atoi(cfg->device + strlen("cable:"));
	d->mtu = 1500;
	d->n_queues = 1;
	d->caps = 0;
	d->has_ether = true;
	memcpy(d->mac, cfg->mac, sizeof(d->mac));
	return 0;
}

static int
cable_start(struct dev *d, char *err, size_t err_size)
{
	(void)d;
	(void)err;
	(void)err_size;
	return 0;
}

static int
cable_fd(struct dev *d, unsigned q)
{
	(void)q;
	return (int)(intptr_t)d->priv;
}

static unsigned
cable_rx(struct dev *d, struct netisr *n, unsigned q, struct pkt **pkts, unsigned max)
{
	unsigned count = 0;

	for (; count < max; count++) {
		struct pkt *p = pkt_alloc(n);
		ssize_t len = -1;

		if (p != NULL)
			len = recv(cable_fd(d, q), p->data, PKT_ROOM_BYTES, MSG_DONTWAIT);
		if (len <= 0) {
			if (p != NULL)
				pkt_free(n, p);
			break;
		}
		p->len = (uint16_t)len;
		p->total_len = (uint32_t)len;
		p->dev = d->index;
		pkts[count] = p;
	}
	return count;
}

static unsigned
cable_tx(struct dev *d, struct netisr *n, unsigned q, struct pkt **pkts, unsigned count)
{
	uint8_t frame[2048];
	unsigned i;

	for (i = 0; i < count; i++) {
		pkt_copy_out(pkts[i], 0, frame, pkts[i]->total_len);
		/* a cable whose other end is gone or full loses what it is given */
		if (send(cable_fd(d, q), frame, pkts[i]->total_len,
		    MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			NETISR_COUNT(n, CTR_drop_tx_dev);
		pkt_free(n, pkts[i]);
	}
	return count;
}

static bool
cable_is_up(struct dev *d)
{
	(void)d;
	return true;
}

static void
cable_stop(struct dev *d)
{
	(void)d;
}

static const struct dev_ops cable_ops = {
	.name = "cable",
	.open = cable_open,
	.start = cable_start,
	.rx = cable_rx,
	.tx = cable_tx,
	.rx_fd = cable_fd,
	.link_is_up = cable_is_up,
	.stop = cable_stop,
	.close = cable_stop,
};

static int cable[2];

static void
make_cable(void)
{
	int i, bytes = CABLE_BYTES;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, cable), 0);
	for (i = 0; i < 2; i++)
		setsockopt(cable[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

static void
cut_cable(void)
{
	close(cable[0]);
	close(cable[1]);
}

static struct darter_stack *
open_on_cable(unsigned end, const char *linger)
{
	char device[64], mac[64];
	const char *over[] = { "stack.netisrs=1", device, mac,
		end == 0 ? "port.c.addr=" CHILD_IP "/24" : "port.c.addr=" PARENT_IP "/24",
		linger, NULL };
	struct darter_options o = { .size = sizeof(o), .overrides = over };
	struct darter_stack *s;
	char err[DARTER_ERR_MAX];

	snprintf(device, sizeof(device), "port.c.device=cable:%d", cable[end]);
	snprintf(mac, sizeof(mac), "port.c.mac=02:00:00:00:09:0%u", end + 1);
	s = darter_open(&o, err, sizeof(err));
	if (s == NULL)
		fprintf(stderr, "%s\n", err);
	return s;
}

/* ---- parent: the one who is left ---- */

static int
listen_there(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = darter_socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(darter_bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(darter_listen(fd, 4), 0);
	return fd;
}

static int
accept_one(int lfd)
{
	struct timeval tv = { .tv_sec = 20 };
	int fd;

	darter_setsockopt(lfd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	fd = darter_accept4(lfd, NULL, NULL, 0);
	assert_true(fd >= 0);
	darter_setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return fd;
}

/* Bytes until the end; *ret_err how it ended. */
static size_t
read_all(int fd, int *ret_err)
{
	size_t sum = 0;
	char buf[16384];
	ssize_t n;

	while ((n = darter_recv(fd, buf, sizeof(buf), 0)) > 0)
		sum += (size_t)n;
	*ret_err = n < 0 ? errno : 0;
	return sum;
}

static int
status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- child: the one who ends ---- */

static int
child_connects(const char *linger)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT),
		.sin_addr.s_addr = inet_addr(PARENT_IP) };
	int fd;

	if (open_on_cable(0, linger) == NULL)
		_exit(10);
	fd = darter_socket(AF_INET, SOCK_STREAM, 0);
	while (fd >= 0 && darter_connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
		/* the parent's stack is not there yet */
		if (errno != ECONNREFUSED && errno != ETIMEDOUT && errno != EHOSTUNREACH)
			_exit(11);
		usleep(1000);
	}
	return fd;
}

static char payload[BYTES];

static void
child_sends_closes_exits(void)
{
	int fd = child_connects("stack.exit_linger_ms=10000");

	if (darter_send(fd, payload, BYTES, 0) != BYTES)
		_exit(12);
	darter_close(fd);
	exit(0);
}

static void
child_sends_and_exits(void)
{
	int fd = child_connects("stack.exit_linger_ms=10000");

	if (darter_send(fd, payload, BYTES, 0) != BYTES)
		_exit(12);
	exit(0);
}

/* The parent does not read: there is more than its window takes. */
static void
child_gives_up(void)
{
	int fd = child_connects("stack.exit_linger_ms=50"), bytes = 16 << 20;

	darter_setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	while (darter_send(fd, payload, BYTES, MSG_DONTWAIT) > 0)
		;
	exit(0);
}

static void
child_closes_its_stack(void)
{
	int fd = child_connects("stack.exit_linger_ms=50"), bytes = 16 << 20;

	darter_setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	while (darter_send(fd, payload, BYTES, MSG_DONTWAIT) > 0)
		;
	darter_stack_close(darter_stack_current());
	_exit(0);
}

static pid_t
fork_child(void (*fn)(void))
{
	pid_t pid;

	make_cable();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		fn();
		_exit(9);
	}
	return pid;
}

/* ---- tests ---- */

static void
expect_delivery(void (*fn)(void))
{
	pid_t pid = fork_child(fn);
	struct darter_stack *s = open_on_cable(1, NULL);
	int lfd, fd, err;

	assert_non_null(s);
	lfd = listen_there();
	fd = accept_one(lfd);
	usleep(50000);	/* the child is at its end before anything is read */
	assert_int_equal(read_all(fd, &err), BYTES);
	assert_int_equal(err, 0);
	assert_int_equal(status_of(pid), 0);
	darter_close(fd);
	darter_close(lfd);
	darter_stack_close(s);
	cut_cable();
}

static void
send_close_and_exit_at_once_still_delivers(void **state)
{
	(void)state;
	expect_delivery(child_sends_closes_exits);
	expect_delivery(child_sends_and_exits);
}

static void
expect_reset(void (*fn)(void))
{
	pid_t pid = fork_child(fn);
	struct darter_stack *s = open_on_cable(1, NULL);
	int lfd, fd, err;

	assert_non_null(s);
	lfd = listen_there();
	fd = accept_one(lfd);
	assert_int_equal(status_of(pid), 0);
	read_all(fd, &err);
	assert_int_equal(err, ECONNRESET);
	darter_close(fd);
	darter_close(lfd);
	darter_stack_close(s);
	cut_cable();
}

static void
peer_of_what_was_not_delivered_in_time_is_reset(void **state)
{
	(void)state;
	expect_reset(child_gives_up);
	expect_reset(child_closes_its_stack);
}

/* Connected, then silent as a host that is gone: the parent stops the process. */
static void
child_connects_and_hangs(void)
{
	child_connects("stack.exit_linger_ms=0");
	for (;;)
		pause();
}

struct sleeper {
	int fd;
	int ep;		/* waits for events here instead of receiving */
	long rc;
	int err;
	uint32_t events;
	pthread_t thread;
};

static void *
sleep_in_call(void *arg)
{
	struct sleeper *s = arg;
	struct epoll_event ev = { 0 };
	char c;

	s->rc = s->ep >= 0 ? darter_epoll_wait(s->ep, &ev, 1, 20000)
			   : darter_recv(s->fd, &c, 1, 0);
	s->err = errno;
	s->events = ev.events;
	return NULL;
}

/* Case S25 d: keep-alive finds the peer dead: a recv and an epoll_wait that sleep are woken */
static void
dead_peer_wakes_calls_that_sleep(void **state)
{
	pid_t pid = fork_child(child_connects_and_hangs);
	struct darter_stack *s = open_on_cable(1, NULL);
	int lfd, fd, one = 1, on = 1;
	struct epoll_event ev = { .events = EPOLLIN };
	struct sleeper in_recv = { .ep = -1 }, in_epoll = { .ep = 0 };

	(void)state;
	assert_non_null(s);
	lfd = listen_there();
	fd = accept_one(lfd);
	darter_setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof(one));
	darter_setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one));
	darter_setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &one, sizeof(one));
	in_recv.fd = fd;
	in_epoll.ep = darter_epoll_create1(0);
	assert_int_equal(darter_epoll_ctl(in_epoll.ep, EPOLL_CTL_ADD, fd, &ev), 0);
	assert_int_equal(pthread_create(&in_recv.thread, NULL, sleep_in_call, &in_recv), 0);
	assert_int_equal(pthread_create(&in_epoll.thread, NULL, sleep_in_call, &in_epoll), 0);
	kill(pid, SIGSTOP);
	darter_setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	pthread_join(in_recv.thread, NULL);
	pthread_join(in_epoll.thread, NULL);
	assert_int_equal(in_recv.rc, -1);
	assert_int_equal(in_recv.err, ETIMEDOUT);
	assert_int_equal(in_epoll.rc, 1);
	/* whoever is first takes the error */
	assert_int_equal(in_epoll.events & ~(uint32_t)EPOLLERR, EPOLLIN | EPOLLHUP);
	kill(pid, SIGKILL);
	assert_int_equal(status_of(pid), 128 + SIGKILL);
	darter_close(in_epoll.ep);
	darter_close(fd);
	darter_close(lfd);
	darter_stack_close(s);
	cut_cable();
}

static void
affinity_is_the_same_before_and_after(void **state)
{
	cpu_set_t before, after;
	struct darter_stack *s;
	unsigned cpu;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (cpu = 0; cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &before); cpu++)
		;
	make_cable();
	s = open_on_cable(1, cpu < 1 ? "stack.cpus=0" : NULL);
	assert_non_null(s);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
	darter_stack_close(s);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
	cut_cable();
}

#define EXPECT(cond, code) \
	do { \
		if (!(cond)) \
			_exit(code); \
	} while (0)

/* In the child of a process that has a stack. */
static void
calls_in_forked_child(int fd)
{
	struct darter_options o = { .size = sizeof(o) };
	char err[DARTER_ERR_MAX], c;

	EXPECT(darter_socket(AF_INET, SOCK_STREAM, 0) == -1 && errno == ENOTSUP, 20);
	EXPECT(darter_recv(fd, &c, 1, MSG_DONTWAIT) == -1 && errno == ENOTSUP, 21);
	EXPECT(darter_send(fd, "y", 1, MSG_DONTWAIT) == -1 && errno == ENOTSUP, 22);
	EXPECT(darter_epoll_create1(0) == -1 && errno == ENOTSUP, 23);
	EXPECT(darter_open(&o, err, sizeof(err)) == NULL && errno == ENOTSUP, 24);
	EXPECT(darter_stack_current() == NULL, 25);
	EXPECT(darter_attach(NULL, 0) == -ENOTSUP, 26);
	darter_close(fd);
	darter_stack_close(the_stack);
	exit(0);
}

/* Case S22 g, in a child */
static void
forked_child_is_told_enotsup_and_its_close_sends_nothing(void **state)
{
	int fd[2];
	pid_t pid;
	char c;

	(void)state;
	assert_int_equal(open_stack(NULL), 0);
	connected_pair(&darter_net, fd);
	pid = fork();
	if (pid == 0)
		calls_in_forked_child(fd[0]);
	assert_int_equal(status_of(pid), 0);
	/* the connection is none the worse */
	assert_int_equal(darter_recv(fd[1], &c, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(darter_send(fd[0], "x", 1, 0), 1);
	assert_int_equal(darter_recv(fd[1], &c, 1, 0), 1);
	assert_int_equal(c, 'x');
	darter_close(fd[0]);
	assert_int_equal(darter_recv(fd[1], &c, 1, 0), 0);
	darter_close(fd[1]);
	assert_int_equal(close_stack(NULL), 0);
}

/* A descriptor of the kernel's, dup'ed device and all: the cable must carry nothing. */
static void
forked_child_puts_nothing_on_the_cable(void **state)
{
	char frame[2048], drained = 0;
	struct darter_stack *s;
	int fd, i;
	pid_t pid;

	(void)state;
	make_cable();
	s = open_on_cable(0, "stack.exit_linger_ms=0");
	assert_non_null(s);
	fd = listen_there();
	/* our own announcements of the address have gone out by then */
	for (i = 0; i < 60; i++, usleep(50000))
		while (recv(cable[1], frame, sizeof(frame), MSG_DONTWAIT) > 0)
			drained++;
	pid = fork();
	if (pid == 0) {
		darter_close(fd);
		exit(0);
	}
	assert_int_equal(status_of(pid), 0);
	assert_int_equal(recv(cable[1], frame, sizeof(frame), MSG_DONTWAIT), -1);
	assert_true(drained > 0);
	darter_close(fd);
	darter_stack_close(s);
	cut_cable();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_close_and_exit_at_once_still_delivers),
		cmocka_unit_test(peer_of_what_was_not_delivered_in_time_is_reset),
		cmocka_unit_test(dead_peer_wakes_calls_that_sleep),
		cmocka_unit_test(affinity_is_the_same_before_and_after),
		cmocka_unit_test(forked_child_is_told_enotsup_and_its_close_sends_nothing),
		cmocka_unit_test(forked_child_puts_nothing_on_the_cable),
	};

	if (dev_backend_add("cable:", &cable_ops) != 0)
		return 1;
	return cmocka_run_group_tests_name("proof process", tests, NULL, NULL);
}
