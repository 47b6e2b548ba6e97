/* SPDX-License-Identifier: BSD-2-Clause */
/* transport/tcp/tcp_reass: random segments against a map of bytes; SACK blocks; the limit. */
#include "support/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "transport/tcp/tcp_priv.h"

#define SPACE	600		/* bytes of the model's window */

/* What the receiver must know: which bytes have come, and who wrote them first. */
struct model {
	uint32_t base;		/* sequence number of byte 0 */
	unsigned nxt;		/* bytes before it are delivered */
	unsigned char there[SPACE];
	unsigned char writer[SPACE];	/* by the model */
	unsigned char ring[SPACE];	/* by way of tcp_reass_next_hole */
};

static struct seq
at(const struct model *m, unsigned i)
{
	return seq_of(m->base + i);
}

static unsigned
index_of(const struct model *m, struct seq s)
{
	return s.v - m->base;
}

static void
check_invariants(const struct tcp_reass *r, const struct model *m)
{
	unsigned i = m->nxt;
	uint32_t k;

	for (k = 0; k < r->count; k++) {
		unsigned start = index_of(m, r->span[k].start), end = index_of(m, r->span[k].end);

		/*
		 * sorted, disjoint, not adjacent: a hole lies before each span, and all of it is
		 * there
		 */
		assert_true(start > i || (k == 0 && start > m->nxt));
		assert_true(end > start && end <= SPACE);
		for (; i < start; i++)
			assert_false(m->there[i]);
		for (; i < end; i++)
			assert_true(m->there[i]);
	}
	for (; i < SPACE; i++)
		assert_false(m->there[i]);
	assert_memory_equal(m->ring, m->writer, SPACE);
}

/* As tcp_rcv.c does: write the holes, then take the segment in. */
static void
receive(struct tcp_reass *r, struct model *m, unsigned start, unsigned end, unsigned char who)
{
	struct tcp_span hole, in = { at(m, start), at(m, end) };
	struct seq from = in.start;
	unsigned i;

	for (i = start; i < end; i++)
		if (!m->there[i]) {
			m->there[i] = 1;
			m->writer[i] = who;
		}
	while (tcp_reass_next_hole(r, from, in.end, &hole)) {
		assert_true(seq_geq(hole.start, from) && seq_lt(hole.start, hole.end));
		memset(m->ring + index_of(m, hole.start), who,
		    (unsigned)seq_diff(hole.end, hole.start));
		from = hole.end;
	}
	if (start > m->nxt) {
		assert_true(tcp_reass_insert(r, in));
		return;
	}
	m->nxt = index_of(m, tcp_reass_advance(r, in.end));
	for (i = 0; i < m->nxt; i++)
		assert_true(m->there[i]);
}

static void
run_model(uint32_t base, uint64_t seed)
{
	struct model *m = calloc(1, sizeof(*m));
	struct tcp_reass r;
	struct rng rng;
	unsigned step;

	assert_non_null(m);
	m->base = base;
	rng_init(&rng, seed);
	tcp_reass_init(&r);
	for (step = 0; step < 400 && m->nxt < SPACE; step++) {
		unsigned start = m->nxt + rng_below(&rng, SPACE - m->nxt);
		unsigned len = 1 + rng_below(&rng, seed % 2 ? 12 : 90);
		unsigned end = start + len < SPACE ? start + len : SPACE;

		if (rng_below(&rng, 16) == 0)
			start = m->nxt;
		if (r.count >= TCP_REASS_MAX - 1)
			start = m->nxt;
		receive(&r, m, start, end, (unsigned char)(1 + step % 250));
		check_invariants(&r, m);
	}
	free(m);
}

/* First bytes received win, nothing is lost, whatever the order: also across both wraps */
static void
random_segments_then_stream_is_what_came_first(void **state)
{
	static const uint32_t bases[] = { 0, 5000, 0x80000000u - 300, 0xffffffffu - 300 };
	unsigned b;
	uint64_t seed;

	(void)state;
	for (b = 0; b < ARRAY_LEN(bases); b++)
		for (seed = 1; seed <= 60; seed++)
			run_model(bases[b], seed * 4 + b);
}

/* RFC 2018 4 */
static void
sack_blocks_start_with_what_came_last(void **state)
{
	struct tcp_span b[TCP_SACK_MAX];
	struct tcp_reass r;

	(void)state;
	tcp_reass_init(&r);
	assert_int_equal(tcp_reass_sack(&r, b, 4), 0);
	tcp_reass_insert(&r, (struct tcp_span){ seq_of(100), seq_of(200) });
	tcp_reass_insert(&r, (struct tcp_span){ seq_of(500), seq_of(600) });
	tcp_reass_insert(&r, (struct tcp_span){ seq_of(300), seq_of(400) });
	assert_int_equal(tcp_reass_sack(&r, b, 4), 3);
	assert_int_equal(b[0].start.v, 300);
	assert_int_equal(b[1].start.v, 500);
	assert_int_equal(b[2].start.v, 100);
	/* a segment that joins two spans: one block, the newest */
	tcp_reass_insert(&r, (struct tcp_span){ seq_of(200), seq_of(300) });
	assert_int_equal(tcp_reass_sack(&r, b, 4), 2);
	assert_int_equal(b[0].start.v, 100);
	assert_int_equal(b[0].end.v, 400);
	assert_int_equal(b[1].start.v, 500);
	assert_int_equal(tcp_reass_sack(&r, b, 1), 1);
	/* and once more the one that was there */
	tcp_reass_touch(&r, seq_of(550));
	tcp_reass_sack(&r, b, 4);
	assert_int_equal(b[0].start.v, 500);
	assert_int_equal(tcp_reass_end(&r).v, 600);
}

static void
table_full_then_only_what_needs_no_new_interval_is_taken(void **state)
{
	struct tcp_reass r;
	unsigned i;

	(void)state;
	tcp_reass_init(&r);
	for (i = 0; i < TCP_REASS_MAX; i++)
		assert_true(tcp_reass_insert(&r,
		    (struct tcp_span){ seq_of(10 + i * 10), seq_of(15 + i * 10) }));
	assert_false(tcp_reass_insert(&r, (struct tcp_span){ seq_of(5000), seq_of(5001) }));
	assert_int_equal(r.count, TCP_REASS_MAX);
	/* extending one, and closing a hole, need none */
	assert_true(tcp_reass_insert(&r, (struct tcp_span){ seq_of(15), seq_of(17) }));
	assert_int_equal(r.count, TCP_REASS_MAX);
	assert_true(tcp_reass_insert(&r, (struct tcp_span){ seq_of(17), seq_of(20) }));
	assert_int_equal(r.count, TCP_REASS_MAX - 1);
	assert_true(tcp_reass_insert(&r, (struct tcp_span){ seq_of(5000), seq_of(5001) }));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_segments_then_stream_is_what_came_first),
		cmocka_unit_test(sack_blocks_start_with_what_came_last),
		cmocka_unit_test(table_full_then_only_what_needs_no_new_interval_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
