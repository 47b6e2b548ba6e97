/* SPDX-License-Identifier: BSD-2-Clause */
/* What a message to a netisr costs: some that do nothing, sent and answered as fast as it goes. */
#ifndef RUNTIME_MSGRATE_H
#define RUNTIME_MSGRATE_H

#include <stdint.h>

struct msg_node;
struct netisr;

#define MSGRATE_MAX		1000000
#define MSGRATE_BATCH_MAX	64
#define MSGRATE_PAUSE_MAX_US	100000

/*
 * Sends `count` messages to n, `batch` at a time, and waits for each batch; before each it pauses
 * for pause_us microseconds, which are not part of *ret_ns. Never borrows: n must be run by another
 * thread, and the caller holds no netisr.
 */
void msgrate_run(struct netisr *n, unsigned count, unsigned batch, unsigned pause_us,
    uint64_t *ret_ns);

/* Handler of MSG_RATE. */
void msgrate_on_message(struct netisr *n, struct msg_node *m);

#endif
