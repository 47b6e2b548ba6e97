/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Toeplitz: Microsoft's published verification suite ("Verifying the RSS hash calculation"), the
 * linearity that port choice rests on, and the symmetric key's promise.
 */
#include <errno.h>
#include <string.h>

#include "support/cmocka_all.h"

#include "base/rng.h"
#include "base/toeplitz.h"

static struct toeplitz ms;

struct vector {
	const char *src;
	uint16_t sport;
	const char *dst;
	uint16_t dport;
	uint32_t addrs;		/* hash of the addresses alone */
	uint32_t with_ports;
};

static const struct vector vectors[] = {
	{ "66.9.149.187", 2794, "161.142.100.80", 1766, 0x323e8fc2, 0x51ccc178 },
	{ "199.92.111.2", 14230, "65.69.140.83", 4739, 0xd718262a, 0xc626b0ea },
	{ "24.19.198.95", 12898, "12.22.207.184", 38024, 0xd2d0a5de, 0x5c2b394a },
	{ "38.27.205.30", 48228, "209.142.163.6", 2217, 0x82989176, 0xafc7327f },
	{ "153.39.163.191", 44251, "202.188.127.2", 1303, 0x5d1809c5, 0x10e828a2 },
	{ "3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x2cc18cd5, 0x40207d3d },
	{ "3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739, 0x0f0c461c, 0xdde51bbf },
	{ "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, "fe80::200:f8ff:fe21:67cf", 38024,
	    0x4b61e985, 0x02d1feef },
};

static int
prepare(void **state)
{
	(void)state;
	return toeplitz_init(&ms, toeplitz_key_microsoft, TOEPLITZ_KEY_MIN_BYTES);
}

static struct tuple
arriving(const struct vector *v)
{
	struct tuple t = { .lport = v->dport, .fport = v->sport };

	assert_int_equal(ipaddr_parse(v->src, &t.foreign), 0);
	assert_int_equal(ipaddr_parse(v->dst, &t.local), 0);
	return t;
}

static void
published_vectors_give_their_hashes(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(vectors); i++) {
		struct tuple t = arriving(&vectors[i]);

		assert_int_equal(toeplitz_addrs(&ms, &t.foreign, &t.local), vectors[i].addrs);
		assert_int_equal(toeplitz_tuple(&ms, &t), vectors[i].with_ports);
	}
}

static void
local_port_part_xors_onto_the_hash_of_port_zero(void **state)
{
	size_t i;
	uint32_t p;

	(void)state;
	for (i = 0; i < ARRAY_LEN(vectors); i++) {
		struct tuple t = arriving(&vectors[i]);
		uint32_t without;

		t.lport = 0;
		without = toeplitz_tuple(&ms, &t);
		for (p = 0; p < 65536; p += 257) {
			t.lport = (uint16_t)p;
			assert_int_equal(toeplitz_tuple(&ms, &t), without ^
			    toeplitz_lport(&ms, !ipaddr_is_v4(&t.local), t.lport));
		}
	}
}

static void
bytes_in_rss_order_equal_the_tuple(void **state)
{
	struct tuple t = arriving(&vectors[0]);
	uint8_t input[12];

	(void)state;
	memcpy(input, t.foreign.b + 12, 4);
	memcpy(input + 4, t.local.b + 12, 4);
	store_be16(input + 8, t.fport);
	store_be16(input + 10, t.lport);
	assert_int_equal(toeplitz_bytes(&ms, input, 12), vectors[0].with_ports);
}

/* The definition, bit by bit, against the tables. */
static void
random_key_equals_the_definition(void **state)
{
	static struct toeplitz t;
	uint8_t key[52], input[36];
	uint32_t want = 0;
	unsigned bit, k;
	struct rng r;
	size_t i;

	(void)state;
	rng_init(&r, 7);
	for (i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)rng_u32(&r);
	for (i = 0; i < sizeof(input); i++)
		input[i] = (uint8_t)rng_u32(&r);
	for (bit = 0; bit < 36 * 8; bit++) {
		if (!(input[bit / 8] & 0x80 >> bit % 8))
			continue;
		for (k = 0; k < 32; k++) {
			if (key[(bit + k) / 8] & 0x80 >> (bit + k) % 8)
				want ^= 1u << (31 - k);
		}
	}
	assert_int_equal(toeplitz_init(&t, key, sizeof(key)), 0);
	assert_int_equal(toeplitz_bytes(&t, input, sizeof(input)), want);
}

static void
symmetric_key_hashes_both_directions_alike(void **state)
{
	static struct toeplitz t;
	size_t i;

	(void)state;
	assert_int_equal(toeplitz_init(&t, toeplitz_key_symmetric, 40), 0);
	for (i = 0; i < ARRAY_LEN(vectors); i++) {
		struct tuple there = arriving(&vectors[i]);
		struct tuple back = { .local = there.foreign, .foreign = there.local,
			.lport = there.fport, .fport = there.lport };

		assert_int_equal(toeplitz_tuple(&t, &there), toeplitz_tuple(&t, &back));
	}
}

static void
key_of_impossible_length_is_refused(void **state)
{
	static struct toeplitz t;

	(void)state;
	assert_int_equal(toeplitz_init(&t, toeplitz_key_microsoft, 39), -EINVAL);
	assert_int_equal(toeplitz_init(&t, toeplitz_key_microsoft, 53), -EINVAL);
	assert_int_equal(toeplitz_init(&t, toeplitz_key_microsoft, 52), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_vectors_give_their_hashes),
		cmocka_unit_test(local_port_part_xors_onto_the_hash_of_port_zero),
		cmocka_unit_test(bytes_in_rss_order_equal_the_tuple),
		cmocka_unit_test(random_key_equals_the_definition),
		cmocka_unit_test(symmetric_key_hashes_both_directions_alike),
		cmocka_unit_test(key_of_impossible_length_is_refused),
	};

	return cmocka_run_group_tests(tests, prepare, NULL);
}
