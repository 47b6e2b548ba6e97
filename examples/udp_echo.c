/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A UDP echo server: every datagram goes back to where it came from.
 *
 *	udp_echo [-p port] [--conf file] [-o section.key=value]...
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <darter/darter.h>
#include <darter/socket.h>
#include <darter/stats.h>

#include "server.h"

static volatile sig_atomic_t must_stop;

static void
on_signal(int sig)
{
	(void)sig;
	darter_signal_note();
	must_stop = 1;
}

static int
echo(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) }, from;
	int fd = darter_socket(AF_INET, SOCK_DGRAM, 0);
	static char buf[65536];

	if (fd < 0 || darter_bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	printf("listening on port %u\n", port);
	fflush(stdout);
	while (!must_stop) {
		socklen_t len = sizeof(from);
		ssize_t n = darter_recvfrom(fd, buf, sizeof(buf), 0, (struct sockaddr *)&from,
		    &len);

		if (n >= 0)
			n = darter_sendto(fd, buf, (size_t)n, 0, (struct sockaddr *)&from, len);
		/* an error of one peer (no route, say) is no reason to stop serving the others */
		if (n < 0 && errno != EINTR)
			perror("udp_echo");
	}
	return darter_close(fd);
}

int
main(int argc, char **argv)
{
	struct options o = { .program = "udp_echo", .port = 7 };
	struct sigaction stop = { .sa_handler = on_signal };
	struct darter_stack *s;
	uint64_t dropped;

	options_parse(&o, argc, argv, false);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	s = options_open(&o);
	if (echo((uint16_t)o.port) < 0) {
		perror("udp_echo");
		return 1;
	}
	if (darter_counter_get(s, "drop_udp_rcvq_full", &dropped) == 0 && dropped != 0)
		printf("%llu datagrams came faster than they were read\n",
		    (unsigned long long)dropped);
	darter_stack_close(s);
	return 0;
}
