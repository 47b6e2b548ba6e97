/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP sequence numbers, compared modulo 2^32 (RFC 9293 3.4). */
#ifndef BASE_SEQ_H
#define BASE_SEQ_H

#include <stdbool.h>
#include <stdint.h>

struct seq {
	uint32_t v;
};

static inline struct seq
seq_of(uint32_t v)
{
	return (struct seq){ v };
}

static inline struct seq
seq_add(struct seq s, uint32_t n)
{
	return (struct seq){ s.v + n };
}

static inline struct seq
seq_sub(struct seq s, uint32_t n)
{
	return (struct seq){ s.v - n };
}

/* a - b as a signed distance; right while they are less than 2^31 apart. */
static inline int32_t
seq_diff(struct seq a, struct seq b)
{
	return (int32_t)(a.v - b.v);
}

static inline bool
seq_eq(struct seq a, struct seq b)
{
	return a.v == b.v;
}

static inline bool
seq_lt(struct seq a, struct seq b)
{
	return seq_diff(a, b) < 0;
}

static inline bool
seq_leq(struct seq a, struct seq b)
{
	return seq_diff(a, b) <= 0;
}

static inline bool
seq_gt(struct seq a, struct seq b)
{
	return seq_diff(a, b) > 0;
}

static inline bool
seq_geq(struct seq a, struct seq b)
{
	return seq_diff(a, b) >= 0;
}

static inline struct seq
seq_max(struct seq a, struct seq b)
{
	return seq_geq(a, b) ? a : b;
}

static inline struct seq
seq_min(struct seq a, struct seq b)
{
	return seq_leq(a, b) ? a : b;
}

#endif
