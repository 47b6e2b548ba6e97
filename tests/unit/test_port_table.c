/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transport/port_table: for any key, table of owners and range each netisr's ports are exactly
 * those that lead to it, each has one number, and numbers and ports are each other's inverse.
 */
#include "unit/port_rig.h"

#include "base/rng.h"
#include "transport/port_priv.h"

static struct tuple
some_tuple(struct rng *r, bool is_v6)
{
	struct tuple t = tup(rng_u32(r), 0, rng_u32(r), (uint16_t)rng_u32(r));

	if (is_v6) {
		t.local.q[0] = rng_u64(r) | 1;
		t.local.q[1] = rng_u64(r);
		t.foreign.q[0] = rng_u64(r) | 1;
		t.foreign.q[1] = rng_u64(r);
	}
	return t;
}

/* All ports of all netisrs for one tuple: `expect` of them, each where it belongs. */
static void
check_tuple(struct darter_stack *s, const struct port_table *pt, struct tuple *t, uint32_t expect)
{
	static uint8_t seen[65536];
	bool is_v6 = !ipaddr_is_v4(&t->foreign);
	uint32_t base, i, count, sum = 0, tp;
	unsigned id;

	t->lport = 0;
	base = toeplitz_tuple(&s->rss, t) & pt->mask;
	memset(seen, 0, sizeof(seen));
	for (id = 0; id < s->n_netisrs; id++) {
		count = port_table_count(pt, is_v6, base, id);
		for (i = 0; i < count; i++) {
			t->lport = port_table_port(pt, is_v6, base, id, i);
			tp = toeplitz_lport(&s->rss, is_v6, t->lport);
			if (stack_owner(s, t)->id != id || seen[t->lport]++)
				fail_msg("port %u is not netisr %u's", t->lport, id);
			assert_int_equal(port_table_index(pt, is_v6, base, id, tp, t->lport), i);
		}
		sum += count;
	}
	assert_int_equal(sum, expect);
}

static void
check_stack(struct darter_stack *s, uint32_t expect, struct rng *r)
{
	struct port_table *pt = port_table_new(s, 1);
	unsigned i;

	assert_non_null(pt);
	assert_int_equal(pt->count, expect);
	for (i = 0; i < 4; i++) {
		struct tuple t = some_tuple(r, i % 2 == 1);

		check_tuple(s, pt, &t, expect);
	}
	port_table_free(pt);
}

/* Tables of owners as devices have them: regular, lopsided, random, without netisr 0. */
static void
fill_reta(struct darter_stack *s, unsigned how, struct rng *r)
{
	unsigned i;

	for (i = 0; i < s->reta_size; i++) {
		if (how == 0)
			s->reta[i] = (uint8_t)(i % s->n_netisrs);
		else if (how == 1)
			s->reta[i] = (uint8_t)(i == 5 ? s->n_netisrs - 1 : 0);
		else if (how == 2)
			s->reta[i] = (uint8_t)rng_below(r, s->n_netisrs);
		else
			s->reta[i] = (uint8_t)(s->n_netisrs > 1 ?
			    1 + i % (s->n_netisrs - 1) : 0);
	}
}

static void
tables_and_sizes_vary_then_every_port_has_its_owner(void **state)
{
	static const unsigned netisrs[] = { 1, 2, 3, 4, 7, 8 };
	static const uint16_t reta_sizes[] = { 64, 128, 256, 512 };
	struct darter_stack *s;
	struct clock clock;
	struct rng r;
	unsigned i, k, how;

	(void)state;
	rng_init(&r, 11);
	for (i = 0; i < ARRAY_LEN(netisrs); i++) {
		s = bare_stack(netisrs[i], &clock, rig_layers);
		for (k = 0; k < ARRAY_LEN(reta_sizes); k++) {
			s->reta_size = reta_sizes[k];
			how = (i + k) % 4;
			fill_reta(s, how, &r);
			check_stack(s, COUNT, &r);
		}
		fill_reta(s, 0, &r);
		s->reta_size = 128;
		assert_int_equal(port_rebuild(s), 0);
		stack_free(s);
	}
}

/* Any key: random ones, and those whose port bits have rank 0, 1, 3 or all */
static void
keys_vary_then_every_port_has_its_owner(void **state)
{
	uint8_t key[TOEPLITZ_KEY_MAX_BYTES];
	struct clock clock;
	struct darter_stack *s = bare_stack(4, &clock, rig_layers);
	struct rng r;
	unsigned i, k;

	(void)state;
	rng_init(&r, 12);
	for (k = 0; k < 8; k++) {
		memset(key, k == 1 ? 0xff : 0, sizeof(key));
		for (i = 0; k >= 2 && i < sizeof(key); i++)
			key[i] = (uint8_t)(k == 2 ? 0x55 : k == 3 ? 0x11 : rng_u32(&r));
		assert_int_equal(toeplitz_init(&s->rss, key, 40), 0);
		check_stack(s, COUNT, &r);
	}
	stack_free(s);
}

static void
ranges_vary_then_every_port_of_them_has_its_owner(void **state)
{
	static const struct {
		const char *first, *last, *reserved_first, *reserved_last;
		uint32_t expect;
	} ranges[] = {
		{ "1", "65535", "0", "0", 65535 },
		{ "50000", "50000", "0", "0", 1 },
		{ "50009", "50000", "0", "0", 10 },
		{ "1024", "2047", "1000", "1033", 1014 },
		{ "65535", "65535", "65535", "65535", 0 },
	};
	struct clock clock;
	struct darter_stack *s = bare_stack(3, &clock, rig_layers);
	struct rng r;
	unsigned i;

	(void)state;
	rng_init(&r, 13);
	for (i = 0; i < ARRAY_LEN(ranges); i++) {
		rig_range(s, ranges[i].first, ranges[i].last);
		rig_set(s, "net.inet.ip.portrange.reserved_first", ranges[i].reserved_first);
		rig_set(s, "net.inet.ip.portrange.reserved_last", ranges[i].reserved_last);
		check_stack(s, ranges[i].expect, &r);
	}
	stack_free(s);
}

/* What is not in the table has no number. */
static void
port_is_outside_or_reserved_then_it_has_no_number(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, rig_layers);
	struct port_table *pt;
	unsigned port;

	(void)state;
	rig_range(s, "40000", "40099");
	rig_set(s, "net.inet.ip.portrange.reserved_first", "40010");
	rig_set(s, "net.inet.ip.portrange.reserved_last", "40019");
	pt = port_table_new(s, 1);
	for (port = 39000; port < 41000; port++) {
		bool is_in = port >= 40000 && port < 40100 && (port < 40010 || port > 40019);
		uint32_t i = port_table_index(pt, false, 0, 0, 0, (uint16_t)port);

		assert_int_equal(is_in, i != UINT32_MAX);
		if (is_in)
			assert_int_equal(port_table_port(pt, false, 0, 0, i), port);
	}
	port_table_free(pt);
	stack_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_and_sizes_vary_then_every_port_has_its_owner),
		cmocka_unit_test(keys_vary_then_every_port_has_its_owner),
		cmocka_unit_test(ranges_vary_then_every_port_of_them_has_its_owner),
		cmocka_unit_test(port_is_outside_or_reserved_then_it_has_no_number),
	};

	return cmocka_run_group_tests_name("port_table", tests, NULL, NULL);
}
