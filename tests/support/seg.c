/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparing and printing the segments of scripts (seg.h says what the fields mean). Pure. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

#include "support/seg.h"

struct text {
	char *buf;
	size_t size;
	size_t len;
};

static void add(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void
add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->len + 1 >= t->size)
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->len, t->size - t->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->len = min_size(t->len + (size_t)n, t->size - 1);
}

static void
add_field(struct text *t, const char *name, int64_t v)
{
	if (v == SEG_NONE)
		add(t, " no-%s", name);
	else if (v != SEG_ANY)
		add(t, " %s %" PRId64, name, v);
}

const char *
seg_format(const struct seg *g, char *buf, size_t size)
{
	struct text t = { .buf = buf, .size = size };
	char flags[10];
	int i;

	buf[0] = '\0';
	add(&t, "[%s%s]", tcp_flags_format((uint8_t)g->flags, flags, sizeof(flags)),
	    g->push == 1 ? "P" : "");
	if (g->seq != SEG_ANY)
		add(&t, " seq %" PRId64, g->seq);
	if (g->len > 0)
		add(&t, " len %" PRId64, g->len);
	add_field(&t, "ack", g->ack);
	add_field(&t, "win", g->wnd);
	add_field(&t, "urg", g->urg);
	add_field(&t, "mss", g->mss);
	add_field(&t, "wscale", g->wscale);
	add_field(&t, "sackOK", g->sack_ok);
	add_field(&t, "ts", g->ts);
	if (g->ts != 0) {
		add_field(&t, "tsval", g->tsval);
		add_field(&t, "tsecr", g->tsecr);
	}
	for (i = 0; i < g->sack.count; i++)
		add(&t, " sack %" PRId64 ":%" PRId64, g->sack.edge[2 * i], g->sack.edge[2 * i + 1]);
	if (g->sack.count == 0)
		add(&t, " no-sack");
	if (g->after_ms != SEG_ANY)
		add(&t, " after %" PRId64 " ms", g->after_ms);
	return buf;
}

static const char *
sack_differs(const struct seg_sack *want, const struct seg_sack *got)
{
	int i;

	if (want->count < 0)
		return NULL;
	if (want->count != got->count)
		return "number of SACK blocks";
	for (i = 0; i < 2 * want->count; i++)
		if (want->edge[i] != got->edge[i])
			return "SACK blocks";
	return NULL;
}

const char *
seg_differs(const struct seg *want, const struct seg *got)
{
	const struct {
		const char *name;
		int64_t want, got;
	} field[] = {
		{ "flags", want->flags, got->flags },
		{ "PUSH", want->push, got->push },
		{ "seq", want->seq, got->seq },
		{ "payload length", want->len, got->len },
		{ "ack", want->ack, got->ack },
		{ "window", want->wnd, got->wnd },
		{ "urgent pointer", want->urg, got->urg },
		{ "MSS", want->mss, got->mss },
		{ "window scale", want->wscale, got->wscale },
		{ "SACK permitted", want->sack_ok, got->sack_ok },
		{ "timestamps", want->ts, got->ts },
		{ "TSval", want->tsval, got->tsval },
		{ "TSecr", want->tsecr, got->tsecr },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(field); i++)
		if (field[i].want != SEG_ANY && field[i].want != field[i].got)
			return field[i].name;
	return sack_differs(&want->sack, &got->sack);
}
