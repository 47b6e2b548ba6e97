/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects that are sent on from netisr to netisr (portalgo hash, transport/tcp/tcp_open.c) while
 * their sockets are used at once: shut down, closed, asked for names, options and state, before,
 * while and after the connect moves. Many threads, two netisrs, over loopback and over a cable.
 * Every blocking connect must succeed and its bytes come back; when all is closed no connection may
 * be left. How often a connect moved is told by the counter.
 *
 * Arguments: how many seeds, the first.
 */
#include <darter/stats.h>

#include "threads/world.h"

#define THREADS		4
#define ROUNDS		60
#define PATIENCE_MS	40000

struct scene {
	struct world world;
	struct sockaddr_in server;
	int lfd;
	_Atomic bool stop;
	uint64_t seed;
};

struct worker {
	struct scene *sc;
	uint64_t rng;
};

/* Answers with what it reads, until the other side has ended. */
static void
serve_one(struct net *n, int fd)
{
	char buf[64];
	ssize_t got;

	while ((got = n->recv(fd, buf, sizeof(buf), 0)) > 0)
		n->send(fd, buf, (size_t)got, MSG_NOSIGNAL);
	n->close(fd);
}

static void *
serve(void *arg)
{
	struct scene *sc = arg;
	struct net *n = sc->world.net;
	int fd;

	while (!atomic_load(&sc->stop)) {
		struct pollfd p = { .fd = sc->lfd, .events = POLLIN };

		if (n->poll(&p, 1, 20) != 1)
			continue;
		fd = n->accept4(sc->lfd, NULL, NULL, 0);
		if (fd >= 0)
			serve_one(n, fd);
	}
	return NULL;
}

/* A whole conversation. */
static void
talk(struct worker *w, int fd)
{
	struct net *n = w->sc->world.net;
	char out[8] = "forward", in[8] = "";

	if (n->connect(fd, (struct sockaddr *)&w->sc->server, sizeof(w->sc->server)) < 0) {
		wrong("connect: %s\n", strerrorname_np(errno));
		return;
	}
	if (n->send(fd, out, sizeof(out), MSG_NOSIGNAL) != sizeof(out) ||
	    n->recv(fd, in, sizeof(in), MSG_WAITALL) != sizeof(in) ||
	    memcmp(in, out, sizeof(in)) != 0)
		wrong("talk: %s\n", strerrorname_np(errno));
}

/* Begins, and does something to the socket before it can know what became of the connect. */
static void
begin_and(struct worker *w, int fd, unsigned what)
{
	struct net *n = w->sc->world.net;
	struct sockaddr_in a;
	struct tcp_info info;
	socklen_t len = sizeof(a), info_len = sizeof(info);
	int one = 1;

	if (n->connect(fd, (struct sockaddr *)&w->sc->server, sizeof(w->sc->server)) == 0 ||
	    errno != EINPROGRESS)
		wrong("begin: %s\n", strerrorname_np(errno));
	switch (what) {
	case 0:
		break;
	case 1:
		n->shutdown(fd, SHUT_RDWR);
		break;
	case 2:
		if (n->getsockname(fd, (struct sockaddr *)&a, &len) < 0 || a.sin_port == 0)
			wrong("no name\n");
		break;
	case 3:
		n->setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (n->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_len) < 0)
			wrong("TCP_INFO: %s\n", strerrorname_np(errno));
		break;
	default:
		if (n->poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, PATIENCE_MS) != 1)
			wrong("is not connected in time\n");
		break;
	}
}

static void *
work(void *arg)
{
	struct worker *w = arg;
	struct net *n = w->sc->world.net;
	unsigned i, what;
	int fd;

	darter_stack_use(w->sc->world.stack[0]);
	for (i = 0; i < ROUNDS; i++) {
		what = below(&w->rng, 8);
		fd = n->socket(AF_INET, SOCK_STREAM | (what < 5 ? SOCK_NONBLOCK : 0), 0);
		if (fd < 0) {
			wrong("socket: %s\n", strerrorname_np(errno));
			continue;
		}
		if (what < 5)
			begin_and(w, fd, what);
		else
			talk(w, fd);
		n->close(fd);
	}
	return NULL;
}

static void
listen_in(struct scene *sc)
{
	struct net *n = sc->world.net;
	socklen_t len = sizeof(sc->server);
	unsigned last = sc->world.is_cable ? 1 : 0;

	sc->server = loopback(0);
	if (sc->world.is_cable)
		sc->server.sin_addr.s_addr = htonl(0x0a090002);
	darter_stack_use(sc->world.stack[last]);
	/* two wait for each connection, and one of them accepts it */
	sc->lfd = n->socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(n->bind(sc->lfd, (struct sockaddr *)&sc->server, len), 0);
	assert_int_equal(n->listen(sc->lfd, 64), 0);
	assert_int_equal(n->getsockname(sc->lfd, (struct sockaddr *)&sc->server, &len), 0);
	darter_stack_use(NULL);
}

static uint64_t
counter(struct darter_stack *s, const char *name)
{
	uint64_t v = 0;

	assert_int_equal(darter_counter_get(s, name, &v), 0);
	return v;
}

/* Connections of all kinds but TIME_WAIT. */
static uint64_t
open_connections(const struct world *w)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < 2 && w->stack[i] != NULL; i++)
		sum += counter(w->stack[i], "tcp_pcbs") + counter(w->stack[i], "tcp_half_open");
	return sum;
}

static void
run_scene(struct scene *sc)
{
	struct worker workers[THREADS];
	pthread_t server[2], thread[THREADS];
	uint64_t since;
	unsigned i;

	world_open(&sc->world);
	assert_int_equal(darter_sysctl_set(sc->world.stack[0], "net.inet.ip.portalgo", "hash", NULL,
	    0), 0);
	listen_in(sc);
	for (i = 0; i < 2; i++)
		pthread_create(&server[i], NULL, serve, sc);
	for (i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ sc, mix(sc->seed * THREADS + i) };
		pthread_create(&thread[i], NULL, work, &workers[i]);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (since = now_ms(); open_connections(&sc->world) != 0 &&
	    now_ms() - since < PATIENCE_MS;)
		usleep(1000);
	assert_int_equal(open_connections(&sc->world), 0);
	atomic_store(&sc->stop, true);
	for (i = 0; i < 2; i++)
		pthread_join(server[i], NULL);
	sc->world.net->close(sc->lfd);
	assert_true(counter(sc->world.stack[0], "tcp_connect_forwards") > 0);
	assert_int_equal(atomic_load(&wrongs), 0);
	world_close(&sc->world);
}

static void
connects_move_while_their_sockets_are_used_then_nothing_is_lost(void **state)
{
	unsigned i, k;

	(void)state;
	for (k = 0; k < n_seeds; k++)
		for (i = 0; i < 2; i++) {
			struct scene sc = { .seed = first_seed + k };

			sc.world = i == 0 ? (struct world)WORLD_TWO : (struct world)WORLD_CABLE;
			run_scene(&sc);
		}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connects_move_while_their_sockets_are_used_then_nothing_is_lost),
	};

	take_seeds(argc, argv, 3);
	return cmocka_run_group_tests_name("forward", tests, NULL, NULL);
}
