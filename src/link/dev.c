/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The devices of a stack: which back end opens which device string, opening and closing in order,
 * lookup.
 *
 * Device 0 is always the loopback; the configured ports follow in the configuration's order. The
 * table does not change between set-up and tear-down, so it is read without locks. Back ends are
 * process-wide (a test adds its own before it makes a stack).
 */
#include "link/dev.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/capture.h"
#include "link/link_priv.h"
#include "runtime/config.h"

#define BACKENDS_MAX	8
#define OPTION_MAX	96

struct backend {
	const char *prefix;
	const struct dev_ops *ops;
};

static struct backend backends[BACKENDS_MAX] = {
	{ "pair:", &dev_pair_ops },
	{ "respond:", &dev_respond_ops },
};
static unsigned n_backends = 2;

int
dev_backend_add(const char *prefix, const struct dev_ops *ops)
{
	unsigned i;

	for (i = 0; i < n_backends; i++) {
		if (strcmp(backends[i].prefix, prefix) == 0) {
			backends[i].ops = ops;
			return 0;
		}
	}
	if (n_backends == BACKENDS_MAX)
		return -ENOSPC;
	backends[n_backends++] = (struct backend){ prefix, ops };
	return 0;
}

const struct dev_ops *
dev_backend(const char *device)
{
	unsigned i;

	for (i = 0; i < n_backends; i++) {
		if (strncmp(device, backends[i].prefix, strlen(backends[i].prefix)) == 0)
			return backends[i].ops;
	}
	return &dev_dpdk_ops;
}

bool
dev_option(const char *device, const char *key, char *buf, size_t size)
{
	size_t key_len = strlen(key);
	const char *p = strchr(device, ':');

	/* p is at the ':' or ',' in front of each item */
	for (; p != NULL; p = strchr(p, ',')) {
		size_t len;

		p++;
		if (strncmp(p, key, key_len) != 0 || p[key_len] != '=')
			continue;
		p += key_len + 1;
		len = min_size(strcspn(p, ","), size - 1);
		memcpy(buf, p, len);
		buf[len] = '\0';
		return true;
	}
	return false;
}

int
dev_option_u32(const char *device, const char *key, uint32_t dflt, uint32_t min, uint32_t max,
    uint32_t *ret, char *err, size_t err_size)
{
	char text[OPTION_MAX];
	unsigned long v;
	char *end;

	*ret = dflt;
	if (!dev_option(device, key, text, sizeof(text)))
		return 0;
	errno = 0;
	v = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v < min || v > max) {
		snprintf(err, err_size, "device %s: %s must be a number from %u to %u, not \"%s\"",
		    device, key, min, max, text);
		return -EINVAL;
	}
	*ret = (uint32_t)v;
	return 0;
}

struct dev *
dev_get(const struct darter_stack *s, unsigned index)
{
	return index < s->link->n_devs ? s->link->dev[index] : NULL;
}

unsigned
dev_count(const struct darter_stack *s)
{
	return s->link->n_devs;
}

struct dev *
dev_find(const struct darter_stack *s, const char *name)
{
	unsigned i;

	for (i = 0; i < s->link->n_devs; i++) {
		if (strcmp(s->link->dev[i]->name, name) == 0)
			return s->link->dev[i];
	}
	return NULL;
}

struct dev *
dev_loop(const struct darter_stack *s)
{
	return s->link->loop;
}

static struct dev *
open_one(struct darter_stack *s, const struct dev_ops *ops, const struct config_port *cfg,
    int *ret_err, char *err, size_t err_size)
{
	struct dev *d = calloc(1, sizeof(*d));

	if (d == NULL) {
		*ret_err = -ENOMEM;
		return NULL;
	}
	d->ops = ops;
	d->stack = s;
	d->index = (uint8_t)s->link->n_devs;
	d->has_ether = true;
	d->vlan = (uint16_t)cfg->vlan;
	d->mtu = (uint16_t)(cfg->mtu == 0 ? 1500 : cfg->mtu);
	snprintf(d->name, sizeof(d->name), "%s", cfg->name);
	if (cfg->has_mac)
		memcpy(d->mac, cfg->mac, sizeof(d->mac));
	*ret_err = ops->open(d, cfg, err, err_size);
	if (*ret_err < 0) {
		free(d);
		return NULL;
	}
	s->link->dev[s->link->n_devs++] = d;
	return d;
}

static int
open_port(struct darter_stack *s, const struct config_port *cfg, char *err, size_t err_size)
{
	const struct dev_ops *ops = dev_backend(cfg->device);
	struct dev *d;
	int r;

	if (cfg->fault[0] != '\0')
		ops = &dev_fault_ops;
	d = open_one(s, ops, cfg, &r, err, err_size);
	if (d == NULL)
		return r;
	if (cfg->capture[0] == '\0')
		return 0;
	return capture_start(d, cfg->capture, err, err_size);
}

int
dev_open_all(struct darter_stack *s, char *err, size_t err_size)
{
	struct config_port lo = { .name = "lo" };
	unsigned i;
	int r;

	s->link->loop = open_one(s, &dev_loop_ops, &lo, &r, err, err_size);
	for (i = 0; r >= 0 && i < s->config.n_ports && s->link->n_devs < DEV_MAX; i++)
		r = open_port(s, &s->config.ports[i], err, err_size);
	if (r < 0)
		dev_close_all(s);
	return r;
}

void
dev_close_all(struct darter_stack *s)
{
	while (s->link->n_devs > 0) {
		struct dev *d = s->link->dev[--s->link->n_devs];

		d->ops->close(d);
		/* nobody runs a netisr any more: no grace period is needed */
		capture_close(atomic_exchange(&d->capture, NULL));
		free(d);
	}
	s->link->loop = NULL;
}
