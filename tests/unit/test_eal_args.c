/* SPDX-License-Identifier: BSD-2-Clause */
/* What EAL is told for a configuration, and what is cleaned up after the dead. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka_all.h"

#include "runtime/config.h"
#include "runtime/eal.h"

static struct config cfg;
static struct eal_args args;
static char err[256];

static int
fresh(void **state)
{
	(void)state;
	config_init(&cfg);
	err[0] = '\0';
	return 0;
}

static bool
has(const char *word)
{
	for (int i = 0; i < args.argc; i++) {
		if (strcmp(args.argv[i], word) == 0)
			return true;
	}
	return false;
}

static void
build(uint64_t free_huge_bytes)
{
	if (eal_args_build(&args, &cfg, "0-1", free_huge_bytes, err, sizeof(err)) != 0)
		fail_msg("%s", err);
	assert_null(args.argv[args.argc]);
}

static void
without_huge_pages_memory_is_ordinary_and_leaves_no_file(void **state)
{
	(void)state;
	build(0);
	assert_true(has("--no-huge"));
	assert_true(has("--no-shconf"));
	assert_true(has("-m"));
	assert_true(has("--no-pci"));
	assert_true(has("--no-telemetry"));
	assert_true(has("--lcores=0@(0-1)"));
	assert_false(has("--in-memory"));
	assert_false(args.has_pci);
}

static void
enough_huge_pages_are_used_in_memory(void **state)
{
	(void)state;
	build(eal_need_bytes(&cfg));
	assert_true(has("--in-memory"));
	assert_false(has("--no-huge"));
	build(eal_need_bytes(&cfg) - 1);
	assert_true(has("--no-huge"));
	cfg.hugepages = CONFIG_HUGEPAGES_NO;
	build(UINT64_MAX);
	assert_true(has("--no-huge"));
}

static void
huge_pages_demanded_but_missing_are_refused_with_the_amount(void **state)
{
	(void)state;
	cfg.hugepages = CONFIG_HUGEPAGES_YES;
	assert_int_equal(eal_args_build(&args, &cfg, "0", 0, err, sizeof(err)), -ENOMEM);
	assert_non_null(strstr(err, "vm.nr_hugepages"));
}

static void
memory_grows_with_the_packets(void **state)
{
	unsigned long mib = 0;

	(void)state;
	cfg.packets = 1 << 20;
	build(0);
	for (int i = 0; i + 1 < args.argc; i++) {
		if (strcmp(args.argv[i], "-m") == 0)
			mib = strtoul(args.argv[i + 1], NULL, 10);
	}
	assert_in_range(mib, eal_need_bytes(&cfg) >> 20, eal_need_bytes(&cfg) >> 18);
}

static void
pci_port_opens_that_device_only(void **state)
{
	(void)state;
	assert_int_equal(config_override(&cfg, "port.a.device=0000:03:00.0", err, sizeof(err)), 0);
	build(0);
	assert_true(args.has_pci);
	assert_true(has("-a"));
	assert_true(has("0000:03:00.0"));
	assert_false(has("--no-pci"));
}

static void
operators_arguments_replace_those_of_the_same_meaning(void **state)
{
	(void)state;
	strcpy(cfg.eal_args,
	    "--in-memory -l 1 --file-prefix=mine --iova-mode=pa --vdev 'net_pcap0,rx_pcap=a b'");
	build(0);
	assert_true(has("--in-memory"));
	assert_false(has("--no-huge"));
	assert_false(has("--lcores=0@(0-1)"));
	assert_false(has("--iova-mode=va"));
	assert_true(has("--file-prefix=mine"));
	assert_true(has("net_pcap0,rx_pcap=a b"));
	assert_true(has("--no-telemetry"));
}

static void
words_that_eal_does_not_know_are_refused_by_name(void **state)
{
	static const char *const bad[] = { "--bogus", "--help", "-h", "-m 64 --no-hug",
		"--proc-type=secondary" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		strcpy(cfg.eal_args, bad[i]);
		assert_int_equal(eal_args_build(&args, &cfg, "0", 0, err, sizeof(err)), -EINVAL);
		assert_ptr_equal(strstr(err, "[eal] args: "), err);
	}
	strcpy(cfg.eal_args, "-m '64");
	assert_int_equal(eal_args_build(&args, &cfg, "0", 0, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "quote"));
}

static void
more_words_than_fit_are_refused(void **state)
{
	(void)state;
	for (int i = 0; i < 80; i++)
		strcat(cfg.eal_args, "-v ");
	assert_int_not_equal(eal_args_build(&args, &cfg, "0", 0, err, sizeof(err)), 0);
	assert_non_null(strstr(err, "too long"));
}

static void
affinity_is_written_as_ranges(void **state)
{
	char buf[512];

	(void)state;
	assert_int_equal(eal_cpu_list(buf, sizeof(buf)), 0);
	assert_true(buf[0] >= '0' && buf[0] <= '9');
	assert_int_equal(eal_cpu_list(buf, 1), -ENOSPC);
}

static void
directory_of_a_dead_process_is_removed_and_of_a_living_one_kept(void **state)
{
	char top[] = "/tmp/darter-eal-XXXXXX", base[128], dead[192], alive[192], other[192];
	pid_t child = fork();
	bool is_root = getuid() == 0;

	(void)state;
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	/* root's directory is everybody's; root again afterwards, to write what was covered */
	if (is_root)
		assert_int_equal(setresuid(65534, 65534, 0), 0);
	assert_non_null(mkdtemp(top));
	setenv("XDG_RUNTIME_DIR", top, 1);
	eal_dir_base(base, sizeof(base));
	snprintf(dead, sizeof(dead), "%s/darter_%d", base, (int)child);
	snprintf(alive, sizeof(alive), "%s/darter_%d", base,
	    (int)getppid()); /* not ours: EPERM is alive too */
	snprintf(other, sizeof(other), "%s/rte", base);
	assert_int_equal(mkdir(base, 0700), 0);
	assert_int_equal(mkdir(dead, 0700), 0);
	assert_int_equal(mkdir(alive, 0700), 0);
	assert_int_equal(mkdir(other, 0700), 0);
	eal_dir_clean_stale();
	assert_int_equal(access(dead, F_OK), -1);
	assert_int_equal(rmdir(alive), 0);
	assert_int_equal(rmdir(other), 0);
	rmdir(base);
	rmdir(top);
	if (is_root)
		assert_int_equal(setresuid(0, 0, 0), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
		    without_huge_pages_memory_is_ordinary_and_leaves_no_file, fresh),
		cmocka_unit_test_setup(enough_huge_pages_are_used_in_memory, fresh),
		cmocka_unit_test_setup(
		    huge_pages_demanded_but_missing_are_refused_with_the_amount, fresh),
		cmocka_unit_test_setup(memory_grows_with_the_packets, fresh),
		cmocka_unit_test_setup(pci_port_opens_that_device_only, fresh),
		cmocka_unit_test_setup(
		    operators_arguments_replace_those_of_the_same_meaning, fresh),
		cmocka_unit_test_setup(words_that_eal_does_not_know_are_refused_by_name, fresh),
		cmocka_unit_test_setup(more_words_than_fit_are_refused, fresh),
		cmocka_unit_test_setup(affinity_is_written_as_ranges, fresh),
		cmocka_unit_test_setup(
		    directory_of_a_dead_process_is_removed_and_of_a_living_one_kept, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
