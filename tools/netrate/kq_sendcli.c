/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends to kq_recvserv on -c connections from -t threads and prints the throughput, the slowest and
 * the fastest connection, and Jain's index of fairness.
 *
 * Each thread first connects and waits for the server's word that the connection is accepted (-r:
 * for so long, then once more). All threads then start together: see netrate_gate(). Non-blocking
 * sends with epoll (DragonFly's uses kqueue); -S: sendfile from a file in memory. After the time is
 * over, what is in the send buffers is let out before the connections close, so that both ends can
 * compare their counts; it counts as sent, as in the original.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "netrate.h"
#include "sendrecv.h"

enum { BYTES, CONNECTIONS, ERRORS, EVENTS = 64, LET_OUT_S = 5 };

struct conn {
	int fd;
	int err;		/* errno that ended it, or 0 */
	uint64_t bytes;
	double err_us;		/* when */
	unsigned thread;
	struct sockaddr_in to;
};

static struct netrate nr = {
	.program = "kq_sendcli",
	.letters = "4:6:p:t:l:c:r:SEb:B",
	.usage = "-4 addr4 [-4 addr4]... [-p port] -c conns [-t nthreads] [-l sec] [-r readto_ms] "
	    "[-S] [-E] [-b buflen] [-B]",
	.count_names = { "bytes", "connections", "errors" },
	.seconds = 10,
	.port = RECV_PORT,
	.is_threaded = true,
	.has_gate = true,
};

static size_t buf_bytes = 128 * 1024;
static unsigned n_conns, readto_ms = 1000;
static bool must_pin, must_tell_errors, must_sendfile;
static int file = -1;			/* -S: buf_bytes to send from */
static char *buf;
static struct conn *conns;
static atomic_uint n_pending;		/* connections not yet established */
static double *start_us;		/* of each thread */

static void
establish(struct instance *in, int ep)
{
	for (unsigned i = in->id; i < n_conns; i += nr.n_workers) {
		struct epoll_event ev = { .events = EPOLLOUT, .data.ptr = &conns[i] };
		struct conn_ack ack;

		conns[i].fd = sendrecv_connect(&conns[i].to, readto_ms, &ack,
		    sizeof(ack));
		if (net->set_nonblock(conns[i].fd, true) < 0)
			err(1, "O_NONBLOCK failed");
		if (net->epoll_ctl(ep, EPOLL_CTL_ADD, conns[i].fd, &ev) < 0)
			err(1, "epoll_ctl failed");
		netrate_count(in, CONNECTIONS, 1);
		atomic_fetch_sub(&n_pending, 1);
	}
}

static void
send_some(struct instance *in, struct conn *c)
{
	off_t off = (off_t)(c->bytes % buf_bytes);
	ssize_t n;

	if (c->fd < 0)
		return;
	n = file < 0 ? net->send(c->fd, buf, buf_bytes, 0) :
	    net->sendfile(c->fd, file, &off, buf_bytes - (size_t)off);
	if (n >= 0) {
		c->bytes += (uint64_t)n;
		netrate_count(in, BYTES, (unsigned long)n);
	} else if (errno != EAGAIN && errno != EINTR) {
		c->err = errno;
		c->err_us = netrate_now_us();
		netrate_count(in, ERRORS, 1);
		net->close(c->fd);
		c->fd = -1;
	}
}

/*
 * FIN after the last byte, then wait for the peer's, which shows that it has read everything. The
 * main thread's wake-ups go on meanwhile, hence EINTR.
 */
static void
let_out(struct instance *in)
{
	struct timeval limit = { .tv_sec = 1 };
	double end_us = netrate_now_us() + LET_OUT_S * 1e6;
	unsigned i;
	char byte;

	for (i = in->id; i < n_conns; i += nr.n_workers) {
		if (conns[i].fd >= 0)
			net->shutdown(conns[i].fd, SHUT_WR);
	}
	for (i = in->id; i < n_conns; i += nr.n_workers) {
		if (conns[i].fd < 0)
			continue;
		net->set_nonblock(conns[i].fd, false);
		net->setsockopt(conns[i].fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		while (netrate_now_us() < end_us && net->recv(conns[i].fd, &byte, 1, 0) < 0 &&
		    (errno == EINTR || errno == EAGAIN))
			continue;
		net->close(conns[i].fd);
	}
}

static void
work(struct instance *in)
{
	struct epoll_event evs[EVENTS];
	int ep = net->epoll_create1(0), n;

	if (ep < 0)
		err(1, "epoll_create1 failed");
	if (must_pin)
		netrate_pin(in->id, -1);
	establish(in, ep);
	netrate_gate(in, &n_pending);
	if (in->id == 0)
		fprintf(stderr, "start %u seconds sending test: %u threads, %u connections\n",
		    nr.seconds, nr.n_workers, n_conns);
	start_us[in->id] = netrate_now_us();
	while (!netrate_must_stop(in)) {
		n = net->epoll_wait(ep, evs, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			err(1, "epoll_wait failed");
		for (int i = 0; i < n && !netrate_must_stop(in); i++)
			send_some(in, evs[i].data.ptr);
	}
	in->elapsed_us = netrate_now_us() - start_us[in->id];
	let_out(in);
	net->close(ep);
}

/* Starting anywhere: few connections of many clients should not all meet the first servers. */
static void
prepare(void)
{
	struct sockaddr_in *data_addrs;
	unsigned first, n_data_addrs;

	if (nr.n_instances > n_conns)
		nr.n_workers = nr.n_instances = n_conns;
	start_us = calloc(nr.n_workers, sizeof(*start_us));
	conns = calloc(n_conns, sizeof(*conns));
	buf = calloc(1, buf_bytes);
	if (start_us == NULL || conns == NULL || buf == NULL)
		err(1, "calloc failed");
	n_data_addrs = sendrecv_ask_ports(&nr, readto_ms, &data_addrs);
	first = (unsigned)((uint64_t)netrate_now_us() % n_data_addrs);
	for (unsigned i = 0; i < n_conns; i++)
		conns[i] = (struct conn){ .fd = -1, .thread = i % nr.n_workers,
		    .to = data_addrs[(first + i) % n_data_addrs] };
	n_pending = n_conns;
	free(data_addrs);
}

/* buf_bytes of a file without a name. */
static void
make_file(void)
{
	file = memfd_create("kq_sendcli", 0);
	if (file < 0 || ftruncate(file, (off_t)buf_bytes) < 0)
		err(1, "-S: a file in memory");
}

struct result {
	double total, min, max, jain;	/* Mbit/s; the index has no unit */
	unsigned n_errors;
};

static struct result
gather(void)
{
	double first_us = start_us[0], last_us = 0, sum = 0, squares = 0, bytes = 0;
	struct result r = { .min = 0 };
	unsigned n = 0;

	for (unsigned i = 0; i < nr.n_workers; i++) {
		double end_us = start_us[i] + nr.shared->instances[i].elapsed_us;

		first_us = start_us[i] < first_us ? start_us[i] : first_us;
		last_us = end_us > last_us ? end_us : last_us;
	}
	for (unsigned i = 0; i < n_conns; i++) {
		double rate = (double)conns[i].bytes * 8 /
		    nr.shared->instances[conns[i].thread].elapsed_us;

		bytes += (double)conns[i].bytes;
		if (conns[i].err != 0) {
			r.n_errors++;
			continue;
		}
		r.min = n == 0 || rate < r.min ? rate : r.min;
		r.max = rate > r.max ? rate : r.max;
		sum += rate;
		squares += rate * rate;
		n++;
	}
	r.total = bytes * 8 / (last_us - first_us);
	r.jain = squares > 0 ? sum * sum / (squares * n) : 0;
	return r;
}

static void
tell_errors(void)
{
	char name[INET_ADDRSTRLEN];

	for (unsigned i = 0; i < n_conns; i++) {
		const struct conn *c = &conns[i];
		double run_us = c->err_us - start_us[c->thread];

		if (c->err != 0)
			fprintf(stderr, "snd%u ->%s:%d, %ld sec, %.2f Mbps, errno %d\n", c->thread,
			    inet_ntop(AF_INET, &c->to.sin_addr, name, sizeof(name)),
			    ntohs(c->to.sin_port), (long)(run_us / 1e6),
			    (double)c->bytes * 8 / run_us, c->err);
	}
}

static void
take_option(int c)
{
	if (c == 'c')
		n_conns = (unsigned)netrate_number("-c", optarg, 1, 1000000);
	else if (c == 't')
		nr.n_instances = (unsigned)netrate_number("-t", optarg, 1, NETRATE_INSTANCES_MAX);
	else if (c == 'r')
		readto_ms = (unsigned)netrate_number("-r", optarg, 1, 1000000);
	else if (c == 'b')
		buf_bytes = netrate_number("-b", optarg, 1, 1 << 30);
	else if (c == 'B')
		must_pin = true;
	else if (c == 'E')
		must_tell_errors = true;
	else
		must_sendfile = true;
}

int
main(int argc, char **argv)
{
	struct result r;
	int c;

	while ((c = netrate_getopt(&nr, argc, argv)) != -1)
		take_option(c);
	if (optind != argc || nr.n_addrs == 0 || n_conns == 0)
		netrate_usage(&nr);
	netrate_begin(&nr);
	prepare();
	if (must_sendfile)
		make_file();
	netrate_run(&nr, work);
	r = gather();
	if (nr.is_json)
		netrate_json(&nr, (const struct netrate_value []){ { "mbps", r.total },
		    { "mbps_min", r.min }, { "mbps_max", r.max }, { "jain", r.jain } }, 4);
	else
		printf("Total: %.2f Mbps, min/max %.2f Mbps/%.2f Mbps, jain %.2f, error %u\n",
		    r.total, r.min, r.max, r.jain, r.n_errors);
	if (must_tell_errors)
		tell_errors();
	netrate_end(&nr);
	return 0;
}
