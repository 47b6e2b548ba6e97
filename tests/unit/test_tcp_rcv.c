/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transport/tcp/tcp_rcv: the window field over buffers and shifts, while a peer fills and a reader
 * drains at random (case S14 a, b).
 */
#include "unit/transport_bare.h"

#include "base/rng.h"
#include "transport/tcp/tcp_priv.h"

#define MSS	1460u
#define STEPS	2000u

struct end {
	struct tcp_pcb p;
	struct sockhalf *sh;
	uint32_t cap;
	uint32_t head, tail;	/* of the ring */
};

static void
end_init(struct end *e, uint32_t cap, uint8_t shift, uint32_t rcv_nxt)
{
	uint32_t first = cap < UINT16_MAX ? cap : UINT16_MAX;

	memset(&e->p, 0, sizeof(e->p));
	e->p.sh = e->sh;
	e->p.state = TCP_ESTABLISHED;
	e->p.rcv_wscale = shift;
	e->p.rcv_mss = MSS;
	e->p.rcv_grant_bytes = cap;
	e->p.rcv_nxt = seq_of(rcv_nxt);
	/* the window of a SYN-ACK is not scaled (RFC 7323 2.2) */
	e->p.rcv_adv = seq_add(e->p.rcv_nxt, first);
	e->cap = cap;
	e->head = e->tail = rcv_nxt;
	ring_init(&e->sh->rx, cap);
	atomic_store(&e->sh->rx.head, e->head);
	atomic_store(&e->sh->rx.tail, e->tail);
}

static uint32_t
random_upto(struct rng *r, uint32_t n)
{
	/* often all, or next to nothing */
	switch (rng_below(r, 4)) {
	case 0:
		return n;
	case 1:
		return n < 3 ? n : rng_below(r, 3);
	default:
		return n == UINT32_MAX ? 0 : rng_below(r, n + 1);
	}
}

/* The peer sends some of what it may, the reader takes some of what is there. */
static void
move(struct end *e, struct rng *r)
{
	uint32_t may = (uint32_t)seq_diff(e->p.rcv_adv, e->p.rcv_nxt);
	uint32_t in = random_upto(r, may), out;

	e->p.rcv_nxt = seq_add(e->p.rcv_nxt, in);
	e->head += in;
	/* what was promised has room: the ring never holds more than its size */
	assert_true(e->head - e->tail <= e->cap);
	out = random_upto(r, e->head - e->tail);
	e->tail += out;
	atomic_store(&e->sh->rx.head, e->head);
	atomic_store(&e->sh->rx.tail, e->tail);
}

static void
check_window(struct end *e, uint8_t shift, bool is_dup)
{
	struct seq old_edge = e->p.rcv_adv;
	uint32_t room = e->cap - (e->head - e->tail), unit = UINT32_C(1) << shift;
	uint64_t told = (uint64_t)tcp_rcv_window(&e->p, is_dup) << shift;
	uint64_t expressible = (uint64_t)UINT16_MAX << shift;
	uint32_t owed = (uint32_t)seq_diff(old_edge, e->p.rcv_nxt);

	/* never more than is free */
	assert_true(told <= room);
	/* what was promised stays, as far as the shift can say it (RFC 7323 2.4) */
	assert_true(told + unit > (owed < expressible ? owed : expressible));
	assert_true(seq_geq(e->p.rcv_adv, old_edge));
	/* never zero, nor the low 16 bits of something, while a segment fits */
	if (!is_dup && room >= MSS && room >= unit)
		assert_true(told > 0);
	/* and all of it once the reader has made room for everything */
	if (!is_dup && room == e->cap && owed + MSS <= room)
		assert_true(told + unit > (room < expressible ? room : expressible));
}

static void
window_told_is_free_and_never_zero_while_a_segment_fits(void **state)
{
	static const uint32_t caps[] = { 1460, 2920, 4096, 32768, 65535, 65536, 65537, 131071,
		131072, 131073, 1 << 20, (1 << 20) + 1, 4 << 20, 1 << 30 };
	static const uint32_t starts[] = { 0, 0x7ffffff0, 0xfffffff0 };
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, (const struct layer *const[]){ NULL });
	struct end e = { .sh = bare_sock(s) };
	struct rng r;
	unsigned i, k, step;
	uint8_t shift;

	(void)state;
	rng_init(&r, 14);
	for (i = 0; i < ARRAY_LEN(caps); i++) {
		for (shift = 0; shift <= 14; shift++) {
			for (k = 0; k < ARRAY_LEN(starts); k++) {
				end_init(&e, caps[i], shift, starts[k]);
				for (step = 0; step < STEPS; step++) {
					check_window(&e, shift, rng_below(&r, 8) == 0);
					move(&e, &r);
				}
			}
		}
	}
	free(e.sh);
	stack_free(s);
}

/* Case S14 a: 128 KiB free, no scaling */
static void
window_beyond_16_bits_without_scaling_is_the_largest_field(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, (const struct layer *const[]){ NULL });
	struct end e = { .sh = bare_sock(s) };

	(void)state;
	end_init(&e, 131072, 0, 1);
	assert_int_equal(tcp_rcv_window(&e.p, false), 65535);
	free(e.sh);
	stack_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_told_is_free_and_never_zero_while_a_segment_fits),
		cmocka_unit_test(window_beyond_16_bits_without_scaling_is_the_largest_field),
	};

	return cmocka_run_group_tests_name("tcp_rcv", tests, NULL, NULL);
}
