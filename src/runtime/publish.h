/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is read often and written rarely (listeners, bound sockets, routes, addresses, neighbours'
 * static part) is published: a writer holds the stack's control mutex, builds the new version and
 * stores the pointer with release (a whole snapshot, or a link of a chain); what is no longer
 * reachable is retired and freed after every netisr has passed a round, since only holders read
 * without the mutex.
 *
 * Readers: the holder of a netisr, until the end of its round. Everybody else takes the control
 * mutex to read.
 */
#ifndef RUNTIME_PUBLISH_H
#define RUNTIME_PUBLISH_H

#include <stdatomic.h>
#include <stdint.h>

struct darter_stack;

/* Embedded in what is retired. */
struct retired {
	struct retired *next;
	void (*free)(struct darter_stack *s, struct retired *r);
	uint64_t *rounds;	/* each netisr's round counter when it was retired */
};

void control_lock(struct darter_stack *s);
void control_unlock(struct darter_stack *s);

/*
 * Frees r with free() once no holder can still see it. Called with the control mutex held, after
 * the unlinking store. free() runs on any thread with the control mutex held.
 */
void publish_retire(struct darter_stack *s, struct retired *r,
    void (*free)(struct darter_stack *s, struct retired *r));

/*
 * Frees what has become free; called from time to time by netisrs (it only tries the mutex) and at
 * every retire.
 */
void publish_reap(struct darter_stack *s);

/*
 * Waits until everything retired so far is freed (netisrs that nobody holds count as passed).
 * Control mutex held; it is let go and taken again meanwhile.
 */
void publish_drain(struct darter_stack *s);

/* ptr = rcu-like load of a published pointer by a holder or under the mutex. */
#define published_load(pp)	atomic_load_explicit((pp), memory_order_acquire)
#define published_store(pp, v)	atomic_store_explicit((pp), (v), memory_order_release)

#endif
