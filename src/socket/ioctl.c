/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ioctl(2) of sockets: how much may be read, how much is not yet acknowledged, non-blocking mode.
 * The answers are Linux's: a listener has neither bytes in nor out.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "socket/sock.h"
#include "transport/dgramq.h"

#ifndef SIOCOUTQ
#define SIOCOUTQ TIOCOUTQ
#endif

/* RX_BUSY is not held. */
static int
readable_bytes(struct sock *so)
{
	struct dgram_rec rec = { 0 };
	int err;

	if (so->type == SOCK_STREAM)
		return sockhalf_state(&so->half) & SH_LISTENING ? -EINVAL :
		    (int)ring_used_bytes(&so->half.rx);
	err = sock_take(so, USER_RX_BUSY);
	if (err < 0)
		return err;
	dgramq_get(&so->half, NULL, 0, true, &rec);
	sock_give(so, USER_RX_BUSY);
	return (int)rec.len_bytes;
}

int
sock_ioctl(struct sock *so, unsigned long request, void *arg)
{
	int v;

	if (request != FIONREAD && request != FIONBIO && request != SIOCOUTQ)
		return -ENOTTY;
	if (arg == NULL)
		return -EFAULT;
	switch (request) {
	case FIONREAD:
		v = readable_bytes(so);
		break;
	case SIOCOUTQ:
		v = sockhalf_state(&so->half) & SH_LISTENING ? -EINVAL :
		    (int)ring_used_bytes(&so->half.tx);
		break;
	default:
		memcpy(&v, arg, sizeof(v));
		atomic_store_explicit(&so->is_nonblock, v != 0, memory_order_relaxed);
		return 0;
	}
	if (v < 0)
		return v;
	memcpy(arg, &v, sizeof(v));
	return 0;
}
