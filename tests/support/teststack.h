/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stack for tests: heap memory, no threads, a clock that moves only when told, a seed, and one
 * test device (wire_dev.h) with the addresses of tests/script: the stack is 192.0.2.1, its peer
 * 192.0.2.2, a third host 192.0.2.3.
 *
 * Nothing happens by itself: teststack_run() runs rounds until no netisr finds work,
 * teststack_advance() moves the clock from deadline to deadline. One thread.
 */
#ifndef TEST_SUPPORT_TESTSTACK_H
#define TEST_SUPPORT_TESTSTACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ipaddr.h"
#include "runtime/clock.h"
#include "runtime/stack.h"
#include "support/wire_dev.h"

#define TEST_STACK_IP	UINT32_C(0xc0000201)	/* D of the case descriptions */
#define TEST_PEER_IP	UINT32_C(0xc0000202)	/* P */
#define TEST_THIRD_IP	UINT32_C(0xc0000203)	/* Q */
#define TEST_NET_BROADCAST_IP UINT32_C(0xc00002ff)

#define TESTSTACK_MAX_SYSCTLS 16

struct teststack_opts {
	unsigned netisrs;		/* 0: one */
	unsigned queues;		/* of the device, 0: as many as netisrs */
	uint64_t seed;			/* 0: 1 */
	uint64_t start_us;		/* of the clock, 0: one second */
	uint32_t packets;		/* 0: 512 */
	uint64_t ring_memory_bytes;	/* 0: 64 MiB */
	unsigned mtu;			/* 0: 1500 */
	unsigned vlan;
	bool no_default_route;
	const char *sysctls[TESTSTACK_MAX_SYSCTLS];	/* "net.inet.tcp.x=1", ends at NULL */
};

struct teststack {
	struct darter_stack *s;
	struct clock clock;
	struct wire_dev *wire;
	struct time started;
	bool auto_arp;		/* requests for P's and Q's address are answered by the harness */
	uint32_t packets_idle;	/* free packets after start-up */
	uint64_t chunks_idle;	/* depot bytes after start-up */
};

struct config;

/*
 * A manual heap stack from cfg on this clock, visible to the library's calls. Fails the test on
 * error. The other one undoes it; no descriptor of it may be open.
 */
struct darter_stack *teststack_build(struct config *cfg, struct clock *clock);
void teststack_tear_down(struct darter_stack *s);

/*
 * Makes the stack on wire number `wire_no`, settled and with nothing captured. Fails the test on
 * error.
 */
void teststack_init(struct teststack *ts, const struct teststack_opts *o, unsigned wire_no);

/* Frees it. Harmless on an object that is all zero. */
void teststack_fini(struct teststack *ts);

/* Runs every netisr until none has work. Returns the number of rounds that did something. */
unsigned teststack_run(struct teststack *ts);

/* First moment at which the stack wants to run by itself. */
struct time teststack_next_deadline(struct teststack *ts);

/*
 * Moves the clock to the next deadline but not past `until`, and runs. False when `until` is
 * reached and what was due then has run.
 */
bool teststack_step(struct teststack *ts, struct time until);

/* Moves the clock by us microseconds, stopping at every deadline on the way. */
void teststack_advance(struct teststack *ts, uint64_t us);

static inline struct time
teststack_now(struct teststack *ts)
{
	return clock_now(&ts->clock);
}

/* Microseconds of virtual time since the stack was made. */
static inline uint64_t
teststack_elapsed_us(struct teststack *ts)
{
	return time_since_us(teststack_now(ts), ts->started);
}

/* Connections of all kinds that any netisr still has. */
uint32_t teststack_tcp_count(struct teststack *ts);

/* Bytes of chunks that sockets hold: those in the netisrs' caches are free. */
uint64_t teststack_chunk_bytes(const struct darter_stack *s);

/* Fails the test unless packets and chunks are all back where they were after start-up. */
void teststack_expect_no_leak(struct teststack *ts);

/* The MAC of P (2) or Q (3), the stack's own (1). */
void teststack_mac(uint8_t host, uint8_t ret_mac[6]);

#endif
