/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accepts and closes, with blocking calls, until SIGINT or SIGTERM (or -l seconds). One listener
 * for all instances, or with -r a SO_REUSEPORT listener each; -B then also pins instance n to CPU n
 * and asks for the connections that arrive there (SO_INCOMING_CPU; DragonFly asks SO_CPUHINT for
 * the CPU). Prints nothing; counts with --json.
 */
#include <err.h>
#include <errno.h>
#include <unistd.h>

#include "netrate.h"

enum { ACCEPTED, ERRORS };

static struct netrate nr = {
	.program = "accept_server",
	.letters = "p:i:l:rB",
	.usage = "-p port [-i n_instance] [-r] [-B] [-l duration] [-D]",
	.count_names = { "accepted", "errors" },
	.is_server = true,
};

static bool must_share, must_pin;
static int listeners[NETRATE_INSTANCES_MAX];

static void
work(struct instance *in)
{
	int listener = listeners[must_share ? in->id : 0];

	if (must_share && must_pin)
		netrate_pin(in->id, listener);
	while (!netrate_must_stop(in)) {
		int fd = net->accept4(listener, NULL, NULL, 0);

		if (fd >= 0) {
			netrate_count(in, ACCEPTED, 1);
			net->close(fd);
		} else if (errno != EINTR) {
			netrate_count(in, ERRORS, 1);
		}
	}
}

int
main(int argc, char **argv)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int c;

	while ((c = netrate_getopt(&nr, argc, argv)) != -1) {
		must_share = must_share || c == 'r';
		must_pin = must_pin || c == 'B';
	}
	if (optind != argc || nr.port == 0)
		netrate_usage(&nr);
	netrate_begin(&nr);
	any.sin_port = htons(nr.port);
	for (unsigned i = 0; i < (must_share ? nr.n_workers : 1); i++)
		listeners[i] = netrate_listen(&any, 0, must_share, false);
	netrate_say_listening(&nr, nr.port);
	netrate_run(&nr, work);
	if (nr.is_json)
		netrate_json(&nr, NULL, 0);
	netrate_end(&nr);
	return 0;
}
