/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many threads that accept: each has a member of a SO_REUSEPORT group, which it closes and opens
 * again as it goes (the first one keeps its own), or shares the first one's. Others connect, send a
 * number and want it back.
 *
 * Oracle: each number is seen by one acceptor, once, and comes back; nobody is refused or reset,
 * since what waits at a member that closes goes to another.
 */
#include "threads/world.h"

#define CLIENTS		2u
#define ACCEPTORS	4u
#define EACH		250u	/* connections a client */
#define NUMBERS		(CLIENTS * EACH)
#define PORT		7777
#define HANG_SECONDS	50
#define LOOK_US		5000	/* an acceptor looks whether all is over */

struct run {
	const struct world *world;
	uint64_t seed;
	_Atomic uint8_t seen[NUMBERS];
	_Atomic unsigned n_back;
	_Atomic bool is_over;
	_Atomic int shared;		/* the first member */
	pthread_barrier_t start;
};

struct worker {
	struct run *run;
	unsigned id;
	pthread_t thread;
};

static struct run the_run;

static void
on_alarm(int sig)
{
	(void)sig;
	dprintf(2, "hangs: %s, seed %u, %u came back\n", the_run.world->name,
	    (unsigned)the_run.seed, atomic_load(&the_run.n_back));
	_exit(3);
}

static struct sockaddr_in
server_addr(const struct run *r)
{
	struct sockaddr_in a = loopback(PORT);

	if (r->world->is_cable)
		a.sin_addr.s_addr = htonl(0x0a090002);
	return a;
}

static int
open_member(const struct run *r)
{
	struct sockaddr_in a = server_addr(r);
	struct timeval tv = { .tv_usec = LOOK_US };
	int fd = darter_socket(AF_INET, SOCK_STREAM, 0), on = 1;

	if (fd < 0 || darter_setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0 ||
	    darter_setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) < 0 ||
	    darter_bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || darter_listen(fd, 1024) < 0)
		wrong("member: %s\n", strerrorname_np(errno));
	return fd;
}

/* ---- acceptors ---- */

static void
serve_one(struct run *r, int fd)
{
	struct timeval forever = { 0 };		/* it has the listener's time limit */
	uint32_t number;
	char c;

	darter_setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof(forever));
	if (darter_recv(fd, &number, sizeof(number), MSG_WAITALL) != sizeof(number) ||
	    number >= NUMBERS)
		wrong("number: %s\n", strerrorname_np(errno));
	else if (atomic_fetch_add(&r->seen[number], 1) != 0)
		wrong("%s, seed %u: %u was accepted twice\n", r->world->name, (unsigned)r->seed,
		    number);
	else if (darter_send(fd, &number, sizeof(number), 0) != sizeof(number) ||
	    darter_recv(fd, &c, 1, 0) != 0)
		wrong("echo: %s\n", strerrorname_np(errno));
	darter_close(fd);
}

/* Ends a member, one way or the other. */
static void
end_member(int fd, uint64_t *rng)
{
	if (below(rng, 2) == 0 && darter_shutdown(fd, SHUT_RD) < 0)
		wrong("shutdown: %s\n", strerrorname_np(errno));
	if (below(rng, 4) == 0)
		usleep(below(rng, 300));
	if (darter_close(fd) < 0)
		wrong("close: %s\n", strerrorname_np(errno));
}

/* 0 has the member that stays, 1 shares it, the others come and go. */
static void *
accept_them(void *arg)
{
	struct worker *w = arg;
	struct run *r = w->run;
	uint64_t rng = mix(r->seed * 64 + w->id) << 20;
	int l, fd;

	darter_stack_use(r->world->stack[r->world->is_cable]);
	l = w->id < 2 ? atomic_load(&r->shared) : open_member(r);
	pthread_barrier_wait(&r->start);
	while (!atomic_load(&r->is_over)) {
		fd = darter_accept4(l, NULL, NULL, 0);
		if (fd >= 0)
			serve_one(r, fd);
		else if (errno != EAGAIN)
			wrong("accept: %s\n", strerrorname_np(errno));
		if (w->id >= 2 && below(&rng, 8) == 0) {
			end_member(l, &rng);
			l = open_member(r);
		}
	}
	if (w->id >= 2)
		darter_close(l);
	return NULL;
}

/* ---- clients ---- */

static void
ask(struct run *r, uint32_t number)
{
	struct sockaddr_in a = server_addr(r);
	int fd = darter_socket(AF_INET, SOCK_STREAM, 0);
	uint32_t back = NUMBERS;

	if (fd < 0 || darter_connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    darter_send(fd, &number, sizeof(number), 0) != sizeof(number) ||
	    darter_recv(fd, &back, sizeof(back), MSG_WAITALL) != sizeof(back))
		wrong("%s, seed %u: client %u: %s\n", r->world->name, (unsigned)r->seed, number,
		    strerrorname_np(errno));
	else if (back != number)
		wrong("%u came back as %u\n", number, back);
	else
		atomic_fetch_add(&r->n_back, 1);
	darter_close(fd);
}

static void *
connect_them(void *arg)
{
	struct worker *w = arg;
	uint32_t i;

	darter_stack_use(w->run->world->stack[0]);
	pthread_barrier_wait(&w->run->start);
	for (i = 0; i < EACH; i++)
		ask(w->run, w->id * EACH + i);
	return NULL;
}

/* ---- runs ---- */

static void
run_seed(const struct world *world, uint64_t seed)
{
	struct worker client[CLIENTS], acceptor[ACCEPTORS];
	struct run *r = &the_run;
	unsigned i;

	memset(r, 0, sizeof(*r));
	r->world = world;
	r->seed = seed;
	darter_stack_use(world->stack[world->is_cable]);
	atomic_store(&r->shared, open_member(r));
	pthread_barrier_init(&r->start, NULL, CLIENTS + ACCEPTORS);
	for (i = 0; i < ACCEPTORS; i++) {
		acceptor[i] = (struct worker){ .run = r, .id = i };
		assert_int_equal(pthread_create(&acceptor[i].thread, NULL, accept_them,
		    &acceptor[i]), 0);
	}
	for (i = 0; i < CLIENTS; i++) {
		client[i] = (struct worker){ .run = r, .id = i };
		assert_int_equal(pthread_create(&client[i].thread, NULL, connect_them,
		    &client[i]), 0);
	}
	for (i = 0; i < CLIENTS; i++)
		pthread_join(client[i].thread, NULL);
	atomic_store(&r->is_over, true);
	for (i = 0; i < ACCEPTORS; i++)
		pthread_join(acceptor[i].thread, NULL);
	pthread_barrier_destroy(&r->start);
	darter_close(atomic_load(&r->shared));
	darter_stack_use(NULL);
	assert_int_equal(atomic_load(&wrongs), 0);
	assert_int_equal(atomic_load(&r->n_back), NUMBERS);
}

static void
run_world(struct world w)
{
	unsigned i;

	signal(SIGALRM, on_alarm);
	world_open(&w);
	for (i = 0; i < n_seeds; i++) {
		alarm(HANG_SECONDS);
		run_seed(&w, first_seed + i);
	}
	alarm(0);
	world_close(&w);
}

static void
clients_are_accepted_once_on_one_netisr(void **state)
{
	(void)state;
	run_world((struct world)WORLD_ONE);
}

static void
clients_are_accepted_once_on_two_netisrs(void **state)
{
	(void)state;
	run_world((struct world)WORLD_TWO);
}

static void
clients_are_accepted_once_on_eight_netisrs(void **state)
{
	struct world w = WORLD_TWO;

	(void)state;
	w.name = "eight netisrs";
	w.netisrs = "stack.netisrs=8";
	run_world(w);
}

static void
clients_are_accepted_once_over_a_cable(void **state)
{
	(void)state;
	run_world((struct world)WORLD_CABLE);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clients_are_accepted_once_on_one_netisr),
		cmocka_unit_test(clients_are_accepted_once_on_two_netisrs),
		cmocka_unit_test(clients_are_accepted_once_on_eight_netisrs),
		cmocka_unit_test(clients_are_accepted_once_over_a_cable),
	};

	take_seeds(argc, argv, 4);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
