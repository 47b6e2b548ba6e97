/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The worker of `darter bench msgport`: messages to a netisr (darter_msg_rate), and for comparison
 * the least that two threads can do without darter: a cache line that goes to and fro, and a
 * thread that is woken out of read(2) by an eventfd. The netisr's background thread is on the
 * client's CPU of --cpus; the sender is on the other one, or on the same.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <darter/stats.h>

#include "bench.h"

#define COUNT		512	/* messages between looks at the clock */
#define WAKE_COUNT	4
#define BATCH		64
#define PAUSE_US	300	/* long enough for a thread to be asleep */
#define LINE_COUNT	512

/* The line that goes to and fro: odd is for the echo, even for the asker. */
struct echo {
	_Atomic uint64_t line __attribute__((aligned(64)));
	_Atomic bool must_stop __attribute__((aligned(64)));
	int ask_fd;		/* eventfds; blocking */
	int answer_fd;
	bool is_one_cpu;
	int cpu;
};

static void *
line_main(void *arg)
{
	struct echo *e = arg;
	uint64_t v;

	bench_pin(e->cpu);
	while (!atomic_load_explicit(&e->must_stop, memory_order_relaxed)) {
		v = atomic_load_explicit(&e->line, memory_order_acquire);
		if (v % 2 != 0)
			atomic_store_explicit(&e->line, v + 1, memory_order_release);
		else
			bench_relax();
	}
	return NULL;
}

static void *
eventfd_main(void *arg)
{
	struct echo *e = arg;
	uint64_t n;

	bench_pin(e->cpu);
	while (read(e->ask_fd, &n, sizeof(n)) == sizeof(n)) {
		if (atomic_load(&e->must_stop))
			break;
		n = 1;
		if (e->is_one_cpu && write(e->answer_fd, &n, sizeof(n)) != sizeof(n))
			break;
		atomic_fetch_add_explicit(&e->line, 1, memory_order_release);
	}
	return NULL;
}

/* One request and its answer by a cache line. */
static void
ask_line(struct echo *e)
{
	uint64_t v = atomic_load_explicit(&e->line, memory_order_relaxed) + 1;

	atomic_store_explicit(&e->line, v, memory_order_release);
	while (atomic_load_explicit(&e->line, memory_order_acquire) == v)
		bench_relax();
}

/* One request by eventfd; the answer is a line, or on one CPU an eventfd too. */
static void
ask_eventfd(struct echo *e)
{
	uint64_t v = atomic_load(&e->line), one = 1;

	if (write(e->ask_fd, &one, sizeof(one)) != sizeof(one))
		return;
	if (e->is_one_cpu && read(e->answer_fd, &one, sizeof(one)) != sizeof(one))
		return;
	while (atomic_load_explicit(&e->line, memory_order_acquire) == v)
		bench_relax();
}

static void
run_line(struct echo *e, uint64_t end, struct bench_reply *ret)
{
	uint64_t start;
	unsigned i;

	for (i = 0; i < LINE_COUNT; i++)
		ask_line(e);	/* the other one is there, and warm */
	start = bench_now_ns();
	do {
		for (i = 0; i < LINE_COUNT; i++)
			ask_line(e);
		ret->ops += LINE_COUNT;
	} while (bench_now_ns() < end);
	ret->elapsed_ns = bench_now_ns() - start;
}

static void
run_eventfd(struct echo *e, uint64_t end, struct bench_reply *ret)
{
	const struct timespec pause = { .tv_nsec = PAUSE_US * 1000L };
	uint64_t start;

	do {
		nanosleep(&pause, NULL);
		start = bench_now_ns();
		ask_eventfd(e);
		ret->elapsed_ns += bench_now_ns() - start;
		ret->ops++;
	} while (bench_now_ns() < end);
}

/* What two threads do without darter. */
static void
run_bare(const struct bench_worker *w, const struct bench_cmd *cmd, uint64_t end,
    struct bench_reply *ret)
{
	bool is_line = cmd->msg_mode == BENCH_MSG_LINE;
	struct echo e = { .is_one_cpu = cmd->on_one_cpu, .cpu = w->cpus[BENCH_CLIENT],
	    .ask_fd = eventfd(0, EFD_CLOEXEC), .answer_fd = eventfd(0, EFD_CLOEXEC) };
	uint64_t one = 1;
	pthread_t t;

	if (e.ask_fd < 0 || e.answer_fd < 0 ||
	    pthread_create(&t, NULL, is_line ? line_main : eventfd_main, &e) != 0) {
		bench_note_failure(ret, "a thread and two eventfds");
	} else {
		if (is_line)
			run_line(&e, end, ret);
		else
			run_eventfd(&e, end, ret);
		atomic_store(&e.must_stop, true);
		if (write(e.ask_fd, &one, sizeof(one)) != sizeof(one))
			bench_note_failure(ret, "eventfd");
		pthread_join(t, NULL);
	}
	if (e.ask_fd >= 0)
		close(e.ask_fd);
	if (e.answer_fd >= 0)
		close(e.answer_fd);
}

static void
run_messages(const struct bench_cmd *cmd, uint64_t end, struct bench_reply *ret)
{
	struct darter_msg_rate rate = { .count = COUNT, .batch = 1 };
	int rc;

	if (cmd->msg_mode == BENCH_MSG_BATCH)
		rate.batch = BATCH;
	if (cmd->msg_mode == BENCH_MSG_WAKE) {
		rate.count = WAKE_COUNT;
		rate.pause_us = PAUSE_US;
	}
	bench_counters_begin(ret);
	do {
		rc = darter_msg_rate(NULL, 0, &rate);
		if (rc < 0) {
			errno = -rc;
			bench_note_failure(ret, "darter_msg_rate");
			break;
		}
		ret->ops += rate.count;
		ret->elapsed_ns += rate.elapsed_ns;
	} while (bench_now_ns() < end);
	bench_counters_end(ret);
}

void
bench_msg_slice(const struct bench_worker *w, const struct bench_cmd *cmd, struct bench_reply *ret)
{
	uint64_t end = bench_now_ns() + (uint64_t)cmd->slice_ms * 1000000;

	bench_pin(w->cpus[cmd->on_one_cpu ? BENCH_CLIENT : BENCH_SERVER]);
	if (cmd->msg_mode == BENCH_MSG_LINE || cmd->msg_mode == BENCH_MSG_EVENTFD)
		run_bare(w, cmd, end, ret);
	else
		run_messages(cmd, end, ret);
}
