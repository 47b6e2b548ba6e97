/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The user word; see pin.h. Every transition is one read-modify-write of the word, so the order of
 * two of them is never in doubt: CLOSING is either seen by a call that comes in, or the closer's
 * addition sees that call in the count.
 */
#include "socket/pin.h"

#include <assert.h>
#include <errno.h>

int
pin_enter(_Atomic uint32_t *user, uint32_t bits)
{
	uint32_t old = atomic_load_explicit(user, memory_order_acquire);

	for (;;) {
		if (unlikely(old & USER_CLOSING))
			return -EBADF;
		if (unlikely(old & bits))
			return -EBUSY;
		if (likely(atomic_compare_exchange_weak_explicit(user, &old, (old + 1) | bits,
		    memory_order_acq_rel, memory_order_acquire)))
			return 0;
	}
}

int
pin_take(_Atomic uint32_t *user, uint32_t bits, bool announce)
{
	uint32_t old = atomic_load_explicit(user, memory_order_acquire);

	for (;;) {
		bool is_taken = (old & bits) != 0;
		uint32_t want = is_taken ? old | USER_WAITERS : old | bits;

		assert(old & USER_COUNT_MASK);
		if (is_taken && !announce)
			return -EBUSY;
		if (atomic_compare_exchange_weak_explicit(user, &old, want, memory_order_acq_rel,
		    memory_order_acquire))
			return is_taken ? -EBUSY : 0;
	}
}

/* One waker for all who have announced themselves: they all look again. */
static enum pin_left
wake_or_nothing(_Atomic uint32_t *user, uint32_t old, uint32_t bits)
{
	if (likely(!(old & USER_WAITERS)) || bits == 0)
		return PIN_LEFT_NOTHING;
	atomic_fetch_and_explicit(user, ~USER_WAITERS, memory_order_acq_rel);
	return PIN_LEFT_WAKE;
}

enum pin_left
pin_give(_Atomic uint32_t *user, uint32_t bits)
{
	uint32_t old = atomic_fetch_sub_explicit(user, bits, memory_order_acq_rel);

	assert((old & bits) == bits);
	return wake_or_nothing(user, old, bits);
}

enum pin_left
pin_leave(_Atomic uint32_t *user, uint32_t bits)
{
	uint32_t old = atomic_fetch_sub_explicit(user, bits + 1, memory_order_acq_rel);

	assert((old & bits) == bits && (old & USER_COUNT_MASK) != 0);
	if (unlikely((old & USER_CLOSING) && (old & USER_COUNT_MASK) == 1))
		return PIN_LEFT_LAST;
	return wake_or_nothing(user, old, bits);
}

void
pin_close(_Atomic uint32_t *user)
{
	uint32_t old = atomic_fetch_add_explicit(user, USER_CLOSING + 1, memory_order_acq_rel);

	assert(!(old & USER_CLOSING));
	(void)old;
}

bool
pin_grab_idle(_Atomic uint32_t *user, uint32_t bits)
{
	uint32_t nobody = 0;

	return atomic_compare_exchange_strong_explicit(user, &nobody, bits, memory_order_acq_rel,
	    memory_order_relaxed);
}

bool
pin_drop_idle(_Atomic uint32_t *user, uint32_t bits)
{
	uint32_t old = atomic_fetch_and_explicit(user, ~(bits | USER_WAITERS),
	    memory_order_acq_rel);

	assert((old & bits) == bits);
	return (old & USER_WAITERS) != 0;
}
