/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What kq_sendcli and kq_recvserv say to each other, the same bytes as DragonFly's on a
 * little-endian host: the server's control port answers every connection with struct recv_info and
 * closes it; a data connection begins with struct conn_ack from the server, which shows that it is
 * accepted; then the client sends and the server discards.
 */
#ifndef NETRATE_SENDRECV_H
#define NETRATE_SENDRECV_H

#include <stdint.h>

#include "netrate.h"

enum { RECV_PORT = 11236, RECV_PORTS_MAX = 1024 };

struct conn_ack {
	uint16_t version;		/* 0 */
	uint16_t reserved[3];
	uint64_t dummy;
};

struct recv_info {
	uint16_t version;		/* 0 */
	uint16_t n_ports;
	uint32_t reserved;
	uint16_t ports[];		/* big-endian; the data ports */
};

/*
 * Connects and reads len bytes from a server that speaks first. Waits readto_ms for them, then
 * connects anew, ten times. The descriptor (its SO_RCVTIMEO stays set), or the end of the program.
 */
int sendrecv_connect(const struct sockaddr_in *to, unsigned readto_ms, void *words, size_t len);

/*
 * The data ports that the control port of each -4 names, as addresses; their number, at least 1.
 * The caller frees *ret_addrs.
 */
unsigned sendrecv_ask_ports(const struct netrate *nr, unsigned readto_ms,
    struct sockaddr_in **ret_addrs);

#endif
