/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading the configuration: defaults, an INI file (inih splits the lines), overrides from a
 * command line.
 *
 * A table per section (config_keys.c) says which keys there are, so that every refusal can name the
 * place, the key, what was expected and what was there. Nothing is guessed: an unknown key is an
 * error. Checks that need more than one key are in config_check.c. Plain data, no device is
 * touched; one thread owns a struct config.
 */
#include "runtime/config.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/log.h"
#include "runtime/config_priv.h"

#define LINE_MAX_BYTES 198 /* what inih's line buffer holds */

void
config_init(struct config *c)
{
	memset(c, 0, sizeof(*c));
	c->netisrs = 1;
	c->threads = CONFIG_THREADS_BACKGROUND;
	c->memory = CONFIG_MEMORY_AUTO;
	c->packets = 8192;
	c->ring_memory_bytes = UINT64_C(256) << 20;
	c->rcv_budget_bytes = UINT64_C(64) << 20;
	c->fd_base = 1 << 20;
	memcpy(c->rss_key, toeplitz_key_symmetric, TOEPLITZ_KEY_MIN_BYTES);
	c->rss_key_bytes = TOEPLITZ_KEY_MIN_BYTES;
	c->rss_entries = CONFIG_RSS_ENTRIES;
	c->exit_linger_ms = 1000;
	c->log_level = LOG_LVL_NOTICE;
	c->hugepages = CONFIG_HUGEPAGES_AUTO;
}

/* "file:line" or "-o" into buf. */
static const char *
where(const struct config_reading *r, char *buf, size_t size)
{
	if (r->path == NULL)
		snprintf(buf, size, "-o");
	else
		snprintf(buf, size, "%s:%d", r->path, r->line);
	return buf;
}

/* Keeps the first failure: the following ones are often its consequences. */
static PRINTF_LIKE(3, 4) int
refuse(struct config_reading *r, int rc, const char *fmt, ...)
{
	char at[160];
	va_list ap;
	int n;

	if (r->rc != 0)
		return r->rc;
	r->rc = rc;
	n = snprintf(r->err, r->err_size, "%s: ", where(r, at, sizeof(at)));
	if (n < 0 || (size_t)n >= r->err_size)
		return rc;
	va_start(ap, fmt);
	vsnprintf(r->err + n, r->err_size - (size_t)n, fmt, ap);
	va_end(ap);
	return rc;
}

/* ---- sections ---- */

/* "a, b, c" of a table's keys into buf. */
static const char *
list_keys(const struct config_key *keys, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (; keys->name != NULL && used < size; keys++)
		used += (size_t)snprintf(
		    buf + used, size - used, "%s%s", used > 0 ? ", " : "", keys->name);
	return buf;
}

static int
apply_key(struct config_reading *r, const struct config_key *keys, const char *section,
    struct config_port *p, const char *name, const char *value)
{
	char known[160];
	const struct config_key *k = keys;
	int rc;

	while (k->name != NULL && strcmp(k->name, name) != 0)
		k++;
	if (k->name == NULL)
		return refuse(r, -EINVAL, "[%s] %s: unknown key; known are %s", section, name,
		    list_keys(keys, known, sizeof(known)));
	rc = k->set(r, p, value);
	if (rc == -ENOSPC)
		return refuse(
		    r, rc, "[%s] %s: too long or too many; expected %s", section, name, k->expect);
	if (rc != 0)
		return refuse(
		    r, rc, "[%s] %s: expected %s, got \"%s\"", section, name, k->expect, value);
	return 0;
}

/* [port.NAME]'s entry, made when it is new. */
static struct config_port *
port_entry(struct config_reading *r, const char *section)
{
	const char *name = section + strlen("port.");
	size_t len = strlen(name);
	struct config_port *p;

	if (len == 0 || len >= sizeof(p->name) ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			 "0123456789_-") != len ||
	    strcmp(name, "lo") == 0) {
		refuse(r, -EINVAL,
		    "[%s]: expected a port name of 1 to 15 letters, digits, - or _, other than lo",
		    section);
		return NULL;
	}
	for (unsigned i = 0; i < r->c->n_ports; i++) {
		if (strcmp(r->c->ports[i].name, name) == 0)
			return &r->c->ports[i];
	}
	if (r->c->n_ports == CONFIG_MAX_PORTS) {
		refuse(r, -ENOSPC, "[%s]: too many ports, %d at most", section, CONFIG_MAX_PORTS);
		return NULL;
	}
	p = &r->c->ports[r->c->n_ports++];
	memset(p, 0, sizeof(*p));
	memcpy(p->name, name, len + 1);
	p->mtu = 1500;
	return p;
}

/* No bit may be set behind the prefix: 10.0.0.5/24 is an address, not a network. */
static bool
is_network(const struct config_addr *a)
{
	unsigned first = ipaddr_is_v4(&a->addr) ? 96u + a->prefix_bits : a->prefix_bits;

	for (unsigned bit = first; bit < 128; bit++) {
		if ((a->addr.b[bit / 8] >> (7 - bit % 8) & 1) != 0)
			return false;
	}
	return true;
}

static int
apply_route(struct config_reading *r, const char *name, const char *value)
{
	struct config_route route = { .dst = { .prefix_bits = 0 } };

	if (ipaddr_parse(value, &route.gateway) != 0 || ipaddr_is_any(&route.gateway))
		return refuse(r, -EINVAL,
		    "[route] %s: expected a gateway's address such as 10.0.0.1, got \"%s\"", name,
		    value);
	if (strcmp(name, "default") == 0) {
		if (ipaddr_is_v4(&route.gateway))
			route.dst.addr = ipaddr_v4_cpu(0);
	} else if (config_parse_addr(name, &route.dst) != 0 || !is_network(&route.dst)) {
		return refuse(r, -EINVAL,
		    "[route] %s: expected default or a network such as 192.0.2.0/24", name);
	}
	if (ipaddr_is_v4(&route.dst.addr) != ipaddr_is_v4(&route.gateway))
		return refuse(r, -EINVAL,
		    "[route] %s: the gateway %s is of the other address family", name, value);
	for (unsigned i = 0; i < r->c->n_routes; i++) {
		struct config_route *old = &r->c->routes[i];

		if (ipaddr_eq(&old->dst.addr, &route.dst.addr) &&
		    old->dst.prefix_bits == route.dst.prefix_bits) {
			*old = route;
			return 0;
		}
	}
	if (r->c->n_routes == CONFIG_MAX_ROUTES)
		return refuse(
		    r, -ENOSPC, "[route] %s: too many routes, %d at most", name, CONFIG_MAX_ROUTES);
	r->c->routes[r->c->n_routes++] = route;
	return 0;
}

/* Which knobs there are is known to the layers only: kept with its place, checked when the stack is
 * made. */
static int
apply_sysctl(struct config_reading *r, const char *name, const char *value)
{
	struct config_sysctl *s = NULL;

	for (unsigned i = 0; i < r->c->n_sysctls && s == NULL; i++) {
		if (strcmp(r->c->sysctls[i].name, name) == 0)
			s = &r->c->sysctls[i];
	}
	if (s == NULL && r->c->n_sysctls == CONFIG_MAX_SYSCTLS)
		return refuse(
		    r, -ENOSPC, "[sysctl] %s: too many, %d at most", name, CONFIG_MAX_SYSCTLS);
	if (strlen(name) >= sizeof(s->name) || strlen(value) >= sizeof(s->value))
		return refuse(r, -EINVAL, "[sysctl] %.80s: name or value longer than %zu bytes",
		    name, sizeof(s->name) - 1);
	if (s == NULL)
		s = &r->c->sysctls[r->c->n_sysctls++];
	strcpy(s->name, name);
	strcpy(s->value, value);
	where(r, s->where, sizeof(s->where));
	return 0;
}

static int
apply(struct config_reading *r, const char *section, const char *name, const char *value)
{
	struct config_port *p;

	if (strcmp(section, "stack") == 0)
		return apply_key(r, config_stack_keys, section, NULL, name, value);
	if (strcmp(section, "eal") == 0)
		return apply_key(r, config_eal_keys, section, NULL, name, value);
	if (strcmp(section, "route") == 0)
		return apply_route(r, name, value);
	if (strcmp(section, "sysctl") == 0)
		return apply_sysctl(r, name, value);
	if (strncmp(section, "port.", strlen("port.")) == 0) {
		p = port_entry(r, section);
		return p == NULL ? r->rc : apply_key(r, config_port_keys, section, p, name, value);
	}
	return refuse(r, -EINVAL,
	    "[%s]: unknown section; known are stack, eal, port.NAME, route, sysctl", section);
}

/* ---- the file ---- */

static char *
read_line(char *buf, int size, void *arg)
{
	struct config_reading *r = arg;
	size_t blank, len;

	if (r->rc != 0 || fgets(buf, size, r->file) == NULL)
		return NULL;
	r->line++;
	len = strlen(buf);
	if (len == (size_t)size - 1 && buf[len - 1] != '\n') {
		refuse(r, -EINVAL,
		    "line longer than %d bytes; give args= or addr= several times instead",
		    LINE_MAX_BYTES);
		return NULL;
	}
	/* inih takes an indented line for a continuation; here it is a line like any other. */
	blank = strspn(buf, " \t");
	memmove(buf, buf + blank, len - blank + 1);
	return buf;
}

/* inih splits at ':' too; an IPv6 network as a route's key is put together again. */
static int
apply_ipv6_route(struct config_reading *r, const char *name, const char *value)
{
	char key[80];
	const char *eq = strchr(value, '=');
	size_t len = (size_t)(eq - value);

	while (len > 0 && value[len - 1] == ' ')
		len--;
	if (strlen(name) + len + 2 > sizeof(key))
		return refuse(r, -EINVAL,
		    "[route] %s: expected default or a network such as 2001:db8::/32", name);
	snprintf(key, sizeof(key), "%s:%.*s", name, (int)len, value);
	eq++;
	return apply_route(r, key, eq + strspn(eq, " "));
}

static int
on_entry(void *arg, const char *section, const char *name, const char *value)
{
	struct config_reading *r = arg;
	char bare[LINE_MAX_BYTES + 2];
	size_t len = strlen(value);

	if (r->rc != 0)
		return 1;
	if (strcmp(section, "route") == 0 && strchr(value, '=') != NULL)
		return apply_ipv6_route(r, name, value) == 0;
	if (len >= 2 && len < sizeof(bare) && value[0] == '"' && value[len - 1] == '"') {
		memcpy(bare, value + 1, len - 2);
		bare[len - 2] = '\0';
		value = bare;
	}
	if (section[0] == '\0')
		return refuse(r, -EINVAL,
			   "%s: expected a section such as [stack] before the first key",
			   name) == 0;
	return apply(r, section, name, value) == 0;
}

int
config_read_file(struct config *c, const char *path, char *err, size_t err_size)
{
	struct config_reading r = { .c = c, .path = path, .err = err, .err_size = err_size };
	int bad_line;

	r.file = fopen(path, "re");
	if (r.file == NULL) {
		int rc = -errno;

		snprintf(
		    err, err_size, "%s: cannot read the configuration: %s", path, strerror(-rc));
		return rc;
	}
	bad_line = ini_parse_stream(read_line, &r, on_entry, &r);
	if (r.rc == 0 && ferror(r.file)) {
		r.rc = -EIO;
		snprintf(err, err_size, "%s: cannot read the configuration: is it a file?", path);
	}
	fclose(r.file);
	if (r.rc == 0 && bad_line != 0) {
		r.line = bad_line;
		refuse(&r, -EINVAL, "expected [section], key=value or a # comment");
	}
	return r.rc;
}

int
config_override(struct config *c, const char *assignment, char *err, size_t err_size)
{
	struct config_reading r = { .c = c, .err = err, .err_size = err_size };
	char left[CONFIG_TEXT_MAX];
	const char *eq = strchr(assignment, '=');
	size_t len = eq != NULL ? (size_t)(eq - assignment) : 0;
	bool is_port;
	char *dot;

	if (len == 0 || len >= sizeof(left))
		return refuse(
		    &r, -EINVAL, "expected section.key=value, got \"%.100s\"", assignment);
	memcpy(left, assignment, len);
	left[len] = '\0';
	is_port = strncmp(left, "port.", strlen("port.")) == 0;
	dot = is_port ? strrchr(left, '.') : strchr(left, '.');
	if (dot == NULL || dot[1] == '\0' || (is_port && dot == left + strlen("port")))
		return refuse(&r, -EINVAL,
		    "expected section.key=value, e.g. stack.netisrs=2 or port.NAME.mtu=1500, got "
		    "\"%.100s\"",
		    assignment);
	*dot = '\0';
	return apply(&r, left, dot + 1, eq + 1);
}
