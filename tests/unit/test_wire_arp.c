/* SPDX-License-Identifier: BSD-2-Clause */
/* ARP packets (RFC 826): bytes of a request, refusal of every other kind. */
#include <string.h>

#include "support/cmocka_all.h"

#include "wire/arp.h"

static const uint8_t request[ARP_BYTES] = {
	0, 1, 8, 0, 6, 4, 0, 1,
	2, 0, 0, 0, 0, 1, 10, 0, 0, 1,
	0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
};

static void
request_bytes_parse_and_emit_alike(void **state)
{
	uint8_t buf[ARP_BYTES];
	struct arp_view v;

	(void)state;
	assert_int_equal(arp_parse(request, sizeof(request), &v), WIRE_OK);
	assert_int_equal(v.op, ARP_OP_REQUEST);
	assert_int_equal(be32_to_cpu(v.sender_ip), 0x0a000001);
	assert_int_equal(be32_to_cpu(v.target_ip), 0x0a000002);
	assert_int_equal(v.sender_mac.b[5], 1);
	assert_true(mac_is_zero(&v.target_mac));
	assert_int_equal(arp_emit(buf, &v), ARP_BYTES);
	assert_memory_equal(buf, request, sizeof(request));
}

static void
packet_cut_short_is_refused(void **state)
{
	struct arp_view v;
	size_t len;

	(void)state;
	for (len = 0; len < ARP_BYTES; len++)
		assert_int_equal(arp_parse(request, len, &v), WIRE_ERR_SHORT);
}

/* The eight bytes of kinds, sizes and operation: any other value (but reply) is not ours. */
static void
any_other_kind_is_refused(void **state)
{
	uint8_t buf[ARP_BYTES];
	struct arp_view v;
	int i, bit;

	(void)state;
	for (i = 0; i < 8; i++) {
		for (bit = 0; bit < 8; bit++) {
			memcpy(buf, request, sizeof(buf));
			buf[i] ^= (uint8_t)(1 << bit);
			assert_int_equal(arp_parse(buf, sizeof(buf), &v), WIRE_ERR_BAD);
		}
	}
	memcpy(buf, request, sizeof(buf));
	buf[7] = ARP_OP_REPLY;
	assert_int_equal(arp_parse(buf, sizeof(buf), &v), WIRE_OK);
	assert_int_equal(v.op, ARP_OP_REPLY);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_bytes_parse_and_emit_alike),
		cmocka_unit_test(packet_cut_short_is_refused),
		cmocka_unit_test(any_other_kind_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
