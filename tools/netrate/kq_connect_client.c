/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects and closes, keeping -c connections under way in each instance with non-blocking calls
 * and epoll (DragonFly's uses kqueue). Addresses take turns. -u: before each connection a UDP
 * socket is made, connected, sends 18 bytes and is closed, as a resolver would. Prints connections
 * per second, those that fail not counted.
 */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "netrate.h"

enum { CONNECTIONS, ERRORS, UNFINISHED, DATAGRAMS, UDP_BYTES = 18, EVENTS = 256 };

static struct netrate nr = {
	.program = "kq_connect_client",
	.letters = "4:6:p:i:l:c:u",
	.usage = "-4 inet4 [-4 inet4_1]... -p port [-i n_instance] [-c conn_max] [-l duration] "
	    "[-u]",
	.count_names = { "connections", "errors", "unfinished", "datagrams" },
	.seconds = 10,
};

static unsigned conns_max = 8;
static bool has_udp;

static void
send_udp(struct instance *in, const struct sockaddr_in *to)
{
	static const char bytes[UDP_BYTES];
	int fd = net->socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0) {
		warn("socket DGRAM failed");
		return;
	}
	if (net->connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
		warn("connect DGRAM failed");
	else if (net->send(fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes))
		netrate_count(in, DATAGRAMS, 1);
	net->close(fd);
}

/* Begins a connection. True when it is under way, false when it is over already. */
static bool
begin(struct instance *in, int ep, const struct sockaddr_in *to)
{
	struct epoll_event ev = { .events = EPOLLOUT };
	int fd;

	if (has_udp)
		send_udp(in, to);
	fd = net->socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0)
		err(1, "socket failed");
	if (net->connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0) {
		netrate_count(in, CONNECTIONS, 1);
		net->close(fd);
		return false;
	}
	if (errno == EADDRNOTAVAIL)
		err(1, "connect failed: no local port left (give more -4, or a shorter TIME-WAIT)");
	if (errno != EINPROGRESS)
		err(1, "connect failed");
	ev.data.fd = fd;
	if (net->epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) < 0)
		err(1, "epoll_ctl failed");
	return true;
}

static void
work(struct instance *in)
{
	struct epoll_event evs[EVENTS];
	unsigned n_conns = 0, turn = 0;
	int ep = net->epoll_create1(0), n;
	double start_us = netrate_now_us();

	if (ep < 0)
		err(1, "epoll_create1 failed");
	while (!netrate_must_stop(in)) {
		while (n_conns < conns_max && !netrate_must_stop(in))
			n_conns += begin(in, ep, &nr.addrs[turn++ % nr.n_addrs]);
		n = net->epoll_wait(ep, evs, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			err(1, "epoll_wait failed");
		for (int i = 0; i < n; i++) {
			netrate_count(in, evs[i].events & EPOLLERR ? ERRORS : CONNECTIONS, 1);
			net->close(evs[i].data.fd);
			n_conns--;
		}
	}
	in->elapsed_us = netrate_now_us() - start_us;
	netrate_count(in, UNFINISHED, n_conns);
	net->close(ep);
}

/* Of each instance by its own clock, as DragonFly's does: whole connections per second. */
static unsigned long
sum_of_rates(void)
{
	unsigned long sum = 0;

	for (unsigned i = 0; i < nr.n_workers; i++) {
		struct instance *in = &nr.shared->instances[i];

		if (in->elapsed_us > 0)
			sum += (unsigned long)((double)in->count[CONNECTIONS] * 1e6 /
			    in->elapsed_us);
	}
	return sum;
}

int
main(int argc, char **argv)
{
	int c;

	while ((c = netrate_getopt(&nr, argc, argv)) != -1) {
		if (c == 'c')
			conns_max = (unsigned)netrate_number("-c", optarg, 1, 1000000);
		else if (c == 'u')
			has_udp = true;
	}
	if (optind != argc || nr.n_addrs == 0 || nr.port == 0)
		netrate_usage(&nr);
	netrate_begin(&nr);
	netrate_run(&nr, work);
	if (nr.is_json)
		netrate_json(&nr, &(struct netrate_value){ "connections_per_s",
		    (double)sum_of_rates() }, 1);
	else
		printf("%lu\n", sum_of_rates());
	netrate_end(&nr);
	return 0;
}
