/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections without end: two stacks of one process joined by a memory cable, each with one or
 * more netisrs that attached threads hold. One side connects and closes, the other accepts, reads
 * the end of the stream and closes. Both sides count; afterwards nothing may be left of it: no
 * pcb, TIME_WAIT record, descriptor or packet, and no memory that grew with the number.
 *
 *         bench_soak [connections] [netisrs a stack]
 *
 * Defaults 1,000,000 and 1. Not a measurement: the rate is printed so that one knows when it ends.
 * Resident memory is compared between the end and a tenth of the way, at least five seconds in,
 * when all tables have their size. The local ports come round thousands of times, so a port that
 * is lost now and then shows as a connect that fails.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <darter/darter.h>
#include <darter/event.h>
#include <darter/socket.h>
#include <darter/stats.h>

#define PORT_FIRST	9000
#define N_PORTS		16	/* tuples enough for one second of TIME_WAIT */
#define INFLIGHT	32	/* a client thread */
#define EVENTS		64
#define THREADS_MAX	8
#define WAIT_S		30	/* for the last connections and TIME_WAIT */
#define EARLY_S		5
#define GROWTH_MAX_KB	1024	/* resident memory from the early look on */

enum side { CLIENT, SERVER };

struct worker {
	pthread_t thread;
	enum side side;
	unsigned netisr;
	uint64_t done;		/* connected, or accepted and closed; read after the join */
};

static struct darter_stack *stacks[2];
static uint64_t wanted;
static _Atomic uint64_t begun, connected, accepted;
static sem_t is_listening;	/* posted by each server */
static _Atomic bool must_stop;

static void
fatal(const char *what)
{
	fprintf(stderr, "bench_soak: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct darter_stack *
open_stack(enum side side, unsigned netisrs)
{
	char isrs[32], addr[64], dev[64], err[DARTER_ERR_MAX];
	const char *over[] = { isrs, addr, dev, "stack.memory=heap", "stack.packets=16384",
		"sysctl.net.inet.tcp.msl_ms=500", NULL };
	struct darter_options o = { .size = sizeof(o), .overrides = over };
	struct darter_stack *s;

	snprintf(isrs, sizeof(isrs), "stack.netisrs=%u", netisrs);
	snprintf(dev, sizeof(dev), "port.cable.device=pair:soak,queues=%u,rss=on", netisrs);
	snprintf(addr, sizeof(addr), "port.cable.addr=10.97.0.%d/24", side == SERVER ? 1 : 2);
	s = darter_open(&o, err, sizeof(err));
	if (s == NULL) {
		fprintf(stderr, "bench_soak: %s\n", err);
		exit(1);
	}
	return s;
}

static struct sockaddr_in
server_addr(unsigned port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_port = htons((uint16_t)(PORT_FIRST + port)),
		.sin_addr.s_addr = htonl(0x0a610001) };
}

static void
watch(int ep, int op, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };

	if (darter_epoll_ctl(ep, op, fd, &ev) < 0)
		fatal("epoll_ctl");
}

/* ---- server ---- */

static void
make_listeners(int ep, int listeners[N_PORTS])
{
	int on = 1;

	for (unsigned i = 0; i < N_PORTS; i++) {
		struct sockaddr_in a = server_addr(i);
		int fd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

		if (fd < 0 ||
		    darter_setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0 ||
		    darter_bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
		    darter_listen(fd, 4096) < 0)
			fatal("listener");
		listeners[i] = fd;
		watch(ep, EPOLL_CTL_ADD, fd, EPOLLIN);
	}
}

static bool
is_listener(const int listeners[N_PORTS], int fd)
{
	for (unsigned i = 0; i < N_PORTS; i++) {
		if (listeners[i] == fd)
			return true;
	}
	return false;
}

static void
accept_all(struct worker *w, int ep, int listener)
{
	int fd;

	while ((fd = darter_accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		w->done++;
		atomic_fetch_add(&accepted, 1);
		watch(ep, EPOLL_CTL_ADD, fd, EPOLLIN);
	}
	if (errno != EAGAIN)
		fatal("accept");
}

/* The client sends nothing, so what comes is the end, or a fault. */
static void
close_at_end(int fd)
{
	char byte;
	ssize_t n = darter_recv(fd, &byte, 1, 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n != 0)
		fatal("a connection did not end with the end of the stream");
	darter_close(fd);
}

static void
run_server(struct worker *w)
{
	struct epoll_event evs[EVENTS];
	int listeners[N_PORTS], ep = darter_epoll_create1(0), n;

	make_listeners(ep, listeners);
	sem_post(&is_listening);
	while (!atomic_load(&must_stop)) {
		n = darter_epoll_wait(ep, evs, EVENTS, 100);
		for (int i = 0; i < n; i++) {
			if (is_listener(listeners, evs[i].data.fd))
				accept_all(w, ep, evs[i].data.fd);
			else
				close_at_end(evs[i].data.fd);
		}
	}
	for (unsigned i = 0; i < N_PORTS; i++)
		darter_close(listeners[i]);
	darter_close(ep);
}

/* ---- client ---- */

/* Begins one more if there are more to be had. */
static bool
begin_one(int ep)
{
	uint64_t ticket = atomic_fetch_add(&begun, 1);
	struct sockaddr_in a = server_addr((unsigned)(ticket % N_PORTS));
	int fd;

	if (ticket >= wanted)
		return false;
	fd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0)
		fatal("socket");
	if (darter_connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 && errno != EINPROGRESS)
		fatal("connect");
	watch(ep, EPOLL_CTL_ADD, fd, EPOLLOUT);
	return true;
}

static void
end_one(struct worker *w, int fd)
{
	socklen_t len = sizeof(errno);
	int err = 0;

	if (darter_getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 || err != 0) {
		errno = err != 0 ? err : errno;
		fatal("connection");
	}
	darter_close(fd);
	w->done++;
	atomic_fetch_add(&connected, 1);
}

static void
run_client(struct worker *w)
{
	struct epoll_event evs[EVENTS];
	int ep = darter_epoll_create1(0), inflight = 0, n;

	while (inflight < INFLIGHT && begin_one(ep))
		inflight++;
	while (inflight > 0) {
		n = darter_epoll_wait(ep, evs, EVENTS, 1000);
		for (int i = 0; i < n; i++) {
			end_one(w, evs[i].data.fd);
			if (!begin_one(ep))
				inflight--;
		}
	}
	/* the last FINs, and TIME_WAIT */
	while (!atomic_load(&must_stop))
		darter_epoll_wait(ep, evs, EVENTS, 100);
	darter_close(ep);
}

static void *
thread_main(void *arg)
{
	struct worker *w = arg;

	darter_stack_use(stacks[w->side]);
	errno = -darter_attach(stacks[w->side], w->netisr);
	if (errno != 0)
		fatal("darter_attach");
	if (w->side == SERVER)
		run_server(w);
	else
		run_client(w);
	darter_detach();
	return NULL;
}

/* ---- the end ---- */

static uint64_t
counter(enum side side, const char *name)
{
	uint64_t v = 0;

	if (darter_counter_get(stacks[side], name, &v) < 0)
		fatal(name);
	return v;
}

static long
resident_kb(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f == NULL || fscanf(f, "%*d %ld", &pages) != 1)
		fatal("/proc/self/statm");
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static double
now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
progress(double start_s)
{
	double s = now_s() - start_s;
	uint64_t n = atomic_load(&connected);

	fprintf(stderr, "\r%llu of %llu connected, %.0f a second, %ld KiB resident\033[K",
	    (unsigned long long)n, (unsigned long long)wanted, (double)n / s, resident_kb());
}

/* All connections begun are accepted and forgotten by both stacks, or WAIT_S seconds have gone. */
static bool
is_empty(void)
{
	static const char *const gauges[] = { "tcp_timewait", "tcp_half_open" };
	unsigned i;

	if (atomic_load(&accepted) != wanted)
		return false;
	for (i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++) {
		if (counter(CLIENT, gauges[i]) != 0 || counter(SERVER, gauges[i]) != 0)
			return false;
	}
	return counter(CLIENT, "sockets") == 0 && counter(CLIENT, "tcp_pcbs") == 0;
}

static unsigned
left_over(void)
{
	static const char *const names[] = { "sockets", "tcp_pcbs", "tcp_half_open", "tcp_timewait",
		"tcp_timewait_evicted", "port_exhausted", "drop_pkt_nomem" };
	unsigned bad = 0;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (enum side side = CLIENT; side <= SERVER; side++) {
			uint64_t v = counter(side, names[i]);

			if (v != 0)
				printf("%s: %s = %llu\n", side == SERVER ? "server" : "client",
				    names[i], (unsigned long long)v);
			bad += v != 0;
		}
	}
	if (darter_fd_count() != 0)
		printf("%u descriptors are open\n", darter_fd_count());
	return bad + (darter_fd_count() != 0);
}

/* Servers first: a client's thread finds their listeners. */
static void
start_workers(struct worker *workers, unsigned netisrs)
{
	sem_init(&is_listening, 0, 0);
	for (unsigned i = 0; i < 2 * netisrs; i++) {
		workers[i] = (struct worker){ .side = i < netisrs ? SERVER : CLIENT,
			.netisr = i % netisrs };
		for (unsigned k = 0; i == netisrs && k < netisrs; k++)
			sem_wait(&is_listening);
		if (pthread_create(&workers[i].thread, NULL, thread_main, &workers[i]) != 0)
			fatal("thread");
	}
}

/* Until all have connected. Resident memory early on, 0: there was no such moment. */
static long
watch_workers(void)
{
	bool has_terminal = isatty(2);
	double start_s = now_s();
	long early_kb = 0;

	while (atomic_load(&connected) < wanted) {
		usleep(200000);
		if (early_kb == 0 && now_s() - start_s > EARLY_S &&
		    atomic_load(&connected) > wanted / 10)
			early_kb = resident_kb();
		if (has_terminal)
			progress(start_s);
	}
	printf("%s%.0f connections a second\n", has_terminal ? "\n" : "",
	    (double)wanted / (now_s() - start_s));
	return early_kb;
}

/* The number of things that are wrong. */
static unsigned
judge(const uint64_t done[2], long early_kb, long late_kb)
{
	unsigned bad = left_over();

	printf("%llu connected, %llu accepted; ", (unsigned long long)done[CLIENT],
	    (unsigned long long)done[SERVER]);
	if (early_kb == 0)
		puts("too short to compare memory");
	else
		printf("resident %ld KiB early, %ld KiB at the end\n", early_kb, late_kb);
	bad += done[CLIENT] != done[SERVER] || done[CLIENT] != wanted;
	bad += early_kb != 0 && late_kb > early_kb + GROWTH_MAX_KB;
	puts(bad == 0 ? "ok" : "FAILED");
	return bad;
}

int
main(int argc, char **argv)
{
	unsigned netisrs = argc > 2 ? (unsigned)atoi(argv[2]) : 1, i;
	struct worker workers[2 * THREADS_MAX];
	uint64_t done[2] = { 0, 0 };
	long early_kb, late_kb;
	unsigned bad;

	wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	if (wanted == 0 || netisrs == 0 || netisrs > THREADS_MAX) {
		fprintf(stderr, "usage: bench_soak [connections] [netisrs a stack, 1 to %d]\n",
		    THREADS_MAX);
		return 2;
	}
	stacks[CLIENT] = open_stack(CLIENT, netisrs);
	stacks[SERVER] = open_stack(SERVER, netisrs);
	start_workers(workers, netisrs);
	early_kb = watch_workers();
	for (i = 0; i < WAIT_S * 10 && !is_empty(); i++)
		usleep(100000);
	late_kb = resident_kb();
	atomic_store(&must_stop, true);
	for (i = 0; i < 2 * netisrs; i++) {
		pthread_join(workers[i].thread, NULL);
		done[workers[i].side] += workers[i].done;
	}
	/* the listeners' end, by messages to their owners */
	for (i = 0; i < WAIT_S * 10 && counter(SERVER, "sockets") != 0; i++)
		usleep(100000);
	bad = judge(done, early_kb, late_kb);
	darter_stack_close(stacks[CLIENT]);
	darter_stack_close(stacks[SERVER]);
	return bad != 0;
}
