/* SPDX-License-Identifier: BSD-2-Clause */
/* The text form of a fault device's faults (dev_fault.h) into numbers. Pure. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "link/dev_fault.h"

#define PAIR_MAX_BYTES	64
#define QUEUE_DFLT_PKTS	256
#define QUEUE_MAX_PKTS	4096
#define REORDER_DFLT_US	1000
#define DELAY_MAX_US	UINT64_C(60000000)

static bool
read_u64(const char *text, uint64_t max, uint64_t *ret)
{
	unsigned long long v;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (*end != '\0' || errno != 0 || v > max)
		return false;
	*ret = v;
	return true;
}

static bool
read_u32(const char *text, uint64_t max, uint32_t *ret)
{
	uint64_t v;

	if (!read_u64(text, max, &v))
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool
read_probability(const char *text, double *ret)
{
	char *end;
	double v;

	if ((text[0] < '0' || text[0] > '9') && text[0] != '.')
		return false;
	v = strtod(text, &end);
	if (*end != '\0' || !(v >= 0.0 && v <= 1.0))
		return false;
	*ret = v;
	return true;
}

static bool
read_delay(const char *text, struct fault_spec *f)
{
	char first[PAIR_MAX_BYTES];
	const char *dash = strchr(text, '-');

	if (dash == NULL) {
		if (!read_u64(text, DELAY_MAX_US, &f->delay_min_us))
			return false;
		f->delay_max_us = f->delay_min_us;
		return true;
	}
	snprintf(first, sizeof(first), "%.*s", (int)(dash - text), text);
	return read_u64(first, DELAY_MAX_US, &f->delay_min_us) &&
	    read_u64(dash + 1, DELAY_MAX_US, &f->delay_max_us) &&
	    f->delay_min_us <= f->delay_max_us;
}

static bool
read_dir(const char *text, struct fault_spec *f)
{
	bool both = strcmp(text, "both") == 0;

	f->applies[FAULT_RX] = both || strcmp(text, "rx") == 0;
	f->applies[FAULT_TX] = both || strcmp(text, "tx") == 0;
	return f->applies[FAULT_RX] || f->applies[FAULT_TX];
}

static bool
read_fifo(const char *text, struct fault_spec *f)
{
	uint64_t v;

	if (!read_u64(text, 1, &v))
		return false;
	f->is_fifo = v != 0;
	return true;
}

/* False when the key is unknown or its value is not what it takes. */
static bool
read_pair(const char *key, const char *value, struct fault_spec *f)
{
	if (strcmp(key, "drop") == 0)
		return read_probability(value, &f->drop);
	if (strcmp(key, "dup") == 0)
		return read_probability(value, &f->dup);
	if (strcmp(key, "corrupt") == 0)
		return read_probability(value, &f->corrupt);
	if (strcmp(key, "reorder") == 0)
		return read_probability(value, &f->reorder);
	if (strcmp(key, "badhash") == 0) {
		f->claims_hash = true;
		return read_probability(value, &f->badhash);
	}
	if (strcmp(key, "drop_nth") == 0)
		return read_u32(value, UINT32_MAX, &f->drop_nth);
	if (strcmp(key, "delay_us") == 0)
		return read_delay(value, f);
	if (strcmp(key, "reorder_us") == 0)
		return read_u64(value, DELAY_MAX_US, &f->reorder_us);
	if (strcmp(key, "rate_kbps") == 0)
		return read_u32(value, UINT32_MAX, &f->rate_kbps);
	if (strcmp(key, "queue_pkts") == 0)
		return read_u32(value, QUEUE_MAX_PKTS, &f->queue_pkts) && f->queue_pkts > 0;
	if (strcmp(key, "dir") == 0)
		return read_dir(value, f);
	if (strcmp(key, "fifo") == 0)
		return read_fifo(value, f);
	if (strcmp(key, "seed") == 0)
		return read_u64(value, UINT64_MAX, &f->seed);
	return false;
}

int
fault_parse(const char *text, struct fault_spec *ret, char *err, size_t err_size)
{
	struct fault_spec f = {
		.queue_pkts = QUEUE_DFLT_PKTS,
		.reorder_us = REORDER_DFLT_US,
		.applies = { true, true },
		.seed = 1,
	};
	size_t len;

	for (; *text != '\0'; text += len + (text[len] == ',')) {
		char pair[PAIR_MAX_BYTES];
		char *value;

		len = strcspn(text, ",");
		snprintf(pair, sizeof(pair), "%.*s", (int)min_size(len, sizeof(pair) - 1), text);
		if (strcmp(pair, "none") == 0)
			continue;
		value = strchr(pair, '=');
		if (value != NULL)
			*value++ = '\0';
		if (value == NULL || !read_pair(pair, value, &f)) {
			snprintf(err, err_size,
			    "fault: \"%s%s%s\" is not a fault; e.g. drop=0.01,delay_us=0-2000",
			    pair, value != NULL ? "=" : "", value != NULL ? value : "");
			return -EINVAL;
		}
	}
	*ret = f;
	return 0;
}
