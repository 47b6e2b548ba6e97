/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text forms of addresses.
 *
 * IPv4 is written dotted, never as ::ffff:a.b.c.d, since that is how it is held, not what it is;
 * both spellings are read and give the same bytes. IPv6 follows RFC 5952 as the C library does.
 * Pure functions; any thread.
 */
#include <arpa/inet.h>
#include <errno.h>

#include "base/ipaddr.h"

const char *
ipaddr_format(const struct ipaddr *a, char *buf, unsigned size)
{
	const char *text;

	if (size == 0)
		return buf;
	if (ipaddr_is_v4(a))
		text = inet_ntop(AF_INET, &a->v4, buf, size);
	else
		text = inet_ntop(AF_INET6, a->b, buf, size);
	if (text == NULL)
		buf[0] = '\0';
	return buf;
}

int
ipaddr_parse(const char *text, struct ipaddr *ret_addr)
{
	struct ipaddr a;
	struct be32 v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		*ret_addr = ipaddr_v4(v4);
		return 0;
	}
	if (inet_pton(AF_INET6, text, a.b) == 1) {
		*ret_addr = a;
		return 0;
	}
	return -EINVAL;
}
