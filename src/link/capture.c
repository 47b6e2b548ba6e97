/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capture to pcap files through libpcap.
 *
 * Times are the stack's clock shifted by the wall clock's lead at the start, so intervals are the
 * stack's own and no clock is read a packet; with a fake clock the shift is 0 and files of equal
 * runs are equal. The pointer in struct dev is published: a capture that is stopped goes away after
 * a grace period.
 */
#include "link/capture.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "link/dev.h"
#include "runtime/netisr.h"
#include "runtime/pkt.h"
#include "runtime/publish.h"
#include "runtime/stack.h"

#define SNAP_BYTES	65535
#define FILTER_MARK	",filter="

struct capture {
	struct retired retired;
	pthread_mutex_t mutex;
	pcap_t *pcap;
	pcap_dumper_t *dumper;
	bool has_filter;
	struct bpf_program filter;
	uint64_t wall_lead_us;		/* wall clock minus stack clock at the start */
	uint64_t count;
	uint8_t snap[SNAP_BYTES];	/* packets of several segments are put together here */
};

static uint64_t
wall_lead_us(struct darter_stack *s)
{
	struct timespec ts;

	if (s->clock->is_fake)
		return 0;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * US_PER_SEC + (uint64_t)ts.tv_nsec / 1000 - stack_now(s).us;
}

static int
compile_filter(struct capture *c, const char *expr, char *err, size_t err_size)
{
	if (pcap_compile(c->pcap, &c->filter, expr, 1, PCAP_NETMASK_UNKNOWN) < 0) {
		snprintf(err, err_size, "capture filter \"%s\": %s", expr, pcap_geterr(c->pcap));
		return -EINVAL;
	}
	c->has_filter = true;
	return 0;
}

static int
open_file(struct capture *c, const char *path, bool has_ether, char *err, size_t err_size)
{
	int saved;

	c->pcap = pcap_open_dead_with_tstamp_precision(has_ether ? DLT_EN10MB : DLT_RAW, SNAP_BYTES,
	    PCAP_TSTAMP_PRECISION_NANO);
	if (c->pcap == NULL)
		return -ENOMEM;
	errno = 0;
	c->dumper = pcap_dump_open(c->pcap, path);
	if (c->dumper != NULL)
		return 0;
	saved = errno;
	snprintf(err, err_size, "capture: %s", pcap_geterr(c->pcap));
	return saved != 0 ? -saved : -EIO;
}

static struct capture *
capture_open(struct dev *d, const char *spec, int *ret_err, char *err, size_t err_size)
{
	struct capture *c = calloc(1, sizeof(*c));
	char *path = strdup(spec);
	char *expr = NULL;

	*ret_err = -ENOMEM;
	if (c == NULL || path == NULL) {
		snprintf(err, err_size, "capture: out of memory");
		free(path);
		free(c);
		return NULL;
	}
	expr = strstr(path, FILTER_MARK);
	if (expr != NULL) {
		*expr = '\0';
		expr += strlen(FILTER_MARK);
	}
	pthread_mutex_init(&c->mutex, NULL);
	c->wall_lead_us = wall_lead_us(d->stack);
	*ret_err = open_file(c, path, d->has_ether, err, err_size);
	if (*ret_err == 0 && expr != NULL)
		*ret_err = compile_filter(c, expr, err, err_size);
	free(path);
	if (*ret_err < 0) {
		capture_close(c);
		return NULL;
	}
	return c;
}

void
capture_close(struct capture *c)
{
	if (c == NULL)
		return;
	if (c->dumper != NULL)
		pcap_dump_close(c->dumper);	/* flushes */
	if (c->has_filter)
		pcap_freecode(&c->filter);
	if (c->pcap != NULL)
		pcap_close(c->pcap);
	pthread_mutex_destroy(&c->mutex);
	free(c);
}

int
capture_start(struct dev *d, const char *spec, char *err, size_t err_size)
{
	struct capture *c, *none = NULL;
	int r;

	c = capture_open(d, spec, &r, err, err_size);
	if (c == NULL)
		return r;
	if (!atomic_compare_exchange_strong(&d->capture, &none, c)) {
		snprintf(err, err_size, "capture: %s is being captured already", d->name);
		capture_close(c);
		return -EBUSY;
	}
	return 0;
}

static void
free_retired(struct darter_stack *s UNUSED, struct retired *r)
{
	capture_close(container_of(r, struct capture, retired));
}

int
capture_stop(struct dev *d)
{
	struct capture *c = atomic_exchange(&d->capture, NULL);

	if (c == NULL)
		return -ENOENT;
	control_lock(d->stack);
	publish_retire(d->stack, &c->retired, free_retired);
	control_unlock(d->stack);
	return 0;
}

void
capture_frame(struct capture *c, struct netisr *n, const struct pkt *p)
{
	uint64_t us = n->now.us + c->wall_lead_us;
	struct pcap_pkthdr h = {
		.ts = { .tv_sec = (time_t)(us / US_PER_SEC),
		    .tv_usec = (suseconds_t)(us % US_PER_SEC * 1000) },
		.len = p->total_len,
		.caplen = min_u32(p->total_len, SNAP_BYTES),
	};
	const uint8_t *bytes = p->data;

	pthread_mutex_lock(&c->mutex);
	if (p->seg != NULL) {
		h.caplen = pkt_copy_out(p, 0, c->snap, h.caplen);
		bytes = c->snap;
	}
	if (!c->has_filter || pcap_offline_filter(&c->filter, &h, bytes) != 0) {
		pcap_dump((u_char *)c->dumper, &h, bytes);
		if (ferror(pcap_dump_file(c->dumper)))
			NETISR_COUNT(n, CTR_capture_lost);
		else
			c->count++;
	}
	pthread_mutex_unlock(&c->mutex);
}

uint64_t
capture_count(struct capture *c)
{
	uint64_t count;

	pthread_mutex_lock(&c->mutex);
	count = c->count;
	pthread_mutex_unlock(&c->mutex);
	return count;
}
