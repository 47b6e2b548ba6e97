/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hands a socket's message to its transport. The op word is emptied first: what is posted from here
 * on makes a new message.
 *
 * A connect may have been sent on to another netisr between the look at the owner and the push of
 * the node: then the node goes after it, and the word, which is not 0, keeps others from pushing.
 */
#include "transport/ulp.h"

#include "runtime/sockhalf.h"
#include "runtime/stack.h"

static void
handle_ops(struct netisr *n, struct sockhalf *sh)
{
	uint32_t ops = atomic_exchange_explicit(&sh->ops, 0, memory_order_acq_rel);

	if (ops != 0)
		sh->ulp->ops(n, sh, ops);
}

static void
on_socket_message(struct netisr *n, struct msg_node *m)
{
	struct sockhalf *sh = container_of(m, struct sockhalf, node);
	struct netisr *owner = atomic_load_explicit(&sh->owner, memory_order_acquire);

	if (likely(owner == n))
		handle_ops(n, sh);
	else
		netisr_send(owner, m);
}

const struct layer ulp_layer = {
	.name = "ulp",
	.message = { [MSG_SOCKET] = on_socket_message },
};
