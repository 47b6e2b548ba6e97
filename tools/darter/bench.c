/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `darter bench`: the command line, the plan of a run, and what all benches share at the conductor.
 * What is measured, and how, is said in the file of each bench: bench_links.c (rr, connect),
 * bench_initport.c (connect), bench_ports.c, bench_msgport.c, bench_latency.c.
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
#define MIN_SLICE_MS		40
#define MAX_SLICE_MS		500
#define OVERHEAD_MS		18	/* a slice's beginning and end */
#define QUICK_SECONDS		75.0	/* aimed at */
#define QUICK_MAX_SECONDS	115.0	/* two minutes with start and end */

volatile sig_atomic_t bench_interrupted;

static const struct bench_def *const benches[] = { &bench_def_rr, &bench_def_connect,
	&bench_def_ports, &bench_def_msgport, &bench_def_latency };

static void
usage(FILE *f)
{
	fputs("usage: darter bench rr|connect|ports|msgport|latency [options]\n"
	    "\n"
	    "Measures darter, beside the kernel where that compares, on two cores.\n"
	    "  rr        requests and responses of 1, 64, 1024 and 16384 bytes, by link\n"
	    "  connect   connections: socket, connect, close; with one request (crr); by link;\n"
	    "            initport-*: kern.ipc.rand_initport near (on) against zero (off)\n"
	    "  ports     connects beside 0 to 99.9 % of the local ports in use, by algorithm\n"
	    "  msgport   a message and its answer beside a cache line that goes to and fro\n"
	    "  latency   p50, p99, p99.9 of a request and idle CPU, by who runs the netisr\n"
	    "\n"
	    "  --quick           the main cases within two minutes\n"
	    "  --seconds N       bounds the run\n"
	    "  --json            one object a line\n"
	    "  --plot FILE.svg   draws the results\n"
	    "  --cases LIST      see --list\n"
	    "  --list            names the cases\n"
	    "  --variants LIST   rr, connect: of cable,memif,vhost,kernel,loopback (default: all)\n"
	    "  --kernel-spin     rr, connect: the kernel's side polls too instead of sleeping\n"
	    "  --cpus S,C        server's and client's CPU (default: the first two)\n"
	    "\n"
	    "examples:\n"
	    "  darter bench rr --quick\n"
	    "  darter bench connect --json --seconds 60 --variants memif,kernel\n"
	    "  darter bench ports --plot ports.svg\n", f);
}

bool
bench_list_has(const char *list, const char *word)
{
	size_t len = strlen(word);
	const char *p = list;

	if (list == NULL)
		return true;
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
choose_cases(struct bench_run *r)
{
	const struct bench_def *d = r->def;
	unsigned i, n = 0;

	for (i = 0; i < d->n_cases; i++) {
		r->is_chosen[i] = bench_list_has(r->o.cases, d->cases[i].name) &&
		    (r->o.cases != NULL || !r->o.is_quick || d->cases[i].is_quick);
		n += r->is_chosen[i];
	}
	if (r->o.cases == NULL || n == list_len(r->o.cases))
		return 0;
	fprintf(stderr, "darter bench: --cases %s: not all known; see --list\n", r->o.cases);
	return -1;
}

static int
check_variants(const struct bench_run *r)
{
	static const char *const names[] = { "cable", "memif", "vhost", "kernel", "loopback" };
	unsigned i, n = 0;

	if (r->o.variants == NULL)
		return 0;
	for (i = 0; i < ARRAY_SIZE(names); i++)
		n += bench_list_has(r->o.variants, names[i]);
	if (n == list_len(r->o.variants))
		return 0;
	fprintf(stderr, "darter bench: --variants %s: choose from "
	    "cable,memif,vhost,kernel,loopback\n",
	    r->o.variants);
	return -1;
}

static void
list_cases(const struct bench_def *d)
{
	unsigned i;

	for (i = 0; i < d->n_cases; i++)
		printf("%s%s\n", d->cases[i].name, d->cases[i].is_quick ? " (quick)" : "");
}

static bool
parse_seconds(struct bench_options *o, const char *text)
{
	char *end;

	o->seconds = strtod(text, &end);
	if (end != text && *end == '\0' && o->seconds > 0 && o->seconds < 1e6)
		return true;
	fprintf(stderr, "darter bench: --seconds wants a number above 0\n");
	return false;
}

static bool
parse_cpus(struct bench_options *o, const char *text)
{
	char rest;

	if (sscanf(text, "%d,%d%c", &o->cpu[0], &o->cpu[1], &rest) == 2 && o->cpu[0] >= 0 &&
	    o->cpu[1] >= 0 && o->cpu[0] < CPU_SETSIZE && o->cpu[1] < CPU_SETSIZE)
		return true;
	fprintf(stderr, "darter bench: --cpus wants two numbers, e.g. 0,1\n");
	return false;
}

/* 0 to go on, 1 done, -1 wrong usage. */
static int
parse_options(struct bench_run *r, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "quick", no_argument, NULL, 'q' },
		{ "seconds", required_argument, NULL, 's' },
		{ "variants", required_argument, NULL, 'v' },
		{ "cases", required_argument, NULL, 'c' },
		{ "cpus", required_argument, NULL, 'p' },
		{ "plot", required_argument, NULL, 'g' },
		{ "kernel-spin", no_argument, NULL, 'k' },
		{ "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	bool is_good = true;
	int c;

	optind = 1;
	while (is_good && (c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 'j': r->o.is_json = true; break;
		case 'q': r->o.is_quick = true; break;
		case 's': is_good = parse_seconds(&r->o, optarg); break;
		case 'v': r->o.variants = optarg; break;
		case 'c': r->o.cases = optarg; break;
		case 'p': is_good = parse_cpus(&r->o, optarg); break;
		case 'g': r->o.plot_file = optarg; break;
		case 'k': r->o.kernel_spins = true; break;
		case 'l': list_cases(r->def); return 1;
		case 'h': usage(stdout); return 1;
		default: is_good = false; usage(stderr); break;
		}
	}
	if (!is_good)
		return -1;
	if (optind < argc) {
		usage(stderr);
		return -1;
	}
	return choose_cases(r) < 0 || check_variants(r) < 0 ? -1 : 0;
}

/* ---- running ---- */

void
bench_progress(const struct bench_run *r, const char *what, const char *variant, unsigned round)
{
	if (r->has_terminal)
		fprintf(stderr, "\r%-26s %-12s round %2u/%u\033[K", what, variant, round,
		    BENCH_MAX_ROUNDS);
}

void
bench_progress_end(const struct bench_run *r)
{
	if (r->has_terminal)
		fprintf(stderr, "\r\033[K");
}

bool
bench_is_chosen(const struct bench_run *r, const char *name)
{
	unsigned i;

	for (i = 0; i < r->def->n_cases; i++)
		if (strcmp(r->def->cases[i].name, name) == 0)
			return r->is_chosen[i];
	return false;
}

bool
bench_is_over(const struct bench_run *r)
{
	return bench_interrupted || (r->end_ns != 0 && bench_now_ns() > r->end_ns);
}

bool
bench_may_run(const struct bench_run *r, const char *name)
{
	if (!bench_is_chosen(r, name) || bench_interrupted)
		return false;
	if (bench_is_over(r))
		fprintf(stderr, "darter bench: %s left out: the time is up\n", name);
	return !bench_is_over(r);
}

/* The last case goes. False when it is the only one. */
static bool
drop_a_case(struct bench_run *r)
{
	unsigned i, n = 0, last = 0;

	for (i = 0; i < r->def->n_cases; i++) {
		n += r->is_chosen[i];
		if (r->is_chosen[i])
			last = i;
	}
	if (n <= 1)
		return false;
	r->is_chosen[last] = false;
	fprintf(stderr, "darter bench: %s left out: no time for %d pairs\n",
	    r->def->cases[last].name, BENCH_MIN_PAIRS);
	return true;
}

/* Of a round. Cases that have a slice for each link have fewer with --variants. */
static unsigned
slices_of(const struct bench_run *r, const struct bench_case_name *c)
{
	if (c->n_slices < BENCH_VARIANTS || r->o.variants == NULL)
		return c->n_slices;
	return list_len(r->o.variants);
}

void
bench_plan(struct bench_run *r)
{
	double seconds = r->o.seconds > 0 ? r->o.seconds : r->o.is_quick ? QUICK_SECONDS : 0;
	double left = seconds - (double)(bench_now_ns() - r->start_ns) / 1e9;
	double slice;
	unsigned i, n;

	r->slice_ms = DEFAULT_SLICE_MS;
	if (seconds <= 0)
		return;
	do {
		for (i = 0, n = 0; i < r->def->n_cases; i++)
			n += r->is_chosen[i] ? slices_of(r, &r->def->cases[i]) : 0;
		slice = left * 1000 / (n * BENCH_MAX_ROUNDS) - OVERHEAD_MS;
	} while (slice < MIN_SLICE_MS && drop_a_case(r));
	if (slice < r->slice_ms || r->o.seconds > 0)
		r->slice_ms = slice < MIN_SLICE_MS ? MIN_SLICE_MS :
		    slice > MAX_SLICE_MS ? MAX_SLICE_MS : (uint32_t)slice;
	/* A machine that is slower than planned gives fewer pairs, not a longer run. */
	if (r->o.seconds <= 0)
		seconds = QUICK_MAX_SECONDS;
	r->end_ns = r->start_ns + (uint64_t)(seconds * 1e9);
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

static int
run_bench(struct bench_run *r)
{
	int rc = 0;

	snprintf(r->o.dir, sizeof(r->o.dir), "/tmp/darter-bench-XXXXXX");
	if (mkdtemp(r->o.dir) == NULL) {
		fprintf(stderr, "darter bench: %s: %s\n", r->o.dir, strerror(errno));
		return 1;
	}
	catch_signals();
	r->start_ns = bench_now_ns();
	r->has_terminal = isatty(2);
	if (r->o.plot_file != NULL)
		r->plot = bench_plot_new(r->o.plot_file, r->def->text, r->def->is_sweep);
	r->def->run(r);
	bench_progress_end(r);
	remove_dir(r->o.dir);
	if (r->plot != NULL)
		rc = bench_plot_write(r->plot);
	if (rc < 0) {
		fprintf(stderr, "darter bench: %s: %s\n", r->o.plot_file, strerror(-rc));
		return 1;
	}
	return bench_interrupted ? 130 : r->n_rows > 0 ? 0 : 1;
}

int
cmd_bench(int argc, char **argv)
{
	static struct bench_run r;
	unsigned i;
	int rc;

	for (i = 0; argc > 1 && i < ARRAY_SIZE(benches); i++)
		if (strcmp(argv[1], benches[i]->name) == 0)
			r.def = benches[i];
	if (r.def == NULL) {
		bool wants_help = argc > 1 &&
		    (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);

		usage(wants_help ? stdout : stderr);
		return wants_help ? 0 : EXIT_USAGE;
	}
	if (pick_cpus(&r.o) < 0)
		return EXIT_USAGE;
	rc = parse_options(&r, argc - 1, argv + 1);
	if (rc != 0)
		return rc > 0 ? 0 : EXIT_USAGE;
	return run_bench(&r);
}
