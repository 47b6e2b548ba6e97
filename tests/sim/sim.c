/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulator's machinery. Frames are seen by a rule on each fault device that decides nothing
 * (FAULT_AS_CONFIGURED) and hashes what is sent. Both stacks share the clock object; it moves to
 * the earlier of their deadlines, so events keep their order in virtual time whatever the load of
 * the machine.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <darter/darter.h>

#include "link/dev.h"
#include "link/dev_fault.h"
#include "runtime/netisr.h"
#include "sim/sim.h"
#include "support/cmocka_all.h"
#include "support/teststack.h"
#include "transport/tcp/tcp.h"

#define ROUNDS_MAX	1000000
#define SLOT_US		UINT64_C(64)
#define FRAME_MAX	2048

static enum fault_verdict
hash_frame(
    void *arg, enum fault_dir dir, uint64_t nth, const struct pkt *frame, uint64_t *ret_delay_us)
{
	struct sim *m = arg;
	struct {
		uint64_t chain;
		uint64_t now_us;
		uint8_t bytes[FRAME_MAX];
	} in;
	struct siphash_key key = { { 1, 2 } };
	uint32_t len;

	(void)nth;
	(void)ret_delay_us;
	if (dir != FAULT_TX)
		return FAULT_AS_CONFIGURED;
	in.chain = m->hash;
	in.now_us = sim_now(m).us;
	len = pkt_copy_out(frame, 0, in.bytes, FRAME_MAX);
	m->hash = siphash(&key, &in, offsetof(__typeof__(in), bytes) + len);
	m->frames++;
	if (m->on_frame != NULL)
		m->on_frame(m->on_frame_arg, frame);
	return m->is_cut ? FAULT_DROP : FAULT_AS_CONFIGURED;
}

static struct darter_stack *
make_stack(struct sim *m, const struct sim_opts *o, unsigned side)
{
	struct config *cfg = calloc(1, sizeof(*cfg));
	struct config_port *port;
	struct darter_stack *s;
	char text[160], err[256];
	unsigned i;

	assert_non_null(cfg);
	config_init(cfg);
	cfg->netisrs = o->netisrs != 0 ? o->netisrs : 1;
	cfg->packets = o->packets != 0 ? o->packets : 2048;
	cfg->ring_memory_bytes = UINT64_C(64) << 20;
	if (o->ring_memory_bytes[side] != 0)
		cfg->ring_memory_bytes = o->ring_memory_bytes[side];
	if (o->rcv_budget_bytes != 0)
		cfg->rcv_budget_bytes = o->rcv_budget_bytes;
	cfg->seed = 2 * o->seed + side + 1;
	cfg->n_ports = 1;
	port = &cfg->ports[0];
	snprintf(port->name, sizeof(port->name), "cable");
	port->queues = o->queues != 0 ? o->queues : cfg->netisrs;
	snprintf(port->device, sizeof(port->device), "pair:sim,queues=%u,csum=off%s%s",
	    port->queues, o->cable != NULL ? "," : "", o->cable != NULL ? o->cable : "");
	snprintf(port->fault, sizeof(port->fault), "%s%sseed=%" PRIu64 ",dir=tx",
	    o->fault != NULL ? o->fault : "", o->fault != NULL && o->fault[0] != '\0' ? "," : "",
	    2 * o->seed + side + 1);
	port->addrs[0].addr = ipaddr_v4_cpu(side == 0 ? SIM_A_IP : SIM_B_IP);
	port->addrs[0].prefix_bits = 24;
	port->n_addrs = 1;
	port->mtu = o->mtu != 0 ? o->mtu : 1500;
	memcpy(port->mac, "\x02\x09\x00\x00\x00", 5);
	port->mac[5] = (uint8_t)(side + 1);
	port->has_mac = true;
	for (i = 0; i < SIM_SYSCTLS && o->sysctls[i] != NULL; i++) {
		snprintf(text, sizeof(text), "sysctl.%s", o->sysctls[i]);
		if (config_override(cfg, text, err, sizeof(err)) != 0)
			fail_msg("%s: %s", o->sysctls[i], err);
	}
	for (i = 0; i < SIM_SYSCTLS && o->overrides[i] != NULL; i++)
		if (config_override(cfg, o->overrides[i], err, sizeof(err)) != 0)
			fail_msg("%s: %s", o->overrides[i], err);
	s = teststack_build(cfg, &m->clock);
	free(cfg);
	assert_int_equal(fault_set_rule(dev_find(s, "cable"), hash_frame, m), 0);
	return s;
}

void
sim_init(struct sim *m, const struct sim_opts *o)
{
	unsigned side;

	memset(m, 0, sizeof(*m));
	m->started = (struct time){ US_PER_SEC };
	clock_init_fake(&m->clock, m->started);
	rng_init(&m->rng, o->seed);
	for (side = 0; side < 2; side++)
		m->s[side] = make_stack(m, o, side);
	sim_run(m);
	for (side = 0; side < 2; side++) {
		m->packets_idle[side] = m->s[side]->pkt_ops->available(m->s[side]);
		m->chunks_idle[side] = teststack_chunk_bytes(m->s[side]);
	}
}

void
sim_fini(struct sim *m)
{
	unsigned side;

	darter_stack_use(NULL);
	for (side = 0; side < 2; side++)
		if (m->s[side] != NULL)
			teststack_tear_down(m->s[side]);
}

static unsigned
run_once(struct darter_stack *s)
{
	unsigned work = 0, i;

	for (i = 0; i < s->n_netisrs; i++) {
		assert_true(netisr_take(s->netisr[i]));
		work += netisr_round(s->netisr[i]);
		netisr_give(s->netisr[i]);
	}
	return work;
}

void
sim_run(struct sim *m)
{
	unsigned rounds = 0;

	while (run_once(m->s[0]) + run_once(m->s[1]) > 0)
		if (++rounds > ROUNDS_MAX)
			fail_msg("the stacks are not idle after %u rounds", rounds);
}

static struct time
next_deadline(struct sim *m)
{
	struct time first = TIME_NEVER;
	unsigned side, i;

	for (side = 0; side < 2; side++) {
		for (i = 0; i < m->s[side]->n_netisrs; i++) {
			struct netisr *n = m->s[side]->netisr[i];

			assert_true(netisr_take(n));
			first = time_min(first, netisr_next_deadline(n));
			netisr_give(n);
		}
	}
	return first;
}

void
sim_step(struct sim *m, struct time until)
{
	struct time now = sim_now(m), next = next_deadline(m);

	if (!time_before(now, next))
		next = time_add_us(now, SLOT_US);
	next = time_min(next, until);
	if (time_before(now, next))
		clock_advance_us(&m->clock, next.us - now.us);
	sim_run(m);
}

void
sim_advance(struct sim *m, uint64_t us)
{
	struct time until = time_add_us(sim_now(m), us);

	sim_run(m);
	while (time_before(sim_now(m), until))
		sim_step(m, until);
}

void
sim_cut(struct sim *m)
{
	m->is_cut = true;
}

uint32_t
sim_tcp_count(struct sim *m)
{
	uint32_t pcbs, half_open, timewait, sum = 0;
	unsigned side, i;

	for (side = 0; side < 2; side++) {
		for (i = 0; i < m->s[side]->n_netisrs; i++) {
			tcp_counts(m->s[side]->netisr[i], &pcbs, &half_open, &timewait);
			sum += pcbs + half_open + timewait;
		}
	}
	return sum;
}

uint64_t
sim_counter(struct sim *m, unsigned side, enum counter c)
{
	return stack_counter(m->s[side], c);
}

void
sim_expect_empty(struct sim *m)
{
	unsigned side;

	if (sim_tcp_count(m) != 0)
		fail_msg("%u connections are left at %.3f s", sim_tcp_count(m), sim_elapsed_s(m));
	for (side = 0; side < 2; side++) {
		uint32_t packets = m->s[side]->pkt_ops->available(m->s[side]);
		uint64_t chunks = teststack_chunk_bytes(m->s[side]);

		if (packets < m->packets_idle[side])
			fail_msg("stack %c: %u packets did not come back", "AB"[side],
			    m->packets_idle[side] - packets);
		if (chunks > m->chunks_idle[side])
			fail_msg("stack %c: %" PRIu64 " bytes of chunks are still in use",
			    "AB"[side], chunks - m->chunks_idle[side]);
	}
}

void
sim_enter_at(struct sim *m, unsigned side, unsigned netisr)
{
	assert_true(netisr_take(m->s[side]->netisr[netisr]));
	darter_stack_use(m->s[side]);
}

void
sim_leave_at(struct sim *m, unsigned side, unsigned netisr)
{
	netisr_give(m->s[side]->netisr[netisr]);
}

void
sim_enter(struct sim *m, unsigned side)
{
	sim_enter_at(m, side, 0);
}

void
sim_leave(struct sim *m, unsigned side)
{
	sim_leave_at(m, side, 0);
}
