/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages for the sake of measuring. The way is that of every message: push, the doorbell if the
 * netisr sleeps, the holder's round, and a wait word back; only borrowing is left out, because then
 * nothing would be sent.
 *
 * The messages of a batch are handled in the order in which they were pushed, so the last one
 * answers for all. They live on the sender's stack: it returns when the holder has counted every
 * answer as given, after its last access to them.
 */
#include "runtime/msgrate.h"

#include <sched.h>
#include <time.h>

#include "base/compiler.h"
#include "runtime/netisr.h"
#include "runtime/waitword.h"

#define SPINS_APART	20000	/* while the netisr runs on another CPU; some 50 us or more */

/* The sender's and the holder's common line. */
struct answer {
	struct waitword done;
	_Atomic uint32_t given;		/* answers that the holder is through with */
};

struct rate_msg {
	struct msg_node node;
	struct answer *answer;		/* NULL: not the batch's last */
};

void
msgrate_on_message(struct netisr *n, struct msg_node *m)
{
	struct answer *a = container_of(m, struct rate_msg, node)->answer;

	(void)n;
	if (a == NULL)
		return;
	waitword_post(&a->done);
	atomic_fetch_add_explicit(&a->given, 1, memory_order_release);
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void
await_answer(struct netisr *n, struct answer *a, uint32_t seen)
{
	unsigned i, spins = netisr_cpu(n) != sched_getcpu() ? SPINS_APART : 0;

	for (i = 0; i < spins && waitword_seq(&a->done) == seen; i++)
		cpu_relax();
	while (waitword_seq(&a->done) == seen)
		waitword_sleep(&a->done, seen, UINT64_MAX);
}

static void
send_batch(struct netisr *n, struct answer *a, struct rate_msg *msgs, unsigned count)
{
	uint32_t seen = waitword_seq(&a->done);
	unsigned i;

	for (i = 0; i < count; i++) {
		msgs[i] = (struct rate_msg){ .node.kind = MSG_RATE,
			.answer = i + 1 == count ? a : NULL };
		if (msgport_push(&n->port, &msgs[i].node) == MSGPORT_FOUND_IDLE)
			netisr_doorbell(n);
	}
	await_answer(n, a, seen);
}

void
msgrate_run(struct netisr *n, unsigned count, unsigned batch, unsigned pause_us, uint64_t *ret_ns)
{
	const struct timespec pause = { .tv_sec = pause_us / 1000000,
		.tv_nsec = (long)(pause_us % 1000000) * 1000 };
	struct rate_msg msgs[MSGRATE_BATCH_MAX];
	struct answer a = { .given = 0 };
	uint32_t batches = 0;
	uint64_t start = now_ns();

	*ret_ns = 0;
	while (count != 0) {
		unsigned some = count < batch ? count : batch;

		if (pause_us != 0) {
			nanosleep(&pause, NULL);
			start = now_ns();
		}
		send_batch(n, &a, msgs, some);
		batches++;
		count -= some;
		if (pause_us != 0 || count == 0)
			*ret_ns += now_ns() - start;
	}
	while (atomic_load_explicit(&a.given, memory_order_acquire) != batches)
		cpu_relax();
}
