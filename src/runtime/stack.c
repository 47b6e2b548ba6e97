/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Building and taking down a stack. Order up: clock and randomness, hash and table of owners,
 * netisrs, memory (EAL first when the packets are mbufs), then each layer: its stack part, its part
 * of every netisr. Down is the reverse, and any step that fails on the way up undoes what is there.
 */
#include "runtime/stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/eal.h"
#include "runtime/msgrate.h"
#include "runtime/netisr_priv.h"

static const char *const borrow_names[] = { "never", "idle", "poll", NULL };

static void
random_os(struct darter_stack *s, void *buf, size_t len)
{
	uint8_t *p = buf;

	(void)s;
	while (len > 0) {
		ssize_t n = getrandom(p, min_size(len, 256), 0);

		if (n < 0)
			continue;	/* EINTR: nothing else is possible for up to 256 bytes */
		p += n;
		len -= (size_t)n;
	}
}

/* Repeatable: SipHash of a counter, keyed by the configured seed. */
static void
random_seeded(struct darter_stack *s, void *buf, size_t len)
{
	struct siphash_key key = { .k = { s->config.seed, ~s->config.seed } };
	uint8_t *p = buf;

	while (len > 0) {
		uint64_t v = siphash(&key, &s->seed_state, sizeof(s->seed_state));
		size_t n = min_size(len, sizeof(v));

		s->seed_state++;
		memcpy(p, &v, n);
		p += n;
		len -= n;
	}
}

/* Fills keeper_cpu[] from a list such as "0-1,3". Returns 0 or -EINVAL. */
static int
parse_cpus(struct darter_stack *s, const char *text)
{
	while (*text != '\0') {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (end == text)
			return -EINVAL;
		if (*end == '-') {
			text = end + 1;
			last = strtoul(text, &end, 10);
			if (end == text || last < first)
				return -EINVAL;
		}
		for (; first <= last; first++) {
			if (s->n_keeper_cpus == NETISR_MAX || first >= CPU_SETSIZE)
				return -EINVAL;
			s->keeper_cpu[s->n_keeper_cpus++] = (uint16_t)first;
		}
		text = end;
		if (*text == ',')
			text++;
		else if (*text != '\0')
			return -EINVAL;
	}
	return 0;
}

static int
register_knobs(struct darter_stack *s)
{
	const struct knob knobs[] = {
		{ .name = "net.isr.borrow", .type = KNOB_ENUM, .dflt = 1, .min = 0, .max = 2,
		  .names = borrow_names, .value = &s->borrow,
		  .text = "may application threads run a free netisr themselves" },
		{ .name = "net.isr.spin_us", .type = KNOB_INT, .dflt = 20, .min = 0, .max = 50,
		  .value = &s->spin_us,
		  .text = "longest spin of a call whose netisr is at work, microseconds" },
		{ .name = "net.isr.poll_idle_us", .type = KNOB_INT, .dflt = 0, .min = -1,
		  .max = 10000000, .value = &s->poll_idle_us,
		  .text = "idle polling of a keeper or attached thread before it sleeps, "
		      "microseconds; -1 for ever" },
	};

	return knob_register(s, knobs, ARRAY_LEN(knobs));
}

static void
init_owners(struct darter_stack *s)
{
	unsigned i;

	toeplitz_init(&s->rss, s->config.rss_key, s->config.rss_key_bytes);
	s->reta_size = (uint16_t)s->config.rss_entries;
	for (i = 0; i < s->reta_size; i++)
		s->reta[i] = (uint8_t)(i % s->n_netisrs);
}

static int
new_netisr(struct darter_stack *s, unsigned id)
{
	struct netisr *n = aligned_alloc(CACHELINE_BYTES,
	    (sizeof(*n) + CACHELINE_BYTES - 1) / CACHELINE_BYTES * CACHELINE_BYTES);
	uint64_t seed;

	if (n == NULL)
		return -ENOMEM;
	memset(n, 0, sizeof(*n));
	s->netisr[id] = n;
	n->stack = s;
	n->id = id;
	n->now = stack_now(s);
	atomic_init(&n->last_cpu, -1);
	msgport_init(&n->port);
	wheel_init(&n->wheel, n->now);
	chunk_cache_init(&n->chunks, &s->depot, true);
	n->rcv_budget.limit_bytes = s->config.rcv_budget_bytes / s->n_netisrs;
	n->rcv_budget.ooo_limit_bytes = n->rcv_budget.limit_bytes / 4;
	s->random(s, &seed, sizeof(seed));
	rng_init(&n->rng, seed);
	return netisr_init_fds(n);
}

static int
init_base(struct darter_stack *s, struct clock *clock, char *err, size_t err_size)
{
	unsigned i;
	int r;

	if (clock == NULL)
		clock_init_tsc(&s->clock_own);
	s->clock = clock != NULL ? clock : &s->clock_own;
	s->random = s->config.seed != 0 ? random_seeded : random_os;
	s->random(s, s->secret, sizeof(s->secret));
	s->n_netisrs = s->config.netisrs;
	if (parse_cpus(s, s->config.cpus) < 0) {
		snprintf(err, err_size,
		    "stack.cpus: \"%s\" is not a list of CPUs; write for example 0-1,3",
		    s->config.cpus);
		return -EINVAL;
	}
	init_owners(s);
	r = chunk_depot_init(&s->depot, s->config.ring_memory_bytes);
	chunk_cache_init(&s->shared_chunks, &s->depot, false);
	s->shared_chunks.spare_bytes = chunk_depot_spare_bytes(&s->depot);
	for (i = 0; i < s->n_netisrs && r == 0; i++)
		r = new_netisr(s, i);
	if (r == 0)
		r = register_knobs(s);
	if (r < 0)
		snprintf(err, err_size,
		"stack: cannot set up %u netisrs: %s; lower stack.netisrs or raise the limits "
		    "on memory and open files", s->n_netisrs, strerror(-r));
	return r;
}

static int
init_packets(struct darter_stack *s, char *err, size_t err_size)
{
	bool needs_eal = s->config.memory == CONFIG_MEMORY_DPDK ||
	    (s->config.memory == CONFIG_MEMORY_AUTO && config_needs_eal(&s->config));
	int r;

	if (needs_eal) {
		r = eal_stack_init(s, err, err_size);
		return r < 0 ? r : pkt_dpdk_init(s, s->config.packets, err, err_size);
	}
	r = pkt_heap_init(s, s->config.packets);
	if (r < 0)
		snprintf(err, err_size,
		"stack.packets: no memory for %u packets of %zu bytes; lower it",
		    s->config.packets, sizeof(struct pkt) + PKT_HEADROOM_BYTES + PKT_ROOM_BYTES);
	return r;
}

static void
fini_layer(struct darter_stack *s, const struct layer *l, unsigned n_netisrs)
{
	while (n_netisrs-- > 0) {
		struct netisr *n = s->netisr[n_netisrs];

		if (l->netisr_fini == NULL)
			continue;
		netisr_hold_quietly(n);
		l->netisr_fini(n);
		netisr_release_quietly(n);
	}
	if (l->stack_fini != NULL)
		l->stack_fini(s);
}

static int
init_layer(struct darter_stack *s, const struct layer *l, char *err, size_t err_size)
{
	int r = l->stack_init != NULL ? l->stack_init(s, err, err_size) : 0;
	unsigned i, kind;

	if (r < 0)
		return r;
	for (i = 0; i < s->n_netisrs && r == 0 && l->netisr_init != NULL; i++) {
		netisr_hold_quietly(s->netisr[i]);
		r = l->netisr_init(s->netisr[i], err, err_size);
		netisr_release_quietly(s->netisr[i]);
	}
	if (r < 0) {
		fini_layer(s, l, i - 1);
		return r;
	}
	for (kind = 0; kind < MSG_KINDS; kind++) {
		if (l->message[kind] != NULL)
			s->on_message[kind] = l->message[kind];
	}
	return 0;
}

static void
fini_layers(struct darter_stack *s, const struct layer *const *end)
{
	while (end > s->layers)
		fini_layer(s, *--end, s->n_netisrs);
}

static int
init_layers(struct darter_stack *s, const struct layer *const *layers, char *err, size_t err_size)
{
	const struct layer *const *l;

	s->on_message[MSG_CALL] = netisr_on_call;
	s->on_message[MSG_RATE] = msgrate_on_message;
	for (l = layers; *l != NULL; l++) {
		int r = init_layer(s, *l, err, err_size);

		if (r < 0) {
			s->layers = layers;
			fini_layers(s, l);
			s->layers = NULL;
			return r;
		}
	}
	s->layers = layers;
	return 0;
}

static void
free_retired(struct darter_stack *s)
{
	while (s->retired != NULL) {
		struct retired *r = s->retired;

		s->retired = r->next;
		free(r->rounds);
		r->free(s, r);
	}
}

static void
free_base(struct darter_stack *s)
{
	unsigned i;

	if (s->pkt_ops != NULL)
		s->pkt_ops->fini(s);
	eal_stack_fini(s);
	for (i = 0; i < s->n_netisrs; i++) {
		if (s->netisr[i] == NULL)
			continue;
		chunk_cache_fini(&s->netisr[i]->chunks);
		netisr_fini_fds(s->netisr[i]);
		free(s->netisr[i]);
	}
	chunk_depot_fini(&s->depot);
	knob_fini(s);
	pthread_mutex_destroy(&s->control);
	free(s);
}

struct darter_stack *
stack_new(const struct config *cfg, const struct layer *const *layers, struct clock *clock,
    const struct log_sink *log, int *ret_err, char *err, size_t err_size)
{
	struct darter_stack *s = aligned_alloc(CACHELINE_BYTES,
	    (sizeof(*s) + CACHELINE_BYTES - 1) / CACHELINE_BYTES * CACHELINE_BYTES);
	int r;

	if (s == NULL) {
		snprintf(err, err_size, "stack: no memory for %zu bytes", sizeof(*s));
		*ret_err = -ENOMEM;
		return NULL;
	}
	memset(s, 0, sizeof(*s));
	s->config = *cfg;
	if (log != NULL)
		s->log = *log;
	s->pid = getpid();
	s->is_manual = cfg->threads == CONFIG_THREADS_MANUAL;
	pthread_mutex_init(&s->control, NULL);
	r = init_base(s, clock, err, err_size);
	if (r == 0)
		r = init_packets(s, err, err_size);
	if (r == 0)
		r = init_layers(s, layers, err, err_size);
	*ret_err = r;
	if (r == 0)
		return s;
	free_retired(s);
	free_base(s);
	return NULL;
}

void
stack_free(struct darter_stack *s)
{
	const struct layer *const *end = s->layers;

	atomic_store_explicit(&s->closing, true, memory_order_release);
	netisr_stop_keepers(s);
	free_retired(s);
	while (*end != NULL)
		end++;
	fini_layers(s, end);
	free_retired(s);
	free_base(s);
}

uint64_t
stack_counter(const struct darter_stack *s, enum counter c)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < s->n_netisrs; i++)
		sum += atomic_load_explicit(&s->netisr[i]->counters[c], memory_order_relaxed);
	return sum;
}
