/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `darter bench`: what its files share.
 *
 * The program that was started (the conductor, bench.c) never has a stack. For each *variant*
 * (cable, memif, vhost, kernel) it makes two *workers*, a server and a client, each on a core of
 * its own: processes joined by the variant's link, or for the cable two threads of one process. A
 * worker waits on its control socket without using its core; the conductor has one variant at a
 * time run a *slice* of a *case*, in rotating order, so that what else happens on the machine hits
 * all alike.
 */
#ifndef DARTER_BENCH_H
#define DARTER_BENCH_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>

#define BENCH_PORT		9000	/* first of BENCH_PORTS listeners */
#define BENCH_PORTS		16	/* so that local ports are never scarce */
#define BENCH_UDP_PORT		9100
#define BENCH_MAX_INFLIGHT	256
#define BENCH_MAX_BYTES		65536
#define BENCH_MIN_PAIRS		20
#define BENCH_MAX_ROUNDS	(BENCH_MIN_PAIRS + 1)	/* the first one warms up */
#define BENCH_WHY_MAX		256

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))

/* ---- cases ---- */

enum bench_kind {
	BENCH_RR,		/* n_bytes there, n_bytes back, one connection */
	BENCH_CONNECT,		/* socket, connect, close */
	BENCH_CRR,		/* socket, connect, 1 byte there, 1 byte back, close */
	BENCH_UDP,		/* datagrams of 1 byte one way: what the link carries */
};

struct bench_case {
	const char *name;	/* "rr-64", "connect-w16" */
	enum bench_kind kind;
	uint32_t n_bytes;
	uint32_t inflight;
	bool is_reset;		/* close with SO_LINGER 0 */
	bool is_quick;		/* part of --quick */
};

/* ---- the sockets of a worker: darter's or the kernel's (bench_net.c) ---- */

struct bench_net {
	const char *name;
	int (*socket)(int domain, int type, int protocol);
	int (*bind)(int fd, const struct sockaddr *addr, socklen_t len);
	int (*listen)(int fd, int backlog);
	int (*accept4)(int fd, struct sockaddr *addr, socklen_t *len, int flags);
	int (*connect)(int fd, const struct sockaddr *addr, socklen_t len);
	ssize_t (*send)(int fd, const void *buf, size_t len, int flags);
	ssize_t (*recv)(int fd, void *buf, size_t len, int flags);
	int (*getsockopt)(int fd, int level, int name, void *val, socklen_t *len);
	int (*setsockopt)(int fd, int level, int name, const void *val, socklen_t len);
	int (*close)(int fd);
	int (*epoll_create1)(int flags);
	int (*epoll_ctl)(int ep, int op, int fd, struct epoll_event *ev);
	int (*epoll_wait)(int ep, struct epoll_event *evs, int max, int timeout_ms);
};

extern const struct bench_net bench_net_darter;
extern const struct bench_net bench_net_kernel;
extern const struct bench_net bench_net_kernel_spin;	/* recv and epoll_wait never sleep */

/* ---- control (bench_ctl.c) ---- */

enum bench_what {
	BENCH_WHAT_SLICE,
	BENCH_WHAT_QUIT,
};

struct bench_cmd {
	enum bench_what what;
	uint32_t slice_ms;
	struct bench_case c;	/* name is not valid at the worker */
};

struct bench_reply {
	uint64_t ops;		/* requests answered; connections made or accepted; datagrams */
	uint64_t bytes;		/* echoed */
	uint64_t elapsed_ns;
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

/* What a worker is given when it starts. */
struct bench_worker {
	enum bench_role role;
	int ctl_fd;
	int cpu;
	const struct bench_net *net;
	struct bench_shared *shared;
	const char *const *overrides;	/* darter only: -o key=value, NULL-terminated */
	uint32_t server_ip;		/* host order */
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
	const struct bench_net *net;
	int ep;
	int listener[BENCH_PORTS];
	int udp;
	uint8_t *buf;
};

int bench_server_init(struct bench_server *s, const struct bench_net *net, char *why);
void bench_server_slice(struct bench_server *s, const struct bench_cmd *cmd,
    struct bench_shared *shared, struct bench_reply *ret);

/* Until the server answers, at most 10 s; for a link to come up. 0 or -1 with why. */
int bench_client_hello(const struct bench_net *net, uint32_t server_ip, char *why);
void bench_client_slice(const struct bench_net *net, uint32_t server_ip,
    const struct bench_cmd *cmd,
    struct bench_reply *ret);

/* ---- variants (bench_variant.c, bench_veth.c) ---- */

enum bench_variant_id {
	BENCH_CABLE,
	BENCH_MEMIF,
	BENCH_VHOST,
	BENCH_KERNEL,
	BENCH_VARIANTS
};

struct bench_variant {
	const char *name;
	bool is_wanted;
	bool is_up;
	char why[BENCH_WHY_MAX];	/* not up: the reason and what to do */
	pid_t pid[BENCH_ROLES];		/* 0: none of its own */
	int ctl_fd[BENCH_ROLES];
	struct bench_shared *shared;
	double udp_pps;			/* 0: not measured */
};

struct bench_options {
	bool is_json;
	bool is_quick;
	bool kernel_spins;
	double seconds;			/* 0: as long as it takes */
	int cpu[BENCH_ROLES];
	char dir[64];			/* for the links' sockets */
};

/* Starts workers and waits until they are connected; false with v->why. */
bool bench_variant_start(struct bench_variant *v, enum bench_variant_id id,
    const struct bench_options *o);
void bench_variant_stop(struct bench_variant *v);

/*
 * In the forked child: two namespaces joined by a veth pair, a worker in each. w[BENCH_ROLES]. Does
 * not return.
 */
void bench_veth_main(const struct bench_worker *w) __attribute__((noreturn));

/* First thing in a child: it ends with its parent, and Ctrl-C is for the conductor. */
void bench_child_init(pid_t parent);

/* SIGINT or SIGTERM came. */
extern volatile sig_atomic_t bench_interrupted;

/* Runs one slice on v. False (v is taken down, why set) when a worker did not answer. */
bool bench_variant_slice(struct bench_variant *v, const struct bench_cmd *cmd,
    struct bench_reply ret[BENCH_ROLES]);

/* ---- numbers (bench_stat.c) ---- */

double bench_median(const double *v, unsigned n);

struct bench_ratio {
	double median;
	double lo, hi;		/* bootstrap, 95 % */
};

/* Of a[i] / b[i], n pairs. */
void bench_ratio_of(const double *a, const double *b, unsigned n, struct bench_ratio *ret);

/* ---- results (bench_out.c) ---- */

struct bench_samples {
	double rate[BENCH_VARIANTS][BENCH_MAX_ROUNDS];	/* ops/s, 0: no sample */
	unsigned rounds;
	char selfcheck[BENCH_WHY_MAX];			/* "" is ok */
};

void bench_print_head(const struct bench_options *o, const char *bench,
    const struct bench_variant *v);
void bench_print_case(const struct bench_options *o, const char *bench, const struct bench_case *c,
    const struct bench_variant *v, const struct bench_samples *s);
void bench_print_tail(const struct bench_options *o, const char *bench,
    const struct bench_variant *v);

#endif
