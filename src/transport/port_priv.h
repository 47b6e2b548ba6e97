/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the port choice share. All of it belongs to the holder of the netisr, but for
 * the published table and shares.
 */
#ifndef TRANSPORT_PORT_PRIV_H
#define TRANSPORT_PORT_PRIV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ipaddr.h"
#include "base/list.h"
#include "runtime/publish.h"
#include "runtime/stack.h"
#include "transport/port.h"

enum {
	PORT_CURSORS = 256,	/* RFC 6056 3.3.4's table, power of two */
	PORT_LISTED = 256,	/* destinations whose share is published, power of two */
	PORT_HOT_CHAINS = 64,	/* power of two */
	PORT_HOT_MAX = 4096,
	PORT_COLD_PROBES = 16,	/* a destination that needs more gets a bitmap */
	/* portalgo hash: candidates of one netisr, and netisrs, before the draw is made at home */
	PORT_HASH_PROBES = 64,
	PORT_HASH_HOPS = 8,
	PORT_REST_TURNS = 3,
	PORT_REST_US = 1 << 19,	/* two turns and more: TIME_WAIT's second, on a coarse clock */
};

enum port_algo {
	PORT_ALGO_HOME,
	PORT_ALGO_HASH,
};

/* ---- port_table.c: ports by where they lead ---- */

/* One family's: the port's bits of the hash differ. */
struct port_family {
	uint16_t *port;		/* all ports by bucket, shuffled within */
	uint16_t *place;	/* of port (first + i) within its bucket */
	uint32_t *start;	/* of each bucket in port[], and the end */
	uint16_t *before;	/* [base][col]: ports of the netisr's slots before this one */
};

struct port_table {
	struct retired retired;
	uint32_t version;
	uint16_t first;
	uint32_t n_ports;		/* from first on */
	uint32_t count;			/* … without the reserved ones */
	uint32_t mask;			/* of the hash bits that choose a slot */
	uint32_t row;			/* columns of before[] */
	uint32_t col[NETISR_MAX];	/* first column of a netisr; it has slots[] + 1 */
	uint32_t slots[NETISR_MAX];
	uint16_t slot[STACK_RETA_MAX + NETISR_MAX];	/* of a column */
	uint16_t rank[STACK_RETA_MAX];	/* of a slot among its netisr's */
	struct port_family family[2];	/* IPv4, IPv6 */
};

/* From the stack's hash, table of owners and port range. NULL: no memory. */
struct port_table *port_table_new(struct darter_stack *s, uint32_t version);
void port_table_free(struct port_table *pt);

/* How many ports lead netisr `id` when the rest of the tuple hashes to `base`. */
uint32_t port_table_count(const struct port_table *pt, bool is_v6, uint32_t base, unsigned id);
/* The i-th of them, i below the count. */
uint16_t port_table_port(const struct port_table *pt, bool is_v6, uint32_t base, unsigned id,
    uint32_t i);
/* The number of a port that leads to `id`, tp its hash; UINT32_MAX: not in the table. */
uint32_t port_table_index(const struct port_table *pt, bool is_v6, uint32_t base, unsigned id,
    uint32_t tp, uint16_t port);

/* ---- port_bits.c: a set of numbers with a word of summary each 64 words ---- */

struct port_bits {
	uint64_t *word;
	uint64_t *sum;		/* bit i: word i is not 0 */
	uint32_t n;
	uint32_t count;
};

#define PORT_BITS_WORDS(n)	(((n) + 63u) / 64u)
#define PORT_BITS_ALL(n)	(PORT_BITS_WORDS(n) + PORT_BITS_WORDS(PORT_BITS_WORDS(n)))
#define PORT_BITS_NONE		UINT32_MAX

/* Empty or full, in PORT_BITS_ALL(n) words of the caller's. */
void port_bits_init(struct port_bits *b, uint64_t *words, uint32_t n, bool is_full);
bool port_bits_has(const struct port_bits *b, uint32_t i);
void port_bits_set(struct port_bits *b, uint32_t i);
void port_bits_clear(struct port_bits *b, uint32_t i);
/* Adds all of `word`, PORT_BITS_WORDS(n) of them. */
void port_bits_join(struct port_bits *b, const uint64_t *word);
/* The first member at or after `from`, going round; PORT_BITS_NONE: the set is empty. */
uint32_t port_bits_next(const struct port_bits *b, uint32_t from);

/* ---- destinations ---- */

/* Where a connect wants to go, and what follows from it. */
struct port_dest {
	const struct port_table *pt;
	uint64_t key;		/* SipHash of the destination under the stack's secret */
	uint32_t base;		/* hash bits of the tuple without its port */
	uint32_t count;		/* ports that lead home from there */
	bool is_v6;
};

void port_dest_of(struct netisr *n, const struct tuple *t, struct port_dest *ret);

/* How far the walk has come; destinations may share one. */
uint32_t *port_cursor_of(struct netisr *n, uint64_t key);
/* Where a destination's walk through `count` candidates stands then, and the turn's stride. */
void port_walk(const struct darter_stack *s, uint64_t key, uint32_t cursor, uint32_t count,
    uint32_t *ret_at, uint32_t *ret_stride);

/* ---- port_hot.c ---- */

struct port_hot {
	struct port_hot *chain;
	TAILQ_ENTRY(port_hot) by_use;
	struct ipaddr local;
	struct ipaddr foreign;
	uint16_t fport;
	bool is_v6;
	uint32_t base;
	uint64_t key;
	uint32_t cursor;		/* how far the walk has come, where it stands, its stride */
	uint32_t at;
	uint32_t stride;
	struct port_bits free;		/* neither taken nor resting nor bound, as far as known */
	struct port_bits ripe;		/* TIME_WAIT that may be taken over */
	uint64_t *bound;		/* not free since bound, as of `unbinds` */
	uint32_t n_bound;
	uint64_t unbinds;
	uint64_t *young[PORT_REST_TURNS];	/* TIME_WAIT by the turn in which it began */
	uint32_t n_young[PORT_REST_TURNS];
	struct time turn;		/* when young[0] began */
	uint64_t words[];
};

/* What others may know of a netisr's share of a destination. Written by its holder alone. */
struct port_listed {
	_Atomic uint64_t key;		/* | 1; 0: none */
	_Atomic uint64_t ripe_at_us;	/* free ports may come then; 0: not by themselves */
	_Atomic uint32_t free;
};

struct port_netisr {
	uint32_t cursor[PORT_CURSORS];	/* how far each destination's walk has come */
	struct {
		uint32_t tag;
		uint32_t draws;
	} warm[PORT_CURSORS];
	struct port_hot *hot[PORT_HOT_CHAINS];
	TAILQ_HEAD(port_hots, port_hot) by_use;	/* least recently used first */
	uint32_t n_hot;
	uint32_t version;		/* of the table that the bitmaps are made for */
	struct port_listed listed[PORT_LISTED] CACHE_ALIGNED;
} CACHE_ALIGNED;

void port_hot_init(struct port_netisr *pn);
void port_hot_fini(struct port_netisr *pn);
/* NULL: has no bitmap. */
struct port_hot *port_hot_find(struct netisr *n, const struct tuple *t, const struct port_dest *d);
/* Makes one, in place of the least recently used if need be. NULL: the knob is 0, or no memory. */
struct port_hot *port_hot_make(struct netisr *n, const struct tuple *t, const struct port_dest *d);
/* 0, or -EADDRNOTAVAIL when n's share is spent. *probes grows. */
int port_hot_draw(struct netisr *n, struct port_hot *h, const struct port_dest *d,
    struct port_ask *a, uint32_t *probes);
/* Free ports of netisr `id` towards d, as far as published; `all` when nothing is. */
uint32_t port_listed_free(const struct netisr *n, unsigned id, const struct port_dest *d,
    uint32_t all);

/* ---- port_count.c ---- */

int port_count_init(struct darter_stack *s);
void port_count_fini(struct darter_stack *s);

#endif
