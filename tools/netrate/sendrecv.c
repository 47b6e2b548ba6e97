/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's half of how kq_sendcli and kq_recvserv begin. An established connection does not
 * mean that the server has accepted it, nor even that its host still knows it; so the client waits
 * for a word, and tries again when none comes.
 */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/time.h>

#include "sendrecv.h"

enum { RETRIES = 10 };

int
sendrecv_connect(const struct sockaddr_in *to, unsigned readto_ms, void *words, size_t len)
{
	struct timeval limit = { .tv_sec = readto_ms / 1000,
	    .tv_usec = (suseconds_t)(readto_ms % 1000) * 1000 };

	for (unsigned i = 0; i < RETRIES; i++) {
		int fd = net->socket(AF_INET, SOCK_STREAM, 0);
		ssize_t n;

		if (fd < 0)
			err(1, "socket failed");
		if (net->connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
			err(1, "connect failed");
		if (net->setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)
			err(1, "setsockopt(RCVTIMEO) failed");
		n = net->recv(fd, words, len, MSG_WAITALL);
		if (n == (ssize_t)len)
			return fd;
		if (n < 0 && errno != EAGAIN)
			err(1, "read from port %u failed", ntohs(to->sin_port));
		net->close(fd);
	}
	errx(1, "port %u says nothing: is it a kq_recvserv?", ntohs(to->sin_port));
}

unsigned
sendrecv_ask_ports(const struct netrate *nr, unsigned readto_ms, struct sockaddr_in **ret_addrs)
{
	struct sockaddr_in *addrs = calloc((size_t)nr->n_addrs * RECV_PORTS_MAX, sizeof(*addrs));
	unsigned n = 0;

	if (addrs == NULL)
		err(1, "calloc failed");
	for (unsigned i = 0; i < nr->n_addrs; i++) {
		struct recv_info head;
		uint16_t ports[RECV_PORTS_MAX];
		int fd = sendrecv_connect(&nr->addrs[i], readto_ms, &head, sizeof(head));
		size_t len = head.n_ports * sizeof(ports[0]);

		if (head.n_ports > RECV_PORTS_MAX ||
		    net->recv(fd, ports, len, MSG_WAITALL) != (ssize_t)len)
			errx(1, "read truncated ports");
		for (unsigned k = 0; k < head.n_ports; k++) {
			addrs[n] = nr->addrs[i];
			addrs[n++].sin_port = ports[k];
		}
		net->close(fd);
	}
	if (n == 0)
		errx(1, "no data ports");
	*ret_addrs = addrs;
	return n;
}
