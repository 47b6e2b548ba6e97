/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses and routes: what this host is called and which way out a destination has.
 *
 * The control side is a list of addresses and a list of static routes, under the control mutex.
 * Each change builds a whole new picture of it (struct inet_world: sorted arrays, every route
 * resolved to a device, next hop and source) and publishes it; holders read it without a lock, and
 * what they have cached of it (struct ip_route in a pcb) is refreshed when the generation has
 * moved. The tables are small, as a host's are: addresses are searched by halves, routes linearly
 * with the longest prefix first.
 *
 * RFC 1122 3.3.1 (routing), 3.3.4 (multihoming: the weak model, an address of ours is ours on every
 * device), 3.3.4.3 (source choice: the address on the network of the destination or of the
 * gateway), 3.3.6 (broadcasts), 3.2.1.3 (addressing). A /31 has no broadcast address (RFC 3021), a
 * /32 neither.
 *
 * A static route whose gateway is on no network of ours stays in the list but out of the picture
 * until it is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inet/inet_priv.h"
#include "runtime/config.h"

static int
compare_addrs(const void *a, const void *b)
{
	const struct inet_addr *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int
compare_bcasts(const void *a, const void *b)
{
	const struct inet_bcast *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Longest prefix first; equal ones keep a fixed order, by destination and gateway. */
static int
compare_routes(const void *a, const void *b)
{
	const struct inet_route *x = a, *y = b;

	if (x->mask != y->mask)
		return x->mask > y->mask ? -1 : 1;
	if (x->dst != y->dst)
		return x->dst < y->dst ? -1 : 1;
	/* the connected route before a static one to the same network */
	return x->gateway < y->gateway ? -1 : x->gateway > y->gateway;
}

const struct inet_addr *
inet_find_addr(const struct inet_world *w, uint32_t addr)
{
	struct inet_addr key = { .addr = addr };

	if (w->n_addrs == 1)
		return w->addrs[0].addr == addr ? &w->addrs[0] : NULL;
	return bsearch(&key, w->addrs, w->n_addrs, sizeof(key), compare_addrs);
}

const struct inet_bcast *
inet_find_bcast(const struct inet_world *w, uint32_t addr)
{
	struct inet_bcast key = { .addr = addr };

	return bsearch(&key, w->bcasts, w->n_bcasts, sizeof(key), compare_bcasts);
}

bool
inet_source_on_link(const struct inet_world *w, const struct dev *d, uint32_t target,
    uint32_t *ret_src)
{
	unsigned i;

	for (i = 0; i < w->n_routes; i++) {
		const struct inet_route *r = &w->routes[i];

		if (r->dev == d && r->gateway == 0 && (target & r->mask) == r->dst) {
			*ret_src = r->src;
			return true;
		}
	}
	return false;
}

static void
add_network(struct inet_world *w, const struct inet_addr *a)
{
	uint32_t mask = ip4_mask(a->prefix_bits);

	w->addrs[w->n_addrs++] = *a;
	if (a->dev->is_loop)
		return;
	w->routes[w->n_routes++] = (struct inet_route){
		.dst = a->addr & mask,
		.mask = mask,
		.src = a->addr,
		.dev = a->dev,
	};
	if (a->prefix_bits < 31)
		w->bcasts[w->n_bcasts++] = (struct inet_bcast){ a->addr | ~mask, a->dev };
}

/* Fills in how the gateway is reached; false when it can't be. */
static bool
resolve_static(const struct inet_world *w, unsigned n_connected, const struct inet_static *st,
    struct inet_route *ret)
{
	const struct inet_route *best = NULL;
	unsigned i;

	for (i = 0; i < n_connected; i++) {
		const struct inet_route *r = &w->routes[i];

		if ((st->gateway & r->mask) == r->dst && (best == NULL || r->mask > best->mask))
			best = r;
	}
	if (best == NULL)
		return false;
	*ret = (struct inet_route){
		.dst = st->dst,
		.mask = ip4_mask(st->prefix_bits),
		.gateway = st->gateway,
		.src = best->src,
		.dev = best->dev,
	};
	return true;
}

static void
free_world(struct darter_stack *s UNUSED, struct retired *r)
{
	free(container_of(r, struct inet_world, retired));
}

/* Builds the picture anew and publishes it. Control mutex held. 0 or -ENOMEM (nothing changed). */
static int
publish_world(struct darter_stack *s)
{
	struct inet_stack *in = s->inet;
	struct inet_world *w = calloc(1, sizeof(*w)), *old;
	unsigned i, n_connected;

	if (w == NULL)
		return -ENOMEM;
	for (i = 0; i < in->n_addrs; i++)
		add_network(w, &in->addrs[i]);
	n_connected = w->n_routes;
	for (i = 0; i < in->n_statics; i++)
		w->n_routes += resolve_static(w, n_connected, &in->statics[i],
		    &w->routes[w->n_routes]);
	qsort(w->addrs, w->n_addrs, sizeof(w->addrs[0]), compare_addrs);
	qsort(w->bcasts, w->n_bcasts, sizeof(w->bcasts[0]), compare_bcasts);
	qsort(w->routes, w->n_routes, sizeof(w->routes[0]), compare_routes);
	w->gen = atomic_load_explicit(&in->gen, memory_order_relaxed) + 1;
	old = atomic_load_explicit(&in->world, memory_order_relaxed);
	published_store(&in->world, w);
	atomic_store_explicit(&in->gen, w->gen, memory_order_release);
	if (old != NULL)
		publish_retire(s, &old->retired, free_world);
	return 0;
}

static bool
can_be_ours(uint32_t addr, uint8_t prefix_bits)
{
	uint32_t mask = ip4_mask(prefix_bits);

	if (ip4_is_reserved(addr) || ip4_is_multicast(addr) || addr == IP4_LIMITED_BROADCAST ||
	    prefix_bits == 0)
		return false;
	/* network and broadcast address of the prefix (RFC 1122 3.2.1.3) */
	return prefix_bits >= 31 || ((addr & ~mask) != 0 && (addr | mask) != UINT32_MAX);
}

static int
add_addr(struct inet_stack *in, struct dev *d, uint32_t addr, uint8_t prefix_bits)
{
	unsigned i;

	if (prefix_bits > 32 || !can_be_ours(addr, prefix_bits))
		return -EINVAL;
	/*
	 * the loopback may have addresses that are on no link (services that move, announced by
	 * routing)
	 */
	if (ip4_is_loopback(addr) && !d->is_loop)
		return -EINVAL;
	for (i = 0; i < in->n_addrs; i++) {
		if (in->addrs[i].addr == addr)
			return -EEXIST;
	}
	if (in->n_addrs == INET_ADDRS_MAX)
		return -ENOSPC;
	in->addrs[in->n_addrs++] = (struct inet_addr){ addr, prefix_bits, d };
	return 0;
}

static int
add_static(struct inet_stack *in, uint32_t dst, uint8_t prefix_bits, uint32_t gateway)
{
	unsigned i;

	if (prefix_bits > 32 || (dst & ~ip4_mask(prefix_bits)) != 0 || ip4_is_multicast(gateway) ||
	    ip4_is_reserved(gateway) || ip4_is_loopback(gateway) ||
	    gateway == IP4_LIMITED_BROADCAST)
		return -EINVAL;
	for (i = 0; i < in->n_statics; i++) {
		if (in->statics[i].dst == dst && in->statics[i].prefix_bits == prefix_bits)
			return -EEXIST;
	}
	if (in->n_statics == INET_ROUTES_MAX)
		return -ENOSPC;
	in->statics[in->n_statics++] = (struct inet_static){ dst, prefix_bits, gateway };
	return 0;
}

static int
add_port_addrs(struct darter_stack *s, const struct config_port *port, char *err, size_t err_size)
{
	struct dev *d = dev_find(s, port->name);
	unsigned i;

	for (i = 0; i < port->n_addrs; i++) {
		const struct config_addr *a = &port->addrs[i];
		char text[IPADDR_STR_MAX];
		int r = -EAFNOSUPPORT;

		if (ipaddr_is_v4(&a->addr))
			r = add_addr(s->inet, d, be32_to_cpu(a->addr.v4), a->prefix_bits);
		if (r == 0)
			continue;
		snprintf(err, err_size, "port.%s.addr: %s/%u: %s", port->name,
		    ipaddr_format(&a->addr, text, sizeof(text)), a->prefix_bits,
		    r == -EAFNOSUPPORT ? "this version carries IPv4 only" :
		    r == -EEXIST ? "given twice" : "not an address that a host can have");
		return r;
	}
	return 0;
}

static int
add_config_route(struct darter_stack *s, const struct config_route *c, char *err, size_t err_size)
{
	char text[IPADDR_STR_MAX];
	int r = -EAFNOSUPPORT;

	/* a default route may be written without a family */
	if (ipaddr_is_v4(&c->gateway) && (ipaddr_is_v4(&c->dst.addr) || c->dst.prefix_bits == 0))
		r = add_static(s->inet, c->dst.prefix_bits == 0 ? 0 : be32_to_cpu(c->dst.addr.v4),
		    c->dst.prefix_bits, be32_to_cpu(c->gateway.v4));
	if (r < 0)
		snprintf(err, err_size, "route to %s/%u: %s",
		    ipaddr_format(&c->dst.addr, text, sizeof(text)), c->dst.prefix_bits,
		    r == -EAFNOSUPPORT ? "this version carries IPv4 only" :
		    r == -EEXIST ? "given twice" :
		    "bits beyond the prefix, or a gateway that can't be one");
	return r;
}

int
inet_world_init(struct darter_stack *s, char *err, size_t err_size)
{
	unsigned i;
	int r = add_addr(s->inet, dev_loop(s), IP4_LOOPBACK, 8);

	for (i = 0; r == 0 && i < s->config.n_ports; i++)
		r = add_port_addrs(s, &s->config.ports[i], err, err_size);
	for (i = 0; r == 0 && i < s->config.n_routes; i++)
		r = add_config_route(s, &s->config.routes[i], err, err_size);
	if (r < 0)
		return r;
	control_lock(s);
	r = publish_world(s);
	control_unlock(s);
	if (r < 0)
		snprintf(err, err_size, "routes: out of memory");
	return r;
}

void
inet_world_fini(struct darter_stack *s)
{
	free(atomic_exchange(&s->inet->world, NULL));
}

uint32_t
ip_route_gen(const struct darter_stack *s)
{
	return atomic_load_explicit(&s->inet->gen, memory_order_acquire);
}

bool
ip_is_own(struct darter_stack *s, const struct ipaddr *a)
{
	uint32_t v4;

	if (!ipaddr_is_v4(a))
		return false;
	v4 = be32_to_cpu(a->v4);
	return ip4_is_loopback(v4) || inet_find_addr(inet_world(s), v4) != NULL;
}

bool
ip_is_broadcast(struct darter_stack *s, const struct ipaddr *a)
{
	uint32_t v4;

	if (!ipaddr_is_v4(a))
		return false;
	v4 = be32_to_cpu(a->v4);
	return v4 == IP4_LIMITED_BROADCAST || inet_find_bcast(inet_world(s), v4) != NULL;
}

/* To ourselves, source and destination may be any two of our addresses. */
static void
route_local(struct darter_stack *s, const struct ipaddr *dst, bool has_src, struct ip_route *r)
{
	r->dev = dev_loop(s);
	r->next_hop = *dst;
	r->is_local = true;
	if (!has_src)
		r->src = ip4_is_loopback(be32_to_cpu(dst->v4)) ? ipaddr_v4_cpu(IP4_LOOPBACK) : *dst;
}

/*
 * The device of a group: that of the chosen source, else of the default route, else the first that
 * has an address.
 */
static const struct inet_route *
group_route(const struct inet_world *w, const struct inet_addr *src, const struct dev *d)
{
	const struct inet_route *first = NULL;
	unsigned i;

	if (src != NULL)
		d = src->dev;
	for (i = 0; i < w->n_routes; i++) {
		const struct inet_route *r = &w->routes[i];

		if (d != NULL && r->dev == d && r->gateway == 0)
			return r;
		if (d == NULL && r->mask == 0)
			return r;
		if (d == NULL && first == NULL)
			first = r;
	}
	return first;
}

static int
route_group(const struct inet_world *w, uint32_t dst, const struct inet_addr *src,
    struct ip_route *r)
{
	const struct inet_bcast *b = inet_find_bcast(w, dst);
	const struct inet_route *via = group_route(w, src, b != NULL ? b->dev : NULL);

	if (via == NULL || (src != NULL && b != NULL && b->dev != src->dev))
		return -ENETUNREACH;
	r->dev = via->dev;
	r->is_broadcast = true;
	r->next_hop = ipaddr_v4_cpu(ip4_is_multicast(dst) ? dst : IP4_LIMITED_BROADCAST);
	if (src == NULL)
		r->src = ipaddr_v4_cpu(via->src);
	return 0;
}

static int
route_unicast(const struct inet_world *w, uint32_t dst, bool has_src, struct ip_route *r)
{
	unsigned i;

	if (ip4_is_reserved(dst))
		return -ENETUNREACH;
	for (i = 0; i < w->n_routes; i++) {
		const struct inet_route *via = &w->routes[i];

		if ((dst & via->mask) != via->dst)
			continue;
		r->dev = via->dev;
		r->next_hop = ipaddr_v4_cpu(via->gateway != 0 ? via->gateway : dst);
		if (!has_src)
			r->src = ipaddr_v4_cpu(via->src);
		return 0;
	}
	return -ENETUNREACH;
}

int
ip_route_lookup(struct darter_stack *s, const struct ipaddr *dst, const struct ipaddr *src,
    struct ip_route *ret_route)
{
	const struct inet_world *w = inet_world(s);
	bool has_src = src != NULL && !ipaddr_is_any(src);
	const struct inet_addr *src_addr = NULL;
	struct ip_route r = { .gen = w->gen };
	uint32_t v4;
	int err = 0;

	if (!ipaddr_is_v4(dst) || (has_src && !ipaddr_is_v4(src)))
		return -EAFNOSUPPORT;
	if (has_src && !ip_is_own(s, src))
		return -EADDRNOTAVAIL;
	v4 = be32_to_cpu(dst->v4);
	if (has_src) {
		r.src = *src;
		src_addr = inet_find_addr(w, be32_to_cpu(src->v4));
	}
	if (ip_is_own(s, dst)) {
		route_local(s, dst, has_src, &r);
	} else if (has_src && ip4_is_loopback(be32_to_cpu(src->v4))) {
		/* 127/8 may not appear outside this host (RFC 1122 3.2.1.3 g) */
		return -EADDRNOTAVAIL;
	} else if (ip4_is_multicast(v4) || ip_is_broadcast(s, dst)) {
		err = route_group(w, v4, src_addr, &r);
	} else {
		err = route_unicast(w, v4, has_src, &r);
	}
	if (err < 0)
		return err;
	r.mtu = r.dev->mtu;
	*ret_route = r;
	return 0;
}

static void
announce_on_zero(struct netisr *n, void *arg)
{
	inet_announce(n, arg);
}

int
ip_addr_add(struct darter_stack *s, struct dev *d, const struct ipaddr *a, uint8_t prefix_bits)
{
	int r;

	if (!ipaddr_is_v4(a))
		return -EAFNOSUPPORT;
	control_lock(s);
	r = add_addr(s->inet, d, be32_to_cpu(a->v4), prefix_bits);
	if (r == 0) {
		r = publish_world(s);
		if (r < 0)
			s->inet->n_addrs--;
	}
	control_unlock(s);
	if (r == 0 && d->has_ether)
		netisr_call(s->netisr[0], announce_on_zero, d);
	return r;
}

int
ip_addr_del(struct darter_stack *s, struct dev *d, const struct ipaddr *a)
{
	struct inet_stack *in = s->inet;
	int r = -EADDRNOTAVAIL;
	unsigned i;

	if (!ipaddr_is_v4(a))
		return -EAFNOSUPPORT;
	control_lock(s);
	for (i = 0; i < in->n_addrs; i++) {
		struct inet_addr gone = in->addrs[i];

		if (gone.dev != d || gone.addr != be32_to_cpu(a->v4))
			continue;
		in->addrs[i] = in->addrs[--in->n_addrs];
		r = publish_world(s);
		if (r < 0)
			in->addrs[in->n_addrs++] = gone;
		break;
	}
	control_unlock(s);
	return r;
}

/* Control mutex held. Is the gateway a neighbour by the picture that is published? */
static bool
is_on_some_link(const struct inet_world *w, uint32_t gateway)
{
	unsigned i;

	for (i = 0; i < w->n_routes; i++) {
		if (w->routes[i].gateway == 0 && (gateway & w->routes[i].mask) == w->routes[i].dst)
			return true;
	}
	return false;
}

int
ip_route_add(struct darter_stack *s, const struct ipaddr *dst, uint8_t prefix_bits,
    const struct ipaddr *gateway)
{
	int r = -ENETUNREACH;

	if (!ipaddr_is_v4(gateway) || (!ipaddr_is_v4(dst) && prefix_bits != 0))
		return -EAFNOSUPPORT;
	control_lock(s);
	if (is_on_some_link(inet_world(s), be32_to_cpu(gateway->v4)))
		r = add_static(s->inet, prefix_bits == 0 ? 0 : be32_to_cpu(dst->v4), prefix_bits,
		    be32_to_cpu(gateway->v4));
	if (r == 0) {
		r = publish_world(s);
		if (r < 0)
			s->inet->n_statics--;
	}
	control_unlock(s);
	return r;
}

int
ip_route_del(struct darter_stack *s, const struct ipaddr *dst, uint8_t prefix_bits)
{
	struct inet_stack *in = s->inet;
	uint32_t v4 = prefix_bits == 0 ? 0 : be32_to_cpu(dst->v4);
	int r = -ESRCH;
	unsigned i;

	control_lock(s);
	for (i = 0; i < in->n_statics; i++) {
		struct inet_static gone = in->statics[i];

		if (gone.dst != v4 || gone.prefix_bits != prefix_bits)
			continue;
		in->statics[i] = in->statics[--in->n_statics];
		r = publish_world(s);
		if (r < 0)
			in->statics[in->n_statics++] = gone;
		break;
	}
	control_unlock(s);
	return r;
}
