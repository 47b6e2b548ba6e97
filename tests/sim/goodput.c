/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Goodput by loss, round trip and buffer, against the reviewed snapshot goodput.txt (first
 * argument). Virtual time makes the figures exact for one version of the stack; the tolerance is
 * for changes that are none of congestion control's. With
 * "--update" as second argument the table is written to stdout instead, for review.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/flow.h"
#include "support/cmocka_all.h"

#define TRANSFER_BYTES	(2u << 20)
#define SEEDS		3		/* averaged */

static const double losses[] = { 0.0, 0.001, 0.01, 0.05 };
static const unsigned rtts_ms[] = { 1, 10, 50, 200 };
static const int bufs_kib[] = { 16, 64, 256 };

#define CELLS (ARRAY_LEN(losses) * ARRAY_LEN(rtts_ms) * ARRAY_LEN(bufs_kib))

static const char *snapshot_path;
static bool is_update;

/* With loss three seeds say little: one segment more or less moves the figure. */
static double
tolerance(unsigned cell)
{
	double loss = losses[cell / (ARRAY_LEN(rtts_ms) * ARRAY_LEN(bufs_kib))];

	return loss < 0.005 ? 0.15 : 0.35;
}

/* Kilobytes a second of one transfer over a link of 100 Mbit/s. */
static double
goodput(double loss, unsigned rtt_ms, int buf_kib, unsigned seed)
{
	struct flow_plan plan = {
		.bytes = { TRANSFER_BYTES, 0 },
		.sndbuf = buf_kib * 1024,
		.rcvbuf = buf_kib * 1024,
		.abort_at = { UINT64_MAX, UINT64_MAX },
	};
	struct flow f;
	struct sim m;
	char fault[128];
	double took;

	snprintf(fault, sizeof(fault), "drop=%g,delay_us=%u,rate_kbps=100000,fifo=1", loss,
	    rtt_ms * 500);
	sim_init(&m, &(struct sim_opts){ .seed = seed, .fault = fault, .packets = 4096 });
	flow_start(&m, &f, &plan, 7000);
	if (!flows_run(&m, &f, 1, 3600.0))
		fail_msg("%s, buffer %d KiB: not over after an hour", fault, buf_kib);
	flow_check(&f, false, fault);
	took = sim_elapsed_s(&m);
	sim_advance(&m, 300 * US_PER_SEC);
	sim_expect_empty(&m);
	sim_fini(&m);
	return TRANSFER_BYTES / 1000.0 / took;
}

static void
measure(double *ret_kb_s)
{
	unsigned i, j, k, seed, cell = 0;

	for (i = 0; i < ARRAY_LEN(losses); i++)
		for (j = 0; j < ARRAY_LEN(rtts_ms); j++)
			for (k = 0; k < ARRAY_LEN(bufs_kib); k++) {
				double sum = 0;

				for (seed = 1; seed <= SEEDS; seed++)
					sum += goodput(losses[i], rtts_ms[j], bufs_kib[k], seed);
				ret_kb_s[cell++] = sum / SEEDS;
			}
}

static void
print_table(FILE *out, const double *kb_s)
{
	unsigned i, j, k, cell = 0;

	fprintf(out, "# Goodput of 2 MiB over 100 Mbit/s, kB/s, mean of %u seeds. See goodput.c.\n",
	    SEEDS);
	fprintf(out, "# loss  rtt_ms  buffer_kib  kb_per_s\n");
	for (i = 0; i < ARRAY_LEN(losses); i++)
		for (j = 0; j < ARRAY_LEN(rtts_ms); j++)
			for (k = 0; k < ARRAY_LEN(bufs_kib); k++)
				fprintf(out, "%-7g %-7u %-11d %.1f\n", losses[i], rtts_ms[j],
				    bufs_kib[k], kb_s[cell++]);
}

static void
read_snapshot(double *ret_kb_s)
{
	FILE *in = fopen(snapshot_path, "r");
	char line[160];
	unsigned n = 0;

	if (in == NULL)
		fail_msg("no snapshot at %s", snapshot_path);
	while (fgets(line, sizeof(line), in) != NULL)
		if (line[0] != '#' && n < CELLS &&
		    sscanf(line, "%*g %*u %*d %lg", &ret_kb_s[n]) == 1)
			n++;
	fclose(in);
	if (n != CELLS)
		fail_msg("%s has %u cells, wanted %zu", snapshot_path, n, CELLS);
}

static void
goodput_is_as_in_the_snapshot(void **state)
{
	double want[CELLS], got[CELLS];
	unsigned i, bad = 0;

	(void)state;
	measure(got);
	if (is_update) {
		print_table(stdout, got);
		return;
	}
	read_snapshot(want);
	for (i = 0; i < CELLS; i++)
		bad += got[i] < want[i] * (1 - tolerance(i)) ||
		    got[i] > want[i] * (1 + tolerance(i));
	if (bad == 0)
		return;
	print_table(stderr, got);
	fail_msg("%u cells differ from %s by more than 15 %% (35 %% with loss); if that is meant, "
	    "review and replace it", bad, snapshot_path);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goodput_is_as_in_the_snapshot),
	};

	snapshot_path = argc > 1 ? argv[1] : "tests/sim/goodput.txt";
	is_update = argc > 2 && strcmp(argv[2], "--update") == 0;
	return cmocka_run_group_tests_name("sim goodput", tests, NULL, NULL);
}
