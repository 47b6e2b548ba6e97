/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scripts as fuzz inputs; the form is fuzz/fuzz_ops.h. Numbers become distances from what the stack
 * has last said, as the target knows no ISNs. Time that has passed since the last operation is
 * written in front of the next one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_ops.h"
#include "support/record.h"
#include "support/script.h"
#include "support/script_priv.h"

#define RECORD_MAX_BYTES 2048

static const char *dir;
static uint8_t buf[RECORD_MAX_BYTES];
static size_t len;
static bool is_full;
static uint64_t last_ms;

static void
put(const void *bytes, size_t n)
{
	if (dir == NULL || is_full)
		return;
	if (len + n > sizeof(buf)) {
		is_full = true;
		return;
	}
	memcpy(buf + len, bytes, n);
	len += n;
}

static void
put_u8(unsigned v)
{
	uint8_t b = (uint8_t)v;

	put(&b, 1);
}

static void
put_u16(unsigned v)
{
	uint8_t b[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	put(b, 2);
}

static void
put_op(struct script *s, enum fuzz_op op)
{
	uint64_t now_ms = teststack_elapsed_us(&s->ts) / 1000;
	unsigned conn = (unsigned)(s->c - s->conns);

	while (now_ms > last_ms) {
		uint64_t part = min_u64(now_ms - last_ms, 65535);

		put_u8(FUZZ_TIME);
		put_u16((unsigned)part);
		last_ms += part;
	}
	last_ms = now_ms;
	put_u8(op | (conn % FUZZ_CONNS) << 4);
}

void
record_begin(struct script *s)
{
	dir = strcmp(s->variant, "2^32") == 0 ? getenv("DARTER_RECORD") : NULL;
	len = 0;
	is_full = false;
	last_ms = 0;
	put_u8(s->ts.s->n_netisrs - 1);
}

void
record_end(struct script *s)
{
	char path[512];
	FILE *f;

	if (dir == NULL || len < 2)
		return;
	snprintf(path, sizeof(path), "%s/%s", dir, s->name);
	f = fopen(path, "wb");
	if (f == NULL)
		return;
	fwrite(buf, 1, len, f);
	fclose(f);
}

void
record_call(struct script *s, int op, unsigned arg)
{
	if (dir == NULL)
		return;
	put_op(s, (enum fuzz_op)op);
	if (op == FUZZ_WRITE || op == FUZZ_READ || op == FUZZ_UDP_SEND)
		put_u16(arg);
	else if (op == FUZZ_SHUTDOWN)
		put_u8(arg);
}

void
record_option(struct script *s, int level, int name, int value)
{
	static const int options[][2] = { FUZZ_OPTIONS };
	unsigned i;

	if (dir != NULL && level == SOL_SOCKET && name == SO_LINGER)
		put_op(s, FUZZ_LINGER);
	for (i = 0; dir != NULL && i < ARRAY_LEN(options); i++) {
		if (options[i][0] != level || options[i][1] != name)
			continue;
		put_op(s, FUZZ_OPTION);
		put_u8(i);
		put_u16((unsigned)value);
	}
}

void
record_seg(struct script *s, const struct seg *g)
{
	struct conn *c = s->c;
	int64_t seq = g->seq != SEG_ANY ? g->seq : c->snd_nxt;
	int64_t ack = g->ack != SEG_ANY ? g->ack : c->rcv_nxt;
	uint8_t opts[TCP_OPTS_MAX_BYTES + SEG_BYTES_MAX];
	size_t n;

	if (dir == NULL)
		return;
	n = script_seg_opts(s, g, opts) & 0x3c;
	put_op(s, FUZZ_SEG);
	put_u8((unsigned)g->flags);
	put_u16((unsigned)(seq - c->stack_ack));
	put_u16((unsigned)(ack - c->stack_max));
	put_u16((unsigned)g->len);
	put_u16((unsigned)(g->wnd != SEG_ANY ? g->wnd : c->wnd));
	put_u8((unsigned)min_size(n, 40));
	put(opts, min_size(n, 40));
}

void
record_frame(struct script *s, const void *frame, uint32_t frame_len)
{
	if (dir == NULL)
		return;
	put_op(s, FUZZ_FRAME);
	put_u16(frame_len);
	put(frame, frame_len);
}
