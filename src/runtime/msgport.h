/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Message ports: one word a netisr says it all. The word is the pointer to the newest message plus
 * a HELD bit.
 *
 *   (empty, free) --take--> (empty, HELD) --push--> (msgs, HELD) --take_all--> (empty, HELD)
 *   --give--> (empty, free)
 *
 * push keeps the bit; the pusher that found (empty, free) owes progress: it takes the role or rings
 * the doorbell. give is a CAS (empty, HELD) -> (empty, free) and fails while a message is there, so
 * there is no second flag to forget. Messages are pushed as a LIFO and taken whole by one exchange,
 * then reversed: never half-linked, no ABA. A node may be pushed again only after the holder has
 * unlinked it.
 */
#ifndef RUNTIME_MSGPORT_H
#define RUNTIME_MSGPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who handles a message: an index into the stack's table of handlers, registered by the layers. */
enum msg_kind {
	MSG_SOCKET,		/* a sockhalf's op word has bits (transport/socket) */
	MSG_STEER,		/* packets wait in the steering ring of the pushing netisr (link) */
	MSG_CALL,		/* struct msg_call: run by the holder, the caller waits (runtime) */
	MSG_LISTENER,		/* a listener went away (transport) */
	MSG_RATE,		/* does nothing but tell its sender (runtime/msgrate.c) */
	MSG_KINDS
};

struct msg_node {
	struct msg_node *next;
	enum msg_kind kind;
};

struct msgport {
	_Atomic uintptr_t word;
};

#define MSGPORT_HELD ((uintptr_t)1)

enum msgport_found {
	MSGPORT_FOUND_HELD,	/* the holder will see it */
	MSGPORT_FOUND_MORE,	/* free, but an earlier pusher owes the progress */
	MSGPORT_FOUND_IDLE,	/* was (empty, free): the caller owes progress */
};

static inline void
msgport_init(struct msgport *p)
{
	atomic_init(&p->word, 0);
}

/* Any thread. */
enum msgport_found msgport_push(struct msgport *p, struct msg_node *m);

/* Sets HELD; false when somebody holds it. */
bool msgport_take(struct msgport *p);

/* Holder: all messages, oldest first, NULL when none. */
struct msg_node *msgport_take_all(struct msgport *p);

/* Holder: lets go if no message waits; false (still held) otherwise. */
bool msgport_give(struct msgport *p);

/*
 * Holder: lets go whatever waits. The caller then owes progress as a pusher that found IDLE does:
 * it rings the keeper.
 */
void msgport_give_with_debt(struct msgport *p);

static inline bool
msgport_is_held(struct msgport *p)
{
	return (atomic_load_explicit(&p->word, memory_order_acquire) & MSGPORT_HELD) != 0;
}

static inline bool
msgport_has_messages(struct msgport *p)
{
	return (atomic_load_explicit(&p->word, memory_order_relaxed) & ~MSGPORT_HELD) != 0;
}

#endif
