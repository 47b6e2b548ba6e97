/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accepts, waits for the client's FIN, then closes: many connections at once in each instance, with
 * epoll (DragonFly's uses kqueue). The client is thus the one that keeps TIME-WAIT. Until SIGINT or
 * SIGTERM (or -l seconds). One listener for all instances, or with -r a SO_REUSEPORT listener each;
 * -B then also pins instance n to CPU n, for the connections that arrive there. Prints nothing;
 * counts with --json.
 */
#include <err.h>
#include <errno.h>
#include <unistd.h>

#include "netrate.h"

enum { ACCEPTED, CLOSED, ERRORS, EVENTS = 128 };

static struct netrate nr = {
	.program = "kq_accept_server",
	.letters = "p:i:l:rB",
	.usage = "-p port [-i n_instance] [-r] [-B] [-l duration] [-D]",
	.count_names = { "accepted", "closed", "errors" },
	.is_server = true,
};

static bool must_share, must_pin;
static int listeners[NETRATE_INSTANCES_MAX];

static void
watch(int ep, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };

	if (net->epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) < 0)
		err(1, "epoll_ctl failed");
}

/* A batch at most: closes must not wait for a peer that never stops connecting. */
static void
accept_some(struct instance *in, int ep, int listener)
{
	for (unsigned i = 0; i < EVENTS; i++) {
		int fd = net->accept4(listener, NULL, NULL, SOCK_NONBLOCK);

		if (fd < 0) {
			if (errno != EAGAIN && errno != EINTR)
				netrate_count(in, ERRORS, 1);
			return;
		}
		netrate_count(in, ACCEPTED, 1);
		watch(ep, fd, EPOLLIN | EPOLLRDHUP);
	}
}

/* Data of a client is thrown away; its FIN, or the end of the connection, closes it. */
static void
on_conn(struct instance *in, const struct epoll_event *ev)
{
	char bytes[4096];

	if ((ev->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0) {
		net->recv(ev->data.fd, bytes, sizeof(bytes), 0);
		return;
	}
	netrate_count(in, ev->events & EPOLLERR ? ERRORS : CLOSED, 1);
	net->close(ev->data.fd);
}

static void
work(struct instance *in)
{
	struct epoll_event evs[EVENTS];
	int listener = listeners[must_share ? in->id : 0], ep = net->epoll_create1(0), n;

	if (ep < 0)
		err(1, "epoll_create1 failed");
	if (must_share && must_pin)
		netrate_pin(in->id, listener);
	watch(ep, listener, EPOLLIN);
	while (!netrate_must_stop(in)) {
		n = net->epoll_wait(ep, evs, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			err(1, "epoll_wait failed");
		for (int i = 0; i < n; i++) {
			if (evs[i].data.fd == listener)
				accept_some(in, ep, listener);
			else
				on_conn(in, &evs[i]);
		}
	}
	net->close(ep);
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
		listeners[i] = netrate_listen(&any, SOCK_NONBLOCK, must_share, false);
	netrate_say_listening(&nr, nr.port);
	netrate_run(&nr, work);
	if (nr.is_json)
		netrate_json(&nr, NULL, 0);
	netrate_end(&nr);
	return 0;
}
