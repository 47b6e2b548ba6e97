/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `darter bench ports`: connects per second towards one destination while 0 to 99.9 % of the local
 * ports towards it are held by other connections.
 *
 *   home, hash       net.inet.ip.portalgo of the library (home: the answer comes to the netisr that
 *                    chose; hash: any port, then the connect is forwarded)
 *   global, evenodd  one rover under one lock; Linux' scan: emulated (bench_portalgo.c) in front of
 *                    the library's connect, over a table that holds as many tuples
 *   kernel           Linux over the loopback of a namespace
 *   full, empty      home beside what is held, and towards a destination of which nothing is held;
 *                    X-empty the same for the others
 *
 *   fill0 … fill99.9 each netisr's half of the range is so full
 *   fill99-own       netisr 0's share alone is 99 % full, which is what it may choose from
 *   spill            its share is spent: each connect goes to the other netisr
 *   two-cores        both netisrs connect to one destination at once ("two"), or netisr 0 alone
 *   two-cores-global the same behind one lock
 *   lat-connect      lmbench's lat_connect: time of socket and connect, in microseconds
 *
 * Slices of all variants take turns. Self-check: no connect fails, and each that is counted was
 * established; with spill each was a spill.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

enum variant {
	FULL, EMPTY, HOME, HASH, GLOBAL, EVENODD, KERNEL, HASH_EMPTY, GLOBAL_EMPTY, EVENODD_EMPTY,
	KERNEL_EMPTY, VARIANTS
};

static const struct variant_def {
	const char *name;
	const char *knob;
	enum bench_portalgo algo;
	bool is_full;
	bool is_kernel;
	bool is_quick;
} variants[VARIANTS] = {
	[FULL] = { "full", "home", BENCH_PORT_STACK, true, false, true },
	[EMPTY] = { "empty", "home", BENCH_PORT_STACK, false, false, true },
	[HOME] = { "home", NULL, BENCH_PORT_STACK, true, false, true },	/* full, once more */
	[HASH] = { "hash", "hash", BENCH_PORT_STACK, true, false, true },
	[GLOBAL] = { "global", "home", BENCH_PORT_GLOBAL, true, false, true },
	[EVENODD] = { "evenodd", "home", BENCH_PORT_EVENODD, true, false, true },
	[KERNEL] = { "kernel", "", BENCH_PORT_STACK, true, true, true },
	[HASH_EMPTY] = { "hash-empty", "hash", BENCH_PORT_STACK, false, false, false },
	[GLOBAL_EMPTY] = { "global-empty", "home", BENCH_PORT_GLOBAL, false, false, false },
	[EVENODD_EMPTY] = { "evenodd-empty", "home", BENCH_PORT_EVENODD, false, false, false },
	[KERNEL_EMPTY] = { "kernel-empty", "", BENCH_PORT_STACK, false, true, false },
};

enum kind { FILL, OWN, TWO, LAT };

static const struct ports_case {
	const char *name;
	enum kind kind;
	uint32_t fill;		/* ten-thousandths; of OWN, netisr 0's share */
	bool has_many_ratios;	/* with --quick too */
	enum bench_portalgo algo;
} cases[] = {
	{ "fill0", FILL, 0, false, BENCH_PORT_STACK },
	{ "fill25", FILL, 2500, false, BENCH_PORT_STACK },
	{ "fill50", FILL, 5000, false, BENCH_PORT_STACK },
	{ "fill75", FILL, 7500, true, BENCH_PORT_STACK },
	{ "fill90", FILL, 9000, false, BENCH_PORT_STACK },
	{ "fill99", FILL, 9900, true, BENCH_PORT_STACK },
	{ "fill99.9", FILL, 9990, false, BENCH_PORT_STACK },
	{ "fill99-own", OWN, 9900, false, BENCH_PORT_STACK },
	{ "spill", OWN, 10000, false, BENCH_PORT_STACK },
	{ "two-cores", TWO, 0, false, BENCH_PORT_STACK },
	{ "two-cores-global", TWO, 0, false, BENCH_PORT_GLOBAL },
	{ "lat-connect", LAT, 0, true, BENCH_PORT_STACK },
};

/* In the order in which cases are dropped, last ones first, when time is short. */
static const struct bench_case_name names[] = {
	{ "fill99", true, VARIANTS - 1 },
	{ "fill0", true, VARIANTS - 1 },
	{ "fill75", true, VARIANTS - 1 },
	{ "fill99-own", true, 2 },
	{ "two-cores", true, 2 },
	{ "lat-connect", true, 5 },
	{ "spill", false, 2 },
	{ "fill50", false, VARIANTS - 1 },
	{ "fill90", false, VARIANTS - 1 },
	{ "fill99.9", false, VARIANTS - 1 },
	{ "fill25", false, VARIANTS - 1 },
	{ "two-cores-global", false, 2 },
};

/* What a variant's slices counted together, the first round's left out. */
struct totals {
	double times[4][BENCH_MAX_ROUNDS];	/* mean, sd, p99, p50: of each slice, us */
	uint64_t ops;
	uint64_t cycles;
	uint64_t probes;
	uint64_t counters[BENCH_CTRS];
};

struct ports {
	struct bench_run *r;
	struct bench_variant stack;
	struct bench_variant kernel;
	struct bench_row row;
	struct totals totals[VARIANTS];
};

/* ---- slices ---- */

static void
check_slice(struct ports *p, const struct ports_case *c, unsigned v, const struct bench_reply *cl,
    bool is_kernel)
{
	char why[BENCH_WHY_MAX] = "";

	if (cl->failed != 0)
		snprintf(why, sizeof(why), "%u failed: %.200s", cl->failed, cl->why);
	else if (cl->ops == 0)
		snprintf(why, sizeof(why), "nothing done");
	else if (!is_kernel && cl->counters[BENCH_CTR_ESTABLISHED] != cl->ops)
		snprintf(why, sizeof(why), "%llu connected, %llu established",
		    (unsigned long long)cl->ops,
		    (unsigned long long)cl->counters[BENCH_CTR_ESTABLISHED]);
	else if (c->fill == 10000 && v == FULL && cl->counters[BENCH_CTR_SPILLS] != cl->ops)
		snprintf(why, sizeof(why), "%llu connected, %llu spilled",
		    (unsigned long long)cl->ops,
		    (unsigned long long)cl->counters[BENCH_CTR_SPILLS]);
	if (why[0] != '\0')
		bench_row_complain(&p->row, p->row.variant[v], why);
}

static void
add_totals(struct totals *t, const struct bench_reply *cl, unsigned round)
{
	unsigned i;

	t->times[0][round] = cl->times.mean_ns / 1000;
	t->times[1][round] = cl->times.sd_ns / 1000;
	t->times[2][round] = cl->times.p99_ns / 1000;
	t->times[3][round] = cl->times.p50_ns / 1000;
	if (round == 0)
		return;
	t->ops += cl->ops;
	t->cycles += cl->cycles;
	t->probes += cl->probes;
	for (i = 0; i < BENCH_CTRS; i++)
		t->counters[i] += cl->counters[i];
}

/* A slice of a row's variant v. */
static void
run_slice(struct ports *p, const struct ports_case *c, unsigned v, struct bench_cmd *cmd,
    bool is_kernel, unsigned round)
{
	struct bench_variant *pair = is_kernel ? &p->kernel : &p->stack;
	struct bench_reply reply[BENCH_ROLES];
	const struct bench_reply *cl = &reply[BENCH_CLIENT];

	if (!pair->is_up)
		return;
	bench_progress(p->r, c->name, p->row.variant[v], round + 1);
	if (!bench_variant_slice(pair, cmd, reply)) {
		if (!bench_interrupted)
			bench_row_complain(&p->row, p->row.variant[v], pair->why);
		return;
	}
	check_slice(p, c, v, cl, is_kernel);
	add_totals(&p->totals[v], cl, round);
	if (c->kind == LAT)
		p->row.sample[v][round] = cl->times.p50_ns / 1000;
	else if (cl->elapsed_ns != 0)
		p->row.sample[v][round] = (double)cl->ops * 1e9 / (double)cl->elapsed_ns;
}

static void
make_cmd(const struct ports *p, const struct ports_case *c, struct bench_cmd *cmd)
{
	*cmd = (struct bench_cmd){ .what = BENCH_WHAT_SLICE, .slice_ms = p->r->slice_ms,
	    .c = { .kind = BENCH_HOLD, .inflight = c->fill }, .n_threads = 1 };
}

static void
set_knobs(struct bench_cmd *cmd, const char *algo)
{
	snprintf(cmd->knobs, sizeof(cmd->knobs),
	    "net.inet.ip.portalgo=%s net.isr.poll_idle_us=-1", algo);
	snprintf(cmd->knobs_after, sizeof(cmd->knobs_after), "net.isr.poll_idle_us=0");
}

/* The row's variant v, which is variants[def]. */
static void
run_variant(struct ports *p, const struct ports_case *c, unsigned v, enum variant def,
    unsigned round)
{
	const struct variant_def *d = &variants[def];
	struct bench_cmd cmd;

	if (d->knob == NULL)
		return;
	make_cmd(p, c, &cmd);
	cmd.portalgo = d->algo;
	cmd.dest = !d->is_full ? BENCH_DEST_EMPTY : c->kind == OWN ? BENCH_DEST_OWN :
	    c->kind == LAT ? BENCH_DEST_EMPTY : BENCH_DEST_FULL;
	set_knobs(&cmd, d->knob);
	run_slice(p, c, v, &cmd, d->is_kernel, round);
}

/* Connections up to the level, in the stack, in the emulated tables and in the kernel. */
static bool
fill(struct ports *p, const struct ports_case *c)
{
	struct bench_reply reply[BENCH_ROLES];
	struct bench_cmd cmd;
	unsigned k;

	make_cmd(p, c, &cmd);
	cmd.is_fill = true;
	cmd.dest = c->kind == OWN ? BENCH_DEST_OWN : BENCH_DEST_FULL;
	set_knobs(&cmd, "home");
	for (k = 0; k < (c->kind == OWN ? 1 : 2); k++) {
		struct bench_variant *pair = k == 0 ? &p->stack : &p->kernel;

		if (!pair->is_up)
			continue;
		bench_progress(p->r, c->name, "filling", 0);
		if (!bench_variant_slice(pair, &cmd, reply)) {
			bench_row_complain(&p->row, "filling", pair->why);
			return false;
		}
		if (reply[BENCH_CLIENT].failed != 0)
			bench_row_complain(&p->row, "filling", reply[BENCH_CLIENT].why);
		if (k == 0)
			snprintf(p->row.note, sizeof(p->row.note), "%llu connections held",
			    (unsigned long long)reply[BENCH_CLIENT].ops);
		else
			snprintf(p->row.note + strlen(p->row.note),
			    sizeof(p->row.note) - strlen(p->row.note), ", by the kernel %llu",
			    (unsigned long long)reply[BENCH_CLIENT].ops);
	}
	return p->stack.is_up;
}

/* ---- rows ---- */

static void
begin_row(struct ports *p, const struct ports_case *c)
{
	memset(&p->row, 0, sizeof(p->row));
	memset(p->totals, 0, sizeof(p->totals));
	p->row.name = c->name;
	p->row.unit = c->kind == LAT ? "us" : "connects/s";
	p->row.is_time = c->kind == LAT;
	p->row.is_undrawn = c->kind != FILL;
}

static double
a_connect(uint64_t n, const struct totals *t)
{
	return t->ops == 0 || n == UINT64_MAX ? NAN : (double)n / (double)t->ops;
}

/* is_kernel: nothing is counted there but time. */
static void
fill_counters(struct ports *p, const bool *is_kernel, const enum bench_portalgo *algo)
{
	static const char *const times[] = { "mean_us", "sd_us", "p99_us", "p50_us" };
	unsigned v, i, at;

	for (i = 0; i < ARRAY_SIZE(times); i++) {
		at = bench_row_counter(&p->row, times[i]);
		for (v = 0; v < p->row.n_variants; v++)
			if (p->totals[v].ops != 0)
				p->row.counter[at].v[v] = bench_median(p->totals[v].times[i] + 1,
				    p->row.rounds - 1);
	}
	at = bench_row_counter(&p->row, "cycles");
	for (v = 0; v < p->row.n_variants; v++)
		p->row.counter[at].v[v] = a_connect(p->totals[v].cycles, &p->totals[v]);
	at = bench_row_counter(&p->row, "probes");
	for (v = 0; v < p->row.n_variants; v++)
		if (!is_kernel[v])
			p->row.counter[at].v[v] = a_connect(algo[v] == BENCH_PORT_STACK ?
			    p->totals[v].counters[BENCH_CTR_PROBES] : p->totals[v].probes,
			    &p->totals[v]);
	for (i = 0; i < 2; i++) {
		at = bench_row_counter(&p->row, i == 0 ? "forwards" : "spills");
		for (v = 0; v < p->row.n_variants; v++)
			if (!is_kernel[v])
				p->row.counter[at].v[v] = a_connect(p->totals[v].counters[i == 0 ?
				    BENCH_CTR_FORWARDS : BENCH_CTR_SPILLS], &p->totals[v]);
	}
}

static void
run_rounds(struct ports *p, const struct ports_case *c, const enum variant *defs, unsigned n)
{
	bool is_kernel[BENCH_ROW_VARIANTS];
	enum bench_portalgo algo[BENCH_ROW_VARIANTS];
	unsigned round, i, v;

	p->row.n_variants = n;
	for (v = 0; v < n; v++) {
		p->row.variant[v] = variants[defs[v]].name;
		is_kernel[v] = variants[defs[v]].is_kernel;
		algo[v] = variants[defs[v]].algo;
	}
	for (round = 0; round < BENCH_MAX_ROUNDS && !bench_is_over(p->r); round++) {
		for (i = 0; i < n && !bench_interrupted; i++) {
			/* Whom one follows changes, or the one after a slow one would suffer. */
			v = (round % 2 ? n - 1 - i : i) + round / 2;
			v %= n;
			run_variant(p, c, v, defs[v], round);
		}
		p->row.rounds = round + 1;
	}
	if (p->row.rounds > 1)
		fill_counters(p, is_kernel, algo);
}

/* Home is what was measured as full. */
static void
copy_home(struct ports *p)
{
	unsigned i;

	memcpy(p->row.sample[HOME], p->row.sample[FULL], sizeof(p->row.sample[HOME]));
	for (i = 0; i < p->row.n_counters; i++)
		p->row.counter[i].v[HOME] = p->row.counter[i].v[FULL];
}

static void
run_fill(struct ports *p, const struct ports_case *c)
{
	static const enum variant all[] = { FULL, EMPTY, HOME, HASH, GLOBAL, EVENODD, KERNEL,
		HASH_EMPTY, GLOBAL_EMPTY, EVENODD_EMPTY, KERNEL_EMPTY };

	if (!fill(p, c))
		return;
	run_rounds(p, c, all, p->r->o.is_quick ? HASH_EMPTY : VARIANTS);
	copy_home(p);
	bench_row_ratio(&p->row, FULL, EMPTY);
	if (c->has_many_ratios || !p->r->o.is_quick) {
		bench_row_ratio(&p->row, HOME, EVENODD);
		bench_row_ratio(&p->row, HOME, GLOBAL);
	}
	if (!p->r->o.is_quick) {
		bench_row_ratio(&p->row, HOME, HASH);
		bench_row_ratio(&p->row, HOME, KERNEL);
	}
	bench_row_ratio(&p->row, HASH, HASH_EMPTY);
	bench_row_ratio(&p->row, GLOBAL, GLOBAL_EMPTY);
	bench_row_ratio(&p->row, EVENODD, EVENODD_EMPTY);
	bench_row_ratio(&p->row, KERNEL, KERNEL_EMPTY);
}

static void
run_own(struct ports *p, const struct ports_case *c)
{
	static const enum variant two[] = { FULL, EMPTY };

	if (!fill(p, c))
		return;
	run_rounds(p, c, two, ARRAY_SIZE(two));
	bench_row_ratio(&p->row, 0, 1);
}

static void
run_lat(struct ports *p, const struct ports_case *c)
{
	static const enum variant some[] = { EMPTY, HASH, GLOBAL, EVENODD, KERNEL };

	run_rounds(p, c, some, ARRAY_SIZE(some));
	p->row.variant[0] = "home";
	bench_row_ratio(&p->row, 2, 0);
	bench_row_ratio(&p->row, 4, 0);
	if (p->r->o.is_quick)
		return;
	bench_row_ratio(&p->row, 1, 0);
	bench_row_ratio(&p->row, 3, 0);
}

static void
run_two(struct ports *p, const struct ports_case *c)
{
	const bool is_kernel[] = { false, false };
	const enum bench_portalgo algo[] = { c->algo, c->algo };
	struct bench_cmd cmd;
	unsigned round, i, v;

	p->row.n_variants = 2;
	p->row.variant[0] = "two";
	p->row.variant[1] = "one";
	for (round = 0; round < BENCH_MAX_ROUNDS && !bench_is_over(p->r); round++) {
		for (i = 0; i < 2 && !bench_interrupted; i++) {
			v = round % 2 ? 1 - i : i;
			make_cmd(p, c, &cmd);
			cmd.portalgo = c->algo;
			cmd.dest = BENCH_DEST_EMPTY;
			cmd.n_threads = 2 - v;
			set_knobs(&cmd, "home");
			run_slice(p, c, v, &cmd, false, round);
		}
		p->row.rounds = round + 1;
	}
	if (p->row.rounds > 1)
		fill_counters(p, is_kernel, algo);
	bench_row_ratio(&p->row, 0, 1);
}

static void
run_case(struct ports *p, const struct ports_case *c)
{
	begin_row(p, c);
	switch (c->kind) {
	case FILL: run_fill(p, c); break;
	case OWN: run_own(p, c); break;
	case TWO: run_two(p, c); break;
	case LAT: run_lat(p, c); break;
	}
	if (!bench_interrupted)
		bench_row_print(p->r, &p->row);
}

static void
run_ports(struct bench_run *r)
{
	struct bench_setup stack = { .link = BENCH_RESPOND, .n_netisrs = BENCH_NETISRS,
	    .profile = { BENCH_PROFILE_ATTACHED, BENCH_PROFILE_ATTACHED }, .is_unpinned = true };
	struct bench_setup kernel = { .link = BENCH_KERNEL_LOOP, .is_unpinned = true };
	static struct ports p;
	unsigned i;

	p.r = r;
	bench_progress(r, "starting", "", 0);
	if (!bench_variant_start(&p.stack, &stack, &r->o)) {
		fprintf(stderr, "darter bench: %s\n", p.stack.why);
		return;
	}
	if (!bench_variant_start(&p.kernel, &kernel, &r->o))
		fprintf(stderr, "darter bench: kernel skipped: %s\n", p.kernel.why);
	bench_plan(r);
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		if (bench_may_run(r, cases[i].name))
			run_case(&p, &cases[i]);
	bench_variant_stop(&p.stack);
	bench_variant_stop(&p.kernel);
}

const struct bench_def bench_def_ports = { "ports",
	"connects per second by share of the local ports in use", true, names, ARRAY_SIZE(names),
	run_ports };
