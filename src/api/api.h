/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the public interface share: from negative errno to errno, and the stack that
 * NULL stands for.
 */
#ifndef API_API_H
#define API_API_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "socket/call.h"

/* Result of a POSIX-shaped call that began with call_enter. */
static inline int64_t
api_return(int64_t rc)
{
	call_leave();
	if (rc >= 0)
		return rc;
	errno = (int)-rc;
	return -1;
}

/* … and of one that call_enter has refused. */
static inline int
api_refuse(int err)
{
	errno = -err;
	return -1;
}

static inline struct darter_stack *
api_stack(struct darter_stack *s)
{
	return s != NULL ? s : stacks_current();
}

/* stack_open.c: closes what is open at exit. */
void api_arm_exit(void);

#endif
