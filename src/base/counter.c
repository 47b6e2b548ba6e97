/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names, kinds and sentences of the counters, from counter.def. Read-only data; any thread.
 */
#include <string.h>

#include "base/compiler.h"
#include "base/counter.h"

struct counter_info {
	const char *name;
	const char *text;
	enum counter_kind kind;
};

static const struct counter_info infos[] = {
#define COUNTER(name, kind, text) [CTR_##name] = { #name, text, COUNTER_##kind },
#include "base/counter.def"
#undef COUNTER
};

STATIC_ASSERT(ARRAY_LEN(infos) == CTR_MAX, "a row for each counter");

const char *
counter_name(unsigned i)
{
	return i < CTR_MAX ? infos[i].name : "?";
}

const char *
counter_text(unsigned i)
{
	return i < CTR_MAX ? infos[i].text : "?";
}

enum counter_kind
counter_kind_of(unsigned i)
{
	return i < CTR_MAX ? infos[i].kind : COUNTER_EVENT;
}

bool
counter_is_drop(unsigned i)
{
	return counter_kind_of(i) == COUNTER_DROP;
}

int
counter_find(const char *name)
{
	int i;

	for (i = 0; i < CTR_MAX; i++) {
		if (strcmp(infos[i].name, name) == 0)
			return i;
	}
	return -1;
}
