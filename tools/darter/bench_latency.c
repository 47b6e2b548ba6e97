/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `darter bench latency`: the three ways to run a stack (README, "Three ways to run"), each as the
 * server of small requests, and what each costs while nothing happens.
 *
 *   shared     borrowers and a background thread that sleeps: the default
 *   pinned     a background thread that polls on a core of its own; the server's thread is on the
 *              other core, which it shares with the client when there are but two
 *   attached   the server's thread runs the netisr and polls
 *   kernel     Linux over veth
 *
 * The client is the same in all: one blocking connection, 64 bytes there and back, its stack with
 * the default profile, over the memory cable. Rows are p50, p99 and p99.9 of the trips of a slice,
 * in microseconds; and idle, the CPU time of the whole process (the client's sleeping stack
 * included) while both ends wait, in percent of a core. Self-check as for rr.
 */
#include <stdio.h>
#include <string.h>

#include "bench.h"

enum { SHARED, PINNED, ATTACHED, KERNEL, VARIANTS };
enum { P50, P99, P999, IDLE, ROWS };

#define N_BYTES		64

static const struct bench_case_name names[] = {
	{ "request", true, VARIANTS },
	{ "idle", true, VARIANTS },
};

static const struct {
	const char *name;
	enum bench_link link;
	enum bench_profile server;
} setups[VARIANTS] = {
	[SHARED] = { "shared", BENCH_CABLE, BENCH_PROFILE_SHARED },
	[PINNED] = { "pinned", BENCH_CABLE, BENCH_PROFILE_PINNED },
	[ATTACHED] = { "attached", BENCH_CABLE, BENCH_PROFILE_ATTACHED },
	[KERNEL] = { "kernel", BENCH_KERNEL, BENCH_PROFILE_SHARED },
};

struct latency {
	struct bench_run *r;
	struct bench_variant v[VARIANTS];
	struct bench_row row[ROWS];
};

static void
check_slice(struct latency *l, unsigned v, const struct bench_reply reply[BENCH_ROLES],
    bool is_idle)
{
	const struct bench_reply *cl = &reply[BENCH_CLIENT], *s = &reply[BENCH_SERVER];
	char why[BENCH_WHY_MAX] = "";
	unsigned i;

	if (cl->failed != 0 || s->failed != 0)
		snprintf(why, sizeof(why), "%u failed: %.200s", cl->failed + s->failed,
		    cl->failed != 0 ? cl->why : s->why);
	else if (is_idle && (s->ops != 0 || cl->elapsed_ns == 0))
		snprintf(why, sizeof(why), "not idle");
	else if (!is_idle && cl->ops == 0)
		snprintf(why, sizeof(why), "nothing done");
	else if (s->bytes != cl->bytes)
		snprintf(why, sizeof(why), "%llu bytes sent and read back, %llu echoed",
		    (unsigned long long)cl->bytes, (unsigned long long)s->bytes);
	for (i = is_idle ? IDLE : P50; why[0] != '\0' && i <= (is_idle ? IDLE : P999); i++)
		bench_row_complain(&l->row[i], setups[v].name, why);
}

static void
run_slice(struct latency *l, unsigned v, bool is_idle, unsigned round)
{
	struct bench_cmd cmd = { .what = BENCH_WHAT_SLICE, .slice_ms = l->r->slice_ms,
	    .c = { .kind = is_idle ? BENCH_IDLE : BENCH_LATENCY, .n_bytes = N_BYTES } };
	struct bench_reply reply[BENCH_ROLES];
	const struct bench_reply *cl = &reply[BENCH_CLIENT];

	if (v == PINNED) {
		snprintf(cmd.server_knobs, sizeof(cmd.server_knobs), "net.isr.poll_idle_us=-1");
		snprintf(cmd.server_knobs_after, sizeof(cmd.server_knobs_after),
		    "net.isr.poll_idle_us=0");
	}
	bench_progress(l->r, is_idle ? "idle" : "request", setups[v].name, round + 1);
	if (!bench_variant_slice(&l->v[v], &cmd, reply)) {
		if (!bench_interrupted)
			bench_row_complain(&l->row[is_idle ? IDLE : P50], setups[v].name,
			    l->v[v].why);
		return;
	}
	check_slice(l, v, reply, is_idle);
	if (is_idle) {
		l->row[IDLE].sample[v][round] = 100.0 * (double)cl->cpu_ns /
		    (double)(cl->elapsed_ns + 1);
		return;
	}
	l->row[P50].sample[v][round] = cl->times.p50_ns / 1000;
	l->row[P99].sample[v][round] = cl->times.p99_ns / 1000;
	l->row[P999].sample[v][round] = cl->times.p999_ns / 1000;
}

/* Slices of all profiles; rows first to last are what they fill. */
static void
run_case(struct latency *l, bool is_idle, unsigned first, unsigned last)
{
	unsigned round, i, v;

	for (round = 0; round < BENCH_MAX_ROUNDS && !bench_is_over(l->r); round++) {
		for (i = 0; i < VARIANTS && !bench_interrupted; i++) {
			v = round % 2 ? VARIANTS - 1 - i : i;
			v = (v + round / 2) % VARIANTS;
			if (l->v[v].is_up)
				run_slice(l, v, is_idle, round);
		}
		for (i = first; i <= last; i++)
			l->row[i].rounds = round + 1;
	}
	for (i = first; i <= last && !bench_interrupted; i++) {
		for (v = 0; v < VARIANTS; v++)
			if (v != SHARED)
				bench_row_ratio(&l->row[i], v, SHARED);
		bench_row_print(l->r, &l->row[i]);
	}
}

static void
make_rows(struct latency *l)
{
	static const char *const row_names[ROWS] = { "request-p50", "request-p99", "request-p99.9",
		"idle" };
	unsigned i, v;

	for (i = 0; i < ROWS; i++) {
		l->row[i].name = row_names[i];
		l->row[i].unit = i == IDLE ? "% of a core" : "us";
		l->row[i].is_time = true;
		l->row[i].n_variants = VARIANTS;
		for (v = 0; v < VARIANTS; v++)
			l->row[i].variant[v] = setups[v].name;
	}
}

static void
run_latency(struct bench_run *r)
{
	static struct latency l;
	unsigned i, n = 0;

	l.r = r;
	make_rows(&l);
	for (i = 0; i < VARIANTS && !bench_interrupted; i++) {
		struct bench_setup su = { .link = setups[i].link, .n_netisrs = 1,
		    .profile = { setups[i].server, BENCH_PROFILE_SHARED } };

		bench_progress(r, "starting", setups[i].name, 0);
		if (!bench_variant_start(&l.v[i], &su, &r->o) && !bench_interrupted)
			fprintf(stderr, "darter bench: %s skipped: %s\n", setups[i].name,
			    l.v[i].why);
		n += l.v[i].is_up;
	}
	if (n > 0 && !bench_interrupted) {
		bench_plan(r);
		if (bench_may_run(r, "request"))
			run_case(&l, false, P50, P999);
		if (bench_may_run(r, "idle"))
			run_case(&l, true, IDLE, IDLE);
	}
	for (i = 0; i < VARIANTS; i++)
		bench_variant_stop(&l.v[i]);
}

const struct bench_def bench_def_latency = { "latency",
	"latency of a request and idle CPU by profile", false, names, ARRAY_SIZE(names),
	run_latency };
