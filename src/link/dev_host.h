/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the host says about a DPDK device: is it there, whose is it, what to do when it cannot be
 * had. No rte_*.h here; start-up only, any thread.
 */
#ifndef LINK_DEV_HOST_H
#define LINK_DEV_HOST_H

#include <stdbool.h>
#include <stddef.h>

/* The value of ",key=value" in a device string, cut to size, in buf; NULL when it is not there. */
const char *dev_host_arg(const char *device, const char *key, char *buf, size_t size);

/*
 * Looks before the driver does, where drivers say too little: a missing or busy interface, a PCI
 * device that is bound to a kernel driver. 0, or a negative errno with "reason; fix" in err.
 * Passing is no promise.
 */
int dev_host_check(const char *device, char *err, size_t err_size);

/* What to do about a failure: rc of the driver, `why` its first message ("" if none). Static text.
 */
const char *dev_host_fix(const char *device, int rc, const char *why);

/* The errno that the failure deserves: drivers say "Operation not permitted" and return -EINVAL.
 * Negative. */
int dev_host_errno(int rc, const char *why);

/*
 * Switches off the signals of all queues of the tap interface `iface` in this process, and tells
 * which signal they used and what handles it (calling that with the signal's number does what a
 * signal would have done). 0; -ENOENT when no descriptor of that interface was found, -EINVAL when
 * its signal has no handler.
 */
int dev_host_quiet_tap(const char *iface, int *ret_signal, void (**ret_handler)(int));

/* True for an eventfd, as VFIO gives one a queue; uio has one descriptor for all, which is not. */
bool dev_host_is_eventfd(int fd);

#endif
