/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting to a socket's owner. Only the poster that finds the op word 0 pushes the node, so a
 * socket is in a message port at most once and a message costs no memory. The holder of the owner
 * needs no message: it handles the word at once, which keeps the fixed order of operations since
 * whatever is queued stays in the same word.
 */
#include "runtime/sockhalf.h"

#include "runtime/netisr.h"
#include "runtime/stack.h"

void
sockhalf_post(struct sockhalf *sh, uint32_t ops)
{
	struct netisr *owner = atomic_load_explicit(&sh->owner, memory_order_acquire);

	if (atomic_fetch_or_explicit(&sh->ops, ops, memory_order_acq_rel) != 0)
		return;
	if (netisr_current() == owner)
		sh->stack->on_message[MSG_SOCKET](owner, &sh->node);
	else
		netisr_send(owner, &sh->node);
}

void
sockhalf_set_error(struct sockhalf *sh, int err)
{
	int32_t none = 0;

	atomic_compare_exchange_strong_explicit(&sh->so_error, &none, (int32_t)err,
	    memory_order_acq_rel,
	    memory_order_relaxed);
}
