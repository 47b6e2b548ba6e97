/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The published table of explicit binds, listeners and datagram sockets.
 *
 * Three chained hash tables of fixed size. Two have lock-free readers: port_table, keyed by
 * (protocol, local port), holds what is not connected; conn_table, keyed by the 4-tuple, holds
 * connected datagram sockets, so that a server with thousands of them on one port finds each in
 * O(1). The third, port_all, belongs to writers: every entry of a port, for the conflict rules. A
 * bitmap of ports with an entry answers the common question ("free?") in one load.
 *
 * Readers hold a netisr; writers hold the control mutex. An entry is filled in before it is linked,
 * its `next` is never changed while a reader may stand on it (a removed entry still leads on to the
 * rest of its chain), and it is freed after the grace period (publish.h). A changed foreign end is
 * a fresh entry, linked in before the old one goes, so no packet falls between.
 *
 * The conflict rules are Linux's, since programs are written against them. Two binds of one
 * protocol and port clash when their addresses overlap (equal, or one is any) unless both have
 * SO_REUSEADDR and neither listens (TCP) / both have SO_REUSEADDR (UDP), or both have SO_REUSEPORT.
 * Options are looked at when the second one binds. Connections and TIME_WAIT use their port like a
 * bind with the options their socket had (port_count.c has how the two meet). A drawn port (bind to
 * 0) never shares an overlapping address, whatever the options. Where datagram sockets share a port
 * by SO_REUSEADDR, the one bound last gets the unicast.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "runtime/sockhalf.h"
#include "runtime/stack.h"
#include "transport/demux.h"
#include "transport/demux_priv.h"
#include "transport/group.h"
#include "transport/ulp.h"

enum {
	SECRET_TABLES = 2,	/* stack->secret[] */
	DRAW_TRIES = 8,
};

/* What a lookup has found so far. */
struct best {
	struct bind_entry *entry;
	int score;
	uint32_t members;	/* of a SO_REUSEPORT group with this score */
};

static unsigned
proto_index(uint8_t proto)
{
	return proto == IPPROTO_UDP;
}

static uint32_t
port_bucket(uint8_t proto, uint16_t port)
{
	/*
	 * Ports are dense: neighbours fall into neighbouring buckets, the protocols half a table
	 * apart.
	 */
	return (port + proto_index(proto) * (DEMUX_BUCKETS / 2)) & (DEMUX_BUCKETS - 1);
}

static uint32_t
tuple_bucket(const struct darter_stack *s, const struct tuple *t)
{
	return (uint32_t)siphash_tuple(&s->secret[SECRET_TABLES], t) & (DEMUX_BUCKETS - 1);
}

static bool
addrs_overlap(const struct ipaddr *a, const struct ipaddr *b)
{
	return ipaddr_is_any(a) || ipaddr_is_any(b) || ipaddr_eq(a, b);
}

static bool
entry_is(const struct bind_entry *e, uint8_t proto, uint16_t port)
{
	return e->local.port == port && e->proto == proto;
}

/* ---- the map of ports ---- */

static bool
map_has(const struct demux_stack *d, uint8_t proto, uint16_t port)
{
	/* sequentially consistent: a connect's look after it has counted itself (port_count.c) */
	uint64_t word = atomic_load_explicit(&d->port_map[proto_index(proto)][port / 64],
	    memory_order_seq_cst);

	return (word >> (port % 64)) & 1;
}

static void
map_set(struct demux_stack *d, uint8_t proto, uint16_t port, bool is_taken)
{
	_Atomic uint64_t *word = &d->port_map[proto_index(proto)][port / 64];
	uint64_t bit = UINT64_C(1) << (port % 64);

	if (is_taken) {
		atomic_fetch_or_explicit(word, bit, memory_order_seq_cst);
		return;
	}
	atomic_fetch_and_explicit(word, ~bit, memory_order_acq_rel);
}

/* ---- conflicts; control mutex ---- */

static bool
may_share(const struct sockhalf *a, const struct sockhalf *b, uint8_t proto, bool b_listens)
{
	bool both_reuseaddr = atomic_load_explicit(&a->opts.reuseaddr, memory_order_relaxed) &&
	    atomic_load_explicit(&b->opts.reuseaddr, memory_order_relaxed);
	bool both_reuseport = atomic_load_explicit(&a->opts.reuseport, memory_order_relaxed) &&
	    atomic_load_explicit(&b->opts.reuseport, memory_order_relaxed);

	if (both_reuseport)
		return true;
	return both_reuseaddr && (proto == IPPROTO_UDP || !b_listens);
}

/* Does another socket's bind forbid `local` to sh? is_drawn: sharing is out of the question. */
static bool
bind_conflicts(struct demux_stack *d, const struct sockhalf *sh, uint8_t proto,
    const struct endpoint *local, bool is_drawn)
{
	const struct bind_entry *e;
	const struct sockhalf *other;

	if (!map_has(d, proto, local->port))
		return false;
	for (e = d->port_all[port_bucket(proto, local->port)]; e != NULL; e = e->port_next) {
		if (!entry_is(e, proto, local->port))
			continue;
		other = atomic_load_explicit(&e->sh, memory_order_relaxed);
		if (other == sh || !addrs_overlap(&e->local.addr, &local->addr))
			continue;
		if (is_drawn || !may_share(sh, other, proto,
		    atomic_load_explicit(&e->is_listener, memory_order_relaxed)))
			return true;
	}
	return false;
}

/* ---- links; control mutex ---- */

static struct bind_entry *_Atomic *
entry_bucket(struct darter_stack *s, const struct bind_entry *e)
{
	struct demux_stack *d = s->demux;
	struct tuple t;

	if (!e->is_connected)
		return &d->port_table[port_bucket(e->proto, e->local.port)];
	t.local = e->local.addr;
	t.lport = e->local.port;
	t.foreign = e->foreign.addr;
	t.fport = e->foreign.port;
	return &d->conn_table[tuple_bucket(s, &t)];
}

static void
entry_link(struct darter_stack *s, struct bind_entry *e)
{
	struct demux_stack *d = s->demux;
	struct bind_entry *_Atomic *head = entry_bucket(s, e);
	struct bind_entry **all = &d->port_all[port_bucket(e->proto, e->local.port)];

	e->port_next = *all;
	*all = e;
	d->n_entries++;
	if (e->is_connected)
		atomic_fetch_add_explicit(&d->n_connected, 1, memory_order_acq_rel);
	atomic_store_explicit(&e->next, atomic_load_explicit(head, memory_order_relaxed),
	    memory_order_relaxed);
	published_store(head, e);
	/* last, also when the bit is there: who sees this write finds the entry */
	map_set(d, e->proto, e->local.port, true);
}

static void
unlink_published(struct darter_stack *s, struct bind_entry *e)
{
	struct bind_entry *_Atomic *at = entry_bucket(s, e);
	struct bind_entry *i;

	while ((i = atomic_load_explicit(at, memory_order_relaxed)) != e)
		at = &i->next;
	published_store(at, atomic_load_explicit(&e->next, memory_order_relaxed));
	if (e->is_connected)
		atomic_fetch_sub_explicit(&s->demux->n_connected, 1, memory_order_acq_rel);
}

static void
unlink_all(struct demux_stack *d, struct bind_entry *e)
{
	struct bind_entry **at = &d->port_all[port_bucket(e->proto, e->local.port)];
	struct bind_entry *i;

	while (*at != e)
		at = &(*at)->port_next;
	*at = e->port_next;
	d->n_entries--;
	for (i = d->port_all[port_bucket(e->proto, e->local.port)]; i != NULL; i = i->port_next)
		if (entry_is(i, e->proto, e->local.port))
			return;
	map_set(d, e->proto, e->local.port, false);
}

static void
entry_free(struct darter_stack *s UNUSED, struct retired *r)
{
	free(container_of(r, struct bind_entry, retired));
}

static void
entry_retire(struct darter_stack *s, struct bind_entry *e)
{
	unlink_published(s, e);
	unlink_all(s->demux, e);
	atomic_fetch_add_explicit(&s->demux->unbinds, 1, memory_order_acq_rel);
	publish_retire(s, &e->retired, entry_free);
}

static struct bind_entry *
entry_new(struct sockhalf *sh, uint8_t proto, const struct endpoint *local,
    const struct endpoint *foreign)
{
	struct bind_entry *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	atomic_init(&e->sh, sh);
	e->proto = proto;
	e->local = *local;
	if (foreign != NULL)
		e->foreign = *foreign;
	e->is_connected = e->foreign.port != 0 && !ipaddr_is_any(&local->addr);
	e->is_reuseport = atomic_load_explicit(&sh->opts.reuseport, memory_order_relaxed) != 0;
	return e;
}

/* ---- bind; control mutex ---- */

static bool
conns_conflict(struct darter_stack *s, const struct sockhalf *sh, uint8_t proto,
    const struct endpoint *local, bool is_drawn)
{
	return proto == IPPROTO_TCP && port_has_conns(s, &local->addr, local->port, is_drawn ? 0 :
	    port_share_of(sh));
}

/*
 * A random free port of the ephemeral range: random start, random stride, each candidate at most
 * once.
 */
static int
draw_port(struct darter_stack *s, const struct sockhalf *sh, uint8_t proto, struct endpoint *ep)
{
	uint16_t first, last;
	uint32_t i, count, at, stride, random[2];

	port_range_of(s, atomic_load_explicit(&sh->opts.port_range, memory_order_relaxed), &first,
	    &last);
	if (first > last)
		return -EADDRINUSE;
	count = (uint32_t)last - first + 1;
	s->random(s, random, sizeof(random));
	at = random[0] % count;
	stride = port_stride(random[1], count);
	for (i = 0; i < count; i++) {
		ep->port = (uint16_t)(first + at);
		at = (at + stride) % count;
		if (!port_is_reserved(s, ep->port) &&
		    !bind_conflicts(s->demux, sh, proto, ep, true) &&
		    !conns_conflict(s, sh, proto, ep, true))
			return 0;
	}
	return -EADDRINUSE;
}

/* Links a fresh entry, then looks for connections on the port: port_count.c needs this order. */
static int
bind_port(struct darter_stack *s, struct sockhalf *sh, uint8_t proto, const struct endpoint *ep,
    bool is_drawn, struct bind_entry **ret_entry)
{
	struct bind_entry *e = entry_new(sh, proto, ep, NULL);

	if (e == NULL)
		return -ENOMEM;
	if (e->is_reuseport)
		e->member = group_free_member(s->demux->port_all[port_bucket(proto, ep->port)], e);
	entry_link(s, e);
	if (conns_conflict(s, sh, proto, ep, is_drawn)) {
		demux_unbind(s, e);
		return -EADDRINUSE;
	}
	*ret_entry = e;
	return 0;
}

int
demux_bind(struct darter_stack *s, struct sockhalf *sh, uint8_t proto, const struct endpoint *local,
    struct endpoint *ret_local, struct bind_entry **ret_entry)
{
	struct endpoint ep = *local;
	unsigned tries;
	int err = 0;

	if (s->demux->n_entries >= DEMUX_MAX_ENTRIES)
		return -ENOMEM;
	if (ep.port != 0 && bind_conflicts(s->demux, sh, proto, &ep, false))
		return -EADDRINUSE;
	if (ep.port != 0)
		err = bind_port(s, sh, proto, &ep, false, ret_entry);
	/* a connect may come in between a draw and its bind: then both take another one */
	for (tries = 0; local->port == 0 && tries < DRAW_TRIES; tries++) {
		err = draw_port(s, sh, proto, &ep);
		if (err == 0)
			err = bind_port(s, sh, proto, &ep, true, ret_entry);
		if (err != -EADDRINUSE)
			break;
	}
	if (err == 0)
		*ret_local = ep;
	return err;
}

int
demux_set_listener(struct darter_stack *s, struct bind_entry *e)
{
	const struct bind_entry *i;
	const struct sockhalf *sh = atomic_load_explicit(&e->sh, memory_order_relaxed);
	const struct sockhalf *other;

	for (i = s->demux->port_all[port_bucket(e->proto, e->local.port)]; i != NULL;
	    i = i->port_next) {
		if (i == e || !entry_is(i, e->proto, e->local.port) ||
		    !atomic_load_explicit(&i->is_listener, memory_order_relaxed) ||
		    !addrs_overlap(&i->local.addr, &e->local.addr))
			continue;
		other = atomic_load_explicit(&i->sh, memory_order_relaxed);
		if (!may_share(sh, other, e->proto, true))
			return -EADDRINUSE;
	}
	atomic_store_explicit(&e->is_listener, true, memory_order_release);
	return 0;
}

int
demux_set_foreign(struct darter_stack *s, struct bind_entry **e, const struct endpoint *local,
    const struct endpoint *foreign)
{
	struct bind_entry *old = *e;
	struct bind_entry *fresh = entry_new(atomic_load_explicit(&old->sh, memory_order_relaxed),
	    old->proto, local, foreign);

	if (fresh == NULL)
		return -ENOMEM;
	fresh->is_reuseport = old->is_reuseport;
	fresh->member = old->member;
	atomic_init(&fresh->is_listener,
	    atomic_load_explicit(&old->is_listener, memory_order_relaxed));
	entry_link(s, fresh);
	/*
	 * The old entry's `sh` stays: a holder within its round may still deliver to the same
	 * socket.
	 */
	entry_retire(s, old);
	*e = fresh;
	return 0;
}

void
demux_unbind(struct darter_stack *s, struct bind_entry *e)
{
	atomic_store_explicit(&e->sh, NULL, memory_order_release);
	entry_retire(s, e);
}

/* ---- lookup; holder ---- */

/* 0: no match; else the better the higher. */
static int
match_score(const struct bind_entry *e, const struct tuple *t)
{
	int score = 1;

	if (!ipaddr_is_any(&e->local.addr)) {
		if (!ipaddr_eq(&e->local.addr, &t->local))
			return 0;
		score += 1;
	}
	if (e->foreign.port != 0) {
		if (e->foreign.port != t->fport || !ipaddr_eq(&e->foreign.addr, &t->foreign))
			return 0;
		score += 2;
	}
	return score;
}

static bool
is_candidate(const struct bind_entry *e, uint8_t proto, const struct tuple *t)
{
	if (!entry_is(e, proto, t->lport) || published_load(&e->sh) == NULL)
		return false;
	return proto == IPPROTO_UDP || atomic_load_explicit(&e->is_listener, memory_order_acquire);
}

static void
find_best(struct demux_stack *d, uint8_t proto, const struct tuple *t, struct best *b)
{
	struct bind_entry *e;
	int score;

	b->entry = NULL;
	b->score = 0;
	b->members = 0;
	for (e = published_load(&d->port_table[port_bucket(proto, t->lport)]); e != NULL;
	    e = published_load(&e->next)) {
		if (!is_candidate(e, proto, t))
			continue;
		score = match_score(e, t);
		if (score > b->score) {
			b->entry = e;
			b->score = score;
			b->members = e->is_reuseport;
		} else if (score != 0 && score == b->score && e->is_reuseport) {
			b->members++;
		}
	}
}

/* The member of a SO_REUSEPORT group for this tuple. */
static struct bind_entry *
pick_member(struct darter_stack *s, uint8_t proto, const struct tuple *t, const struct best *b)
{
	struct group_pick pick = group_pick_start(siphash_tuple(&s->secret[SECRET_TABLES], t));
	struct bind_entry *e;

	for (e = published_load(&s->demux->port_table[port_bucket(proto, t->lport)]); e != NULL;
	    e = published_load(&e->next)) {
		if (e->is_reuseport && is_candidate(e, proto, t) && match_score(e, t) == b->score)
			group_pick_offer(&pick, e);
	}
	return pick.found != NULL ? pick.found : b->entry;
}

static struct sockhalf *
lookup_port(struct darter_stack *s, uint8_t proto, const struct tuple *t)
{
	struct sockhalf *sh;
	struct bind_entry *e;
	struct best b;

	if (!map_has(s->demux, proto, t->lport))
		return NULL;
	/*
	 * Who was found may have been removed since; others of its group, or a wildcard, are still
	 * there, as if the packet had come a moment later. The next look does not see it any more.
	 */
	do {
		find_best(s->demux, proto, t, &b);
		e = b.entry;
		if (e == NULL)
			return NULL;
		if (e->is_reuseport && b.members > 1)
			e = pick_member(s, proto, t, &b);
		sh = published_load(&e->sh);
	} while (sh == NULL);
	return sh;
}

struct sockhalf *
demux_lookup_listener(struct darter_stack *s, const struct tuple *t)
{
	return lookup_port(s, IPPROTO_TCP, t);
}

struct sockhalf *
demux_lookup_connected(struct darter_stack *s, const struct tuple *t)
{
	struct demux_stack *d = s->demux;
	struct bind_entry *e;
	struct sockhalf *sh;

	if (atomic_load_explicit(&d->n_connected, memory_order_acquire) == 0)
		return NULL;
	for (e = published_load(&d->conn_table[tuple_bucket(s, t)]); e != NULL;
	    e = published_load(&e->next)) {
		if (!entry_is(e, IPPROTO_UDP, t->lport) || e->foreign.port != t->fport ||
		    !ipaddr_eq(&e->foreign.addr, &t->foreign) ||
		    !ipaddr_eq(&e->local.addr, &t->local))
			continue;
		sh = published_load(&e->sh);
		if (sh != NULL)
			return sh;
	}
	return NULL;
}

struct sockhalf *
demux_lookup_dgram(struct darter_stack *s, const struct tuple *t)
{
	struct sockhalf *sh = demux_lookup_connected(s, t);

	return sh != NULL ? sh : lookup_port(s, IPPROTO_UDP, t);
}

void
demux_visit_dgram(struct darter_stack *s, const struct tuple *t,
    void (*fn)(void *arg, struct sockhalf *sh), void *arg)
{
	struct demux_stack *d = s->demux;
	struct sockhalf *sh = demux_lookup_connected(s, t);
	struct bind_entry *e;

	if (sh != NULL)
		fn(arg, sh);
	for (e = published_load(&d->port_table[port_bucket(IPPROTO_UDP, t->lport)]); e != NULL;
	    e = published_load(&e->next)) {
		if (!entry_is(e, IPPROTO_UDP, t->lport) || match_score(e, t) == 0)
			continue;
		sh = published_load(&e->sh);
		if (sh != NULL)
			fn(arg, sh);
	}
}

bool
demux_port_is_bound(struct darter_stack *s, uint8_t proto, const struct ipaddr *addr, uint16_t port)
{
	struct bind_entry *e;

	if (!map_has(s->demux, proto, port))
		return false;
	for (e = published_load(&s->demux->port_table[port_bucket(proto, port)]); e != NULL;
	    e = published_load(&e->next))
		if (entry_is(e, proto, port) && published_load(&e->sh) != NULL &&
		    addrs_overlap(&e->local.addr, addr))
			return true;
	return false;
}

/* ---- the layer ---- */

static int
demux_init(struct darter_stack *s, char *err, size_t err_size)
{
	int rc = -ENOMEM;

	s->demux = calloc(1, sizeof(*s->demux));
	if (s->demux != NULL)
		rc = port_init(s);
	if (rc < 0) {
		free(s->demux);
		s->demux = NULL;
		snprintf(err, err_size, "demux: tables of binds and ports: %s; free some memory",
		    strerror(-rc));
	}
	return rc;
}

static void
demux_fini(struct darter_stack *s)
{
	struct demux_stack *d = s->demux;
	struct bind_entry *e, *after;
	unsigned i;

	control_lock(s);
	publish_drain(s);
	control_unlock(s);
	for (i = 0; i < DEMUX_BUCKETS; i++)
		for (e = d->port_all[i]; e != NULL; e = after) {
			after = e->port_next;
			free(e);
		}
	port_fini(s);
	free(d);
	s->demux = NULL;
}

const struct layer demux_layer = {
	.name = "demux",
	.stack_init = demux_init,
	.stack_fini = demux_fini,
};
