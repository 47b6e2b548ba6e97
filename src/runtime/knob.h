/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Knobs: a sysctl-like tree of 64-bit integers with ranges, names and descriptions. A layer owns
 * the value (an atomic in its own state) and registers it; the hot path reads it relaxed. Setting
 * checks the range and may be refused by name.
 */
#ifndef RUNTIME_KNOB_H
#define RUNTIME_KNOB_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct darter_stack;

enum knob_type {
	KNOB_BOOL,
	KNOB_INT,
	KNOB_ENUM, /* value is an index into names[] (NULL-terminated) */
};

struct knob {
	const char *name; /* "net.inet.tcp.msl_ms" */
	const char *text; /* one sentence, with the unit */
	enum knob_type type;
	int64_t dflt;
	int64_t min;
	int64_t max;
	const char *const *names; /* KNOB_ENUM */
	_Atomic int64_t *value;
	/* after a new value was stored; may refuse it with a negative errno. NULL: none */
	int (*changed)(struct darter_stack *s);
	struct knob *next; /* the list's */
};

struct knob_list {
	struct knob *first; /* sorted by name */
};

static inline int64_t
knob_get(const _Atomic int64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

/* Adds copies of `count` knobs and stores their defaults. At stack set-up. 0 or -ENOMEM, -EEXIST.
 */
int knob_register(struct darter_stack *s, const struct knob *knobs, size_t count);

/* NULL when there is no such knob. */
const struct knob *knob_find(const struct darter_stack *s, const char *name);

/*
 * Sets from text (number with optional k/m/g suffix, yes/no/on/off/true/false, enum name). 0;
 * -ENOENT, -EINVAL, -ERANGE with one line in err that says what is expected, or what the knob's
 * owner said. Without the control mutex.
 */
int knob_set(
    struct darter_stack *s, const char *name, const char *text, char *err, size_t err_size);

/* Value as text (enum names spelled out) into buf; returns buf. */
const char *knob_format(const struct knob *k, char *buf, size_t size);

void knob_fini(struct darter_stack *s);

#endif
