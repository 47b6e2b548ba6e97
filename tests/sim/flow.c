/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The applications of the simulator; flow.h says what they do. Non-blocking calls of the public
 * library only.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <darter/socket.h>

#include "runtime/netisr.h"
#include "sim/flow.h"
#include "support/cmocka_all.h"
#include "transport/tcp/tcp.h"

#define PIECE_MAX	65536

/* of IPPROTO_TCP: <netinet/tcp.h> clashes with the stack's names */
#define OPT_NODELAY	1
#define OPT_KEEPIDLE	4
#define OPT_KEEPINTVL	5

static uint8_t
stream_byte(const struct flow *f, unsigned sender, uint64_t pos)
{
	uint64_t x = (pos + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (f->key + sender);

	return (uint8_t)((x ^ x >> 29) >> 24);
}

static struct sockaddr_in
make_addr(uint32_t addr, uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(addr),
	};
}

static void
set_options(const struct flow_plan *p, int fd)
{
	int on = 1, idle_s = 60, interval_s = 10;

	/*
	 * A half-closed end whose peer has closed, and given up sending to it, would wait for ever:
	 * no TCP without keep-alive finds out.
	 */
	darter_setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	darter_setsockopt(fd, IPPROTO_TCP, OPT_KEEPIDLE, &idle_s, sizeof(idle_s));
	darter_setsockopt(fd, IPPROTO_TCP, OPT_KEEPINTVL, &interval_s, sizeof(interval_s));
	if (p->sndbuf != 0)
		darter_setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &p->sndbuf, sizeof(p->sndbuf));
	if (p->rcvbuf != 0)
		darter_setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &p->rcvbuf, sizeof(p->rcvbuf));
	if (p->nodelay)
		darter_setsockopt(fd, IPPROTO_TCP, OPT_NODELAY, &on, sizeof(on));
}

static void
end_init(struct flow_end *e, unsigned side, const struct flow_plan *plan, struct time now)
{
	memset(e, 0, sizeof(*e));
	e->fd = -1;
	e->side = side;
	e->to_send = plan->bytes[side];
	e->abort_at = plan->abort_at[side];
	e->next_act = now;
}

void
flow_start(struct sim *m, struct flow *f, const struct flow_plan *plan, uint16_t port)
{
	struct sockaddr_in b = make_addr(SIM_B_IP, port);
	int rc, on = 1;

	memset(f, 0, sizeof(*f));
	f->plan = *plan;
	f->port = port;
	f->key = rng_u64(&m->rng);
	end_init(&f->end[0], 0, plan, sim_now(m));
	end_init(&f->end[1], 1, plan, sim_now(m));
	sim_enter(m, 1);
	f->lfd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_true(f->lfd >= 0);
	set_options(plan, f->lfd);
	/* as servers do: the flow before may have left connections on this port */
	darter_setsockopt(f->lfd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(darter_bind(f->lfd, (const struct sockaddr *)&b, sizeof(b)), 0);
	assert_int_equal(darter_listen(f->lfd, 8), 0);
	sim_leave(m, 1);
	sim_enter(m, 0);
	f->end[0].fd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_true(f->end[0].fd >= 0);
	set_options(plan, f->end[0].fd);
	rc = darter_connect(f->end[0].fd, (const struct sockaddr *)&b, sizeof(b));
	assert_true(rc == 0 || errno == EINPROGRESS);
	sim_leave(m, 0);
}

static void
close_end(struct flow *f, struct flow_end *e)
{
	if (e->fd >= 0)
		darter_close(e->fd);
	e->fd = -1;
	e->is_done = true;
	if (e->side == 1 && f->lfd >= 0) {
		darter_close(f->lfd);
		f->lfd = -1;
	}
}

static void
fail_end(struct flow *f, struct flow_end *e, int error)
{
	e->error = error;
	close_end(f, e);
}

static uint32_t
piece(struct sim *m, const struct flow *f)
{
	uint32_t max = f->plan.piece_max != 0 ? f->plan.piece_max : PIECE_MAX;

	return f->plan.pace_us == 0 ? max : 1 + rng_below(&m->rng, max);
}

static bool
write_some(struct sim *m, struct flow *f, struct flow_end *e)
{
	static uint8_t buf[PIECE_MAX];
	uint64_t want = min_u64(e->to_send - e->sent, piece(m, f)), i;
	ssize_t rc;

	if (want == 0)
		return false;
	for (i = 0; i < want; i++)
		buf[i] = stream_byte(f, e->side, e->sent + i);
	rc = darter_send(e->fd, buf, want, MSG_NOSIGNAL);
	if (rc > 0) {
		e->sent += (uint64_t)rc;
		return true;
	}
	if (rc < 0 && errno != EAGAIN)
		fail_end(f, e, errno);
	return false;
}

static bool
read_some(struct sim *m, struct flow *f, struct flow_end *e)
{
	static uint8_t buf[PIECE_MAX];
	ssize_t rc, i;

	rc = darter_recv(e->fd, buf, piece(m, f), 0);
	if (rc == 0) {
		e->has_eof = true;
		return true;
	}
	if (rc < 0) {
		if (errno != EAGAIN)
			fail_end(f, e, errno);
		return false;
	}
	for (i = 0; i < rc; i++)
		f->bad_bytes += buf[i] != stream_byte(f, !e->side, e->received + (uint64_t)i);
	e->received += (uint64_t)rc;
	return true;
}

/* Everything written: end this side; everything read too: close. */
static bool
finish(struct flow *f, struct flow_end *e)
{
	if (e->is_done || e->sent < e->to_send)
		return false;
	if (f->plan.half_close && !e->has_shut) {
		e->has_shut = true;
		if (darter_shutdown(e->fd, SHUT_WR) != 0)
			fail_end(f, e, errno);
		return true;
	}
	/*
	 * without half-close the accepted end waits for the other's end of file, the connecting end
	 * for all bytes
	 */
	if (e->has_eof ||
	    (!f->plan.half_close && e->side == 0 && e->received >= f->plan.bytes[1])) {
		close_end(f, e);
		return true;
	}
	return false;
}

/* The connection of an end that has no descriptor yet. */
static bool
open_end(struct flow *f, struct flow_end *e)
{
	if (e->fd >= 0)
		return true;
	if (e->side == 0 || f->lfd < 0)
		return false;
	e->fd = darter_accept4(f->lfd, NULL, NULL, SOCK_NONBLOCK);
	if (e->fd < 0 && errno != EAGAIN)
		fail_end(f, e, errno);
	/* the connecting end has given up: nobody will come */
	if (e->fd < 0 && f->end[0].is_done && f->end[0].error != 0)
		fail_end(f, e, f->end[0].error);
	return e->fd >= 0;
}

static bool
is_still_connecting(struct flow *f, struct flow_end *e)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (e->side != 0 || e->sent > 0 || e->received > 0 || e->has_eof)
		return false;
	if (darter_getsockopt(e->fd, SOL_SOCKET, SO_ERROR, &err, &len) == 0 && err != 0) {
		fail_end(f, e, err);
		return true;
	}
	return darter_send(e->fd, "", 0, MSG_NOSIGNAL) < 0 && errno == EAGAIN;
}

static bool
act(struct sim *m, struct flow *f, struct flow_end *e)
{
	bool did;

	if (!open_end(f, e) || is_still_connecting(f, e))
		return false;
	did = write_some(m, f, e);
	if (!e->is_done && !e->has_eof)
		did |= read_some(m, f, e);
	if (!e->is_done && e->received >= e->abort_at) {
		fail_end(f, e, ECANCELED);
		return true;
	}
	return finish(f, e) || did;
}

bool
flow_act(struct sim *m, struct flow *f)
{
	bool did = false;
	unsigned i;

	for (i = 0; i < 2; i++) {
		struct flow_end *e = &f->end[i];

		if (e->is_done || !time_reached(sim_now(m), e->next_act))
			continue;
		sim_enter(m, i);
		did |= act(m, f, e);
		sim_leave(m, i);
		if (f->plan.pace_us != 0)
			e->next_act = time_add_us(
			    sim_now(m), 1 + rng_below(&m->rng, (uint32_t)f->plan.pace_us));
	}
	return did;
}

struct time
flow_next(const struct flow *f)
{
	struct time next = TIME_NEVER;
	unsigned i;

	for (i = 0; i < 2 && f->plan.pace_us != 0; i++)
		if (!f->end[i].is_done)
			next = time_min(next, f->end[i].next_act);
	return next;
}

bool
flows_run(struct sim *m, struct flow *f, unsigned count, double limit_s)
{
	struct time limit = time_add_us(sim_now(m), (uint64_t)(limit_s * 1e6));

	for (;;) {
		struct time until = limit;
		bool did, over = true;
		unsigned i;

		do {
			did = false;
			for (i = 0; i < count; i++)
				did |= flow_act(m, &f[i]);
			sim_run(m);
		} while (did);
		for (i = 0; i < count; i++) {
			over &= flow_is_over(&f[i]);
			until = time_min(until, flow_next(&f[i]));
		}
		if (over)
			return true;
		if (time_reached(sim_now(m), limit))
			return false;
		sim_step(m, until);
	}
}

static void
describe_pcb(void *arg, const struct tcp_conn_info *i)
{
	fprintf(stderr,
	    "  stack %s: %u > %u %s una %u nxt %u max-wnd %u cwnd %u rto %u us, rcv_nxt %u wnd %u, "
	    "queued out %u in %u, retransmits %u\n",
	    (const char *)arg, i->tuple.lport, i->tuple.fport, tcp_state_name(i->state),
	    i->snd_una.v - i->iss.v, i->snd_nxt.v - i->iss.v, i->snd_wnd_bytes, i->cwnd_bytes,
	    i->rto_us, i->rcv_nxt.v - i->irs.v, i->rcv_wnd_bytes, i->tx_queued_bytes,
	    i->rx_queued_bytes, i->retransmits);
}

void
flows_describe(struct sim *m, const struct flow *f, unsigned count)
{
	static char names[2][2] = { "A", "B" };
	unsigned i, side;

	fprintf(stderr, "at %.3f s:\n", sim_elapsed_s(m));
	for (i = 0; i < count; i++)
		for (side = 0; side < 2; side++) {
			const struct flow_end *e = &f[i].end[side];

			fprintf(stderr,
			    "  flow %u end %u: sent %" PRIu64 " of %" PRIu64 ", received %" PRIu64
			    "%s%s%s, errno %d\n",
			    i, side, e->sent, e->to_send, e->received, e->has_shut ? ", shut" : "",
			    e->has_eof ? ", eof" : "", e->is_done ? ", done" : "", e->error);
		}
	for (side = 0; side < 2; side++)
		for (i = 0; i < m->s[side]->n_netisrs; i++) {
			assert_true(netisr_take(m->s[side]->netisr[i]));
			tcp_visit(m->s[side]->netisr[i], describe_pcb, names[side]);
			netisr_give(m->s[side]->netisr[i]);
		}
}

static bool
has_ended_early(const struct flow *f)
{
	return f->end[0].error != 0 || f->end[1].error != 0;
}

void
flow_check(const struct flow *f, bool may_fail, const char *what)
{
	bool aborts = f->plan.abort_at[0] != UINT64_MAX || f->plan.abort_at[1] != UINT64_MAX;
	unsigned i;

	if (f->bad_bytes != 0)
		fail_msg("%s: %" PRIu64 " bytes were delivered wrong", what, f->bad_bytes);
	for (i = 0; i < 2; i++) {
		const struct flow_end *e = &f->end[i], *other = &f->end[!i];

		if (e->received > other->sent)
			fail_msg("%s: end %u read more than was written", what, i);
		if (e->error != 0 && !may_fail && !aborts)
			fail_msg("%s: end %u: %s after %" PRIu64 " of %" PRIu64 " bytes", what, i,
			    strerror(e->error), e->received, other->to_send);
		if (!has_ended_early(f) && e->received != other->to_send)
			fail_msg("%s: end %u: end of file after %" PRIu64 " of %" PRIu64
				 " bytes, and no error",
			    what, i, e->received, other->to_send);
	}
}
