/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hierarchical timing wheel; see wheel.h. `tick` is the next tick of the lowest level to be looked
 * at. A timer hangs in the level whose span covers its distance; when the lowest level enters a new
 * block of 256 ticks the matching slot of the level above is dealt out again (cascade). A bitmap a
 * level says which slots hold timers, so that idle time is skipped by blocks and the next deadline
 * is found without a walk.
 */
#include "runtime/wheel.h"

#include <string.h>

#include "base/compiler.h"

#define SLOT_BITS	8
#define SLOT_MASK	(WHEEL_SLOTS - 1u)
#define SPAN_TICKS(level) (UINT64_C(1) << (SLOT_BITS * ((level) + 1)))

/* The first tick at or after t: a timer never fires early. */
static uint64_t
tick_of(struct time t)
{
	return (t.us >> WHEEL_TICK_SHIFT) + ((t.us & ((1u << WHEEL_TICK_SHIFT) - 1)) != 0);
}

void
wheel_init(struct wheel *w, struct time now)
{
	memset(w, 0, sizeof(*w));
	w->tick = now.us >> WHEEL_TICK_SHIFT;
}

static void
link_slot(struct wheel *w, struct timer *t, unsigned level, unsigned slot)
{
	struct timer **head = &w->slot[level][slot];

	t->next = *head;
	t->pprev = head;
	if (t->next != NULL)
		t->next->pprev = &t->next;
	*head = t;
	w->occupied[level][slot / 64] |= UINT64_C(1) << (slot % 64);
	w->armed++;
}

static void
insert(struct wheel *w, struct timer *t)
{
	uint64_t tick = max_u64(tick_of(t->deadline), w->tick);
	unsigned level = 0;

	while (level < WHEEL_LEVELS - 1 && tick - w->tick >= SPAN_TICKS(level))
		level++;
	/* beyond the top level's span: as far out as it goes, and dealt out again from there */
	if (tick - w->tick >= SPAN_TICKS(level))
		tick = w->tick + SPAN_TICKS(level) - 1;
	t->slot_tick = tick;
	link_slot(w, t, level, (unsigned)(tick >> (SLOT_BITS * level)) & SLOT_MASK);
}

static void
unlink_timer(struct wheel *w, struct timer *t)
{
	struct timer **base = &w->slot[0][0];

	*t->pprev = t->next;
	if (t->next != NULL)
		t->next->pprev = t->pprev;
	if (*t->pprev == NULL && t->pprev >= base && t->pprev < base + WHEEL_LEVELS * WHEEL_SLOTS) {
		size_t i = (size_t)(t->pprev - base);

		w->occupied[i / WHEEL_SLOTS][i % WHEEL_SLOTS / 64] &= ~(UINT64_C(1) << (i % 64));
	}
	t->next = NULL;
	t->pprev = NULL;
	w->armed--;
}

void
timer_arm(struct wheel *w, struct timer *t, struct time deadline)
{
	if (time_is_never(deadline)) {
		timer_disarm(w, t);
		return;
	}
	t->deadline = deadline;
	if (t->pprev != NULL) {
		if (t->slot_tick <= tick_of(deadline))
			return;	/* lazy: moved when its slot comes up */
		unlink_timer(w, t);
	}
	insert(w, t);
}

void
timer_disarm(struct wheel *w, struct timer *t)
{
	t->deadline = TIME_NEVER;
	if (t->pprev != NULL)
		unlink_timer(w, t);
}

/*
 * Takes the timers of a slot off the wheel onto *list, where timer_disarm still finds its way by
 * pprev.
 */
static void
detach_slot(struct wheel *w, unsigned level, unsigned slot, struct timer **list)
{
	*list = w->slot[level][slot];
	w->slot[level][slot] = NULL;
	w->occupied[level][slot / 64] &= ~(UINT64_C(1) << (slot % 64));
	if (*list != NULL)
		(*list)->pprev = list;
}

static void
cascade(struct wheel *w, unsigned level)
{
	unsigned slot = (unsigned)(w->tick >> (SLOT_BITS * level)) & SLOT_MASK;
	struct timer *list;

	if (slot == 0 && level + 1 < WHEEL_LEVELS)
		cascade(w, level + 1);
	detach_slot(w, level, slot, &list);
	while (list != NULL) {
		struct timer *t = list;

		unlink_timer(w, t);
		insert(w, t);
	}
}

/*
 * Fires the slot of one tick; what was lazily moved goes back into the wheel. Returns callbacks
 * made.
 */
static unsigned
fire_tick(struct wheel *w, struct netisr *n, struct time now, unsigned budget)
{
	uint64_t tick = w->tick;
	unsigned fired = 0;
	struct timer *list;

	detach_slot(w, 0, (unsigned)w->tick & SLOT_MASK, &list);
	w->tick++;
	while (list != NULL) {
		struct timer *t = list;

		if (fired == budget && w->tick == tick + 1)
			w->tick = tick;	/* the rest stays due */
		unlink_timer(w, t);
		if (!time_reached(now, t->deadline) || fired == budget) {
			insert(w, t);
			continue;
		}
		t->deadline = TIME_NEVER;
		t->fire(n, t);
		fired++;
	}
	return fired;
}

/* True when no slot of the lowest level from `slot` to the end of its block holds a timer. */
static bool
rest_of_block_is_empty(const struct wheel *w, unsigned slot)
{
	unsigned word = slot / 64;

	if (w->occupied[0][word] >> (slot % 64))
		return false;
	for (word++; word < WHEEL_SLOTS / 64; word++) {
		if (w->occupied[0][word])
			return false;
	}
	return true;
}

unsigned
wheel_advance(struct wheel *w, struct netisr *n, struct time now, unsigned budget)
{
	uint64_t target = now.us >> WHEEL_TICK_SHIFT;
	unsigned fired = 0;

	while (w->tick <= target && fired < budget) {
		unsigned slot = (unsigned)w->tick & SLOT_MASK;

		if (w->armed == 0) {
			w->tick = target + 1;
			break;
		}
		if (slot == 0)
			cascade(w, 1);
		if (rest_of_block_is_empty(w, slot)) {
			w->tick = min_u64((w->tick | SLOT_MASK) + 1, target + 1);
			continue;
		}
		fired += fire_tick(w, n, now, budget - fired);
	}
	return fired;
}

/*
 * Distance from slot `from` to the first occupied one, going round; WHEEL_SLOTS when there is none.
 */
static unsigned
first_occupied(const uint64_t bits[WHEEL_SLOTS / 64], unsigned from)
{
	unsigned i;

	for (i = 0; i <= WHEEL_SLOTS / 64; i++) {
		unsigned word = (from / 64 + i) % (WHEEL_SLOTS / 64);
		uint64_t v = bits[word];

		if (i == 0)
			v &= ~UINT64_C(0) << (from % 64);
		if (i == WHEEL_SLOTS / 64)
			v &= ~(~UINT64_C(0) << (from % 64));
		if (v != 0) {
			unsigned slot = word * 64 + (unsigned)__builtin_ctzll(v);

			return (slot - from) & SLOT_MASK;
		}
	}
	return WHEEL_SLOTS;
}

struct time
wheel_next(const struct wheel *w)
{
	uint64_t best = UINT64_MAX;
	unsigned level;

	if (w->armed == 0)
		return TIME_NEVER;
	for (level = 0; level < WHEEL_LEVELS; level++) {
		unsigned shift = SLOT_BITS * level;
		/*
		 * the slot of this level that is dealt out next: the current one only if it is not
		 * yet begun
		 */
		uint64_t unit = (w->tick + (UINT64_C(1) << shift) - 1) >> shift;
		unsigned d = first_occupied(w->occupied[level], (unsigned)unit & SLOT_MASK);

		if (d < WHEEL_SLOTS)
			best = min_u64(best, (unit + d) << shift);
	}
	return (struct time){ best << WHEEL_TICK_SHIFT };
}
