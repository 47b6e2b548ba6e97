/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hierarchical timing wheel, one a netisr (Varghese & Lauck 1987, scheme 7). Four levels of 256
 * slots; the lowest slot is 64 us wide, so the levels span 16 ms, 4.2 s, 18 min and 76 h. Arm and
 * disarm are O(1). A timer never fires early; it fires at most one slot of the lowest level late.
 * Re-arming to a later moment only writes the new deadline: the timer is put where it belongs when
 * its old slot comes up (lazy re-arm, as a TCP timer moves with every ACK).
 *
 * Holder of the netisr only. A timer's callback may arm, disarm or free any timer, its own
 * included.
 */
#ifndef RUNTIME_WHEEL_H
#define RUNTIME_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

#define WHEEL_LEVELS	4
#define WHEEL_SLOTS	256
#define WHEEL_TICK_SHIFT 6	/* 64 us */

struct netisr;

struct timer {
	struct timer *next;
	struct timer **pprev;		/* NULL while not in the wheel */
	void (*fire)(struct netisr *n, struct timer *t);
	struct time deadline;		/* TIME_NEVER while disarmed */
	uint64_t slot_tick;		/* tick of the slot that it hangs in */
};

struct wheel {
	uint64_t tick;			/* everything before this tick has fired */
	uint32_t armed;			/* timers in the wheel */
	uint64_t occupied[WHEEL_LEVELS][WHEEL_SLOTS / 64];
	struct timer *slot[WHEEL_LEVELS][WHEEL_SLOTS];
};

void wheel_init(struct wheel *w, struct time now);

static inline void
timer_init(struct timer *t, void (*fire)(struct netisr *n, struct timer *t))
{
	t->next = NULL;
	t->pprev = NULL;
	t->fire = fire;
	t->deadline = TIME_NEVER;
	t->slot_tick = 0;
}

static inline bool
timer_is_armed(const struct timer *t)
{
	return !time_is_never(t->deadline);
}

/* Arms or moves t. A deadline in the past fires in the next wheel_advance. */
void timer_arm(struct wheel *w, struct timer *t, struct time deadline);

/*
 * Stops t; harmless when it is not armed. Must be called before the memory of an armed timer goes
 * away.
 */
void timer_disarm(struct wheel *w, struct timer *t);

/* Fires what is due, at most `budget` callbacks; returns how many fired. */
unsigned wheel_advance(struct wheel *w, struct netisr *n, struct time now, unsigned budget);

/*
 * A moment not later than the first deadline (the start of its slot); TIME_NEVER when nothing is
 * armed.
 */
struct time wheel_next(const struct wheel *w);

#endif
