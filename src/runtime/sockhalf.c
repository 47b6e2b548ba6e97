/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting to a socket's owner. Only the poster that finds the op word 0 pushes the node, so a
 * socket is in a message port at most once and a message costs no memory. The holder of the owner
 * needs no message: it handles the word at once, which keeps the fixed order of operations since
 * whatever is queued stays in the same word.
 *
 * Waiting for the owner (the knobs of struct op_knobs): who found the word 0 sends a call instead
 * of the node, so it is still one message; who did not, sends a call that does nothing behind the
 * node, since messages keep their order.
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

static void
handle_now(struct netisr *n, void *arg)
{
	struct sockhalf *sh = arg;

	NETISR_COUNT(n, CTR_msgs_socket);
	sh->stack->on_message[MSG_SOCKET](n, &sh->node);
}

static void
do_nothing(struct netisr *n UNUSED, void *arg UNUSED)
{
}

void
sockhalf_post_wait(struct sockhalf *sh, uint32_t ops)
{
	struct netisr *owner = atomic_load_explicit(&sh->owner, memory_order_acquire);

	if (netisr_current() == owner || !netisr_may_wait(sh->stack) ||
	    atomic_load_explicit(&owner->is_attached, memory_order_acquire))
		sockhalf_post(sh, ops);
	else if (atomic_fetch_or_explicit(&sh->ops, ops, memory_order_acq_rel) == 0)
		netisr_call(owner, handle_now, sh);
	else
		netisr_call(owner, do_nothing, NULL);
}

static bool
is_async(const struct op_knobs *k, uint32_t op)
{
	switch (op) {
	case SOCK_OP_CONNECT:
		return knob_get(&k->connect_async) != 0;
	case SOCK_OP_SEND:
		return knob_get(&k->send_async) != 0;
	case SOCK_OP_CLOSE:
		return knob_get(&k->close_fast) != 0;
	default:
		return true;
	}
}

void
sockhalf_post_app(struct sockhalf *sh, uint32_t op)
{
	if (likely(is_async(&sh->stack->op_knobs, op)))
		sockhalf_post(sh, op);
	else
		sockhalf_post_wait(sh, op);
}

void
sockhalf_set_error(struct sockhalf *sh, int err)
{
	int32_t none = 0;

	atomic_compare_exchange_strong_explicit(&sh->so_error, &none, (int32_t)err,
	    memory_order_acq_rel,
	    memory_order_relaxed);
}
