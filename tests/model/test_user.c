/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Model of the user word (socket/pin.c) with the descriptor table and the life of sockets around
 * it (fdtab.c, sock.c, close.c): calls that pin a socket through a descriptor for reading, while
 * others close it, duplicate it, open another one in its memory.
 *
 * The transport is a stand-in that frees a socket when it is closed. Checked in all
 * interleavings: a pinned socket is alive and is the one that the descriptor named; one reader at
 * a time; the socket is finished once, when nobody is inside; who waits for a bit is woken. Not
 * covered: what a call does inside, events, SO_LINGER.
 */
#include "world.h"

/* Stand-ins, below. Under other names, since what the model does not touch is linked as it is. */
#define slab_alloc	stand_in_alloc
#define slab_free	stand_in_free
#define tcp_ulp		stand_in_ulp
#define udp_ulp		stand_in_ulp

/* `held` is a variable of netisr.c and a name of locals above it. */
#pragma GCC diagnostic ignored "-Wshadow"
#include "socket/pin.c"
#include "socket/fdtab.c"
#include "socket/sock.c"
#include "socket/close.c"
#include "transport/ulp.c"

#define FIRST_FD	1000

static struct sock_stack sock_stack;
static struct sock_netisr sock_netisr;
static int the_fd;
static uint32_t the_generation;
static _Atomic unsigned n_inside;	/* of the first socket */
static _Atomic unsigned n_readers;
static _Atomic unsigned n_finished;

/* ---- stand-ins for the pool and the transport ---- */

static struct sock memory[4] CACHE_ALIGNED;
static bool is_used[ARRAY_LEN(memory)];

/* The lowest free one: what was freed last comes back first, as from a slab. */
void *
slab_alloc(struct slab *s)
{
	unsigned i;

	(void)s;
	for (i = 0; i < ARRAY_LEN(memory) && is_used[i]; i++)
		;
	MODEL_ASSERT(i < ARRAY_LEN(memory));
	is_used[i] = true;
	return &memory[i];
}

void
slab_free(struct slab *s, void *obj)
{
	size_t i = (size_t)((struct sock *)obj - memory);

	(void)s;
	MODEL_ASSERT(i < ARRAY_LEN(memory) && is_used[i]);
	is_used[i] = false;
}

static int
attach_protocol(struct sockhalf *sh)
{
	(void)sh;
	return 0;
}

/* What has an owner is freed by the owner. */
static void
close_protocol(struct sockhalf *sh)
{
	if (sh->generation == the_generation) {
		MODEL_ASSERT(atomic_load(&n_inside) == 0);
		atomic_fetch_add(&n_finished, 1);
	}
	if (atomic_load(&sh->owner) != NULL)
		sockhalf_post(sh, SOCK_OP_CLOSE);
	else
		on_free(NULL, sh);
}

static void
on_ops(struct netisr *n, struct sockhalf *sh, uint32_t ops)
{
	MODEL_ASSERT(ops == SOCK_OP_CLOSE);
	on_free(n, sh);
}

const struct ulp_ops stand_in_ulp = {
	.attach = attach_protocol, .close = close_protocol, .ops = on_ops,
};

/* ---- the model ---- */

static int
open_one(void)
{
	struct sock *so;

	MODEL_ASSERT(sock_new(&world, AF_INET, SOCK_STREAM, IPPROTO_TCP, &so) == 0);
	return sock_publish(so, false);
}

/* What the run before has left open is forgotten. */
static void
reset_table(void)
{
	struct fd_removed r;
	int i;

	fdtab_set_base(FIRST_FD);
	for (i = 0; i < 8; i++) {
		if (fdtab_remove(FIRST_FD + i, &r) < 0 && is_taken((uint32_t)i))
			fdtab_unreserve(FIRST_FD + i);
	}
}

static void
begin(void)
{
	world_reset(no_layers);
	atomic_store(&world.borrow, 0);
	reset_table();
	memset(&sock_stack, 0, sizeof(sock_stack));
	memset(memory, 0, sizeof(memory));
	memset(is_used, 0, sizeof(is_used));
	world.sock = &sock_stack;
	model_ignore(&sock_stack, sizeof(sock_stack));
	model_ignore(&fdtab_first_fd, sizeof(fdtab_first_fd));
	model_ignore(&n_taken, sizeof(n_taken));
	atomic_store(&n_inside, 0);
	atomic_store(&n_readers, 0);
	atomic_store(&n_finished, 0);
	the_generation = 1;
	the_fd = open_one();
}

static void
use(const struct sock *so)
{
	MODEL_ASSERT(so->half.generation == the_generation);
	atomic_fetch_add(&n_inside, 1);
	MODEL_ASSERT(atomic_load(&n_finished) == 0);
	MODEL_ASSERT(atomic_fetch_add(&n_readers, 1) == 0);
	atomic_fetch_sub(&n_readers, 1);
	atomic_fetch_sub(&n_inside, 1);
}

#ifdef MODEL_SEEDED

/* What a call would be that finds the socket and forgets to pin it. */
static void
read_without_pin(void)
{
	uintptr_t word = atomic_load(&fdtab_entry(the_fd)->object);

	if (word != 0)
		use(sock_of_fd_object(fdtab_object(word)));
}

#endif

static void
read_once(void)
{
	struct sock *so;
	int err = sock_pin(the_fd, USER_RX_BUSY, &so);

	MODEL_ASSERT(err == 0 || err == -EBADF);
	if (err < 0)
		return;
	use(so);
	sock_unpin(so, USER_RX_BUSY);
}

static void
close_fd_once(void)
{
	MODEL_ASSERT(fd_close(the_fd) == 0);
}

/* The descriptor's number is taken, so the new socket has another one, but the old one's memory. */
static void
close_and_open(void)
{
	int fd;

	MODEL_ASSERT(fd_close(the_fd) == 0);
	fdtab_reserve(0);
	fd = open_one();
	MODEL_ASSERT(fd != the_fd);
}

static void
dup_and_close(void)
{
	int fd = fdtab_dup(the_fd, 0, false);

	MODEL_ASSERT(fd > 0 || fd == -EBADF);
	if (fd > 0)
		MODEL_ASSERT(fd_close(fd) == 0);
}

static void
is_finished_once(void)
{
	MODEL_ASSERT(atomic_load(&n_finished) == 1);
}

static const struct model UNUSED two_readers = {
	.tso = true,
	.name = "two readers, a closer",
	.setup = begin,
	.thread = { read_once, read_once, close_fd_once },
	.check = is_finished_once,
};

static const struct model UNUSED reused = {
	.tso = true,
	.name = "a reader, one who closes and opens",
	.setup = begin,
	.thread = { read_once, close_and_open },
	.check = is_finished_once,
};

static const struct model UNUSED duplicated = {
	.tso = true,
	.name = "a reader, one who duplicates, a closer",
	.setup = begin,
	.thread = { read_once, dup_and_close, close_fd_once },
	.check = is_finished_once,
};

/* ---- waiting for a bit ---- */

static struct sock *so0;

static void
begin_idle(void)
{
	begin();
	so0 = sock_of_fd_object(fdtab_object(atomic_load(&fdtab_entry(the_fd)->object)));
}

/* The socket belongs to the netisr, which closers borrow. */
static void
begin_owned(void)
{
	begin_idle();
	memset(&sock_netisr, 0, sizeof(sock_netisr));
	world_netisr[0].sock = &sock_netisr;
	world.on_message[MSG_SOCKET] = on_socket_message;
	atomic_store(&world.borrow, 1);
	atomic_store(&so0->half.owner, &world_netisr[0]);
}

/* Three calls are inside: two have a bit each, the third has none. */
static void
begin_inside(void)
{
	begin_idle();
	MODEL_ASSERT(pin_enter(&so0->half.user, USER_RX_BUSY) == 0);
	MODEL_ASSERT(pin_enter(&so0->half.user, USER_TX_BUSY) == 0);
	MODEL_ASSERT(pin_enter(&so0->half.user, 0) == 0);
}

/* sock_take without its spins. */
static void
wait_for_bit(void)
{
	for (;;) {
		uint32_t seen = waitword_seq(&so0->half.news);

		if (pin_take(&so0->half.user, USER_RX_BUSY, true) == 0)
			break;
		waitword_sleep(&so0->half.news, seen, UINT64_MAX);
	}
	MODEL_ASSERT(atomic_fetch_add(&n_readers, 1) == 0);
	atomic_fetch_sub(&n_readers, 1);
	sock_unpin(so0, USER_RX_BUSY);
}

static void
enter_and_wait_for_bit(void)
{
	MODEL_ASSERT(pin_enter(&so0->half.user, 0) == 0);
	wait_for_bit();
}

static void
leave_with_rx(void)
{
	sock_unpin(so0, USER_RX_BUSY);
}

static void
give_tx(void)
{
	sock_give(so0, USER_TX_BUSY);
	sock_unpin(so0, 0);
}

/*
 * The holder of the netisr gives an idle socket's memory back: it takes both bits, without being
 * counted.
 */
static void
sweep(void)
{
	struct netisr *n = &world_netisr[0];

	if (!netisr_take(n))
		return;
	if (pin_grab_idle(&so0->half.user, USER_RX_BUSY | USER_TX_BUSY)) {
		MODEL_ASSERT(atomic_fetch_add(&n_readers, 1) == 0);
		atomic_fetch_sub(&n_readers, 1);
		if (pin_drop_idle(&so0->half.user, USER_RX_BUSY | USER_TX_BUSY))
			waitword_post(&so0->half.news);
	}
	netisr_give(n);
}

static void
nobody_is_inside(void)
{
	MODEL_ASSERT((atomic_load(&so0->half.user) & ~USER_WAITERS) == 0);
}

static const struct model UNUSED waiters = {
	.tso = true,
	.name = "two who want one bit",
	.setup = begin_idle,
	.thread = { enter_and_wait_for_bit, enter_and_wait_for_bit },
	.check = nobody_is_inside,
};

static const struct model UNUSED two_bits = {
	.tso = true,
	.name = "one who wants a bit, two who give different ones",
	.setup = begin_inside,
	.thread = { leave_with_rx, give_tx, wait_for_bit },
	.check = nobody_is_inside,
};

static const struct model UNUSED swept = {
	.tso = true,
	.name = "one who wants a bit, a sweep",
	.setup = begin_idle,
	.thread = { enter_and_wait_for_bit, sweep },
	.check = nobody_is_inside,
};

static const struct model UNUSED swept_and_closed = {
	.tso = true,
	.name = "a reader, a closer, a sweep",
	.setup = begin_owned,
	.thread = { read_once, close_fd_once, sweep },
	.check = is_finished_once,
};

#ifndef MODEL_SEEDED

static void
a_pinned_socket_is_alive_and_finished_once_nobody_is_inside(void **state)
{
	(void)state;
	model_expect_good(&two_readers);
	model_expect_good(&reused);
	model_expect_good(&duplicated);
}

static void
who_waits_for_a_bit_gets_it(void **state)
{
	(void)state;
	model_expect_good(&waiters);
	model_expect_good(&two_bits);
	model_expect_good(&swept);
	model_expect_good(&swept_and_closed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pinned_socket_is_alive_and_finished_once_nobody_is_inside),
		cmocka_unit_test(who_waits_for_a_bit_gets_it),
	};

	return cmocka_run_group_tests_name("user", tests, NULL, NULL);
}

#else

static void
a_missing_pin_is_found_out(void **state)
{
	struct model m = two_readers;

	(void)state;
	m.thread[0] = read_without_pin;
	model_expect_found(&m, SEED_NONE);
}

static void
a_pin_that_looks_and_then_counts_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_LOOK_THEN_PIN);
	model_expect_found(&two_readers, SEED_LOOK_THEN_PIN);
}

static void
a_pin_without_a_second_look_at_the_entry_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_PIN_WITHOUT_SECOND_LOOK);
	model_expect_found(&reused, SEED_PIN_WITHOUT_SECOND_LOOK);
}

static void
a_wait_for_a_bit_that_is_not_announced_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_WAIT_NOT_ANNOUNCED);
	model_expect_found(&waiters, SEED_WAIT_NOT_ANNOUNCED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_pin_is_found_out),
		cmocka_unit_test(a_pin_that_looks_and_then_counts_is_found_out),
		cmocka_unit_test(a_pin_without_a_second_look_at_the_entry_is_found_out),
		cmocka_unit_test(a_wait_for_a_bit_that_is_not_announced_is_found_out),
	};

	return cmocka_run_group_tests_name("user seeded", tests, NULL, NULL);
}

#endif
