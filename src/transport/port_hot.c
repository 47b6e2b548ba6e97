/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hot destinations: a destination (local address, foreign address and port) towards which a netisr
 * has drawn many ports gets a bitmap of the netisr's own ports, in the order of the permuted table,
 * so that a draw costs the same in a range that is full to the last port, and knows at once that
 * it is.
 *
 * `free` says "free as far as known". A bit is cleared when the port is drawn, or found in use,
 * resting or bound, and set again when its connection ends: a bit of a port that is in use costs a
 * look once, a free port whose bit is not set does not exist. Bound ports come back when anything
 * was unbound since. `ripe` holds ports in TIME_WAIT that a connect may take over (RFC 6191): those
 * that went to rest are collected by turns of half a second and are ripe when two whole turns have
 * passed since theirs, hence between 1 and 1.6 s old; they are drawn when no port is free.
 *
 * The walk (port.c) says where to look first; the next member from there is the port.
 *
 * At most net.inet.ip.porthot destinations a netisr have one; then the one that was not used for
 * longest loses it, which loses knowledge and nothing else. All are dropped when the table of ports
 * is replaced. How many ports are left is published (port_listed), so that another netisr whose
 * share is spent knows whom to ask, or that nobody has any.
 *
 * Holder of the netisr only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/demux_priv.h"
#include "transport/port_priv.h"

static struct port_netisr *
ports_of(const struct netisr *n)
{
	return &n->stack->demux->ports[n->id];
}

static unsigned
chain_of(uint64_t key)
{
	return (unsigned)(key >> 48) & (PORT_HOT_CHAINS - 1);
}

static struct port_listed *
listed_of(struct port_netisr *pn, uint64_t key)
{
	return &pn->listed[(key >> 40) & (PORT_LISTED - 1)];
}

/* ---- what others may know ---- */

static void
publish(struct netisr *n, const struct port_hot *h)
{
	struct port_listed *l = listed_of(ports_of(n), h->key);
	uint64_t ripe_at = 0;
	unsigned i;

	for (i = 0; i < PORT_REST_TURNS; i++)
		if (h->n_young[i] != 0)
			ripe_at = time_add_us(h->turn, (PORT_REST_TURNS - i) * PORT_REST_US).us;
	atomic_store_explicit(&l->free, h->free.count + h->ripe.count + h->n_bound,
	    memory_order_relaxed);
	atomic_store_explicit(&l->ripe_at_us, ripe_at, memory_order_relaxed);
	atomic_store_explicit(&l->key, h->key | 1, memory_order_release);
}

static void
unpublish(struct netisr *n, uint64_t key)
{
	struct port_listed *l = listed_of(ports_of(n), key);

	if (atomic_load_explicit(&l->key, memory_order_relaxed) == (key | 1))
		atomic_store_explicit(&l->key, 0, memory_order_release);
}

uint32_t
port_listed_free(const struct netisr *n, unsigned id, const struct port_dest *d, uint32_t all)
{
	struct port_listed *l = listed_of(&n->stack->demux->ports[id], d->key);
	uint64_t ripe_at;
	uint32_t left;

	if (atomic_load_explicit(&l->key, memory_order_acquire) != (d->key | 1))
		return all;
	left = atomic_load_explicit(&l->free, memory_order_relaxed);
	ripe_at = atomic_load_explicit(&l->ripe_at_us, memory_order_relaxed);
	return left == 0 && ripe_at != 0 && n->now.us >= ripe_at ? 1 : left;
}

/* ---- making and losing ---- */

static void
drop(struct netisr *n, struct port_hot *h)
{
	struct port_netisr *pn = ports_of(n);
	struct port_hot **at = &pn->hot[chain_of(h->key)];

	while (*at != h)
		at = &(*at)->chain;
	*at = h->chain;
	TAILQ_REMOVE(&pn->by_use, h, by_use);
	pn->n_hot--;
	unpublish(n, h->key);
	free(h);
}

/* Bitmaps are of one table: a new one begins without any. */
static void
keep_up(struct netisr *n, const struct port_table *pt)
{
	struct port_netisr *pn = ports_of(n);

	if (likely(pn->version == pt->version))
		return;
	while (!TAILQ_EMPTY(&pn->by_use))
		drop(n, TAILQ_FIRST(&pn->by_use));
	pn->version = pt->version;
}

static struct port_hot *
find(const struct port_netisr *pn, const struct tuple *t, uint64_t key)
{
	struct port_hot *h = pn->hot[chain_of(key)];

	while (h != NULL && (h->key != key || h->fport != t->fport ||
	    !ipaddr_eq(&h->foreign, &t->foreign) || !ipaddr_eq(&h->local, &t->local)))
		h = h->chain;
	return h;
}

struct port_hot *
port_hot_find(struct netisr *n, const struct tuple *t, const struct port_dest *d)
{
	keep_up(n, d->pt);
	return find(ports_of(n), t, d->key);
}

/* Room for one more; false: the knob says none. */
static bool
make_room(struct netisr *n)
{
	struct port_netisr *pn = ports_of(n);
	uint64_t max = (uint64_t)knob_get(&n->stack->demux->hot_max);

	while (pn->n_hot != 0 && pn->n_hot >= max) {
		NETISR_COUNT(n, CTR_port_hot_evicted);
		drop(n, TAILQ_FIRST(&pn->by_use));
	}
	return max != 0;
}

static void
lay_out(struct port_hot *h, uint32_t count)
{
	uint64_t *w = h->words;
	unsigned i;

	port_bits_init(&h->free, w, count, true);
	w += PORT_BITS_ALL(count);
	port_bits_init(&h->ripe, w, count, false);
	w += PORT_BITS_ALL(count);
	h->bound = w;
	for (i = 0; i < PORT_REST_TURNS; i++)
		h->young[i] = h->bound + (i + 1) * PORT_BITS_WORDS(count);
}

struct port_hot *
port_hot_make(struct netisr *n, const struct tuple *t, const struct port_dest *d)
{
	struct port_netisr *pn = ports_of(n);
	size_t words = 2 * PORT_BITS_ALL(d->count) +
	    (1 + PORT_REST_TURNS) * (size_t)PORT_BITS_WORDS(d->count);
	struct port_hot *h;

	if (d->count == 0 || !make_room(n))
		return NULL;
	h = calloc(1, sizeof(*h) + words * sizeof(h->words[0]));
	if (h == NULL)
		return NULL;
	h->local = t->local;
	h->foreign = t->foreign;
	h->fport = t->fport;
	h->is_v6 = d->is_v6;
	h->base = d->base;
	h->key = d->key;
	h->unbinds = atomic_load_explicit(&n->stack->demux->unbinds, memory_order_acquire);
	h->turn = n->now;
	lay_out(h, d->count);
	h->cursor = *port_cursor_of(n, d->key);
	port_walk(n->stack, h->key, h->cursor, d->count, &h->at, &h->stride);
	h->chain = pn->hot[chain_of(d->key)];
	pn->hot[chain_of(d->key)] = h;
	TAILQ_INSERT_TAIL(&pn->by_use, h, by_use);
	pn->n_hot++;
	NETISR_COUNT(n, CTR_port_hot_made);
	return h;
}

/* ---- ports that are bound, ports that rest ---- */

static void
note_bound(struct port_hot *h, uint32_t i)
{
	port_bits_clear(&h->free, i);
	port_bits_clear(&h->ripe, i);
	h->bound[i / 64] |= UINT64_C(1) << (i % 64);
	h->n_bound++;
}

/* Somebody has unbound a port since: which one is found out by looking at all that were bound. */
static void
forget_bound(struct netisr *n, struct port_hot *h)
{
	uint64_t now = atomic_load_explicit(&n->stack->demux->unbinds, memory_order_acquire);

	if (likely(h->unbinds == now))
		return;
	h->unbinds = now;
	if (h->n_bound == 0)
		return;
	port_bits_join(&h->free, h->bound);
	memset(h->bound, 0, PORT_BITS_WORDS(h->free.n) * sizeof(*h->bound));
	h->n_bound = 0;
}

/* turn: 0 when it rests since now; the last when nobody knows: then it is asked again soon. */
static void
note_resting(struct port_hot *h, uint32_t i, unsigned turn)
{
	uint64_t bit = UINT64_C(1) << (i % 64);

	port_bits_clear(&h->free, i);
	port_bits_clear(&h->ripe, i);
	if (h->young[turn][i / 64] & bit)
		return;
	h->young[turn][i / 64] |= bit;
	h->n_young[turn]++;
}

static void
note_not_resting(struct port_hot *h, uint32_t i)
{
	uint64_t bit = UINT64_C(1) << (i % 64);
	unsigned turn;

	port_bits_clear(&h->ripe, i);
	for (turn = 0; turn < PORT_REST_TURNS; turn++) {
		if (!(h->young[turn][i / 64] & bit))
			continue;
		h->young[turn][i / 64] &= ~bit;
		h->n_young[turn]--;
	}
}

/* The oldest turn's ports are ripe; its words begin a new turn. */
static void
turn_once(struct port_hot *h)
{
	unsigned last = PORT_REST_TURNS - 1, i;
	uint64_t *oldest = h->young[last];

	if (h->n_young[last] != 0) {
		port_bits_join(&h->ripe, oldest);
		memset(oldest, 0, PORT_BITS_WORDS(h->free.n) * sizeof(*oldest));
	}
	for (i = last; i > 0; i--) {
		h->young[i] = h->young[i - 1];
		h->n_young[i] = h->n_young[i - 1];
	}
	h->young[0] = oldest;
	h->n_young[0] = 0;
}

static void
turn_on(struct netisr *n, struct port_hot *h)
{
	unsigned i;

	for (i = 0; i < PORT_REST_TURNS; i++) {
		if (!time_reached(n->now, time_add_us(h->turn, PORT_REST_US)))
			return;
		turn_once(h);
		h->turn = time_add_us(h->turn, PORT_REST_US);
	}
	/* nothing was young for longer */
	if (time_reached(n->now, time_add_us(h->turn, PORT_REST_US)))
		h->turn = n->now;
}

/* ---- drawing ---- */

/* True: t->lport, number i, is drawn and claimed. Else its bits say why not. */
static bool
try_port(struct netisr *n, struct port_hot *h, struct port_ask *a, uint32_t i)
{
	const struct tuple *t = &a->t;
	enum port_use use = PORT_TAKEN;

	if (t->lport != t->fport || !ipaddr_eq(&t->local, &t->foreign))
		use = a->use == NULL ? PORT_FREE : a->use(n, t);
	if (use == PORT_FREE || use == PORT_REUSABLE) {
		if (!port_claim(n, t, a->share)) {
			note_bound(h, i);
			return false;
		}
		port_bits_clear(&h->free, i);
		note_not_resting(h, i);
		return true;
	}
	if (use == PORT_RESTS) {
		note_resting(h, i, PORT_REST_TURNS - 1);
		return false;
	}
	port_bits_clear(&h->free, i);
	note_not_resting(h, i);
	return false;
}

/* Draws from one of the two sets. */
static bool
draw_from(struct netisr *n, struct port_hot *h, const struct port_bits *b,
    const struct port_table *pt, struct port_ask *a, uint32_t *probes)
{
	uint32_t i;

	while ((i = port_bits_next(b, h->at)) != PORT_BITS_NONE) {
		a->t.lport = port_table_port(pt, h->is_v6, h->base, n->id, i);
		++*probes;
		if (try_port(n, h, a, i))
			return true;
	}
	return false;
}

int
port_hot_draw(struct netisr *n, struct port_hot *h, const struct port_dest *d, struct port_ask *a,
    uint32_t *probes)
{
	struct port_netisr *pn = ports_of(n);
	bool is_drawn;

	TAILQ_REMOVE(&pn->by_use, h, by_use);
	TAILQ_INSERT_TAIL(&pn->by_use, h, by_use);
	forget_bound(n, h);
	turn_on(n, h);
	is_drawn = draw_from(n, h, &h->free, d->pt, a, probes) ||
	    draw_from(n, h, &h->ripe, d->pt, a, probes);
	h->at = (h->at + h->stride) % h->free.n;
	if (++h->cursor % h->free.n == 0)
		port_walk(n->stack, h->key, h->cursor, h->free.n, &h->at, &h->stride);
	publish(n, h);
	return is_drawn ? 0 : -EADDRNOTAVAIL;
}

/* ---- what becomes of the ports ---- */

/* The bitmap of t's destination and t's number in it; NULL: none. */
static struct port_hot *
find_bit(struct netisr *n, const struct tuple *t, uint32_t *ret_i)
{
	struct darter_stack *s = n->stack;
	struct port_dest d;
	struct port_hot *h;
	uint32_t tp = 0;

	if (ports_of(n)->n_hot == 0)
		return NULL;
	port_dest_of(n, t, &d);
	h = port_hot_find(n, t, &d);
	if (h == NULL)
		return NULL;
	if (s->n_netisrs > 1) {
		tp = toeplitz_lport(&s->rss, d.is_v6, t->lport);
		if (s->reta[(d.base ^ tp) & d.pt->mask] != n->id)
			return NULL;
	}
	*ret_i = port_table_index(d.pt, d.is_v6, d.base, n->id, tp, t->lport);
	return *ret_i == UINT32_MAX ? NULL : h;
}

void
port_freed(struct netisr *n, const struct tuple *t)
{
	uint32_t i;
	struct port_hot *h = find_bit(n, t, &i);

	if (h == NULL)
		return;
	note_not_resting(h, i);
	if (!((h->bound[i / 64] >> (i % 64)) & 1))
		port_bits_set(&h->free, i);
	publish(n, h);
}

void
port_rests(struct netisr *n, const struct tuple *t, bool has_ts)
{
	uint32_t i;
	struct port_hot *h = find_bit(n, t, &i);

	if (h == NULL)
		return;
	turn_on(n, h);
	if (has_ts)
		note_resting(h, i, 0);
	else
		port_bits_clear(&h->free, i);
	publish(n, h);
}

void
port_hot_init(struct port_netisr *pn)
{
	TAILQ_INIT(&pn->by_use);
}

void
port_hot_fini(struct port_netisr *pn)
{
	struct port_hot *h;

	while ((h = TAILQ_FIRST(&pn->by_use)) != NULL) {
		TAILQ_REMOVE(&pn->by_use, h, by_use);
		free(h);
	}
}
