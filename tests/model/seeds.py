#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Seeded bugs: copies of source files with known mistakes that the models must find.

A model's test program is built twice from the same text: against src/, where every run must be
good, and against the copies made here, where each seed, switched on by its number (model_seed),
must make a bad run. Nothing of this is in src/ itself.

A seed replaces a piece of source text, which must occur exactly once, however it is broken into
lines. When the source has changed so that it does not, the copy is made without that seed and the
test that needs it fails (seed_expect_applied): adapt the seed here.

usage: seeds.py SRC_DIR OUT_DIR [DEPFILE]
"""
import pathlib
import re
import sys

# name, file, what was, what is put in its place
SEEDS = [
    # the port is looked at, then let go: a message pushed in between is nobody's
    ('CHECK_BEFORE_RELEASE', 'runtime/msgport.c',
     '	return atomic_compare_exchange_strong_explicit(&p->word, &expected, 0, '
     'memory_order_acq_rel,',
     '	if (model_seed == SEED_CHECK_BEFORE_RELEASE) {\n'
     '		if (msgport_has_messages(p))\n'
     '			return false;\n'
     '		msgport_give_with_debt(p);\n'
     '		return true;\n'
     '	}\n'
     '	return atomic_compare_exchange_strong_explicit(&p->word, &expected, 0, '
     'memory_order_acq_rel,'),
    ('PUSH_DROPS_HELD', 'runtime/msgport.c',
     '(uintptr_t)m | (old & MSGPORT_HELD),',
     '(uintptr_t)m | (model_seed == SEED_PUSH_DROPS_HELD ? 0 : old & MSGPORT_HELD),'),
    # the keeper lets go before it says that it sleeps: a pusher in between finds nobody to ring
    ('LOST_DOORBELL', 'runtime/keeper.c',
     '	atomic_exchange_explicit(&n->keeper_asleep, true, memory_order_acq_rel);\n'
     '	netisr_give(n);\n',
     '	if (model_seed != SEED_LOST_DOORBELL)\n'
     '		atomic_exchange_explicit(&n->keeper_asleep, true, memory_order_acq_rel);\n'
     '	netisr_give(n);\n'
     '	if (model_seed == SEED_LOST_DOORBELL)\n'
     '		atomic_exchange_explicit(&n->keeper_asleep, true, memory_order_acq_rel);\n'),
    # what is retired counts as passed at once
    ('FREED_TOO_EARLY', 'runtime/publish.c',
     '		if (r->rounds[i] == ROUND_PASSED)\n',
     '		if (r->rounds[i] == ROUND_PASSED || model_seed == SEED_FREED_TOO_EARLY)\n'),
    # the end of a round is a plain store: the next round's loads overtake it; once in src/
    ('ROUND_IN_STORE_BUFFER', 'runtime/netisr.c',
     '	rounds = atomic_fetch_add_explicit(&n->rounds, 1, memory_order_acq_rel) + 1;\n',
     '	if (model_seed == SEED_ROUND_IN_STORE_BUFFER) {\n'
     '		rounds = atomic_load_explicit(&n->rounds, memory_order_relaxed) + 1;\n'
     '		atomic_store_explicit(&n->rounds, rounds, memory_order_release);\n'
     '	} else {\n'
     '		rounds = atomic_fetch_add_explicit(&n->rounds, 1, memory_order_acq_rel) + 1;\n'
     '	}\n'),
    # "no longer parked" is a plain store: the look at is_attached overtakes it; once in src/
    ('PARKED_IN_STORE_BUFFER', 'runtime/keeper.c',
     '	atomic_exchange_explicit(&n->is_parked, false, memory_order_seq_cst);\n',
     '	if (model_seed == SEED_PARKED_IN_STORE_BUFFER)\n'
     '		atomic_store_explicit(&n->is_parked, false, memory_order_release);\n'
     '	else\n'
     '		atomic_exchange_explicit(&n->is_parked, false, memory_order_seq_cst);\n'),
    # the poster looks for sleepers before it makes news: who falls asleep in between is not woken
    ('POST_LOOKS_FIRST', 'runtime/waitword.c',
     '	atomic_fetch_add_explicit(&w->seq, 1, memory_order_seq_cst);\n',
     '	if ((model_seed == SEED_POST_LOOKS_FIRST &&\n'
     '	    atomic_load_explicit(&w->sleepers, memory_order_seq_cst) == 0) ||\n'
     '	    (model_seed == SEED_POST_LOOKS_FOR_NAPPER_FIRST &&\n'
     '	    atomic_load_explicit(&w->napper, memory_order_seq_cst) == NULL)) {\n'
     '		atomic_fetch_add_explicit(&w->seq, 1, memory_order_seq_cst);\n'
     '		return;\n'
     '	}\n'
     '	atomic_fetch_add_explicit(&w->seq, 1, memory_order_seq_cst);\n'),
    # the same for a thread in poll; its text is in the one before
    ('POST_LOOKS_FOR_NAPPER_FIRST', 'runtime/waitword.c', '', ''),
    # the handler acts first and then clears the word: an op posted in between is lost
    ('OPS_CLEARED_AFTER', 'transport/ulp.c',
     '	uint32_t ops = atomic_exchange_explicit(&sh->ops, 0, memory_order_acq_rel);\n'
     '\n'
     '	if (ops != 0)\n'
     '		sh->ulp->ops(n, sh, ops);\n',
     '	uint32_t ops = model_seed == SEED_OPS_CLEARED_AFTER ?\n'
     '	    atomic_load_explicit(&sh->ops, memory_order_acquire) :\n'
     '	    atomic_exchange_explicit(&sh->ops, 0, memory_order_acq_rel);\n'
     '\n'
     '	if (ops != 0)\n'
     '		sh->ulp->ops(n, sh, ops);\n'
     '	if (model_seed == SEED_OPS_CLEARED_AFTER)\n'
     '		atomic_exchange_explicit(&sh->ops, 0, memory_order_acq_rel);\n'),
    # bind reads the counts before its entry can be seen
    ('BIND_LOOKS_FIRST', 'transport/demux.c',
     '	entry_link(s, e);\n'
     '	if (conns_conflict(s, sh, proto, ep, is_drawn)) {\n',
     '	if (model_seed == SEED_BIND_LOOKS_FIRST &&\n'
     '	    conns_conflict(s, sh, proto, ep, is_drawn)) {\n'
     '		free(e);\n'
     '		return -EADDRINUSE;\n'
     '	}\n'
     '	entry_link(s, e);\n'
     '	if (model_seed != SEED_BIND_LOOKS_FIRST &&\n'
     '	    conns_conflict(s, sh, proto, ep, is_drawn)) {\n'),
    # the entry is linked after the read-modify-write of the bit: the counts are read before that
    # store is seen
    ('BIT_BEFORE_ENTRY', 'transport/demux.c',
     '	published_store(head, e);\n'
     '	/* last,',
     '	if (model_seed == SEED_BIT_BEFORE_ENTRY)\n'
     '		map_set(d, e->proto, e->local.port, true);\n'
     '	published_store(head, e);\n'
     '	if (model_seed == SEED_BIT_BEFORE_ENTRY)\n'
     '		return;\n'
     '	/* last,'),
    # a claim counts itself with a plain store: the look at the bitmap overtakes it
    ('CLAIM_IN_STORE_BUFFER', 'transport/port_count.c',
     '	atomic_fetch_add_explicit(count, 1, memory_order_seq_cst);\n',
     '	if (model_seed == SEED_CLAIM_IN_STORE_BUFFER)\n'
     '		add(count, 1);\n'
     '	else\n'
     '		atomic_fetch_add_explicit(count, 1, memory_order_seq_cst);\n'),
    # every poster pushes the node
    ('NODE_PUSHED_TWICE', 'runtime/sockhalf.c',
     '	if (atomic_fetch_or_explicit(&sh->ops, ops, memory_order_acq_rel) != 0)\n',
     '	if (atomic_fetch_or_explicit(&sh->ops, ops, memory_order_acq_rel) != 0 &&\n'
     '	    model_seed != SEED_NODE_PUSHED_TWICE)\n'),
    # close sets CLOSING and counts itself in two steps: a leaver in between is the last one too
    ('CLOSE_WITHOUT_COUNT', 'socket/pin.c',
     '	uint32_t old = atomic_fetch_add_explicit(user, USER_CLOSING + 1, memory_order_acq_rel);\n',
     '	uint32_t old;\n'
     '\n'
     '	if (model_seed == SEED_CLOSE_WITHOUT_COUNT)\n'
     '		old = atomic_fetch_or_explicit(user, USER_CLOSING, memory_order_acq_rel);\n'
     '	old = atomic_fetch_add_explicit(user,\n'
     '	    model_seed == SEED_CLOSE_WITHOUT_COUNT ? 1 : USER_CLOSING + 1, memory_order_acq_rel);\n'
     '	if (model_seed == SEED_CLOSE_WITHOUT_COUNT)\n'
     '		old = 0;\n'),
    # looks whether it may come in, and then comes in: CLOSING may be set in between
    ('LOOK_THEN_PIN', 'socket/pin.c',
     '		if (likely(atomic_compare_exchange_weak_explicit(user, &old, (old + 1) | bits,\n',
     '		if (model_seed == SEED_LOOK_THEN_PIN) {\n'
     '			atomic_fetch_add_explicit(user, bits + 1, memory_order_acq_rel);\n'
     '			return 0;\n'
     '		}\n'
     '		if (likely(atomic_compare_exchange_weak_explicit(user, &old, (old + 1) | bits,\n'),
    # the entry and the generation are not compared after the pin
    ('PIN_WITHOUT_SECOND_LOOK', 'socket/sock.c',
     'likely(err == 0) && likely(is_still(e, word, so))',
     'likely(err == 0) && (model_seed == SEED_PIN_WITHOUT_SECOND_LOOK || is_still(e, word, so))'),
    ('WAIT_NOT_ANNOUNCED', 'socket/pin.c',
     'is_taken ? old | USER_WAITERS : old | bits;',
     'is_taken ? (model_seed == SEED_WAIT_NOT_ANNOUNCED ? old : old | USER_WAITERS) : old | bits;'),
    # a chunk goes when the tail is at its end: the consumer's cursor is still on it
    ('RECLAIMED_TOO_EARLY', 'runtime/ring.c',
     '(int32_t)(tail - chunk_end(k)) <= 0)',
     '(int32_t)(tail - chunk_end(k)) < (model_seed == SEED_RECLAIMED_TOO_EARLY ? 0 : 1))'),
    # room is made by a plain store and the wish looked for by a plain load, which overtakes it
    ('WISH_BY_PLAIN_LOAD', 'transport/tcp/tcp_ack.c',
     '	if (space < freed_bytes || (space - freed_bytes) * 3 < cap)\n',
     '	if (model_seed != SEED_WISH_BY_PLAIN_LOAD &&\n'
     '	    (space < freed_bytes || (space - freed_bytes) * 3 < cap))\n'),
    # the count is looked at and raised in two steps: two producers pass the limit
    ('LIMIT_LOOKED_AT_FIRST', 'transport/acceptq.c',
     '	uint32_t queued = atomic_fetch_add_explicit(&q->total, 1, memory_order_acq_rel);\n',
     '	uint32_t queued = model_seed == SEED_LIMIT_LOOKED_AT_FIRST ?\n'
     '	    atomic_load_explicit(&q->total, memory_order_relaxed) :\n'
     '	    atomic_fetch_add_explicit(&q->total, 1, memory_order_acq_rel);\n'
     '\n'
     '	if (model_seed == SEED_LIMIT_LOOKED_AT_FIRST) {\n'
     '		if (queued > atomic_load_explicit(&q->backlog, memory_order_relaxed))\n'
     '			return false;\n'
     '		atomic_fetch_add_explicit(&q->total, 1, memory_order_acq_rel);\n'
     '	}\n'),
    # the writer writes its wish and sleeps without another look at the ring
    ('WISH_WITHOUT_SECOND_LOOK', 'socket/stream.c',
     '|| ring_space_bytes(&so->half.tx) == 0) {',
     '|| model_seed == SEED_WISH_WITHOUT_SECOND_LOOK ||\n'
     '	    ring_space_bytes(&so->half.tx) == 0) {'),
    # room that came after the look counts as room without memory: a nap; once in src/
    ('NAP_FOR_LATE_ROOM', 'socket/stream.c',
     '	if (!*saw_room) {\n',
     '	if (!*saw_room && model_seed != SEED_NAP_FOR_LATE_ROOM) {\n'),
]


HEAD = """/* Made by seeds.py. */
#ifndef MODEL_SEEDS_H
#define MODEL_SEEDS_H

#include "support/model.h"

enum {
	SEED_NONE,
%s
};

/* Fails the test when the text that the seed replaces is not in src/ any more. */
static inline void
seed_expect_applied(int seed)
{
%s
	if (seed == SEED_NONE)
		fail_msg("no seed");
}

#endif
"""

MISSING = """	if (seed == SEED_%s)
		fail_msg("seeds.py: the text of %s is not in src/");"""


def apply(src, out):
    """Writes the copies; returns the seeds whose text was not found."""
    missing = []
    for path in sorted({s[1] for s in SEEDS}):
        text = (src / path).read_text()
        for name, file, old, new in SEEDS:
            if file != path or not old:
                continue
            pattern = r'\s+'.join(re.escape(word) for word in old.split())
            found = re.findall(pattern, text)
            if len(found) != 1:
                missing.append(name)
                continue
            text = text.replace(found[0], new.strip())
        target = out / 'seeded' / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return missing


def main():
    src, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    missing = apply(src, out)
    (out / 'seeds.h').write_text(HEAD % (
        '\n'.join(f'\tSEED_{s[0]},' for s in SEEDS),
        '\n'.join(MISSING % (m, m) for m in missing)))
    if len(sys.argv) > 3:
        read = ' '.join(sorted({str(src / s[1]) for s in SEEDS}))
        pathlib.Path(sys.argv[3]).write_text(f'seeds.h: {read}\n')


main()
