/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Model of a byte ring (runtime/ring.c, chunk.c) and of the wait flag that goes with it
 * (SH_TX_WANT: socket/stream.c writes its wish and looks again, transport/tcp/tcp_ack.c makes
 * room and looks for the wish).
 *
 * Ring: a producer and a consumer, so little chunk memory that the producer must take back what
 * the consumer leaves behind. Checked in all interleavings, with store buffers: bytes come in
 * order and unharmed, whichever of the ways of reading is used. Flag: a writer that blocks in
 * stream_send, a holder that acknowledges. Checked: the writer is told, and never naps for want
 * of memory while there is some. Not covered: two chunk classes at a time, bytes written ahead
 * (out of order), netisrs' caches.
 */
#include "world.h"

/* `held` is a variable of netisr.c and a name of locals above it. */
#pragma GCC diagnostic ignored "-Wshadow"
#include "runtime/chunk.c"
#include "runtime/ring.c"
#include "socket/iov.c"
#include "socket/stream.c"
#include "transport/tcp/tcp_ack.c"

/* ---- what the included files need of the socket layer; TCP's own needs are linked ---- */

int
sock_take(struct sock *so, uint32_t bits)
{
	(void)so;
	(void)bits;
	return 0;
}

void
sock_give(struct sock *so, uint32_t bits)
{
	(void)so;
	(void)bits;
}

struct sock_patience
sock_patience(struct sock *so, int flags, uint64_t timeo_us)
{
	(void)so;
	(void)flags;
	(void)timeo_us;
	return (struct sock_patience){ .deadline = TIME_NEVER };
}

int
sock_wait(struct sock *so, uint32_t seen, const struct sock_patience *p)
{
	/* a nap would be for want of memory, of which there is enough */
	MODEL_ASSERT(time_is_never(p->deadline));
	waitword_sleep(&so->half.news, seen, UINT64_MAX);
	return 0;
}

/* ---- the ring alone ---- */

/* Pieces end where the chunks of the smallest class do. */
#define PIECE	((uint32_t)(512 - sizeof(struct chunk)) / 2)
#define PIECES	3u

static struct ring ring;
static uint32_t n_read;

static uint8_t
byte_at(uint32_t pos)
{
	return (uint8_t)(pos ^ pos >> 8 ^ 0x5a);
}

static void
reset_depot(uint64_t limit_bytes)
{
	world_reset(no_layers);
	/* chunks come from the model's arena, which begins anew */
	if (chunk_depot_init(&world.depot, limit_bytes) < 0)
		model_fail(__FILE__, __LINE__, "no depot");
	chunk_cache_init(&world.shared_chunks, &world.depot, false);
	model_ignore(&world.depot.used_bytes, sizeof(world.depot.used_bytes));
	/* the block is cut up here, not in the threads */
	chunk_free(&world.shared_chunks, chunk_alloc(&world.shared_chunks, CHUNK_512));
}

/* Two small chunks are all there is; the consumer stands at the end of the first. */
static void
reset_ring(void)
{
	static uint8_t piece[2 * PIECE];

	reset_depot(2 * 512);
	ring_init(&ring, 3 * PIECE);
	ring_write(&ring, &world.shared_chunks, piece, PIECE);
	ring_write(&ring, &world.shared_chunks, piece, PIECE);
	ring_read(&ring, piece, sizeof(piece), false);
	model_ignore(&ring.cap_bytes, sizeof(ring.cap_bytes));
	n_read = 0;
}

static void
produce(void)
{
	uint8_t piece[2 * PIECE];
	uint32_t done = 0, i;

	while (done < PIECE * PIECES) {
		uint32_t n = done == 0 ? PIECE : PIECE * PIECES - done;

		for (i = 0; i < n; i++)
			piece[i] = byte_at(done + i);
		n = ring_write(&ring, &world.shared_chunks, piece, n);
		done += n;
		if (n == 0)
			cpu_relax();
	}
}

static void
check_piece(const uint8_t *piece, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		MODEL_ASSERT(piece[i] == byte_at(n_read + i));
	n_read += n;
}

static void
consume(void)
{
	uint8_t piece[2 * PIECE];

	while (n_read < PIECE * PIECES) {
		uint32_t n = ring_read(&ring, piece, sizeof(piece), false);

		check_piece(piece, n);
		if (n == 0)
			cpu_relax();
	}
}

/* As TCP does: reads ahead of the tail, frees later. */
static void
consume_ahead(void)
{
	uint8_t piece[2 * PIECE];

	while (n_read < PIECE * PIECES) {
		uint32_t n = ring_used_bytes(&ring);

		if (n == 0) {
			cpu_relax();
			continue;
		}
		ring_copy_out(&ring, 0, piece, n);
		check_piece(piece, n);
		ring_discard(&ring, n);
	}
}

static void
all_came(void)
{
	MODEL_ASSERT(n_read == PIECE * PIECES);
	MODEL_ASSERT(ring_is_empty(&ring));
	MODEL_ASSERT(ring_release(&ring, &world.shared_chunks));
	MODEL_ASSERT(atomic_load(&world.depot.used_bytes) == 0);
}

static const struct model UNUSED read_model = {
	.name = "a producer, a consumer",
	.setup = reset_ring,
	.thread = { produce, consume },
	.check = all_came,
};

static const struct model UNUSED ahead_model = {
	.name = "a producer, a consumer that reads ahead",
	.setup = reset_ring,
	.thread = { produce, consume_ahead },
	.check = all_came,
};

/* ---- the wait flag ---- */

#define CAP	3u
#define TOTAL_MAX	7u

static struct sock sock;
static struct tcp_pcb pcb;
static unsigned ack_bytes;	/* at most at a time */
static unsigned total_bytes;

static void
reset_stream(unsigned ack_at_a_time, unsigned total)
{
	reset_depot(1 << 20);
	memset(&sock, 0, sizeof(sock));
	memset(&pcb, 0, sizeof(pcb));
	sock.half.stack = &world;
	sock.half.proto = IPPROTO_TCP;
	sock.type = SOCK_STREAM;
	atomic_store(&sock.half.state, SH_CONNECTED);
	/* something is posted already: no message is sent */
	atomic_store(&sock.half.ops, SOCK_OP_OPTION);
	atomic_store(&sock.sndtimeo_us, SOCK_TIMEO_NONE);
	ring_init(&sock.half.tx, CAP);
	model_ignore(&sock.half.so_error, sizeof(sock.half.so_error));
	model_ignore(&sock.half.ops, sizeof(sock.half.ops));
	model_ignore(&sock.half.tx.cap_bytes, sizeof(sock.half.tx.cap_bytes));
	model_ignore(&sock.half.opts, sizeof(sock.half.opts));
	pcb.sh = &sock.half;
	ack_bytes = ack_at_a_time;
	total_bytes = total;
}

static void
reset_single_acks(void)
{
	reset_stream(1, 4);
}

static void
reset_large_acks(void)
{
	reset_stream(CAP, TOTAL_MAX);
}

static void
send_all(void)
{
	static char bytes[TOTAL_MAX];
	struct iovec iov = { .iov_base = bytes, .iov_len = total_bytes };
	struct sock_io io = { .iov = &iov, .n_iov = 1, .held = USER_TX_BUSY };

	MODEL_ASSERT(stream_send(&sock, &io) == (int64_t)total_bytes);
}

/* All that is in the ring is sent at once and acknowledged in pieces. */
static void
acknowledge_all(void)
{
	unsigned acked = 0;

	while (acked < total_bytes) {
		uint32_t used = ring_used_bytes(&sock.half.tx);
		uint32_t n = min_u32(used, ack_bytes);

		if (n == 0) {
			cpu_relax();
			continue;
		}
		free_acked(&pcb, seq_add(pcb.snd_una, n));
		acked += n;
		if (pcb.events & SOCK_EV_OUT)
			waitword_post(&sock.half.news);
		pcb.events = 0;
	}
}

static const struct model UNUSED single_acks = {
	.name = "a writer, acknowledged byte by byte",
	.setup = reset_single_acks,
	.thread = { send_all, acknowledge_all },
	.tso = true,
};

static const struct model UNUSED large_acks = {
	.name = "a writer, acknowledged ring by ring",
	.setup = reset_large_acks,
	.thread = { send_all, acknowledge_all },
	.tso = true,
};

#ifndef MODEL_SEEDED

static void
bytes_come_in_order_and_unharmed(void **state)
{
	(void)state;
	model_expect_good(&read_model);
	model_expect_good(&ahead_model);
}

static void
a_writer_that_waits_for_room_is_told(void **state)
{
	(void)state;
	model_expect_good(&single_acks);
	model_expect_good(&large_acks);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_come_in_order_and_unharmed),
		cmocka_unit_test(a_writer_that_waits_for_room_is_told),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}

#else

static void
a_chunk_reclaimed_under_the_cursor_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_RECLAIMED_TOO_EARLY);
	model_expect_found(&read_model, SEED_RECLAIMED_TOO_EARLY);
}

static void
a_wish_that_a_store_buffer_hides_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_WISH_BY_PLAIN_LOAD);
	model_expect_found(&large_acks, SEED_WISH_BY_PLAIN_LOAD);
}

static void
a_writer_that_does_not_look_again_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_WISH_WITHOUT_SECOND_LOOK);
	model_expect_found(&large_acks, SEED_WISH_WITHOUT_SECOND_LOOK);
}

static void
a_nap_for_room_that_came_late_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_NAP_FOR_LATE_ROOM);
	model_expect_found(&large_acks, SEED_NAP_FOR_LATE_ROOM);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_nap_for_room_that_came_late_is_found_out),
		cmocka_unit_test(a_chunk_reclaimed_under_the_cursor_is_found_out),
		cmocka_unit_test(a_wish_that_a_store_buffer_hides_is_found_out),
		cmocka_unit_test(a_writer_that_does_not_look_again_is_found_out),
	};

	return cmocka_run_group_tests_name("ring seeded", tests, NULL, NULL);
}

#endif
