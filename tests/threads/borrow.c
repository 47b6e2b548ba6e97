/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The price of borrowing (runtime/netisr.c): a thread of the lowest priority sends in a loop on a
 * CPU that two busy threads keep from it, so it loses the CPU while it runs a netisr in its place.
 * What must be: with borrowing the counters show the long holds, without it there are none, and the
 * netisr's other connections come to their end both times while all that goes on. The two scenes
 * differ in the knob alone. No time is compared.
 */
#include <sched.h>
#include <sys/resource.h>

#include "threads/world.h"

#define CONNS		4
#define ROUNDS		6
#define MSG_BYTES	512
#define PATIENCE_MS	40000	/* what has not come by then does not come */
#define LOWEST		19
#define BUSY_THREADS	2

struct scene {
	struct world world;
	int sender_fd;
	int client[CONNS], served[CONNS];
	_Atomic bool stop_busy, stop_sender, stop_server;
	_Atomic bool is_finished;	/* the other connections */
	_Atomic uint64_t sends;
	pthread_t busy[BUSY_THREADS], sender, server, client_thread;
	int n_busy;
};

static int
last_cpu(void)
{
	cpu_set_t set;
	int i, last = 0;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 0;
	for (i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &set))
			last = i;
	}
	return last;
}

static void
pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		wrong("affinity: %s\n", strerrorname_np(errno));
}

static void *
be_busy(void *arg)
{
	struct scene *sc = arg;

	pin_to(last_cpu());
	while (!atomic_load_explicit(&sc->stop_busy, memory_order_relaxed))
		;
	return NULL;
}

/* Datagrams that nobody reads. */
static void *
send_slowly(void *arg)
{
	struct scene *sc = arg;
	char buf[100] = { 0 };

	if (setpriority(PRIO_PROCESS, 0, LOWEST) < 0)
		wrong("nice: %s\n", strerrorname_np(errno));
	pin_to(last_cpu());
	while (!atomic_load(&sc->stop_sender)) {
		if (darter_send(sc->sender_fd, buf, sizeof(buf), MSG_DONTWAIT) < 0 &&
		    errno != EAGAIN)
			wrong("send: %s\n", strerrorname_np(errno));
		atomic_fetch_add(&sc->sends, 1);
	}
	return NULL;
}

/* Sends everything back. */
static void *
serve(void *arg)
{
	struct scene *sc = arg;
	struct pollfd p[CONNS];
	char buf[MSG_BYTES];
	int i;

	for (i = 0; i < CONNS; i++)
		p[i] = (struct pollfd){ .fd = sc->served[i], .events = POLLIN };
	while (!atomic_load(&sc->stop_server)) {
		if (darter_poll(p, CONNS, 20) < 0)
			wrong("poll: %s\n", strerrorname_np(errno));
		for (i = 0; i < CONNS; i++) {
			ssize_t n = p[i].revents == 0 ? 0 :
			    darter_recv(p[i].fd, buf, sizeof(buf), MSG_DONTWAIT);

			if (n > 0 && darter_send(p[i].fd, buf, (size_t)n, 0) != n)
				wrong("echo: %s\n", strerrorname_np(errno));
		}
	}
	return NULL;
}

/* The other connections: rounds of requests on all of them. */
static void *
run_connections(void *arg)
{
	struct scene *sc = arg;
	char out[MSG_BYTES], in[MSG_BYTES];
	int r, i;

	for (r = 0; r < ROUNDS; r++) {
		memset(out, 'a' + r, sizeof(out));
		for (i = 0; i < CONNS; i++) {
			if (darter_send(sc->client[i], out, sizeof(out), 0) != MSG_BYTES)
				wrong("request: %s\n", strerrorname_np(errno));
		}
		for (i = 0; i < CONNS; i++) {
			ssize_t n = darter_recv(sc->client[i], in, sizeof(in), MSG_WAITALL);

			if (n != MSG_BYTES || memcmp(in, out, sizeof(in)) != 0)
				wrong("round %d, answer of %zd bytes\n", r, n);
		}
	}
	atomic_store(&sc->is_finished, true);
	return NULL;
}

static uint64_t
counter(const struct scene *sc, const char *name)
{
	uint64_t v;

	assert_int_equal(darter_counter_get(sc->world.stack[0], name, &v), 0);
	return v;
}

static uint64_t
longest_hold_us(const struct scene *sc)
{
	struct darter_netisr_stats st;
	uint64_t most = 0;
	unsigned i;

	for (i = 0; i < darter_netisr_count(sc->world.stack[0]); i++) {
		assert_int_equal(darter_netisr_stats(sc->world.stack[0], i, &st), 0);
		if (st.longest_hold_us > most)
			most = st.longest_hold_us;
	}
	return most;
}

/* ---- the stage ---- */

static void *
open_at_lowest(void *arg)
{
	struct scene *sc = arg;

	setpriority(PRIO_PROCESS, 0, LOWEST);
	world_open(&sc->world);
	return NULL;
}

/*
 * Only threads that the scheduler prefers no less than the keepers borrow; these take their
 * niceness from the thread that opens the stack.
 */
static void
open_scene(struct scene *sc, struct world w, bool is_keeper_lowest, const char *borrow)
{
	char err[DARTER_ERR_MAX];
	pthread_t opener;
	int i;

	memset(sc, 0, sizeof(*sc));
	sc->world = w;
	if (is_keeper_lowest) {
		assert_int_equal(pthread_create(&opener, NULL, open_at_lowest, sc), 0);
		pthread_join(opener, NULL);
	} else {
		world_open(&sc->world);
	}
	assert_int_equal(darter_sysctl_set(NULL, "net.isr.borrow", borrow, err, sizeof(err)), 0);
	sc->sender_fd = bound(&darter_net, SOCK_DGRAM);
	assert_int_equal(connect_to(&darter_net, sc->sender_fd, port_of(&darter_net,
	    sc->sender_fd)), 0);
	for (i = 0; i < CONNS; i++) {
		int fd[2];

		connected_pair(&darter_net, fd);
		sc->client[i] = fd[0];
		sc->served[i] = fd[1];
	}
}

static void
start_threads(struct scene *sc, int n_busy)
{
	int i;

	sc->n_busy = n_busy;
	for (i = 0; i < n_busy; i++)
		assert_int_equal(pthread_create(&sc->busy[i], NULL, be_busy, sc), 0);
	assert_int_equal(pthread_create(&sc->sender, NULL, send_slowly, sc), 0);
}

static void
stop_busy(struct scene *sc)
{
	int i;

	atomic_store(&sc->stop_busy, true);
	for (i = 0; i < sc->n_busy; i++)
		pthread_join(sc->busy[i], NULL);
	sc->n_busy = 0;
}

static void
stop_sender(struct scene *sc)
{
	atomic_store(&sc->stop_sender, true);
	pthread_join(sc->sender, NULL);
}

static void
close_scene(struct scene *sc)
{
	int i;

	for (i = 0; i < CONNS; i++) {
		darter_close(sc->client[i]);
		darter_close(sc->served[i]);
	}
	darter_close(sc->sender_fd);
	world_close(&sc->world);
	assert_int_equal(atomic_load(&wrongs), 0);
}

/* The connections begin while the sender is starved, and with it the netisr when it holds that. */
static void
run_beside_busy_threads(struct scene *sc, bool wants_holds)
{
	uint64_t until = now_ms() + PATIENCE_MS;

	assert_int_equal(pthread_create(&sc->server, NULL, serve, sc), 0);
	start_threads(sc, BUSY_THREADS);
	while (wants_holds && counter(sc, "holds_over_1ms") == 0 && now_ms() < until)
		usleep(1000);
	assert_int_equal(pthread_create(&sc->client_thread, NULL, run_connections, sc), 0);
	while ((atomic_load(&sc->sends) == 0 || !atomic_load(&sc->is_finished)) &&
	    now_ms() < until)
		usleep(5000);
	assert_true(atomic_load(&sc->is_finished));
	assert_true(atomic_load(&sc->sends) > 0);
	stop_busy(sc);
	pthread_join(sc->client_thread, NULL);
	stop_sender(sc);
	atomic_store(&sc->stop_server, true);
	pthread_join(sc->server, NULL);
}

/* ---- cases ---- */

static void
with_borrowing(struct world w)
{
	struct scene sc;

	open_scene(&sc, w, true, "idle");
	run_beside_busy_threads(&sc, true);
	assert_true(counter(&sc, "borrows") > 0);
	assert_true(counter(&sc, "holds_over_1ms") > 0);
	assert_true(longest_hold_us(&sc) >= 1000);
	close_scene(&sc);
}

static void
without_borrowing(struct world w)
{
	struct scene sc;
	uint64_t borrows, holds;

	open_scene(&sc, w, true, "never");
	/* the stack was opened with borrowing, and so were its first moments */
	borrows = counter(&sc, "borrows");
	holds = counter(&sc, "holds_over_1ms");
	run_beside_busy_threads(&sc, false);
	assert_int_equal(counter(&sc, "borrows"), borrows);
	assert_int_equal(counter(&sc, "holds_over_1ms"), holds);
	close_scene(&sc);
}

/* Borrowing is on, but the keepers are preferred to the sender, the only thread that calls. */
static void
with_preferred_keepers(struct world w)
{
	struct scene sc;
	uint64_t borrows, holds, msgs, until = now_ms() + PATIENCE_MS;

	open_scene(&sc, w, false, "idle");
	borrows = counter(&sc, "borrows");
	holds = counter(&sc, "holds_over_1ms");
	msgs = counter(&sc, "msgs");
	start_threads(&sc, 0);
	while (counter(&sc, "msgs") < msgs + 20 && now_ms() < until)
		usleep(10000);
	stop_sender(&sc);
	assert_true(counter(&sc, "msgs") >= msgs + 20);
	assert_int_equal(counter(&sc, "borrows"), borrows);
	assert_int_equal(counter(&sc, "holds_over_1ms"), holds);
	close_scene(&sc);
}

static void
sender_that_loses_its_cpu_is_counted_and_all_finish(void **state)
{
	(void)state;
	with_borrowing((struct world)WORLD_ONE);
	with_borrowing((struct world)WORLD_TWO);
}

static void
nobody_holds_long_without_borrowing_and_all_finish(void **state)
{
	(void)state;
	without_borrowing((struct world)WORLD_ONE);
	without_borrowing((struct world)WORLD_TWO);
}

static void
thread_of_lower_priority_than_the_keeper_does_not_borrow(void **state)
{
	(void)state;
	with_preferred_keepers((struct world)WORLD_ONE);
	with_preferred_keepers((struct world)WORLD_TWO);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sender_that_loses_its_cpu_is_counted_and_all_finish),
		cmocka_unit_test(nobody_holds_long_without_borrowing_and_all_finish),
		cmocka_unit_test(thread_of_lower_priority_than_the_keeper_does_not_borrow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
