/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMP for IPv4 in (RFC 792, RFC 1122 3.2.2): echo requests are answered, errors are told to the
 * transport that they concern.
 *
 * An error is believed only as far as it can be checked here: it must quote a packet whose source
 * is an address of ours, not a later fragment, to a single host, of a protocol that is registered.
 * Whether it fits a live flow (ports, sequence number in flight) is the transport's to check, as
 * RFC 5927 4 advises; `is_soft` tells it what must never end a connection. Any host on the path may
 * send an error, so the sender's address proves nothing.
 *
 * Not acted upon, counted as drop_icmp_type: redirects (routes here are the operator's; RFC 1122
 * 3.2.2.2 would have us believe any neighbour), source quench (RFC 6633), replies, timestamps,
 * masks.
 */
#include <errno.h>

#include "base/bytes.h"
#include "base/csum.h"
#include "inet/inet_priv.h"
#include "link/offload.h"
#include "runtime/knob.h"
#include "wire/icmp4.h"

#define QUOTE_MIN_BYTES	8	/* of the transport header (RFC 792) */

static void
drop(struct netisr *n, struct pkt *p, enum counter reason)
{
	NETISR_COUNT(n, reason);
	pkt_free(n, p);
}

struct unreach_row {
	int err;
	bool is_soft;
};

/*
 * By code of "destination unreachable"; RFC 1122 4.2.3.9 (0, 1, 5 soft; 2, 3 hard), errnos as on
 * other systems.
 */
static const struct unreach_row unreach_rows[] = {
	[0] = { ENETUNREACH, true },
	[1] = { EHOSTUNREACH, true },
	[2] = { ENOPROTOOPT, false },
	[3] = { ECONNREFUSED, false },
	[4] = { EMSGSIZE, true },
	[5] = { EOPNOTSUPP, true },
	[6] = { ENETUNREACH, true },
	[7] = { EHOSTDOWN, true },
	[8] = { ENONET, true },
	[9] = { ENETUNREACH, true },
	[10] = { EHOSTUNREACH, true },
	[11] = { ENETUNREACH, true },
	[12] = { EHOSTUNREACH, true },
	[13] = { EHOSTUNREACH, true },
	[14] = { EHOSTUNREACH, true },
	[15] = { EHOSTUNREACH, true },
};

/*
 * MTUs of common links, for routers that don't tell theirs (RFC 1191 7.1): the next one below the
 * packet that was too long.
 */
static uint16_t
plateau_below(uint16_t bytes)
{
	static const uint16_t plateaus[] = { 32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296 };
	unsigned i;

	for (i = 0; i < ARRAY_LEN(plateaus); i++) {
		if (plateaus[i] < bytes)
			return plateaus[i];
	}
	return IP4_MIN_MTU_BYTES;
}

bool
icmp4_error_of(uint8_t type, uint8_t code, uint16_t next_mtu_bytes, uint16_t quoted_bytes,
    struct ip_error *ret)
{
	*ret = (struct ip_error){ .is_soft = true };
	switch (type) {
	case ICMP4_UNREACH:
		if (code >= ARRAY_LEN(unreach_rows))
			return false;
		ret->err = unreach_rows[code].err;
		ret->is_soft = unreach_rows[code].is_soft;
		if (code != ICMP4_UNREACH_NEEDFRAG)
			return true;
		ret->mtu = next_mtu_bytes != 0 ? next_mtu_bytes : plateau_below(quoted_bytes);
		/* a router that says less than the minimum, or not less than what was sent, lies */
		return ret->mtu >= IP4_MIN_MTU_BYTES && ret->mtu < quoted_bytes;
	case ICMP4_TIME_EXCEEDED:
		ret->err = EHOSTUNREACH;
		return code <= 1;
	case ICMP4_PARAM_PROBLEM:
		ret->err = EPROTO;
		return true;
	default:
		return false;
	}
}

void
icmp4_tell_transport(struct netisr *n, struct dev *d, const struct ip4_view *v,
    const struct ip_error *e)
{
	const struct ip_proto *ops = n->stack->inet->proto[v->proto];
	struct ip_meta meta = {
		.src = ipaddr_v4(v->src),
		.dst = ipaddr_v4(v->dst),
		.dev = d,
		.proto = v->proto,
		.ttl = v->ttl,
		.tos = v->tos,
		.ip_hlen = v->hdr_bytes,
	};

	if (ops != NULL && ops->error != NULL)
		ops->error(n, &meta, v->payload, v->payload_bytes, e);
}

/* Can the quoted packet be one that we have sent? */
static bool
is_credible_quote(struct netisr *n, const struct ip4_view *q)
{
	const struct ip_proto *ops = n->stack->inet->proto[q->proto];
	struct ipaddr src = ipaddr_v4(q->src), dst = ipaddr_v4(q->dst);

	return ip_is_own(n->stack, &src) && !ip4_is_multicast(be32_to_cpu(q->dst)) &&
	    !ip_is_broadcast(n->stack, &dst) && q->frag_offset_bytes == 0 &&
	    q->payload_bytes >= QUOTE_MIN_BYTES && ops != NULL && ops->error != NULL;
}

/* Takes p. */
static void
error_input(struct netisr *n, struct pkt *p, const struct ip_meta *meta, const struct icmp4_view *v)
{
	struct ip4_view q;
	struct ip_error e;

	if (meta->is_broadcast || ip4_parse_quote(v->data, v->data_bytes, &q) != WIRE_OK ||
	    !is_credible_quote(n, &q) || !icmp4_error_of(v->type, v->code, v->next_mtu_bytes,
	    q.total_bytes, &e)) {
		drop(n, p, CTR_drop_icmp_bad);
		return;
	}
	NETISR_COUNT(n, CTR_icmp_errors_rcvd);
	icmp4_tell_transport(n, meta->dev, &q, &e);
	pkt_free(n, p);
}

/* Takes p. */
static void
echo_input(struct netisr *n, struct pkt *p, const struct ip_meta *meta)
{
	if (meta->is_broadcast && !knob_get(&n->stack->inet->echo_broadcast)) {
		drop(n, p, CTR_drop_icmp_type);
		return;
	}
	icmp4_send_echo_reply(n, p, meta);
}

static bool
is_reported_error(uint8_t type)
{
	return type == ICMP4_UNREACH || type == ICMP4_TIME_EXCEEDED || type == ICMP4_PARAM_PROBLEM;
}

static void
icmp4_input(struct netisr *n, struct pkt *p, const struct ip_meta *meta)
{
	struct icmp4_view v;

	NETISR_COUNT(n, CTR_icmp_rcvd);
	/* the quote lies in the first segment, or it is not looked at */
	if (icmp4_parse(p->data, p->len, &v) != WIRE_OK) {
		drop(n, p, CTR_drop_icmp_short);
		return;
	}
	/* devices' verdicts are about TCP and UDP */
	if (!(p->flags & PKT_RX_LOOP) && csum_fold(offload_sum(p, 0, p->total_len, 0)) != 0) {
		drop(n, p, CTR_drop_icmp_csum);
		return;
	}
	if (v.type == ICMP4_ECHO && v.code == 0)
		echo_input(n, p, meta);
	else if (is_reported_error(v.type))
		error_input(n, p, meta, &v);
	else
		drop(n, p, CTR_drop_icmp_type);
}

const struct ip_proto icmp4_proto = {
	.input = icmp4_input,
};
