/* SPDX-License-Identifier: BSD-2-Clause */
/* Which hashes of a device are looked at, and what a wrong one leads to. */
#include "link_rig.h"

#include "link/rss_check.h"

static struct rig rig;

static char last_line[LOG_LINE_MAX_BYTES];
static unsigned n_lines;

static void
keep_line(void *arg, int level, const char *line)
{
	(void)arg;
	assert_int_equal(level, LOG_LVL_WARN);
	snprintf(last_line, sizeof(last_line), "%s", line);
	n_lines++;
}

static int
setup(void **state)
{
	(void)state;
	rig_init(&rig, 2, NULL);
	rig.s->log = (struct log_sink){ .write = keep_line, .max_level = LOG_LVL_DEBUG };
	rig.d->caps |= DEV_CAP_RSS;
	n_lines = 0;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	rig_fini(&rig);
	return 0;
}

/* A datagram as the device hands it over, its hash right but for `wrong`; seen by netisr id. */
static void
see_held_by(bool is_borrower, unsigned id, const struct ip4_view *ip, uint32_t wrong)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = rig_udp(frame, ip, 1000, 53);
	struct pkt p = {
		.data = frame + ETHER_HDR_BYTES,
		.len = (uint16_t)(len - ETHER_HDR_BYTES),
		.total_len = (uint32_t)(len - ETHER_HDR_BYTES),
		.flags = PKT_RX_RSS_HASH,
	};

	(void)steer_hash(rig.s, p.data, p.len, &p.rss_hash);
	p.rss_hash ^= wrong;
	assert_true(netisr_take(rig.s->netisr[id]));
	rig.s->netisr[id]->is_borrowed = is_borrower;
	rss_check_some(rig.s->netisr[id], rig.d, &p, ETHER_TYPE_IP4);
	netisr_give(rig.s->netisr[id]);
}

static void
see(unsigned id, const struct ip4_view *ip, uint32_t wrong)
{
	see_held_by(false, id, ip, wrong);
}

static void
see_right_ones(unsigned id, unsigned count)
{
	while (count-- > 0)
		see(id, &(struct ip4_view){ 0 }, 0);
}

static void
right_hashes_are_believed(void **state)
{
	(void)state;
	see_right_ones(0, 2 * RSS_CHECK_EVERY);
	assert_true(dev_hashes(rig.d));
	assert_int_equal(rig_count(&rig, CTR_rss_hash_wrong), 0);
	assert_int_equal(n_lines, 0);
}

static void
first_wrong_hash_is_counted_logged_and_the_last_one_used(void **state)
{
	(void)state;
	see(0, &(struct ip4_view){ 0 }, 1);
	see(0, &(struct ip4_view){ 0 }, 1);
	see(1, &(struct ip4_view){ 0 }, 1);
	assert_false(dev_hashes(rig.d));
	assert_int_equal(rig_count(&rig, CTR_rss_hash_wrong), 1);
	assert_int_equal(n_lines, 1);
	assert_non_null(strstr(last_line, "port p0: the device's hash"));
}

/* The sink is the application's: a borrower would run it while it holds a netisr. */
static void
borrower_leaves_the_line_to_the_next_holder(void **state)
{
	(void)state;
	see_held_by(true, 0, &(struct ip4_view){ 0 }, 1);
	see_held_by(true, 0, &(struct ip4_view){ 0 }, 1);
	assert_false(dev_hashes(rig.d));
	assert_int_equal(rig_count(&rig, CTR_rss_hash_wrong), 1);
	assert_int_equal(n_lines, 0);
	see(1, &(struct ip4_view){ 0 }, 0);
	see(0, &(struct ip4_view){ 0 }, 0);
	assert_int_equal(n_lines, 1);
}

static void
each_netisr_looks_at_its_own_first_ones(void **state)
{
	(void)state;
	see_right_ones(0, RSS_CHECK_FIRST);
	see_right_ones(1, RSS_CHECK_FIRST - 1);
	see(1, &(struct ip4_view){ 0 }, 0x80000000);
	assert_false(dev_hashes(rig.d));
}

/* Between the first ones and the next sample nobody looks; the sample finds it. */
static void
device_that_goes_wrong_later_is_found_by_a_sample(void **state)
{
	unsigned i;

	(void)state;
	see_right_ones(0, RSS_CHECK_FIRST);
	for (i = RSS_CHECK_FIRST; i < RSS_CHECK_EVERY; i++) {
		see(0, &(struct ip4_view){ 0 }, 1);
		assert_true(dev_hashes(rig.d));
	}
	see(0, &(struct ip4_view){ 0 }, 1);
	assert_false(dev_hashes(rig.d));
}

/* Devices hash a fragment by its addresses, or by what happens to stand in the ports' place. */
static void
hash_of_a_fragment_says_nothing(void **state)
{
	(void)state;
	see(0, &(struct ip4_view){ .has_mf = true }, 1);
	see(0, &(struct ip4_view){ .frag_offset_bytes = 64 }, 1);
	assert_true(dev_hashes(rig.d));
	assert_int_equal(rig_count(&rig, CTR_rss_hash_wrong), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define RSS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		RSS_TEST(right_hashes_are_believed),
		RSS_TEST(first_wrong_hash_is_counted_logged_and_the_last_one_used),
		RSS_TEST(borrower_leaves_the_line_to_the_next_holder),
		RSS_TEST(each_netisr_looks_at_its_own_first_ones),
		RSS_TEST(device_that_goes_wrong_later_is_found_by_a_sample),
		RSS_TEST(hash_of_a_fragment_says_nothing),
	};

	return cmocka_run_group_tests_name("rss_check", tests, NULL, NULL);
}
