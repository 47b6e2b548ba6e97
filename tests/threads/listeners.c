/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listeners and the threads around them: listening on one core and accepting on another, a listener
 * a core (case S01 e, f), and many threads that bind, listen and close at once (case S05 b).
 */
#include <netinet/in.h>

#include "threads/world.h"

#define CLIENTS		64
#define FIRST_PORT	40000
#define LISTEN_PORT	8080

static struct sockaddr_in
server_addr(void)
{
	struct sockaddr_in a = loopback(LISTEN_PORT);

	a.sin_addr.s_addr = htonl(0x0a090002);
	return a;
}

/* One connection each from consecutive ports of one address; they stay open. */
static void
connect_clients(const struct world *w, int fd[CLIENTS])
{
	struct sockaddr_in from = loopback(0), to = server_addr();
	unsigned i;

	darter_stack_use(w->stack[0]);
	from.sin_addr.s_addr = htonl(0x0a090001);
	for (i = 0; i < CLIENTS; i++) {
		fd[i] = darter_socket(AF_INET, SOCK_STREAM, 0);
		from.sin_port = htons((uint16_t)(FIRST_PORT + i));
		assert_int_equal(darter_bind(fd[i], (struct sockaddr *)&from, sizeof(from)), 0);
		assert_int_equal(darter_connect(fd[i], (struct sockaddr *)&to, sizeof(to)), 0);
	}
	darter_stack_use(NULL);
}

static int
listen_in(const struct world *w, bool is_shared)
{
	struct sockaddr_in a = server_addr();
	int on = 1, fd;

	darter_stack_use(w->stack[1]);
	fd = darter_socket(AF_INET, SOCK_STREAM, 0);
	if (is_shared)
		darter_setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (darter_bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0 ||
	    darter_listen(fd, CLIENTS) != 0)
		wrong("listen: %s\n", strerrorname_np(errno));
	darter_stack_use(NULL);
	return fd;
}

/* ---- S01 e: one thread listens, another accepts ---- */

struct hall {
	const struct world *w;
	_Atomic int lfd;		/* -1: not yet */
	_Atomic unsigned accepted;
	_Atomic bool over;
	bool is_attached;
	int fd[CLIENTS];
};

static void
attach(struct hall *h, unsigned id)
{
	if (h->is_attached && darter_attach(h->w->stack[1], id) != 0)
		wrong("attach %u\n", id);
}

static void
detach(struct hall *h)
{
	if (h->is_attached && darter_detach() != 0)
		wrong("detach\n");
}

/* Core 0: listens, and from then on only waits. */
static void *
listening_thread(void *arg)
{
	struct hall *h = arg;

	attach(h, 0);
	atomic_store(&h->lfd, listen_in(h->w, false));
	while (!atomic_load(&h->over))
		darter_poll(NULL, 0, 1);
	detach(h);
	return NULL;
}

/* Core 1: accepts on the other's descriptor. */
static void *
accepting_thread(void *arg)
{
	struct hall *h = arg;
	unsigned i;

	attach(h, 1);
	while (atomic_load(&h->lfd) < 0)
		darter_poll(NULL, 0, 1);
	for (i = 0; i < CLIENTS; i++) {
		h->fd[i] = darter_accept(atomic_load(&h->lfd), NULL, NULL);
		if (h->fd[i] < 0)
			wrong("accept: %s\n", strerrorname_np(errno));
		atomic_fetch_add(&h->accepted, 1);
	}
	while (!atomic_load(&h->over))
		darter_poll(NULL, 0, 1);
	detach(h);
	return NULL;
}

static uint64_t
resets_of(const struct world *w)
{
	uint64_t a = 0, b = 0;

	darter_counter_get(w->stack[0], "tcp_resets_sent", &a);
	darter_counter_get(w->stack[1], "tcp_resets_sent", &b);
	return a + b;
}

static void
await_accepted(_Atomic unsigned *accepted)
{
	uint64_t until = now_ms() + 10000;

	while (atomic_load(accepted) < CLIENTS && now_ms() < until)
		usleep(200);
	assert_int_equal(atomic_load(accepted), CLIENTS);
}

static void
close_all(const int fd[CLIENTS])
{
	unsigned i;

	for (i = 0; i < CLIENTS; i++)
		reset_close(&darter_net, fd[i]);
}

static void
accept_on_another_core(bool is_attached)
{
	struct world w = WORLD_CABLE;
	struct hall h = { .w = &w, .is_attached = is_attached };
	pthread_t t[2];
	int client[CLIENTS];

	world_open(&w);
	atomic_init(&h.lfd, -1);
	assert_int_equal(pthread_create(&t[0], NULL, listening_thread, &h), 0);
	assert_int_equal(pthread_create(&t[1], NULL, accepting_thread, &h), 0);
	while (atomic_load(&h.lfd) < 0)
		usleep(200);
	connect_clients(&w, client);
	await_accepted(&h.accepted);
	assert_int_equal(resets_of(&w), 0);
	atomic_store(&h.over, true);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	close_all(client);
	close_all(h.fd);
	darter_close(atomic_load(&h.lfd));
	world_close(&w);
	assert_int_equal(atomic_load(&wrongs), 0);
}

/* Case S01 e */
static void
listener_of_one_thread_is_accepted_from_by_another(void **state)
{
	(void)state;
	accept_on_another_core(false);
}

/* Case S01 e, each thread being the keeper of its core */
static void
listener_of_one_attached_thread_is_accepted_from_by_another(void **state)
{
	(void)state;
	accept_on_another_core(true);
}

/* ---- S01 f: a listener a core ---- */

struct desk {
	struct hall *hall;
	unsigned id;
	int lfd;
	unsigned got;
};

static void *
serving_thread(void *arg)
{
	struct desk *d = arg;
	struct hall *h = d->hall;
	struct pollfd p = { .fd = d->lfd, .events = POLLIN };

	attach(h, d->id);
	while (!atomic_load(&h->over)) {
		int fd;

		darter_poll(&p, 1, 1);
		fd = darter_accept4(d->lfd, NULL, NULL, SOCK_NONBLOCK);
		if (fd < 0) {
			if (errno != EAGAIN)
				wrong("accept: %s\n", strerrorname_np(errno));
			continue;
		}
		d->got++;
		h->fd[atomic_fetch_add(&h->accepted, 1)] = fd;
	}
	detach(h);
	return NULL;
}

static void
listener_a_core(bool is_attached)
{
	struct world w = WORLD_CABLE;
	struct hall h = { .w = &w, .is_attached = is_attached };
	struct desk d[2];
	pthread_t t[2];
	int client[CLIENTS];
	unsigned i;

	world_open(&w);
	for (i = 0; i < 2; i++) {
		d[i] = (struct desk){ .hall = &h, .id = i, .lfd = listen_in(&w, true) };
		set_nonblock(&darter_net, d[i].lfd);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, serving_thread, &d[i]), 0);
	connect_clients(&w, client);
	await_accepted(&h.accepted);
	assert_int_equal(resets_of(&w), 0);
	atomic_store(&h.over, true);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("64 clients of one address: %u to core 0, %u to core 1\n", d[0].got, d[1].got);
	assert_int_equal(d[0].got + d[1].got, CLIENTS);
	/* a fair coin gives fewer than 12 once in ten million runs */
	assert_in_range(d[0].got, 12, CLIENTS - 12);
	close_all(client);
	close_all(h.fd);
	darter_close(d[0].lfd);
	darter_close(d[1].lfd);
	world_close(&w);
	assert_int_equal(atomic_load(&wrongs), 0);
}

/* Case S01 f */
static void
listeners_of_two_threads_share_the_clients_of_one_address(void **state)
{
	(void)state;
	listener_a_core(false);
}

static void
listeners_of_two_attached_threads_share_the_clients_of_one_address(void **state)
{
	(void)state;
	listener_a_core(true);
}

/* ---- S05 b: bind to 0, listen, close on eight threads ---- */

#define BINDERS		8
#define BINDS		100

static _Atomic unsigned failures[2];	/* of bind, of listen */

static void *
binding_thread(void *arg)
{
	struct net *n = arg;
	struct sockaddr_in a = loopback(0);
	unsigned i;

	for (i = 0; i < BINDS; i++) {
		int fd = n->socket(AF_INET, SOCK_STREAM, 0), on = 1;

		n->setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (n->bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
			atomic_fetch_add(&failures[0], 1);
		else if (n->listen(fd, 1) != 0)
			atomic_fetch_add(&failures[1], 1);
		n->close(fd);
	}
	return NULL;
}

static void
bind_on_all_threads(struct net *n)
{
	pthread_t t[BINDERS];
	unsigned i;

	atomic_store(&failures[0], 0);
	atomic_store(&failures[1], 0);
	for (i = 0; i < BINDERS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, binding_thread, n), 0);
	for (i = 0; i < BINDERS; i++)
		pthread_join(t[i], NULL);
	say(n, "binds that failed: %u, listens: %u\n", atomic_load(&failures[0]),
	    atomic_load(&failures[1]));
}

/* Case S05 b: ten ports for eight threads: whoever is given one can listen on it */
static void
drawn_port_can_be_listened_on_by_each_of_many_threads(void **state)
{
	struct world w = WORLD_TWO;

	(void)state;
	world_open(&w);
	assert_int_equal(darter_sysctl_set(w.stack[0], "net.inet.ip.portrange.first", "50000",
	    NULL, 0), 0);
	assert_int_equal(darter_sysctl_set(w.stack[0], "net.inet.ip.portrange.last", "50009", NULL,
	    0), 0);
	compare(bind_on_all_threads);
	world_close(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listener_of_one_thread_is_accepted_from_by_another),
		cmocka_unit_test(listener_of_one_attached_thread_is_accepted_from_by_another),
		cmocka_unit_test(listeners_of_two_threads_share_the_clients_of_one_address),
		cmocka_unit_test(
		    listeners_of_two_attached_threads_share_the_clients_of_one_address),
		cmocka_unit_test(drawn_port_can_be_listened_on_by_each_of_many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
