/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ports of the ephemeral range by where they lead, so that a netisr finds those that come home
 * without trying others.
 *
 * Toeplitz is linear over XOR: the slot of the table of owners that a tuple hashes to is
 * base ^ T(port), where base comes from the addresses and the foreign port and T from the key
 * alone, each cut to the bits that choose a slot. So the ports are sorted once, by T, into as many
 * buckets as there are slots; whatever the destination, slot s is reached by exactly the ports of
 * bucket s ^ base. Within its bucket a port has a random place, drawn with the stack's secret.
 *
 * A netisr's ports for a base are its slots' buckets one after the other, counted through:
 * before[base][column] says how many there are before each slot, so number i of them is found by
 * bisection among the slots (at most nine steps) and a port's number by one look-up. That is true
 * for any key and any table of owners. With a key whose port bits have full rank all buckets are
 * equal but for the range's edges; with one of deficient rank some are empty and a netisr may find
 * that no port leads to it (count 0).
 *
 * About 4 bytes a port and 2 bytes a pair of slots for each family (512 KiB when the device has 512
 * slots), made when the stack is set up and when the range changes. Immutable once published.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "transport/port_priv.h"

enum {
	SECRET_PORTS = 1,	/* stack->secret[] */
};

/* With one netisr there is nothing to tell apart. */
static const struct port_family *
family_of(const struct port_table *pt, bool is_v6)
{
	return &pt->family[is_v6 && pt->mask != 0];
}

static void
family_free(struct port_family *f)
{
	free(f->port);
	free(f->place);
	free(f->start);
	free(f->before);
}

void
port_table_free(struct port_table *pt)
{
	if (pt == NULL)
		return;
	family_free(&pt->family[0]);
	family_free(&pt->family[1]);
	free(pt);
}

/* The columns of each netisr: its slots in their order, and one more for the total. */
static void
lay_out_slots(const struct darter_stack *s, struct port_table *pt)
{
	unsigned id, slot;

	for (id = 0; id < s->n_netisrs; id++) {
		pt->col[id] = pt->row;
		for (slot = 0; slot <= pt->mask; slot++) {
			if (s->n_netisrs > 1 && s->reta[slot] != id)
				continue;
			pt->rank[slot] = (uint16_t)pt->slots[id];
			pt->slot[pt->col[id] + pt->slots[id]++] = (uint16_t)slot;
		}
		pt->row += pt->slots[id] + 1;
	}
}

/* Fisher and Yates, with SipHash under the stack's secret as the source of chance. */
static void
shuffle(const struct darter_stack *s, uint32_t version, uint16_t *port, uint32_t count)
{
	/* the first port, before it moves, tells the buckets apart */
	uint32_t left, chosen, in[4] = { version, port[0], count, 0 };
	uint64_t random;
	uint16_t swap;

	for (left = count; left > 1; left--) {
		in[3] = left;
		random = siphash(&s->secret[SECRET_PORTS], in, sizeof(in)) >> 32;
		chosen = (uint32_t)((random * left) >> 32);
		swap = port[chosen];
		port[chosen] = port[left - 1];
		port[left - 1] = swap;
	}
}

static void
sort_ports(const struct darter_stack *s, const struct port_table *pt, bool is_v6, uint16_t last,
    struct port_family *f)
{
	uint32_t bucket, i, at, size, p;

	for (p = pt->first; p <= last; p++)
		if (!port_is_reserved(s, (uint16_t)p))
			f->start[(toeplitz_lport(&s->rss, is_v6, (uint16_t)p) & pt->mask) + 1]++;
	for (bucket = 0; bucket <= pt->mask; bucket++)
		f->start[bucket + 1] += f->start[bucket];
	/* place[] counts what is in each bucket so far; its length is no less than the buckets' */
	for (p = pt->first; p <= last; p++) {
		if (port_is_reserved(s, (uint16_t)p))
			continue;
		bucket = toeplitz_lport(&s->rss, is_v6, (uint16_t)p) & pt->mask;
		at = f->start[bucket] + f->place[bucket]++;
		f->port[at] = (uint16_t)p;
	}
	for (bucket = 0; bucket <= pt->mask; bucket++) {
		size = f->start[bucket + 1] - f->start[bucket];
		if (size > 1)
			shuffle(s, pt->version, f->port + f->start[bucket], size);
	}
	for (bucket = 0; bucket <= pt->mask; bucket++)
		for (i = f->start[bucket]; i < f->start[bucket + 1]; i++)
			f->place[f->port[i] - pt->first] = (uint16_t)(i - f->start[bucket]);
}

static void
count_through(const struct darter_stack *s, const struct port_table *pt, struct port_family *f)
{
	uint32_t base, q, sum, bucket;
	uint16_t *before;
	unsigned id;

	for (base = 0; base <= pt->mask; base++)
		for (id = 0; id < s->n_netisrs; id++) {
			before = f->before + base * pt->row + pt->col[id];
			for (q = 0, sum = 0; q < pt->slots[id]; q++) {
				before[q] = (uint16_t)sum;
				bucket = pt->slot[pt->col[id] + q] ^ base;
				sum += f->start[bucket + 1] - f->start[bucket];
			}
			before[q] = (uint16_t)sum;
		}
}

static bool
family_init(const struct darter_stack *s, const struct port_table *pt, bool is_v6, uint16_t last,
    struct port_family *f)
{
	size_t buckets = (size_t)pt->mask + 1, ports = (size_t)last - pt->first + 1;

	f->port = calloc(ports, sizeof(*f->port));
	f->place = calloc(ports > buckets ? ports : buckets, sizeof(*f->place));
	f->start = calloc(buckets + 1, sizeof(*f->start));
	f->before = calloc(buckets * pt->row, sizeof(*f->before));
	if (f->port == NULL || f->place == NULL || f->start == NULL || f->before == NULL)
		return false;
	sort_ports(s, pt, is_v6, last, f);
	count_through(s, pt, f);
	return true;
}

struct port_table *
port_table_new(struct darter_stack *s, uint32_t version)
{
	struct port_table *pt = calloc(1, sizeof(*pt));
	uint16_t last;

	if (pt == NULL)
		return NULL;
	pt->version = version;
	pt->mask = s->n_netisrs > 1 ? s->reta_size - 1u : 0;
	port_range(s, &pt->first, &last);
	lay_out_slots(s, pt);
	if (!family_init(s, pt, false, last, &pt->family[0]) ||
	    (pt->mask != 0 && !family_init(s, pt, true, last, &pt->family[1]))) {
		port_table_free(pt);
		return NULL;
	}
	pt->count = pt->family[0].start[pt->mask + 1];
	pt->n_ports = (uint32_t)last - pt->first + 1;
	return pt;
}

uint32_t
port_table_count(const struct port_table *pt, bool is_v6, uint32_t base, unsigned id)
{
	return family_of(pt, is_v6)->before[base * pt->row + pt->col[id] + pt->slots[id]];
}

uint16_t
port_table_port(const struct port_table *pt, bool is_v6, uint32_t base, unsigned id, uint32_t i)
{
	const struct port_family *f = family_of(pt, is_v6);
	const uint16_t *before = f->before + base * pt->row + pt->col[id];
	uint32_t low = 0, high = pt->slots[id], mid;

	/* before[low] <= i < before[high]: a slot without ports is never the answer */
	while (high - low > 1) {
		mid = (low + high) / 2;
		if (before[mid] <= i)
			low = mid;
		else
			high = mid;
	}
	return f->port[f->start[pt->slot[pt->col[id] + low] ^ base] + i - before[low]];
}

uint32_t
port_table_index(const struct port_table *pt, bool is_v6, uint32_t base, unsigned id, uint32_t tp,
    uint16_t port)
{
	const struct port_family *f = family_of(pt, is_v6);
	uint32_t bucket = tp & pt->mask, i = (uint32_t)port - pt->first, at;

	if (port < pt->first || i >= pt->n_ports)
		return UINT32_MAX;
	at = f->start[bucket] + f->place[i];
	/* a reserved port has no place of its own */
	if (at >= f->start[bucket + 1] || f->port[at] != port)
		return UINT32_MAX;
	return f->before[base * pt->row + pt->col[id] + pt->rank[bucket ^ base]] + f->place[i];
}
