/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Applications of the simulator: a flow is one connection with an endpoint on each stack. Each
 * endpoint acts at random moments: writes a random piece of its stream, reads a random piece of the
 * other's and checks every byte, ends its side when all is written, closes when it has read the
 * end.
 */
#ifndef TEST_SIM_FLOW_H
#define TEST_SIM_FLOW_H

#include "sim/sim.h"

struct flow_end {
	int fd;			/* -1: not open (yet, or any more) */
	unsigned side;
	uint64_t to_send;
	uint64_t sent;
	uint64_t received;
	uint64_t abort_at; /* closes without further ado once this much has been received;
			      UINT64_MAX: never */
	struct time next_act;
	bool has_shut;
	bool has_eof;
	bool is_done;		/* closed */
	int error;		/* errno that ended it */
};

struct flow_plan {
	uint64_t bytes[2];	/* that each end sends */
	int sndbuf;		/* 0: default */
	int rcvbuf;
	uint64_t pace_us; /* an end acts again after 0 … this; 0: whenever something has changed */
	uint32_t piece_max;	/* largest read or write */
	bool nodelay;
	bool half_close; /* shutdown(SHUT_WR) after the last byte; else close() when both streams
			    have ended */
	uint64_t abort_at[2];
};

struct flow {
	struct flow_plan plan;
	struct flow_end end[2];	/* 0 connects from stack A, 1 is accepted on B */
	int lfd;
	uint16_t port;
	uint64_t key;		/* of the streams' bytes */
	uint64_t bad_bytes;
};

/*
 * Opens the listener on B and starts the connection. `port` differs between flows of one
 * simulation.
 */
void flow_start(struct sim *m, struct flow *f, const struct flow_plan *plan, uint16_t port);

/* Lets both ends act whose time has come. Returns true when anything was done. */
bool flow_act(struct sim *m, struct flow *f);

/* When an end acts next by itself. */
struct time flow_next(const struct flow *f);

static inline bool
flow_is_over(const struct flow *f)
{
	return f->end[0].is_done && f->end[1].is_done;
}

/* Runs flows until all are over, at most limit_s of virtual time; false when that passed. */
bool flows_run(struct sim *m, struct flow *f, unsigned count, double limit_s);

/* One line a connection, on stderr: how far the applications and both stacks are. */
void flows_describe(struct sim *m, const struct flow *f, unsigned count);

/*
 * What must hold afterwards: what was read is a prefix of what was sent, byte by byte; and unless
 * an end has an error, an abort or the other one's reset, all of it and then the end. may_fail:
 * errors are allowed. Fails the test, naming `what`.
 */
void flow_check(const struct flow *f, bool may_fail, const char *what);

#endif
