/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A moment of the stack's monotonic clock, in microseconds. A type of its own so that it never
 * mixes with a duration.
 */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct time {
	uint64_t us;
};

#define TIME_NEVER	((struct time){ UINT64_MAX })
#define TIME_ZERO	((struct time){ 0 })
#define US_PER_SEC	UINT64_C(1000000)
#define US_PER_MS	UINT64_C(1000)

static inline struct time
time_add_us(struct time t, uint64_t us)
{
	uint64_t sum = t.us + us;

	return (struct time){ sum < t.us ? UINT64_MAX : sum };
}

static inline bool
time_before(struct time a, struct time b)
{
	return a.us < b.us;
}

/* True once `deadline` is reached. */
static inline bool
time_reached(struct time now, struct time deadline)
{
	return now.us >= deadline.us;
}

static inline bool
time_is_never(struct time t)
{
	return t.us == UINT64_MAX;
}

static inline struct time
time_min(struct time a, struct time b)
{
	return a.us < b.us ? a : b;
}

/* later - earlier, 0 when `later` is not later. */
static inline uint64_t
time_since_us(struct time later, struct time earlier)
{
	return later.us > earlier.us ? later.us - earlier.us : 0;
}

#endif
