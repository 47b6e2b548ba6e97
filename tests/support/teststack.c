/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Building and driving a stack under test.
 *
 * The holder rule: a thread holds one netisr at a time, so every helper takes a netisr, works and
 * gives it back; calls of the application (script_app.c) do the same. Rounds are bounded: a stack
 * that never becomes idle fails the test instead of hanging it. The clock goes to wheel deadlines,
 * which may lie up to one slot (64 us) before the timer's own; a step that finds nothing due
 * therefore moves on by one slot.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inet/ip.h"
#include "link/dev.h"
#include "runtime/netisr.h"
#include "socket/call.h"
#include "socket/fdtab.h"
#include "socket/sock.h"
#include "transport/tcp/tcp.h"
#include "transport/ulp.h"
#include "wire/arp.h"
#include "wire/ether.h"

#include "support/cmocka_all.h"
#include "support/teststack.h"

#define ROUNDS_MAX	200000
#define SETTLE_US	(10 * US_PER_SEC)
#define SLOT_US		UINT64_C(64)

static void
print_log(void *arg, int level, const char *line)
{
	(void)arg;
	fprintf(stderr, "stack: %s: %s\n", log_level_name(level), line);
}

/* What darter_open() builds a stack of. */
static const struct layer *const layers[] = {
	&link_layer,
	&inet_layer,
	&ulp_layer,
	&demux_layer,
	&udp_layer,
	&tcp_layer,
	&sock_layer,
	NULL,
};

struct darter_stack *
teststack_build(struct config *cfg, struct clock *clock)
{
	const struct log_sink log = { .write = print_log, .max_level = LOG_LVL_WARN };
	char err[256] = "";
	struct darter_stack *s;
	unsigned i;
	int rc = 0;

	cfg->threads = CONFIG_THREADS_MANUAL;
	cfg->memory = CONFIG_MEMORY_HEAP;
	if (config_check(cfg, err, sizeof(err)) != 0)
		fail_msg("the test stack's configuration is refused: %s", err);
	s = stack_new(cfg, layers, clock, &log, &rc, err, sizeof(err));
	if (s == NULL)
		fail_msg("stack_new: %d: %s", rc, err);
	for (i = 0; i < cfg->n_sysctls; i++)
		if (knob_set(s, cfg->sysctls[i].name, cfg->sysctls[i].value, err, sizeof(err)) != 0)
			fail_msg("%s: %s", cfg->sysctls[i].name, err);
	fdtab_set_base(cfg->fd_base);
	assert_int_equal(stacks_add(s), 0);
	return s;
}

void
teststack_tear_down(struct darter_stack *s)
{
	stacks_remove(s);
	stack_free(s);
}

void
teststack_mac(uint8_t host, uint8_t ret_mac[6])
{
	const uint8_t mac[6] = { 0x02, 0, 0, 0, 0, host };

	memcpy(ret_mac, mac, sizeof(mac));
}

/*
 * Answers an ARP request for P or Q. Every other ARP packet of the stack is not the scripts'
 * business: swallowed too.
 */
static bool
answer_arp(void *arg, const uint8_t *frame, uint32_t len)
{
	struct teststack *ts = arg;
	uint8_t reply[ETHER_MIN_FRAME_BYTES] = { 0 };
	struct ether_view eth;
	struct arp_view arp, out;
	uint32_t target;

	if (!ts->auto_arp || ether_parse(frame, len, &eth) != WIRE_OK ||
	    eth.type != ETHER_TYPE_ARP ||
	    arp_parse(frame + eth.hdr_bytes, len - eth.hdr_bytes, &arp) != WIRE_OK)
		return false;
	target = be32_to_cpu(arp.target_ip);
	if (arp.op != ARP_OP_REQUEST || (target != TEST_PEER_IP && target != TEST_THIRD_IP))
		return true;
	out.op = ARP_OP_REPLY;
	out.sender_ip = arp.target_ip;
	out.target_ip = arp.sender_ip;
	out.target_mac = arp.sender_mac;
	teststack_mac((uint8_t)(target & 0xff), out.sender_mac.b);
	ether_emit(reply, &arp.sender_mac, &out.sender_mac, ETHER_TYPE_ARP);
	arp_emit(reply + ETHER_HDR_BYTES, &out);
	wire_dev_inject(ts->wire, 0, reply, sizeof(reply));
	return true;
}

static void
fill_port(struct config *cfg, const struct teststack_opts *o, unsigned wire_no)
{
	struct config_port *port = &cfg->ports[0];

	cfg->n_ports = 1;
	snprintf(port->name, sizeof(port->name), "wire%u", wire_no);
	snprintf(port->device, sizeof(port->device), "wire:%u", wire_no);
	port->addrs[0].addr = ipaddr_v4_cpu(TEST_STACK_IP);
	port->addrs[0].prefix_bits = 24;
	port->n_addrs = 1;
	port->queues = o->queues != 0 ? o->queues : cfg->netisrs;
	port->mtu = o->mtu != 0 ? o->mtu : 1500;
	port->vlan = o->vlan;
	teststack_mac(1, port->mac);
	port->has_mac = true;
	if (o->no_default_route)
		return;
	cfg->n_routes = 1;
	cfg->routes[0].dst.addr = ipaddr_v4_cpu(0);
	cfg->routes[0].dst.prefix_bits = 0;
	cfg->routes[0].gateway = ipaddr_v4_cpu(TEST_PEER_IP);
}

static struct config *
make_config(const struct teststack_opts *o, unsigned wire_no)
{
	struct config *cfg = calloc(1, sizeof(*cfg));
	char err[256] = "", text[160];
	unsigned i;

	assert_non_null(cfg);
	config_init(cfg);
	cfg->netisrs = o->netisrs != 0 ? o->netisrs : 1;
	cfg->packets = o->packets != 0 ? o->packets : 512;
	cfg->ring_memory_bytes =
	    o->ring_memory_bytes != 0 ? o->ring_memory_bytes : UINT64_C(64) << 20;
	cfg->seed = o->seed != 0 ? o->seed : 1;
	fill_port(cfg, o, wire_no);
	for (i = 0; i < TESTSTACK_MAX_SYSCTLS && o->sysctls[i] != NULL; i++) {
		snprintf(text, sizeof(text), "sysctl.%s", o->sysctls[i]);
		if (config_override(cfg, text, err, sizeof(err)) != 0)
			fail_msg("%s: %s", o->sysctls[i], err);
	}
	return cfg;
}

void
teststack_init(struct teststack *ts, const struct teststack_opts *o, unsigned wire_no)
{
	struct config *cfg;

	memset(ts, 0, sizeof(*ts));
	wire_dev_register();
	ts->wire = wire_dev_reset(wire_no);
	ts->wire->on_tx = answer_arp;
	ts->wire->on_tx_arg = ts;
	ts->wire->vlan = (uint16_t)o->vlan;
	ts->auto_arp = true;
	ts->started = (struct time){ o->start_us != 0 ? o->start_us : US_PER_SEC };
	clock_init_fake(&ts->clock, ts->started);
	cfg = make_config(o, wire_no);
	ts->s = teststack_build(cfg, &ts->clock);
	free(cfg);
	/* past the announcements of our address */
	teststack_advance(ts, SETTLE_US);
	ts->started = teststack_now(ts);
	wire_dev_clear(ts->wire);
	ts->packets_idle = ts->s->pkt_ops->available(ts->s);
	ts->chunks_idle = teststack_chunk_bytes(ts->s);
}

void
teststack_fini(struct teststack *ts)
{
	if (ts->s == NULL)
		return;
	teststack_tear_down(ts->s);
	ts->s = NULL;
}

unsigned
teststack_run(struct teststack *ts)
{
	unsigned rounds = 0, work, i;

	do {
		work = 0;
		for (i = 0; i < ts->s->n_netisrs; i++) {
			struct netisr *n = ts->s->netisr[i];

			assert_true(netisr_take(n));
			work += netisr_round(n);
			netisr_give(n);
		}
		if (work > 0 && ++rounds > ROUNDS_MAX)
			fail_msg("the stack is not idle after %u rounds", rounds);
	} while (work > 0);
	return rounds;
}

struct time
teststack_next_deadline(struct teststack *ts)
{
	struct time first = TIME_NEVER;
	unsigned i;

	for (i = 0; i < ts->s->n_netisrs; i++) {
		struct netisr *n = ts->s->netisr[i];

		assert_true(netisr_take(n));
		first = time_min(first, netisr_next_deadline(n));
		netisr_give(n);
	}
	return first;
}

bool
teststack_step(struct teststack *ts, struct time until)
{
	struct time now = teststack_now(ts), next = teststack_next_deadline(ts);

	if (time_reached(now, until)) {
		teststack_run(ts);
		return false;
	}
	if (!time_before(now, next))
		next = time_add_us(now, SLOT_US);
	next = time_min(next, until);
	clock_advance_us(&ts->clock, next.us - now.us);
	teststack_run(ts);
	return true;
}

void
teststack_advance(struct teststack *ts, uint64_t us)
{
	struct time until = time_add_us(teststack_now(ts), us);

	teststack_run(ts);
	while (teststack_step(ts, until))
		;
}

uint32_t
teststack_tcp_count(struct teststack *ts)
{
	uint32_t pcbs, half_open, timewait, sum = 0;
	unsigned i;

	for (i = 0; i < ts->s->n_netisrs; i++) {
		tcp_counts(ts->s->netisr[i], &pcbs, &half_open, &timewait);
		sum += pcbs + half_open + timewait;
	}
	return sum;
}

uint64_t
teststack_chunk_bytes(const struct darter_stack *s)
{
	uint64_t bytes = atomic_load(&s->depot.used_bytes);
	unsigned i, class;

	for (i = 0; i < s->n_netisrs; i++)
		for (class = 0; class < CHUNK_CLASSES; class++)
			bytes -=
			    (uint64_t)s->netisr[i]->chunks.n_free[class] * chunk_class_bytes(class);
	return bytes;
}

void
teststack_expect_no_leak(struct teststack *ts)
{
	uint32_t packets;
	uint64_t chunks;

	teststack_run(ts);
	packets = ts->s->pkt_ops->available(ts->s);
	chunks = teststack_chunk_bytes(ts->s);
	if (packets < ts->packets_idle)
		fail_msg("%u packets of %u did not come back", ts->packets_idle - packets,
		    ts->packets_idle);
	if (chunks > ts->chunks_idle)
		fail_msg("%" PRIu64 " bytes of chunks are still in use", chunks - ts->chunks_idle);
}
