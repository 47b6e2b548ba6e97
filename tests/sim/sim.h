/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two whole stacks, A (10.9.0.1) and B (10.9.0.2), on a memory cable with a fault injector at each
 * end, driven by one virtual clock and one seed: the same seed gives the same packets. Nothing
 * sleeps; an hour of TCP's time takes seconds.
 */
#ifndef TEST_SIM_SIM_H
#define TEST_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/rng.h"
#include "runtime/clock.h"
#include "runtime/stack.h"

#define SIM_A_IP	UINT32_C(0x0a090001)
#define SIM_B_IP	UINT32_C(0x0a090002)
#define SIM_SYSCTLS	8

struct sim_opts {
	uint64_t seed;
	const char *fault; /* of both ends (link/dev_fault.h), without seed; "" or NULL: none */
	unsigned mtu;		/* 0: 1500 */
	unsigned netisrs;	/* 0: 1, of each stack */
	unsigned queues;	/* of each end of the cable; 0: one a netisr */
	const char *cable;	/* further options of both ends (dev_pair.c), or NULL */
	uint32_t packets;	/* 0: 2048 */
	uint64_t ring_memory_bytes[2];	/* 0: 64 MiB */
	uint64_t rcv_budget_bytes;	/* 0: the default */
	const char *sysctls[SIM_SYSCTLS];
	const char *overrides[SIM_SYSCTLS];	/* other keys: "stack.rss_entries=64" */
};

/* Looks at each frame that either stack gives to the cable; data at the link header. */
typedef void sim_frame_fn(void *arg, const struct pkt *frame);

struct sim {
	struct clock clock;
	struct time started;
	struct darter_stack *s[2];
	struct rng rng;		/* of the scenario */
	uint64_t hash;		/* over every frame given to the cable, with its moment */
	uint64_t frames;
	bool is_cut;		/* every frame is lost */
	sim_frame_fn *on_frame;	/* NULL: none */
	void *on_frame_arg;
	uint32_t packets_idle[2];
	uint64_t chunks_idle[2];
};

void sim_init(struct sim *m, const struct sim_opts *o);
void sim_fini(struct sim *m);

/* Runs both stacks until neither finds work. */
void sim_run(struct sim *m);

/* To the next deadline of either stack or to `until`, whichever is first, and runs. */
void sim_step(struct sim *m, struct time until);
void sim_advance(struct sim *m, uint64_t us);

static inline struct time
sim_now(struct sim *m)
{
	return clock_now(&m->clock);
}

static inline double
sim_elapsed_s(struct sim *m)
{
	return (double)time_since_us(sim_now(m), m->started) / 1e6;
}

/* Cuts the cable for good. */
void sim_cut(struct sim *m);

/* Connections of all kinds on both stacks. */
uint32_t sim_tcp_count(struct sim *m);
uint64_t sim_counter(struct sim *m, unsigned side, enum counter c);

/*
 * After everything was closed and TIME_WAIT has passed: no connection, packet, chunk is left. Fails
 * the test.
 */
void sim_expect_empty(struct sim *m);

/*
 * Calls on stack `side` are made between these, by a thread that holds its netisr 0, or the one
 * named.
 */
void sim_enter(struct sim *m, unsigned side);
void sim_leave(struct sim *m, unsigned side);
void sim_enter_at(struct sim *m, unsigned side, unsigned netisr);
void sim_leave_at(struct sim *m, unsigned side, unsigned netisr);

#endif
