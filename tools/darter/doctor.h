/* SPDX-License-Identifier: BSD-2-Clause */
/* `darter doctor`: the report that checks write into, and the groups of checks. One thread. */
#ifndef DARTER_DOCTOR_H
#define DARTER_DOCTOR_H

#include <stdbool.h>

#define CHECKS_MAX 64
#define TEXT_MAX 256

enum verdict {
	VERDICT_OK,
	VERDICT_WARN, /* works, but slower or with less */
	VERDICT_FAIL, /* something that was asked for, or that everything needs, does not work */
};

struct check {
	char name[32];
	enum verdict verdict;
	char text[TEXT_MAX];
	char fix[TEXT_MAX]; /* empty when there is nothing to fix */
};

struct report {
	struct check checks[CHECKS_MAX];
	unsigned n_checks;
};

/* Adds a check; `fix` NULL: nothing. Past CHECKS_MAX the last one is overwritten. */
void report_add(struct report *r, enum verdict v, const char *name, const char *fix,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Groups of checks. */
void doctor_cpu(struct report *r);  /* doctor_cpu.c: CPUs, NUMA, clock, cost of a nap */
void doctor_host(struct report *r); /* doctor_host.c: DPDK, memory, rights, limits */
void doctor_nics(struct report *r); /* doctor_nics.c: PCI devices, VFIO */

/* First line of a small file without its newline; false when it cannot be read. */
bool read_line(const char *path, char *buf, unsigned size);

/* A number in a small file, or `missing`. */
long read_number(const char *path, long missing);

#endif
