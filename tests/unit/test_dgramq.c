/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transport/dgramq: records whole and in order, limits counted, truncation, peeking, lanes in turn,
 * memory given back.
 */
#include "unit/transport_bare.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "transport/dgramq.h"

static const struct layer *const layers[] = { NULL };

struct fixture {
	struct darter_stack *s;
	struct clock clock;
	struct sockhalf *sh;
	struct dgramq *q;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->s = bare_stack(2, &f->clock, layers);
	f->sh = bare_sock(f->s);
	f->q = dgramq_new(f->s);
	assert_non_null(f->q);
	atomic_store(&f->sh->dgramq, f->q);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	dgramq_free(f->s, f->q);
	ring_fini(&f->sh->tx, &f->s->shared_chunks);
	for (i = 0; i < 2; i++) {
		chunk_cache_fini(&f->s->netisr[i]->chunks);
		chunk_cache_init(&f->s->netisr[i]->chunks, &f->s->depot, true);
	}
	/* every chunk came back */
	assert_true(atomic_load(&f->s->depot.used_bytes) == 0);
	free(f->sh);
	stack_free(f->s);
	free(f);
	return 0;
}

static bool
put(struct fixture *f, unsigned lane, const char *text, uint32_t len)
{
	struct dgram_rec rec = { .len_bytes = len, .port = (uint16_t)(1000 + lane),
	    .addr = ipaddr_v4_cpu(0x0a000002) };

	return dgramq_put(f->s->netisr[lane], f->sh, &rec, text);
}

static void
datagrams_put_then_they_come_out_whole_and_in_order(void **state)
{
	struct fixture *f = *state;
	struct dgram_rec rec;
	char buf[16];

	assert_true(put(f, 0, "one", 3));
	assert_true(put(f, 0, "", 0));
	assert_true(put(f, 0, "three", 5));
	assert_int_equal(atomic_load(&f->q->rx_count), 3);
	assert_int_equal(dgramq_get(f->sh, buf, sizeof(buf), false, &rec), 3);
	assert_memory_equal(buf, "one", 3);
	assert_int_equal(rec.port, 1000);
	assert_int_equal(dgramq_get(f->sh, buf, sizeof(buf), false, &rec), 0);
	assert_int_equal(rec.len_bytes, 0);
	assert_int_equal(dgramq_get(f->sh, buf, sizeof(buf), false, &rec), 5);
	assert_int_equal(dgramq_get(f->sh, buf, sizeof(buf), false, &rec), -EAGAIN);
	assert_int_equal(atomic_load(&f->q->rx_count), 0);
	assert_int_equal(atomic_load(&f->q->rx_bytes), 0);
}

static void
buffer_is_short_then_the_rest_is_dropped_and_the_true_length_told(void **state)
{
	struct fixture *f = *state;
	struct dgram_rec rec;
	char buf[4];

	put(f, 0, "long text", 9);
	put(f, 0, "next", 4);
	assert_int_equal(dgramq_get(f->sh, buf, 4, false, &rec), 4);
	assert_memory_equal(buf, "long", 4);
	assert_int_equal(rec.len_bytes, 9);
	assert_int_equal(dgramq_get(f->sh, buf, 4, false, &rec), 4);
	assert_memory_equal(buf, "next", 4);
}

static void
datagram_peeked_then_the_next_read_meets_it_again(void **state)
{
	struct fixture *f = *state;
	struct dgram_rec rec;
	char buf[8];

	put(f, 1, "b", 1);
	assert_int_equal(dgramq_get(f->sh, buf, 8, true, &rec), 1);
	/* one that came meanwhile on a lane looked at earlier does not get in between */
	put(f, 0, "aa", 2);
	assert_int_equal(dgramq_get(f->sh, buf, 8, true, &rec), 1);
	assert_int_equal(dgramq_get(f->sh, buf, 8, false, &rec), 1);
	assert_int_equal(buf[0], 'b');
	assert_int_equal(dgramq_get(f->sh, buf, 8, false, &rec), 2);
}

static void
two_lanes_have_datagrams_then_they_take_turns(void **state)
{
	struct fixture *f = *state;
	struct dgram_rec rec;
	char buf[8];
	unsigned i, before = 2;

	for (i = 0; i < 4; i++) {
		put(f, 0, "a", 1);
		put(f, 1, "b", 1);
	}
	for (i = 0; i < 8; i++) {
		assert_int_equal(dgramq_get(f->sh, buf, 8, false, &rec), 1);
		assert_int_not_equal(rec.port, before);
		before = rec.port;
	}
}

static void
queue_is_full_then_datagrams_are_dropped_and_counted(void **state)
{
	struct fixture *f = *state;
	struct dgram_rec rec;
	char buf[1000] = { 0 };
	unsigned taken = 0;

	atomic_store(&f->sh->opts.rcvbuf_bytes, 10000);
	while (put(f, taken % 2, buf, sizeof(buf)))
		taken++;
	/* one is taken beyond the limit */
	assert_int_equal(taken, 10000 / (1000 + sizeof(rec)) + 1);
	assert_true(atomic_load(&f->q->drops) == 1);
	assert_true(stack_counter(f->s, CTR_drop_udp_rcvq_full) == 1);
	dgramq_get(f->sh, buf, sizeof(buf), false, &rec);
	assert_true(put(f, 0, buf, sizeof(buf)));
	assert_false(put(f, 1, buf, sizeof(buf)));
}

static void
buffer_is_smaller_than_a_datagram_then_one_still_fits(void **state)
{
	struct fixture *f = *state;
	static char big[DGRAM_MAX_BYTES];
	struct dgram_rec rec;

	atomic_store(&f->sh->opts.rcvbuf_bytes, 2048);
	memset(big, 7, sizeof(big));
	assert_true(put(f, 0, big, sizeof(big)));
	memset(big, 0, sizeof(big));
	assert_int_equal(dgramq_get(f->sh, big, sizeof(big), false, &rec), DGRAM_MAX_BYTES);
	assert_int_equal(big[0] + big[DGRAM_MAX_BYTES - 1], 14);
}

static void
memory_is_spent_then_the_datagram_is_dropped_whole(void **state)
{
	struct fixture *f = *state;
	static char big[60000];
	struct dgram_rec rec;
	unsigned taken = 0, got = 0;

	atomic_store(&f->sh->opts.rcvbuf_bytes, 64u << 20);
	while (put(f, 0, big, sizeof(big)))
		taken++;
	assert_true(taken > 0);
	assert_true(stack_counter(f->s, CTR_drop_udp_nomem) == 1);
	while (dgramq_get(f->sh, big, sizeof(big), false, &rec) == (int64_t)sizeof(big))
		got++;
	assert_int_equal(got, taken);
	assert_int_equal(atomic_load(&f->q->rx_bytes), 0);
}

static void
send_ring_is_full_then_eagain_and_nothing_half_written(void **state)
{
	struct fixture *f = *state;
	struct dgram_rec rec = { .len_bytes = 3000, .port = 53 }, out;
	static char buf[70000];
	unsigned sent = 0;

	atomic_store(&f->sh->tx.cap_bytes, 10000);
	while (dgramq_send(f->sh, &rec, buf) == 0)
		sent++;
	assert_int_equal(sent, 3);
	assert_int_equal(dgramq_send(f->sh, &rec, buf), -EAGAIN);
	assert_int_equal(ring_used_bytes(&f->sh->tx), 3 * (3000 + sizeof(rec)));
	assert_int_equal(ring_read(&f->sh->tx, &out, sizeof(out), false), sizeof(out));
	assert_int_equal(out.port, 53);
	ring_discard(&f->sh->tx, out.len_bytes);
	assert_int_equal(dgramq_send(f->sh, &rec, buf), 0);
	rec.len_bytes = 9990;
	assert_int_equal(dgramq_send(f->sh, &rec, buf), -EMSGSIZE);
	atomic_store(&f->sh->tx.cap_bytes, 100000);
	rec.len_bytes = DGRAM_MAX_BYTES + 1;
	assert_int_equal(dgramq_send(f->sh, &rec, buf), -EMSGSIZE);
}

#define RACE_DGRAMS 20000u

static void *
deliver(void *arg)
{
	struct fixture *f = arg;
	struct dgram_rec rec = { 0 };
	uint32_t i, payload[64];

	while (!netisr_take(f->s->netisr[1]))
		sched_yield();
	for (i = 0; i < RACE_DGRAMS; i++) {
		rec.len_bytes = 4 + 4 * (i % 60);
		payload[0] = i;
		payload[i % 60] = i;
		while (!dgramq_put(f->s->netisr[1], f->sh, &rec, payload))
			sched_yield();
	}
	netisr_give(f->s->netisr[1]);
	return NULL;
}

static void
netisr_delivers_while_a_thread_reads_then_all_arrive_in_order(void **state)
{
	struct fixture *f = *state;
	struct dgram_rec rec;
	uint32_t next = 0, wrong = 0, buf[64];
	pthread_t t;

	atomic_store(&f->sh->opts.rcvbuf_bytes, 20000);
	assert_int_equal(pthread_create(&t, NULL, deliver, f), 0);
	while (next < RACE_DGRAMS) {
		if (dgramq_get(f->sh, buf, sizeof(buf), false, &rec) < 0) {
			sched_yield();
			continue;
		}
		wrong += rec.len_bytes != 4 + 4 * (next % 60) || buf[0] != next ||
		    buf[next % 60] != next;
		next++;
	}
	pthread_join(t, NULL);
	assert_int_equal(wrong, 0);
	assert_int_equal(atomic_load(&f->q->rx_bytes), 0);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(datagrams_put_then_they_come_out_whole_and_in_order),
		T(buffer_is_short_then_the_rest_is_dropped_and_the_true_length_told),
		T(datagram_peeked_then_the_next_read_meets_it_again),
		T(two_lanes_have_datagrams_then_they_take_turns),
		T(queue_is_full_then_datagrams_are_dropped_and_counted),
		T(buffer_is_smaller_than_a_datagram_then_one_still_fits),
		T(memory_is_spent_then_the_datagram_is_dropped_whole),
		T(send_ring_is_full_then_eagain_and_nothing_half_written),
		T(netisr_delivers_while_a_thread_reads_then_all_arrive_in_order),
	};

	return cmocka_run_group_tests_name("dgramq", tests, NULL, NULL);
}
