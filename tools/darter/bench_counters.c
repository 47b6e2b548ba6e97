/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a worker's stack counts during a slice, and setting its knobs. A counter that the library
 * does not have stays UINT64_MAX and is not printed: nothing is made up.
 */
#include <stdio.h>
#include <string.h>

#include <darter/stats.h>

#include "bench.h"

static const char *const names[BENCH_CTRS] = {
	[BENCH_CTR_MSGS] = "msgs_socket",
	[BENCH_CTR_SLEEPS] = "sleeps",
	[BENCH_CTR_CALL_SLEEPS] = "call_sleeps",
	[BENCH_CTR_DOORBELLS] = "doorbells",
	[BENCH_CTR_ALLOCS] = "conn_allocs",
	[BENCH_CTR_PROBES] = "port_probes",
	[BENCH_CTR_SPILLS] = "port_spills",
	[BENCH_CTR_SEGS] = "tcp_segs_rcvd",
	[BENCH_CTR_ESTABLISHED] = "tcp_established",
	[BENCH_CTR_RETRANSMITS] = "tcp_retransmits",
	[BENCH_CTR_EVICTED] = "tcp_timewait_evicted",
};

int
bench_knobs_set(const char *list, char *why)
{
	char words[BENCH_KNOBS_MAX], *word, *save, *value;

	snprintf(words, sizeof(words), "%s", list);
	for (word = strtok_r(words, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
		value = strchr(word, '=');
		if (value == NULL)
			continue;
		*value++ = '\0';
		if (darter_sysctl_set(NULL, word, value, why, BENCH_WHY_MAX) < 0)
			return -1;
	}
	return 0;
}

void
bench_counters_read(uint64_t ret[BENCH_CTRS])
{
	struct darter_netisr_stats st;
	unsigned i;

	for (i = 0; i < BENCH_CTRS; i++)
		if (i == BENCH_CTR_FORWARDS || darter_counter_get(NULL, names[i], &ret[i]) < 0)
			ret[i] = UINT64_MAX;
	/* Counted by netisr. */
	for (i = 0; darter_netisr_stats(NULL, i, &st) == 0; i++)
		ret[BENCH_CTR_FORWARDS] = (i == 0 ? 0 : ret[BENCH_CTR_FORWARDS]) + st.forwards;
}

/* Of a slice: what it ends with less what it began with. */
static void
subtract(uint64_t *v, uint64_t before)
{
	if (*v != UINT64_MAX)
		*v -= before;
}

/* All kinds of messages. */
static uint64_t
read_msgs(void)
{
	uint64_t v = 0;

	darter_counter_get(NULL, "msgs", &v);
	return v;
}

static void
read_shares(uint64_t msgs[BENCH_NETISRS], uint64_t segs[BENCH_NETISRS])
{
	struct darter_netisr_stats st;
	unsigned i;

	for (i = 0; i < BENCH_NETISRS; i++) {
		msgs[i] = segs[i] = 0;
		if (darter_netisr_stats(NULL, i, &st) < 0)
			continue;
		msgs[i] = st.msgs_socket;
		segs[i] = st.segs_rcvd + st.segs_sent;
	}
}

void
bench_counters_begin(struct bench_reply *reply)
{
	bench_counters_read(reply->counters);
	reply->msgs = read_msgs();
	read_shares(reply->netisr_msgs, reply->netisr_segs);
}

void
bench_counters_end(struct bench_reply *reply)
{
	uint64_t now[BENCH_CTRS], msgs[BENCH_NETISRS], segs[BENCH_NETISRS];
	unsigned i;

	bench_counters_read(now);
	reply->msgs = read_msgs() - reply->msgs;
	darter_counter_get(NULL, "tcp_timewait", &reply->timewait);
	read_shares(msgs, segs);
	for (i = 0; i < BENCH_CTRS; i++) {
		subtract(&now[i], reply->counters[i]);
		reply->counters[i] = now[i];
	}
	for (i = 0; i < BENCH_NETISRS; i++) {
		reply->netisr_msgs[i] = msgs[i] - reply->netisr_msgs[i];
		reply->netisr_segs[i] = segs[i] - reply->netisr_segs[i];
	}
}
