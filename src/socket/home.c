/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a connection begins: the netisr near to a thread, and the knob kern.ipc.rand_initport that
 * says whether that one, any, or netisr 0 is used. A socket has no netisr before its first packet
 * or listen (DESIGN.md, law 2); near means the busier of it and a drawn one is not taken.
 */
#define _GNU_SOURCE 1
#include <sched.h>

#include "runtime/knob.h"
#include "socket/sock.h"
#include "transport/ulp.h"

#define BUSIER_BY	16u	/* more connections than another: a netisr is the busier one */

static uint32_t
random_below(uint32_t n)
{
	static __thread uint64_t x;

	if (x == 0)
		x = (uint64_t)(uintptr_t)&x * UINT64_C(0x9e3779b97f4a7c15) | 1;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)((x >> 32) * n >> 32);
}

static uint64_t
load_of(const struct netisr *n)
{
	return atomic_load_explicit(&n->counters[CTR_tcp_pcbs], memory_order_relaxed);
}

struct netisr *
sock_near(const struct darter_stack *s)
{
	struct netisr *held = netisr_current();
	unsigned i, cpu;
	int here;

	if (held != NULL && held->stack == s)
		return held;
	here = sched_getcpu();
	cpu = here < 0 ? 0 : (unsigned)here;
	for (i = 0; i < min_u32(s->n_keeper_cpus, s->n_netisrs); i++) {
		if (s->keeper_cpu[i] == cpu)
			return s->netisr[i];
	}
	return s->netisr[cpu % s->n_netisrs];
}

struct netisr *
sock_home(struct darter_stack *s)
{
	struct netisr *held = netisr_current(), *near, *other;

	if (held != NULL && held->stack == s)
		return held;
	if (s->n_netisrs == 1)
		return s->netisr[0];
	switch (knob_get(&s->op_knobs.initport)) {
	case INITPORT_ZERO:
		return s->netisr[0];
	case INITPORT_RANDOM:
		return s->netisr[random_below(s->n_netisrs)];
	default:
		near = sock_near(s);
		other = s->netisr[random_below(s->n_netisrs)];
		return load_of(near) > load_of(other) + BUSIER_BY ? other : near;
	}
}

/* ---- birth ---- */

struct attach_job {
	struct sockhalf *sh;
	int err;
};

static void
attach_here(struct netisr *n, void *arg)
{
	struct attach_job *j = arg;

	NETISR_COUNT(n, CTR_msgs_socket);
	j->err = j->sh->ulp->attach(j->sh);
}

/*
 * A socket's birth is no message (DESIGN.md, law 2), but with kern.ipc.rand_initport=zero: then it
 * is one with an answer to netisr 0, as it was in DragonFly before 2013.
 */
int
sock_attach(struct sockhalf *sh)
{
	struct darter_stack *s = sh->stack;
	struct attach_job j = { .sh = sh };
	struct netisr *zero = s->netisr[0];

	if (likely(knob_get(&s->op_knobs.initport) != INITPORT_ZERO) || netisr_current() != NULL ||
	    !netisr_may_wait(s) ||
	    atomic_load_explicit(&zero->is_attached, memory_order_acquire))
		return sh->ulp->attach(sh);
	netisr_call(zero, attach_here, &j);
	return j.err;
}
