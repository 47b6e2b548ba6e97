/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet capture into a pcap file: both directions of one device, nanosecond times from the stack's
 * clock. A debugging aid: a mutex serialises the netisrs.
 *
 * Sent packets are seen before offloads, as other stacks do: large segments uncut, untagged,
 * checksums not filled in.
 */
#ifndef LINK_CAPTURE_H
#define LINK_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

struct capture;
struct dev;
struct netisr;
struct pkt;

/*
 * Starts capturing d into a file: "PATH" or "PATH,filter=EXPRESSION" (pcap-filter(7)). Any thread
 * that is not inside the packet path; takes the control mutex. 0; -EBUSY when d is being captured,
 * -EINVAL for a bad filter, else why the file could not be made, with one line in err.
 */
int capture_start(struct dev *d, const char *spec, char *err, size_t err_size);

/*
 * Stops and closes the file once no netisr can be writing any more. -ENOENT when there is no
 * capture. Takes the control mutex.
 */
int capture_stop(struct dev *d);

/*
 * Records p (data at the link header, or at the network header on a device without one). Holder of
 * n.
 */
void capture_frame(struct capture *c, struct netisr *n, const struct pkt *p);

/* Frames recorded so far. Any thread. */
uint64_t capture_count(struct capture *c);

/* Flushes and frees at once: only when no netisr runs. NULL is fine. */
void capture_close(struct capture *c);

#endif
