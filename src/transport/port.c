/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The local port of an outgoing connection, drawn so that the answer comes home (laws 1 and 2).
 *
 * portalgo `home`: port_table.c has the ports that lead to each netisr, in a secret order. Per
 * destination (local address, foreign address and port) the candidates form a walk through them:
 *
 *   candidate(i) = ports[(offset + i * stride) mod count]
 *   offset, stride = SipHash(secret, destination, turn), turn = i / count
 *
 * with stride coprime with count, so a full turn visits each port once, and no two turns have the
 * same order. How far the walk has come is kept in a small table of cursors per netisr, indexed by
 * another part of the hash (RFC 6056 3.3.4, "double-hash"): a port comes back after about `count`
 * draws, and an outsider who sees the ports towards his own host learns nothing about those towards
 * another. We add to the RFC the keyed stride and the secret order, since neighbouring numbers
 * would show how many connections a host makes. Every candidate leads home, so a draw looks at one,
 * or a few when the netisr has many connections to the destination; from porthot_after draws on, or
 * when a draw looked at PORT_COLD_PROBES in vain, the destination gets a bitmap (port_hot.c).
 *
 * When the own share is spent, or a key of deficient rank leaves the netisr none, the connect is
 * sent to the netisr with most ports left, as far as published, and draws there; each netisr is
 * asked at most once.
 *
 * portalgo `hash`: the RFC's walk through the whole range; whoever the tuple hashes to gets the
 * connect sent, and goes on with the walk if it finds the port taken. After PORT_HASH_HOPS netisrs
 * the draw is made at home. A socket with an IP_LOCAL_PORT_RANGE walks through that range, looking
 * for ports that lead home.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "transport/demux_priv.h"
#include "transport/port_priv.h"

enum {
	SECRET_PORTS = 1,	/* stack->secret[] */
	PORT_FIRST_DEFAULT = 32768,
	PORT_LAST_DEFAULT = 60999,
	HOT_DEFAULT = 64,
	HOT_AFTER_DEFAULT = 64,
};

static const char *const algo_names[] = { "home", "hash", NULL };

/* ---- ranges ---- */

void
port_range(const struct darter_stack *s, uint16_t *ret_first, uint16_t *ret_last)
{
	uint16_t a = (uint16_t)knob_get(&s->demux->range_first);
	uint16_t b = (uint16_t)knob_get(&s->demux->range_last);

	/* Knobs are set one at a time, so for a moment they may cross. */
	*ret_first = a < b ? a : b;
	*ret_last = a < b ? b : a;
}

void
port_range_of(const struct darter_stack *s, uint32_t range, uint16_t *ret_first, uint16_t *ret_last)
{
	uint16_t own_first = (uint16_t)range, own_last = (uint16_t)(range >> 16), first, last;

	port_range(s, &first, &last);
	*ret_first = own_first >= first && own_first <= last ? own_first : first;
	*ret_last = own_last >= first && own_last <= last ? own_last : last;
}

bool
port_is_reserved(const struct darter_stack *s, uint16_t port)
{
	int64_t first = knob_get(&s->demux->reserved_first);

	return first != 0 && port >= first && port <= knob_get(&s->demux->reserved_last);
}

/* ---- walks ---- */

static uint32_t
gcd(uint32_t a, uint32_t b)
{
	uint32_t rest;

	while (b != 0) {
		rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

uint32_t
port_stride(uint32_t random, uint32_t count)
{
	uint32_t stride;

	if (count < 3)
		return 1;
	/* Some number of the next few tens is coprime with a count below 65,536. */
	for (stride = (random % count) | 1; gcd(stride, count) != 1; stride += 2)
		;
	return stride;
}

void
port_dest_of(struct netisr *n, const struct tuple *t, struct port_dest *ret)
{
	struct darter_stack *s = n->stack;
	struct {
		struct ipaddr local, foreign;
		uint64_t fport;
	} dst = { t->local, t->foreign, t->fport };
	struct tuple without = *t;

	ret->pt = published_load(&s->demux->table);
	ret->key = siphash(&s->secret[SECRET_PORTS], &dst, sizeof(dst));
	ret->is_v6 = !ipaddr_is_v4(&t->foreign);
	ret->base = 0;
	if (s->n_netisrs > 1) {
		without.lport = 0;
		ret->base = toeplitz_tuple(&s->rss, &without) & ret->pt->mask;
	}
	ret->count = port_table_count(ret->pt, ret->is_v6, ret->base, n->id);
}

uint32_t *
port_cursor_of(struct netisr *n, uint64_t key)
{
	return &n->stack->demux->ports[n->id].cursor[(key >> 56) & (PORT_CURSORS - 1)];
}

void
port_walk(const struct darter_stack *s, uint64_t key, uint32_t cursor, uint32_t count,
    uint32_t *ret_at, uint32_t *ret_stride)
{
	uint64_t in[2] = { key, cursor / count };
	uint64_t hash = siphash(&s->secret[SECRET_PORTS], in, sizeof(in));

	*ret_stride = port_stride((uint32_t)(hash >> 32) & 0xffff, count);
	*ret_at = (uint32_t)(((uint32_t)hash + (uint64_t)(cursor % count) * *ret_stride) % count);
}

/* ---- candidates ---- */

static bool
is_self(const struct tuple *t)
{
	return t->lport == t->fport && ipaddr_eq(&t->local, &t->foreign);
}

/* Draws a->t.lport if it may be had. rested: one in TIME_WAIT that can be taken over will do. */
static bool
try_port(struct netisr *n, struct port_ask *a, bool rested)
{
	enum port_use use;

	if (is_self(&a->t))
		return false;
	use = a->use == NULL ? PORT_FREE : a->use(n, &a->t);
	if (use != PORT_FREE && !(rested && use == PORT_REUSABLE))
		return false;
	return port_claim(n, &a->t, a->share);
}

/*
 * Looks at no more than `limit` of the ports that lead home. The first pass takes free ones only,
 * the second those that a TIME_WAIT lets go.
 */
static int
draw_cold(struct netisr *n, struct port_ask *a, const struct port_dest *d, uint32_t limit,
    uint32_t *probes)
{
	uint32_t at, stride, i, pass, start, *cursor = port_cursor_of(n, d->key);

	port_walk(n->stack, d->key, *cursor, d->count, &start, &stride);
	for (pass = 0; pass < 2; pass++) {
		for (i = 0, at = start; i < limit; i++, at = (at + stride) % d->count) {
			a->t.lport = port_table_port(d->pt, d->is_v6, d->base, n->id, at);
			++*probes;
			if (!try_port(n, a, pass == 1))
				continue;
			*cursor += i + 1;
			return 0;
		}
	}
	return -EADDRNOTAVAIL;
}

/*
 * Counts a draw towards d; true: often enough for a bitmap. A share that might be spent before that
 * has one from the start: others must know when it is.
 */
static bool
gets_hot(struct netisr *n, const struct port_dest *d)
{
	struct port_netisr *pn = &n->stack->demux->ports[n->id];
	uint64_t after = (uint64_t)knob_get(&n->stack->demux->hot_after_draws);
	unsigned i = (unsigned)(d->key >> 48) & (PORT_CURSORS - 1);
	uint32_t tag = (uint32_t)d->key;

	if (d->count <= after)
		return true;
	if (pn->warm[i].tag != tag) {
		pn->warm[i].tag = tag;
		pn->warm[i].draws = 0;
	}
	return ++pn->warm[i].draws > after;
}

static int
draw_home(struct netisr *n, struct port_ask *a, const struct port_dest *d, uint32_t *probes)
{
	struct port_hot *h;
	uint32_t limit = min_u32(d->count, PORT_COLD_PROBES);

	if (d->count == 0) {
		NETISR_COUNT(n, CTR_port_homeless);
		return -EADDRNOTAVAIL;
	}
	h = port_hot_find(n, &a->t, d);
	if (h == NULL && gets_hot(n, d))
		h = port_hot_make(n, &a->t, d);
	if (h == NULL && draw_cold(n, a, d, limit, probes) == 0)
		return 0;
	if (h == NULL)
		h = port_hot_make(n, &a->t, d);
	if (h != NULL)
		return port_hot_draw(n, h, d, a, probes);
	return draw_cold(n, a, d, d->count, probes);
}

/*
 * Draws from [first, last], the RFC's walk over port numbers. only_home: candidates that lead
 * elsewhere are passed by; else the first of them is the answer, not claimed.
 */
static int
draw_range(struct netisr *n, struct port_ask *a, const struct port_dest *d, uint16_t first,
    uint32_t count, bool only_home, uint32_t limit, uint32_t *probes, struct netisr **ret_owner)
{
	struct darter_stack *s = n->stack;
	uint32_t at, stride, i, looked = 0, tp, *cursor = port_cursor_of(n, d->key);
	unsigned owner = n->id;

	port_walk(s, d->key, *cursor, count, &at, &stride);
	for (i = 0; i < count && looked < limit; i++, at = (at + stride) % count) {
		a->t.lport = (uint16_t)(first + at);
		++*probes;
		tp = toeplitz_lport(&s->rss, d->is_v6, a->t.lport);
		if (s->n_netisrs > 1)
			owner = s->reta[(d->base ^ tp) & d->pt->mask];
		if (port_is_reserved(s, a->t.lport) || (only_home && owner != n->id))
			continue;
		looked++;
		if (owner == n->id ? !try_port(n, a, true) : is_self(&a->t) ||
		    demux_port_is_bound(s, IPPROTO_TCP, &a->t.local, a->t.lport))
			continue;
		*cursor += i + 1;
		*ret_owner = s->netisr[owner];
		return 0;
	}
	return -EADDRNOTAVAIL;
}

/* ---- the choice ---- */

/* The own share is spent: whom to ask next. NULL: nobody has a port. */
static struct netisr *
next_share(struct netisr *n, struct port_ask *a, const struct port_dest *d)
{
	struct darter_stack *s = n->stack;
	uint32_t most = 0, has;
	struct netisr *best = NULL;
	unsigned id;

	a->tried |= UINT64_C(1) << n->id;
	for (id = 0; id < s->n_netisrs; id++) {
		if ((a->tried >> id) & 1)
			continue;
		has = port_table_count(d->pt, d->is_v6, d->base, id);
		if (has != 0)
			has = port_listed_free(n, id, d, has);
		if (has > most) {
			most = has;
			best = s->netisr[id];
		}
	}
	return best;
}

static int
draw(struct netisr *n, struct port_ask *a, const struct port_dest *d, uint32_t *probes,
    struct netisr **ret_owner)
{
	struct demux_stack *ds = n->stack->demux;
	uint16_t first, last;
	int rc;

	port_range_of(n->stack, a->range, &first, &last);
	if (a->range != 0 && first > last)
		return -EADDRNOTAVAIL;
	if (a->range != 0)
		return draw_range(n, a, d, first, (uint32_t)last - first + 1, true, UINT32_MAX,
		    probes, ret_owner);
	if (knob_get(&ds->algo) == PORT_ALGO_HASH && a->hops < PORT_HASH_HOPS) {
		rc = draw_range(n, a, d, first, (uint32_t)last - first + 1, false,
		    PORT_HASH_PROBES, probes, ret_owner);
		if (rc == 0)
			return 0;
	}
	return draw_home(n, a, d, probes);
}

int
port_choose(struct netisr *n, struct port_ask *a, struct netisr **ret_owner)
{
	struct port_dest d;
	uint32_t probes = 0;
	int rc;

	port_dest_of(n, &a->t, &d);
	*ret_owner = n;
	rc = draw(n, a, &d, &probes, ret_owner);
	netisr_count(n, CTR_port_probes, probes);
	if (rc == 0) {
		NETISR_COUNT(n, CTR_port_draws);
		return 0;
	}
	a->t.lport = 0;
	*ret_owner = next_share(n, a, &d);
	if (*ret_owner != NULL) {
		NETISR_COUNT(n, CTR_port_spills);
		return 0;
	}
	*ret_owner = n;
	NETISR_COUNT(n, CTR_port_exhausted);
	return -EADDRNOTAVAIL;
}

/* ---- set-up ---- */

static void
free_retired(struct darter_stack *s UNUSED, struct retired *r)
{
	port_table_free(container_of(r, struct port_table, retired));
}

int
port_rebuild(struct darter_stack *s)
{
	struct port_table *old, *fresh;

	control_lock(s);
	old = atomic_load_explicit(&s->demux->table, memory_order_relaxed);
	fresh = port_table_new(s, old->version + 1);
	if (fresh != NULL) {
		published_store(&s->demux->table, fresh);
		publish_retire(s, &old->retired, free_retired);
	}
	control_unlock(s);
	return fresh != NULL ? 0 : -ENOMEM;
}

static int
register_knobs(struct darter_stack *s)
{
	struct demux_stack *d = s->demux;
	const struct knob knobs[] = {
		{ .name = "net.inet.ip.portalgo", .type = KNOB_ENUM, .names = algo_names,
		  .text = "local ports of connects: drawn to come home, or hashed and sent on",
		  .dflt = PORT_ALGO_HOME, .min = 0, .max = PORT_ALGO_HASH, .value = &d->algo },
		{ .name = "net.inet.ip.porthot", .type = KNOB_INT,
		  .text = "destinations that may have a bitmap of ports, a netisr",
		  .dflt = HOT_DEFAULT, .min = 0, .max = PORT_HOT_MAX, .value = &d->hot_max },
		{ .name = "net.inet.ip.porthot_after", .type = KNOB_INT,
		  .text = "ports drawn towards a destination before it gets a bitmap",
		  .dflt = HOT_AFTER_DEFAULT, .min = 0, .max = 65535,
		  .value = &d->hot_after_draws },
		{ .name = "net.inet.ip.portrange.first", .type = KNOB_INT,
		  .text = "first local port that is given to who does not ask for one",
		  .dflt = PORT_FIRST_DEFAULT, .min = 1, .max = 65535, .value = &d->range_first,
		  .changed = port_rebuild },
		{ .name = "net.inet.ip.portrange.last", .type = KNOB_INT,
		  .text = "last local port that is given to who does not ask for one",
		  .dflt = PORT_LAST_DEFAULT, .min = 1, .max = 65535, .value = &d->range_last,
		  .changed = port_rebuild },
		{ .name = "net.inet.ip.portrange.reserved_first", .type = KNOB_INT,
		  .text = "first of the ports that are never given unasked (0: none)",
		  .dflt = 0, .min = 0, .max = 65535, .value = &d->reserved_first,
		  .changed = port_rebuild },
		{ .name = "net.inet.ip.portrange.reserved_last", .type = KNOB_INT,
		  .text = "last of the ports that are never given unasked",
		  .dflt = 0, .min = 0, .max = 65535, .value = &d->reserved_last,
		  .changed = port_rebuild },
	};

	return knob_register(s, knobs, ARRAY_LEN(knobs));
}

int
port_init(struct darter_stack *s)
{
	size_t bytes = s->n_netisrs * sizeof(struct port_netisr);
	struct port_netisr *pn = aligned_alloc(CACHELINE_BYTES, bytes);
	unsigned i;
	int rc;

	if (pn == NULL)
		return -ENOMEM;
	memset(pn, 0, bytes);
	s->demux->ports = pn;
	/*
	 * From zero a freshly started host would repeat the ports of its last run (RFC 6056 3.3.4).
	 */
	for (i = 0; i < s->n_netisrs; i++) {
		s->random(s, pn[i].cursor, sizeof(pn[i].cursor));
		port_hot_init(&pn[i]);
	}
	rc = register_knobs(s);
	if (rc == 0)
		rc = port_count_init(s);
	if (rc == 0) {
		atomic_store_explicit(&s->demux->table, port_table_new(s, 1), memory_order_release);
		rc = atomic_load_explicit(&s->demux->table, memory_order_relaxed) != NULL ? 0 :
		    -ENOMEM;
	}
	if (rc < 0)
		port_fini(s);
	return rc;
}

void
port_fini(struct darter_stack *s)
{
	struct demux_stack *d = s->demux;
	unsigned i;

	for (i = 0; d->ports != NULL && i < s->n_netisrs; i++)
		port_hot_fini(&d->ports[i]);
	free(d->ports);
	d->ports = NULL;
	port_count_fini(s);
	port_table_free(atomic_load_explicit(&d->table, memory_order_relaxed));
	atomic_store_explicit(&d->table, NULL, memory_order_relaxed);
}
