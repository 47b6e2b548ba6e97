/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options of IPPROTO_IP: the functions that the table in sockopt.c names. As on Linux a value is an
 * int or a single byte.
 */
#include <errno.h>
#include <string.h>

#include "socket/sock.h"
#include "socket/sockopt.h"

#define TTL_DEFAULT	64

/* IP options take a byte too. */
static int
read_byte_or_int(const void *val, socklen_t len, int *ret)
{
	if (val == NULL)
		return -EFAULT;
	if (len >= sizeof(*ret))
		return sockopt_read_int(val, len, ret);
	if (len < 1)
		return -EINVAL;
	*ret = *(const uint8_t *)val;
	return 0;
}

static int
give_byte_or_int(void *val, socklen_t *len, int v)
{
	uint8_t byte = (uint8_t)v;

	if (*len < sizeof(v) && *len > 0)
		return sockopt_give(val, len, &byte, 1);
	return sockopt_give_int(val, len, v);
}

int
ipopt_set_ttl(struct sock *so, const void *val, socklen_t len)
{
	int v, err = read_byte_or_int(val, len, &v);

	if (err < 0)
		return err;
	if (v != -1 && (v < 1 || v > 255))
		return -EINVAL;
	atomic_store_explicit(&so->half.opts.ttl, v == -1 ? 0 : (uint8_t)v, memory_order_relaxed);
	return 0;
}

int
ipopt_get_ttl(struct sock *so, void *val, socklen_t *len)
{
	int v = atomic_load_explicit(&so->half.opts.ttl, memory_order_relaxed);

	return give_byte_or_int(val, len, v == 0 ? TTL_DEFAULT : v);
}

int
ipopt_set_tos(struct sock *so, const void *val, socklen_t len)
{
	int v, err = read_byte_or_int(val, len, &v);

	if (err < 0)
		return err;
	/* the two ECN bits of a stream are the protocol's (RFC 3168 5) */
	if (so->type == SOCK_STREAM)
		v &= ~3;
	atomic_store_explicit(&so->half.opts.tos, (uint8_t)v, memory_order_relaxed);
	return 0;
}

int
ipopt_get_tos(struct sock *so, void *val, socklen_t *len)
{
	return give_byte_or_int(val, len,
	    atomic_load_explicit(&so->half.opts.tos, memory_order_relaxed));
}

/* first | last << 16, either of them 0: not narrowed on that side (Linux). */
int
ipopt_set_port_range(struct sock *so, const void *val, socklen_t len)
{
	uint32_t v, first, last;

	if (val == NULL)
		return -EFAULT;
	if (len != sizeof(v))
		return -EINVAL;
	memcpy(&v, val, sizeof(v));
	first = v & 0xffff;
	last = v >> 16;
	if (first != 0 && last != 0 && first > last)
		return -EINVAL;
	atomic_store_explicit(&so->half.opts.port_range, v, memory_order_relaxed);
	return 0;
}
