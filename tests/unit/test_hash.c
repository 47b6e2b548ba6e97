/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SipHash: the vectors of the paper's reference (key 00..0f, message 00,01,..), and the tuple form
 * against a plain SipHash-1-3 written here a second time.
 */
#include <string.h>

#include "support/cmocka_all.h"

#include "base/hash.h"

static const struct siphash_key key = {
	{ UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908) },
};

static uint64_t
rotate(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static void
reference_rounds(uint64_t v[4], int n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

/* SipHash-c-d, byte by byte. */
static uint64_t
reference(const uint8_t *p, size_t len, int c, int d)
{
	uint64_t v[4] = {
		key.k[0] ^ UINT64_C(0x736f6d6570736575), key.k[1] ^ UINT64_C(0x646f72616e646f6d),
		key.k[0] ^ UINT64_C(0x6c7967656e657261), key.k[1] ^ UINT64_C(0x7465646279746573),
	};
	uint64_t m = 0;
	size_t i;

	for (i = 0; i <= (len | 7); i++) {
		uint8_t byte = i < len ? p[i] : i == (len | 7) ? (uint8_t)len : 0;

		m |= (uint64_t)byte << (i % 8 * 8);
		if (i % 8 == 7) {
			v[3] ^= m;
			reference_rounds(v, c);
			v[0] ^= m;
			m = 0;
		}
	}
	v[2] ^= 0xff;
	reference_rounds(v, d);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Aumasson and Bernstein, appendix A. */
static void
paper_example_of_15_bytes_gives_its_hash(void **state)
{
	uint8_t msg[15];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(msg); i++)
		msg[i] = (uint8_t)i;
	assert_int_equal(siphash(&key, msg, 15), UINT64_C(0xa129ca6149be45e5));
}

static void
reference_vectors_of_short_messages_match(void **state)
{
	static const uint64_t want[] = {
		UINT64_C(0x726fdb47dd0e0e31), UINT64_C(0x74f839c593dc67fd),
		UINT64_C(0x0d6c8009d9a94f5a), UINT64_C(0x85676696d7fb7e2d),
		UINT64_C(0xcf2794e0277187b7), UINT64_C(0x18765564cd99a68d),
		UINT64_C(0xcbc9466e58fee3ce), UINT64_C(0xab0200f58b01d137),
		UINT64_C(0x93f5f5799a932462),
	};
	uint8_t msg[8];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(msg); i++)
		msg[i] = (uint8_t)i;
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(siphash(&key, msg, i), want[i]);
}

static void
all_lengths_equal_a_bytewise_siphash(void **state)
{
	uint8_t msg[300];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(msg); i++)
		msg[i] = (uint8_t)(i * 7);
	for (i = 0; i < sizeof(msg); i++)
		assert_int_equal(siphash(&key, msg, i), reference(msg, i, 2, 4));
}

static void
tuple_hash_is_siphash_1_3_of_its_36_bytes(void **state)
{
	struct tuple t;
	uint8_t bytes[36];
	size_t i;

	(void)state;
	memset(&t, 0xee, sizeof(t));
	for (i = 0; i < 16; i++) {
		t.local.b[i] = (uint8_t)(i + 1);
		t.foreign.b[i] = (uint8_t)(200 - i);
	}
	t.lport = 0x1234;
	t.fport = 0xabcd;
	memcpy(bytes, t.local.b, 16);
	memcpy(bytes + 16, t.foreign.b, 16);
	memcpy(bytes + 32, (const uint8_t[4]){ 0x34, 0x12, 0xcd, 0xab }, 4);
	assert_int_equal(siphash_tuple(&key, &t), reference(bytes, 36, 1, 3));
}

static void
every_field_of_a_tuple_changes_its_hash(void **state)
{
	struct tuple t = { .lport = 80, .fport = 1024 };
	uint64_t first;

	(void)state;
	t.local = ipaddr_v4_cpu(0x0a000001);
	t.foreign = ipaddr_v4_cpu(0x0a000002);
	first = siphash_tuple(&key, &t);
	t.lport++;
	assert_int_not_equal(siphash_tuple(&key, &t), first);
	t.lport--;
	t.fport++;
	assert_int_not_equal(siphash_tuple(&key, &t), first);
	t.fport--;
	t.local.b[15] ^= 1;
	assert_int_not_equal(siphash_tuple(&key, &t), first);
	t.local.b[15] ^= 1;
	t.foreign.b[0] ^= 1;
	assert_int_not_equal(siphash_tuple(&key, &t), first);
	t.foreign.b[0] ^= 1;
	assert_int_equal(siphash_tuple(&key, &t), first);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paper_example_of_15_bytes_gives_its_hash),
		cmocka_unit_test(reference_vectors_of_short_messages_match),
		cmocka_unit_test(all_lengths_equal_a_bytewise_siphash),
		cmocka_unit_test(tuple_hash_is_siphash_1_3_of_its_36_bytes),
		cmocka_unit_test(every_field_of_a_tuple_changes_its_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
