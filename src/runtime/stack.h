/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct darter_stack: everything hangs off it. Several stacks live in one process. The layers
 * above are known here only as pointers and as tables of functions that api/ registers when it
 * builds a stack.
 */
#ifndef RUNTIME_STACK_H
#define RUNTIME_STACK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/toeplitz.h"
#include "runtime/chunk.h"
#include "runtime/clock.h"
#include "runtime/config.h"
#include "runtime/knob.h"
#include "runtime/netisr.h"
#include "runtime/pkt.h"
#include "runtime/publish.h"
#include "runtime/sockhalf.h"

struct link_stack;
struct inet_stack;
struct demux_stack;
struct udp_stack;
struct tcp_stack;
struct sock_stack;

/*
 * What a layer registers, lowest layer first. All functions are optional. init in order, fini in
 * reverse order; an init that fails writes one line (thing, reason, fix) to err and returns a
 * negative errno; fini is called only for layers whose init succeeded.
 */
struct layer {
	const char *name;
	int (*stack_init)(struct darter_stack *s, char *err, size_t err_size);
	void (*stack_fini)(struct darter_stack *s);
	int (*netisr_init)(struct netisr *n, char *err, size_t err_size);
	void (*netisr_fini)(struct netisr *n);
	/* receive a bounded burst; amount of work */
	unsigned (*poll)(struct netisr *n);
	/* end of round: act once per touched flow */
	void (*rollup)(struct netisr *n);
	/* after all rollups: hand frames to devices */
	void (*flush)(struct netisr *n);
	struct time (*next_deadline)(struct netisr *n);	/* beside the wheel (poll-only devices) */
	void (*message[MSG_KINDS])(struct netisr *n, struct msg_node *m);
};

#define STACK_RETA_MAX	512

struct darter_stack {
	struct config config;
	struct clock clock_own;
	/* &clock_own, or one shared with other stacks (simulator) */
	struct clock *clock;
	struct log_sink log;
	struct siphash_key secret[4];	/* ISN, ports, tables, cookies: OS entropy or seed */
	/* cryptographic unless seeded */
	void (*random)(struct darter_stack *s, void *buf, size_t len);
	uint64_t seed_state;

	/* law 1: the owner of a tuple */
	struct toeplitz rss;
	uint16_t reta_size;		/* power of two */
	uint8_t reta[STACK_RETA_MAX];

	unsigned n_netisrs;
	struct netisr *netisr[NETISR_MAX];
	unsigned n_keeper_cpus;		/* 0: keepers run where the scheduler likes */
	uint16_t keeper_cpu[NETISR_MAX];

	const struct layer *const *layers;	/* NULL-terminated */
	/* from the layers */
	void (*on_message[MSG_KINDS])(struct netisr *n, struct msg_node *m);
	const struct pkt_pool_ops *pkt_ops;
	void *pkt_priv;
	struct chunk_depot depot;
	struct chunk_cache shared_chunks;	/* application threads': straight to the depot */
	const struct sockhalf_ops *sockhalf_ops;	/* registered by socket */

	pthread_mutex_t control;
	struct retired *retired;
	struct knob_list knobs;
	_Atomic int64_t borrow;		/* net.isr.borrow */
	/* net.isr.spin_us: bound of the adaptive spin before a sleep */
	_Atomic int64_t spin_us;
	/* net.isr.poll_idle_us: keepers poll this long before they sleep; -1 for ever */
	_Atomic int64_t poll_idle_us;
	struct op_knobs op_knobs;	/* kern.ipc.*: socket's */
	_Atomic bool closing;
	/* no threads: the owner takes netisrs and runs rounds itself */
	bool is_manual;
	/* of the process that made it: a forked child has no stack */
	pid_t pid;

	struct link_stack *link;
	struct inet_stack *inet;
	struct demux_stack *demux;
	struct udp_stack *udp;
	struct tcp_stack *tcp;
	struct sock_stack *sock;
	void *eal;			/* eal_dpdk.c's */
};

/*
 * Makes a stack from a checked configuration. `clock` NULL: its own TSC clock. On failure NULL,
 * with *ret_err negative and err one line. The layers table must outlive the stack. Threads are not
 * started: netisr_start_keepers does.
 */
struct darter_stack *stack_new(const struct config *cfg, const struct layer *const *layers,
    struct clock *clock,
    const struct log_sink *log, int *ret_err, char *err, size_t err_size);

/* Stops threads, then undoes everything. No other thread may be inside the stack. */
void stack_free(struct darter_stack *s);

/* The owner of a tuple (law 1). */
static inline struct netisr *
stack_owner(const struct darter_stack *s, const struct tuple *t)
{
	if (s->n_netisrs == 1)
		return s->netisr[0];
	return s->netisr[s->reta[toeplitz_tuple(&s->rss, t) & (s->reta_size - 1u)]];
}

/* Sum of one counter over all netisrs. Any thread. */
uint64_t stack_counter(const struct darter_stack *s, enum counter c);

static inline struct time
stack_now(struct darter_stack *s)
{
	return clock_now(s->clock);
}

#endif
