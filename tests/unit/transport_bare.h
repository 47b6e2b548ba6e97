/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stack with nothing but what a test of the shared transport parts needs: netisrs without
 * threads, a fake clock, the layers given. Sockets are bare sockhalves of the test's own.
 */
#ifndef TEST_UNIT_TRANSPORT_BARE_H
#define TEST_UNIT_TRANSPORT_BARE_H

#include "support/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/stack.h"

static inline struct darter_stack *
bare_stack_seeded(unsigned netisrs, struct clock *clock, const struct layer *const *layers,
    uint64_t seed)
{
	struct darter_stack *s;
	struct config cfg;
	char err[256] = "";
	int rc;

	config_init(&cfg);
	cfg.netisrs = netisrs;
	cfg.threads = CONFIG_THREADS_MANUAL;
	cfg.memory = CONFIG_MEMORY_HEAP;
	cfg.packets = 256;
	cfg.ring_memory_bytes = 16u << 20;
	cfg.seed = seed;
	clock_init_fake(clock, (struct time){ 1000000 });
	s = stack_new(&cfg, layers, clock, NULL, &rc, err, sizeof(err));
	if (s == NULL)
		fail_msg("stack_new: %d %s", rc, err);
	return s;
}

static inline struct darter_stack *
bare_stack(unsigned netisrs, struct clock *clock, const struct layer *const *layers)
{
	return bare_stack_seeded(netisrs, clock, layers, 42);
}

static inline struct sockhalf *
bare_sock(struct darter_stack *s)
{
	struct sockhalf *sh = aligned_alloc(CACHELINE_BYTES,
	    (sizeof(*sh) + CACHELINE_BYTES - 1) / CACHELINE_BYTES * CACHELINE_BYTES);

	assert_non_null(sh);
	memset(sh, 0, sizeof(*sh));
	sh->stack = s;
	sh->node.kind = MSG_SOCKET;
	atomic_init(&sh->opts.rcvbuf_bytes, 65536);
	atomic_init(&sh->opts.sndbuf_bytes, 65536);
	ring_init(&sh->tx, 65536);
	return sh;
}

static inline struct endpoint
ep(uint32_t addr, uint16_t port)
{
	return (struct endpoint){ ipaddr_v4_cpu(addr), port };
}

static inline struct tuple
tup(uint32_t local, uint16_t lport, uint32_t foreign, uint16_t fport)
{
	return (struct tuple){ ipaddr_v4_cpu(local), ipaddr_v4_cpu(foreign), lport, fport };
}

#endif
