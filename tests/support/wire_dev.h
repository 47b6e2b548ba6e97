/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device for tests, "wire:N": frames that the stack sends are kept in order with the moment of
 * sending, frames that the test injects are received in the next round. It offloads nothing, so
 * what is captured is what a plain cable would carry. Configured wire N of a process is one object;
 * one thread uses it.
 */
#ifndef TEST_SUPPORT_WIRE_DEV_H
#define TEST_SUPPORT_WIRE_DEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

struct dev;

#define WIRE_DEV_MAX		4
#define WIRE_DEV_QUEUES		4
#define WIRE_FRAME_MAX_BYTES	9014
#define WIRE_FRAMES_MAX		65536	/* captured and not looked at; more is a test's mistake */

struct wire_frame {
	struct wire_frame *next;
	struct time at;			/* when the stack sent it */
	uint32_t len;
	uint8_t bytes[];
};

struct wire_queue {
	struct wire_frame *first;
	struct wire_frame **last;
	uint32_t count;
};

struct wire_dev {
	struct dev *dev;		/* NULL while no stack has it open */
	uint16_t queues;		/* asked for at open */
	struct wire_queue in[WIRE_DEV_QUEUES];	/* towards the stack */
	struct wire_queue out;		/* sent by the stack */
	uint32_t tx_room; /* frames that the device still takes; UINT32_MAX: any number */
	bool link_down;
	uint16_t vlan;		/* tag that the other end puts on its frames, 0: none */
	bool strips_vlan;	/* the device takes it off and tells it beside the packet */
	uint32_t rx_flags;	/* what the device says of each packet (enum pkt_flag) */
	uint16_t cuts[2];	/* bytes of a packet's first segments, 0: as many as fit */
	/* what the last large packet that the device is to cut says of itself (struct pkt) */
	struct {
		uint16_t l2_len, l3_len, l4_len, mss;
	} tso;
	/* Looks at each frame sent; true: it is dealt with and not kept. */
	bool (*on_tx)(void *arg, const uint8_t *frame, uint32_t len);
	void *on_tx_arg;
};

/*
 * Makes "wire:" known to the link layer; once a process, further calls do nothing. Fails the test
 * when refused.
 */
void wire_dev_register(void);

/* Wire n, emptied and with defaults. Call before the stack that opens it is made. */
struct wire_dev *wire_dev_reset(unsigned n);

/* The stack receives a copy of these bytes on the queue in its next round. */
void wire_dev_inject(struct wire_dev *w, unsigned queue, const void *frame, uint32_t len);

/* The oldest frame sent, taken off; NULL when there is none. The caller frees it with free(). */
struct wire_frame *wire_dev_take(struct wire_dev *w);

/* Forgets what was sent and what waits to be received. */
void wire_dev_clear(struct wire_dev *w);

#endif
