/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transport/group: numbers of members, whom a tuple belongs to as members come and go, and members
 * that name a CPU.
 */
#include "unit/transport_bare.h"

#include <netinet/in.h>

#include "base/rng.h"
#include "transport/demux.h"
#include "transport/group.h"
#include "transport/ulp.h"

#define MEMBERS	8u
#define TUPLES	8000u

static struct bind_entry entry[MEMBERS];
static struct sockhalf half[MEMBERS];

/* Members 0 … n-1 of the group 0.0.0.0:80, in one chain. */
static struct bind_entry *
make_group(unsigned n)
{
	struct bind_entry *all = NULL;
	unsigned i;

	memset(entry, 0, sizeof(entry));
	memset(half, 0, sizeof(half));
	for (i = 0; i < n; i++) {
		entry[i].proto = IPPROTO_TCP;
		entry[i].local = ep(INADDR_ANY, 80);
		entry[i].is_reuseport = true;
		entry[i].member = (uint16_t)i;
		entry[i].port_next = all;
		atomic_store(&entry[i].sh, &half[i]);
		all = &entry[i];
	}
	return all;
}

static unsigned
owner(uint64_t hash, unsigned members, unsigned without, int cpu)
{
	struct group_pick p = group_pick_start(hash);
	unsigned i;

	p.cpu = cpu;
	for (i = 0; i < members; i++) {
		if (i != without)
			group_pick_offer(&p, &entry[i]);
	}
	assert_non_null(p.found);
	return (unsigned)(p.found - entry);
}

/* ---- numbers ---- */

static void
member_joins_then_it_gets_the_lowest_free_number(void **state)
{
	struct bind_entry fresh = { .proto = IPPROTO_TCP, .local = ep(INADDR_ANY, 80),
		.is_reuseport = true };
	struct bind_entry *all = make_group(4);

	(void)state;
	assert_int_equal(group_free_member(all, &fresh), 4);
	entry[1].member = 700;
	assert_int_equal(group_free_member(all, &fresh), 1);
	entry[1].member = 1;
	entry[0].member = 65535;
	assert_int_equal(group_free_member(all, &fresh), 0);
	assert_int_equal(group_free_member(NULL, &fresh), 0);
	/* its own entry does not stand in its way */
	assert_int_equal(group_free_member(all, &entry[2]), 0);
}

static void
entries_are_of_other_groups_then_their_numbers_do_not_count(void **state)
{
	struct bind_entry fresh = { .proto = IPPROTO_TCP, .local = ep(INADDR_ANY, 80),
		.is_reuseport = true };
	struct bind_entry *all = make_group(4);

	(void)state;
	entry[0].proto = IPPROTO_UDP;
	assert_int_equal(group_free_member(all, &fresh), 0);
	entry[0].proto = IPPROTO_TCP;
	entry[1].local.port = 81;
	assert_int_equal(group_free_member(all, &fresh), 1);
	entry[1].local.port = 80;
	entry[2].local.addr = ipaddr_v4_cpu(0x0a000001);
	assert_int_equal(group_free_member(all, &fresh), 2);
	entry[2].local.addr = ipaddr_v4_cpu(INADDR_ANY);
	entry[3].is_reuseport = false;
	assert_int_equal(group_free_member(all, &fresh), 3);
}

/* ---- whose tuple ---- */

static void
tuples_are_many_then_members_get_equal_shares(void **state)
{
	unsigned got[MEMBERS] = { 0 }, i;
	struct rng r;

	(void)state;
	make_group(MEMBERS);
	rng_init(&r, 1);
	for (i = 0; i < TUPLES; i++)
		got[owner(rng_u64(&r), MEMBERS, MEMBERS, -1)]++;
	for (i = 0; i < MEMBERS; i++)	/* five standard deviations */
		assert_in_range(got[i], TUPLES / MEMBERS - 150, TUPLES / MEMBERS + 150);
}

static void
member_leaves_then_only_its_tuples_move_and_to_all_others(void **state)
{
	unsigned heirs[MEMBERS] = { 0 }, before, after, i;
	uint64_t hash;
	struct rng r;

	(void)state;
	make_group(MEMBERS);
	rng_init(&r, 2);
	for (i = 0; i < TUPLES; i++) {
		hash = rng_u64(&r);
		before = owner(hash, MEMBERS, MEMBERS, -1);
		after = owner(hash, MEMBERS, 3, -1);
		if (before == 3)
			heirs[after]++;
		else
			assert_int_equal(after, before);
	}
	assert_int_equal(heirs[3], 0);
	for (i = 0; i < MEMBERS; i++)
		assert_true(i == 3 || heirs[i] > 60);
}

static void
member_joins_then_tuples_move_to_it_alone(void **state)
{
	unsigned before, after, i, moved = 0;
	uint64_t hash;
	struct rng r;

	(void)state;
	make_group(MEMBERS);
	rng_init(&r, 3);
	for (i = 0; i < TUPLES; i++) {
		hash = rng_u64(&r);
		before = owner(hash, MEMBERS - 1, MEMBERS, -1);
		after = owner(hash, MEMBERS, MEMBERS, -1);
		moved += after != before;
		assert_true(after == before || after == MEMBERS - 1);
	}
	assert_in_range(moved, TUPLES / MEMBERS - 150, TUPLES / MEMBERS + 150);
}

/* ---- CPUs ---- */

static void
members_name_the_cpu_then_only_they_get_its_tuples_and_share_them(void **state)
{
	unsigned got[MEMBERS] = { 0 }, i;
	struct rng r;

	(void)state;
	make_group(MEMBERS);
	atomic_store(&half[2].opts.incoming_cpu, 5 + 1);
	atomic_store(&half[6].opts.incoming_cpu, 5 + 1);
	rng_init(&r, 4);
	for (i = 0; i < 1000; i++)
		got[owner(rng_u64(&r), MEMBERS, MEMBERS, 5)]++;
	assert_int_equal(got[2] + got[6], 1000);
	assert_in_range(got[2], 400, 600);
}

static void
nobody_names_the_cpu_then_all_share(void **state)
{
	unsigned got[MEMBERS] = { 0 }, i;
	struct rng r;

	(void)state;
	make_group(MEMBERS);
	atomic_store(&half[2].opts.incoming_cpu, 5 + 1);
	rng_init(&r, 5);
	for (i = 0; i < TUPLES; i++)
		got[owner(rng_u64(&r), MEMBERS, MEMBERS, 4)]++;
	for (i = 0; i < MEMBERS; i++)
		assert_in_range(got[i], TUPLES / MEMBERS - 150, TUPLES / MEMBERS + 150);
}

/* A netisr that has never run has no CPU: -1 is nobody's */
static void
cpu_is_unknown_then_all_share(void **state)
{
	struct rng r;
	unsigned i, others = 0;

	(void)state;
	make_group(MEMBERS);
	rng_init(&r, 6);
	atomic_store(&half[0].opts.incoming_cpu, 0);
	for (i = 1; i < MEMBERS; i++)
		atomic_store(&half[i].opts.incoming_cpu, 1);
	for (i = 0; i < 1000; i++)
		others += owner(rng_u64(&r), MEMBERS, MEMBERS, -1) != 0;
	assert_in_range(others, 800, 950);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(member_joins_then_it_gets_the_lowest_free_number),
		cmocka_unit_test(entries_are_of_other_groups_then_their_numbers_do_not_count),
		cmocka_unit_test(tuples_are_many_then_members_get_equal_shares),
		cmocka_unit_test(member_leaves_then_only_its_tuples_move_and_to_all_others),
		cmocka_unit_test(member_joins_then_tuples_move_to_it_alone),
		cmocka_unit_test(members_name_the_cpu_then_only_they_get_its_tuples_and_share_them),
		cmocka_unit_test(nobody_names_the_cpu_then_all_share),
		cmocka_unit_test(cpu_is_unknown_then_all_share),
	};

	return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
