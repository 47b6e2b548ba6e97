/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of the sections [stack], [eal] and [port.NAME]: one short function a key, which takes
 * the text or refuses it. The sentence of what is expected stands beside it in the table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/log.h"
#include "runtime/config_priv.h"
#include "runtime/netisr.h"
#include "runtime/numtext.h"

static int
set_u64(uint64_t *field, const char *value, uint64_t min, uint64_t max)
{
	uint64_t v;

	if (numtext_parse_u64(value, &v) != 0 || v < min || v > max)
		return -EINVAL;
	*field = v;
	return 0;
}

static int
set_unsigned(unsigned *field, const char *value, unsigned min, unsigned max)
{
	uint64_t v;

	if (set_u64(&v, value, min, max) != 0)
		return -EINVAL;
	*field = (unsigned)v;
	return 0;
}

static int
set_text(char *field, size_t size, const char *value)
{
	if (strlen(value) >= size)
		return -ENOSPC;
	memcpy(field, value, strlen(value) + 1);
	return 0;
}

/* Index of value in a NULL-terminated list of words. */
static int
set_word(int *field, const char *value, const char *const *words)
{
	for (int i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], value) == 0) {
			*field = i;
			return 0;
		}
	}
	return -EINVAL;
}

int
config_parse_addr(const char *text, struct config_addr *ret_addr)
{
	char host[64];
	const char *slash = strchr(text, '/');
	size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
	struct config_addr a;
	unsigned family_bits, bits;

	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	if (ipaddr_parse(host, &a.addr) != 0)
		return -EINVAL;
	family_bits = ipaddr_is_v4(&a.addr) ? 32 : 128;
	bits = family_bits;
	if (slash != NULL && set_unsigned(&bits, slash + 1, 0, family_bits) != 0)
		return -EINVAL;
	a.prefix_bits = (uint8_t)bits;
	*ret_addr = a;
	return 0;
}

/* ---- [stack] ---- */

static int
set_netisrs(struct config_reading *r, UNUSED struct config_port *p, const char *value)
{
	return set_unsigned(&r->c->netisrs, value, 1, NETISR_MAX);
}

static int
set_threads(struct config_reading *r, UNUSED struct config_port *p, const char *value)
{
	static const char *const words[] = { "background", "manual", NULL };
	int i, rc = set_word(&i, value, words);

	if (rc == 0)
		r->c->threads = (enum config_threads)i;
	return rc;
}

static int
set_memory(struct config_reading *r, UNUSED struct config_port *p, const char *value)
{
	static const char *const words[] = { "auto", "heap", "dpdk", NULL };
	int i, rc = set_word(&i, value, words);

	if (rc == 0)
		r->c->memory = (enum config_memory)i;
	return rc;
}

static int
set_packets(struct config_reading *r, UNUSED struct config_port *p, const char *value)
{
	return set_unsigned(&r->c->packets, value, 64, 1u << 24);
}

static int
set_ring_memory(struct config_reading *r, UNUSED struct config_port *p, const char *value)
{
	return set_u64(&r->c->ring_memory_bytes, value, UINT64_C(1) << 20, UINT64_C(1) << 42);
}

static int
set_rcv_budget(struct config_reading *r, UNUSED struct config_port *p, const char *value)
{
	return set_u64(&r->c->rcv_budget_bytes, value, UINT64_C(64) << 10, UINT64_C(1) << 42);
}

static int
set_seed(struct config_reading *r, UNUSED struct config_port *p, const char *value)
{
	return set_u64(&r->c->seed, value, 0, UINT64_MAX);
}

static int
set_fd_base(struct config_reading *r, UNUSED struct config_port *p, const char *value)
{
	unsigned v;

	if (set_unsigned(&v, value, 1024, 1u << 30) != 0)
		return -EINVAL;
	r->c->fd_base = (int)v;
	return 0;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Pairs of hex digits, with or without colons between them. Returns bytes or -EINVAL. */
static int
read_hex(const char *text, uint8_t *ret, size_t size)
{
	size_t n = 0;

	while (*text != '\0') {
		int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);

		if (low < 0 || n == size)
			return -EINVAL;
		ret[n++] = (uint8_t)(high << 4 | low);
		text += 2;
		if (*text == ':' && text[1] != '\0')
			text++;
	}
	return (int)n;
}

static int
set_rss_key(struct config_reading *r, UNUSED struct config_port *p, const char *value)
{
	uint8_t key[TOEPLITZ_KEY_MAX_BYTES];
	int n = TOEPLITZ_KEY_MIN_BYTES;

	if (strcmp(value, "symmetric") == 0)
		memcpy(key, toeplitz_key_symmetric, (size_t)n);
	else if (strcmp(value, "microsoft") == 0)
		memcpy(key, toeplitz_key_microsoft, (size_t)n);
	else
		n = read_hex(value, key, sizeof(key));
	if (n < TOEPLITZ_KEY_MIN_BYTES)
		return -EINVAL;
	memcpy(r->c->rss_key, key, (size_t)n);
	r->c->rss_key_bytes = (unsigned)n;
	return 0;
}

static int
set_rss_entries(struct config_reading *r, UNUSED struct config_port *p, const char *value)
{
	unsigned v;

	if (set_unsigned(&v, value, 64, 512) != 0 || (v & (v - 1)) != 0)
		return -EINVAL;
	r->c->rss_entries = v;
	return 0;
}

/* "0-3,6": every item a number or a range, at most CPU 1023. */
static bool
is_cpu_list(const char *text)
{
	const char *p = text;

	while (*p != '\0') {
		char *end;
		unsigned long first, last;

		if (*p < '0' || *p > '9')
			return false;
		first = last = strtoul(p, &end, 10);
		if (*end == '-') {
			p = end + 1;
			if (*p < '0' || *p > '9')
				return false;
			last = strtoul(p, &end, 10);
		}
		if (last < first || last > 1023 || (*end != ',' && *end != '\0'))
			return false;
		if (*end == ',' && end[1] == '\0')
			return false;
		p = *end == ',' ? end + 1 : end;
	}
	return true;
}

static int
set_cpus(struct config_reading *r, UNUSED struct config_port *p, const char *value)
{
	if (!is_cpu_list(value))
		return -EINVAL;
	return set_text(r->c->cpus, sizeof(r->c->cpus), value);
}

static int
set_exit_linger(struct config_reading *r, UNUSED struct config_port *p, const char *value)
{
	return set_unsigned(&r->c->exit_linger_ms, value, 0, 3600000);
}

static int
set_log(struct config_reading *r, UNUSED struct config_port *p, const char *value)
{
	for (int level = 0; level < LOG_LVL_MAX; level++) {
		if (strcmp(log_level_name(level), value) == 0) {
			r->c->log_level = level;
			return 0;
		}
	}
	return -EINVAL;
}

const struct config_key config_stack_keys[] = { { "netisrs", set_netisrs, "a number from 1 to 64" },
	{ "threads", set_threads, "background or manual" },
	{ "memory", set_memory, "auto, heap or dpdk" },
	{ "packets", set_packets, "a number from 64 to 16m" },
	{ "ring_memory", set_ring_memory, "a size from 1m to 4096g, e.g. 256m" },
	{ "rcv_budget", set_rcv_budget, "a size from 64k to 4096g, e.g. 64m" },
	{ "seed", set_seed, "an unsigned number, 0 for the system's entropy" },
	{ "fd_base", set_fd_base, "a number from 1024 to 1g" },
	{ "rss_key", set_rss_key, "symmetric, microsoft, or 40 to 52 bytes as hex digits" },
	{ "rss_entries", set_rss_entries, "64, 128, 256 or 512" },
	{ "cpus", set_cpus, "a list of CPUs such as 0-3,6 or nothing" },
	{ "exit_linger_ms", set_exit_linger, "milliseconds from 0 to 3600000" },
	{ "log", set_log, "err, warn, notice, info or debug" }, { NULL, NULL, NULL } };

/* ---- [eal] ---- */

static int
set_eal_args(struct config_reading *r, UNUSED struct config_port *p, const char *value)
{
	char *args = r->c->eal_args;
	size_t used;

	if (r->path == NULL || !r->args_seen)
		args[0] = '\0';
	r->args_seen = true;
	used = strlen(args);
	if (used + 1 + strlen(value) >= sizeof(r->c->eal_args))
		return -ENOSPC;
	snprintf(args + used, sizeof(r->c->eal_args) - used, "%s%s", used > 0 ? " " : "", value);
	return 0;
}

static int
set_hugepages(struct config_reading *r, UNUSED struct config_port *p, const char *value)
{
	static const char *const words[] = { "auto", "no", "yes", NULL };
	int i, rc = set_word(&i, value, words);

	if (rc == 0)
		r->c->hugepages = (enum config_hugepages)i;
	return rc;
}

const struct config_key config_eal_keys[] = { { "args", set_eal_args,
						  "DPDK's EAL arguments, 1023 bytes at most" },
	{ "hugepages", set_hugepages, "auto, no or yes" }, { NULL, NULL, NULL } };

/* ---- [port.NAME] ---- */

static int
set_device(UNUSED struct config_reading *r, struct config_port *p, const char *value)
{
	if (value[0] == '\0')
		return -EINVAL;
	return set_text(p->device, sizeof(p->device), value);
}

static int
set_addr(struct config_reading *r, struct config_port *p, const char *value)
{
	bool *seen = &r->addrs_seen[p - r->c->ports];
	char list[CONFIG_TEXT_MAX];
	char *save = NULL;

	if (set_text(list, sizeof(list), value) != 0)
		return -ENOSPC;
	if (r->path == NULL || !*seen)
		p->n_addrs = 0;
	*seen = true;
	for (char *t = strtok_r(list, ", ", &save); t != NULL; t = strtok_r(NULL, ", ", &save)) {
		if (p->n_addrs == CONFIG_MAX_ADDRS)
			return -ENOSPC;
		if (config_parse_addr(t, &p->addrs[p->n_addrs]) != 0)
			return -EINVAL;
		p->n_addrs++;
	}
	return 0;
}

static int
set_queues(UNUSED struct config_reading *r, struct config_port *p, const char *value)
{
	return set_unsigned(&p->queues, value, 0, NETISR_MAX);
}

static int
set_mtu(UNUSED struct config_reading *r, struct config_port *p, const char *value)
{
	return set_unsigned(&p->mtu, value, 576, 65535);
}

static int
set_vlan(UNUSED struct config_reading *r, struct config_port *p, const char *value)
{
	return set_unsigned(&p->vlan, value, 0, 4094);
}

static int
set_mac(UNUSED struct config_reading *r, struct config_port *p, const char *value)
{
	uint8_t mac[6];
	int used = 0;
	int n = sscanf(value, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0], &mac[1], &mac[2],
	    &mac[3], &mac[4], &mac[5], &used);
	static const uint8_t zero[6];

	/* A group address cannot be a host's (IEEE 802). */
	if (n != 6 || value[used] != '\0' || (mac[0] & 1) != 0 ||
	    memcmp(mac, zero, sizeof(mac)) == 0)
		return -EINVAL;
	memcpy(p->mac, mac, sizeof(mac));
	p->has_mac = true;
	return 0;
}

static int
set_fault(UNUSED struct config_reading *r, struct config_port *p, const char *value)
{
	return set_text(p->fault, sizeof(p->fault), value);
}

static int
set_capture(UNUSED struct config_reading *r, struct config_port *p, const char *value)
{
	return set_text(p->capture, sizeof(p->capture), value);
}

const struct config_key config_port_keys[] = {
	{ "device", set_device, "a device such as net_tap0,iface=dtap0 or a PCI address" },
	{ "addr", set_addr, "addresses with prefix length such as 10.0.0.2/24,10.0.0.3/24" },
	{ "queues", set_queues, "a number from 0 to 64, 0 for one per netisr" },
	{ "mtu", set_mtu, "a number from 576 to 65535" },
	{ "vlan", set_vlan, "a VLAN id from 1 to 4094, 0 for none" },
	{ "mac", set_mac, "a unicast address such as 02:00:00:00:00:01" },
	{ "fault", set_fault, "a fault rule of 255 bytes at most" },
	{ "capture", set_capture, "a file name of 255 bytes at most" }, { NULL, NULL, NULL }
};
