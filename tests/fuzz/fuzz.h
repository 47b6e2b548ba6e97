/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry of a fuzz target, called by libFuzzer or by replay.c, and its way to fail. */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Reads len bytes; returns 0. Anything but a crash or a failed MUST() is a pass. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What must hold for every input. */
#define MUST(cond) do { \
	if (!(cond)) { \
		fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__, #cond); \
		abort(); \
	} \
} while (0)

#endif
