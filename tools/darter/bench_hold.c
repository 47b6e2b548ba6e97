/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The worker of `darter bench ports`: connects to one destination while part of the local ports
 * towards it are held by other connections.
 *
 * Destinations are (address, port) pairs of their own for the empty range, the full one, and the
 * one of which netisr 0's share alone is full. What is held stays open from slice to slice; a later
 * level only adds. Connections of a slice end with a reset, so that no TIME_WAIT fills the range.
 *
 * darter: the thread is attached to netisr 0 and a helper to netisr 1 when both are to work; the
 * peer is the responder. The emulated ways (bench_portalgo.c) search their own table, which holds
 * as many tuples; the stack's own connect follows, so they carry its small choice as well. The
 * kernel: over the loopback of a namespace, against a process that accepts and closes.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <darter/darter.h>

#include "bench.h"

#define FAILED_MAX	10
#define TIMED_MAX	60000	/* connects of a slice and thread whose time is kept */
#define KERNEL_WINDOW	64	/* ports that the kernel may choose from while it is filled */
#define TENTHOUSAND	10000

/* What this worker holds. One thread but during a slice of two. */
static struct hold {
	bool is_ready;
	uint16_t first;
	uint32_t count;			/* of the range */
	int *fd[BENCH_DESTS];
	uint32_t n_held[BENCH_DESTS];
	struct bench_portset *set[BENCH_PORTALGOS];
} hold;

/* One thread's part of a slice. */
struct connector {
	const struct bench_worker *w;
	const struct bench_cmd *cmd;
	struct darter_stack *stack;	/* darter: the helper's to attach to */
	enum bench_dest dest;
	uint32_t n_fill;		/* instead of a slice: connections to be held */
	pthread_barrier_t *start;
	double *took;
	struct bench_reply reply;
};

static struct sockaddr_in
addr_of(const struct bench_worker *w, enum bench_dest dest)
{
	uint32_t host = w->net == &net_darter ? 2 + dest : 0;

	return (struct sockaddr_in){ .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)(BENCH_PORT + dest)),
	    .sin_addr.s_addr = htonl(w->server_ip + host) };
}

static int
open_socket(const struct bench_worker *w)
{
	struct linger hard = { .l_onoff = 1, .l_linger = 0 };
	int fd = w->net->socket(AF_INET, SOCK_STREAM, 0);

	if (fd >= 0)
		w->net->setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	return fd;
}

/* ---- the kernel's peer and range ---- */

static void
watch(int ep, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP, .data.fd = fd };

	epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
}

static int
listen_on(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 65535) < 0)
		_exit(1);
	return fd;
}

/* Accepts for ever; a connection that its client ends is closed. */
static void __attribute__((noreturn))
serve_kernel(pid_t parent, int ready, int cpu)
{
	int listener[BENCH_DESTS], ep, i, n, fd;
	struct epoll_event evs[64];

	bench_child_init(parent);
	bench_pin(cpu);
	ep = epoll_create1(EPOLL_CLOEXEC);
	for (i = 0; i < BENCH_DESTS; i++) {
		listener[i] = listen_on((uint16_t)(BENCH_PORT + i));
		watch(ep, listener[i]);
	}
	if (write(ready, "r", 1) != 1)
		_exit(1);
	for (;;) {
		n = epoll_wait(ep, evs, ARRAY_SIZE(evs), -1);
		for (i = 0; i < n; i++) {
			if (evs[i].data.fd > listener[BENCH_DESTS - 1]) {
				close(evs[i].data.fd);
				continue;
			}
			while ((fd = accept4(evs[i].data.fd, NULL, NULL, SOCK_NONBLOCK)) >= 0)
				watch(ep, fd);
		}
	}
}

static bool
start_kernel(const struct bench_worker *w, struct bench_reply *ret)
{
	unsigned first = 0, last = 0;
	int ready[2];
	pid_t self = getpid(), pid;
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
	char byte;

	if (f == NULL || fscanf(f, "%u %u", &first, &last) != 2 || first == 0 || last < first)
		first = last = 0;
	if (f != NULL)
		fclose(f);
	hold.first = (uint16_t)first;
	hold.count = last - first + 1;
	if (first == 0 || pipe(ready) < 0 || (pid = fork()) < 0) {
		bench_note_failure(ret, "the kernel's port range and server");
		return false;
	}
	if (pid == 0)
		serve_kernel(self, ready[1], w->cpus[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		bench_note_failure(ret, "the kernel's server");
		return false;
	}
	close(ready[0]);
	return true;
}

static bool
set_kernel_range(uint32_t first, uint32_t last)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "w");
	bool is_good = f != NULL && fprintf(f, "%u %u", first, last) > 0;

	return f != NULL && fclose(f) == 0 && is_good;
}

/* ---- holding ---- */

static bool
hold_one(struct connector *k)
{
	struct sockaddr_in a = addr_of(k->w, k->dest);
	int fd = open_socket(k->w);

	if (fd < 0) {
		bench_note_failure(&k->reply, "socket");
		return false;
	}
	if (k->w->net->connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		if (errno != EADDRNOTAVAIL)
			bench_note_failure(&k->reply, "connect");
		k->w->net->close(fd);
		return false;
	}
	hold.fd[k->dest][hold.n_held[k->dest]++] = fd;
	return true;
}

/*
 * Up to `target` connections in the kernel. Beyond the ports of one parity each connect would scan
 * half of the range: it gets a few ports at a time to choose from, in an order that spreads them.
 */
static void
fill_kernel(struct connector *k, uint32_t target)
{
	uint32_t n_windows = hold.count / KERNEL_WINDOW, i, first;
	uint32_t *n = &hold.n_held[k->dest];

	while (*n < target && *n < hold.count / 2 && hold_one(k))
		;
	for (i = 0; i < n_windows && *n < target; i++) {
		first = hold.first + (uint32_t)((uint64_t)i * 97 % n_windows) * KERNEL_WINDOW;
		if (!set_kernel_range(first, first + KERNEL_WINDOW - 1)) {
			bench_note_failure(&k->reply, "ip_local_port_range");
			break;
		}
		while (*n < target && hold_one(k))
			;
	}
	set_kernel_range(hold.first, hold.first + hold.count - 1u);
}

/* Netisr 0's share: spent when the stack draws from another's; then a part is let go. */
static void
fill_own(struct connector *k, uint32_t tenthousandths)
{
	uint64_t before[BENCH_CTRS], now[BENCH_CTRS];
	uint32_t *n = &hold.n_held[BENCH_DEST_OWN], target;

	bench_counters_read(before);
	do {
		if (!hold_one(k))
			return;
		bench_counters_read(now);
	} while (now[BENCH_CTR_SPILLS] == before[BENCH_CTR_SPILLS] && *n < hold.count);
	k->w->net->close(hold.fd[BENCH_DEST_OWN][--*n]);
	target = (uint32_t)((uint64_t)*n * tenthousandths / TENTHOUSAND);
	/* The first ones, not the last: drawn in random order, so any part is a random one. */
	while (*n > target)
		k->w->net->close(hold.fd[BENCH_DEST_OWN][--*n]);
}

static bool
prepare(const struct bench_worker *w, struct bench_reply *ret)
{
	unsigned i;

	if (hold.is_ready)
		return true;
	bench_pin(w->cpus[0]);
	if (w->net == &net_darter) {
		hold.first = BENCH_LOCAL_FIRST;
		hold.count = BENCH_LOCAL_PORTS;
	} else if (!start_kernel(w, ret)) {
		return false;
	}
	for (i = 0; i < BENCH_DESTS; i++) {
		hold.fd[i] = calloc(hold.count, sizeof(int));
		if (hold.fd[i] == NULL)
			return false;
	}
	for (i = BENCH_PORT_GLOBAL; i < BENCH_PORTALGOS; i++) {
		hold.set[i] = bench_portset_new(i, hold.first, hold.count, BENCH_DESTS);
		if (hold.set[i] == NULL)
			return false;
	}
	hold.is_ready = true;
	return true;
}

/* ---- a slice ---- */

/* Socket and connect; then the end, which is not timed. */
static void
connect_once(struct connector *k, struct bench_portset *set)
{
	const struct net_calls *net = k->w->net;
	struct sockaddr_in a = addr_of(k->w, k->dest);
	uint64_t start_ns = bench_now_ns(), start;
	int fd = open_socket(k->w), rc;
	uint16_t port = 0;

	start = bench_cycles();
	if (set != NULL)
		port = bench_portset_take(set, k->dest, &k->reply.probes);
	rc = fd < 0 || (set != NULL && port == 0) ? -1 :
	    net->connect(fd, (struct sockaddr *)&a, sizeof(a));
	k->reply.cycles += bench_cycles() - start;
	if (rc < 0) {
		bench_note_failure(&k->reply, "connect");
	} else {
		if (k->reply.ops < TIMED_MAX)
			k->took[k->reply.ops] = (double)(bench_now_ns() - start_ns);
		k->reply.ops++;
	}
	if (fd >= 0)
		net->close(fd);
	if (port != 0)
		bench_portset_put(set, k->dest, port);
}

static void
run_connector(struct connector *k)
{
	struct bench_portset *set = hold.set[k->cmd->portalgo];
	uint64_t start, end;

	if (k->n_fill != 0) {
		while (k->n_fill-- != 0 && hold_one(k))
			;
		return;
	}
	if (k->start != NULL)
		pthread_barrier_wait(k->start);
	start = bench_now_ns();
	end = start + (uint64_t)k->cmd->slice_ms * 1000000;
	while (k->reply.failed < FAILED_MAX && bench_now_ns() < end)
		connect_once(k, set);
	k->reply.elapsed_ns = bench_now_ns() - start;
}

/* The helper's: netisr 1, on the other CPU. */
static void *
helper_main(void *arg)
{
	struct connector *k = arg;
	int rc;

	bench_pin(k->w->cpus[1]);
	darter_stack_use(k->stack);
	rc = darter_attach(k->stack, 1);
	if (rc < 0) {
		errno = -rc;
		bench_note_failure(&k->reply, "darter_attach");
		if (k->start != NULL)
			pthread_barrier_wait(k->start);
		return NULL;
	}
	run_connector(k);
	darter_detach();
	return NULL;
}

static void
fail_with(struct bench_reply *to, const struct bench_reply *from)
{
	if (to->failed == 0)
		memcpy(to->why, from->why, sizeof(to->why));
	to->failed += from->failed;
}

/* Half of the range by each netisr, as a program with a thread on each core comes to hold it. */
static void
fill_both(struct connector *k, uint32_t target)
{
	struct connector helper = *k;
	uint32_t more = target > hold.n_held[k->dest] ? target - hold.n_held[k->dest] : 0;
	pthread_t t;

	helper.n_fill = more / 2;
	k->n_fill = more - more / 2;
	if (k->n_fill != 0)
		run_connector(k);
	k->n_fill = 0;
	if (helper.n_fill == 0)
		return;
	if (pthread_create(&t, NULL, helper_main, &helper) != 0) {
		bench_note_failure(&k->reply, "a second thread");
		return;
	}
	pthread_join(t, NULL);
	fail_with(&k->reply, &helper.reply);
}

static void
fill(struct connector *k)
{
	uint32_t part = k->cmd->c.inflight;
	uint32_t target = (uint32_t)((uint64_t)hold.count * part / TENTHOUSAND);
	unsigned i;

	if (k->w->net != &net_darter)
		fill_kernel(k, target);
	else if (k->dest == BENCH_DEST_OWN)
		fill_own(k, part);
	else
		fill_both(k, target);
	for (i = BENCH_PORT_GLOBAL; i < BENCH_PORTALGOS; i++)
		bench_portset_fill(hold.set[i], k->dest, target);
	k->reply.ops = hold.n_held[k->dest];
}

static void
run_both(struct connector *k, struct connector *helper)
{
	pthread_barrier_t start;
	pthread_t t;

	pthread_barrier_init(&start, NULL, 2);
	k->start = helper->start = &start;
	if (pthread_create(&t, NULL, helper_main, helper) != 0) {
		bench_note_failure(&k->reply, "a second thread");
		return;
	}
	run_connector(k);
	pthread_join(t, NULL);
	pthread_barrier_destroy(&start);
	fail_with(&k->reply, &helper->reply);
	k->reply.ops += helper->reply.ops;
	k->reply.cycles += helper->reply.cycles;
	k->reply.probes += helper->reply.probes;
}

static void
measure(struct connector *k)
{
	static double took[2][TIMED_MAX];
	struct connector helper = *k;
	uint64_t n;

	k->took = took[0];
	helper.took = took[1];
	if (k->w->net == &net_darter)
		bench_counters_begin(&k->reply);
	if (k->cmd->n_threads > 1)
		run_both(k, &helper);
	else
		run_connector(k);
	if (k->w->net == &net_darter)
		bench_counters_end(&k->reply);
	n = k->reply.ops - helper.reply.ops;
	bench_times_of(took[0], n < TIMED_MAX ? n : TIMED_MAX, &k->reply.times);
}

void
bench_ports_slice(const struct bench_worker *w, const struct bench_cmd *cmd,
    struct bench_reply *ret)
{
	struct connector k = { .w = w, .cmd = cmd, .dest = cmd->dest };

	if (prepare(w, &k.reply)) {
		if (w->net == &net_darter)
			k.stack = darter_stack_current();
		if (cmd->is_fill)
			fill(&k);
		else
			measure(&k);
	} else if (k.reply.failed == 0) {
		bench_note_failure(&k.reply, "memory");
	}
	*ret = k.reply;
}
