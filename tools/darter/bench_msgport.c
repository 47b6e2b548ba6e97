/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `darter bench msgport`: what a message to a netisr costs, in nanoseconds, beside what two threads
 * need for the same without darter.
 *
 *   round-trip   a message and its answer, both cores poll; beside a cache line to and fro ("line")
 *   batch-64     one of 64 messages with one answer for all, beside a single one's round trip
 *   wake-up      the netisr sleeps before each message; beside a thread woken by an eventfd
 *   one-core     the same with sender and netisr on one core: two switches of threads
 *
 * Self-check: the netisr handled as many messages as were answered; a wake-up is one doorbell.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

static const struct msg_case {
	const char *name;
	struct {
		const char *name;
		enum bench_msg_mode mode;
	} variant[3];
	bool on_one_cpu;
	bool polls;
} cases[] = {
	{ "round-trip", { { "msgport", BENCH_MSG_ROUND_TRIP }, { "line", BENCH_MSG_LINE } },
	  false, true },
	{ "batch-64", { { "batched", BENCH_MSG_BATCH }, { "single", BENCH_MSG_ROUND_TRIP },
	  { "line", BENCH_MSG_LINE } }, false, true },
	{ "wake-up", { { "msgport", BENCH_MSG_WAKE }, { "eventfd", BENCH_MSG_EVENTFD } },
	  false, false },
	{ "one-core", { { "msgport", BENCH_MSG_WAKE }, { "eventfd", BENCH_MSG_EVENTFD } },
	  true, false },
};

static const struct bench_case_name names[] = {
	{ "round-trip", true, 2 },
	{ "batch-64", true, 3 },
	{ "wake-up", true, 2 },
	{ "one-core", true, 2 },
};

struct totals {
	uint64_t ops;
	uint64_t doorbells;
	uint64_t sleeps;
};

static bool
is_bare(enum bench_msg_mode mode)
{
	return mode == BENCH_MSG_LINE || mode == BENCH_MSG_EVENTFD;
}

static void
check_slice(struct bench_row *row, const struct msg_case *c, unsigned v,
    const struct bench_reply *cl)
{
	char why[BENCH_WHY_MAX] = "";
	uint64_t bells = cl->counters[BENCH_CTR_DOORBELLS];

	if (cl->failed != 0)
		snprintf(why, sizeof(why), "%u failed: %.200s", cl->failed, cl->why);
	else if (cl->ops == 0)
		snprintf(why, sizeof(why), "nothing done");
	else if (!is_bare(c->variant[v].mode) && cl->msgs < cl->ops)
		snprintf(why, sizeof(why), "%llu sent, %llu handled", (unsigned long long)cl->ops,
		    (unsigned long long)cl->msgs);
	else if (c->variant[v].mode == BENCH_MSG_WAKE && bells > cl->ops)
		snprintf(why, sizeof(why), "%llu messages, %llu doorbells",
		    (unsigned long long)cl->ops, (unsigned long long)bells);
	if (why[0] != '\0')
		bench_row_complain(row, row->variant[v], why);
}

static void
run_slice(struct bench_run *r, struct bench_variant *pair, const struct msg_case *c, unsigned v,
    unsigned round, struct bench_row *row, struct totals *t)
{
	struct bench_cmd cmd = { .what = BENCH_WHAT_SLICE, .slice_ms = r->slice_ms,
	    .c = { .kind = BENCH_MSG }, .msg_mode = c->variant[v].mode,
	    .on_one_cpu = c->on_one_cpu };
	struct bench_reply reply[BENCH_ROLES];
	const struct bench_reply *cl = &reply[BENCH_CLIENT];

	/* A netisr that polls would take the core from the bare pair. */
	if (c->polls && !is_bare(cmd.msg_mode))
		snprintf(cmd.knobs, sizeof(cmd.knobs), "net.isr.poll_idle_us=-1");
	snprintf(cmd.knobs_after, sizeof(cmd.knobs_after), "net.isr.poll_idle_us=0");
	bench_progress(r, c->name, row->variant[v], round + 1);
	if (!bench_variant_slice(pair, &cmd, reply)) {
		if (!bench_interrupted)
			bench_row_complain(row, row->variant[v], pair->why);
		return;
	}
	check_slice(row, c, v, cl);
	if (cl->ops != 0)
		row->sample[v][round] = (double)cl->elapsed_ns / (double)cl->ops;
	if (round == 0 || is_bare(cmd.msg_mode))
		return;
	t->ops += cl->ops;
	t->doorbells += cl->counters[BENCH_CTR_DOORBELLS];
	t->sleeps += cl->counters[BENCH_CTR_SLEEPS];
}

static void
fill_counters(struct bench_row *row, const struct totals *t)
{
	unsigned bells = bench_row_counter(row, "doorbells");
	unsigned sleeps = bench_row_counter(row, "sleeps"), v;

	for (v = 0; v < row->n_variants; v++) {
		if (t[v].ops == 0)
			continue;
		row->counter[bells].v[v] = (double)t[v].doorbells / (double)t[v].ops;
		row->counter[sleeps].v[v] = (double)t[v].sleeps / (double)t[v].ops;
	}
}

static void
run_case(struct bench_run *r, struct bench_variant *pair, const struct msg_case *c)
{
	struct totals totals[BENCH_ROW_VARIANTS] = { { 0 } };
	static struct bench_row row;
	unsigned n, round, i, v;

	memset(&row, 0, sizeof(row));
	row.name = c->name;
	row.unit = "ns";
	row.is_time = true;
	for (n = 0; n < ARRAY_SIZE(c->variant) && c->variant[n].name != NULL; n++)
		row.variant[n] = c->variant[n].name;
	row.n_variants = n;
	for (round = 0; round < BENCH_MAX_ROUNDS && pair->is_up && !bench_is_over(r); round++) {
		for (i = 0; i < n && pair->is_up && !bench_interrupted; i++) {
			v = (round % 2 ? n - 1 - i : i) + round / 2;
			v %= n;
			run_slice(r, pair, c, v, round, &row, &totals[v]);
		}
		row.rounds = round + 1;
	}
	if (bench_interrupted)
		return;
	fill_counters(&row, totals);
	for (v = 1; v < n; v++)
		bench_row_ratio(&row, 0, v);
	bench_row_print(r, &row);
}

static void
run_msgport(struct bench_run *r)
{
	struct bench_setup su = { .link = BENCH_RESPOND, .n_netisrs = 1, .is_unpinned = true,
	    .profile = { BENCH_PROFILE_SHARED, BENCH_PROFILE_SHARED } };
	struct bench_variant pair = { .name = "stack" };
	unsigned i;

	if (!bench_variant_start(&pair, &su, &r->o)) {
		fprintf(stderr, "darter bench: %s\n", pair.why);
		return;
	}
	bench_plan(r);
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		if (bench_may_run(r, cases[i].name))
			run_case(r, &pair, &cases[i]);
	bench_variant_stop(&pair);
}

const struct bench_def bench_def_msgport = { "msgport", "a message to a netisr and its answer",
	false, names, ARRAY_SIZE(names), run_msgport };
