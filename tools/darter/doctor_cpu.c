/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of CPUs and clock, and what a nap costs: a device without interrupts is polled by a thread
 * that naps in between, so the time that the kernel adds to a nap of 50 us is added to such a
 * device's latency.
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "doctor.h"

#define NAP_US 50
#define NAPS 41

static void
check_cpus(struct report *r)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	char isolated[128] = "";
	cpu_set_t set;
	int usable;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return;
	usable = CPU_COUNT(&set);
	read_line("/sys/devices/system/cpu/isolated", isolated, sizeof(isolated));
	report_add(r, usable > 1 ? VERDICT_OK : VERDICT_WARN, "cpus",
	    usable > 1 ? NULL : "allow more CPUs, or attach the application's thread to its netisr",
	    "%d of %ld usable, isolated: %s; stack.netisrs=%d at most is sensible", usable, online,
	    isolated[0] != '\0' ? isolated : "none", usable);
}

static void
check_numa(struct report *r)
{
	char online[64];

	if (!read_line("/sys/devices/system/node/online", online, sizeof(online)))
		snprintf(online, sizeof(online), "0");
	if (strcmp(online, "0") == 0)
		report_add(r, VERDICT_OK, "numa", NULL, "one node");
	else
		report_add(r, VERDICT_WARN, "numa",
		    "set stack.cpus to CPUs of the node that the NIC is on (see the nic lines)",
		    "nodes %s", online);
}

static bool
cpu_has(const char *flag)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	size_t len = strlen(flag);
	char line[8192];
	bool found = false;

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, "flags", 5) != 0)
			continue;
		for (char *p = strstr(line, flag); p != NULL && !found; p = strstr(p + 1, flag))
			found = p[-1] == ' ' && (p[len] == ' ' || p[len] == '\n');
		break;
	}
	if (f != NULL)
		fclose(f);
	return found;
}

static void
check_clock(struct report *r)
{
	char source[64] = "?";
	bool is_constant = cpu_has("constant_tsc") && cpu_has("nonstop_tsc");

	read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
	    sizeof(source));
	report_add(r, is_constant ? VERDICT_OK : VERDICT_WARN, "clock",
	    is_constant ? NULL : "nothing to do on this CPU; timers cost a clock_gettime a round",
	    "TSC is %s; the kernel's clock source is %s", is_constant ? "constant" : "not constant",
	    source);
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int
by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void
check_nap(struct report *r)
{
	const struct timespec nap = { .tv_nsec = NAP_US * 1000 };
	uint64_t ns[NAPS];
	unsigned us;

	for (unsigned i = 0; i < NAPS; i++) {
		uint64_t start = now_ns();

		nanosleep(&nap, NULL);
		ns[i] = now_ns() - start;
	}
	qsort(ns, NAPS, sizeof(ns[0]), by_value);
	us = (unsigned)(ns[NAPS / 2] / 1000);
	report_add(r, us < 4 * NAP_US ? VERDICT_OK : VERDICT_WARN, "nap",
	    us < 4 * NAP_US ? NULL : "sysctl.net.isr.poll_idle_us=-1 polls instead of napping",
	    "a nap of %u us takes %u us (median of %u); latency of an idle port without interrupts",
	    NAP_US, us, NAPS);
}

void
doctor_cpu(struct report *r)
{
	check_cpus(r);
	check_numa(r);
	check_clock(r);
	check_nap(r);
}
