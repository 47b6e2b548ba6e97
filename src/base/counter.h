/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The catalogue of counters: counter.def makes the enum, the names, kinds and sentences. The
 * numbers themselves live in each netisr (one writer), an array of CTR_MAX uint64_t, indexed by
 * this enum; readers sum them. `CTR_drop_ip_short` is the entry named drop_ip_short.
 */
#ifndef BASE_COUNTER_H
#define BASE_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

enum counter_kind {
	COUNTER_DROP,		/* a packet or message lost, for this reason */
	COUNTER_EVENT,		/* something that happened; only grows */
	COUNTER_GAUGE,		/* a level; goes up and down */
};

enum counter {
#define COUNTER(name, kind, text) CTR_##name,
#include "base/counter.def"
#undef COUNTER
	CTR_MAX
};

/* For any i outside [0, CTR_MAX): "?", "?", COUNTER_EVENT, false. Strings are static. */
const char *counter_name(unsigned i);
const char *counter_text(unsigned i);
enum counter_kind counter_kind_of(unsigned i);
bool counter_is_drop(unsigned i);

/* The counter of that name, or -1. */
int counter_find(const char *name);

#endif
