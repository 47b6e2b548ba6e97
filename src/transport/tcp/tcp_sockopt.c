/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options of level IPPROTO_TCP: one table of where each lives in struct sock_opts and what it may
 * be; TCP_INFO and TCP_MAXSEG are read from the connection by a call to its owner. A change that
 * the protocol must act on is posted as SOCK_OP_OPTION.
 *
 * TCP_DEFER_ACCEPT, TCP_FASTOPEN, TCP_MD5SIG and others that are not here answer ENOPROTOOPT. Any
 * thread.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <string.h>

#include "transport/tcp/tcp_priv.h"

#define CC_NAME	"reno"

enum width {
	W8,
	W16,
	W32
};

struct option {
	int name;
	enum width width;
	size_t offset;		/* in struct sock_opts */
	int min;
	int max;
	bool is_flag;		/* any value but 0 counts as 1 */
};

#define OPTION(nm, field, w, lo, hi, flag) \
	{ nm, w, offsetof(struct sock_opts, field), lo, hi, flag }

/* Bounds as on Linux. */
static const struct option table[] = {
	OPTION(TCP_NODELAY, nodelay, W8, INT32_MIN, INT32_MAX, true),
	OPTION(TCP_CORK, cork, W8, INT32_MIN, INT32_MAX, true),
	OPTION(TCP_QUICKACK, quickack, W8, INT32_MIN, INT32_MAX, true),
	OPTION(TCP_MAXSEG, maxseg, W16, TCP_MSS_MIN, 32767, false),
	OPTION(TCP_KEEPIDLE, keepidle_s, W16, 1, 32767, false),
	OPTION(TCP_KEEPINTVL, keepintvl_s, W16, 1, 32767, false),
	OPTION(TCP_KEEPCNT, keepcnt, W16, 1, 127, false),
	OPTION(TCP_SYNCNT, syncnt, W8, 1, 127, false),
	OPTION(TCP_USER_TIMEOUT, user_timeout_ms, W32, 0, INT32_MAX, false),
};

static const struct option *
find_option(int name)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].name == name)
			return &table[i];
	return NULL;
}

static void
store_option(struct sock_opts *o, const struct option *opt, int value)
{
	void *at = (char *)o + opt->offset;

	switch (opt->width) {
	case W8:
		atomic_store_explicit((_Atomic uint8_t *)at, (uint8_t)value, memory_order_relaxed);
		break;
	case W16:
		atomic_store_explicit((_Atomic uint16_t *)at, (uint16_t)value,
		    memory_order_relaxed);
		break;
	case W32:
		atomic_store_explicit((_Atomic uint32_t *)at, (uint32_t)value,
		    memory_order_relaxed);
		break;
	}
}

static int
load_option(struct sock_opts *o, const struct option *opt)
{
	void *at = (char *)o + opt->offset;

	switch (opt->width) {
	case W8:
		return atomic_load_explicit((_Atomic uint8_t *)at, memory_order_relaxed);
	case W16:
		return atomic_load_explicit((_Atomic uint16_t *)at, memory_order_relaxed);
	case W32:
		return (int)atomic_load_explicit((_Atomic uint32_t *)at, memory_order_relaxed);
	}
	return 0;
}

static int
set_congestion(const void *val, size_t len)
{
	const char *name = val;
	size_t name_bytes = strnlen(name, len);

	/* with or without a terminator, as on Linux */
	if (name_bytes != strlen(CC_NAME) || memcmp(name, CC_NAME, name_bytes) != 0)
		return -ENOENT;
	return 0;
}

int
tcp_app_setopt(struct sockhalf *sh, int name, const void *val, size_t len)
{
	const struct option *opt = find_option(name);
	int value;

	if (name == TCP_CONGESTION)
		return set_congestion(val, len);
	if (opt == NULL)
		return -ENOPROTOOPT;
	if (len < sizeof(value))
		return -EINVAL;
	memcpy(&value, val, sizeof(value));
	if (opt->is_flag)
		value = value != 0;
	if (value < opt->min || value > opt->max)
		return -EINVAL;
	store_option(&sh->opts, opt, value);
	if (atomic_load_explicit(&sh->owner, memory_order_acquire) != NULL &&
	    !(sockhalf_state(sh) & SH_LISTENING))
		sockhalf_post(sh, SOCK_OP_OPTION);
	return 0;
}

/* ---- reading ---- */

struct info_call {
	struct sockhalf *sh;
	struct tcp_conn_info info;
	bool has_pcb;
	bool has_moved;
};

static void
read_info(struct netisr *n, void *arg)
{
	struct info_call *c = arg;

	/* a connect under way was sent on to another netisr */
	c->has_moved = atomic_load_explicit(&c->sh->owner, memory_order_acquire) != n;
	c->has_pcb = !c->has_moved && tcp_info_of(n, c->sh, &c->info);
}

static bool
ask_owner(struct sockhalf *sh, struct tcp_conn_info *ret)
{
	struct info_call c = { .sh = sh };
	struct netisr *owner;

	do {
		owner = atomic_load_explicit(&sh->owner, memory_order_acquire);
		if (owner == NULL)
			return false;
		netisr_call(owner, read_info, &c);
	} while (c.has_moved);
	*ret = c.info;
	return c.has_pcb;
}

/* Linux' numbers of the states. */
static uint8_t
linux_state(enum tcp_state st)
{
	static const uint8_t number[TCP_STATES] = {
		[TCP_ESTABLISHED] = 1, [TCP_SYN_SENT] = 2, [TCP_SYN_RCVD] = 3, [TCP_FIN_WAIT_1] = 4,
		[TCP_FIN_WAIT_2] = 5, [TCP_TIME_WAIT] = 6, [TCP_CLOSED] = 7, [TCP_CLOSE_WAIT] = 8,
		[TCP_LAST_ACK] = 9, [TCP_LISTEN] = 10, [TCP_CLOSING] = 11,
	};

	return number[st];
}

static void
fill_linux_info(struct sockhalf *sh, struct tcp_info *ret)
{
	struct tcp_conn_info i = { .state = TCP_CLOSED };

	memset(ret, 0, sizeof(*ret));
	if (sockhalf_state(sh) & SH_LISTENING)
		i.state = TCP_LISTEN;
	else
		ask_owner(sh, &i);
	ret->tcpi_state = linux_state(i.state);
	if (i.has_ts)
		ret->tcpi_options |= TCPI_OPT_TIMESTAMPS;
	if (i.has_sack)
		ret->tcpi_options |= TCPI_OPT_SACK;
	if (i.snd_wscale != 0 || i.rcv_wscale != 0)
		ret->tcpi_options |= TCPI_OPT_WSCALE;
	ret->tcpi_snd_wscale = (uint8_t)i.snd_wscale & 0xfu;
	ret->tcpi_rcv_wscale = (uint8_t)i.rcv_wscale & 0xfu;
	ret->tcpi_rto = i.rto_us;
	ret->tcpi_snd_mss = i.mss;
	ret->tcpi_rcv_mss = i.mss;
	ret->tcpi_advmss = i.mss;
	ret->tcpi_pmtu = i.mss + 40u;
	ret->tcpi_rtt = i.srtt_us;
	ret->tcpi_rttvar = i.rttvar_us;
	ret->tcpi_snd_cwnd = i.mss != 0 ? i.cwnd_bytes / i.mss : 0;
	ret->tcpi_snd_ssthresh = i.mss != 0 ? i.ssthresh_bytes / i.mss : 0;
	ret->tcpi_rcv_space = i.rcv_wnd_bytes;
	ret->tcpi_total_retrans = i.retransmits;
	ret->tcpi_notsent_bytes = i.tx_queued_bytes;
}

static int
copy_value(const void *src, size_t src_bytes, void *val, size_t *len)
{
	*len = min_size(*len, src_bytes);
	memcpy(val, src, *len);
	return 0;
}

static int
get_info(struct sockhalf *sh, void *val, size_t *len)
{
	struct tcp_info info;

	fill_linux_info(sh, &info);
	return copy_value(&info, sizeof(info), val, len);
}

/* The segment size in use, else what was asked for, else the default (as on Linux). */
static int
current_maxseg(struct sockhalf *sh, int asked)
{
	struct tcp_conn_info i;

	if (!(sockhalf_state(sh) & SH_LISTENING) && ask_owner(sh, &i))
		return i.mss;
	return asked != 0 ? asked : (int)TCP_MSS_UNASKED;
}

static int
value_or_knob(const struct sockhalf *sh, int name, int value)
{
	const struct tcp_stack *k = sh->stack->tcp;

	if (value != 0)
		return value;
	switch (name) {
	case TCP_KEEPIDLE:
		return (int)knob_get(&k->keepidle_s);
	case TCP_KEEPINTVL:
		return (int)knob_get(&k->keepintvl_s);
	case TCP_KEEPCNT:
		return (int)knob_get(&k->keepcnt);
	case TCP_SYNCNT:
		return (int)knob_get(&k->syn_retries);
	default:
		return 0;
	}
}

int
tcp_app_getopt(struct sockhalf *sh, int name, void *val, size_t *len)
{
	const struct option *opt = find_option(name);
	int value;

	if (name == TCP_INFO)
		return get_info(sh, val, len);
	if (name == TCP_CONGESTION)
		return copy_value(CC_NAME, sizeof(CC_NAME), val, len);
	if (opt == NULL)
		return -ENOPROTOOPT;
	value = value_or_knob(sh, name, load_option(&sh->opts, opt));
	if (name == TCP_MAXSEG)
		value = current_maxseg(sh, value);
	return copy_value(&value, sizeof(value), val, len);
}
