/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Returns datagrams to their senders: a SO_REUSEPORT socket and a blocking loop in each instance,
 * until SIGINT or SIGTERM (or -l seconds). -N: takes them only. -r: receive buffer in kilobytes. -B
 * pins instance n to CPU n. Prints nothing; counts with --json.
 */
#include <err.h>
#include <errno.h>
#include <unistd.h>

#include "netrate.h"

enum { RECEIVED, ECHOED, BYTES, ERRORS, BUF_BYTES = 2048 };

static struct netrate nr = {
	.program = "udpecho",
	.letters = "4:6:p:i:l:r:NB",
	.usage = "-4 addr4 -p port [-i ninst] [-r rcvbuf] [-N] [-B] [-l duration] [-D]",
	.count_names = { "received", "echoed", "bytes", "errors" },
	.is_server = true,
};

static bool is_silent, must_pin;
static int rcvbuf_bytes = 256 * 1024;
static int sockets[NETRATE_INSTANCES_MAX];

static int
make_socket(void)
{
	int fd = net->socket(AF_INET, SOCK_DGRAM, 0), on = 1;

	if (fd < 0)
		err(1, "socket(INET, DGRAM) failed");
	if (net->setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0)
		err(1, "a socket for each instance: setsockopt(REUSEPORT) failed");
	if (net->setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf_bytes, sizeof(rcvbuf_bytes)) < 0)
		err(1, "setsockopt(RCVBUF) failed");
	if (net->bind(fd, (const struct sockaddr *)&nr.addrs[0], sizeof(nr.addrs[0])) < 0)
		err(1, "bind failed");
	return fd;
}

static void
work(struct instance *in)
{
	char buf[BUF_BYTES];
	int fd = sockets[in->id];

	if (must_pin)
		netrate_pin(in->id, fd);
	while (!netrate_must_stop(in)) {
		struct sockaddr_in from;
		socklen_t from_len = sizeof(from);
		ssize_t n = net->recvfrom(fd, buf, sizeof(buf), 0, (struct sockaddr *)&from,
		    &from_len);

		if (n < 0) {
			if (errno != EINTR)
				netrate_count(in, ERRORS, 1);
			continue;
		}
		netrate_count(in, RECEIVED, 1);
		netrate_count(in, BYTES, (unsigned long)n);
		if (is_silent)
			continue;
		if (net->sendto(fd, buf, (size_t)n, 0, (struct sockaddr *)&from, from_len) == n)
			netrate_count(in, ECHOED, 1);
		else
			netrate_count(in, ERRORS, 1);
	}
}

int
main(int argc, char **argv)
{
	int c;

	while ((c = netrate_getopt(&nr, argc, argv)) != -1) {
		if (c == 'r')
			rcvbuf_bytes = (int)netrate_number("-r", optarg, 1, 1 << 20) * 1024;
		is_silent = is_silent || c == 'N';
		must_pin = must_pin || c == 'B';
	}
	if (optind != argc || nr.n_addrs != 1 || nr.port == 0 ||
	    nr.addrs[0].sin_addr.s_addr == INADDR_ANY)
		netrate_usage(&nr);
	netrate_begin(&nr);
	for (unsigned i = 0; i < nr.n_workers; i++)
		sockets[i] = make_socket();
	netrate_say_listening(&nr, nr.port);
	netrate_run(&nr, work);
	if (nr.is_json)
		netrate_json(&nr, NULL, 0);
	netrate_end(&nr);
	return 0;
}
