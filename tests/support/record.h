/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recording scripts as inputs of the whole-frame fuzz target: with DARTER_RECORD=DIR in the
 * environment each script run on 2^32 leaves a file of its name there. Without it nothing happens.
 */
#ifndef TEST_SUPPORT_RECORD_H
#define TEST_SUPPORT_RECORD_H

#include <stdint.h>

struct script;
struct seg;

void record_begin(struct script *s);
void record_end(struct script *s);

/*
 * An operation of fuzz/fuzz_ops.h about the current connection, with up to two arguments by its
 * form.
 */
void record_call(struct script *s, int op, unsigned arg);
void record_option(struct script *s, int level, int name, int value);
void record_seg(struct script *s, const struct seg *g);
void record_frame(struct script *s, const void *frame, uint32_t len);

#endif
