/* SPDX-License-Identifier: BSD-2-Clause */
/* The type-stable pool: bounds, alignment, what a freed object keeps, reuse, double frees. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka_all.h"

#include "base/slab.h"

struct obj {
	uint64_t generation;
	char rest[92];
};

static void
pool_hands_out_max_and_then_null(void **state)
{
	static void *objs[5000];
	struct slab s;
	int i;

	(void)state;
	assert_int_equal(slab_init(&s, sizeof(struct obj), 0, 5000), 0);
	for (i = 0; i < 5000; i++) {
		objs[i] = slab_alloc(&s);
		assert_non_null(objs[i]);
		memset(objs[i], 0xff, sizeof(struct obj));
	}
	assert_null(slab_alloc(&s));
	assert_int_equal(slab_in_use(&s), 5000);
	slab_free(&s, objs[1234]);
	assert_int_equal(slab_in_use(&s), 4999);
	assert_ptr_equal(slab_alloc(&s), objs[1234]);
	assert_null(slab_alloc(&s));
	slab_fini(&s);
}

static void
fresh_object_is_zeroed(void **state)
{
	static const struct obj zero;
	struct slab s;

	(void)state;
	assert_int_equal(slab_init(&s, sizeof(struct obj), 0, 10), 0);
	assert_memory_equal(slab_alloc(&s), &zero, sizeof(zero));
	slab_fini(&s);
}

static void
freed_object_keeps_every_byte_until_reused(void **state)
{
	struct obj pattern, *o;
	struct slab s;

	(void)state;
	memset(&pattern, 0x77, sizeof(pattern));
	assert_int_equal(slab_init(&s, sizeof(struct obj), 0, 10), 0);
	o = slab_alloc(&s);
	*o = pattern;
	slab_free(&s, o);
	assert_memory_equal(o, &pattern, sizeof(pattern));
	assert_ptr_equal(slab_alloc(&s), o);
	assert_memory_equal(o, &pattern, sizeof(pattern));
	slab_fini(&s);
}

static void
objects_are_aligned_and_do_not_overlap(void **state)
{
	static const size_t sizes[] = { 1, 24, 64, 100, 1000, 5000, 40000 };
	static const size_t aligns[] = { 1, 8, 64, 4096 };
	size_t i, j, k;
	struct slab s;
	char *o[40];

	(void)state;
	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		for (j = 0; j < ARRAY_LEN(aligns); j++) {
			assert_int_equal(slab_init(&s, sizes[i], aligns[j], 40), 0);
			for (k = 0; k < 40; k++) {
				o[k] = slab_alloc(&s);
				assert_int_equal((uintptr_t)o[k] % aligns[j], 0);
				memset(o[k], (int)k, sizes[i]);
			}
			for (k = 0; k < 40; k++) {
				assert_int_equal(o[k][0], k);
				assert_int_equal(o[k][sizes[i] - 1], k);
			}
			slab_fini(&s);
		}
	}
}

static void
impossible_parameters_are_refused(void **state)
{
	struct slab s;

	(void)state;
	assert_int_equal(slab_init(&s, 0, 8, 10), -EINVAL);
	assert_int_equal(slab_init(&s, 8, 3, 10), -EINVAL);
	assert_int_equal(slab_init(&s, 8, 8192, 10), -EINVAL);
	assert_int_equal(slab_init(&s, 8, 8, 0), -EINVAL);
	assert_int_equal(slab_init(&s, SIZE_MAX, 8, 10), -EINVAL);
}

static void
freeing_null_does_nothing(void **state)
{
	struct slab s;

	(void)state;
	assert_int_equal(slab_init(&s, 8, 8, 10), 0);
	slab_free(&s, NULL);
	assert_int_equal(slab_in_use(&s), 0);
	slab_fini(&s);
	slab_fini(&s);
}

static void
double_free_stops_the_program(void **state)
{
	struct slab s;
	int status;
	void *o;
	pid_t pid;

	(void)state;
	assert_int_equal(slab_init(&s, 64, 0, 10), 0);
	o = slab_alloc(&s);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		slab_free(&s, o);
		slab_free(&s, o);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	slab_fini(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pool_hands_out_max_and_then_null),
		cmocka_unit_test(fresh_object_is_zeroed),
		cmocka_unit_test(freed_object_keeps_every_byte_until_reused),
		cmocka_unit_test(objects_are_aligned_and_do_not_overlap),
		cmocka_unit_test(impossible_parameters_are_refused),
		cmocka_unit_test(freeing_null_does_nothing),
		cmocka_unit_test(double_free_stops_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
