/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The local port of an outgoing connection, drawn so that the answer comes home (laws 1 and 2).
 *
 * Per destination (local address, foreign address and port) the candidates form a walk through the
 * whole range:
 *
 *   candidate(i) = first + (offset + i * stride) mod count
 *   offset, stride = SipHash(secret, destination)
 *
 * with stride coprime with count, so a full turn visits every port once. How far the walk has come
 * is kept in a small table of cursors per netisr, indexed by another part of the hash (RFC 6056
 * 3.3.4, "double-hash"): ports used last come round last, and an outsider who sees the ports
 * towards his own host learns nothing about those towards another. We add to the RFC the keyed
 * stride, since consecutive numbers would show how many connections a host makes.
 *
 * A candidate is ours when the stack's table sends its hash to this netisr. Toeplitz is linear, so
 * the part without the port is hashed once and each candidate costs two look-ups and an XOR; on
 * average n_netisrs candidates are looked at, whatever the number of connections. Then come, from
 * cheap to dear: the bitmap of explicit binds, the caller's own table. A draw looks at no more than
 * `count` candidates. With a key of so deficient rank that no port leads here the whole range is
 * looked at in vain and the answer is -EADDRNOTAVAIL.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "runtime/stack.h"
#include "transport/demux.h"
#include "transport/demux_priv.h"

enum {
	SECRET_PORTS = 1,	/* stack->secret[] */
	PORT_FIRST_DEFAULT = 32768,
	PORT_LAST_DEFAULT = 60999,
};

/* A destination's walk. */
struct walk {
	uint32_t count;
	uint32_t at;		/* next candidate's offset from first */
	uint32_t stride;
	uint32_t *cursor;
	uint16_t first;
};

void
port_range(const struct darter_stack *s, uint16_t *ret_first, uint16_t *ret_last)
{
	uint16_t a = (uint16_t)knob_get(&s->demux->range_first);
	uint16_t b = (uint16_t)knob_get(&s->demux->range_last);

	/* Knobs are set one at a time, so for a moment they may cross. */
	*ret_first = a < b ? a : b;
	*ret_last = a < b ? b : a;
}

bool
port_is_reserved(const struct darter_stack *s, uint16_t port)
{
	int64_t first = knob_get(&s->demux->reserved_first);

	return first != 0 && port >= first && port <= knob_get(&s->demux->reserved_last);
}

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

static void
walk_begin(struct netisr *n, const struct tuple *t, struct walk *w)
{
	struct darter_stack *s = n->stack;
	struct {
		struct ipaddr local, foreign;
		uint64_t fport;
	} dst = { t->local, t->foreign, t->fport };
	uint64_t hash = siphash(&s->secret[SECRET_PORTS], &dst, sizeof(dst));
	uint16_t last;

	port_range(s, &w->first, &last);
	w->count = (uint32_t)last - w->first + 1;
	w->stride = port_stride((uint32_t)(hash >> 16) & 0xffff, w->count);
	w->cursor = &s->demux->cursors[n->id].next[(hash >> 56) & (PORT_CURSORS - 1)];
	w->at = (uint32_t)(((uint32_t)hash + (uint64_t)*w->cursor * w->stride) % w->count);
}

static uint16_t
walk_next(struct walk *w)
{
	uint16_t port = (uint16_t)(w->first + w->at);

	w->at = (w->at + w->stride) % w->count;
	return port;
}

/* May an ephemeral connection use t? Its lport is known to lead home. */
static bool
tuple_is_free(struct netisr *n, const struct tuple *t, uint8_t proto,
    bool (*in_use)(struct netisr *n, const struct tuple *t))
{
	if (t->lport == t->fport && ipaddr_eq(&t->local, &t->foreign))
		return false;
	if (port_is_reserved(n->stack, t->lport) ||
	    demux_port_is_bound(n->stack, proto, &t->local, t->lport))
		return false;
	return in_use == NULL || !in_use(n, t);
}

int
port_choose(struct netisr *n, struct tuple *t, uint8_t proto,
    bool (*in_use)(struct netisr *n, const struct tuple *t))
{
	struct darter_stack *s = n->stack;
	bool is_v6 = !ipaddr_is_v4(&t->foreign);
	uint32_t mask = s->reta_size - 1u;
	uint32_t rest_hash = 0;
	struct walk w;
	uint32_t i;

	walk_begin(n, t, &w);
	t->lport = 0;
	if (s->n_netisrs > 1)
		rest_hash = toeplitz_tuple(&s->rss, t);
	for (i = 0; i < w.count; i++) {
		t->lport = walk_next(&w);
		if (s->n_netisrs > 1 &&
		    s->reta[(rest_hash ^ toeplitz_lport(&s->rss, is_v6, t->lport)) & mask] != n->id)
			continue;
		if (tuple_is_free(n, t, proto, in_use))
			break;
	}
	netisr_count(n, CTR_port_probes, i + (i < w.count));
	if (i == w.count) {
		t->lport = 0;
		NETISR_COUNT(n, CTR_port_exhausted);
		return -EADDRNOTAVAIL;
	}
	*w.cursor += i + 1;
	NETISR_COUNT(n, CTR_port_draws);
	return 0;
}

static int
register_knobs(struct darter_stack *s)
{
	struct demux_stack *d = s->demux;
	const struct knob knobs[] = {
		{ .name = "net.inet.ip.portrange.first", .type = KNOB_INT,
		  .text = "first local port that is given to who does not ask for one",
		  .dflt = PORT_FIRST_DEFAULT, .min = 1, .max = 65535, .value = &d->range_first },
		{ .name = "net.inet.ip.portrange.last", .type = KNOB_INT,
		  .text = "last local port that is given to who does not ask for one",
		  .dflt = PORT_LAST_DEFAULT, .min = 1, .max = 65535, .value = &d->range_last },
		{ .name = "net.inet.ip.portrange.reserved_first", .type = KNOB_INT,
		  .text = "first of the ports that are never given unasked (0: none)",
		  .dflt = 0, .min = 0, .max = 65535, .value = &d->reserved_first },
		{ .name = "net.inet.ip.portrange.reserved_last", .type = KNOB_INT,
		  .text = "last of the ports that are never given unasked",
		  .dflt = 0, .min = 0, .max = 65535, .value = &d->reserved_last },
	};

	return knob_register(s, knobs, ARRAY_LEN(knobs));
}

int
port_init(struct darter_stack *s)
{
	size_t bytes = s->n_netisrs * sizeof(struct port_cursors);
	unsigned i;
	int rc;

	s->demux->cursors = aligned_alloc(CACHELINE_BYTES, bytes);
	if (s->demux->cursors == NULL)
		return -ENOMEM;
	/*
	 * From zero a freshly started host would repeat the ports of its last run (RFC 6056 3.3.4).
	 */
	for (i = 0; i < s->n_netisrs; i++)
		s->random(s, s->demux->cursors[i].next, sizeof(s->demux->cursors[i].next));
	rc = register_knobs(s);
	if (rc < 0)
		port_fini(s);
	return rc;
}

void
port_fini(struct darter_stack *s)
{
	free(s->demux->cursors);
	s->demux->cursors = NULL;
}
