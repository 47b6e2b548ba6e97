/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the netrate programs share: the socket calls as a table (darter's, or with -K the kernel's),
 * the command line, instances, and the report.
 *
 * They take the option letters and print the results of DragonFly's tools/tools/netrate, so that
 * figures can be compared; epoll stands where those use kqueue. Order of use: fill in struct
 * netrate, netrate_getopt() until -1, netrate_begin(), sockets, netrate_run(), results,
 * netrate_end(). All of this happens in the main thread; only the work function runs elsewhere.
 */
#ifndef NETRATE_H
#define NETRATE_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include <darter/darter.h>

#include "calls.h"

enum {
	NETRATE_COUNTS_MAX = 4,
	NETRATE_ADDRS_MAX = 256,
	NETRATE_INSTANCES_MAX = 1024,
	NETRATE_OVERRIDES_MAX = 64,
	NETRATE_BACKLOG = 65535,	/* as long as the stack allows */
};

/* The table in use; set when netrate_getopt() has returned -1. */
extern const struct net_calls *net;

/*
 * One worker: a thread on darter; with -K a process, unless the program asks for threads. Written
 * by its worker, read by the main thread (counts at any time, the rest when it has ended).
 */
struct instance {
	_Alignas(64) atomic_ulong count[NETRATE_COUNTS_MAX];	/* see netrate.count_names */
	atomic_bool is_done;
	bool is_attached;
	double elapsed_us;		/* the time that its rates refer to */
	unsigned id;
	struct netrate *nr;
};

/* Lives in memory that processes share. */
struct netrate_shared {
	atomic_bool must_stop;
	atomic_bool has_started;	/* with netrate.has_gate: the clock runs */
	atomic_uint n_at_gate;
	struct instance instances[];
};

struct netrate {
	/* Set by the program. */
	const char *program;
	const char *letters;		/* its own options, as getopt(3) takes them */
	const char *usage;		/* its own options and operands, for people */
	const char *count_names[NETRATE_COUNTS_MAX];	/* of instance.count; NULL: not used */
	unsigned n_instances;		/* default of -i; 0: one a CPU */
	unsigned seconds;		/* default of -l; 0: until SIGINT or SIGTERM */
	uint16_t port;			/* default of -p, host order */
	bool is_server;			/* takes -D, may run for ever, says when it listens */
	bool is_threaded;		/* threads even with -K */
	bool has_gate;			/* workers call netrate_gate() before the clock runs */
	unsigned n_extra;		/* instances beyond -i, with the highest numbers */

	/* Set by netrate_getopt() and netrate_begin(). */
	struct sockaddr_in addrs[NETRATE_ADDRS_MAX];	/* each -4, with the port of -p */
	unsigned n_addrs;
	bool is_kernel, must_attach, is_json;
	unsigned n_workers;		/* n_instances + n_extra */
	struct netrate_shared *shared;
	struct darter_stack *stack;
	double run_s;			/* how long netrate_run took the time */

	const char *conf_file;
	unsigned n_overrides;
	const char *overrides[NETRATE_OVERRIDES_MAX + 1];
};

/* A further member of the report. */
struct netrate_value {
	const char *name;
	double value;
};

/*
 * getopt(3) for the program's own letters. What all share (-4 -6 -p -i -l -K -A -o -D, --conf,
 * --json, --help) is taken care of. -1 at the end; optind is the first operand then.
 */
int netrate_getopt(struct netrate *nr, int argc, char **argv);

/* Tells how to use the program and ends it with status 2. */
_Noreturn void netrate_usage(const struct netrate *nr);

/* A number of an option, or the end of the program with a sentence. */
unsigned long netrate_number(const char *option, const char *text, unsigned long min,
    unsigned long max);

/* An IPv4 address with the port (host order), or the end of the program. */
struct sockaddr_in netrate_addr(const char *option, const char *text, uint16_t port);

/* Blocks the ending signals and opens the stack (not with -K), or ends the program. */
void netrate_begin(struct netrate *nr);

/*
 * A listener on addr; one of a SO_REUSEPORT group when must_share. flags: SOCK_NONBLOCK. -1 with
 * errno EADDRINUSE when may_fail and the port is taken; otherwise it ends the program.
 */
int netrate_listen(const struct sockaddr_in *addr, int flags, bool must_share, bool may_fail);

/* A server tells that it listens (with --json), so that whoever started it need not guess. */
void netrate_say_listening(const struct netrate *nr, uint16_t port);

/*
 * Runs work in all instances until the time of -l is over, a signal comes, or all have returned.
 * When it is over, calls in which workers sleep return EINTR and netrate_must_stop() is true.
 */
void netrate_run(struct netrate *nr, void (*work)(struct instance *in));

static inline bool
netrate_must_stop(const struct instance *in)
{
	return atomic_load_explicit(&in->nr->shared->must_stop, memory_order_relaxed);
}

/* Adds to a count of this worker's own. */
static inline void
netrate_count(struct instance *in, unsigned i, unsigned long n)
{
	unsigned long v = atomic_load_explicit(&in->count[i], memory_order_relaxed);

	atomic_store_explicit(&in->count[i], v + n, memory_order_relaxed);
}

/* Holds workers until all of them are here: first asleep, the last moments spinning. */
void netrate_gate(struct instance *in, atomic_uint *n_pending);

/*
 * Pins the calling worker to CPU number id of those the process may use, modulo their number, and
 * asks that `fd`, its own member of a SO_REUSEPORT group, be given what arrives on that CPU
 * (SO_INCOMING_CPU). fd -1: none.
 */
void netrate_pin(unsigned id, int fd);

/* Sum of a count over all instances. */
unsigned long netrate_sum(const struct netrate *nr, unsigned i);

/* The report as one line of JSON: the counts, then the values given. */
void netrate_json(const struct netrate *nr, const struct netrate_value *values, unsigned n_values);

/* Microseconds of the monotonic clock. */
double netrate_now_us(void);

/* Closes the stack. */
void netrate_end(struct netrate *nr);

#endif
