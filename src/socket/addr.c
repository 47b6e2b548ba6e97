/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket addresses of the application and endpoints of the stack. Only AF_INET passes: the layers
 * below speak IPv4 in this version.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "socket/sock.h"

int
sock_addr_in(const struct sockaddr *addr, socklen_t len, struct endpoint *ret)
{
	struct sockaddr_in in;

	if (addr == NULL || len < sizeof(addr->sa_family))
		return -EINVAL;
	/* an unaligned address is legal: copied before it is looked at */
	memset(&in, 0, sizeof(in));
	memcpy(&in, addr, min_size(len, sizeof(in)));
	if (in.sin_family != AF_INET)
		return -EAFNOSUPPORT;
	if (len < sizeof(in))
		return -EINVAL;
	memset(ret, 0, sizeof(*ret));
	ret->addr = ipaddr_v4((struct be32){ in.sin_addr.s_addr });
	ret->port = be16_to_cpu((struct be16){ in.sin_port });
	return 0;
}

void
sock_addr_out(int family, const struct endpoint *e, struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_in in;

	if (addr == NULL || len == NULL)
		return;
	memset(&in, 0, sizeof(in));
	in.sin_family = (sa_family_t)family;
	in.sin_port = be16_from_cpu(e->port).raw;
	if (ipaddr_is_v4(&e->addr))
		in.sin_addr.s_addr = e->addr.v4.raw;
	memcpy(addr, &in, min_size(*len, sizeof(in)));
	*len = sizeof(in);
}
