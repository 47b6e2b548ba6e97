/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Grace periods. Retiring notes every netisr's count of ended rounds. What was retired is free when
 * each netisr has either ended a round since, or was seen without a holder since: whoever takes it
 * later does so after the unlinking store, by the read-modify-write order of the role word.
 */
#include "runtime/publish.h"

#include <sched.h>
#include <stdlib.h>

#include "runtime/netisr.h"
#include "runtime/stack.h"

#define ROUND_PASSED UINT64_MAX

void
control_lock(struct darter_stack *s)
{
	pthread_mutex_lock(&s->control);
}

void
control_unlock(struct darter_stack *s)
{
	pthread_mutex_unlock(&s->control);
}

static bool
has_passed(struct darter_stack *s, struct retired *r)
{
	bool all = true;
	unsigned i;

	for (i = 0; i < s->n_netisrs; i++) {
		struct netisr *n = s->netisr[i];

		if (r->rounds[i] == ROUND_PASSED)
			continue;
		if (atomic_load_explicit(&n->rounds, memory_order_acquire) != r->rounds[i] ||
		    (atomic_fetch_or_explicit(&n->port.word, 0,
		    memory_order_acq_rel) & MSGPORT_HELD) == 0)
			r->rounds[i] = ROUND_PASSED;
		else
			all = false;
	}
	return all;
}

/* Mutex held. */
static void
reap_locked(struct darter_stack *s)
{
	struct retired **pp = &s->retired;

	while (*pp != NULL) {
		struct retired *r = *pp;

		if (!has_passed(s, r)) {
			pp = &r->next;
			continue;
		}
		*pp = r->next;
		free(r->rounds);
		r->free(s, r);
	}
}

void
publish_retire(struct darter_stack *s, struct retired *r,
    void (*release)(struct darter_stack *s, struct retired *r))
{
	unsigned i;

	r->free = release;
	r->rounds = calloc(s->n_netisrs, sizeof(*r->rounds));
	if (r->rounds == NULL)
		abort();	/* a few bytes; nothing can be given back safely without them */
	/*
	 * An RMW, as a round's end is: the count must not be read before the unlinking store is
	 * seen. Either this comes first, and the next round no longer finds r; or the round's end
	 * does, and r lives through the round that begins there.
	 */
	for (i = 0; i < s->n_netisrs; i++)
		r->rounds[i] = atomic_fetch_add_explicit(&s->netisr[i]->rounds, 0,
		memory_order_acq_rel);
	r->next = s->retired;
	s->retired = r;
	reap_locked(s);
}

void
publish_reap(struct darter_stack *s)
{
	if (pthread_mutex_trylock(&s->control) != 0)
		return;
	reap_locked(s);
	pthread_mutex_unlock(&s->control);
}

void
publish_drain(struct darter_stack *s)
{
	struct netisr *own = netisr_current();

	for (;;) {
		struct retired *r;

		/* the caller promises that it keeps nothing from its own round */
		for (r = s->retired; r != NULL && own != NULL && own->stack == s; r = r->next)
			r->rounds[own->id] = ROUND_PASSED;
		reap_locked(s);
		if (s->retired == NULL)
			return;
		/* a holder may be waiting for the mutex inside its round */
		control_unlock(s);
		sched_yield();
		control_lock(s);
	}
}
