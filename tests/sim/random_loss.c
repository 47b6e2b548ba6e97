/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thousand seeds of random networks and applications: every byte arrives in order, or an error is
 * reported; afterwards both stacks are empty. The number of seeds can be given as argument, and a
 * first seed to repeat one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/flow.h"
#include "support/cmocka_all.h"

#define FLOWS_MAX	4
#define MILD_LOSS	8	/* percent up to which nothing may fail */

static unsigned n_seeds = 1000;
static unsigned first_seed = 1;

/* Percent of frames that are lost or damaged. */
static unsigned
make_fault(struct rng *r, char *text, size_t size)
{
	static const unsigned losses[] = { 0, 0, 1, 3, 8, 15, 30 };
	unsigned loss = losses[rng_below(r, ARRAY_LEN(losses))];
	unsigned corrupt = rng_below(r, 2) ? rng_below(r, loss + 1) : 0;
	unsigned delay = rng_below(r, 4) ? rng_below(r, 40000) : 0;
	unsigned jitter = rng_below(r, 2) ? rng_below(r, 20000) : 0;

	snprintf(text, size, "drop=%.3f,corrupt=%.3f,dup=%.3f,reorder=%.3f,delay_us=%u-%u,fifo=%u",
	    (loss - corrupt) / 100.0, corrupt / 100.0, rng_below(r, 6) / 100.0,
	    rng_below(r, 16) / 100.0, delay, delay + jitter, rng_below(r, 2));
	return loss;
}

static void
make_plan(struct rng *r, struct flow_plan *p)
{
	static const int bufs[] = { 0, 2048, 4096, 8192, 16384, 65536 };

	*p = (struct flow_plan){
		.bytes = { rng_below(r, 4) ? rng_below(r, 60000) : 0,
		    rng_below(r, 3) ? rng_below(r, 30000) : 0 },
		.sndbuf = bufs[rng_below(r, ARRAY_LEN(bufs))],
		.rcvbuf = bufs[rng_below(r, ARRAY_LEN(bufs))],
		.pace_us = rng_below(r, 3) ? 1 + rng_below(r, 50000) : 0,
		.piece_max = 1 + rng_below(r, rng_below(r, 2) ? 20000 : 500),
		.nodelay = rng_below(r, 2),
		.half_close = rng_below(r, 2),
		.abort_at = { UINT64_MAX, UINT64_MAX },
	};
	if (p->pace_us == 0 || p->piece_max < 200)
		p->piece_max += 2000;
	if (rng_below(r, 12) == 0)
		p->abort_at[rng_below(r, 2)] = rng_below(r, 20000);
}

static void
make_opts(struct rng *r, struct sim_opts *o)
{
	static const unsigned mtus[] = { 1500, 1500, 576, 296, 1006 };
	unsigned n = 0;

	o->mtu = mtus[rng_below(r, ARRAY_LEN(mtus))];
	if (rng_below(r, 3) == 0)
		o->sysctls[n++] = "net.inet.tcp.sack=0";
	if (rng_below(r, 3) == 0)
		o->sysctls[n++] = "net.inet.tcp.timestamps=0";
	if (rng_below(r, 4) == 0)
		o->sysctls[n++] = "net.inet.tcp.window_scaling=0";
	o->netisrs = 1 + rng_below(r, 2);
}

static void
run_seed(unsigned seed)
{
	struct sim_opts o = { .seed = seed };
	struct flow f[FLOWS_MAX];
	struct flow_plan plan;
	struct rng r;
	struct sim m;
	char fault[200], what[300];
	unsigned i, n, loss;

	rng_init(&r, seed);
	loss = make_fault(&r, fault, sizeof(fault));
	o.fault = fault;
	make_opts(&r, &o);
	snprintf(what, sizeof(what), "seed %u (%s)", seed, fault);
	sim_init(&m, &o);
	n = 1 + rng_below(&r, FLOWS_MAX);
	for (i = 0; i < n; i++) {
		make_plan(&r, &plan);
		flow_start(&m, &f[i], &plan, (uint16_t)(7000 + i));
	}
	if (!flows_run(&m, f, n, 4 * 3600.0)) {
		flows_describe(&m, f, n);
		fail_msg("%s: not over after four hours of virtual time", what);
	}
	for (i = 0; i < n; i++)
		flow_check(&f[i], loss > MILD_LOSS, what);
	/* orphans, LAST-ACK and TIME-WAIT run out */
	sim_advance(&m, 3600 * US_PER_SEC);
	sim_expect_empty(&m);
	sim_fini(&m);
}

static void
every_byte_arrives_in_order_or_an_error_is_reported(void **state)
{
	unsigned seed;

	(void)state;
	for (seed = first_seed; seed < first_seed + n_seeds; seed++)
		run_seed(seed);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_arrives_in_order_or_an_error_is_reported),
	};

	if (argc > 1)
		n_seeds = (unsigned)atoi(argv[1]);
	if (argc > 2)
		first_seed = (unsigned)atoi(argv[2]);
	return cmocka_run_group_tests_name("sim random_loss", tests, NULL, NULL);
}
