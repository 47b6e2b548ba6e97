/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options: one table. A row is a level, a name, how the value looks, its range, and where it lives:
 * a field of struct sock_opts (which the protocols read) or a pair of functions. What TCP must
 * answer from its own state goes to ulp->setopt and getopt, as does every IPPROTO_TCP name that the
 * table does not have. The functions of IPPROTO_IP are in ipopt.c.
 *
 * Buffers: as on Linux reading tells twice what was set, and the smallest values are those of
 * Linux. sock_opts holds what was set, in bytes of payload.
 */
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/time.h>

#include "runtime/knob.h"
#include "socket/sock.h"
#include "socket/sockopt.h"
#include "transport/ulp.h"

#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51	/* Linux 6.3; older headers do not have it */
#endif

#define SNDBUF_MIN	2304	/* reads as 4608 */
#define RCVBUF_MIN	1152	/* reads as 2304 */
#define MAXSEG_MIN	88
#define MAXSEG_MAX	32767
#define CORK_OPTION	1	/* in opts.cork, beside stream.c's bit */

enum opt_kind {
	OPT_BOOL8,
	OPT_U8,
	OPT_U16,
	OPT_U32,
	OPT_FUNC
};

struct opt {
	int level;
	int name;
	enum opt_kind kind;
	int min;		/* of the value that is set */
	int max;
	size_t off;		/* in struct sock_opts */
	bool is_cached;		/* the protocol keeps a copy: SOCK_OP_OPTION after a change */
	const char *dflt;	/* knob that stands for a field that is 0 */
	int (*set)(struct sock *so, const void *val, socklen_t len);
	int (*get)(struct sock *so, void *val, socklen_t *len);
};

/* ---- values ---- */

int
sockopt_read_int(const void *val, socklen_t len, int *ret)
{
	if (val == NULL)
		return -EFAULT;
	if (len < sizeof(*ret))
		return -EINVAL;
	memcpy(ret, val, sizeof(*ret));
	return 0;
}

int
sockopt_give(void *val, socklen_t *len, const void *src, size_t size)
{
	if (val == NULL)
		return -EFAULT;
	*len = (socklen_t)min_size(*len, size);
	memcpy(val, src, *len);
	return 0;
}

int
sockopt_give_int(void *val, socklen_t *len, int v)
{
	return sockopt_give(val, len, &v, sizeof(v));
}

/* ---- SOL_SOCKET ---- */

static int
set_sndbuf(struct sock *so, const void *val, socklen_t len)
{
	int64_t max = knob_get(&so->half.stack->sock->maxsockbuf);
	uint32_t bytes;
	int v, err = sockopt_read_int(val, len, &v);

	if (err < 0)
		return err;
	bytes = (uint32_t)min_u64((uint32_t)v, (uint64_t)max);
	bytes = max_u32(bytes, SNDBUF_MIN);
	atomic_store_explicit(&so->half.opts.sndbuf_bytes, bytes, memory_order_relaxed);
	if (so->type == SOCK_DGRAM)
		bytes = max_u32(bytes, DGRAM_RECORD_MAX_BYTES);
	atomic_store_explicit(&so->half.tx.cap_bytes, bytes, memory_order_relaxed);
	return 0;
}

static int
get_sndbuf(struct sock *so, void *val, socklen_t *len)
{
	return sockopt_give_int(val, len,
	    2 * (int)atomic_load_explicit(&so->half.opts.sndbuf_bytes, memory_order_relaxed));
}

static int
set_rcvbuf(struct sock *so, const void *val, socklen_t len)
{
	int64_t max = knob_get(&so->half.stack->sock->maxsockbuf);
	uint32_t bytes;
	int v, err = sockopt_read_int(val, len, &v);

	if (err < 0)
		return err;
	bytes = (uint32_t)min_u64((uint32_t)v, (uint64_t)max);
	/* TCP grows its ring up to here as it promises windows; what is promised already stays */
	atomic_store_explicit(&so->half.opts.rcvbuf_bytes, max_u32(bytes, RCVBUF_MIN),
	    memory_order_relaxed);
	return 0;
}

static int
get_rcvbuf(struct sock *so, void *val, socklen_t *len)
{
	return sockopt_give_int(val, len,
	    2 * (int)atomic_load_explicit(&so->half.opts.rcvbuf_bytes, memory_order_relaxed));
}

static int
set_timeo(_Atomic uint64_t *timeo, const void *val, socklen_t len)
{
	struct timeval tv;
	uint64_t us;

	if (val == NULL)
		return -EFAULT;
	if (len < sizeof(tv))
		return -EINVAL;
	memcpy(&tv, val, sizeof(tv));
	if (tv.tv_usec < 0 || tv.tv_usec >= (suseconds_t)US_PER_SEC)
		return -EDOM;
	if (tv.tv_sec < 0)
		us = 0;		/* Linux: does not wait at all */
	else if ((tv.tv_sec == 0 && tv.tv_usec == 0) || (uint64_t)tv.tv_sec > UINT32_MAX)
		us = SOCK_TIMEO_NONE;
	else
		us = (uint64_t)tv.tv_sec * US_PER_SEC + (uint64_t)tv.tv_usec;
	atomic_store_explicit(timeo, us, memory_order_relaxed);
	return 0;
}

static int
get_timeo(_Atomic uint64_t *timeo, void *val, socklen_t *len)
{
	uint64_t us = atomic_load_explicit(timeo, memory_order_relaxed);
	struct timeval tv = { 0 };

	if (us != SOCK_TIMEO_NONE) {
		tv.tv_sec = (time_t)(us / US_PER_SEC);
		tv.tv_usec = (suseconds_t)(us % US_PER_SEC);
	}
	return sockopt_give(val, len, &tv, sizeof(tv));
}

static int
set_rcvtimeo(struct sock *so, const void *val, socklen_t len)
{
	return set_timeo(&so->rcvtimeo_us, val, len);
}

static int
get_rcvtimeo(struct sock *so, void *val, socklen_t *len)
{
	return get_timeo(&so->rcvtimeo_us, val, len);
}

static int
set_sndtimeo(struct sock *so, const void *val, socklen_t len)
{
	return set_timeo(&so->sndtimeo_us, val, len);
}

static int
get_sndtimeo(struct sock *so, void *val, socklen_t *len)
{
	return get_timeo(&so->sndtimeo_us, val, len);
}

static int
set_linger(struct sock *so, const void *val, socklen_t len)
{
	struct linger l;

	if (val == NULL)
		return -EFAULT;
	if (len < sizeof(l))
		return -EINVAL;
	memcpy(&l, val, sizeof(l));
	atomic_store_explicit(&so->half.opts.linger_s, !l.l_onoff ? -1 : l.l_linger < 0 ? INT_MAX :
	    l.l_linger, memory_order_relaxed);
	return 0;
}

static int
get_linger(struct sock *so, void *val, socklen_t *len)
{
	int32_t s = atomic_load_explicit(&so->half.opts.linger_s, memory_order_relaxed);
	struct linger l = { .l_onoff = s >= 0, .l_linger = s >= 0 ? s : 0 };

	return sockopt_give(val, len, &l, sizeof(l));
}

static int
set_rcvlowat(struct sock *so, const void *val, socklen_t len)
{
	int v, err = sockopt_read_int(val, len, &v);

	if (err < 0)
		return err;
	atomic_store_explicit(&so->half.opts.rcvlowat_bytes,
	    v < 0 ? INT_MAX : max_u32((uint32_t)v, 1), memory_order_relaxed);
	return 0;
}

static int
set_priority(struct sock *so, const void *val, socklen_t len)
{
	int v, err = sockopt_read_int(val, len, &v);

	if (err == 0)
		atomic_store_explicit(&so->priority, (uint32_t)v, memory_order_relaxed);
	return err;
}

static int
get_priority(struct sock *so, void *val, socklen_t *len)
{
	return sockopt_give_int(val, len,
	    (int)atomic_load_explicit(&so->priority, memory_order_relaxed));
}

static int
set_incoming_cpu(struct sock *so, const void *val, socklen_t len)
{
	int v, err = sockopt_read_int(val, len, &v);

	if (err < 0)
		return err;
	if (v >= UINT16_MAX)
		return -EINVAL;
	atomic_store_explicit(&so->half.opts.incoming_cpu, v < 0 ? 0 : (uint16_t)(v + 1),
	    memory_order_relaxed);
	return 0;
}

/* A connection's: the CPU of its netisr. Else what was set. */
static int
get_incoming_cpu(struct sock *so, void *val, socklen_t *len)
{
	const struct netisr *owner = atomic_load_explicit(&so->half.owner, memory_order_acquire);
	int set = atomic_load_explicit(&so->half.opts.incoming_cpu, memory_order_relaxed);

	if (owner != NULL && !(sockhalf_state(&so->half) & SH_LISTENING))
		return sockopt_give_int(val, len, netisr_cpu(owner));
	return sockopt_give_int(val, len, set - 1);
}

static int
get_error(struct sock *so, void *val, socklen_t *len)
{
	return sockopt_give_int(val, len, -sock_take_error(so));
}

static int
get_type(struct sock *so, void *val, socklen_t *len)
{
	return sockopt_give_int(val, len, so->type);
}

static int
get_protocol(struct sock *so, void *val, socklen_t *len)
{
	return sockopt_give_int(val, len, so->half.proto);
}

static int
get_domain(struct sock *so, void *val, socklen_t *len)
{
	return sockopt_give_int(val, len, so->half.family);
}

static int
get_acceptconn(struct sock *so, void *val, socklen_t *len)
{
	return sockopt_give_int(val, len, (sockhalf_state(&so->half) & SH_LISTENING) != 0);
}

static int
get_sndlowat(struct sock *so, void *val, socklen_t *len)
{
	(void)so;
	return sockopt_give_int(val, len, 1);
}

/* ---- IPPROTO_TCP ---- */

static int
set_cork(struct sock *so, const void *val, socklen_t len)
{
	int v, err = sockopt_read_int(val, len, &v);

	if (err < 0)
		return err;
	if (v)
		atomic_fetch_or_explicit(&so->half.opts.cork, CORK_OPTION, memory_order_relaxed);
	else
		/* takes MSG_MORE's hint along: uncorking sends everything */
		atomic_store_explicit(&so->half.opts.cork, 0, memory_order_relaxed);
	return 0;
}

static int
get_cork(struct sock *so, void *val, socklen_t *len)
{
	return sockopt_give_int(val, len,
	    atomic_load_explicit(&so->half.opts.cork, memory_order_relaxed) & CORK_OPTION);
}

static int
set_maxseg(struct sock *so, const void *val, socklen_t len)
{
	int v, err = sockopt_read_int(val, len, &v);

	if (err < 0)
		return err;
	if (v != 0 && (v < MAXSEG_MIN || v > MAXSEG_MAX))
		return -EINVAL;
	atomic_store_explicit(&so->half.opts.maxseg, (uint16_t)v, memory_order_relaxed);
	return 0;
}

/* A connection's own segment size, else what was set. */
static int
get_maxseg(struct sock *so, void *val, socklen_t *len)
{
	size_t got = sizeof(int);
	int v = 0, err = -ENOPROTOOPT;

	if (so->half.ulp->getopt != NULL)
		err = so->half.ulp->getopt(&so->half, TCP_MAXSEG, &v, &got);
	if (err < 0)
		v = atomic_load_explicit(&so->half.opts.maxseg, memory_order_relaxed);
	return sockopt_give_int(val, len, v);
}

/* ---- the table ---- */

#define FIELD(f) .off = offsetof(struct sock_opts, f)

static const struct opt options[] = {
	{ SOL_SOCKET, SO_REUSEADDR, OPT_BOOL8, FIELD(reuseaddr) },
	{ SOL_SOCKET, SO_REUSEPORT, OPT_BOOL8, FIELD(reuseport) },
	{ SOL_SOCKET, SO_KEEPALIVE, OPT_BOOL8, FIELD(keepalive), .is_cached = true },
	{ SOL_SOCKET, SO_BROADCAST, OPT_BOOL8, FIELD(broadcast) },
	{ SOL_SOCKET, SO_DONTROUTE, OPT_BOOL8, FIELD(dontroute) },
	{ SOL_SOCKET, SO_OOBINLINE, OPT_BOOL8, FIELD(oobinline) },
	{ SOL_SOCKET, SO_LINGER, OPT_FUNC, .set = set_linger, .get = get_linger },
	{ SOL_SOCKET, SO_SNDBUF, OPT_FUNC, .set = set_sndbuf, .get = get_sndbuf,
	  .is_cached = true },
	{ SOL_SOCKET, SO_RCVBUF, OPT_FUNC, .set = set_rcvbuf, .get = get_rcvbuf,
	  .is_cached = true },
	{ SOL_SOCKET, SO_RCVTIMEO, OPT_FUNC, .set = set_rcvtimeo, .get = get_rcvtimeo },
	{ SOL_SOCKET, SO_SNDTIMEO, OPT_FUNC, .set = set_sndtimeo, .get = get_sndtimeo },
	{ SOL_SOCKET, SO_RCVLOWAT, OPT_U32, FIELD(rcvlowat_bytes), .set = set_rcvlowat },
	{ SOL_SOCKET, SO_SNDLOWAT, OPT_FUNC, .get = get_sndlowat },
	{ SOL_SOCKET, SO_PRIORITY, OPT_FUNC, .set = set_priority, .get = get_priority },
	{ SOL_SOCKET, SO_INCOMING_CPU, OPT_FUNC, .set = set_incoming_cpu,
	  .get = get_incoming_cpu },
	{ SOL_SOCKET, SO_ERROR, OPT_FUNC, .get = get_error },
	{ SOL_SOCKET, SO_TYPE, OPT_FUNC, .get = get_type },
	{ SOL_SOCKET, SO_PROTOCOL, OPT_FUNC, .get = get_protocol },
	{ SOL_SOCKET, SO_DOMAIN, OPT_FUNC, .get = get_domain },
	{ SOL_SOCKET, SO_ACCEPTCONN, OPT_FUNC, .get = get_acceptconn },
	{ IPPROTO_TCP, TCP_NODELAY, OPT_BOOL8, FIELD(nodelay), .is_cached = true },
	{ IPPROTO_TCP, TCP_CORK, OPT_FUNC, .set = set_cork, .get = get_cork, .is_cached = true },
	{ IPPROTO_TCP, TCP_MAXSEG, OPT_FUNC, .set = set_maxseg, .get = get_maxseg },
	{ IPPROTO_TCP, TCP_KEEPIDLE, OPT_U16, 1, 32767, FIELD(keepidle_s), .is_cached = true,
	  .dflt = "net.inet.tcp.keepidle_s" },
	{ IPPROTO_TCP, TCP_KEEPINTVL, OPT_U16, 1, 32767, FIELD(keepintvl_s), .is_cached = true,
	  .dflt = "net.inet.tcp.keepintvl_s" },
	{ IPPROTO_TCP, TCP_KEEPCNT, OPT_U16, 1, 127, FIELD(keepcnt), .is_cached = true,
	  .dflt = "net.inet.tcp.keepcnt" },
	{ IPPROTO_TCP, TCP_SYNCNT, OPT_U8, 1, 127, FIELD(syncnt),
	  .dflt = "net.inet.tcp.syn_retries" },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT, OPT_U32, 0, INT_MAX, FIELD(user_timeout_ms),
	  .is_cached = true },
	{ IPPROTO_TCP, TCP_QUICKACK, OPT_BOOL8, FIELD(quickack), .is_cached = true },
	{ IPPROTO_IP, IP_TTL, OPT_FUNC, .set = ipopt_set_ttl, .get = ipopt_get_ttl },
	{ IPPROTO_IP, IP_TOS, OPT_FUNC, .set = ipopt_set_tos, .get = ipopt_get_tos },
	{ IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, OPT_BOOL8, FIELD(bind_no_port) },
	{ IPPROTO_IP, IP_LOCAL_PORT_RANGE, OPT_U32, FIELD(port_range),
	  .set = ipopt_set_port_range },
};

static const struct opt *
find(const struct sock *so, int level, int name)
{
	size_t i;

	if (level == IPPROTO_TCP && so->half.proto != IPPROTO_TCP)
		return NULL;
	for (i = 0; i < ARRAY_LEN(options); i++) {
		if (options[i].level == level && options[i].name == name)
			return &options[i];
	}
	return NULL;
}

static void *
field(struct sock *so, const struct opt *o)
{
	return (uint8_t *)&so->half.opts + o->off;
}

static int
set_field(struct sock *so, const struct opt *o, const void *val, socklen_t len)
{
	int v, err = sockopt_read_int(val, len, &v);

	if (err < 0)
		return err;
	if (o->kind == OPT_BOOL8)
		v = v != 0;
	else if (v < o->min || v > o->max)
		return -EINVAL;
	switch (o->kind) {
	case OPT_U16:
		atomic_store_explicit((_Atomic uint16_t *)field(so, o), (uint16_t)v,
		    memory_order_relaxed);
		break;
	case OPT_U32:
		atomic_store_explicit((_Atomic uint32_t *)field(so, o), (uint32_t)v,
		    memory_order_relaxed);
		break;
	default:
		atomic_store_explicit((_Atomic uint8_t *)field(so, o), (uint8_t)v,
		    memory_order_relaxed);
		break;
	}
	return 0;
}

static int
load_field(struct sock *so, const struct opt *o)
{
	switch (o->kind) {
	case OPT_U16:
		return atomic_load_explicit((_Atomic uint16_t *)field(so, o), memory_order_relaxed);
	case OPT_U32:
		return (int)atomic_load_explicit((_Atomic uint32_t *)field(so, o),
		    memory_order_relaxed);
	default:
		return atomic_load_explicit((_Atomic uint8_t *)field(so, o), memory_order_relaxed);
	}
}

static int
get_field(struct sock *so, const struct opt *o, void *val, socklen_t *len)
{
	int v = load_field(so, o);
	const struct knob *k = v == 0 && o->dflt != NULL ? knob_find(so->half.stack, o->dflt) :
	    NULL;

	return sockopt_give_int(val, len, k != NULL ? (int)knob_get(k->value) : v);
}

int
sock_setopt(struct sock *so, int level, int name, const void *val, socklen_t len)
{
	const struct opt *o = find(so, level, name);
	int err;

	if (o == NULL) {
		if (level == IPPROTO_TCP && so->half.proto == IPPROTO_TCP &&
		    so->half.ulp->setopt != NULL)
			return so->half.ulp->setopt(&so->half, name, val, len);
		return -ENOPROTOOPT;
	}
	if (o->kind == OPT_FUNC && o->set == NULL)
		return -ENOPROTOOPT;	/* read only */
	err = o->set != NULL ? o->set(so, val, len) : set_field(so, o, val, len);
	if (err == 0 && o->is_cached &&
	    atomic_load_explicit(&so->half.owner, memory_order_acquire) != NULL)
		sockhalf_post(&so->half, SOCK_OP_OPTION);
	return err;
}

static int
getopt_of_protocol(struct sock *so, int name, void *val, socklen_t *len)
{
	size_t size = *len;
	int err = so->half.ulp->getopt(&so->half, name, val, &size);

	if (err == 0)
		*len = (socklen_t)size;
	return err;
}

int
sock_getopt(struct sock *so, int level, int name, void *val, socklen_t *len)
{
	const struct opt *o = find(so, level, name);

	if (len == NULL)
		return -EFAULT;
	if ((int)*len < 0)
		return -EINVAL;
	if (o == NULL) {
		if (level == IPPROTO_TCP && so->half.proto == IPPROTO_TCP &&
		    so->half.ulp->getopt != NULL)
			return getopt_of_protocol(so, name, val, len);
		/* an unknown level: Linux says so, and only when reading */
		return level == SOL_SOCKET || level == IPPROTO_IP ? -ENOPROTOOPT : -EOPNOTSUPP;
	}
	if (o->get != NULL)
		return o->get(so, val, len);
	return get_field(so, o, val, len);
}

/* ---- at birth ---- */

void
sock_opts_init(struct sock *so)
{
	struct sock_stack *ss = so->half.stack->sock;
	bool is_stream = so->half.proto == IPPROTO_TCP;
	struct sock_opts *o = &so->half.opts;

	memset(o, 0, sizeof(*o));
	atomic_init(&o->sndbuf_bytes,
	    (uint32_t)knob_get(is_stream ? &ss->tcp_sendspace : &ss->udp_sendspace));
	atomic_init(&o->rcvbuf_bytes,
	    (uint32_t)knob_get(is_stream ? &ss->tcp_recvspace : &ss->udp_recvspace));
	atomic_init(&o->rcvlowat_bytes, 1);
	atomic_init(&o->linger_s, -1);
	atomic_init(&so->rcvtimeo_us, SOCK_TIMEO_NONE);
	atomic_init(&so->sndtimeo_us, SOCK_TIMEO_NONE);
	atomic_init(&so->priority, 0);
}
