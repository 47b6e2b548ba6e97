/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet capture: what passes a device, both directions, into a pcap file that tcpdump and
 * wireshark read. A debugging aid; it costs a lock a packet while it runs. It can also be switched
 * on from the start by the configuration key `capture` of a port.
 *
 * Sent packets are seen before the device's offloads, as on other hosts: large segments uncut,
 * checksums not yet filled in.
 */
#ifndef DARTER_CAPTURE_H
#define DARTER_CAPTURE_H

#include <stddef.h>

#include <darter/darter.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Starts capturing `port` (a [port.NAME] of the configuration, or "lo") into a file, which is
 * overwritten. spec is "PATH" or "PATH,filter=EXPRESSION" (pcap-filter(7)). s NULL: the current
 * stack.
 *
 * 0; -ENETDOWN no stack, -ENODEV no such port, -EBUSY it is being captured, -EINVAL the filter is
 * wrong, else why the file could not be made; with one line in err (may be NULL) in every case.
 */
DARTER_API int darter_capture_start(struct darter_stack *s, const char *port, const char *spec,
    char *err, size_t err_size);

/*
 * Stops and closes the file; complete at return. 0; -ENETDOWN, -ENODEV, -ENOENT when the port is
 * not being captured.
 */
DARTER_API int darter_capture_stop(struct darter_stack *s, const char *port);

#ifdef __cplusplus
}
#endif

#endif
