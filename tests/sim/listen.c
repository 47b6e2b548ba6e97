/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A SO_REUSEPORT group under load on 1 to 8 netisrs: members are closed, opened again, shut down
 * and made to listen again while clients come, from threads on any core, over a network that loses
 * frames. Each client sends its number and wants it back.
 *
 * What must hold: every connection is accepted exactly once, by whichever member; with room in the
 * queues nobody is reset, whoever closes. With small queues a client may be reset when a member
 * closes and its heir is full; then it has not been accepted.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <darter/darter.h>
#include <darter/socket.h>

#include "runtime/netisr.h"
#include "sim/sim.h"
#include "support/cmocka_all.h"

#define CLIENTS		150u
#define MEMBERS		5u
#define PORT		80
#define CPUS		3u
#define LIMIT_S		600.0

struct client {
	int fd;			/* -1: not begun, or ended */
	bool is_begun, has_sent, is_over;
	int error;		/* 0: got its number back */
	unsigned accepted;	/* times the server has seen the number */
};

struct served {
	int fd;
	uint32_t number;
	uint32_t got_bytes;
	bool has_answered;
};

struct member {
	int fd;			/* -1: closed */
	bool is_shut;
};

struct scene {
	struct sim m;
	struct rng rng;
	unsigned netisrs;
	int backlog;
	struct client c[CLIENTS];
	struct served served[CLIENTS];
	unsigned n_served;
	struct member member[MEMBERS];
	unsigned n_begun, n_over;
};

/* ---- threads on any core ---- */

static void
enter(struct scene *sc, unsigned side)
{
	struct darter_stack *s = sc->m.s[side];

	assert_true(netisr_take(s->netisr[rng_below(&sc->rng, s->n_netisrs)]));
	darter_stack_use(s);
}

static void
leave(void)
{
	int saved = errno;

	netisr_give(netisr_current());
	errno = saved;
}

/* ---- clients ---- */

static void
begin_client(struct scene *sc, struct client *c)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(SIM_B_IP) };

	enter(sc, 0);
	c->fd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_true(c->fd >= 0);
	assert_int_equal(darter_connect(c->fd, (struct sockaddr *)&a, sizeof(a)), -1);
	assert_int_equal(errno, EINPROGRESS);
	leave();
	c->is_begun = true;
	sc->n_begun++;
}

static void
end_client(struct scene *sc, struct client *c, int error)
{
	c->error = error;
	c->is_over = true;
	darter_close(c->fd);
	c->fd = -1;
	sc->n_over++;
}

static void
act_client(struct scene *sc, struct client *c)
{
	uint32_t number = (uint32_t)(c - sc->c), back;
	ssize_t n;

	enter(sc, 0);
	if (!c->has_sent) {
		n = darter_send(c->fd, &number, sizeof(number), MSG_NOSIGNAL);
		c->has_sent = n == sizeof(number);
	} else {
		n = darter_recv(c->fd, &back, sizeof(back), 0);
		if (n == sizeof(back)) {
			assert_int_equal(back, number);
			end_client(sc, c, 0);
		} else if (n >= 0) {
			end_client(sc, c, ENODATA);
		}
	}
	if (n < 0 && errno != EAGAIN)
		end_client(sc, c, errno);
	leave();
}

/* ---- the server ---- */

static void
open_member(struct scene *sc, struct member *mb)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int on = 1, cpu = (int)rng_below(&sc->rng, CPUS + 1) - 1;

	mb->fd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_true(mb->fd >= 0);
	darter_setsockopt(mb->fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	darter_setsockopt(mb->fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, sizeof(cpu));
	assert_int_equal(darter_bind(mb->fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(darter_listen(mb->fd, sc->backlog), 0);
	mb->is_shut = false;
}

static unsigned
listening(const struct scene *sc)
{
	unsigned i, n = 0;

	for (i = 0; i < MEMBERS; i++)
		n += sc->member[i].fd >= 0 && !sc->member[i].is_shut;
	return n;
}

/* Closes, opens, shuts or revives one; somebody listens all the time. */
static void
change_member(struct scene *sc)
{
	struct member *mb = &sc->member[rng_below(&sc->rng, MEMBERS)];
	bool is_last = mb->fd >= 0 && !mb->is_shut && listening(sc) == 1;

	enter(sc, 1);
	if (mb->fd < 0) {
		open_member(sc, mb);
	} else if (mb->is_shut && rng_below(&sc->rng, 2) == 0) {
		assert_int_equal(darter_listen(mb->fd, sc->backlog), 0);
		mb->is_shut = false;
	} else if (!is_last && !mb->is_shut && rng_below(&sc->rng, 3) == 0) {
		assert_int_equal(darter_shutdown(mb->fd, SHUT_RD), 0);
		mb->is_shut = true;
	} else if (!is_last) {
		darter_close(mb->fd);
		mb->fd = -1;
	}
	leave();
}

static void
accept_some(struct scene *sc)
{
	struct member *mb = &sc->member[rng_below(&sc->rng, MEMBERS)];
	unsigned most = rng_below(&sc->rng, 4);
	int fd;

	if (mb->fd < 0 || mb->is_shut)
		return;
	enter(sc, 1);
	while (most-- > 0 && (fd = darter_accept4(mb->fd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		assert_true(sc->n_served < CLIENTS);
		sc->served[sc->n_served++] = (struct served){ .fd = fd };
	}
	leave();
}

static void
act_served(struct scene *sc, struct served *v)
{
	ssize_t n;
	char c;

	enter(sc, 1);
	if (!v->has_answered) {
		n = darter_recv(v->fd, (char *)&v->number + v->got_bytes, 4 - v->got_bytes, 0);
		v->got_bytes += n > 0 ? (uint32_t)n : 0;
		if (v->got_bytes == 4) {
			assert_in_range(v->number, 0, CLIENTS - 1);
			sc->c[v->number].accepted++;
			n = darter_send(v->fd, &v->number, 4, MSG_NOSIGNAL);
			assert_int_equal(n, 4);
			v->has_answered = true;
		}
	} else {
		n = darter_recv(v->fd, &c, 1, 0);
	}
	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		darter_close(v->fd);
		v->fd = -1;
	}
	leave();
}

/* ---- a run ---- */

static void
step(struct scene *sc)
{
	unsigned i;

	if (sc->n_begun < CLIENTS && rng_below(&sc->rng, 2) == 0)
		begin_client(sc, &sc->c[sc->n_begun]);
	if (rng_below(&sc->rng, 3) == 0)
		change_member(sc);
	if (rng_below(&sc->rng, 2) == 0)
		accept_some(sc);
	for (i = 0; i < sc->n_begun; i++) {
		if (!sc->c[i].is_over && rng_below(&sc->rng, 3) == 0)
			act_client(sc, &sc->c[i]);
	}
	for (i = 0; i < sc->n_served; i++) {
		if (sc->served[i].fd >= 0 && rng_below(&sc->rng, 3) == 0)
			act_served(sc, &sc->served[i]);
	}
	sim_advance(&sc->m, rng_below(&sc->rng, 3) ? rng_below(&sc->rng, 3000) : 0);
}

static void
set_up(struct scene *sc, unsigned netisrs, unsigned seed, bool has_room)
{
	struct sim_opts o = { .seed = seed, .netisrs = netisrs, .packets = 8192,
		/* a SYN that met a full queue comes again soon */
		.sysctls = { "net.inet.tcp.syn_retries=100", "net.inet.tcp.rto_max_ms=1000" } };
	unsigned i;

	memset(sc, 0, sizeof(*sc));
	/* a reset comes but once: none is lost where they may come */
	if (seed % 2 == 0)
		o.fault = has_room ? "drop=0.05,dup=0.02,reorder=0.1,delay_us=100-2000" :
		    "dup=0.02,reorder=0.1,delay_us=100-2000";
	sim_init(&sc->m, &o);
	/* as stack.cpus would: which CPU the test runs on must not matter */
	for (i = 0; i < netisrs; i++)
		sc->m.s[1]->keeper_cpu[i] = (uint16_t)(i % CPUS);
	sc->m.s[1]->n_keeper_cpus = netisrs;
	rng_init(&sc->rng, seed);
	sc->netisrs = netisrs;
	sc->backlog = has_room ? (int)CLIENTS : (int)rng_below(&sc->rng, 6);
	for (i = 0; i < MEMBERS; i++)
		sc->member[i].fd = -1;
	enter(sc, 1);
	open_member(sc, &sc->member[0]);
	leave();
}

static void
tear_down(struct scene *sc)
{
	unsigned i;

	enter(sc, 1);
	for (i = 0; i < MEMBERS; i++) {
		if (sc->member[i].fd >= 0)
			darter_close(sc->member[i].fd);
	}
	for (i = 0; i < sc->n_served; i++) {
		if (sc->served[i].fd >= 0)
			darter_close(sc->served[i].fd);
	}
	leave();
	sim_advance(&sc->m, 3600 * US_PER_SEC);
	sim_expect_empty(&sc->m);
	sim_fini(&sc->m);
}

static void
run_one(unsigned netisrs, unsigned seed, bool has_room)
{
	struct scene *sc = malloc(sizeof(*sc));
	unsigned i, came_back = 0;

	assert_non_null(sc);
	set_up(sc, netisrs, seed, has_room);
	while (sc->n_over < CLIENTS) {
		step(sc);
		if (sim_elapsed_s(&sc->m) > LIMIT_S)
			fail_msg("%u netisrs, seed %u: %u clients of %u have ended, %u accepted",
			    netisrs, seed, sc->n_over, sc->n_begun, sc->n_served);
	}
	for (i = 0; i < CLIENTS; i++) {
		const struct client *c = &sc->c[i];

		came_back += c->error == 0;
		if (c->accepted > 1 || (c->error == 0) != (c->accepted == 1) ||
		    (c->error != 0 && (has_room || c->error != ECONNRESET)))
			fail_msg("%u netisrs, seed %u: client %u: accepted %u times, %s", netisrs,
			    seed, i, c->accepted, strerror(c->error));
	}
	assert_true(came_back > 0);
	tear_down(sc);
	free(sc);
}

static unsigned n_seeds;

static void
run_all(bool has_room)
{
	static const unsigned netisrs[] = { 1, 2, 3, 4, 7, 8 };
	unsigned seed, i;

	for (seed = 1; seed <= n_seeds; seed++) {
		for (i = 0; i < ARRAY_LEN(netisrs); i++)
			run_one(netisrs[i], seed, has_room);
	}
}

static void
members_come_and_go_and_every_client_is_accepted_once(void **state)
{
	(void)state;
	run_all(true);
}

static void
queues_are_small_and_who_is_not_reset_is_accepted_once(void **state)
{
	(void)state;
	run_all(false);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_come_and_go_and_every_client_is_accepted_once),
		cmocka_unit_test(queues_are_small_and_who_is_not_reset_is_accepted_once),
	};

	n_seeds = argc > 1 ? (unsigned)atoi(argv[1]) : 10;
	return cmocka_run_group_tests_name("listen", tests, NULL, NULL);
}
