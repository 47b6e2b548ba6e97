/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The user word: who is inside an object that has descriptors. A call pins the object with one
 * compare-and-swap, taking with it the right to be *the* reader and/or writer of its rings
 * (USER_RX_BUSY, USER_TX_BUSY) where it needs them, and leaves with one subtraction. A bit is held
 * while bytes are copied, never across a sleep for data, so that whoever finds it taken waits on it
 * for a short time. Close sets USER_CLOSING; from then on nobody gets in, and the last one out does
 * the rest.
 *
 *   n calls inside ──close──▶ CLOSING + n ──…──▶ CLOSING + 0: whoever makes it so finishes it
 *
 * An object that is not in use rests at CLOSING + 0, so a stale descriptor can't pin it (memory is
 * type-stable). Whoever pins compares the generation afterwards.
 */
#ifndef SOCKET_PIN_H
#define SOCKET_PIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/sockhalf.h"

/* Somebody waits for a BUSY bit: whoever gives one up posts the word that goes with it. */
#define USER_WAITERS (UINT32_C(1) << 28)

/* What a leaver must do next. */
enum pin_left {
	PIN_LEFT_NOTHING,
	PIN_LEFT_WAKE,		/* post the waitword: somebody waits for a bit */
	PIN_LEFT_LAST		/* closing, and nobody is inside any more: finish the object */
};

/* 0, -EBADF (closing), or -EBUSY (one of `bits` is taken; nothing was changed). */
int pin_enter(_Atomic uint32_t *user, uint32_t bits);

/*
 * Inside already: takes bits, or says -EBUSY. With `announce`, a refusal leaves USER_WAITERS
 * behind.
 */
int pin_take(_Atomic uint32_t *user, uint32_t bits, bool announce);

/* Gives bits back and stays inside: PIN_LEFT_NOTHING or PIN_LEFT_WAKE. */
enum pin_left pin_give(_Atomic uint32_t *user, uint32_t bits);

/*
 * Leaves, giving bits back. With PIN_LEFT_LAST the caller is the only user and nobody can come in.
 */
enum pin_left pin_leave(_Atomic uint32_t *user, uint32_t bits);

/*
 * For the owning netisr's holder, who never waits: takes bits of an object with nobody inside,
 * without counting as a user, so that a close in between ends without him (what the closer then
 * posts, the holder handles after he has dropped the bits). False when somebody is inside or it is
 * closing.
 */
bool pin_grab_idle(_Atomic uint32_t *user, uint32_t bits);
/* True: post the waitword, somebody waits for a bit. */
bool pin_drop_idle(_Atomic uint32_t *user, uint32_t bits);

/*
 * Enters as the one who closes; once in the object's life. The caller then leaves as anybody does.
 */
void pin_close(_Atomic uint32_t *user);

static inline bool
pin_is_closing(_Atomic uint32_t *user)
{
	return (atomic_load_explicit(user, memory_order_acquire) & USER_CLOSING) != 0;
}

/* A fresh object, everything else of which is written: calls may come in. */
static inline void
pin_open(_Atomic uint32_t *user)
{
	atomic_store_explicit(user, 0, memory_order_release);
}

#endif
