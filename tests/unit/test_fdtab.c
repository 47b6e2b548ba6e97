/* SPDX-License-Identifier: BSD-2-Clause */
/* socket/fdtab.c: numbers, references, generations, and the search for the lowest free one. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "support/cmocka_all.h"

#include "socket/fdtab.h"

#define BASE 1000

static int
open_fd(struct fd_object *o, uint32_t generation)
{
	int fd = fdtab_reserve(0);

	assert_true(fd >= BASE);
	fdtab_install(fd, o, generation, false);
	return fd;
}

static bool
close_was_last(int fd)
{
	struct fd_removed r;

	assert_int_equal(fdtab_remove(fd, &r), 0);
	return r.was_last;
}

static void
base_is_fixed_by_the_first_caller(void **state)
{
	(void)state;
	assert_int_equal(fdtab_reserve(0), -ENETDOWN);
	assert_int_equal(fdtab_set_base(0), -EINVAL);
	assert_int_equal(fdtab_set_base(INT_MAX - 5), -EINVAL);
	assert_int_equal(fdtab_set_base(BASE), 0);
	assert_int_equal(fdtab_set_base(BASE), 0);
	assert_int_equal(fdtab_set_base(BASE + 1), -EBUSY);
	assert_false(fdtab_is_in_range(BASE - 1));
	assert_true(fdtab_is_in_range(BASE));
	assert_false(fdtab_is_in_range(-1));
	assert_null(fdtab_entry(BASE - 1));
}

static void
lowest_free_number_is_given_out(void **state)
{
	struct fd_object o = { .kind = FD_SOCK };
	int a = open_fd(&o, 1), b = open_fd(&o, 1), c = open_fd(&o, 1);

	(void)state;
	assert_int_equal(a, BASE);
	assert_int_equal(b, BASE + 1);
	assert_int_equal(c, BASE + 2);
	assert_false(close_was_last(b));
	assert_int_equal(open_fd(&o, 1), b);
	assert_false(close_was_last(a));
	assert_false(close_was_last(b));
	assert_true(close_was_last(c));
	assert_int_equal(fdtab_count(), 0);
}

static void
reserved_number_finds_nothing_until_it_is_installed(void **state)
{
	struct fd_object o = { .kind = FD_EVQ };
	int fd = fdtab_reserve(0);
	struct fd_removed r;

	(void)state;
	assert_int_equal(atomic_load(&fdtab_entry(fd)->object), 0);
	assert_int_equal(fdtab_remove(fd, &r), -EBADF);
	fdtab_install(fd, &o, 7, true);
	assert_int_equal(fdtab_kind(atomic_load(&fdtab_entry(fd)->object)), FD_EVQ);
	assert_ptr_equal(fdtab_object(atomic_load(&fdtab_entry(fd)->object)), &o);
	assert_int_equal(atomic_load(&fdtab_entry(fd)->generation), 7);
	assert_int_equal(atomic_load(&fdtab_entry(fd)->is_cloexec), 1);
	assert_true(close_was_last(fd));
	assert_int_equal(fdtab_remove(fd, &r), -EBADF);
}

static void
duplicates_share_the_object_until_the_last_is_closed(void **state)
{
	struct fd_object o = { .kind = FD_SOCK };
	int fd = open_fd(&o, 3), copy = fdtab_dup(fd, BASE + 100, true);

	(void)state;
	assert_int_equal(copy, BASE + 100);
	assert_int_equal(o.refs, 2);
	assert_int_equal(atomic_load(&fdtab_entry(copy)->generation), 3);
	assert_int_equal(fdtab_dup(BASE + 50, 0, false), -EBADF);
	assert_false(close_was_last(fd));
	assert_true(close_was_last(copy));
}

static void
dup_to_replaces_what_was_there(void **state)
{
	struct fd_object a = { .kind = FD_SOCK }, b = { .kind = FD_SOCK };
	int fa = open_fd(&a, 1), fb = open_fd(&b, 1);
	struct fd_removed r;

	(void)state;
	assert_int_equal(fdtab_dup_to(fa, fb, false, &r), fb);
	assert_ptr_equal(r.object, &b);
	assert_true(r.was_last);
	assert_int_equal(a.refs, 2);
	assert_int_equal(fdtab_dup_to(fa, BASE + 5000, false, &r), BASE + 5000);
	assert_null(r.object);
	assert_int_equal(fdtab_dup_to(fa, BASE - 1, false, &r), -EBADF);
	assert_int_equal(fdtab_dup_to(BASE + 77, fa, false, &r), -EBADF);
	assert_false(close_was_last(fa));
	assert_false(close_was_last(fb));
	assert_true(close_was_last(BASE + 5000));
}

/* The bitmap's levels are 64 and 4096 wide: go past both, then punch holes. */
static void
search_finds_holes_across_all_levels(void **state)
{
	enum { N = 70000 };
	static const int holes[] = { 0, 63, 64, 4095, 4096, 8191, 65535, 69999 };
	struct fd_object o = { .kind = FD_SOCK };
	unsigned i;

	(void)state;
	for (i = 0; i < N; i++)
		assert_int_equal(open_fd(&o, 1), BASE + (int)i);
	for (i = 0; i < sizeof(holes) / sizeof(holes[0]); i++)
		close_was_last(BASE + holes[i]);
	for (i = 0; i < sizeof(holes) / sizeof(holes[0]); i++)
		assert_int_equal(open_fd(&o, 1), BASE + holes[i]);
	assert_int_equal(open_fd(&o, 1), BASE + N);
	assert_int_equal(fdtab_reserve(BASE + 4097), BASE + N + 1);
	fdtab_unreserve(BASE + N + 1);
	for (i = 0; i < N; i++)
		assert_false(close_was_last(BASE + (int)i));
	assert_true(close_was_last(BASE + N));
	assert_int_equal(fdtab_count(), 0);
}

/* Against a plain array: random opens and closes. */
static void
random_use_agrees_with_a_plain_array(void **state)
{
	enum { N = 300 };
	struct fd_object o = { .kind = FD_SOCK };
	bool is_open[N] = { false };
	unsigned step;

	(void)state;
	srand(1);
	for (step = 0; step < 20000; step++) {
		int i = rand() % N, lowest = 0, fd;
		struct fd_removed r;

		if (rand() % 2) {
			while (lowest < N && is_open[lowest])
				lowest++;
			if (lowest == N)
				continue;
			fd = open_fd(&o, step);
			assert_int_equal(fd, BASE + lowest);
			is_open[lowest] = true;
		} else {
			assert_int_equal(fdtab_remove(BASE + i, &r), is_open[i] ? 0 : -EBADF);
			is_open[i] = false;
		}
	}
	for (step = 0; step < N; step++) {
		if (is_open[step])
			close_was_last(BASE + (int)step);
	}
	assert_int_equal(o.refs, 0);
}

static void
visit_tells_open_descriptors_in_order(void **state)
{
	struct fd_object a = { .kind = FD_SOCK }, b = { .kind = FD_EVQ }, *o;
	int fa = open_fd(&a, 1), fb = fdtab_dup(fa, BASE + 3000, false), fc = open_fd(&b, 1), fd;
	uint32_t cursor = 0;

	(void)state;
	assert_true(fdtab_next(&cursor, &fd, &o) && fd == fa && o == &a);
	assert_true(fdtab_next(&cursor, &fd, &o) && fd == fc && o == &b);
	assert_true(fdtab_next(&cursor, &fd, &o) && fd == fb && o == &a);
	assert_false(fdtab_next(&cursor, &fd, &o));
	close_was_last(fa);
	close_was_last(fb);
	close_was_last(fc);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base_is_fixed_by_the_first_caller),
		cmocka_unit_test(lowest_free_number_is_given_out),
		cmocka_unit_test(reserved_number_finds_nothing_until_it_is_installed),
		cmocka_unit_test(duplicates_share_the_object_until_the_last_is_closed),
		cmocka_unit_test(dup_to_replaces_what_was_there),
		cmocka_unit_test(search_finds_holes_across_all_levels),
		cmocka_unit_test(random_use_agrees_with_a_plain_array),
		cmocka_unit_test(visit_tells_open_descriptors_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
