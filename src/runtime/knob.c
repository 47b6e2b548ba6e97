/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stack's knobs: a list sorted by name of what the layers registered. The values live in the
 * layers' own state as atomics; this file only finds, checks and prints them. Registration happens
 * while the stack is set up by one thread; afterwards the list is constant and any thread may look
 * up and set. A set is one relaxed store: a hot path sees it some packets later.
 */
#include "runtime/knob.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "runtime/numtext.h"
#include "runtime/stack.h"

static int
insert_sorted(struct knob_list *l, struct knob *k)
{
	struct knob **pp = &l->first;

	while (*pp != NULL && strcmp((*pp)->name, k->name) < 0)
		pp = &(*pp)->next;
	if (*pp != NULL && strcmp((*pp)->name, k->name) == 0)
		return -EEXIST;
	k->next = *pp;
	*pp = k;
	return 0;
}

int
knob_register(struct darter_stack *s, const struct knob *knobs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct knob *k = malloc(sizeof(*k));
		int rc;

		if (k == NULL)
			return -ENOMEM;
		*k = knobs[i];
		rc = insert_sorted(&s->knobs, k);
		if (rc != 0) {
			free(k);
			return rc;
		}
		atomic_store_explicit(k->value, k->dflt, memory_order_relaxed);
	}
	return 0;
}

const struct knob *
knob_find(const struct darter_stack *s, const char *name)
{
	for (const struct knob *k = s->knobs.first; k != NULL; k = k->next) {
		int order = strcmp(k->name, name);

		if (order == 0)
			return k;
		if (order > 0)
			break;
	}
	return NULL;
}

/* Writes "a, b or c" of an enum's names. */
static void
list_names(const struct knob *k, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; k->names[i] != NULL && used < size; i++) {
		const char *sep = i == 0 ? "" : k->names[i + 1] == NULL ? " or " : ", ";
		int n = snprintf(buf + used, size - used, "%s%s", sep, k->names[i]);

		if (n < 0)
			break;
		used += (size_t)n;
	}
}

static int
parse_enum(const struct knob *k, const char *text, int64_t *ret_value)
{
	for (int64_t i = 0; k->names[i] != NULL; i++) {
		if (strcasecmp(k->names[i], text) == 0) {
			*ret_value = i;
			return 0;
		}
	}
	return -EINVAL;
}

/* Turns text into a value in range. 0, -EINVAL or -ERANGE. */
static int
parse_value(const struct knob *k, const char *text, int64_t *ret_value)
{
	bool flag;
	int rc;

	switch (k->type) {
	case KNOB_BOOL:
		rc = numtext_parse_bool(text, &flag);
		if (rc == 0)
			*ret_value = flag;
		return rc;
	case KNOB_ENUM:
		return parse_enum(k, text, ret_value);
	case KNOB_INT:
		break;
	}
	rc = numtext_parse(text, ret_value);
	if (rc == -EINVAL && numtext_parse_bool(text, &flag) == 0 && k->min <= 0 && k->max >= 1) {
		*ret_value = flag;
		rc = 0;
	}
	if (rc == 0 && (*ret_value < k->min || *ret_value > k->max))
		rc = -ERANGE;
	return rc;
}

static void
explain(const struct knob *k, const char *text, char *err, size_t err_size)
{
	char names[128];

	switch (k->type) {
	case KNOB_BOOL:
		snprintf(err, err_size, "%s: expected yes or no, got \"%s\"", k->name, text);
		return;
	case KNOB_ENUM:
		list_names(k, names, sizeof(names));
		snprintf(err, err_size, "%s: expected %s, got \"%s\"", k->name, names, text);
		return;
	case KNOB_INT:
		break;
	}
	snprintf(err, err_size,
	    "%s: expected a number from %" PRId64 " to %" PRId64 " (k, m, g allowed), got \"%s\"",
	    k->name, k->min, k->max, text);
}

/* Length of the common beginning, to propose what the operator may have meant. */
static size_t
common_prefix(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] != '\0' && a[n] == b[n])
		n++;
	return n;
}

static void
explain_unknown(const struct darter_stack *s, const char *name, char *err, size_t err_size)
{
	const struct knob *best = NULL;
	size_t best_len = 0;

	for (const struct knob *k = s->knobs.first; k != NULL; k = k->next) {
		size_t n = common_prefix(k->name, name);

		if (n > best_len) {
			best = k;
			best_len = n;
		}
	}
	if (best != NULL)
		snprintf(err, err_size,
		    "%s: no such knob; nearest is %s, \"darter sysctl -a\" lists all", name,
		    best->name);
	else
		snprintf(err, err_size, "%s: no such knob, \"darter sysctl -a\" lists all", name);
}

int
knob_set(struct darter_stack *s, const char *name, const char *text, char *err, size_t err_size)
{
	const struct knob *k = knob_find(s, name);
	int64_t v, old;
	int rc;

	if (k == NULL) {
		explain_unknown(s, name, err, err_size);
		return -ENOENT;
	}
	rc = parse_value(k, text, &v);
	if (rc != 0) {
		explain(k, text, err, err_size);
		return rc;
	}
	old = atomic_exchange_explicit(k->value, v, memory_order_relaxed);
	rc = k->changed != NULL ? k->changed(s) : 0;
	if (rc < 0) {
		atomic_store_explicit(k->value, old, memory_order_relaxed);
		snprintf(err, err_size, "%s: %s", k->name, strerror(-rc));
	}
	return rc;
}

static bool
enum_has(const struct knob *k, int64_t v)
{
	for (int64_t i = 0; k->names[i] != NULL; i++) {
		if (i == v)
			return true;
	}
	return false;
}

const char *
knob_format(const struct knob *k, char *buf, size_t size)
{
	int64_t v = knob_get(k->value);

	if (k->type == KNOB_ENUM && enum_has(k, v))
		snprintf(buf, size, "%s", k->names[v]);
	else
		snprintf(buf, size, "%" PRId64, v);
	return buf;
}

void
knob_fini(struct darter_stack *s)
{
	while (s->knobs.first != NULL) {
		struct knob *k = s->knobs.first;

		s->knobs.first = k->next;
		free(k);
	}
}
