/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The real clock. Where the kernel calls the TSC constant and never stopping, reading the time is
 * one rdtsc and a multiplication, calibrated once a process against CLOCK_MONOTONIC over 10 ms
 * (error below 100 ppm, which no timer of TCP notices); elsewhere it is clock_gettime.
 */
#include "runtime/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static struct {
	pthread_once_t once;
	bool has_tsc;
	uint64_t us_per_tick_q32;
} calibration = { .once = PTHREAD_ONCE_INIT };

static uint64_t
monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

static uint64_t
read_tsc(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

static bool
tsc_is_steady(void)
{
	char line[8192];
	bool found = false;
	FILE *f = fopen("/proc/cpuinfo", "re");

	if (f == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), f) != NULL) {
		found = strncmp(line, "flags", 5) == 0 && strstr(line, " constant_tsc") != NULL &&
		    strstr(line, " nonstop_tsc") != NULL;
	}
	fclose(f);
	return found;
}

static void
calibrate(void)
{
	struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	uint64_t ns0, ns1, tsc0, tsc1;

	if (!tsc_is_steady())
		return;
	ns0 = monotonic_ns();
	tsc0 = read_tsc();
	nanosleep(&pause, NULL);
	ns1 = monotonic_ns();
	tsc1 = read_tsc();
	if (tsc1 <= tsc0 || ns1 <= ns0)
		return;
	calibration.us_per_tick_q32 = (uint64_t)(((unsigned __int128)(ns1 - ns0) << 32) /
	    ((unsigned __int128)(tsc1 - tsc0) * 1000));
	calibration.has_tsc = calibration.us_per_tick_q32 != 0;
}

static struct time
now_tsc(struct clock *c)
{
	uint64_t ticks = read_tsc() - c->tsc_base;

	return (struct time){ c->us_base +
	    (uint64_t)(((unsigned __int128)ticks * c->us_per_tick_q32) >> 32) };
}

static struct time
now_monotonic(struct clock *c)
{
	(void)c;
	return (struct time){ monotonic_ns() / 1000 };
}

void
clock_init_tsc(struct clock *c)
{
	memset(c, 0, sizeof(*c));
	pthread_once(&calibration.once, calibrate);
	c->us_base = monotonic_ns() / 1000;
	c->tsc_base = read_tsc();
	c->us_per_tick_q32 = calibration.us_per_tick_q32;
	c->now = calibration.has_tsc ? now_tsc : now_monotonic;
}
