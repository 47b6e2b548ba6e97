/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives and discards what kq_sendcli sends, until SIGINT or SIGTERM (or -l seconds). -t threads,
 * each with a data port of its own (-R: one port, a SO_REUSEPORT listener each) and an epoll
 * (DragonFly's uses kqueue); a control port tells clients the data ports. Data ports are the first
 * free ones after the control port's default. -B pins thread n to CPU n. Prints nothing; counts
 * with --json. The highest instance serves the control port.
 */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netrate.h"
#include "sendrecv.h"

enum { BYTES, CONNECTIONS, CLOSED, ERRORS, EVENTS = 64 };

static struct netrate nr = {
	.program = "kq_recvserv",
	.letters = "4:6:p:t:l:RBb:",
	.usage = "[-4 addr4] [-p port] [-t nthreads] [-D] [-R] [-B] [-b buflen] [-l duration]",
	.count_names = { "bytes", "connections", "closed", "errors" },
	.port = RECV_PORT,
	.is_server = true,
	.is_threaded = true,
	.n_extra = 1,
};

static size_t buf_bytes = 128 * 1024;
static bool must_share, must_pin;
static int control, listeners[RECV_PORTS_MAX];
static struct recv_info *info;
static size_t info_bytes;

static void
watch(int ep, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	if (net->epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) < 0)
		err(1, "epoll_ctl failed");
}

static void
accept_some(struct instance *in, int ep, int listener)
{
	const struct conn_ack ack = { .version = 0 };

	for (unsigned i = 0; i < EVENTS; i++) {
		int fd = net->accept4(listener, NULL, NULL, SOCK_NONBLOCK);

		if (fd < 0)
			return;
		if (net->send(fd, &ack, sizeof(ack), 0) != (ssize_t)sizeof(ack)) {
			netrate_count(in, ERRORS, 1);
			net->close(fd);
			continue;
		}
		netrate_count(in, CONNECTIONS, 1);
		watch(ep, fd);
	}
}

static void
receive(struct instance *in, int fd, char *buf)
{
	ssize_t n = net->recv(fd, buf, buf_bytes, 0);

	if (n > 0) {
		netrate_count(in, BYTES, (unsigned long)n);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		netrate_count(in, n == 0 ? CLOSED : ERRORS, 1);
		net->close(fd);
	}
}

static void
serve_data(struct instance *in)
{
	struct epoll_event evs[EVENTS];
	int listener = listeners[in->id], ep = net->epoll_create1(0), n;
	char *buf = malloc(buf_bytes);

	if (ep < 0 || buf == NULL)
		err(1, "epoll and a buffer of %zu bytes", buf_bytes);
	if (must_pin)
		netrate_pin(in->id, must_share ? listener : -1);
	watch(ep, listener);
	while (!netrate_must_stop(in)) {
		n = net->epoll_wait(ep, evs, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			err(1, "epoll_wait failed");
		for (int i = 0; i < n; i++) {
			if (evs[i].data.fd == listener)
				accept_some(in, ep, listener);
			else
				receive(in, evs[i].data.fd, buf);
		}
	}
	net->close(ep);
	free(buf);
}

static void
serve_control(struct instance *in)
{
	while (!netrate_must_stop(in)) {
		int fd = net->accept4(control, NULL, NULL, 0);

		if (fd < 0)
			continue;
		if (net->send(fd, info, info_bytes, 0) != (ssize_t)info_bytes)
			netrate_count(in, ERRORS, 1);
		net->close(fd);
	}
}

static void
work(struct instance *in)
{
	if (in->id < nr.n_instances)
		serve_data(in);
	else
		serve_control(in);
}

/* All listeners are there before the first client can learn of them. */
static void
listen_all(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	unsigned i, port = RECV_PORT;

	if (nr.n_addrs > 0)
		at = nr.addrs[0];
	for (i = 0; i < nr.n_instances; i++) {
		if (must_share && i > 0)
			port--;		/* the one that the first thread found */
		do {
			if (++port > UINT16_MAX)
				errx(1, "failed to find a data port");
			at.sin_port = htons((uint16_t)port);
			listeners[i] = port == nr.port ? -1 :
			    netrate_listen(&at, SOCK_NONBLOCK, must_share, true);
		} while (listeners[i] < 0);
		info->ports[i] = at.sin_port;
	}
	at.sin_port = htons(nr.port);
	control = netrate_listen(&at, 0, false, false);
}

int
main(int argc, char **argv)
{
	int c;

	while ((c = netrate_getopt(&nr, argc, argv)) != -1) {
		if (c == 't')
			nr.n_instances = (unsigned)netrate_number("-t", optarg, 1, RECV_PORTS_MAX);
		else if (c == 'b')
			buf_bytes = netrate_number("-b", optarg, 1, 1 << 30);
		must_share = must_share || c == 'R';
		must_pin = must_pin || c == 'B';
	}
	if (optind != argc || nr.n_addrs > 1)
		netrate_usage(&nr);
	netrate_begin(&nr);
	info_bytes = sizeof(*info) + nr.n_instances * sizeof(info->ports[0]);
	info = calloc(1, info_bytes);
	if (info == NULL)
		err(1, "calloc failed");
	info->n_ports = (uint16_t)nr.n_instances;
	listen_all();
	netrate_say_listening(&nr, nr.port);
	netrate_run(&nr, work);
	if (nr.is_json)
		netrate_json(&nr, NULL, 0);
	netrate_end(&nr);
	free(info);
	return 0;
}
