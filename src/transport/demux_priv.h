/* SPDX-License-Identifier: BSD-2-Clause */
/* What demux.c and the port*.c share: the tables of binds, and what the choice of ports reads. */
#ifndef TRANSPORT_DEMUX_PRIV_H
#define TRANSPORT_DEMUX_PRIV_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "runtime/netisr.h"
#include "transport/demux.h"
#include "transport/port.h"

#define DEMUX_BUCKETS		8192	/* power of two */
#define DEMUX_MAX_ENTRIES	(1u << 20)
#define DEMUX_PROTOS		2	/* TCP, UDP */
#define PORT_MAP_WORDS		(65536 / 64)
#define PORT_ADDRS		8	/* local addresses told apart by bind; the last is shared */

struct port_netisr;
struct port_table;

/* Connections of one netisr on one local address and port, by what their sockets share. */
struct port_cell {
	_Atomic uint32_t conns[PORT_SHARES];
};

struct demux_stack {
	/* read by holders */
	struct bind_entry *_Atomic port_table[DEMUX_BUCKETS];	/* by (proto, port) */
	struct bind_entry *_Atomic conn_table[DEMUX_BUCKETS];	/* connected: by 4-tuple */
	_Atomic uint32_t n_connected;
	_Atomic uint64_t port_map[DEMUX_PROTOS][PORT_MAP_WORDS];	/* ports with an entry */

	/* control mutex */
	struct bind_entry *port_all[DEMUX_BUCKETS];
	uint32_t n_entries;

	/* port*.c: knobs */
	_Atomic int64_t range_first;
	_Atomic int64_t range_last;
	_Atomic int64_t reserved_first;
	_Atomic int64_t reserved_last;
	_Atomic int64_t algo;			/* enum port_algo */
	_Atomic int64_t hot_max;
	_Atomic int64_t hot_after_draws;
	/* read by holders */
	struct port_table *_Atomic table;
	_Atomic uint64_t unbinds;		/* grows when a bind goes away */
	_Atomic uint64_t addr_tag[PORT_ADDRS - 1];
	struct port_cell *cells[NETISR_MAX];	/* [PORT_ADDRS][65536], written by their netisr */
	struct port_netisr *ports;		/* one a netisr */
};

#endif
