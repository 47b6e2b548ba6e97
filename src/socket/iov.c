/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of pieces (struct iovec), and the pause in the middle of a transfer. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "socket/sock.h"

int64_t
iov_bytes(const struct iovec *iov, size_t n_iov)
{
	size_t sum = 0, i;

	for (i = 0; i < n_iov; i++) {
		if (iov[i].iov_len > (size_t)SSIZE_MAX - sum)
			return -EINVAL;
		sum += iov[i].iov_len;
	}
	return (int64_t)sum;
}

void *
iov_next(struct iov_at *at, size_t max, size_t *ret_len)
{
	uint8_t *p;

	while (at->n_iov > 0 && at->off == at->iov->iov_len) {
		at->iov++;
		at->n_iov--;
		at->off = 0;
	}
	*ret_len = 0;
	if (at->n_iov == 0)
		return NULL;
	p = (uint8_t *)at->iov->iov_base + at->off;
	*ret_len = min_size(max, at->iov->iov_len - at->off);
	at->off += *ret_len;
	return p;
}

void
iov_scatter(const struct iovec *iov, size_t n_iov, const void *src, size_t len)
{
	struct iov_at at = { .iov = iov, .n_iov = n_iov };
	const uint8_t *p = src;

	while (len > 0) {
		size_t part;
		void *dst = iov_next(&at, len, &part);

		if (dst == NULL)
			return;
		memcpy(dst, p, part);
		p += part;
		len -= part;
	}
}

void
iov_gather(const struct iovec *iov, size_t n_iov, void *dst, size_t len)
{
	struct iov_at at = { .iov = iov, .n_iov = n_iov };
	uint8_t *p = dst;

	while (len > 0) {
		size_t part;
		const void *src = iov_next(&at, len, &part);

		if (src == NULL)
			return;
		memcpy(p, src, part);
		p += part;
		len -= part;
	}
}

int
sock_io_wait(struct sock *so, struct sock_io *io, uint32_t seen, const struct sock_patience *p)
{
	uint32_t bits = io->held;
	int err;

	if (p->is_nonblock)
		return -EAGAIN;
	sock_give(so, bits);
	io->held = 0;
	err = sock_wait(so, seen, p);
	if (err == 0) {
		err = sock_take(so, bits);
		if (err == 0)
			io->held = bits;
	}
	return err;
}
