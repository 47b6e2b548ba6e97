/* SPDX-License-Identifier: BSD-2-Clause */
/* A clock that moves only when told: virtual time for tests, simulation and fuzzing. */
#include "runtime/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct time
now_fake(struct clock *c)
{
	return (struct time){ atomic_load_explicit(&c->fake_us, memory_order_acquire) };
}

void
clock_init_fake(struct clock *c, struct time start)
{
	memset(c, 0, sizeof(*c));
	c->is_fake = true;
	c->now = now_fake;
	atomic_store_explicit(&c->fake_us, start.us, memory_order_relaxed);
}

void
clock_advance_us(struct clock *c, uint64_t us)
{
	atomic_fetch_add_explicit(&c->fake_us, us, memory_order_acq_rel);
	atomic_fetch_add_explicit(&c->advanced, 1, memory_order_acq_rel);
	syscall(SYS_futex, &c->advanced, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
