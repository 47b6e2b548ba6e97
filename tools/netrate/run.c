/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instances of the netrate programs: threads or processes, their clock and their end.
 *
 * The main thread keeps the time. To end, it raises must_stop and then sends SIGUSR1, again and
 * again, to whoever has not finished: a worker that looked at the flag just before, and slept just
 * after, is woken by the next one. The handler tells darter, so that its calls return EINTR as the
 * kernel's do.
 *
 * Counts are in memory shared with the processes; each has one writer.
 */
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "netrate.h"

enum {
	LOOK_MS = 20,		/* how often the main thread looks at the workers */
	WAKE_MS = 5,		/* between two SIGUSR1 */
	END_S = 20,		/* a worker that takes longer to end is stuck */
	PROGRESS_MIN_S = 3,	/* shorter runs show no progress */
};

struct worker {
	struct instance *in;
	void (*work)(struct instance *in);
	pthread_t thread;
	pid_t pid;		/* 0 for a thread */
	bool is_over;
};

static void
on_wake(int sig)
{
	(void)sig;
	darter_signal_note();
}

static void
do_work(const struct worker *w)
{
	struct instance *in = w->in;
	struct netrate *nr = in->nr;
	int r;

	if (nr->must_attach && in->id < darter_netisr_count(nr->stack)) {
		r = darter_attach(nr->stack, in->id);
		if (r < 0)
			errx(1, "-A: netisr %u: %s", in->id, strerror(-r));
		in->is_attached = true;
	}
	w->work(in);
	if (in->is_attached)
		darter_detach();
	atomic_store(&in->is_done, true);
}

static void *
thread_main(void *arg)
{
	do_work(arg);
	return NULL;
}

static void
start(struct worker *w)
{
	struct netrate *nr = w->in->nr;
	pid_t parent = getpid();
	int r;

	if (!nr->is_kernel || nr->is_threaded) {
		r = pthread_create(&w->thread, NULL, thread_main, w);
		if (r != 0)
			errx(1, "thread %u: %s", w->in->id, strerror(r));
		return;
	}
	w->pid = fork();
	if (w->pid < 0)
		err(1, "fork failed");
	if (w->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		do_work(w);
		_exit(0);
	}
}

/* True when the worker has ended; a process that failed ends the program. */
static bool
is_over(struct worker *w)
{
	int status;

	if (w->is_over)
		return true;
	if (w->pid == 0) {
		if (!atomic_load(&w->in->is_done))
			return false;
		pthread_join(w->thread, NULL);
	} else {
		if (waitpid(w->pid, &status, WNOHANG) != w->pid)
			return false;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			errx(1, "instance %u failed", w->in->id);
	}
	w->is_over = true;
	return true;
}

static bool
are_all_over(struct worker *workers, unsigned n)
{
	bool is_all = true;

	for (unsigned i = 0; i < n; i++)
		is_all = is_over(&workers[i]) && is_all;
	return is_all;
}

static void
show_progress(const struct netrate *nr, double start_us, double *shown_us)
{
	double now_us = netrate_now_us();

	if ((nr->seconds != 0 && nr->seconds < PROGRESS_MIN_S) || now_us - *shown_us < 1e6 ||
	    !isatty(STDOUT_FILENO))
		return;
	*shown_us = now_us;
	printf("\r%.0f s: %lu %s\033[K", (now_us - start_us) / 1e6, netrate_sum(nr, 0),
	    nr->count_names[0]);
	fflush(stdout);
}

/* Until time, a signal, or all workers end. */
static void
keep_time(struct netrate *nr, struct worker *workers)
{
	const struct timespec look = { .tv_nsec = LOOK_MS * 1000000L };
	double start_us = netrate_now_us(), first_us = start_us, shown_us = start_us, end_us;
	bool has_started = !nr->has_gate;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	for (;;) {
		if (!has_started) {
			has_started = atomic_load(&nr->shared->has_started);
			start_us = netrate_now_us();
		}
		end_us = nr->seconds != 0 && has_started ? start_us + nr->seconds * 1e6 : 1e300;
		if (netrate_now_us() >= end_us || are_all_over(workers, nr->n_workers) ||
		    sigtimedwait(&set, NULL, &look) > 0)
			break;
		show_progress(nr, first_us, &shown_us);
	}
	nr->run_s = (netrate_now_us() - start_us) / 1e6;
	if (shown_us > first_us)
		printf("\r\033[K");
}

static void
stop(struct netrate *nr, struct worker *workers)
{
	const struct timespec pause = { .tv_nsec = WAKE_MS * 1000000L };
	double limit_us = netrate_now_us() + END_S * 1e6;

	atomic_store(&nr->shared->must_stop, true);
	while (!are_all_over(workers, nr->n_workers)) {
		for (unsigned i = 0; i < nr->n_workers; i++) {
			if (workers[i].is_over)
				continue;
			if (workers[i].pid == 0)
				pthread_kill(workers[i].thread, SIGUSR1);
			else
				kill(workers[i].pid, SIGUSR1);
		}
		nanosleep(&pause, NULL);
		if (netrate_now_us() > limit_us)
			errx(1, "a worker did not end within %d s", END_S);
	}
}

void
netrate_run(struct netrate *nr, void (*work)(struct instance *in))
{
	struct worker *workers = calloc(nr->n_workers, sizeof(*workers));
	size_t size = sizeof(*nr->shared) + nr->n_workers * sizeof(nr->shared->instances[0]);
	struct sigaction wake = { .sa_handler = on_wake };	/* no SA_RESTART: EINTR is wanted */

	nr->shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_SHARED, -1, 0);
	if (workers == NULL || nr->shared == MAP_FAILED)
		err(1, "memory for %u instances", nr->n_workers);
	sigaction(SIGUSR1, &wake, NULL);
	fflush(NULL);	/* before fork: no buffered text twice */
	for (unsigned i = 0; i < nr->n_workers; i++) {
		struct instance *in = &nr->shared->instances[i];

		in->id = i;
		in->nr = nr;
		workers[i] = (struct worker){ .in = in, .work = work };
	}
	for (unsigned i = 0; i < nr->n_workers; i++)
		start(&workers[i]);
	keep_time(nr, workers);
	stop(nr, workers);
	free(workers);
}

void
netrate_gate(struct instance *in, atomic_uint *n_pending)
{
	struct netrate_shared *shared = in->nr->shared;
	struct epoll_event ev;
	int nothing = net->epoll_create1(0);

	/* In an empty epoll, so that an attached thread runs its netisr meanwhile. */
	while (atomic_load(n_pending) > 0 && !netrate_must_stop(in))
		net->epoll_wait(nothing, &ev, 1, 1);
	net->close(nothing);
	if (atomic_fetch_add(&shared->n_at_gate, 1) + 1 == in->nr->n_workers)
		atomic_store(&shared->has_started, true);
	while (!atomic_load(&shared->has_started) && !netrate_must_stop(in))
		sched_yield();
}

void
netrate_pin(unsigned id, int fd)
{
	cpu_set_t all, one;
	unsigned n;
	int number;

	if (sched_getaffinity(0, sizeof(all), &all) != 0)
		err(1, "sched_getaffinity failed");
	n = id % (unsigned)CPU_COUNT(&all);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all) || n-- > 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof(one), &one) != 0)
			err(1, "-B: CPU %zu", cpu);
		number = (int)cpu;
		/* A hint: without it connections come from every CPU. */
		if (fd >= 0)
			net->setsockopt(fd, SOL_SOCKET, SO_INCOMING_CPU, &number, sizeof(number));
		return;
	}
}
