/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * runtime/ring and chunk: bytes in order against a counting oracle, out-of-order writes, limits,
 * two threads, memory given back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "base/rng.h"
#include "runtime/ring.h"

static struct chunk_depot depot;
static struct chunk_cache cache;

static int
setup(void **state)
{
	(void)state;
	if (chunk_depot_init(&depot, 64u << 20) < 0)
		return -1;
	chunk_cache_init(&cache, &depot, true);
	return 0;
}

static int
teardown(void **state)
{
	uint64_t used;

	(void)state;
	chunk_cache_fini(&cache);
	used = atomic_load(&depot.used_bytes);
	chunk_depot_fini(&depot);
	return used == 0 ? 0 : -1;	/* every chunk came back */
}

/* The byte that belongs at stream position i. */
static uint8_t
byte_at(uint32_t i)
{
	return (uint8_t)(i ^ (i >> 8) ^ (i >> 16));
}

static void
fill(uint8_t *buf, uint32_t pos, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		buf[i] = byte_at(pos + i);
}

static void
check(const uint8_t *buf, uint32_t pos, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		assert_int_equal(buf[i], byte_at(pos + i));
}

/* Lets positions begin just below the wrap. */
static void
ring_at(struct ring *r, uint32_t cap, uint32_t start)
{
	ring_init(r, cap);
	atomic_store(&r->head, start);
	atomic_store(&r->tail, start);
}

static void
bytes_come_out_in_order_over_the_position_wrap(void **state)
{
	static uint8_t buf[100000];
	struct ring r;
	struct rng g;
	uint32_t in = 0, out = 0;

	(void)state;
	rng_init(&g, 3);
	ring_at(&r, 80000, 0xffff0000u);
	while (out < 5000000) {
		uint32_t want = rng_below(&g, rng_below(&g, 2) ? 700 : sizeof(buf)), n;

		if (rng_below(&g, 2)) {
			fill(buf, in, want);
			n = ring_write(&r, &cache, buf, want);
			assert_int_equal(n, want < 80000 - (in - out) ? want : 80000 - (in - out));
			in += n;
		} else {
			bool peek = rng_below(&g, 4) == 0;

			n = ring_read(&r, buf, want, peek);
			assert_int_equal(n, want < in - out ? want : in - out);
			check(buf, out, n);
			if (!peek)
				out += n;
		}
		assert_int_equal(ring_used_bytes(&r), in - out);
	}
	ring_fini(&r, &cache);
}

static void
bytes_written_ahead_appear_when_the_gap_is_filled(void **state)
{
	uint8_t buf[9000];
	struct ring r;

	(void)state;
	ring_at(&r, 65536, 0xfffff000u);
	fill(buf, 3000, 6000);
	assert_true(ring_write_at(&r, &cache, 3000, buf, 6000));
	assert_true(ring_is_empty(&r));
	fill(buf, 0, 3000);
	assert_true(ring_write_at(&r, &cache, 0, buf, 3000));
	ring_advance(&r, 9000);
	assert_int_equal(ring_read(&r, buf, sizeof(buf), false), 9000);
	check(buf, 0, 9000);
	ring_fini(&r, &cache);
}

static void
copy_out_reads_ahead_of_the_tail_and_again(void **state)
{
	static uint8_t buf[300000];
	uint8_t seg[1460];
	struct ring r;
	struct rng g;
	uint32_t in = 0, out = 0, i;

	(void)state;
	rng_init(&g, 5);
	ring_at(&r, 300000, 0xfffff000u);
	for (i = 0; i < 20000; i++) {
		uint32_t used = in - out, n;

		if (used < 200000) {
			n = rng_below(&g, 20000);
			fill(buf, in, n);
			in += ring_write(&r, &cache, buf, n);
			used = in - out;
		}
		if (used > sizeof(seg)) {
			uint32_t off = rng_below(&g, used - (uint32_t)sizeof(seg));

			ring_copy_out(&r, off, seg, sizeof(seg));
			check(seg, out + off, sizeof(seg));
		}
		n = rng_below(&g, used / 4 + 1);
		ring_discard(&r, n);
		out += n;
	}
	ring_fini(&r, &cache);
}

static void
an_empty_ring_gives_its_memory_back(void **state)
{
	uint8_t buf[5000] = { 0 };
	struct ring r;

	(void)state;
	ring_init(&r, 10000);
	assert_int_equal(ring_write(&r, &cache, buf, sizeof(buf)), sizeof(buf));
	assert_false(ring_release(&r, &cache));
	ring_discard(&r, sizeof(buf));
	assert_true(ring_release(&r, &cache));
	assert_null(r.first);
	fill(buf, 0, 100);
	assert_int_equal(ring_write(&r, &cache, buf, 100), 100);
	assert_int_equal(ring_read(&r, buf, 200, false), 100);
	check(buf, 0, 100);
	ring_fini(&r, &cache);
}

static void
a_spent_depot_shortens_the_write_and_nothing_is_lost(void **state)
{
	static uint8_t buf[200000];
	struct chunk_depot small;
	struct chunk_cache c;
	struct ring r;
	uint32_t n;

	(void)state;
	assert_int_equal(chunk_depot_init(&small, 100000), 0);
	chunk_cache_init(&c, &small, false);
	ring_init(&r, sizeof(buf));
	fill(buf, 0, sizeof(buf));
	n = ring_write(&r, &c, buf, sizeof(buf));
	assert_in_range(n, 50000, 100000);
	assert_false(ring_write_at(&r, &c, 50000, buf, 1000));
	memset(buf, 0, sizeof(buf));
	assert_int_equal(ring_read(&r, buf, sizeof(buf), false), n);
	check(buf, 0, n);
	ring_fini(&r, &c);
	assert_int_equal(atomic_load(&small.used_bytes), 0);
	chunk_depot_fini(&small);
}

#define STREAM_BYTES 20000000u

static struct ring shared;

static void *
produce(void *arg)
{
	struct chunk_cache c;
	uint8_t buf[3000];
	uint32_t in = 0;

	(void)arg;
	chunk_cache_init(&c, &depot, false);
	while (in < STREAM_BYTES) {
		uint32_t n = 1 + (in * 7919u) % (uint32_t)sizeof(buf);

		fill(buf, in, n);
		n = ring_write(&shared, &c, buf, n < STREAM_BYTES - in ? n : STREAM_BYTES - in);
		in += n;
		if (n == 0)
			sched_yield();
	}
	return NULL;
}

static void
two_threads_pass_a_stream_unharmed(void **state)
{
	pthread_t t;
	uint8_t buf[4096];
	uint32_t out = 0;

	(void)state;
	ring_at(&shared, 200000, 0xfff00000u);
	assert_int_equal(pthread_create(&t, NULL, produce, NULL), 0);
	while (out < STREAM_BYTES) {
		uint32_t n = ring_read(&shared, buf, 1 + (out * 104729u) % (uint32_t)sizeof(buf),
		    false);

		check(buf, out, n);
		out += n;
		if (n == 0)
			sched_yield();
	}
	pthread_join(t, NULL);
	ring_fini(&shared, &cache);
}

/* Each test ends with every chunk back in the depot. */
#define GIVES_BACK(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GIVES_BACK(bytes_come_out_in_order_over_the_position_wrap),
		GIVES_BACK(bytes_written_ahead_appear_when_the_gap_is_filled),
		GIVES_BACK(copy_out_reads_ahead_of_the_tail_and_again),
		GIVES_BACK(an_empty_ring_gives_its_memory_back),
		GIVES_BACK(a_spent_depot_shortens_the_write_and_nothing_is_lost),
		GIVES_BACK(two_threads_pass_a_stream_unharmed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
