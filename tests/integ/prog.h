/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the test programs share: options, the stack, signals, and a report that the drivers parse.
 *
 * All signals are blocked before the stack is opened and taken by prog_wait() in the main thread:
 * SIGUSR1 prints a report, SIGTERM and SIGINT end the program.
 */
#ifndef INTEG_PROG_H
#define INTEG_PROG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <darter/darter.h>

#define PROG_OVERRIDES_MAX 64

/* Set from the command line; see prog_usage in prog.c. */
struct prog {
	const char *conf_file;
	const char *overrides[PROG_OVERRIDES_MAX + 1];
	unsigned n_overrides;
	unsigned n_threads;		/* application threads that do not attach */
	unsigned n_attached;		/* threads that attach to netisr 0, 1, … */
	uint16_t port;
	bool one_listener_each;		/* SO_REUSEPORT instead of one shared listener */
	struct darter_stack *stack;
	/* Adds the program's own lines to a report, or NULL. */
	void (*report)(FILE *out);
};

extern struct prog prog;

/* Parses argv, returns the index of the first operand; exits with a message on a mistake. */
int prog_parse(int argc, char **argv);

/* Blocks signals and opens the stack; exits with the library's sentence when it can't. */
void prog_open(void);

/* A listening socket on prog.port of every address; exits when it can't be had. */
int prog_listen(int backlog);

/* Prints reports as asked until SIGTERM or SIGINT comes. Call from the main thread. */
void prog_wait(void);

/* Counters and connections by state, one a line, "report end" last. */
void prog_report(void);

/* A last report, then the stack goes. */
void prog_close(void);

#endif
