/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rest of darter.h: version, choice of the stack, attached threads, knobs, addresses and
 * routes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <darter/darter.h>

#include "api/api.h"
#include "inet/ip.h"
#include "link/dev.h"
#include "runtime/knob.h"
#include "runtime/stack.h"
#include "socket/sock.h"

#define RUN_NAP_US 1000

const char *
darter_version(void)
{
	return DARTER_VERSION;
}

/* ---- which stack ---- */

void
darter_stack_use(struct darter_stack *s)
{
	stacks_use(s);
}

struct darter_stack *
darter_stack_current(void)
{
	return stacks_are_lost() ? NULL : stacks_current();
}

unsigned
darter_netisr_count(struct darter_stack *s)
{
	s = api_stack(s);
	return s == NULL ? 0 : s->n_netisrs;
}

/* ---- threads ---- */

int
darter_attach(struct darter_stack *s, unsigned netisr)
{
	int rc;

	if (stacks_are_lost())
		return -ENOTSUP;
	s = api_stack(s);
	if (s == NULL || netisr >= s->n_netisrs)
		return -EINVAL;
	rc = call_enter();
	if (rc < 0)
		return rc;
	rc = netisr_attach(s->netisr[netisr]);
	call_leave();
	return rc;
}

/* The netisr that this thread is attached to, or NULL. */
static struct netisr *
attached(void)
{
	struct netisr *n = netisr_current();

	return n != NULL && atomic_load_explicit(&n->is_attached, memory_order_relaxed) ? n : NULL;
}

int
darter_detach(void)
{
	struct netisr *n = attached();
	int rc;

	if (n == NULL)
		return -EINVAL;
	rc = call_enter();
	if (rc < 0)
		return rc;
	rc = netisr_detach(n);
	call_leave();
	return rc;
}

/* One pause of darter_run: a round, and a nap unless something happened since `seen`. */
static int
run_once(struct netisr *n, uint32_t seen)
{
	struct time until = time_add_us(stack_now(n->stack), RUN_NAP_US);
	int rc = call_enter();

	if (rc < 0)
		return rc;
	wait_until(n->stack, n, &n->sock->run_word, seen, until, -1);
	call_leave();
	return 0;
}

int
darter_run(int (*cb)(void *arg), void *arg)
{
	struct netisr *n = attached();
	int rc;

	if (n == NULL)
		return -EINVAL;
	atomic_store_explicit(&n->sock->is_run_waiting, true, memory_order_relaxed);
	for (;;) {
		/* before the callback looks: what happens after its look ends the nap */
		uint32_t seen = waitword_seq(&n->sock->run_word);

		rc = cb(arg);
		if (rc != 0)
			break;
		if (attached() != n) {
			rc = -EINVAL;
			break;
		}
		rc = run_once(n, seen);
		if (rc < 0)
			break;
	}
	atomic_store_explicit(&n->sock->is_run_waiting, false, memory_order_relaxed);
	return rc;
}

void
darter_signal_note(void)
{
	call_signal_note();
}

/* ---- knobs ---- */

int
darter_sysctl_get(struct darter_stack *s, const char *name, char *buf, size_t size)
{
	const struct knob *k;

	s = api_stack(s);
	k = s == NULL ? NULL : knob_find(s, name);
	if (k == NULL)
		return -ENOENT;
	knob_format(k, buf, size);
	return 0;
}

int
darter_sysctl_set(struct darter_stack *s, const char *name, const char *value, char *err,
    size_t err_size)
{
	char unused[DARTER_ERR_MAX];

	if (err == NULL || err_size == 0) {
		err = unused;
		err_size = sizeof(unused);
	}
	s = api_stack(s);
	if (s == NULL) {
		snprintf(err, err_size, "%s: no stack is open; call darter_open first", name);
		return -ENETDOWN;
	}
	return knob_set(s, name, value, err, err_size);
}

int
darter_sysctl_visit(struct darter_stack *s, int (*fn)(void *arg, const struct darter_knob *k),
    void *arg)
{
	const struct knob *k;
	int rc = 0;

	s = api_stack(s);
	if (s == NULL)
		return -ENETDOWN;
	for (k = s->knobs.first; k != NULL && rc == 0; k = k->next) {
		char value[64];
		struct darter_knob out = { .name = k->name, .text = k->text, .min = k->min, .max =
		    k->max,
			.dflt = k->dflt, .value = value };

		knob_format(k, value, sizeof(value));
		rc = fn(arg, &out);
	}
	return rc;
}

/* ---- addresses and routes ---- */

/* "192.0.2.1/24" or "192.0.2.1". */
static int
parse_prefix(const char *text, struct ipaddr *ret_addr, uint8_t *ret_bits)
{
	const char *slash = strchr(text, '/');
	size_t len = slash == NULL ? strlen(text) : (size_t)(slash - text);
	char addr[IPADDR_STR_MAX], *end;
	unsigned long bits = 32;

	if (len == 0 || len >= sizeof(addr))
		return -EINVAL;
	memcpy(addr, text, len);
	addr[len] = '\0';
	if (slash != NULL) {
		bits = strtoul(slash + 1, &end, 10);
		if (end == slash + 1 || *end != '\0' || bits > 32)
			return -EINVAL;
	}
	*ret_bits = (uint8_t)bits;
	if (ipaddr_parse(addr, ret_addr) < 0)
		return -EINVAL;
	return ipaddr_is_v4(ret_addr) ? 0 : -EAFNOSUPPORT;
}

static int
find_port(struct darter_stack **s, const char *port, struct dev **ret_dev)
{
	*s = api_stack(*s);
	if (*s == NULL)
		return -ENETDOWN;
	*ret_dev = strcmp(port, "lo") == 0 ? dev_loop(*s) : dev_find(*s, port);
	return *ret_dev == NULL ? -ENODEV : 0;
}

int
darter_addr_add(struct darter_stack *s, const char *port, const char *addr)
{
	struct ipaddr a;
	struct dev *d;
	uint8_t bits;
	int rc = find_port(&s, port, &d);

	if (rc == 0)
		rc = parse_prefix(addr, &a, &bits);
	return rc < 0 ? rc : ip_addr_add(s, d, &a, bits);
}

int
darter_addr_del(struct darter_stack *s, const char *port, const char *addr)
{
	struct ipaddr a;
	struct dev *d;
	uint8_t bits;
	int rc = find_port(&s, port, &d);

	if (rc == 0)
		rc = parse_prefix(addr, &a, &bits);
	if (rc == 0)
		rc = ip_addr_del(s, d, &a);
	return rc == -EADDRNOTAVAIL ? -ENOENT : rc;
}

static int
parse_destination(const char *text, struct ipaddr *ret_addr, uint8_t *ret_bits)
{
	if (strcmp(text, "default") != 0)
		return parse_prefix(text, ret_addr, ret_bits);
	*ret_addr = ipaddr_v4_cpu(0);
	*ret_bits = 0;
	return 0;
}

int
darter_route_add(struct darter_stack *s, const char *dst, const char *gateway)
{
	struct ipaddr d, g;
	uint8_t bits;
	int rc = parse_destination(dst, &d, &bits);

	s = api_stack(s);
	if (s == NULL)
		return -ENETDOWN;
	if (rc < 0 || ipaddr_parse(gateway, &g) < 0)
		return rc < 0 ? rc : -EINVAL;
	return ip_route_add(s, &d, bits, &g);
}

int
darter_route_del(struct darter_stack *s, const char *dst)
{
	struct ipaddr d;
	uint8_t bits;
	int rc = parse_destination(dst, &d, &bits);

	s = api_stack(s);
	if (s == NULL)
		return -ENETDOWN;
	if (rc == 0)
		rc = ip_route_del(s, &d, bits);
	return rc == -ESRCH ? -ENOENT : rc;
}
