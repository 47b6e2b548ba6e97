/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures: what is in the file, read back with libpcap. */
#include "link_rig.h"
#include "link/capture.h"

#include <pcap/pcap.h>
#include <unistd.h>

static struct rig rig;
static char path[64];

static int
setup(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/darter-capture-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static pcap_t *
open_file(void)
{
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, err);

	if (p == NULL)
		fail_msg("%s", err);
	return p;
}

static void
both_directions_are_recorded_at_the_stacks_time(void **state)
{
	const uint8_t *bytes;
	struct pcap_pkthdr *h;
	uint8_t frame[RIG_FRAME_MAX];
	char option[96];
	size_t len;
	pcap_t *p;

	(void)state;
	snprintf(option, sizeof(option), "port.p0.capture=%s", path);
	rig_init(&rig, 1, (const char *const[]){ option, NULL });
	rig_learn_peer(&rig);
	clock_advance_us(&rig.clock, 234567);
	len = rig_echo(frame, &(struct ip4_view){ 0 }, 1);
	rig_inject(&rig, frame, len);
	rig_fini(&rig);

	p = open_file();
	assert_int_equal(pcap_datalink(p), DLT_EN10MB);
	assert_int_equal(pcap_next_ex(p, &h, &bytes), 1);
	assert_int_equal(h->len, len);
	assert_memory_equal(bytes, frame, len);
	assert_int_equal(h->ts.tv_sec, 1);
	assert_int_equal(h->ts.tv_usec, 234567000);
	assert_int_equal(pcap_next_ex(p, &h, &bytes), 1);
	assert_memory_equal(bytes, RIG_PEER_MAC.b, 6);
	assert_int_equal(bytes[34], ICMP4_ECHO_REPLY);
	assert_int_equal(pcap_next_ex(p, &h, &bytes), PCAP_ERROR_BREAK);
	pcap_close(p);
}

static void
filter_chooses_frames(void **state)
{
	const uint8_t *bytes;
	struct pcap_pkthdr *h;
	uint8_t frame[RIG_FRAME_MAX];
	char spec[96], err[128];
	pcap_t *p;

	(void)state;
	rig_init(&rig, 1, NULL);
	snprintf(spec, sizeof(spec), "%s,filter=arp or udp port 53", path);
	assert_int_equal(capture_start(rig.d, spec, err, sizeof(err)), 0);
	rig_inject(&rig, frame, rig_udp(frame, &(struct ip4_view){ 0 }, 1, 54));
	rig_inject(&rig, frame, rig_udp(frame, &(struct ip4_view){ 0 }, 1, 53));
	/* and an ARP request */
	assert_int_equal(capture_count(atomic_load(&rig.d->capture)), 2);
	wire_dev_clear(rig.w);
	rig_fini(&rig);
	p = open_file();
	assert_int_equal(pcap_next_ex(p, &h, &bytes), 1);
	assert_int_equal(load_be16(bytes + 12), ETHER_TYPE_ARP);
	assert_int_equal(pcap_next_ex(p, &h, &bytes), 1);
	assert_int_equal(load_be16(bytes + 36), 53);
	assert_int_equal(pcap_next_ex(p, &h, &bytes), PCAP_ERROR_BREAK);
	pcap_close(p);
}

static void
capture_is_started_and_stopped_while_the_stack_runs(void **state)
{
	const uint8_t *bytes;
	struct pcap_pkthdr *h;
	uint8_t frame[RIG_FRAME_MAX];
	char err[128];
	pcap_t *p;

	(void)state;
	rig_init(&rig, 1, NULL);
	assert_int_equal(capture_stop(rig.d), -ENOENT);
	assert_int_equal(capture_start(rig.d, path, err, sizeof(err)), 0);
	assert_int_equal(capture_start(rig.d, "/dev/null", err, sizeof(err)), -EBUSY);
	rig_inject(&rig, frame, rig_udp(frame, &(struct ip4_view){ .proto = 250 }, 1, 1));
	wire_dev_clear(rig.w);
	assert_int_equal(capture_stop(rig.d), 0);
	rig_inject(&rig, frame, rig_udp(frame, &(struct ip4_view){ 0 }, 1, 2));
	/* nobody holds a netisr: the file is closed by now */
	p = open_file();
	assert_int_equal(pcap_next_ex(p, &h, &bytes), 1);
	pcap_close(p);
	rig_fini(&rig);
}

static void
loopback_is_captured_once_without_a_link_header(void **state)
{
	const uint8_t *bytes;
	struct pcap_pkthdr *h;
	char err[128];
	pcap_t *p;

	(void)state;
	rig_init(&rig, 1, NULL);
	assert_int_equal(capture_start(dev_loop(rig.s), path, err, sizeof(err)), 0);
	rig_send(&rig, 0x7f000001, 64);
	rig_run(&rig);
	rig_fini(&rig);
	p = open_file();
	assert_int_equal(pcap_datalink(p), DLT_RAW);
	assert_int_equal(pcap_next_ex(p, &h, &bytes), 1);
	assert_int_equal(h->len, 84);
	assert_int_equal(bytes[0], 0x45);
	assert_int_equal(bytes[9], 253);
	/* our own protocol unreachable, and no second copy of the first */
	assert_int_equal(pcap_next_ex(p, &h, &bytes), 1);
	assert_int_equal(bytes[9], IP_PROTO_ICMP);
	assert_int_equal(pcap_next_ex(p, &h, &bytes), PCAP_ERROR_BREAK);
	pcap_close(p);
}

static void
bad_filter_or_path_is_refused_with_a_reason(void **state)
{
	char spec[96], err[128];

	(void)state;
	rig_init(&rig, 1, NULL);
	snprintf(spec, sizeof(spec), "%s,filter=porridge 5", path);
	assert_int_equal(capture_start(rig.d, spec, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "porridge"));
	assert_int_equal(capture_start(rig.d, "/nowhere/at/all", err, sizeof(err)), -ENOENT);
	assert_non_null(strstr(err, "/nowhere/at/all"));
	assert_null(atomic_load(&rig.d->capture));
	rig_fini(&rig);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(both_directions_are_recorded_at_the_stacks_time),
		T(filter_chooses_frames),
		T(capture_is_started_and_stopped_while_the_stack_runs),
		T(loopback_is_captured_once_without_a_link_header),
		T(bad_filter_or_path_is_refused_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
