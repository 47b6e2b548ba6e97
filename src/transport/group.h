/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SO_REUSEPORT groups: sockets bound to the same protocol, address and port. A member has a number,
 * the lowest that was free when it bound, and keeps it: a member that is closed and bound again
 * gets its old number.
 *
 * Which member a tuple belongs to is a contest: each member's number and the tuple's hash make a
 * weight, the largest wins. So a member that goes away takes only its own tuples with it, spread
 * evenly over those who stay, and gets them back with its number; nothing else moves.
 *
 * SO_INCOMING_CPU: members that name the CPU of the netisr that asks win over those that do not
 * (Linux' rule); among them the weights decide.
 */
#ifndef TRANSPORT_GROUP_H
#define TRANSPORT_GROUP_H

#include <stdbool.h>
#include <stdint.h>

struct bind_entry;

/*
 * The lowest number that no other member of e's group has. `all`: the chain of entries that has
 * those of e's port (port_next). The 65,536th member and what comes after share the last number
 * and its luck. Control mutex held.
 */
uint16_t group_free_member(const struct bind_entry *all, const struct bind_entry *e);

struct group_pick {
	struct bind_entry *found;	/* NULL: nobody was offered */
	uint64_t weight;
	uint64_t hash;
	int cpu;			/* of the netisr that this thread holds, -1: unknown */
	bool is_near;
};

struct group_pick group_pick_start(uint64_t hash);
/* Holder, unless it is a test that has no stack. */
void group_pick_offer(struct group_pick *p, struct bind_entry *e);

#endif
