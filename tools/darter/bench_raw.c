/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a link carries by itself: frames of 60 bytes of the EtherType for local experiments, one
 * way, no protocol above the driver. darter's links through darter_link_rate(); the kernel's veth
 * through packet sockets in batches, past its queueing discipline: the least that a program can do
 * there. The count is the receiver's, over the time from its first frame to its last.
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <darter/stats.h>

#include "bench.h"

#define BATCH		64
#define FRAME_BYTES	60	/* 64 with the frame check sequence */
#define RECEIVER_MORE_MS 30	/* it starts first and ends last */
#define RECEIVE_BYTES	(8 << 20)

static void
fail(struct bench_reply *ret, const char *what, int err)
{
	ret->failed = 1;
	snprintf(ret->why, sizeof(ret->why), "%s: %s", what, strerror(err));
}

static void
darter_raw(const struct bench_worker *w, unsigned ms, struct bench_reply *ret)
{
	struct darter_link_rate rate = { .ms = ms, .sends = w->role == BENCH_CLIENT };
	int rc = darter_link_rate(NULL, "link", &rate);

	if (rc < 0)
		fail(ret, "darter_link_rate", -rc);
	ret->ops = rate.pkts;
	ret->elapsed_ns = rate.elapsed_us * 1000;
}

/* This end's of the veth, or the loopback. */
static int
device_index(const struct bench_worker *w)
{
	unsigned i = if_nametoindex(w->role == BENCH_SERVER ? "bench1" : "bench0");

	return (int)(i != 0 ? i : if_nametoindex("lo"));
}

/* A packet socket on this end's device. */
static int
open_packet(const struct bench_worker *w)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET,
	    .sll_protocol = htons(BENCH_RAW_ETHERTYPE),
	    .sll_ifindex = device_index(w) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	int one = 1, bytes = RECEIVE_BYTES, err;

	if (fd < 0)
		return -errno;
	if (w->role == BENCH_CLIENT)	/* receives nothing */
		a.sll_protocol = 0;
	setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static void
kernel_raw(const struct bench_worker *w, unsigned ms, struct bench_reply *ret)
{
	static uint8_t frames[BATCH][FRAME_BYTES];
	struct iovec iov[BATCH];
	struct mmsghdr msgs[BATCH];
	uint64_t now = bench_now_ns(), end = now + (uint64_t)ms * 1000000, first = 0, last = 0;
	const struct ethhdr head = { .h_dest = { 255, 255, 255, 255, 255, 255 },
	    .h_source = { 2, 0, 0, 0, 0, 1 }, .h_proto = htons(BENCH_RAW_ETHERTYPE) };
	int fd = open_packet(w), i, n;

	if (fd < 0) {
		fail(ret, "packet socket", -fd);
		return;
	}
	memset(msgs, 0, sizeof(msgs));
	for (i = 0; i < BATCH; i++) {
		memcpy(frames[i], &head, sizeof(head));
		iov[i] = (struct iovec){ frames[i], FRAME_BYTES };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	for (; now < end; now = bench_now_ns()) {
		n = w->role == BENCH_CLIENT ? sendmmsg(fd, msgs, BATCH, MSG_DONTWAIT) :
		    recvmmsg(fd, msgs, BATCH, MSG_DONTWAIT, NULL);
		if (n <= 0)
			continue;
		first = first == 0 ? now : first;
		last = now;
		ret->ops += (uint64_t)n;
	}
	ret->elapsed_ns = last - first;
	close(fd);
}

void
bench_raw_slice(const struct bench_worker *w, const struct bench_cmd *cmd, struct bench_reply *ret)
{
	unsigned ms = cmd->slice_ms + (w->role == BENCH_SERVER ? RECEIVER_MORE_MS : 0);

	if (w->net == &net_darter)
		darter_raw(w, ms, ret);
	else
		kernel_raw(w, ms, ret);
}
