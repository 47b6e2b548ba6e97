/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The script language: what goes on the wire after what, in virtual time.
 *
 *	SCRIPT(third_duplicate_ack_retransmits_first_segment)
 *	{
 *		established(s, .mss = 1000);
 *		app_writes(s, 4000);
 *		stack_sends(s, DATA(1, 1001), DATA(1001, 2001), DATA(2001, 3001), DATA(3001, 4001));
 *		peer_sends(s, ACK(1), ACK(1), ACK(1));
 *		stack_sends(s, DATA(1, 1001));
 *	}
 *
 * Who acts is the first word: app_ calls the library, peer_ puts a segment on the wire, stack_ says
 * what must be found there. Whatever the stack sends and the script does not ask for fails it, at
 * the latest when it ends. Payload is a pattern by stream position and is always compared, as are
 * checksums and addresses. Virtual time moves only by advance_ms(), stack_silent_ms() and
 * .after_ms.
 *
 * Every script runs three times: on two netisrs, so that most connections are steered, and with
 * initial sequence numbers of both sides just below 2^32, and just below 2^31. The peer's is
 * chosen; the stack's own is hash + clock (RFC 6528), so the clock is moved to where the sum is
 * what we want (isn.c). After each script connections are reset and the stack must be empty: no
 * pcb, no packet, no chunk left.
 *
 * The scene: the stack D is 192.0.2.1, the peer P 192.0.2.2. Connection 0 is P:40000 to a listener
 * on D:80, or D:5000 to P:6000 when the application connects; use_conn(s, i) turns to others, whose
 * ports count up from there.
 */
#ifndef TEST_SUPPORT_SCRIPT_H
#define TEST_SUPPORT_SCRIPT_H

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "transport/tcp/tcp.h"
#include "support/cmocka_all.h"
#include "support/seg.h"
#include "support/teststack.h"

#ifndef POLLRDHUP
#define POLLRDHUP 0x2000	/* <poll.h> shows it to _GNU_SOURCE only */
#endif

#define SCRIPT_CONNS		64
#define SCRIPT_LISTEN_PORT	80
#define SCRIPT_PEER_PORT	40000
#define SCRIPT_ACTIVE_LPORT	5000
#define SCRIPT_ACTIVE_FPORT	6000
#define SCRIPT_ISN_BELOW	100	/* both ISNs are this far below the wrap */

/* Option numbers of IPPROTO_TCP: <netinet/tcp.h> can't be had together with the stack's names. */
#define TCP_NODELAY		1
#define TCP_MAXSEG		2
#define TCP_CORK		3
#define TCP_KEEPIDLE		4
#define TCP_KEEPINTVL		5
#define TCP_KEEPCNT		6
#define TCP_SYNCNT		7
#define TCP_DEFER_ACCEPT	9
#define TCP_QUICKACK		12
#define TCP_USER_TIMEOUT	18

/* One connection as the harness sees it. */
struct conn {
	int fd;			/* the application's, -1: none */
	uint32_t faddr;
	uint16_t fport;
	uint16_t lport;
	uint32_t iss;		/* the stack's ISN */
	bool iss_known;
	uint32_t irs;		/* the peer's ISN */
	/* the peer's state; numbers relative */
	int64_t snd_nxt;
	int64_t rcv_nxt;
	int64_t wnd;		/* field it sends */
	int64_t mss;		/* options that it offers on its SYN; SEG_NONE: not */
	int64_t wscale;
	bool sack_ok;
	bool ts;		/* sends timestamps */
	uint32_t ts_val;	/* at time 0 of the stack; one a millisecond */
	uint32_t ts_recent;	/* last TSval seen from the stack */
	int64_t stack_wscale;	/* of the stack's SYN; SEG_NONE: not offered */
	int64_t stack_ack;	/* what the stack last acknowledged, relative to irs */
	int64_t stack_max;	/* end of what it has sent, relative to iss */
	int64_t
	    stack_edge; /* right edge of the window that the stack has promised, relative to irs */
	/* the application's positions */
	int64_t app_wr;
	int64_t app_rd;
};

/* Where in a script something was said. */
struct place {
	const char *file;
	int line;
};

#define HERE ((struct place){ __FILE__, __LINE__ })

struct script {
	const char *name;
	const char *variant;
	uint32_t isn_base;	/* target of the stack's ISN and the peer's */
	struct teststack_opts opts;
	struct teststack ts;
	struct conn conns[SCRIPT_CONNS];
	struct conn *c;
	int lfd;		/* listener, -1: none */
	int ufd;		/* UDP socket, -1: none */
	int dup_fd;		/* second descriptor of a connection's socket, -1: none */
	bool isn_aimed;
	uint64_t mark_us;	/* last thing that happened, for .after_ms */
	struct place place;	/* being worked on */
};

/*
 * How established() sets a connection up. Zero means the default of the cases: MSS 1460, window
 * 65535, no options.
 */
struct script_setup {
	int64_t mss;		/* the peer's; 0: 1460 */
	int64_t wnd;		/* the peer's, after the handshake; 0: 65535 */
	int wscale;		/* 0: not offered; n: offers n; -1: offers 0 */
	bool sack;
	bool ts;
	bool active;		/* D:5000 connects to P:6000 */
	int rtt_ms;		/* virtual time between SYN and its answer */
	unsigned cwnd_segs;	/* initial window that the script needs at least */
	int rcvbuf;		/* as for SO_RCVBUF, before the handshake */
	int sndbuf;
	bool nodelay;
};

/* ---- definition ---- */

typedef void script_fn(struct script *s);

void script_register(const char *name, const struct teststack_opts *opts, script_fn *fn);

/* A script on a stack with options: SCRIPT_ON(name, .netisrs = 2) { … } */
#define SCRIPT_ON(name, ...) \
	static void name(struct script *s); \
	static void __attribute__((constructor)) \
	name##_register(void) \
	{ \
		static const struct teststack_opts opts = { __VA_ARGS__ }; \
		script_register(#name, &opts, name); \
	} \
	static void \
	name(struct script *s)

/* On one netisr and on two; SCRIPT_ON with .netisrs set stays on that number. */
#define SCRIPT(name) SCRIPT_ON(name, .netisrs = 0)

/* Fails the script at s->place, telling the virtual time. */
void script_fail(struct script *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* ---- the peer and the wire (script_net.c) ---- */

void script_peer_sends(struct script *s, struct place at, const struct seg *g, size_t count);
void script_stack_sends(struct script *s, struct place at, const struct seg *g, size_t count);
void script_stack_silent(struct script *s, struct place at, int64_t ms);
void script_advance_ms(struct script *s, struct place at, int64_t ms);
unsigned script_stack_sends_any(struct script *s, struct place at);

/* Segments of P, in one receive burst. */
#define peer_sends(s, ...) \
	script_peer_sends(s, HERE, (const struct seg[]){ __VA_ARGS__ }, \
	    sizeof((const struct seg[]){ __VA_ARGS__ }) / sizeof(struct seg))
/* These and nothing before them, in this order. More may follow: the next stack_ word sees it. */
#define stack_sends(s, ...) \
	script_stack_sends(s, HERE, (const struct seg[]){ __VA_ARGS__ }, \
	    sizeof((const struct seg[]){ __VA_ARGS__ }) / sizeof(struct seg))
#define stack_silent(s)		script_stack_silent(s, HERE, 0)
#define stack_silent_ms(s, ms)	script_stack_silent(s, HERE, ms)
#define advance_ms(s, ms)	script_advance_ms(s, HERE, ms)
/* The stack acknowledges up to n, at once or within 200 ms. */
#define stack_acks(s, n)	stack_sends(s, ACK(n, .after_ms = 100, .tol_ms = 100))
/*
 * Takes whatever the stack has sent (where it is not the point), learning acknowledgments; returns
 * how many frames.
 */
#define stack_sends_anything(s)	script_stack_sends_any(s, HERE)

/* Builds the frame of a peer's segment for the current connection; returns its length. */
uint32_t script_build(struct script *s, const struct seg *g, uint8_t *frame, size_t size);
/*
 * The next segment that the stack sends within wait_ms, whatever it is; fails when there is none.
 */
struct seg script_take(struct script *s, int64_t wait_ms);
/* Puts raw bytes on the wire as a frame. */
void peer_sends_raw(struct script *s, const void *frame, uint32_t len);
/* Takes the next frame sent, NULL when there is none. Free with free(). */
struct wire_frame *stack_sent_frame(struct script *s);

/* Pattern byte of a stream position; direction 0: from the peer, 1: from the application. */
uint8_t script_pattern(unsigned direction, int64_t pos);

/* ---- ICMP, UDP, ARP (script_dgram.c) ---- */

struct icmp_quote {
	int type;
	int code;
	int mtu;
	int64_t seq;		/* of the quoted TCP segment, relative to the stack's ISN */
	int64_t quote_bytes;	/* of the quoted transport header and data; 0: 8 */
	bool bad_csum;
	int64_t inner_src;	/* 0: the stack */
	int proto;		/* quoted protocol, 0: TCP */
	uint16_t lport, fport;	/* 0: the connection's */
	int64_t from;		/* who sends it, 0: a router that is P */
};

struct udp_spec {
	uint16_t sport;
	uint16_t dport;
	int64_t len;		/* payload */
	int64_t udp_len;	/* length field that lies; 0: right */
	int64_t ip_len;		/* IP payload bytes; 0: as the payload needs */
	int csum;		/* 0: right; 1: wrong; 2: none (0) */
	int64_t src;		/* 0: P */
	int64_t dst;		/* 0: D */
	bool dst_mac_broadcast;
};

struct arp_spec {
	int op;			/* ARP_OP_ */
	int64_t sender_ip;	/* 0: P */
	int64_t target_ip;	/* 0: D */
	int sender_host;	/* last byte of the MAC, 0: P's */
	int hw_kind;		/* 0: Ethernet */
	int cut_bytes;		/* ARP packet bytes, 0: all */
};

void script_peer_icmp(struct script *s, struct place at, const struct icmp_quote *q);
void script_peer_udp(struct script *s, struct place at, const struct udp_spec *u);
void script_peer_arp(struct script *s, struct place at, const struct arp_spec *a);
void script_peer_echo(
    struct script *s, struct place at, uint16_t id, uint16_t seq, uint32_t len, bool bad_csum);
void script_stack_udp(struct script *s, struct place at, const struct udp_spec *u);
void script_stack_icmp(struct script *s, struct place at, int type, int code);
void script_stack_arp(struct script *s, struct place at, const struct arp_spec *a);

#define peer_sends_icmp(s, ...)	script_peer_icmp(s, HERE, &(struct icmp_quote){ __VA_ARGS__ })
#define peer_sends_udp(s, ...)	script_peer_udp(s, HERE, &(struct udp_spec){ __VA_ARGS__ })
#define peer_sends_arp(s, ...)	script_peer_arp(s, HERE, &(struct arp_spec){ __VA_ARGS__ })
#define peer_sends_echo(s, id, seq, len) script_peer_echo(s, HERE, id, seq, len, false)
#define stack_sends_udp(s, ...)	script_stack_udp(s, HERE, &(struct udp_spec){ __VA_ARGS__ })
#define stack_sends_icmp(s, type, code)	script_stack_icmp(s, HERE, type, code)
#define stack_sends_arp(s, ...)	script_stack_arp(s, HERE, &(struct arp_spec){ __VA_ARGS__ })

/* ---- the application (script_app.c) ---- */

void script_app_listens(struct script *s, struct place at, int backlog, int rcvbuf);
void script_app_accepts(struct script *s, struct place at, int want_errno);
void script_app_connects(struct script *s, struct place at, uint32_t addr, int want_errno);
void script_app_writes(struct script *s, struct place at, int64_t bytes, int flags);
void script_app_write_fails(struct script *s, struct place at, int want_errno);
void script_app_reads(struct script *s, struct place at, int64_t bytes);
void script_app_reads_eof(struct script *s, struct place at);
void script_app_read_fails(struct script *s, struct place at, int want_errno);
void script_app_closes(struct script *s, struct place at);
void script_app_closes_listener(struct script *s, struct place at);
void script_app_shutdown(struct script *s, struct place at, int how, int want_errno);
void script_app_sets(
    struct script *s, struct place at, int level, int name, const void *val, socklen_t len);
void script_app_so_error(struct script *s, struct place at, int want);
void script_app_polls(struct script *s, struct place at, int want_events);
/*
 * A second descriptor of the current connection's socket; later the one that the script goes on
 * with.
 */
void script_app_dups(struct script *s, struct place at);
void script_app_takes_dup(struct script *s, struct place at);
/* Bytes written and not yet acknowledged (SIOCOUTQ). */
int script_queued_out(struct script *s);

#define app_listens(s)			script_app_listens(s, HERE, 128, 0)
#define app_listens_backlog(s, n)	script_app_listens(s, HERE, n, 0)
#define app_accepts(s)			script_app_accepts(s, HERE, 0)
#define app_accept_fails(s, e)		script_app_accepts(s, HERE, e)
/* Non-blocking connect from D:5000 to P:6000, under way afterwards. */
#define app_connects(s)			script_app_connects(s, HERE, TEST_PEER_IP, EINPROGRESS)
/* Connects (again), expecting this errno; 0: success. */
#define app_connect_gives(s, e)		script_app_connects(s, HERE, TEST_PEER_IP, e)
#define app_connects_to(s, addr, e)	script_app_connects(s, HERE, addr, e)
#define app_writes(s, n)		script_app_writes(s, HERE, n, 0)
#define app_writes_more(s, n)		script_app_writes(s, HERE, n, MSG_MORE)
#define app_write_fails(s, e)		script_app_write_fails(s, HERE, e)
/* Exactly n bytes are there to be read, with the right content; more may remain. */
#define app_reads(s, n)			script_app_reads(s, HERE, n)
#define app_reads_eof(s)		script_app_reads_eof(s, HERE)
#define app_read_fails(s, e)		script_app_read_fails(s, HERE, e)
/* Nothing to read and no end of file. */
#define app_reads_nothing(s)		script_app_read_fails(s, HERE, EAGAIN)
#define app_closes(s)			script_app_closes(s, HERE)
#define app_closes_listener(s)		script_app_closes_listener(s, HERE)
#define app_shutdown(s, how)		script_app_shutdown(s, HERE, how, 0)
#define app_shutdown_fails(s, how, e)	script_app_shutdown(s, HERE, how, e)
#define app_sets_int(s, level, name, v) \
	script_app_sets(s, HERE, level, name, &(int){ v }, sizeof(int))
#define app_sets_linger(s, secs) \
	script_app_sets( \
	    s, HERE, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, secs }, sizeof(struct linger))
#define app_so_error_is(s, e)		script_app_so_error(s, HERE, e)
/* poll() with timeout 0 for POLLIN | POLLOUT | POLLRDHUP gives these. */
#define app_polls(s, events)		script_app_polls(s, HERE, events)

void script_app_udp_bind(struct script *s, struct place at, uint16_t port);
void script_app_udp_connect(
    struct script *s, struct place at, uint32_t addr, uint16_t port, int want_errno);
void script_app_udp_sends(
    struct script *s, struct place at, uint32_t addr, uint16_t port, int64_t len, int want_errno);
void script_app_udp_reads(struct script *s, struct place at, int64_t want_len);
void script_app_udp_read_fails(struct script *s, struct place at, int want_errno);
void script_app_udp_rcvbuf(struct script *s, struct place at, int bytes);

#define app_udp_binds(s, port)		script_app_udp_bind(s, HERE, port)
#define app_udp_connects(s, addr, port)	script_app_udp_connect(s, HERE, addr, port, 0)
/* To the connected peer when addr is 0. */
#define app_udp_sends(s, addr, port, len) script_app_udp_sends(s, HERE, addr, port, len, 0)
#define app_udp_send_fails(s, addr, port, len, e) script_app_udp_sends(s, HERE, addr, port, len, e)
#define app_udp_reads(s, len)		script_app_udp_reads(s, HERE, len)
#define app_udp_read_fails(s, e)	script_app_udp_read_fails(s, HERE, e)

/* ---- the scene (script.c) ---- */

void script_established(struct script *s, struct place at, const struct script_setup *o);
void script_state(struct script *s, struct place at, enum tcp_state want);
void script_use_conn(struct script *s, unsigned i);
uint64_t script_counter(struct script *s, const char *name);
void script_counts(struct script *s, struct place at, const char *name, uint64_t want);
bool script_conn_info(struct script *s, struct tcp_conn_info *ret_info);
void script_sysctl(struct script *s, struct place at, const char *name, const char *value);

#define established(s, ...)	script_established(s, HERE, &(struct script_setup){ __VA_ARGS__ })
/* TCP_CLOSED: the stack knows no such connection. */
#define state_is(s, st)		script_state(s, HERE, st)
#define use_conn(s, i)		script_use_conn(s, i)
/* The named counter has grown to exactly this since the stack was made. */
#define counter_is(s, name, v)	script_counts(s, HERE, name, v)
#define sysctl_set(s, name, v)	script_sysctl(s, HERE, name, v)

/*
 * Moves the clock so that the next SYN or SYN-ACK of connection 0 has the ISN s->isn_base (isn.c).
 */
void script_aim_isn(struct script *s, bool active);

/* app_ helpers that isn.c uses on a stack of its own. */
int script_socket(struct teststack *ts, int type);
int script_listen_on(struct teststack *ts, uint16_t port);
int script_connect_on(struct teststack *ts, int fd, uint16_t lport, uint32_t addr, uint16_t fport);
void script_close_fd(struct teststack *ts, int fd);

#endif
