/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `darter bench rr` and `connect`: requests and connections per second, darter over its links
 * beside the kernel over veth and over loopback, in one run.
 *
 * Method. All variants are up all the time, only one runs. A round is one slice of each; odd rounds
 * go backwards and the start moves on, so a drift of the machine's speed hits all variants alike.
 * The first round warms up and is not counted. A ratio is the median over rounds of the ratio
 * within the round. Each slice checks itself: what the client counts is what the server accepted
 * and echoed; what differs is shown in the row, so that a faster wrong answer cannot pass. Before
 * the rows each link says what it carries by itself: frames without a protocol, then datagrams.
 */
#include <stdio.h>
#include <string.h>

#include "bench.h"

#define LINK_SLICES	3
#define LINK_SLICE_MS	100
/*
 * TIME_WAIT lasts twice this: half a second, since the records of 60 would not fit the table. The
 * kernel keeps its own, and reuses the ports after a second.
 */
#define MSL_MS		"250"

static const struct bench_case rr_cases[] = {
	{ .name = "rr-1", .kind = BENCH_RR, .n_bytes = 1 },
	{ .name = "rr-64", .kind = BENCH_RR, .n_bytes = 64 },
	{ .name = "rr-1k", .kind = BENCH_RR, .n_bytes = 1024 },
	{ .name = "rr-16k", .kind = BENCH_RR, .n_bytes = 16384 },
};

static const struct bench_case connect_cases[] = {
	{ .name = "connect-w1", .kind = BENCH_CONNECT, .inflight = 1 },
	{ .name = "connect-w16", .kind = BENCH_CONNECT, .inflight = 16 },
	{ .name = "crr-w1", .kind = BENCH_CRR, .inflight = 1 },
	{ .name = "crr-w16", .kind = BENCH_CRR, .inflight = 16 },
	{ .name = "connect-w64", .kind = BENCH_CONNECT, .inflight = 64 },
	{ .name = "connect-rst-w16", .kind = BENCH_CONNECT, .inflight = 16, .is_reset = true },
	{ .name = "crr-w64", .kind = BENCH_CRR, .inflight = 64 },
};

/* A case of its bench, and how many slices a round of it has at most. */
static const struct bench_case_name rr_names[] = {
	{ "rr-1", true, BENCH_VARIANTS },
	{ "rr-64", true, BENCH_VARIANTS },
	{ "rr-1k", true, BENCH_VARIANTS },
	{ "rr-16k", true, BENCH_VARIANTS },
};

static const struct bench_case_name connect_names[] = {
	{ "connect-w16", true, BENCH_VARIANTS },
	{ "crr-w16", true, BENCH_VARIANTS },
	{ "initport-nonblocking", true, 3 },
	{ "initport-blocking", true, 3 },
	{ "initport-nonblocking-home", true, 3 },
	{ "initport-blocking-home", true, 3 },
	{ "initport-attached-home", false, 2 },
	{ "initport-nonblocking-cable", false, 2 },
	{ "initport-nonblocking-memif", false, 2 },
	{ "connect-w1", false, BENCH_VARIANTS },
	{ "crr-w1", false, BENCH_VARIANTS },
	{ "connect-w64", false, BENCH_VARIANTS },
	{ "connect-rst-w16", false, BENCH_VARIANTS },
	{ "crr-w64", false, BENCH_VARIANTS },
};

/* The links' pairs of a run. */
struct links {
	struct bench_run *r;
	struct bench_variant v[BENCH_VARIANTS];
};

/* What the two ends must agree on. "" or what they don't. */
static void
check_slice(const struct bench_case *c, const struct bench_reply reply[BENCH_ROLES], char *why)
{
	const struct bench_reply *s = &reply[BENCH_SERVER], *cl = &reply[BENCH_CLIENT];

	why[0] = '\0';
	if (cl->failed)
		snprintf(why, BENCH_WHY_MAX, "%u failed: %.200s", cl->failed, cl->why);
	else if (s->failed)
		snprintf(why, BENCH_WHY_MAX, "%u failed: %.200s", s->failed, s->why);
	else if (c->kind != BENCH_RR && s->ops != cl->ops)
		snprintf(why, BENCH_WHY_MAX, "%llu connected, %llu accepted",
		    (unsigned long long)cl->ops, (unsigned long long)s->ops);
	else if (s->bytes != cl->bytes)
		snprintf(why, BENCH_WHY_MAX, "%llu bytes sent and read back, %llu echoed",
		    (unsigned long long)cl->bytes, (unsigned long long)s->bytes);
	else if (cl->ops == 0)
		snprintf(why, BENCH_WHY_MAX, "nothing done");
	else if (cl->counters[BENCH_CTR_EVICTED] != 0 || s->counters[BENCH_CTR_EVICTED] != 0)
		snprintf(why, BENCH_WHY_MAX, "TIME_WAIT records evicted");
}

/* What a connection's packets were, and who keeps its TIME_WAIT. */
static void
note_counts(const struct bench_reply reply[BENCH_ROLES], unsigned vi, struct bench_samples *s)
{
	unsigned i;

	s->ops[vi] += reply[BENCH_CLIENT].ops;
	s->pkts[vi] += reply[BENCH_CLIENT].netisr_segs[0];
	for (i = 0; i < BENCH_ROLES; i++)
		if (reply[i].timewait > s->timewait[vi][i])
			s->timewait[vi][i] = reply[i].timewait;
}

static void
run_slice(struct links *l, const struct bench_case *c, unsigned vi, unsigned round,
    struct bench_samples *s)
{
	struct bench_cmd cmd = { .what = BENCH_WHAT_SLICE, .slice_ms = l->r->slice_ms, .c = *c };
	struct bench_reply reply[BENCH_ROLES];
	char why[BENCH_WHY_MAX];

	bench_progress(l->r, c->name, l->v[vi].name, round + 1);
	if (!bench_variant_slice(&l->v[vi], &cmd, reply)) {
		if (!bench_interrupted && s->selfcheck[0] == '\0')
			snprintf(s->selfcheck, sizeof(s->selfcheck), "%s: %.200s", l->v[vi].name,
			    l->v[vi].why);
		return;
	}
	check_slice(c, reply, why);
	if (why[0] != '\0' && s->selfcheck[0] == '\0')
		snprintf(s->selfcheck, sizeof(s->selfcheck), "%s: %.200s", l->v[vi].name, why);
	if (reply[BENCH_CLIENT].elapsed_ns > 0)
		s->rate[vi][round] = (double)reply[BENCH_CLIENT].ops * 1e9 /
		    (double)reply[BENCH_CLIENT].elapsed_ns;
	if (round > 0)
		note_counts(reply, vi, s);
}

/* All rounds of a case. */
static void
run_case(struct links *l, const struct bench_case *c)
{
	static struct bench_samples s;
	unsigned round, i, at;

	memset(&s, 0, sizeof(s));
	for (round = 0; round < BENCH_MAX_ROUNDS && !bench_is_over(l->r); round++) {
		for (i = 0; i < BENCH_VARIANTS && !bench_interrupted; i++) {
			at = round % 2 ? BENCH_VARIANTS - 1 - i : i;
			at = (at + round / 2) % BENCH_VARIANTS;
			if (l->v[at].is_up)
				run_slice(l, c, at, round, &s);
		}
		s.rounds = round + 1;
	}
	bench_progress_end(l->r);
	if (bench_interrupted)
		return;
	if (s.rounds < 2)
		fprintf(stderr, "darter bench: %s left out: the time is up\n", c->name);
	else
		bench_print_case(l->r, c, l->v, &s);
}

/* Best of a few slices; `timer` is the end whose time counts. */
static double
measure(struct bench_run *r, struct bench_variant *v, const struct bench_case *c,
    enum bench_role timer)
{
	struct bench_cmd cmd = { .what = BENCH_WHAT_SLICE, .slice_ms = LINK_SLICE_MS, .c = *c };
	struct bench_reply reply[BENCH_ROLES] = { 0 };
	double pps, best = 0;
	unsigned i;

	for (i = 0; i < LINK_SLICES && v->is_up && !bench_interrupted; i++) {
		bench_progress(r, c->name, v->name, i + 1);
		if (!bench_variant_slice(v, &cmd, reply))
			break;
		/* More than was sent: leftovers of another slice are among them. */
		if (reply[BENCH_SERVER].ops > reply[BENCH_CLIENT].ops ||
		    reply[timer].elapsed_ns == 0)
			continue;
		pps = (double)reply[BENCH_SERVER].ops * 1e9 / (double)reply[timer].elapsed_ns;
		if (pps > best)
			best = pps;
	}
	if (v->is_up && best == 0)
		fprintf(stderr, "darter bench: %s: %s not measured: %s%s\n", v->name, c->name,
		    reply[BENCH_SERVER].why, reply[BENCH_CLIENT].why);
	bench_progress_end(r);
	return best;
}

double
bench_link_frames(struct bench_run *r, struct bench_variant *v)
{
	static const struct bench_case raw = { .name = "frames", .kind = BENCH_RAW };

	return measure(r, v, &raw, BENCH_SERVER);
}

static void
measure_link(struct links *l, struct bench_variant *v)
{
	static const struct bench_case udp = { .name = "datagrams", .kind = BENCH_UDP };

	v->raw_pps = bench_link_frames(l->r, v);
	v->udp_pps = measure(l->r, v, &udp, BENCH_CLIENT);
}

static unsigned
start_variants(struct links *l)
{
	unsigned i, n = 0;

	for (i = 0; i < BENCH_VARIANTS && !bench_interrupted; i++) {
		struct bench_setup su = { .link = i, .n_netisrs = 1,
		    .more = { "sysctl.net.inet.tcp.msl_ms=" MSL_MS } };

		if (!l->v[i].is_wanted)
			continue;
		bench_progress(l->r, "starting", l->v[i].name, 0);
		if (bench_variant_start(&l->v[i], &su, &l->r->o))
			measure_link(l, &l->v[i]);
		n += l->v[i].is_up;
	}
	bench_progress_end(l->r);
	return n;
}

static void
run_links(struct bench_run *r, const struct bench_case *cases, unsigned n_cases)
{
	static const char *const names[] = { "cable", "memif", "vhost", "kernel", "loopback" };
	static struct links l;
	unsigned i, n;

	l.r = r;
	for (i = 0; i < BENCH_VARIANTS; i++) {
		l.v[i].name = names[i];
		l.v[i].is_wanted = bench_list_has(r->o.variants, names[i]);
	}
	n = start_variants(&l);
	if (n > 0 && !bench_interrupted) {
		bench_plan(r);
		bench_print_head(&r->o, r->def->name, l.v);
		for (i = 0; i < n_cases; i++)
			if (bench_may_run(r, cases[i].name))
				run_case(&l, &cases[i]);
		bench_print_tail(&r->o, l.v);
	}
	for (i = 0; i < BENCH_VARIANTS; i++) {
		bench_variant_stop(&l.v[i]);
		if (n == 0 && l.v[i].is_wanted && !bench_interrupted)
			fprintf(stderr, "darter bench: %s: %s\n", l.v[i].name, l.v[i].why);
	}
}

static void
run_rr(struct bench_run *r)
{
	run_links(r, rr_cases, ARRAY_SIZE(rr_cases));
}

static void
run_connect(struct bench_run *r)
{
	unsigned i, n = 0;

	for (i = 0; i < ARRAY_SIZE(connect_cases); i++)
		n += bench_is_chosen(r, connect_cases[i].name);
	if (n > 0)
		run_links(r, connect_cases, ARRAY_SIZE(connect_cases));
	else
		bench_plan(r);
	if (!bench_interrupted)
		bench_initport_run(r);
}

const struct bench_def bench_def_rr = { "rr", "requests and responses over one connection",
	false, rr_names, ARRAY_SIZE(rr_names), run_rr };
const struct bench_def bench_def_connect = { "connect", "connections begun, used and closed",
	false, connect_names, ARRAY_SIZE(connect_names), run_connect };
