/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client of a slice. One connection at a time uses blocking calls; several in flight use
 * non-blocking ones and an epoll. A slice ends by itself after its time: operations begun are
 * finished, and the rate is over the time until the last one was.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

#define WARM_UP_TRIPS	64
#define MAX_TIMED	100000	/* trips of a slice whose time is kept */
#define CLOCK_EVERY	8	/* operations between looks at the clock */
/* whole answers compared, beside the number that each one carries */
#define VERIFY_EVERY	16
#define UDP_BATCH	16
#define STUCK_NS	UINT64_C(2000000000)
#define SETTLE_MS	3
#define HELLO_NS	UINT64_C(10000000000)

struct running {
	const struct net_calls *net;
	const struct bench_cmd *cmd;
	struct bench_reply *reply;
	uint32_t server_ip;
	uint32_t next_port;
	uint64_t start_ns;
	uint64_t end_ns;
	bool is_hello;		/* the link may not be up yet: wait shortly */
};

void
bench_note_failure(struct bench_reply *reply, const char *what)
{
	if (reply->failed++ == 0)
		snprintf(reply->why, BENCH_WHY_MAX, "client: %s: %s", what, strerror(errno));
}

static void
note_failure(struct running *r, const char *what)
{
	bench_note_failure(r->reply, what);
}

static struct sockaddr_in
server_addr(struct running *r, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port),
	    .sin_addr.s_addr = htonl(r->server_ip) };
}

/* The next listener in turn. */
static struct sockaddr_in
next_server(struct running *r)
{
	return server_addr(r, (uint16_t)(BENCH_PORT + r->next_port++ % BENCH_PORTS));
}

static void
set_timeouts(struct running *r, int fd, long seconds)
{
	struct timeval wait = { .tv_sec = seconds };

	r->net->setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	r->net->setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
}

/* Only what the case is about: each call would be counted with it. */
static void
set_options(struct running *r, int fd)
{
	struct linger hard = { .l_onoff = 1, .l_linger = 0 };

	if (r->cmd->c.is_reset)
		r->net->setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	if (r->is_hello)
		set_timeouts(r, fd, 1);
}

static void
begin_time(struct running *r)
{
	r->start_ns = bench_now_ns();
	r->end_ns = r->start_ns + (uint64_t)r->cmd->slice_ms * 1000000;
}

static void
end_time(struct running *r)
{
	r->reply->elapsed_ns = bench_now_ns() - r->start_ns;
}

/* ---- request/response ---- */

static bool
one_trip(struct running *r, int fd, const uint8_t *request, uint8_t *answer)
{
	uint32_t got = 0, len = r->cmd->c.n_bytes;
	ssize_t n;

	if (r->net->send(fd, request, len, MSG_NOSIGNAL) != (ssize_t)len) {
		note_failure(r, "send");
		return false;
	}
	while (got < len) {
		n = r->net->recv(fd, answer + got, len - got, 0);
		if (n <= 0) {
			if (n == 0)
				errno = ECONNRESET;
			note_failure(r, "recv");
			return false;
		}
		got += (uint32_t)n;
	}
	return true;
}

/* Each request carries its number at both ends. */
static void
stamp(uint8_t *request, uint32_t len, uint64_t number)
{
	memcpy(request + len - (len < 8 ? len : 8), &number, len < 8 ? len : 8);
	memcpy(request, &number, len < 8 ? len : 8);
}

static bool
is_echo(const uint8_t *request, const uint8_t *answer, uint32_t len, uint64_t number)
{
	if (number % VERIFY_EVERY == 0)
		return memcmp(request, answer, len) == 0;
	if (len < 8)
		return memcmp(request, answer, len) == 0;
	return memcmp(request, answer, 8) == 0 && memcmp(request + len - 8, answer + len - 8, 8) ==
	    0;
}

/* One trip, timed into `took` if that is given. */
static bool
timed_trip(struct running *r, int fd, const uint8_t *request, uint8_t *answer, double *took)
{
	uint64_t start = took != NULL ? bench_now_ns() : 0;

	if (!one_trip(r, fd, request, answer))
		return false;
	if (took != NULL)
		*took = (double)(bench_now_ns() - start);
	return true;
}

/* `took` has room for MAX_TIMED trips, or is NULL. */
static void
run_trips(struct running *r, int fd, uint8_t *request, uint8_t *answer, double *took)
{
	uint32_t len = r->cmd->c.n_bytes;
	uint64_t i, done;

	for (i = 0;; i++) {
		done = i < WARM_UP_TRIPS ? 0 : i - WARM_UP_TRIPS;
		if (i == WARM_UP_TRIPS)
			begin_time(r);
		if (i > WARM_UP_TRIPS && i % CLOCK_EVERY == 0 && bench_now_ns() >= r->end_ns)
			break;
		stamp(request, len, i);
		if (!timed_trip(r, fd, request, answer, took != NULL && done < MAX_TIMED ?
		    took + done : NULL))
			break;
		if (!is_echo(request, answer, len, i)) {
			errno = EBADMSG;
			note_failure(r, "answer differs from the request");
		}
		r->reply->bytes += len;
	}
	if (i <= WARM_UP_TRIPS)
		return;
	end_time(r);
	r->reply->ops = done;
	if (took != NULL)
		bench_times_of(took, done < MAX_TIMED ? done : MAX_TIMED, &r->reply->times);
}

static void
run_rr(struct running *r)
{
	struct sockaddr_in a = server_addr(r, BENCH_PORT);
	uint8_t *buf = malloc(2 * BENCH_MAX_BYTES);
	bool is_timed = r->cmd->c.kind == BENCH_LATENCY;
	double *took = is_timed ? malloc(MAX_TIMED * sizeof(*took)) : NULL;
	int fd = r->net->socket(AF_INET, SOCK_STREAM, 0);
	int one = 1;
	uint32_t i;

	if (buf == NULL || fd < 0 || (is_timed && took == NULL)) {
		note_failure(r, "socket");
	} else {
		r->net->setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		set_timeouts(r, fd, 2);
		for (i = 0; i < BENCH_MAX_BYTES; i++)
			buf[i] = (uint8_t)(i * 31 + (i >> 8));
		if (r->net->connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
			note_failure(r, "connect");
		else
			run_trips(r, fd, buf, buf + BENCH_MAX_BYTES, took);
	}
	if (fd >= 0)
		r->net->close(fd);
	free(took);
	free(buf);
}

/* ---- connections, one at a time ---- */

static bool
exchange_byte(struct running *r, int fd)
{
	uint8_t out = (uint8_t)r->reply->ops, in = (uint8_t)~out;

	if (r->net->send(fd, &out, 1, MSG_NOSIGNAL) != 1) {
		note_failure(r, "send");
		return false;
	}
	if (r->net->recv(fd, &in, 1, 0) != 1 || in != out) {
		note_failure(r, "recv");
		return false;
	}
	r->reply->bytes++;
	return true;
}

static void
connect_once(struct running *r)
{
	struct sockaddr_in a = next_server(r);
	int fd = r->net->socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0) {
		note_failure(r, "socket");
		return;
	}
	set_options(r, fd);
	if (r->net->connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		note_failure(r, "connect");
	else if (r->cmd->c.kind == BENCH_CONNECT || exchange_byte(r, fd))
		r->reply->ops++;
	r->net->close(fd);
}

static void
run_one_by_one(struct running *r)
{
	uint64_t i;

	begin_time(r);
	for (i = 0; r->reply->failed < 10; i++) {
		if (i % CLOCK_EVERY == 0 && bench_now_ns() >= r->end_ns)
			break;
		connect_once(r);
	}
	end_time(r);
}

/* ---- connections, several in flight ---- */

enum stage {
	STAGE_NONE,
	STAGE_CONNECTING,
	STAGE_WAITING,		/* for the answer */
};

struct flight {
	int fd;
	enum stage stage;
};

struct flights {
	struct running *r;
	struct flight f[BENCH_MAX_INFLIGHT];
	unsigned active;
	int ep;
};

static void
flight_end(struct flights *fl, struct flight *f, bool is_good)
{
	fl->r->reply->ops += is_good;
	fl->r->net->close(f->fd);
	f->stage = STAGE_NONE;
	fl->active--;
}

static void
flight_start(struct flights *fl, struct flight *f)
{
	struct running *r = fl->r;
	struct sockaddr_in a = next_server(r);
	struct epoll_event ev = { .events = EPOLLOUT, .data.u32 = (uint32_t)(f - fl->f) };

	f->fd = r->net->socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (f->fd < 0) {
		note_failure(r, "socket");
		return;
	}
	f->stage = STAGE_CONNECTING;
	fl->active++;
	set_options(r, f->fd);
	if (r->net->connect(f->fd, (struct sockaddr *)&a, sizeof(a)) < 0 && errno != EINPROGRESS) {
		note_failure(r, "connect");
		flight_end(fl, f, false);
	} else if (r->net->epoll_ctl(fl->ep, EPOLL_CTL_ADD, f->fd, &ev) < 0) {
		note_failure(r, "epoll_ctl");
		flight_end(fl, f, false);
	}
}

static void
flight_connected(struct flights *fl, struct flight *f)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = (uint32_t)(f - fl->f) };
	struct running *r = fl->r;
	socklen_t len = sizeof(int);
	uint8_t out = (uint8_t)ev.data.u32;
	int err = 0;

	r->net->getsockopt(f->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	if (err != 0) {
		errno = err;
		note_failure(r, "connect");
		flight_end(fl, f, false);
	} else if (r->cmd->c.kind == BENCH_CONNECT) {
		flight_end(fl, f, true);
	} else if (r->net->send(f->fd, &out, 1, MSG_NOSIGNAL) != 1 ||
	    r->net->epoll_ctl(fl->ep, EPOLL_CTL_MOD, f->fd, &ev) < 0) {
		note_failure(r, "send");
		flight_end(fl, f, false);
	} else {
		f->stage = STAGE_WAITING;
	}
}

static void
flight_answered(struct flights *fl, struct flight *f)
{
	uint8_t want = (uint8_t)(f - fl->f), in = (uint8_t)~want;
	struct running *r = fl->r;
	ssize_t n = r->net->recv(f->fd, &in, 1, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n == 0)
		errno = ECONNRESET;
	if (n != 1 || in != want)
		note_failure(r, "recv");
	r->reply->bytes += n == 1;
	flight_end(fl, f, n == 1 && in == want);
}

static void
run_flights(struct flights *fl)
{
	struct running *r = fl->r;
	struct epoll_event evs[64];
	uint64_t now = r->start_ns;
	struct flight *f;
	int i, n;

	/*
	 * What hangs for STUCK_NS after the end of the slice is given up, and fails the self-check.
	 */
	while (fl->active > 0 && now < r->end_ns + STUCK_NS) {
		n = r->net->epoll_wait(fl->ep, evs, ARRAY_SIZE(evs), 100);
		now = bench_now_ns();
		for (i = 0; i < n; i++) {
			f = &fl->f[evs[i].data.u32];
			if (f->stage == STAGE_CONNECTING)
				flight_connected(fl, f);
			else if (f->stage == STAGE_WAITING)
				flight_answered(fl, f);
			if (f->stage == STAGE_NONE && now < r->end_ns && r->reply->failed < 10)
				flight_start(fl, f);
		}
	}
	if (fl->active == 0)
		return;
	errno = ETIMEDOUT;
	note_failure(r, "connections that never came up");
	for (i = 0; i < BENCH_MAX_INFLIGHT; i++)
		if (fl->f[i].stage != STAGE_NONE)
			flight_end(fl, &fl->f[i], false);
}

static void
run_in_flight(struct running *r)
{
	struct flights fl = { .r = r, .ep = r->net->epoll_create1(0) };
	uint32_t i;

	if (fl.ep < 0) {
		note_failure(r, "epoll_create1");
		return;
	}
	begin_time(r);
	for (i = 0; i < r->cmd->c.inflight; i++)
		flight_start(&fl, &fl.f[i]);
	run_flights(&fl);
	end_time(r);
	r->net->close(fl.ep);
}

/* ---- datagrams ---- */

static void
run_udp(struct running *r)
{
	struct sockaddr_in a = server_addr(r, BENCH_UDP_PORT);
	struct epoll_event ev = { .events = EPOLLIN };
	int fd = r->net->socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	int ep = r->net->epoll_create1(0);
	unsigned i;

	if (fd < 0 || ep < 0 || r->net->epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) < 0 ||
	    r->net->connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		note_failure(r, "UDP socket");
	} else {
		begin_time(r);
		while (bench_now_ns() < r->end_ns) {
			for (i = 0; i < UDP_BATCH; i++)
				if (r->net->send(fd, "x", 1, MSG_DONTWAIT) == 1)
					r->reply->ops++;
			r->net->epoll_wait(ep, &ev, 1, 0);
		}
		end_time(r);
	}
	if (fd >= 0)
		r->net->close(fd);
	if (ep >= 0)
		r->net->close(ep);
}

/* The last connections' ends go through while both sides still run. */
static void
settle(const struct net_calls *net)
{
	struct epoll_event ev;
	int ep = net->epoll_create1(0);

	if (ep < 0)
		return;
	net->epoll_wait(ep, &ev, 1, SETTLE_MS);
	net->close(ep);
}

/* The process does nothing; what its netisrs cost meanwhile. */
static void
run_idle(struct running *r)
{
	struct timespec pause = { .tv_sec = r->cmd->slice_ms / 1000,
	    .tv_nsec = (long)(r->cmd->slice_ms % 1000) * 1000000 };
	struct timespec before, after;

	begin_time(r);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	nanosleep(&pause, NULL);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	end_time(r);
	r->reply->cpu_ns = (uint64_t)((after.tv_sec - before.tv_sec) * 1000000000 +
	    after.tv_nsec - before.tv_nsec);
}

static void
run_slice(const struct bench_worker *w, struct running *r)
{
	switch (r->cmd->c.kind) {
	case BENCH_RR: case BENCH_LATENCY: run_rr(r); break;
	case BENCH_UDP: run_udp(r); break;
	case BENCH_IDLE: run_idle(r); break;
	case BENCH_RAW: bench_raw_slice(w, r->cmd, r->reply); break;
	case BENCH_CHURN: bench_churn_slice(w, r->cmd, r->reply); break;
	case BENCH_HOLD: bench_ports_slice(w, r->cmd, r->reply); break;
	case BENCH_MSG: bench_msg_slice(w, r->cmd, r->reply); break;
	case BENCH_CONNECT: case BENCH_CRR:
		if (r->cmd->c.inflight <= 1)
			run_one_by_one(r);
		else
			run_in_flight(r);
		break;
	}
}

void
bench_client_slice(const struct bench_worker *w, const struct bench_cmd *cmd,
    struct bench_reply *ret)
{
	struct running r = { .net = w->net, .cmd = cmd, .reply = ret, .server_ip = w->server_ip };
	bool is_darter = w->net == &net_darter;

	if (is_darter && bench_knobs_set(cmd->knobs, ret->why) < 0) {
		ret->failed = 1;
		return;
	}
	if (is_darter && (cmd->c.kind == BENCH_CONNECT || cmd->c.kind == BENCH_CRR))
		bench_counters_begin(ret);
	run_slice(w, &r);
	/* Leftovers of the knobs' last setting end under it. */
	if (w->has_peer && cmd->c.kind != BENCH_RAW && cmd->c.kind != BENCH_IDLE)
		settle(w->net);
	if (is_darter && (cmd->c.kind == BENCH_CONNECT || cmd->c.kind == BENCH_CRR))
		bench_counters_end(ret);
	if (is_darter && bench_knobs_set(cmd->knobs_after, ret->why) < 0)
		ret->failed++;
}

int
bench_client_hello(const struct net_calls *net, uint32_t server_ip, char *why)
{
	struct bench_cmd cmd = { .c = { .kind = BENCH_CRR } };
	uint64_t end = bench_now_ns() + HELLO_NS;
	struct bench_reply reply;

	do {
		struct running r = { .net = net, .cmd = &cmd, .reply = &reply,
		    .server_ip = server_ip, .is_hello = true };

		memset(&reply, 0, sizeof(reply));
		connect_once(&r);
		if (reply.ops == 1)
			return 0;
	} while (bench_now_ns() < end);
	snprintf(why, BENCH_WHY_MAX, "no connection to the server within 10 s: %.180s", reply.why);
	return -1;
}
