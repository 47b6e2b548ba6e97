/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hands a socket's message to its transport. The op word is emptied first: what is posted from here
 * on makes a new message.
 */
#include "transport/ulp.h"

#include "runtime/sockhalf.h"
#include "runtime/stack.h"

static void
on_socket_message(struct netisr *n, struct msg_node *m)
{
	struct sockhalf *sh = container_of(m, struct sockhalf, node);
	uint32_t ops = atomic_exchange_explicit(&sh->ops, 0, memory_order_acq_rel);

	if (ops != 0)
		sh->ulp->ops(n, sh, ops);
}

const struct layer ulp_layer = {
	.name = "ulp",
	.message = { [MSG_SOCKET] = on_socket_message },
};
