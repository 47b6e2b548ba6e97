/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random stress of the runtime's lock-free parts under real threads: senders, callers, posters of
 * op words, waiters (with and without a descriptor), one who attaches and detaches, one who swaps
 * snapshots, over a stack without protocols. Usage: stress [SECONDS [SEED]].
 *
 * Work comes in epochs. In an epoch every thread does a random number of random things; then it
 * waits until all that it is owed has come, without making progress itself, and then for the
 * others. So a message or a wake-up that is lost is not found by somebody who happens to come by:
 * it is missed at the end of the epoch, where nothing else happens, and fails the run after
 * PATIENCE_S. Borrowing is switched at random between epochs, and so is whether threads pause
 * enough for the keepers to fall asleep. In every second epoch one thread alone sends, waits or
 * attaches again just when its keeper is about to fall asleep.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/stack.h"

#define NETISRS		2u
#define WORKERS		8u
#define NODES		4u		/* messages of a sender */
#define EPOCH_STEPS	300u
#define RACES		4000u
#define RACE_SPINS 300u /* about as long as a keeper takes from its last message to its sleep */
#define PATIENCE_S	20
#define SNAPSHOT_ALIVE	UINT64_C(0x5a5aa5a55a5aa5a5)

struct snapshot {
	struct retired retired;
	uint64_t canary;
};

/* A message that counts, and answers. */
struct request {
	struct msg_node node;
	_Atomic uint64_t handled;
	struct waitword answer;
};

/* A socket without a protocol: what was written before a post must be seen by a handler. */
struct half {
	struct sockhalf sh;
	_Atomic uint64_t written;
	_Atomic uint64_t seen;
};

struct worker {
	pthread_t thread;
	struct rng rng;
	void (*step)(struct worker *w);
	void (*settle)(struct worker *w);	/* all that is owed has come */
	struct request request[NODES];
	uint64_t sent[NODES];
	int idle_pipe[2];			/* never readable */
	uint64_t done;
};

static struct darter_stack *stack;
static struct worker workers[WORKERS];
static pthread_barrier_t barrier;
static _Atomic bool is_over;
static bool does_pause;
static unsigned racer;			/* the only worker of this epoch; WORKERS: all */
static struct half halves[2];
static struct snapshot *_Atomic current;
static _Atomic uint64_t n_freed;
static uint64_t n_retired, n_handled_calls[WORKERS];

static void
die(const char *what, uint64_t got, uint64_t wanted)
{
	unsigned i;

	fprintf(stderr, "stress: %s: %" PRIu64 " of %" PRIu64 "\n", what, got, wanted);
	for (i = 0; i < NETISRS; i++) {
		struct netisr *n = stack->netisr[i];

		fprintf(stderr,
		    "netisr %u: word %#" PRIxPTR " asleep %d attached %d parked %d rounds %" PRIu64
		    "\n",
		    i, atomic_load(&n->port.word), atomic_load(&n->keeper_asleep),
		    atomic_load(&n->is_attached), atomic_load(&n->is_parked),
		    atomic_load(&n->rounds));
	}
	_exit(1);
}

static void
pause_us(unsigned us)
{
	struct timespec ts = { .tv_nsec = (long)us * 1000 };

	nanosleep(&ts, NULL);
}

/* Looks until *got is `wanted`; dies when it does not come. */
static void
await(const char *what, _Atomic uint64_t *got, uint64_t wanted)
{
	struct timespec began, now;

	clock_gettime(CLOCK_MONOTONIC, &began);
	while (atomic_load(got) != wanted) {
		pause_us(20);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec - began.tv_sec > PATIENCE_S)
			die(what, atomic_load(got), wanted);
	}
}

static struct netisr *
some_netisr(struct worker *w)
{
	return stack->netisr[rng_below(&w->rng, NETISRS)];
}

/* ---- the stack's only layer ---- */

static void
on_request(struct netisr *n, struct msg_node *m)
{
	struct request *r = container_of(m, struct request, node);

	if (netisr_current() != n)
		die("handled by a thread that does not hold", 0, 1);
	/* the answer first: after `handled` the sender may send the node again */
	waitword_post(&r->answer);
	atomic_fetch_add(&r->handled, 1);
}

static void
on_socket(struct netisr *n, struct msg_node *m)
{
	struct sockhalf *sh = container_of(m, struct sockhalf, node);
	struct half *h = container_of(sh, struct half, sh);
	uint32_t ops = atomic_exchange(&sh->ops, 0);

	(void)n;
	if (ops != 0)
		atomic_store(&h->seen, atomic_load(&h->written));
}

static unsigned
look_at_snapshot(struct netisr *n)
{
	const struct snapshot *p = published_load(&current);
	unsigned i;

	(void)n;
	for (i = 0; i < 8; i++) {
		if (*(const volatile uint64_t *)&p->canary != SNAPSHOT_ALIVE)
			die("a snapshot was freed under its reader", p->canary, SNAPSHOT_ALIVE);
		cpu_relax();
	}
	return 0;
}

static const struct layer stress_layer = {
	.name = "stress",
	.poll = look_at_snapshot,
	.message = { [MSG_LISTENER] = on_request, [MSG_SOCKET] = on_socket },
};

static const struct layer *const layers[] = { &stress_layer, NULL };

/* ---- senders ---- */

static void
send_step(struct worker *w)
{
	unsigned i = rng_below(&w->rng, NODES);

	/* a node is sent again only after it was handled */
	if (atomic_load(&w->request[i].handled) != w->sent[i])
		return;
	w->sent[i]++;
	w->done++;
	netisr_send(some_netisr(w), &w->request[i].node);
}

static void
send_settle(struct worker *w)
{
	unsigned i;

	for (i = 0; i < NODES; i++)
		await("messages handled", &w->request[i].handled, w->sent[i]);
}

/* For a short time without sleeping. */
static bool
spin_until_handled(struct worker *w)
{
	unsigned spins = 0, i;

	for (i = 0; i < NODES; i++) {
		while (atomic_load(&w->request[i].handled) != w->sent[i]) {
			if (++spins > 100000)
				return false;
			cpu_relax();
		}
	}
	return true;
}

/* ---- waiters: a request, then a wait for the answer ---- */

static void
ask(struct worker *w, struct netisr *n, struct netisr *owner, int extra_fd)
{
	struct request *r = &w->request[0];
	uint32_t seen = waitword_seq(&r->answer);
	struct time deadline = time_add_us(stack_now(stack), PATIENCE_S * US_PER_SEC);

	w->sent[0]++;
	w->done++;
	netisr_send(n, &r->node);
	while (waitword_seq(&r->answer) == seen) {
		int err = wait_until(stack, owner, &r->answer, seen, deadline, extra_fd);

		if (err < 0)
			die("answers that came in time", atomic_load(&r->handled), w->sent[0]);
	}
	/* the handler has answered and is about to let go of the node */
	while (atomic_load(&r->handled) != w->sent[0])
		cpu_relax();
}

static void
wait_step(struct worker *w)
{
	struct netisr *n = some_netisr(w);

	ask(w, n, rng_below(&w->rng, 2) ? n : NULL, rng_below(&w->rng, 2) ? w->idle_pipe[0] : -1);
}

/* ---- one who attaches ---- */

static void
attach_step(struct worker *w)
{
	struct netisr *own = some_netisr(w);
	unsigned i, times = rng_below(&w->rng, 4);

	if (netisr_attach(own) < 0)
		die("attached", 0, 1);
	for (i = 0; i < times; i++)
		ask(w, some_netisr(w), NULL, rng_below(&w->rng, 2) ? w->idle_pipe[0] : -1);
	if (netisr_detach(own) < 0)
		die("detached", 0, 1);
}

/* ---- callers ---- */

static void
count_call(struct netisr *n, void *arg)
{
	(void)n;
	(*(uint64_t *)arg)++;
}

static void
call_step(struct worker *w)
{
	uint64_t *calls = &n_handled_calls[w - workers];

	w->done++;
	netisr_call(some_netisr(w), count_call, calls);
	if (*calls != w->done)
		die("calls carried out", *calls, w->done);
}

/* ---- op words ---- */

static void
post_step(struct worker *w)
{
	struct half *h = &halves[rng_below(&w->rng, 2)];

	w->done++;
	atomic_fetch_add(&h->written, 1);
	sockhalf_post(&h->sh, SOCK_OP_SEND << rng_below(&w->rng, 2));
}

static void
post_settle(struct worker *w)
{
	unsigned i;

	(void)w;
	for (i = 0; i < 2; i++) {
		/* others may still post: what counts is that it is seen in the end */
		while (atomic_load(&halves[i].seen) < atomic_load(&halves[i].written))
			await("posted ops seen", &halves[i].seen, atomic_load(&halves[i].written));
	}
}

/* ---- snapshots ---- */

static struct snapshot *
snapshot_new(void)
{
	struct snapshot *p = calloc(1, sizeof(*p));

	if (p == NULL)
		die("memory", 0, sizeof(*p));
	p->canary = SNAPSHOT_ALIVE;
	return p;
}

static void
snapshot_free(struct darter_stack *s, struct retired *r)
{
	struct snapshot *p = container_of(r, struct snapshot, retired);

	(void)s;
	p->canary = 0;
	free(p);
	atomic_fetch_add(&n_freed, 1);
}

static void
publish_step(struct worker *w)
{
	struct snapshot *old;

	w->done++;
	control_lock(stack);
	old = published_load(&current);
	published_store(&current, snapshot_new());
	publish_retire(stack, &old->retired, snapshot_free);
	n_retired++;
	control_unlock(stack);
}

static void
publish_settle(struct worker *w)
{
	(void)w;
	control_lock(stack);
	publish_drain(stack);
	control_unlock(stack);
	await("snapshots freed", &n_freed, n_retired);
}

/* ---- epochs ---- */

static const struct role {
	void (*step)(struct worker *w);
	void (*settle)(struct worker *w);
	unsigned one_in;		/* does something in one of so many steps */
} roles[WORKERS] = {
	{ send_step, send_settle, 1 },
	{ send_step, send_settle, 1 },
	{ wait_step, send_settle, 2 },
	{ wait_step, send_settle, 2 },
	{ attach_step, send_settle, 8 },
	{ call_step, NULL, 2 },
	{ post_step, post_settle, 1 },
	{ publish_step, publish_settle, 4 },
};

/* Again and again, each time a random moment after the last message was handled. */
static void
race(struct worker *w, const struct role *role)
{
	unsigned i, spins;

	for (i = 0; i < RACES; i++) {
		role->step(w);
		if (role->settle != NULL && !spin_until_handled(w))
			role->settle(w);
		for (spins = rng_below(&w->rng, RACE_SPINS); spins > 0; spins--)
			cpu_relax();
	}
}

static void
work_together(struct worker *w, const struct role *role)
{
	unsigned steps = rng_below(&w->rng, EPOCH_STEPS), i;

	for (i = 0; i < steps; i++) {
		if (rng_below(&w->rng, role->one_in) == 0)
			role->step(w);
		if (does_pause && rng_below(&w->rng, 4) == 0)
			pause_us(rng_below(&w->rng, 120));
	}
	if (role->settle != NULL)
		role->settle(w);
}

static void *
work(void *arg)
{
	struct worker *w = arg;
	const struct role *role = &roles[w - workers];

	while (!atomic_load(&is_over)) {
		if (racer == WORKERS)
			work_together(w, role);
		else if (w == &workers[racer])
			race(w, role);
		pthread_barrier_wait(&barrier);
		/* the main thread sets up the next epoch between the two */
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void
start_worker(unsigned i, uint64_t seed)
{
	struct worker *w = &workers[i];
	unsigned k;

	rng_init(&w->rng, seed * 1000 + i);
	for (k = 0; k < NODES; k++)
		w->request[k].node.kind = MSG_LISTENER;
	if (pipe(w->idle_pipe) < 0 || pthread_create(&w->thread, NULL, work, w) != 0)
		die("workers started", i, WORKERS);
}

static void
start_stack(uint64_t seed)
{
	struct config cfg;
	char err[256];
	unsigned i;
	int r;

	config_init(&cfg);
	cfg.netisrs = NETISRS;
	cfg.threads = CONFIG_THREADS_BACKGROUND;
	cfg.memory = CONFIG_MEMORY_HEAP;
	cfg.packets = 256;
	cfg.seed = seed;
	atomic_store(&current, snapshot_new());
	stack = stack_new(&cfg, layers, NULL, NULL, &r, err, sizeof(err));
	if (stack == NULL || netisr_start_keepers(stack) < 0) {
		fprintf(stderr, "stress: %s\n", stack == NULL ? err : "no threads");
		exit(1);
	}
	for (i = 0; i < 2; i++) {
		halves[i].sh.stack = stack;
		halves[i].sh.node.kind = MSG_SOCKET;
		atomic_store(&halves[i].sh.owner, stack->netisr[i % NETISRS]);
	}
}

static uint64_t
run_epochs(time_t seconds, uint64_t seed)
{
	struct timespec began, now;
	uint64_t epochs = 0;
	struct rng rng;

	rng_init(&rng, seed);
	clock_gettime(CLOCK_MONOTONIC, &began);
	do {
		pthread_barrier_wait(&barrier);
		epochs++;
		clock_gettime(CLOCK_MONOTONIC, &now);
		atomic_store(&stack->borrow, rng_below(&rng, 2));
		does_pause = rng_below(&rng, 3) != 0;
		/* a sender, a waiter, the one who attaches, or the caller */
		racer = WORKERS;
		if (epochs % 2 != 0)
			racer = rng_below(&rng, 2) == 0 ? 0 : 2 + rng_below(&rng, 4);
		if (now.tv_sec - began.tv_sec >= seconds)
			atomic_store(&is_over, true);
		pthread_barrier_wait(&barrier);
	} while (!atomic_load(&is_over));
	return epochs;
}

int
main(int argc, char **argv)
{
	time_t seconds = argc > 1 ? (time_t)strtol(argv[1], NULL, 10) : 20;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, epochs, done = 0;
	unsigned i;

	start_stack(seed);
	pthread_barrier_init(&barrier, NULL, WORKERS + 1);
	does_pause = true;
	racer = WORKERS;
	for (i = 0; i < WORKERS; i++)
		start_worker(i, seed);
	epochs = run_epochs(seconds, seed);
	for (i = 0; i < WORKERS; i++) {
		pthread_join(workers[i].thread, NULL);
		close(workers[i].idle_pipe[0]);
		close(workers[i].idle_pipe[1]);
		done += workers[i].done;
	}
	printf("stress: %" PRIu64 " epochs, %" PRIu64
	       " messages, waits, calls, posts and swaps, none lost; "
	       "%" PRIu64 " borrows, %" PRIu64 " sleeps of keepers\n",
	    epochs, done, stack_counter(stack, CTR_borrows), stack_counter(stack, CTR_sleeps));
	netisr_stop_keepers(stack);
	stack_free(stack);
	free(atomic_load(&current));
	return 0;
}
