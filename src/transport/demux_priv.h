/* SPDX-License-Identifier: BSD-2-Clause */
/* What demux.c and port.c share: the tables of binds and the knobs of the port ranges. */
#ifndef TRANSPORT_DEMUX_PRIV_H
#define TRANSPORT_DEMUX_PRIV_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "runtime/netisr.h"
#include "transport/demux.h"

#define DEMUX_BUCKETS		8192	/* power of two */
#define DEMUX_MAX_ENTRIES	(1u << 20)
#define DEMUX_PROTOS		2	/* TCP, UDP */
#define PORT_MAP_WORDS		(65536 / 64)
#define PORT_CURSORS		256	/* RFC 6056 3.3.4's table, power of two */

/* How far each destination's walk through the range has come. Holder of the netisr only. */
struct port_cursors {
	uint32_t next[PORT_CURSORS];
} CACHE_ALIGNED;

struct demux_stack {
	/* read by holders */
	struct bind_entry *_Atomic port_table[DEMUX_BUCKETS];	/* by (proto, port) */
	struct bind_entry *_Atomic conn_table[DEMUX_BUCKETS];	/* connected: by 4-tuple */
	_Atomic uint32_t n_connected;
	_Atomic uint64_t port_map[DEMUX_PROTOS][PORT_MAP_WORDS];	/* ports with an entry */

	/* control mutex */
	struct bind_entry *port_all[DEMUX_BUCKETS];
	uint32_t n_entries;

	/* port.c */
	_Atomic int64_t range_first;
	_Atomic int64_t range_last;
	_Atomic int64_t reserved_first;
	_Atomic int64_t reserved_last;
	struct port_cursors *cursors;		/* one a netisr */
};

#endif
