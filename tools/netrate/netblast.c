/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends datagrams of one size to one address as fast as they go, for some seconds. The first four
 * bytes are a counter (big-endian) of send calls, those that fail included. One instance, as the
 * original has.
 */
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "netrate.h"

enum { CALLS, ERRORS, PAYLOAD_MAX = 32768, RUN_EVERY = 32 };

static struct netrate nr = {
	.program = "netblast",
	.letters = "",
	.usage = "[ip] [port] [payloadsize] [duration]",
	.count_names = { "send_calls", "send_errors" },
	.n_instances = 1,
};

static size_t payload_bytes;
static int sock;

static void
work(struct instance *in)
{
	static char payload[PAYLOAD_MAX];
	int nothing = net->epoll_create1(0);
	struct epoll_event ev;
	uint32_t counter = 0, be;

	if (nothing < 0)
		err(1, "epoll_create1 failed");
	while (!netrate_must_stop(in)) {
		if (payload_bytes >= sizeof(be)) {
			be = htobe32(counter);
			memcpy(payload, &be, sizeof(be));
		}
		/* A blocked call that the end of the run interrupts has sent nothing. */
		if (net->send(sock, payload, payload_bytes, 0) < 0)
			netrate_count(in, ERRORS, 1);
		netrate_count(in, CALLS, 1);
		/* An attached thread that never waits must give its netisr a turn. */
		if (++counter % RUN_EVERY == 0 && in->is_attached)
			net->epoll_wait(nothing, &ev, 1, 0);
	}
	net->close(nothing);
}

static void
print_result(const struct timespec *start, const struct timespec *finish)
{
	unsigned long calls = netrate_sum(&nr, CALLS), errors = netrate_sum(&nr, ERRORS);

	printf("\n");
	printf("start:             %ld.%09ld\n", (long)start->tv_sec, start->tv_nsec);
	printf("finish:            %ld.%09ld\n", (long)finish->tv_sec, finish->tv_nsec);
	printf("send calls:        %lu\n", calls);
	printf("send errors:       %lu\n", errors);
	printf("approx send rate:  %lu\n", (calls - errors) / nr.seconds);
	printf("approx error rate: %lu\n", calls == 0 ? 0 : errors / calls);
}

int
main(int argc, char **argv)
{
	struct timespec start, finish;
	struct sockaddr_in to;

	if (netrate_getopt(&nr, argc, argv) != -1 || argc - optind != 4)
		netrate_usage(&nr);
	to = netrate_addr("ip", argv[optind],
	    (uint16_t)netrate_number("port", argv[optind + 1], 1, UINT16_MAX));
	payload_bytes = netrate_number("payloadsize", argv[optind + 2], 0, PAYLOAD_MAX);
	nr.seconds = (unsigned)netrate_number("duration", argv[optind + 3], 1, 1000000);
	netrate_begin(&nr);
	sock = net->socket(AF_INET, SOCK_DGRAM, 0);
	if (sock < 0)
		err(1, "socket");
	if (net->connect(sock, (struct sockaddr *)&to, sizeof(to)) < 0)
		err(1, "connect");
	clock_gettime(CLOCK_REALTIME, &start);
	netrate_run(&nr, work);
	clock_gettime(CLOCK_REALTIME, &finish);
	if (nr.is_json)
		netrate_json(&nr, &(struct netrate_value){ "sends_per_s",
		    (double)(netrate_sum(&nr, CALLS) - netrate_sum(&nr, ERRORS)) / nr.run_s }, 1);
	else
		print_result(&start, &finish);
	netrate_end(&nr);
	return 0;
}
