/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The input of fuzz_input.c: a list of operations, each a byte (operation in the low four bits,
 * connection in the upper four) and its arguments, big-endian. What is cut short ends the list.
 * Scripts can be recorded in this form (support/record.c), which makes the seed corpus.
 */
#ifndef TEST_FUZZ_OPS_H
#define TEST_FUZZ_OPS_H

enum fuzz_op {
	/*
	 * A segment of the peer: u8 flags, i16 seq minus what the stack last acknowledged, i16 ack
	 * minus the end of what the stack has sent, u16 payload bytes, u16 window, u8 option bytes,
	 * options. Checksums are right.
	 */
	FUZZ_SEG,
	FUZZ_FRAME, /* u16 length, that many bytes: a frame as it is */
	FUZZ_IP,    /* u8 protocol, u16 length, bytes: behind a good IPv4 header */
	FUZZ_TIME,  /* u16: milliseconds pass */
	FUZZ_ACCEPT,
	FUZZ_WRITE, /* u16 bytes */
	FUZZ_READ,  /* u16 bytes */
	FUZZ_CLOSE,
	FUZZ_SHUTDOWN, /* u8 how, modulo 3 */
	FUZZ_CONNECT,
	FUZZ_OPTION,   /* u8 which, u16 value */
	FUZZ_UDP_SEND, /* u16 bytes */
	FUZZ_TX_ROOM,  /* u8: frames that the device takes from now on; 255: any number */
	FUZZ_ICMP, /* u8 type, u8 code, u16 mtu, i16 quoted seq minus the end of what was sent */
	FUZZ_UDP_READ,
	FUZZ_LINGER, /* SO_LINGER 0: the next close resets */
};

#define FUZZ_CONNS 16

/* What FUZZ_OPTION's first argument counts through: level and name. */
#define FUZZ_OPTIONS \
	{ SOL_SOCKET, SO_RCVBUF }, { SOL_SOCKET, SO_SNDBUF }, { SOL_SOCKET, SO_KEEPALIVE }, \
	{ SOL_SOCKET, SO_RCVLOWAT }, { IPPROTO_TCP, TCP_NODELAY }, { IPPROTO_TCP, TCP_CORK }, \
	{ IPPROTO_TCP, TCP_KEEPIDLE }, { IPPROTO_TCP, TCP_KEEPINTVL }, \
	{ IPPROTO_TCP, TCP_KEEPCNT }, { IPPROTO_TCP, TCP_USER_TIMEOUT }, \
	{ IPPROTO_TCP, TCP_QUICKACK }, { IPPROTO_TCP, TCP_MAXSEG }

#endif
