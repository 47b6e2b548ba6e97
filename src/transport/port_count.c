/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many TCP connections of each netisr use a local port, by address and by what their sockets
 * share; what bind() reads to find out whether a port is in use (as on Linux, connections and
 * TIME_WAIT count).
 *
 * Each netisr counts for itself, in memory that it alone writes. bind() and the choice of a port
 * meet without a message, in the way of Dekker: bind publishes its entry and sets the port in the
 * bitmap, THEN reads all counts; a choice raises its count, THEN looks at the bitmap. Whatever the
 * order, one of the two sees the other (both may, and both give way). The two steps of each are
 * sequentially consistent, the first a read-modify-write.
 *
 * The cells lie in one sparse mapping a netisr: PORT_ADDRS x 65,536 x 16 bytes of address space, of
 * which only the pages of used ports are ever touched. Addresses have numbers, taken at first use
 * and never given back; when they are used up all further addresses share the last one, and a bind
 * to such an address may be refused for a connection of another one.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "transport/demux.h"
#include "transport/demux_priv.h"
#include "transport/port_priv.h"

enum {
	SECRET_PORTS = 1,	/* stack->secret[] */
};

#define TAG_V4	(UINT64_C(1) << 32)
#define TAG_V6	(UINT64_C(1) << 63)

/* One word that stands for an address; for IPv6 by a keyed hash of 63 bits. */
static uint64_t
tag_of(const struct darter_stack *s, const struct ipaddr *a)
{
	if (ipaddr_is_v4(a))
		return TAG_V4 | be32_to_cpu(a->v4);
	return TAG_V6 | siphash(&s->secret[SECRET_PORTS], a, sizeof(*a));
}

/* The number of an address; `takes` one for it if need be. PORT_ADDRS: it has none. */
static unsigned
addr_number(struct darter_stack *s, const struct ipaddr *a, bool takes)
{
	struct demux_stack *d = s->demux;
	uint64_t tag = tag_of(s, a), seen;
	unsigned i;

	for (i = 0; i < PORT_ADDRS - 1; i++) {
		seen = atomic_load_explicit(&d->addr_tag[i], memory_order_seq_cst);
		if (seen == 0) {
			if (!takes)
				return PORT_ADDRS;
			if (atomic_compare_exchange_strong_explicit(&d->addr_tag[i], &seen, tag,
			    memory_order_seq_cst, memory_order_seq_cst))
				return i;
		}
		if (seen == tag)
			return i;
	}
	return PORT_ADDRS - 1;
}

static struct port_cell *
cell_of(struct darter_stack *s, unsigned netisr, unsigned addr, uint16_t port)
{
	return &s->demux->cells[netisr][(size_t)addr * 65536 + port];
}

static _Atomic uint32_t *
count_of(struct netisr *n, const struct tuple *t, uint8_t share)
{
	unsigned addr = addr_number(n->stack, &t->local, true);

	return &cell_of(n->stack, n->id, addr, t->lport)->conns[share];
}

/* No other thread writes: a plain sum does. */
static void
add(_Atomic uint32_t *count, uint32_t v)
{
	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + v,
	    memory_order_release);
}

void
port_raise(struct netisr *n, const struct tuple *t, uint8_t share)
{
	add(count_of(n, t, share), 1);
}

void
port_lower(struct netisr *n, const struct tuple *t, uint8_t share)
{
	add(count_of(n, t, share), (uint32_t)-1);
}

bool
port_claim(struct netisr *n, const struct tuple *t, uint8_t share)
{
	_Atomic uint32_t *count = count_of(n, t, share);

	atomic_fetch_add_explicit(count, 1, memory_order_seq_cst);
	if (!demux_port_is_bound(n->stack, IPPROTO_TCP, &t->local, t->lport))
		return true;
	add(count, (uint32_t)-1);
	return false;
}

static bool
addr_has_conns(struct darter_stack *s, unsigned addr, uint16_t port, uint8_t share)
{
	struct port_cell *c;
	unsigned i, theirs;

	for (i = 0; i < s->n_netisrs; i++) {
		c = cell_of(s, i, addr, port);
		for (theirs = 0; theirs < PORT_SHARES; theirs++)
			if ((theirs & share) == 0 && atomic_load_explicit(&c->conns[theirs],
			    memory_order_seq_cst) != 0)
				return true;
	}
	return false;
}

/* Does an any address cover the one with this tag? */
static bool
any_covers(const struct ipaddr *any, uint64_t tag)
{
	return tag != 0 && (!ipaddr_is_v4(any) || (tag & TAG_V6) == 0);
}

bool
port_has_conns(struct darter_stack *s, const struct ipaddr *addr, uint16_t port, uint8_t share)
{
	unsigned i, number;

	if (addr_has_conns(s, PORT_ADDRS - 1, port, share))
		return true;
	if (!ipaddr_is_any(addr)) {
		number = addr_number(s, addr, false);
		return number < PORT_ADDRS - 1 && addr_has_conns(s, number, port, share);
	}
	for (i = 0; i < PORT_ADDRS - 1; i++)
		if (any_covers(addr, atomic_load_explicit(&s->demux->addr_tag[i],
		    memory_order_seq_cst)) && addr_has_conns(s, i, port, share))
			return true;
	return false;
}

/* ---- set-up ---- */

#define CELLS_BYTES ((size_t)PORT_ADDRS * 65536 * sizeof(struct port_cell))

int
port_count_init(struct darter_stack *s)
{
	unsigned i;
	void *p;

	for (i = 0; i < s->n_netisrs; i++) {
		p = mmap(NULL, CELLS_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED) {
			port_count_fini(s);
			return -ENOMEM;
		}
		/* a huge page would touch two megabytes for the sake of 16 bytes */
		madvise(p, CELLS_BYTES, MADV_NOHUGEPAGE);
		s->demux->cells[i] = p;
	}
	return 0;
}

void
port_count_fini(struct darter_stack *s)
{
	unsigned i;

	for (i = 0; i < s->n_netisrs; i++) {
		if (s->demux->cells[i] != NULL)
			munmap(s->demux->cells[i], CELLS_BYTES);
		s->demux->cells[i] = NULL;
	}
}
