/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keepers: the thread that sleeps for a netisr while nobody runs it. A background thread by
 * default; an attached application thread takes its place. The keeper sleeps in epoll on the
 * doorbell, a timerfd and the devices' descriptors.
 *
 * No wake-up is lost: the keeper says that it is asleep (RMW) and then lets go of the role word,
 * which fails while a message is there; a pusher that finds the word free reads "asleep"
 * afterwards. A keeper that finds the role taken says "asleep" and tries once more, since the
 * holder looks at that word after it has let go.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "runtime/netisr_priv.h"
#include "runtime/stack.h"

#define BEHIND_HOLDER_MS 1	/* nap of a keeper that finds a borrower in its place */

/* The netisr that a thread is attached to: it is detached when the thread ends. */
static pthread_key_t attached_key;
static pthread_once_t attached_once = PTHREAD_ONCE_INIT;
static bool has_attached_key;

int
netisr_init_fds(struct netisr *n)
{
	n->doorbell_fd = n->timer_fd = n->epoll_fd = -1;
	/* nobody sleeps where a test turns the clock and runs the rounds */
	if (n->stack->is_manual && n->stack->clock->is_fake)
		return 0;
	n->doorbell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	n->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	n->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (n->doorbell_fd < 0 || n->timer_fd < 0 || n->epoll_fd < 0 ||
	    netisr_add_fd(n, n->doorbell_fd) < 0 ||
	    netisr_add_fd(n, n->timer_fd) < 0) {
		int err = errno;

		netisr_fini_fds(n);
		return -err;
	}
	return 0;
}

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void
netisr_fini_fds(struct netisr *n)
{
	close_fd(&n->doorbell_fd);
	close_fd(&n->timer_fd);
	close_fd(&n->epoll_fd);
}

static void
drain_fds(struct netisr *n)
{
	uint64_t v;
	ssize_t ignored;

	ignored = read(n->doorbell_fd, &v, sizeof(v));
	ignored = read(n->timer_fd, &v, sizeof(v));
	(void)ignored;
}

/* Wakes the keeper whether or not it says that it sleeps. */
static void
ring_unasked(struct netisr *n)
{
	uint64_t one = 1;
	ssize_t ignored = write(n->doorbell_fd, &one, sizeof(one));

	(void)ignored;
}

static void
stop_being_attached(struct netisr *n)
{
	pthread_setspecific(attached_key, NULL);
	atomic_store_explicit(&n->is_attached, false, memory_order_release);
}

static int
sleep_on_fds(struct netisr *n, const struct nap *nap)
{
	struct pollfd fds[3] = {
		{ .fd = n->epoll_fd, .events = POLLIN },
		{ .fd = nap->extra_fd, .events = POLLIN },	/* poll ignores negative ones */
		{ .fd = nap->wake_fd, .events = POLLIN },
	};

	int err;

	wait_cancel_open(false);
	err = poll(fds, 3, -1) < 0 && errno == EINTR ? -EINTR : 0;
	wait_cancel_shut();
	return err;
}

/* An attached thread is cancelled, without the role: it is not the keeper any more. */
static void
nap_cancelled(void *arg)
{
	struct netisr *n = arg;

	wait_cancelled();
	atomic_store_explicit(&n->keeper_asleep, false, memory_order_release);
	drain_fds(n);
	stop_being_attached(n);
	waitword_post(&n->parking);
}

int
keeper_nap(struct netisr *n, const struct nap *nap)
{
	volatile int err = 0;	/* survives the cleanup frame's longjmp */

	NETISR_COUNT(n, CTR_sleeps);
	netisr_set_timer(n, time_min(nap->deadline, netisr_next_deadline(n)));
	atomic_exchange_explicit(&n->keeper_asleep, true, memory_order_acq_rel);
	netisr_give(n);
	pthread_cleanup_push(nap_cancelled, n);
	if ((nap->w == NULL || waitword_seq(nap->w) == nap->seen) &&
	    !atomic_load_explicit(&n->stop, memory_order_acquire))
		err = sleep_on_fds(n, nap);
	pthread_cleanup_pop(0);
	atomic_store_explicit(&n->keeper_asleep, false, memory_order_release);
	drain_fds(n);
	return err;
}

/* Somebody else holds the role: wait for his doorbell, but not for long. */
static void
nap_behind_holder(struct netisr *n)
{
	struct pollfd fd = { .fd = n->doorbell_fd, .events = POLLIN };

	atomic_exchange_explicit(&n->keeper_asleep, true, memory_order_acq_rel);
	if (msgport_is_held(&n->port))
		poll(&fd, 1, BEHIND_HOLDER_MS);
	atomic_store_explicit(&n->keeper_asleep, false, memory_order_release);
	drain_fds(n);	/* a bell that stays rung would make the next naps none at all */
}

/* Runs as holder until nothing has happened for net.isr.poll_idle_us. */
static void
run_until_idle(struct netisr *n)
{
	struct time idle_since = n->now;

	while (!atomic_load_explicit(&n->stop, memory_order_relaxed) &&
	    !atomic_load_explicit(&n->is_attached, memory_order_relaxed)) {
		int64_t poll_us = atomic_load_explicit(&n->stack->poll_idle_us,
		    memory_order_relaxed);

		if (netisr_round(n) != 0) {
			idle_since = n->now;
			continue;
		}
		if (poll_us >= 0 && time_since_us(n->now, idle_since) >= (uint64_t)poll_us)
			return;
		cpu_relax();
	}
}

/* The attached thread is the keeper: wait until it detaches or the stack ends. */
static void
park(struct netisr *n)
{
	uint32_t seen = waitword_seq(&n->parking);

	atomic_store_explicit(&n->is_parked, true, memory_order_release);
	if (atomic_load_explicit(&n->is_attached, memory_order_acquire) &&
	    !atomic_load_explicit(&n->stop, memory_order_acquire))
		waitword_sleep(&n->parking, seen, UINT64_MAX);
	/*
	 * An RMW: the look at is_attached that follows must not overtake it. Who attaches sets that
	 * and then looks at this, so either he waits once more or this thread parks again.
	 */
	atomic_exchange_explicit(&n->is_parked, false, memory_order_seq_cst);
}

static void *
keeper_main(void *arg)
{
	static const struct nap nap = { .deadline = TIME_NEVER, .extra_fd = -1, .wake_fd = -1 };
	struct netisr *n = arg;
	char name[16];

	snprintf(name, sizeof(name), "darter/%u", n->id);
	pthread_setname_np(pthread_self(), name);
	while (!atomic_load_explicit(&n->stop, memory_order_acquire)) {
		if (atomic_load_explicit(&n->is_attached, memory_order_acquire)) {
			park(n);
		} else if (!netisr_take(n)) {
			nap_behind_holder(n);
		} else {
			run_until_idle(n);
			keeper_nap(n, &nap);
		}
	}
	return NULL;
}

static void
pin_keeper(pthread_attr_t *attr, const struct darter_stack *s, unsigned id)
{
	cpu_set_t set;

	if (s->n_keeper_cpus == 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(s->keeper_cpu[id % s->n_keeper_cpus], &set);
	pthread_attr_setaffinity_np(attr, sizeof(set), &set);
}

static int
start_keeper(struct darter_stack *s, struct netisr *n)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int err;

	n->keeper_nice = getpriority(PRIO_PROCESS, 0);	/* inherited by the thread */
	pthread_attr_init(&attr);
	pin_keeper(&attr, s, n->id);
	/* signals are the application's: they must not pick a keeper to run on */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = pthread_create(&n->keeper, &attr, keeper_main, n);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	n->has_keeper = err == 0;
	return -err;
}

int
netisr_start_keepers(struct darter_stack *s)
{
	unsigned i;

	if (s->is_manual)
		return 0;
	for (i = 0; i < s->n_netisrs; i++) {
		int err = start_keeper(s, s->netisr[i]);

		if (err < 0) {
			netisr_stop_keepers(s);
			return err;
		}
	}
	return 0;
}

void
netisr_stop_keepers(struct darter_stack *s)
{
	unsigned i;

	for (i = 0; i < s->n_netisrs; i++) {
		struct netisr *n = s->netisr[i];

		if (n == NULL || !n->has_keeper)
			continue;
		atomic_store_explicit(&n->stop, true, memory_order_release);
		waitword_post(&n->parking);
		ring_unasked(n);
		pthread_join(n->keeper, NULL);
		n->has_keeper = false;
		atomic_store_explicit(&n->stop, false, memory_order_release);
	}
}

static void
attached_thread_ends(void *arg)
{
	if (netisr_current() == arg)
		netisr_detach(arg);
}

static void
attached_key_new(void)
{
	has_attached_key = pthread_key_create(&attached_key, attached_thread_ends) == 0;
}

int
netisr_attach(struct netisr *n)
{
	bool expected = false;

	if (netisr_current() != NULL)
		return -EDEADLK;
	pthread_once(&attached_once, attached_key_new);
	if (!has_attached_key || pthread_setspecific(attached_key, n) != 0)
		return -ENOMEM;
	if (!atomic_compare_exchange_strong(&n->is_attached, &expected, true)) {
		pthread_setspecific(attached_key, NULL);
		return -EBUSY;
	}
	/*
	 * the descriptors and "asleep" have one user: the background thread must be out of them
	 * first
	 */
	while (n->has_keeper && !atomic_load_explicit(&n->is_parked, memory_order_acquire)) {
		ring_unasked(n);
		sched_yield();
	}
	while (!netisr_take(n))
		sched_yield();	/* a borrower, who may have lost his CPU to this thread */
	return 0;
}

int
netisr_detach(struct netisr *n)
{
	if (netisr_current() != n)
		return -EINVAL;
	stop_being_attached(n);
	netisr_give(n);
	waitword_post(&n->parking);
	return 0;
}
