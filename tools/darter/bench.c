/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `darter bench`: requests and connections per second, darter over its links beside the kernel over
 * veth, in one run.
 *
 * Method. All variants are up all the time, only one runs. A round is one slice of each; odd rounds
 * go backwards and the start moves on, so a drift of the machine's speed hits all variants alike.
 * The first round warms up and is not counted. A ratio is the median over rounds of the ratio
 * within the round. Each slice checks itself: what the client counts is what the server accepted
 * and echoed; what differs is shown in the row, so that a faster wrong answer cannot pass.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "commands.h"

#define DEFAULT_SLICE_MS	200
#define MIN_SLICE_MS		50
#define MAX_SLICE_MS		500
#define OVERHEAD_MS		18	/* a slice's beginning and end */
#define QUICK_SECONDS		75.0	/* aimed at */
#define QUICK_MAX_SECONDS	115.0	/* two minutes with start and end */
#define UDP_SLICES		3
#define UDP_SLICE_MS		100

volatile sig_atomic_t bench_interrupted;

static const struct bench_case rr_cases[] = {
	{ .name = "rr-1", .kind = BENCH_RR, .n_bytes = 1, .is_quick = true },
	{ .name = "rr-64", .kind = BENCH_RR, .n_bytes = 64, .is_quick = true },
	{ .name = "rr-1k", .kind = BENCH_RR, .n_bytes = 1024, .is_quick = true },
	{ .name = "rr-16k", .kind = BENCH_RR, .n_bytes = 16384, .is_quick = true },
};

static const struct bench_case connect_cases[] = {
	{ .name = "connect-w1", .kind = BENCH_CONNECT, .inflight = 1, .is_quick = true },
	{ .name = "connect-w16", .kind = BENCH_CONNECT, .inflight = 16, .is_quick = true },
	{ .name = "crr-w1", .kind = BENCH_CRR, .inflight = 1, .is_quick = true },
	{ .name = "crr-w16", .kind = BENCH_CRR, .inflight = 16, .is_quick = true },
	{ .name = "connect-w64", .kind = BENCH_CONNECT, .inflight = 64 },
	{ .name = "connect-rst-w16", .kind = BENCH_CONNECT, .inflight = 16, .is_reset = true },
	{ .name = "crr-w64", .kind = BENCH_CRR, .inflight = 64 },
};

static const struct bench_def {
	const char *name;
	const char *text;
	const struct bench_case *cases;
	unsigned n_cases;
} benches[] = {
	{ "rr", "request and response over one connection", rr_cases, ARRAY_SIZE(rr_cases) },
	{ "connect", "connections begun, used and closed", connect_cases,
	  ARRAY_SIZE(connect_cases) },
};

/* A run of one bench. */
struct run {
	const struct bench_def *def;
	struct bench_options o;
	struct bench_variant v[BENCH_VARIANTS];
	bool is_chosen[16];
	uint32_t slice_ms;
	uint64_t start_ns;
	uint64_t end_ns;	/* 0: no bound */
	bool has_terminal;
	unsigned n_rows;
};

static void
usage(FILE *f)
{
	fputs("usage: darter bench rr|connect [options]\n"
	    "\n"
	    "Measures darter over its links beside the kernel over veth, on two cores.\n"
	    "  rr        requests and responses of 1, 64, 1024 and 16384 bytes\n"
	    "  connect   connections: socket, connect, close; and with one request (crr)\n"
	    "\n"
	    "  --quick           the main cases within two minutes\n"
	    "  --seconds N       bounds the run\n"
	    "  --json            one object a line\n"
	    "  --variants LIST   of cable,memif,vhost,kernel (default: all)\n"
	    "  --cases LIST      see --list\n"
	    "  --list            names the cases\n"
	    "  --kernel-spin     the kernel's side polls too instead of sleeping\n"
	    "  --cpus S,C        server's and client's CPU (default: the first two)\n"
	    "\n"
	    "examples:\n"
	    "  darter bench rr --quick\n"
	    "  darter bench connect --json --seconds 60 --variants memif,kernel\n", f);
}

/* Is `word` in the comma-separated list? */
static bool
list_has(const char *list, const char *word)
{
	size_t len = strlen(word);
	const char *p = list;

	while ((p = strstr(p, word)) != NULL) {
		if ((p == list || p[-1] == ',') && (p[len] == ',' || p[len] == '\0'))
			return true;
		p += len;
	}
	return false;
}

static unsigned
list_len(const char *list)
{
	unsigned n = 1;

	for (; *list != '\0'; list++)
		n += *list == ',';
	return n;
}

static void
on_signal(int sig)
{
	(void)sig;
	bench_interrupted = 1;
}

static void
catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
}

/* ---- options ---- */

static int
pick_cpus(struct bench_options *o)
{
	cpu_set_t set;
	int cpu, n = 0;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return -1;
	for (cpu = 0; cpu < CPU_SETSIZE && n < BENCH_ROLES; cpu++)
		if (CPU_ISSET((size_t)cpu, &set))
			o->cpu[n++] = cpu;
	if (n == BENCH_ROLES)
		return 0;
	fprintf(stderr, "darter bench: needs two CPUs, one for each end; taskset allows %d\n", n);
	return -1;
}

static int
choose_cases(struct run *r, const char *list)
{
	unsigned i, n = 0;

	for (i = 0; i < r->def->n_cases; i++) {
		r->is_chosen[i] = list != NULL ? list_has(list, r->def->cases[i].name) :
		    !r->o.is_quick || r->def->cases[i].is_quick;
		n += r->is_chosen[i];
	}
	if (list == NULL || n == list_len(list))
		return 0;
	fprintf(stderr, "darter bench: --cases %s: not all known; see --list\n", list);
	return -1;
}

static int
choose_variants(struct run *r, const char *list)
{
	static const char *const names[] = { "cable", "memif", "vhost", "kernel" };
	unsigned i, n = 0;

	for (i = 0; i < BENCH_VARIANTS; i++) {
		r->v[i].name = names[i];
		r->v[i].is_wanted = list == NULL || list_has(list, names[i]);
		n += r->v[i].is_wanted;
	}
	if (list == NULL || n == list_len(list))
		return 0;
	fprintf(stderr, "darter bench: --variants %s: choose from cable,memif,vhost,kernel\n",
	    list);
	return -1;
}

static const struct option long_options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "quick", no_argument, NULL, 'q' },
	{ "seconds", required_argument, NULL, 's' },
	{ "variants", required_argument, NULL, 'v' },
	{ "cases", required_argument, NULL, 'c' },
	{ "cpus", required_argument, NULL, 'p' },
	{ "kernel-spin", no_argument, NULL, 'k' },
	{ "list", no_argument, NULL, 'l' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 }
};

static void
list_cases(const struct bench_def *d)
{
	unsigned i;

	for (i = 0; i < d->n_cases; i++)
		printf("%s%s\n", d->cases[i].name, d->cases[i].is_quick ? " (quick)" : "");
}

/* 0 to go on, 1 done, -1 wrong usage. */
static int
parse_options(struct run *r, int argc, char **argv)
{
	const char *variants = NULL, *cases = NULL;
	char *end;
	int c;

	if (pick_cpus(&r->o) < 0)
		return -1;
	optind = 1;
	while ((c = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		switch (c) {
		case 'j': r->o.is_json = true; break;
		case 'q': r->o.is_quick = true; break;
		case 'v': variants = optarg; break;
		case 'c': cases = optarg; break;
		case 'k': r->o.kernel_spins = true; break;
		case 'l': list_cases(r->def); return 1;
		case 'h': usage(stdout); return 1;
		case 's':
			r->o.seconds = strtod(optarg, &end);
			if (*end == '\0' && r->o.seconds > 0)
				break;
			fprintf(stderr, "darter bench: --seconds wants a number above 0\n");
			return -1;
		case 'p':
			if (sscanf(optarg, "%d,%d", &r->o.cpu[0], &r->o.cpu[1]) == 2)
				break;
			fprintf(stderr, "darter bench: --cpus wants two numbers, e.g. 0,1\n");
			return -1;
		default: usage(stderr); return -1;
		}
	}
	if (optind < argc) {
		usage(stderr);
		return -1;
	}
	return choose_cases(r, cases) < 0 || choose_variants(r, variants) < 0 ? -1 : 0;
}

/* ---- running ---- */

static void
progress(const struct run *r, const char *what, const char *variant, unsigned round)
{
	if (r->has_terminal)
		fprintf(stderr, "\r%-16s %-8s round %2u/%u\033[K", what, variant, round,
		    BENCH_MAX_ROUNDS);
}

static void
progress_end(const struct run *r)
{
	if (r->has_terminal)
		fprintf(stderr, "\r\033[K");
}

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
}

static void
run_slice(struct run *r, const struct bench_case *c, unsigned vi, unsigned round,
    struct bench_samples *s)
{
	struct bench_cmd cmd = { .what = BENCH_WHAT_SLICE, .slice_ms = r->slice_ms, .c = *c };
	struct bench_reply reply[BENCH_ROLES];
	char why[BENCH_WHY_MAX];

	progress(r, c->name, r->v[vi].name, round + 1);
	if (!bench_variant_slice(&r->v[vi], &cmd, reply)) {
		if (!bench_interrupted && s->selfcheck[0] == '\0')
			snprintf(s->selfcheck, sizeof(s->selfcheck), "%s: %.200s", r->v[vi].name,
			    r->v[vi].why);
		return;
	}
	check_slice(c, reply, why);
	if (why[0] != '\0' && s->selfcheck[0] == '\0')
		snprintf(s->selfcheck, sizeof(s->selfcheck), "%s: %.200s", r->v[vi].name, why);
	if (reply[BENCH_CLIENT].elapsed_ns > 0)
		s->rate[vi][round] = (double)reply[BENCH_CLIENT].ops * 1e9 /
		    (double)reply[BENCH_CLIENT].elapsed_ns;
}

/* All rounds of a case. False when the run is over. */
static bool
run_case(struct run *r, const struct bench_case *c)
{
	static struct bench_samples s;
	unsigned round, i, at;

	memset(&s, 0, sizeof(s));
	for (round = 0; round < BENCH_MAX_ROUNDS && !bench_interrupted; round++) {
		if (r->end_ns != 0 && bench_now_ns() > r->end_ns)
			break;
		for (i = 0; i < BENCH_VARIANTS && !bench_interrupted; i++) {
			at = round % 2 ? BENCH_VARIANTS - 1 - i : i;
			at = (at + round / 2) % BENCH_VARIANTS;
			if (r->v[at].is_up)
				run_slice(r, c, at, round, &s);
		}
		s.rounds = round + 1;
	}
	progress_end(r);
	if (!bench_interrupted && s.rounds < 2)
		fprintf(stderr, "darter bench: %s left out: the time is up\n", c->name);
	if (bench_interrupted || s.rounds < 2)
		return false;
	bench_print_case(&r->o, r->def->name, c, r->v, &s);
	r->n_rows++;
	return true;
}

/* The link's own rate, best of a few slices: what arrived, not what was sent. */
static void
measure_link(struct run *r, struct bench_variant *v)
{
	static const struct bench_case udp = { .name = "datagrams", .kind = BENCH_UDP };
	struct bench_cmd cmd = { .what = BENCH_WHAT_SLICE, .slice_ms = UDP_SLICE_MS, .c = udp };
	struct bench_reply reply[BENCH_ROLES];
	unsigned i;
	double pps;

	for (i = 0; i < UDP_SLICES && v->is_up && !bench_interrupted; i++) {
		progress(r, udp.name, v->name, i + 1);
		if (!bench_variant_slice(v, &cmd, reply))
			break;
		if (reply[BENCH_SERVER].ops > reply[BENCH_CLIENT].ops)
			continue;	/* leftovers of another slice are among them */
		pps =
		    (double)reply[BENCH_SERVER].ops * 1e9 / (double)reply[BENCH_CLIENT].elapsed_ns;
		if (pps > v->udp_pps)
			v->udp_pps = pps;
	}
	progress_end(r);
}

static unsigned
start_variants(struct run *r)
{
	unsigned i, n = 0;

	for (i = 0; i < BENCH_VARIANTS && !bench_interrupted; i++) {
		if (!r->v[i].is_wanted)
			continue;
		progress(r, "starting", r->v[i].name, 0);
		if (bench_variant_start(&r->v[i], i, &r->o))
			measure_link(r, &r->v[i]);
		n += r->v[i].is_up;
	}
	progress_end(r);
	return n;
}

/*
 * Slices as long as the time allows; cases that would not get their pairs are left out, last ones
 * first.
 */
static void
plan(struct run *r, unsigned n_variants)
{
	double seconds = r->o.seconds > 0 ? r->o.seconds : r->o.is_quick ? QUICK_SECONDS : 0;
	double left = seconds - (double)(bench_now_ns() - r->start_ns) / 1e9;
	unsigned i, n_cases = 0;
	double slice;

	for (i = 0; i < r->def->n_cases; i++)
		n_cases += r->is_chosen[i];
	r->slice_ms = DEFAULT_SLICE_MS;
	if (seconds <= 0)
		return;
	for (;; n_cases--) {
		slice = left * 1000 / (n_cases * n_variants * BENCH_MAX_ROUNDS) - OVERHEAD_MS;
		if (slice >= MIN_SLICE_MS || n_cases == 1)
			break;
		for (i = r->def->n_cases; i-- > 0;)
			if (r->is_chosen[i])
				break;
		r->is_chosen[i] = false;
		fprintf(stderr, "darter bench: %s left out: no time for %d pairs\n",
		    r->def->cases[i].name, BENCH_MIN_PAIRS);
	}
	if (slice < r->slice_ms || r->o.seconds > 0)
		r->slice_ms = slice < MIN_SLICE_MS ? MIN_SLICE_MS :
		    slice > MAX_SLICE_MS ? MAX_SLICE_MS : (uint32_t)slice;
	/* A machine that is slower than planned gives fewer pairs, not a longer run. */
	if (r->o.seconds <= 0)
		seconds = QUICK_MAX_SECONDS;
	r->end_ns = r->start_ns + (uint64_t)(seconds * 1e9);
}

static int
run_bench(struct run *r)
{
	unsigned i, n = start_variants(r);

	if (n > 0 && !bench_interrupted) {
		plan(r, n);
		bench_print_head(&r->o, r->def->name, r->v);
		for (i = 0; i < r->def->n_cases; i++)
			if (r->is_chosen[i] && !run_case(r, &r->def->cases[i]))
				break;
		bench_print_tail(&r->o, r->def->name, r->v);
	}
	for (i = 0; i < BENCH_VARIANTS; i++) {
		bench_variant_stop(&r->v[i]);
		if (n == 0 && r->v[i].is_wanted && !bench_interrupted)
			fprintf(stderr, "darter bench: %s: %s\n", r->v[i].name, r->v[i].why);
	}
	return bench_interrupted ? 130 : r->n_rows > 0 ? 0 : 1;
}

/* The links' sockets and the directory they are in. */
static void
remove_dir(const char *dir)
{
	static const char *const names[] = { "memif.sock", "vhost.sock" };
	char path[128];
	unsigned i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}

int
cmd_bench(int argc, char **argv)
{
	static struct run r;
	unsigned i;
	int rc;

	for (i = 0; argc > 1 && i < ARRAY_SIZE(benches); i++)
		if (strcmp(argv[1], benches[i].name) == 0)
			r.def = &benches[i];
	if (r.def == NULL) {
		bool wants_help = argc > 1 &&
		    (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);

		usage(wants_help ? stdout : stderr);
		return wants_help ? 0 : EXIT_USAGE;
	}
	rc = parse_options(&r, argc - 1, argv + 1);
	if (rc != 0)
		return rc > 0 ? 0 : EXIT_USAGE;
	snprintf(r.o.dir, sizeof(r.o.dir), "/tmp/darter-bench-XXXXXX");
	if (mkdtemp(r.o.dir) == NULL) {
		fprintf(stderr, "darter bench: %s: %s\n", r.o.dir, strerror(errno));
		return 1;
	}
	catch_signals();
	r.start_ns = bench_now_ns();
	r.has_terminal = isatty(2);
	rc = run_bench(&r);
	remove_dir(r.o.dir);
	return rc;
}
