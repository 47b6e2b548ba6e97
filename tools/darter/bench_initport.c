/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `darter bench connect`, cases initport-*: what it brings that a connection begins on a netisr
 * near its thread (kern.ipc.rand_initport near, "on") and not always on netisr 0 (zero, "off"), the
 * change that DragonFly made in 2013 (1c92f416). Two netisrs in one stack, the knob set between
 * slices of one run, on, off, off, on. The peer is the stateless responder, which costs next to
 * nothing, or a second stack over the cable or memif.
 *
 *   -nonblocking   kq_connect_client: a thread on each CPU, 32 connections under way in each
 *   -blocking      connect_client: 256 threads
 *   -attached      as -nonblocking, and each thread runs a netisr
 *   (plain)        net.inet.ip.portalgo hash in both variants: as the world was in 2013
 *   -home          the stack's own choice of ports in both
 *
 * TIME_WAIT lasts 100 ms, so that no record is evicted. What a connection costs in messages,
 * forwards, sleeps and so on, and how the work is spread over the netisrs, stands beside the rate:
 * on two cores these tell more than the time does. Self-check: connections counted are connections
 * that were established, with a server those that it accepted; no record evicted. Segments sent
 * again tell of threads that waited for a CPU, not of an error: they are counted. The kernel's
 * column is the same program over veth, server included.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

#define THREADS_BLOCKING	256
#define INFLIGHT		32

enum { ON, OFF, KERNEL, VARIANTS };

static const struct initport_case {
	const char *name;
	enum bench_calls calls;
	enum bench_link link;
	const char *portalgo;
	bool has_kernel;
} cases[] = {
	{ "initport-nonblocking", BENCH_NONBLOCKING, BENCH_RESPOND, "hash", true },
	{ "initport-blocking", BENCH_BLOCKING, BENCH_RESPOND, "hash", true },
	{ "initport-nonblocking-home", BENCH_NONBLOCKING, BENCH_RESPOND, "home", true },
	{ "initport-blocking-home", BENCH_BLOCKING, BENCH_RESPOND, "home", true },
	{ "initport-attached-home", BENCH_ATTACHED, BENCH_RESPOND, "home", false },
	{ "initport-nonblocking-cable", BENCH_NONBLOCKING, BENCH_CABLE, "hash", false },
	{ "initport-nonblocking-memif", BENCH_NONBLOCKING, BENCH_MEMIF, "hash", false },
};

/* What a variant's slices counted together, the first round's left out. */
struct totals {
	uint64_t ops;
	uint64_t counters[BENCH_CTRS];
	uint64_t msgs[BENCH_NETISRS];
	uint64_t segs[BENCH_NETISRS];
};

struct initport {
	struct bench_run *r;
	struct bench_variant stack;	/* over c->link */
	struct bench_variant kernel;
	const struct initport_case *c;
	struct bench_row row;
	struct totals totals[VARIANTS];
};

/* "" or what is wrong with a slice. */
static void
check_slice(const struct initport *p, unsigned v, const struct bench_reply reply[BENCH_ROLES],
    char *why)
{
	const struct bench_reply *cl = &reply[BENCH_CLIENT], *s = &reply[BENCH_SERVER];
	const uint64_t *n = cl->counters;
	bool has_server = v == KERNEL || p->stack.has_server;

	why[0] = '\0';
	if (cl->failed != 0)
		snprintf(why, BENCH_WHY_MAX, "%u failed: %.200s", cl->failed, cl->why);
	else if (cl->ops == 0)
		snprintf(why, BENCH_WHY_MAX, "nothing done");
	else if (has_server && s->failed != 0)
		snprintf(why, BENCH_WHY_MAX, "%u failed: %.200s", s->failed, s->why);
	else if (has_server && s->ops != cl->ops)
		snprintf(why, BENCH_WHY_MAX, "%llu connected, %llu accepted",
		    (unsigned long long)cl->ops, (unsigned long long)s->ops);
	else if (v != KERNEL && n[BENCH_CTR_ESTABLISHED] != cl->ops)
		snprintf(why, BENCH_WHY_MAX, "%llu connected, %llu established",
		    (unsigned long long)cl->ops, (unsigned long long)n[BENCH_CTR_ESTABLISHED]);
	else if (v != KERNEL && n[BENCH_CTR_EVICTED] != 0)
		snprintf(why, BENCH_WHY_MAX, "%llu TIME_WAIT records evicted",
		    (unsigned long long)n[BENCH_CTR_EVICTED]);
}

static void
add_totals(struct totals *t, const struct bench_reply *cl)
{
	unsigned i;

	t->ops += cl->ops;
	for (i = 0; i < BENCH_CTRS; i++)
		t->counters[i] = cl->counters[i] == UINT64_MAX ? UINT64_MAX :
		    t->counters[i] + cl->counters[i];
	for (i = 0; i < BENCH_NETISRS; i++) {
		t->msgs[i] += cl->netisr_msgs[i];
		t->segs[i] += cl->netisr_segs[i];
	}
}

static void
run_slice(struct initport *p, unsigned v, unsigned round)
{
	struct bench_cmd cmd = { .what = BENCH_WHAT_SLICE, .slice_ms = p->r->slice_ms,
	    .c = { .kind = BENCH_CHURN, .inflight = INFLIGHT }, .calls = p->c->calls };
	struct bench_variant *pair = v == KERNEL ? &p->kernel : &p->stack;
	struct bench_reply reply[BENCH_ROLES];
	char why[BENCH_WHY_MAX];

	cmd.n_threads = p->c->calls == BENCH_BLOCKING ? THREADS_BLOCKING : BENCH_NETISRS;
	snprintf(cmd.knobs, sizeof(cmd.knobs),
	    "kern.ipc.rand_initport=%s net.inet.ip.portalgo=%s%s", v == ON ? "near" : "zero",
	    p->c->portalgo, p->c->calls == BENCH_ATTACHED ? " net.isr.poll_idle_us=-1" : "");
	snprintf(cmd.knobs_after, sizeof(cmd.knobs_after), "net.isr.poll_idle_us=0");
	bench_progress(p->r, p->c->name, p->row.variant[v], round + 1);
	if (!bench_variant_slice(pair, &cmd, reply)) {
		if (!bench_interrupted)
			bench_row_complain(&p->row, p->row.variant[v], pair->why);
		return;
	}
	check_slice(p, v, reply, why);
	if (why[0] != '\0')
		bench_row_complain(&p->row, p->row.variant[v], why);
	if (reply[BENCH_CLIENT].elapsed_ns == 0)
		return;
	p->row.sample[v][round] = (double)reply[BENCH_CLIENT].ops * 1e9 /
	    (double)reply[BENCH_CLIENT].elapsed_ns;
	if (round > 0)
		add_totals(&p->totals[v], &reply[BENCH_CLIENT]);
}

static double
share(const uint64_t v[BENCH_NETISRS])
{
	return v[0] + v[1] == 0 ? NAN : 100.0 * (double)v[0] / (double)(v[0] + v[1]);
}

static void
fill_counters(struct initport *p)
{
	static const struct {
		const char *name;
		enum bench_counter counter;
	} columns[] = {
		{ "msgs", BENCH_CTR_MSGS },
		{ "forwards", BENCH_CTR_FORWARDS },
		{ "sleeps", BENCH_CTR_SLEEPS },
		{ "call_sleeps", BENCH_CTR_CALL_SLEEPS },
		{ "doorbells", BENCH_CTR_DOORBELLS },
		{ "allocs", BENCH_CTR_ALLOCS },
		{ "probes", BENCH_CTR_PROBES },
		{ "segs_rcvd", BENCH_CTR_SEGS },
		{ "resent", BENCH_CTR_RETRANSMITS },
	};
	unsigned i, v, at;

	for (i = 0; i < ARRAY_SIZE(columns); i++) {
		at = bench_row_counter(&p->row, columns[i].name);
		for (v = ON; v <= OFF; v++) {
			uint64_t n = p->totals[v].counters[columns[i].counter];

			if (p->totals[v].ops != 0 && n != UINT64_MAX)
				p->row.counter[at].v[v] = (double)n / (double)p->totals[v].ops;
		}
	}
	at = bench_row_counter(&p->row, "msgs0_%");
	for (v = ON; v <= OFF; v++)
		p->row.counter[at].v[v] = share(p->totals[v].msgs);
	at = bench_row_counter(&p->row, "segs0_%");
	for (v = ON; v <= OFF; v++)
		p->row.counter[at].v[v] = share(p->totals[v].segs);
}

static void
run_case(struct initport *p)
{
	bool has_kernel = p->c->has_kernel && p->kernel.is_up;
	unsigned n = has_kernel ? VARIANTS : KERNEL, round, i, v;

	memset(&p->row, 0, sizeof(p->row));
	memset(p->totals, 0, sizeof(p->totals));
	p->row.name = p->c->name;
	p->row.unit = "connections/s";
	p->row.link_pps = p->stack.raw_pps;
	p->row.n_variants = n;
	p->row.variant[ON] = "on";
	p->row.variant[OFF] = "off";
	p->row.variant[KERNEL] = "kernel";
	for (round = 0; round < BENCH_MAX_ROUNDS && !bench_is_over(p->r); round++) {
		for (i = 0; i < n && !bench_interrupted; i++) {
			v = (round % 2 ? n - 1 - i : i) + round / 2;
			v %= n;
			if (v == KERNEL ? p->kernel.is_up : p->stack.is_up)
				run_slice(p, v, round);
		}
		p->row.rounds = round + 1;
	}
	if (bench_interrupted)
		return;
	bench_row_ratio(&p->row, ON, OFF);
	if (!p->r->o.is_quick)
		bench_row_ratio(&p->row, ON, KERNEL);
	fill_counters(p);
	snprintf(p->row.note, sizeof(p->row.note), "counts are per connection; msgs0_%%, segs0_%%: "
	    "netisr 0's share of the work; portalgo %s", p->c->portalgo);
	bench_row_print(p->r, &p->row);
}

/* The pair that the case needs; another one's is ended. */
static bool
start_pair(struct initport *p, enum bench_link *now)
{
	struct bench_setup su = { .link = p->c->link, .n_netisrs = BENCH_NETISRS,
	    .profile = { BENCH_PROFILE_SHARED, BENCH_PROFILE_SHARED }, .is_unpinned = true,
	    .more = { "sysctl.net.inet.tcp.msl_ms=50" } };

	if (p->stack.is_up && *now == p->c->link)
		return true;
	bench_variant_stop(&p->stack);
	memset(&p->stack, 0, sizeof(p->stack));
	*now = p->c->link;
	bench_progress(p->r, "starting", p->c->name, 0);
	p->stack.name = p->c->link == BENCH_CABLE ? "cable" : "memif";
	if (bench_variant_start(&p->stack, &su, &p->r->o)) {
		if (p->stack.has_server)
			p->stack.raw_pps = bench_link_frames(p->r, &p->stack);
		return true;
	}
	fprintf(stderr, "darter bench: %s: %s\n", p->c->name, p->stack.why);
	return false;
}

static void
start_kernel(struct initport *p)
{
	struct bench_setup su = { .link = BENCH_KERNEL, .is_unpinned = true };
	unsigned i;
	bool is_needed = false;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		is_needed |= cases[i].has_kernel && bench_is_chosen(p->r, cases[i].name);
	if (!is_needed || !bench_list_has(p->r->o.variants, "kernel"))
		return;
	if (!bench_variant_start(&p->kernel, &su, &p->r->o))
		fprintf(stderr, "darter bench: kernel: %s\n", p->kernel.why);
}

void
bench_initport_run(struct bench_run *r)
{
	static struct initport p;
	enum bench_link now = BENCH_VARIANTS;
	unsigned i;

	p.r = r;
	start_kernel(&p);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		p.c = &cases[i];
		if (bench_may_run(r, p.c->name) && start_pair(&p, &now))
			run_case(&p);
	}
	bench_variant_stop(&p.stack);
	bench_variant_stop(&p.kernel);
}
