/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * darter: a TCP/IP stack in your process. Start-up, configuration, threads.
 *
 * A *stack* (struct darter_stack) is a host of its own: addresses, routes, sockets, counters. It is
 * cut into *netisrs*, one a core; every connection belongs to exactly one of them. By default each
 * netisr has a background thread, and the calls of darter/socket.h work from any thread as the
 * kernel's do:
 *
 *	char err[DARTER_ERR_MAX];
 *	struct darter_stack *s = darter_open(NULL, err, sizeof(err));
 *
 *	if (s == NULL)
 *		errx(1, "%s", err);
 *	int fd = darter_socket(AF_INET, SOCK_STREAM, 0);
 *	...
 *	darter_stack_close(s);
 *
 * A thread may instead *attach* to a netisr: it then runs the protocols itself whenever it waits
 * (in a blocking call, in darter_epoll_wait, in darter_run), and calls on its own connections are
 * plain function calls.
 *
 * Conventions. POSIX-shaped calls (darter/socket.h, darter/event.h) return -1 and set errno. The
 * calls in this file return 0, a count, or a *negative errno*, unless they say otherwise. All are
 * callable from any thread; only darter_signal_note is async-signal-safe. Strings that are returned
 * live as long as the library. No call prints.
 *
 * fork: the child has no stack. Every call there fails with ENOTSUP, darter_stack_close and
 * darter_close of inherited descriptors only forget them and send nothing. exec: descriptors do not
 * survive.
 *
 * darter_open and darter_stack_close are a pair: the name darter_close belongs to the POSIX-shaped
 * close of a descriptor.
 *
 * exit: data that was written before the last close is still delivered, for at most
 * `stack.exit_linger_ms` (configuration, default 1000), whether or not darter_stack_close was
 * called; then what is left is reset. A netisr whose attached thread neither waits in a call nor
 * runs it has nobody to do so: that is waited for a second, then its peers hear nothing more.
 */
#ifndef DARTER_DARTER_H
#define DARTER_DARTER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Symbols that the shared library exports. */
#define DARTER_API __attribute__((visibility("default")))

#define DARTER_VERSION_MAJOR	0
#define DARTER_VERSION_MINOR	1
#define DARTER_VERSION_PATCH	0
#define DARTER_VERSION		"0.1.0"

/* Big enough for every one-line error text of the library, its NUL included. */
#define DARTER_ERR_MAX 256

/* DARTER_VERSION of the library that is running, which may be newer than this header's. */
DARTER_API const char *darter_version(void);

/* Opaque. */
struct darter_stack;

/*
 * Levels of log lines, most urgent first. The configuration key `stack.log` sets the highest one
 * that is passed on.
 */
enum darter_log_level {
	DARTER_LOG_ERR,		/* it does not work */
	DARTER_LOG_WARN,	/* it works, not as asked */
	DARTER_LOG_NOTICE,	/* once a start, or a change by the operator */
	DARTER_LOG_INFO,
	DARTER_LOG_DEBUG
};

/* How to open a stack. Zero everything, then set `size` and what differs from the default. */
struct darter_options {
	/* sizeof(struct darter_options), so that the struct may grow in later versions. */
	size_t size;
	/*
	 * INI file (darter.conf(5)). NULL: the file that the environment variable DARTER_CONF
	 * names, if that is set; else built-in defaults: one netisr, its background thread, the
	 * loopback addresses, no device.
	 */
	const char *conf_file;
	/*
	 * "section.key=value", applied after the file, in order; NULL-terminated, or NULL. For
	 * example "stack.netisrs=2", "port.eth.addr=192.0.2.1/24", "sysctl.net.inet.tcp.friends=0".
	 */
	const char *const *overrides;
	/*
	 * Receives log lines (one line each, without newline, valid during the call) from any
	 * thread, never while that thread is inside a callback of its own. May be called until
	 * darter_stack_close returns. NULL: lines are dropped. It must not call the library.
	 */
	void (*log)(void *arg, int level, const char *line);
	void *log_arg;
};

/*
 * Opens a stack and starts its threads; devices are up and addresses usable when it returns. The
 * first stack that is open is the default one for every thread. `opts` NULL means all defaults;
 * nothing it points to is kept but `log_arg`.
 *
 * Returns NULL on failure, with errno set and one line in err (err_size bytes, DARTER_ERR_MAX
 * suffice; err may be NULL) that names the thing, the reason and what to do: "file:line: [section]
 * key: …" for configuration. Nothing is left behind then. errno: EINVAL configuration, ENOENT file,
 * ENOMEM, ENODEV device, EPERM rights, ENOTSUP in a forked child.
 */
DARTER_API struct darter_stack *darter_open(const struct darter_options *opts, char *err,
    size_t err_size);

/*
 * darter_open(NULL, …) unless the process has an open stack already; for libraries and small
 * programs. Returns 0 (then sockets can be made) or a negative errno with a line in err. Concurrent
 * callers get one stack.
 */
DARTER_API int darter_init(char *err, size_t err_size);

/*
 * Closes a stack: its descriptors that are still open are closed (blocked calls return EBADF),
 * unsent data gets up to `stack.exit_linger_ms` to leave, what remains is reset, threads end,
 * memory and devices are given back. No thread may be attached to it, and no other thread may make
 * calls on the stack or its descriptors afterwards. NULL is fine. In a forked child only the
 * descriptors are forgotten.
 */
DARTER_API void darter_stack_close(struct darter_stack *s);

/* ---- which stack ---- */

/*
 * Makes s the stack in which this thread's darter_socket and darter_epoll_create1 create. NULL:
 * back to the default, the stack that was opened first of those still open. Existing descriptors
 * keep their stack.
 */
DARTER_API void darter_stack_use(struct darter_stack *s);

/* The calling thread's stack, or NULL when none is open. */
DARTER_API struct darter_stack *darter_stack_current(void);

/*
 * Number of netisrs of s (s NULL: of the current stack); they are numbered from 0. 0 when there is
 * no stack.
 */
DARTER_API unsigned darter_netisr_count(struct darter_stack *s);

/* ---- threads ---- */

/*
 * Makes the calling thread the keeper of a netisr, until darter_detach. The netisr's background
 * thread then leaves it alone, and the netisr runs only when this thread waits in darter or calls
 * darter_run: a thread that computes for long lets its connections' timers and packets wait.
 * Sockets that it makes live on this netisr where that is possible; it may use all others too.
 * Several threads attach to different netisrs of one stack.
 *
 * 0; -EBUSY another thread is attached to it, -EDEADLK this thread is attached already, -EINVAL no
 * such netisr, -ENOTSUP forked child. s NULL: the current stack.
 */
DARTER_API int darter_attach(struct darter_stack *s, unsigned netisr);

/*
 * Gives the netisr back to its background thread. 0, or -EINVAL when not attached. A thread
 * that ends, or is cancelled while it sleeps in a call, is detached.
 */
DARTER_API int darter_detach(void);

/*
 * The loop of an attached thread: runs the netisr, calls cb(arg), and so on until cb returns
 * something other than 0, which is returned. Between two calls it sleeps (in the netisr) when
 * nothing has happened, for at most a millisecond; cb therefore polls (darter_epoll_wait with
 * timeout 0, non-blocking calls). -EINVAL when the thread is not attached.
 */
DARTER_API int darter_run(int (*cb)(void *arg), void *arg);

/*
 * Call it first in every signal handler whose arrival should interrupt a blocking darter call with
 * EINTR: a call that is about to sleep, but does not yet, is then interrupted too.
 * Async-signal-safe, cheap, and harmless elsewhere.
 */
DARTER_API void darter_signal_note(void);

/* ---- knobs ---- */

/* A run-time knob (sysctl). Strings are valid during the visit. */
struct darter_knob {
	const char *name;	/* "net.inet.tcp.friends" */
	const char *text;	/* one sentence, with the unit */
	const char *value;	/* as darter_sysctl_set takes it */
	int64_t min;
	int64_t max;
	int64_t dflt;
};

/*
 * Value of a knob as text into buf (NUL-terminated, cut if need be). 0 or -ENOENT. s NULL: the
 * current stack.
 */
DARTER_API int darter_sysctl_get(struct darter_stack *s, const char *name, char *buf, size_t size);

/*
 * Sets a knob from text: a number with optional suffix k, m or g; yes, no, on, off, true or false;
 * or a name from the knob's list. Takes effect at once for what happens afterwards. 0; -ENOENT,
 * -EINVAL, -ERANGE with one line in err.
 */
DARTER_API int darter_sysctl_set(struct darter_stack *s, const char *name, const char *value,
    char *err, size_t err_size);

/*
 * Calls fn for every knob in the order of their names until it returns non-zero; returns that, or
 * 0.
 */
DARTER_API int darter_sysctl_visit(struct darter_stack *s,
    int (*fn)(void *arg, const struct darter_knob *k), void *arg);

/* ---- addresses and routes at run time ---- */

/*
 * Adds or removes an address: `port` is a [port.NAME] of the configuration or "lo", `addr` is
 * "192.0.2.1/24" (without a prefix length: /32). Connections that use a removed address are not
 * ended. 0; -ENODEV no such port, -EINVAL text, -EEXIST, -ENOENT, -EAFNOSUPPORT, -ENOMEM. s NULL:
 * the current stack.
 */
DARTER_API int darter_addr_add(struct darter_stack *s, const char *port, const char *addr);
DARTER_API int darter_addr_del(struct darter_stack *s, const char *port, const char *addr);

/*
 * Adds or removes a route: `dst` is "198.51.100.0/24" or "default", `gateway` an address on a
 * connected network. 0; -EINVAL text, -ENETUNREACH gateway not reachable directly, -EEXIST,
 * -ENOENT, -EAFNOSUPPORT, -ENOMEM.
 */
DARTER_API int darter_route_add(struct darter_stack *s, const char *dst, const char *gateway);
DARTER_API int darter_route_del(struct darter_stack *s, const char *dst);

#ifdef __cplusplus
}
#endif

#endif
