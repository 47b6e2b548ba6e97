/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects and closes, one connection after the other in each instance, with blocking calls. Prints
 * connections per second.
 */
#include <errno.h>
#include <unistd.h>

#include "netrate.h"

enum { CONNECTIONS, ERRORS, UNFINISHED };

static struct netrate nr = {
	.program = "connect_client",
	.letters = "4:6:p:i:l:",
	.usage = "-4 inet4 -p port [-i n_instance] [-l duration]",
	.count_names = { "connections", "errors", "unfinished" },
	.n_instances = 1,
	.seconds = 10,
};

static void
work(struct instance *in)
{
	const struct sockaddr *to = (const struct sockaddr *)&nr.addrs[0];

	while (!netrate_must_stop(in)) {
		int fd = net->socket(AF_INET, SOCK_STREAM, 0);

		if (fd < 0) {
			netrate_count(in, ERRORS, 1);
			continue;
		}
		if (net->connect(fd, to, sizeof(nr.addrs[0])) == 0)
			netrate_count(in, CONNECTIONS, 1);
		else	/* the end of the run interrupts it */
			netrate_count(in, errno == EINTR ? UNFINISHED : ERRORS, 1);
		net->close(fd);
	}
}

int
main(int argc, char **argv)
{
	double rate;

	if (netrate_getopt(&nr, argc, argv) != -1 || optind != argc || nr.n_addrs != 1 ||
	    nr.port == 0 || nr.addrs[0].sin_addr.s_addr == INADDR_ANY)
		netrate_usage(&nr);
	netrate_begin(&nr);
	netrate_run(&nr, work);
	rate = (double)netrate_sum(&nr, CONNECTIONS) / nr.run_s;
	if (nr.is_json)
		netrate_json(&nr, &(struct netrate_value){ "connections_per_s", rate }, 1);
	else
		printf("%.2f\n", rate);
	netrate_end(&nr);
	return 0;
}
