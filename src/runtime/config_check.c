/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of a configuration as a whole, before anything is touched. Each message names the key, the
 * reason and what to set.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/config.h"

static size_t
hex_run(const char *s)
{
	size_t n = 0;

	while (isxdigit((unsigned char)s[n]))
		n++;
	return n;
}

bool
config_device_is_pci(const char *device)
{
	const char *p = device;

	if (hex_run(p) == 4 && p[4] == ':')
		p += 5;
	if (hex_run(p) != 2 || p[2] != ':' || hex_run(p + 3) != 2 || p[5] != '.' || p[6] < '0' ||
	    p[6] > '7')
		return false;
	return p[7] == '\0' || p[7] == ',';
}

bool
config_device_needs_eal(const char *device)
{
	size_t word = strcspn(device, ":,=");

	/* "pair:", "respond:" and what tests add; a vdev has its ':' only behind a ',' or '='. */
	return config_device_is_pci(device) || device[word] != ':';
}

bool
config_needs_eal(const struct config *c)
{
	if (c->memory == CONFIG_MEMORY_DPDK)
		return true;
	for (unsigned i = 0; i < c->n_ports; i++) {
		if (config_device_needs_eal(c->ports[i].device))
			return true;
	}
	return false;
}

/* The name of a device string, without its arguments, decides whether two ports mean the same
 * device. */
static bool
is_same_device(const char *a, const char *b)
{
	size_t n = strcspn(a, ",");

	return n == strcspn(b, ",") && strncmp(a, b, n) == 0;
}

static int
check_port(const struct config *c, const struct config_port *p, char *err, size_t err_size)
{
	if (p->device[0] == '\0') {
		snprintf(err, err_size,
		    "[port.%s] device: missing; set for example device=net_tap0,iface=dtap0",
		    p->name);
		return -EINVAL;
	}
	if (p->queues > c->netisrs) {
		snprintf(err, err_size,
		    "[port.%s] queues: %u queues but %u netisr%s to serve them; set "
		    "stack.netisrs=%u or fewer queues",
		    p->name, p->queues, c->netisrs, c->netisrs == 1 ? "" : "s", p->queues);
		return -EINVAL;
	}
	if (c->memory == CONFIG_MEMORY_HEAP && config_device_needs_eal(p->device)) {
		snprintf(err, err_size,
		    "[stack] memory: heap, but [port.%s] is a DPDK device; set stack.memory=auto",
		    p->name);
		return -EINVAL;
	}
	for (const struct config_port *q = c->ports; q < p; q++) {
		if (config_device_needs_eal(p->device) && is_same_device(p->device, q->device)) {
			snprintf(err, err_size,
			    "[port.%s] device: the same as [port.%s]'s; give each port a device of "
			    "its own",
			    p->name, q->name);
			return -EINVAL;
		}
	}
	return 0;
}

static int
check_addrs(const struct config *c, const struct config_port *p, char *err, size_t err_size)
{
	char text[IPADDR_STR_MAX];

	for (unsigned i = 0; i < p->n_addrs; i++) {
		const struct ipaddr *a = &p->addrs[i].addr;
		/* 224.0.0.0/4 and ff00::/8: groups; 127.0.0.0/8 belongs to lo. */
		bool is_bad =
		    ipaddr_is_any(a) ||
		    (ipaddr_is_v4(a) ? a->b[12] >= 224 || a->b[12] == 127 : a->b[0] == 0xff);

		if (is_bad) {
			snprintf(err, err_size,
			    "[port.%s] addr: %s cannot be a host's address; set a unicast address",
			    p->name, ipaddr_format(a, text, sizeof(text)));
			return -EINVAL;
		}
		for (const struct config_port *q = c->ports; q <= p; q++) {
			unsigned end = q == p ? i : q->n_addrs;

			for (unsigned j = 0; j < end; j++) {
				if (!ipaddr_eq(a, &q->addrs[j].addr))
					continue;
				snprintf(err, err_size,
				    "[port.%s] addr: %s is also [port.%s]'s; give it to one port "
				    "only",
				    p->name, ipaddr_format(a, text, sizeof(text)), q->name);
				return -EINVAL;
			}
		}
	}
	return 0;
}

static int
check_packets(const struct config *c, char *err, size_t err_size)
{
	uint32_t need = c->netisrs * CONFIG_NETISR_PKTS_MIN;
	unsigned n_queues = 0;

	for (unsigned i = 0; i < c->n_ports; i++) {
		if (config_device_needs_eal(c->ports[i].device))
			n_queues += c->ports[i].queues != 0 ? c->ports[i].queues : c->netisrs;
	}
	need += n_queues * CONFIG_QUEUE_PKTS_MIN;
	if (c->packets >= need)
		return 0;
	snprintf(err, err_size,
	    "[stack] packets: %u are too few, %u netisr%s and %u device queue%s need %u; set "
	    "stack.packets=%u or more",
	    c->packets, c->netisrs, c->netisrs == 1 ? "" : "s", n_queues, n_queues == 1 ? "" : "s",
	    need, need);
	return -EINVAL;
}

int
config_check(const struct config *c, char *err, size_t err_size)
{
	for (unsigned i = 0; i < c->n_ports; i++) {
		int rc = check_port(c, &c->ports[i], err, err_size);

		if (rc == 0)
			rc = check_addrs(c, &c->ports[i], err, err_size);
		if (rc != 0)
			return rc;
	}
	return check_packets(c, err, err_size);
}
