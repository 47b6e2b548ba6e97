/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Judges a segment against a connection, without side effects: accept, drop for a named reason, and
 * with what answer.
 *
 * The tests of RFC 9293 3.10.7.4 (first to fifth step) with RFC 5961's RST, SYN and ACK rules and
 * RFC 7323's PAWS. RST and SYN are looked at first, which changes no outcome: a RST is believed
 * only exactly at rcv_nxt, and a SYN draws a challenge ACK wherever it lies. Where we differ from
 * the letter:
 *
 * - A segment without data is acceptable also exactly at the right edge (table 6 says below it): a
 *   peer that has filled our window sends its ACKs from there, and they are needed.
 * - With a closed window a segment at rcv_nxt is let in; its data are cut off later but its ACK and
 *   window count, and so does a FIN without data (RFC 9293 3.10.7.4: "special allowance should be
 *   made to accept valid ACKs").
 * - An unacceptable segment without data (other than a keepalive probe) is answered like a
 *   challenge, that is at a limited rate, so that two confused ends cannot keep each other busy.
 * - A segment without timestamp on a connection that has agreed on them is judged as if nobody had
 *   (RFC 7323 3.2: SHOULD be dropped): some peers leave the option out of the last ACK of the
 *   handshake or of keepalive probes, and dropping those hangs or kills the connection. Linux does
 *   the same. Such a segment moves neither TS.Recent nor the round-trip time.
 */
#include "transport/tcp/tcp_priv.h"

static struct tcp_check
verdict(enum tcp_verdict v, enum counter why)
{
	return (struct tcp_check){ v, why };
}

static struct tcp_check
accepted(void)
{
	return verdict(TCP_ACCEPT, CTR_tcp_segs_rcvd);
}

bool
tcp_seq_acceptable(struct seq nxt, struct seq edge, const struct tcp_seg *s)
{
	struct seq last;

	/* a FIN may have been taken with the window shut: it then lies beyond the promised edge */
	edge = seq_max(edge, nxt);
	if (s->len == 0)
		return seq_geq(s->seq, nxt) && seq_leq(s->seq, edge);
	if (seq_eq(s->seq, nxt))
		return true;
	last = seq_add(s->seq, s->len - 1);
	/* the first or the last number inside, or the whole window covered */
	if (seq_geq(s->seq, nxt))
		return seq_lt(s->seq, edge) || (seq_eq(s->seq, edge) && s->data_bytes == 0);
	return seq_geq(last, nxt);
}

/* Second step; RFC 5961 3.2. */
static struct tcp_check
check_rst(const struct tcp_pcb *p, const struct tcp_seg *s)
{
	if (seq_eq(s->seq, p->rcv_nxt))
		return verdict(TCP_RESET, CTR_tcp_resets_rcvd);
	if (seq_gt(s->seq, p->rcv_nxt) && seq_lt(s->seq, p->rcv_adv))
		return verdict(TCP_DROP_CHALLENGE, CTR_drop_tcp_rst_bad);
	return verdict(TCP_DROP, CTR_drop_tcp_rst_bad);
}

/*
 * RFC 7323 5.3 R1; 5.5: a TS.Recent of 24 idle days proves nothing any more; 3.2: a missing option
 * is let pass.
 */
static struct tcp_check
check_ts(const struct tcp_pcb *p, const struct tcp_seg *s, struct time now)
{
	if (!(p->flags & TCPF_TS) || !s->opts.has_ts)
		return accepted();
	if ((int32_t)(s->opts.tsval - p->ts_recent) >= 0 ||
	    tcp_seconds(now) - p->ts_recent_s >= TCP_PAWS_IDLE_S)
		return accepted();
	return verdict(TCP_DROP_ACK, CTR_drop_tcp_paws);
}

/* First step. */
static struct tcp_check
check_seq(const struct tcp_pcb *p, const struct tcp_seg *s)
{
	if (tcp_seq_acceptable(p->rcv_nxt, p->rcv_adv, s))
		return accepted();
	if (s->len == 0) {
		/* RFC 9293 3.8.4: a keepalive probe is always answered */
		if (seq_eq(s->seq, seq_sub(p->rcv_nxt, 1)))
			return verdict(TCP_DROP_ACK, CTR_drop_tcp_dup);
		return verdict(TCP_DROP_CHALLENGE, CTR_drop_tcp_window);
	}
	if (seq_lt(s->seq, p->rcv_nxt))
		return verdict(TCP_DROP_ACK, CTR_drop_tcp_dup);
	return verdict(TCP_DROP_ACK, CTR_drop_tcp_window);
}

/* Fifth step; RFC 5961 5.2. */
static struct tcp_check
check_ack(const struct tcp_pcb *p, const struct tcp_seg *s)
{
	if (p->state == TCP_SYN_RCVD) {
		if (seq_gt(s->ack, p->snd_una) && seq_leq(s->ack, p->snd_max))
			return accepted();
		return verdict(TCP_DROP_RST, CTR_drop_tcp_ack_bad);
	}
	if (seq_gt(s->ack, p->snd_max) ||
	    seq_lt(s->ack, seq_sub(p->snd_una, p->max_snd_wnd_bytes)))
		return verdict(TCP_DROP_CHALLENGE, CTR_drop_tcp_ack_bad);
	return accepted();
}

struct tcp_check
tcp_check(const struct tcp_pcb *p, const struct tcp_seg *s, struct time now)
{
	struct tcp_check c;

	if (s->flags & TH_RST)
		return check_rst(p, s);
	/* fourth step; RFC 5961 4.2 */
	if (s->flags & TH_SYN)
		return verdict(TCP_DROP_CHALLENGE, CTR_drop_tcp_syn_in_window);
	c = check_ts(p, s, now);
	if (c.verdict != TCP_ACCEPT)
		return c;
	c = check_seq(p, s);
	if (c.verdict != TCP_ACCEPT)
		return c;
	if (!(s->flags & TH_ACK))
		return verdict(TCP_DROP, CTR_drop_tcp_flags);
	c = check_ack(p, s);
	if (c.verdict != TCP_ACCEPT)
		return c;
	/* RFC 9293 3.6.1, RFC 2525 2.17: nobody will ever read these bytes */
	if ((p->flags & TCPF_CLOSED) && s->data_bytes != 0 &&
	    seq_gt(seq_add(s->seq, s->data_bytes), p->rcv_nxt))
		return verdict(TCP_ABORT, CTR_drop_tcp_after_close);
	return c;
}

struct tcp_check
tcp_check_syn_sent(const struct tcp_pcb *p, const struct tcp_seg *s)
{
	bool ack_ok = seq_gt(s->ack, p->iss) && seq_leq(s->ack, p->snd_max);

	if ((s->flags & TH_ACK) && !ack_ok) {
		if (s->flags & TH_RST)
			return verdict(TCP_DROP, CTR_drop_tcp_rst_bad);
		return verdict(TCP_DROP_RST, CTR_drop_tcp_ack_bad);
	}
	if (s->flags & TH_RST) {
		if (s->flags & TH_ACK)
			return verdict(TCP_RESET, CTR_tcp_resets_rcvd);
		return verdict(TCP_DROP, CTR_drop_tcp_rst_bad);
	}
	if (!(s->flags & TH_SYN) || (s->flags & TH_FIN))
		return verdict(TCP_DROP, CTR_drop_tcp_flags);
	return accepted();
}

bool
tcp_is_plain(const struct tcp_pcb *p, const struct tcp_seg *s)
{
	if (p->state != TCP_ESTABLISHED || p->reass != NULL || (p->flags & TCPF_FIN_RCVD) != 0)
		return false;
	if ((s->flags & (TH_FIN | TH_SYN | TH_RST | TH_ACK | TH_URG)) != TH_ACK)
		return false;
	if (!seq_eq(s->seq, p->rcv_nxt) || seq_gt(seq_add(s->seq, s->len), p->rcv_adv))
		return false;
	if (seq_lt(s->ack, p->snd_una) || seq_gt(s->ack, p->snd_max))
		return false;
	if (!(p->flags & TCPF_TS))
		return true;
	return s->opts.has_ts && (int32_t)(s->opts.tsval - p->ts_recent) >= 0;
}
