/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Message ports: see msgport.h for the state machine. Every transition is one read-modify-write of
 * the word, so the modification order of the word alone decides who owes progress.
 */
#include "runtime/msgport.h"

enum msgport_found
msgport_push(struct msgport *p, struct msg_node *m)
{
	uintptr_t old = atomic_load_explicit(&p->word, memory_order_relaxed);

	do {
		m->next = (struct msg_node *)(old & ~MSGPORT_HELD);
	} while (!atomic_compare_exchange_weak_explicit(&p->word, &old, (uintptr_t)m |
	    (old & MSGPORT_HELD),
	    memory_order_acq_rel, memory_order_relaxed));
	if (old & MSGPORT_HELD)
		return MSGPORT_FOUND_HELD;
	return old == 0 ? MSGPORT_FOUND_IDLE : MSGPORT_FOUND_MORE;
}

bool
msgport_take(struct msgport *p)
{
	if (atomic_load_explicit(&p->word, memory_order_relaxed) & MSGPORT_HELD)
		return false;
	return (atomic_fetch_or_explicit(&p->word, MSGPORT_HELD,
	    memory_order_acq_rel) & MSGPORT_HELD) == 0;
}

struct msg_node *
msgport_take_all(struct msgport *p)
{
	struct msg_node *newest, *oldest = NULL;

	if (!msgport_has_messages(p))
		return NULL;
	newest = (struct msg_node *)(atomic_exchange_explicit(&p->word, MSGPORT_HELD,
	    memory_order_acq_rel) &
	    ~MSGPORT_HELD);
	while (newest != NULL) {
		struct msg_node *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	return oldest;
}

bool
msgport_give(struct msgport *p)
{
	uintptr_t expected = MSGPORT_HELD;

	return atomic_compare_exchange_strong_explicit(&p->word, &expected, 0, memory_order_acq_rel,
	    memory_order_relaxed);
}

void
msgport_give_with_debt(struct msgport *p)
{
	atomic_fetch_and_explicit(&p->word, ~MSGPORT_HELD, memory_order_acq_rel);
}
