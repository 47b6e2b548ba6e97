/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stack's clock: TSC (calibrated against CLOCK_MONOTONIC, or CLOCK_MONOTONIC itself where the
 * TSC is not constant), or a fake one that moves only when told. Everything that waits or times out
 * reads this clock and no other.
 */
#ifndef RUNTIME_CLOCK_H
#define RUNTIME_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/time.h"

struct clock {
	struct time (*now)(struct clock *c);
	bool is_fake;
	_Atomic uint64_t fake_us;	/* fake: the time */
	uint64_t tsc_base;		/* tsc: counter and time at calibration */
	uint64_t us_base;
	uint64_t us_per_tick_q32;	/* microseconds a tick, 32.32 fixed point */
	_Atomic uint32_t advanced;	/* fake: futex word, bumped at each advance */
};

void clock_init_tsc(struct clock *c);
void clock_init_fake(struct clock *c, struct time start);

/* Moves a fake clock forward and wakes every thread that waits on it. */
void clock_advance_us(struct clock *c, uint64_t us);

static inline struct time
clock_now(struct clock *c)
{
	return c->now(c);
}

#endif
