/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `darter bench`: what its files share.
 *
 * The program that was started (the conductor, bench.c) never has a stack. A *pair* of workers, a
 * server and a client, is two processes joined by a link, or for the cable two threads of one
 * process; the responder and the kernel's port benchmark need a client alone. A worker waits on its
 * control socket without using its core; the conductor has one of them at a time run a *slice* of a
 * *case*, in rotating order, so that what else happens on the machine hits all alike. What is
 * compared (the *variants* of a case) is links, knobs that are set before a slice, or algorithms.
 */
#ifndef DARTER_BENCH_H
#define DARTER_BENCH_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "calls.h"

#define BENCH_PORT		9000	/* first of BENCH_PORTS listeners */
#define BENCH_PORTS		16	/* so that local ports are never scarce */
#define BENCH_UDP_PORT		9100
#define BENCH_MAX_INFLIGHT	256
#define BENCH_MAX_BYTES		65536
#define BENCH_MIN_PAIRS		20
#define BENCH_MAX_ROUNDS	(BENCH_MIN_PAIRS + 1)	/* the first one warms up */
#define BENCH_WHY_MAX		256
#define BENCH_KNOBS_MAX		160
#define BENCH_NETISRS		2	/* of a stack that is measured on two cores */
#define BENCH_LOCAL_FIRST	32768	/* darter's range of local ports, and Linux' */
#define BENCH_LOCAL_PORTS	28232
#define BENCH_SPARE_FDS		512	/* of a process, beside those of connections held */
#define BENCH_RAW_ETHERTYPE	0x88b5	/* for local experiments (IEEE 802, 9.2.3.1) */

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))

/* ---- cases ---- */

enum bench_kind {
	BENCH_RR,		/* n_bytes there, n_bytes back, one connection */
	BENCH_CONNECT,		/* socket, connect, close */
	BENCH_CRR,		/* socket, connect, 1 byte there, 1 byte back, close */
	BENCH_UDP,		/* datagrams of 1 byte one way */
	BENCH_RAW,		/* frames one way, no protocol: what the link carries */
	BENCH_LATENCY,		/* BENCH_RR, each trip timed */
	BENCH_IDLE,		/* nothing: CPU time that goes by */
	BENCH_CHURN,		/* BENCH_CONNECT from several threads (bench_churn.c) */
	BENCH_HOLD,		/* BENCH_CONNECT beside many connections (bench_hold.c) */
	BENCH_MSG,		/* messages to a netisr (bench_msg.c) */
};

struct bench_case {
	const char *name;	/* "rr-64", "connect-w16" */
	enum bench_kind kind;
	uint32_t n_bytes;
	uint32_t inflight;
	bool is_reset;		/* close with SO_LINGER 0 */
	bool is_quick;		/* part of --quick */
};

/* ---- the sockets of a worker: darter's or the kernel's (tools/calls.h) ---- */

/* The kernel's, whose recv and epoll_wait never sleep (bench_spin.c). The main thread's. */
const struct net_calls *bench_net_spinning(void);

/* ---- control (bench_ctl.c) ---- */

enum bench_what {
	BENCH_WHAT_SLICE,
	BENCH_WHAT_QUIT,
};

/* How the threads of BENCH_CHURN call. */
enum bench_calls {
	BENCH_NONBLOCKING,	/* kq_connect_client: c.inflight under way in each thread */
	BENCH_BLOCKING,		/* connect_client: one at a time in each of many threads */
	BENCH_ATTACHED,		/* BENCH_NONBLOCKING, each thread runs a netisr */
};

/* How the local port of BENCH_HOLD comes about. */
enum bench_portalgo {
	BENCH_PORT_STACK,	/* by the stack (or the kernel) alone */
	BENCH_PORT_GLOBAL,	/* bench_portalgo.c: one rover under one lock */
	BENCH_PORT_EVENODD,	/* bench_portalgo.c: as Linux scans */
	BENCH_PORTALGOS
};

/* Which connections are held beside those that are made (bench_hold.c). */
enum bench_dest {
	BENCH_DEST_EMPTY,
	BENCH_DEST_FULL,	/* c.inflight ten-thousandths of the port range are held */
	BENCH_DEST_OWN,		/* of netisr 0's share alone */
	BENCH_DESTS
};

enum bench_msg_mode {
	BENCH_MSG_ROUND_TRIP,	/* a message and its answer, the netisr polls */
	BENCH_MSG_BATCH,	/* 64 messages and one answer */
	BENCH_MSG_WAKE,		/* the netisr sleeps before each */
	BENCH_MSG_LINE,		/* no message: a cache line goes to and fro between two threads */
	BENCH_MSG_EVENTFD,	/* no message: a thread sleeps in read(2) before each */
};

struct bench_cmd {
	enum bench_what what;
	uint32_t slice_ms;
	struct bench_case c;	/* name is not valid at the worker */
	uint32_t n_threads;
	enum bench_calls calls;
	enum bench_portalgo portalgo;
	enum bench_dest dest;
	bool is_fill;		/* BENCH_HOLD: hold so many, measure nothing */
	enum bench_msg_mode msg_mode;
	bool on_one_cpu;	/* BENCH_MSG */
	/* "name=value name=value": set before the slice, and after it; each end its own */
	char knobs[BENCH_KNOBS_MAX];
	char knobs_after[BENCH_KNOBS_MAX];
	char server_knobs[BENCH_KNOBS_MAX];
	char server_knobs_after[BENCH_KNOBS_MAX];
};

/* Counters that stand beside a rate; the order of names in bench_counters.c. */
enum bench_counter {
	BENCH_CTR_MSGS,
	BENCH_CTR_FORWARDS,
	BENCH_CTR_SLEEPS,
	BENCH_CTR_CALL_SLEEPS,
	BENCH_CTR_DOORBELLS,
	BENCH_CTR_ALLOCS,
	BENCH_CTR_PROBES,
	BENCH_CTR_SPILLS,
	BENCH_CTR_SEGS,
	BENCH_CTR_ESTABLISHED,
	BENCH_CTR_RETRANSMITS,
	BENCH_CTR_EVICTED,	/* TIME_WAIT records */
	BENCH_CTRS
};

/* What the operations of a slice took, each. */
struct bench_times {
	double p50_ns;
	double p99_ns;
	double p999_ns;
	double mean_ns;
	double sd_ns;
};

struct bench_reply {
	uint64_t ops;		/* requests answered; connections made or accepted; datagrams */
	uint64_t bytes;		/* echoed */
	uint64_t elapsed_ns;
	uint64_t cpu_ns;	/* BENCH_IDLE: of the whole process */
	struct bench_times times;
	uint64_t cycles;	/* BENCH_HOLD: TSC inside connect() */
	uint64_t probes;	/* BENCH_HOLD: candidates that bench_portalgo.c looked at */
	uint64_t counters[BENCH_CTRS];
	uint64_t timewait;	/* records at the end */
	uint64_t msgs;		/* of all kinds */
	uint64_t netisr_msgs[BENCH_NETISRS];	/* operations of sockets */
	uint64_t netisr_segs[BENCH_NETISRS];
	uint32_t failed;	/* operations */
	char why[BENCH_WHY_MAX];	/* "" or the first failure */
};

/* One of two ends of a variant. */
enum bench_role {
	BENCH_SERVER,
	BENCH_CLIENT,
	BENCH_ROLES
};

/* Words that both workers of a variant and the conductor see while a slice runs. */
struct bench_shared {
	_Atomic uint32_t stop;		/* the client is done */
	/* connections that the server should have accepted by then */
	_Atomic uint64_t expect;
};

/* Who runs a worker's netisrs (README, "Three ways to run"). */
enum bench_profile {
	BENCH_PROFILE_ATTACHED,	/* the worker's thread; knobs make it poll */
	BENCH_PROFILE_SHARED,	/* borrowers and background threads that sleep */
	BENCH_PROFILE_PINNED,	/* a background thread that polls on a CPU of its own */
};

/* What a worker is given when it starts. */
struct bench_worker {
	enum bench_role role;
	enum bench_profile profile;
	int ctl_fd;
	int cpu;		/* -1: any */
	const int *cpus;	/* both, for threads */
	const struct net_calls *net;
	struct bench_shared *shared;
	const char *const *overrides;	/* darter only: -o key=value, NULL-terminated */
	uint32_t server_ip;		/* host order */
	bool has_peer;			/* a server worker at the other end */
};

/*
 * Whole messages over a stream socket. 0, or a negative errno; -ETIMEDOUT, -EPIPE when the other
 * end is gone.
 */
int bench_msg_send(int fd, const void *msg, size_t len);
int bench_msg_recv(int fd, void *msg, size_t len, int timeout_ms);

/* Pins the calling thread. 0 or a negative errno. */
int bench_pin(int cpu);

uint64_t bench_now_ns(void);

/* The CPU's time stamp counter; elsewhere nanoseconds take its place. */
#if defined(__x86_64__)
static inline uint64_t
bench_cycles(void)
{
	return __builtin_ia32_rdtsc();
}

/* In a loop that polls. */
static inline void
bench_relax(void)
{
	__builtin_ia32_pause();
}
#else
static inline uint64_t
bench_cycles(void)
{
	return bench_now_ns();
}

static inline void
bench_relax(void)
{
}
#endif

/* ---- workers (bench_worker.c, bench_server.c, bench_client.c) ---- */

/*
 * Serves its control socket until told to quit; the first message it sends is a reply: ready, or
 * why not.
 */
void bench_worker_run(const struct bench_worker *w);

/* Tells the conductor why there is no worker. */
void bench_worker_fail(const struct bench_worker *w, const char *why);

/* Listeners and an epoll over them, made once. */
struct bench_server {
	const struct net_calls *net;
	int ep;
	int listener[BENCH_PORTS];
	int udp;
	uint8_t *buf;
};

int bench_server_init(struct bench_server *s, const struct net_calls *net, char *why);
void bench_server_slice(struct bench_server *s, const struct bench_cmd *cmd,
    struct bench_shared *shared, struct bench_reply *ret);

/* Until the server answers, at most 10 s; for a link to come up. 0 or -1 with why. */
int bench_client_hello(const struct net_calls *net, uint32_t server_ip, char *why);
void bench_client_slice(const struct bench_worker *w, const struct bench_cmd *cmd,
    struct bench_reply *ret);

/* Notes an operation that failed with errno; the first one's text is kept. */
void bench_note_failure(struct bench_reply *reply, const char *what);

/* Sets each "name=value" of a list separated by spaces. 0, or -1 with why. */
int bench_knobs_set(const char *list, char *why);

/* The current stack's counters, by enum bench_counter; what it does not have is UINT64_MAX. */
void bench_counters_read(uint64_t ret[BENCH_CTRS]);
/* Adds the difference to what was read before, and each netisr's share. */
void bench_counters_begin(struct bench_reply *reply);
void bench_counters_end(struct bench_reply *reply);

/* Frames without a protocol, the whole slice: sent by the client, counted by the server. */
void bench_raw_slice(const struct bench_worker *w, const struct bench_cmd *cmd,
    struct bench_reply *ret);

/* Slices of the kinds of that name. */
void bench_churn_slice(const struct bench_worker *w, const struct bench_cmd *cmd,
    struct bench_reply *ret);
void bench_ports_slice(const struct bench_worker *w, const struct bench_cmd *cmd,
    struct bench_reply *ret);
void bench_msg_slice(const struct bench_worker *w, const struct bench_cmd *cmd,
    struct bench_reply *ret);

/* ---- port choice as others do it (bench_portalgo.c) ---- */

struct bench_portset;

/* For ports first to first + count - 1 and n_dests destinations. NULL: no memory. */
struct bench_portset *bench_portset_new(enum bench_portalgo algo, uint16_t first, uint32_t count,
    unsigned n_dests);
void bench_portset_free(struct bench_portset *p);

/* A free port towards a destination, which is then used; 0 when there is none. Any thread. */
uint16_t bench_portset_take(struct bench_portset *p, unsigned dest, uint64_t *probes);
void bench_portset_put(struct bench_portset *p, unsigned dest, uint16_t port);
/* Uses n ports, in the order in which the way itself would; those used already count. How many. */
uint32_t bench_portset_fill(struct bench_portset *p, unsigned dest, uint32_t n);

/* ---- pairs of workers (bench_variant.c, bench_veth.c) ---- */

enum bench_link {
	BENCH_CABLE,
	BENCH_MEMIF,
	BENCH_VHOST,
	BENCH_KERNEL,		/* two namespaces and a veth */
	BENCH_LOOPBACK,		/* the kernel too, one namespace */
	BENCH_VARIANTS,		/* so many are columns of rr and connect */
	BENCH_RESPOND = BENCH_VARIANTS,	/* the stateless responder, no server */
	BENCH_KERNEL_LOOP,	/* a namespace with a loopback alone, no server */
};

struct bench_setup {
	enum bench_link link;
	enum bench_profile profile[BENCH_ROLES];
	unsigned n_netisrs;	/* of each stack */
	bool is_unpinned;	/* worker threads are not pinned, netisrs are, one on each CPU */
	const char *more[4];	/* overrides, both stacks */
};

struct bench_variant {
	const char *name;
	bool is_wanted;
	bool is_up;
	bool has_server;
	char why[BENCH_WHY_MAX];	/* not up: the reason and what to do */
	pid_t pid[BENCH_ROLES];		/* 0: none of its own */
	int ctl_fd[BENCH_ROLES];
	struct bench_shared *shared;
	double udp_pps;			/* 0: not measured */
	double raw_pps;
};

struct bench_options {
	bool is_json;
	bool is_quick;
	bool kernel_spins;
	double seconds;			/* 0: as long as it takes */
	int cpu[BENCH_ROLES];
	char dir[64];			/* for the links' sockets */
	const char *variants;		/* --variants, --cases: NULL is all */
	const char *cases;
	const char *plot_file;		/* --plot */
};

/* Starts workers and waits until they are connected; false with v->why. */
bool bench_variant_start(struct bench_variant *v, const struct bench_setup *su,
    const struct bench_options *o);
void bench_variant_stop(struct bench_variant *v);

/*
 * In the forked child: two namespaces joined by a veth pair, a worker in each. w[BENCH_ROLES]. Does
 * not return.
 */
void bench_veth_main(const struct bench_worker *w) __attribute__((noreturn));

/*
 * In the forked child: a namespace whose loopback has 10.99.0.1, and both workers in it.
 * w[BENCH_ROLES]. Does not return.
 */
void bench_loopback_main(const struct bench_worker *w) __attribute__((noreturn));

/*
 * The same with the client worker alone, and the port range of a darter stack as far as descriptors
 * allow. Does not return.
 */
void bench_loop_main(const struct bench_worker *w) __attribute__((noreturn));

/* First thing in a child: it ends with its parent, and Ctrl-C is for the conductor. */
void bench_child_init(pid_t parent);

/* SIGINT or SIGTERM came. */
extern volatile sig_atomic_t bench_interrupted;

/* Runs one slice on v. False (v is taken down, why set) when a worker did not answer. */
bool bench_variant_slice(struct bench_variant *v, const struct bench_cmd *cmd,
    struct bench_reply ret[BENCH_ROLES]);

/* ---- numbers (bench_stat.c) ---- */

double bench_median(const double *v, unsigned n);

/* Sorts v. All zero when n is. */
void bench_times_of(double *v, size_t n, struct bench_times *ret);

struct bench_ratio {
	double median;
	double lo, hi;		/* bootstrap, 95 % */
};

/* Of a[i] / b[i], n pairs. */
void bench_ratio_of(const double *a, const double *b, unsigned n, struct bench_ratio *ret);

/* ---- the run (bench.c) ---- */

struct bench_run;

struct bench_case_name {
	const char *name;
	bool is_quick;
	unsigned n_slices;	/* a round, at most */
};

struct bench_def {
	const char *name;
	const char *text;
	bool is_sweep;		/* its cases are steps of one thing */
	const struct bench_case_name *cases;
	unsigned n_cases;
	void (*run)(struct bench_run *r);
};

extern const struct bench_def bench_def_rr, bench_def_connect, bench_def_ports, bench_def_msgport,
    bench_def_latency;

#define BENCH_CASES_MAX	32

/* A run of one bench, at the conductor. */
struct bench_run {
	const struct bench_def *def;
	struct bench_options o;
	bool is_chosen[BENCH_CASES_MAX];	/* of def->cases */
	uint32_t slice_ms;
	uint64_t start_ns;
	uint64_t end_ns;	/* 0: no bound */
	bool has_terminal;
	unsigned n_rows;
	struct bench_plot *plot;	/* NULL: none asked for */
};

/* Is the case to be run? A name that def->cases does not have is not. */
bool bench_is_chosen(const struct bench_run *r, const char *name);

/* That, and is there time for it? Says so when there is not. */
bool bench_may_run(const struct bench_run *r, const char *name);

/* Is the time up, or Ctrl-C pressed? */
bool bench_is_over(const struct bench_run *r);

/*
 * Sets the slices' length so that the chosen cases fit; cases that would not get their pairs are
 * left out, last ones first.
 */
void bench_plan(struct bench_run *r);

/* A line that is overwritten, on a terminal only. */
void bench_progress(const struct bench_run *r, const char *what, const char *variant,
    unsigned round);
void bench_progress_end(const struct bench_run *r);

/* Is `word` in the comma-separated list? */
bool bench_list_has(const char *list, const char *word);

/* The initport cases of `connect` (bench_initport.c). */
void bench_initport_run(struct bench_run *r);

/* ---- rows (bench_row.c) ---- */

#define BENCH_ROW_VARIANTS	12
#define BENCH_ROW_RATIOS	12
#define BENCH_ROW_COUNTERS	16

/* A case whose variants are not links: samples, ratios that are asked for, and what was counted. */
struct bench_row {
	const char *name;
	const char *unit;
	bool is_time;		/* less is better */
	bool is_undrawn;	/* not part of the plot */
	unsigned n_variants;
	const char *variant[BENCH_ROW_VARIANTS];
	double sample[BENCH_ROW_VARIANTS][BENCH_MAX_ROUNDS];	/* 0: none; the first warms up */
	unsigned rounds;
	unsigned n_ratios;
	struct {
		unsigned a, b;
	} ratio[BENCH_ROW_RATIOS];
	unsigned n_counters;
	struct {
		const char *name;
		double v[BENCH_ROW_VARIANTS];	/* NAN: not counted */
	} counter[BENCH_ROW_COUNTERS];
	double link_pps;	/* what the row's link carries by itself; 0: it has none */
	char note[BENCH_WHY_MAX];
	char selfcheck[BENCH_WHY_MAX];	/* "" is ok */
};

/* Keeps the first complaint. */
void bench_row_complain(struct bench_row *row, const char *variant, const char *why);

/* A counter's column, filled with NAN; its index. */
unsigned bench_row_counter(struct bench_row *row, const char *name);

/* A ratio to be printed; nothing when an index is not below n_variants. */
void bench_row_ratio(struct bench_row *row, unsigned a, unsigned b);

/* Median of a variant's samples; 0 when there are none. */
double bench_row_median(const struct bench_row *row, unsigned v);

/* One JSON line for each ratio (one at least), or a block of the table; adds it to the plot. */
void bench_row_print(struct bench_run *r, const struct bench_row *row);

/* ---- drawing (bench_plot.c) ---- */

/* A sweep's points are joined by lines. NULL: no memory. */
struct bench_plot *bench_plot_new(const char *file, const char *title, bool is_sweep);
/*
 * Points that follow are at a place of that name on the x axis, in that unit. False: nothing is
 * drawn, the axis has another unit already.
 */
bool bench_plot_place(struct bench_plot *p, const char *x, const char *unit);
/* A point of a series at that place; lo and hi are its interval. */
void bench_plot_add(struct bench_plot *p, const char *series, double y, double lo, double hi);
/* Writes the file and frees p. 0, or a negative errno. */
int bench_plot_write(struct bench_plot *p);

/*
 * Frames a second that a link carries without a protocol, best of a few slices: what arrived, over
 * the time in which it did. 0 with a line on stderr when it could not be measured. (bench_links.c)
 */
double bench_link_frames(struct bench_run *r, struct bench_variant *v);

/* ---- results of rr and connect over links (bench_out.c) ---- */

struct bench_samples {
	double rate[BENCH_VARIANTS][BENCH_MAX_ROUNDS];	/* ops/s, 0: no sample */
	unsigned rounds;
	/* connections of darter's links: over all slices but the first */
	uint64_t ops[BENCH_VARIANTS];
	uint64_t pkts[BENCH_VARIANTS];			/* both ways */
	uint64_t timewait[BENCH_VARIANTS][BENCH_ROLES];	/* most records after a slice */
	char selfcheck[BENCH_WHY_MAX];			/* "" is ok */
};

void bench_print_head(const struct bench_options *o, const char *bench,
    const struct bench_variant *v);
void bench_print_case(struct bench_run *r, const struct bench_case *c,
    const struct bench_variant *v, const struct bench_samples *s);
void bench_print_tail(const struct bench_options *o, const struct bench_variant *v);

#endif
