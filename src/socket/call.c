/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calling threads and open stacks; see call.h.
 *
 * A thread is idle (in the application), at work (in the library) or asleep (in call_wait). A call
 * that begins while the thread is at work comes from a signal handler and could meet half-done
 * state, so it is refused. While it is asleep nothing is half done, unless the thread runs a netisr
 * meanwhile: then it is refused too.
 *
 * Cancellation: a call runs with it disabled, whatever it writes to or reads from on the way; only
 * the sleep of a call_wait that can undo what the call holds puts back what the application has
 * set. A thread that always finds something to do never sleeps, so calls that might are also
 * cancellation points at their very beginning, as system calls are.
 *
 * Signals: a handler that notes itself raises the thread's count and posts the word that the thread
 * is about to sleep on. The waiting call compares the count with the one it began with, so a
 * handler is seen wherever it came in between.
 *
 * The list of open stacks is short and changes rarely: a mutex, and an epoch by which a thread
 * knows that its choice is still valid. fork: a handler in the child marks all stacks as lost; they
 * are not touched again there.
 */
#include "socket/call.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

#include "base/compiler.h"
#include "runtime/netisr.h"

#define STACKS_MAX 64

enum call_state {
	CALL_IDLE,
	CALL_WORKS,
	CALL_SLEEPS
};

struct thread {
	volatile sig_atomic_t state;
	/* of the call that a handler interrupted in its sleep */
	volatile sig_atomic_t saved_state;
	/* the application's cancel state: of the call, and of one from a handler in its sleep */
	int cancel_state[2];
	volatile uint32_t signals;
	struct waitword *volatile word;
	struct darter_stack *stack;		/* chosen by stacks_use, NULL: the default */
	uint64_t epoch;				/* at which `stack` was known to be open */
	uint64_t id;				/* of `stack`: addresses are reused */
};

struct open_stack {
	struct darter_stack *stack;
	uint64_t id;
};

static __thread struct thread me __attribute__((tls_model("initial-exec")));

static pthread_mutex_t stacks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct open_stack stacks[STACKS_MAX];
static unsigned n_stacks;
static uint64_t next_id;
static struct darter_stack *_Atomic first_stack;
static _Atomic uint64_t stacks_epoch;
static _Atomic bool is_forked_child;
static pthread_once_t atfork_once = PTHREAD_ONCE_INIT;

/* ---- calls ---- */

static bool
may_nest(void)
{
	return me.state == CALL_SLEEPS && netisr_current() == NULL;
}

static int *
cancel_slot(void)
{
	return &me.cancel_state[me.saved_state != CALL_IDLE];
}

int
call_enter(void)
{
	if (unlikely(atomic_load_explicit(&is_forked_child, memory_order_relaxed)))
		return -ENOTSUP;
	if (unlikely(me.state != CALL_IDLE)) {
		if (!may_nest() || me.saved_state != CALL_IDLE)
			return -EDEADLK;
		me.saved_state = CALL_SLEEPS;
	}
	/* first: from here on a handler's calls, which have a slot of their own, are refused */
	me.state = CALL_WORKS;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel_slot());
	return 0;
}

int
call_enter_cancel(void)
{
	pthread_testcancel();
	return call_enter();
}

void
call_leave(void)
{
	pthread_setcancelstate(*cancel_slot(), NULL);
	me.state = me.saved_state;
	me.saved_state = CALL_IDLE;
}

uint32_t
call_signals(void)
{
	return me.signals;
}

void
call_signal_note(void)
{
	int old, saved_errno = errno;	/* a handler leaves errno as it was */
	struct waitword *w = me.word;

	/* the sleep that this may interrupt can be cancelled, a half-done post not */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	me.signals++;
	if (w != NULL)
		waitword_post(w);
	wait_signal_note();
	pthread_setcancelstate(old, NULL);
	errno = saved_errno;
}

struct undo {
	void (*fn)(void *arg);
	void *arg;
	struct waitword *outer;
	int outer_cancel;
};

/* The thread is cancelled in its sleep: it gives back what the call holds. */
static void
on_cancel(void *arg)
{
	struct undo *u = arg;

	me.word = u->outer;
	me.state = CALL_WORKS;
	wait_set_cancel(u->outer_cancel);
	if (u->fn != NULL)
		u->fn(u->arg);
	call_leave();
}

int
call_wait(const struct call_wait *w)
{
	struct undo undo = { .fn = w->undo, .arg = w->arg, .outer = me.word };
	volatile int err = 0;	/* survives the cleanup frame's longjmp */

	undo.outer_cancel =
	    wait_set_cancel(w->undo != NULL ? *cancel_slot() : PTHREAD_CANCEL_DISABLE);
	pthread_cleanup_push(on_cancel, &undo);
	me.word = w->word;
	me.state = CALL_SLEEPS;
	if (me.signals == w->signals)
		err = wait_until(w->stack, w->owner, w->word, w->seen, w->deadline, w->extra_fd);
	me.state = CALL_WORKS;
	me.word = undo.outer;
	pthread_cleanup_pop(0);
	wait_set_cancel(undo.outer_cancel);
	return me.signals != w->signals ? -EINTR : err;
}

/* ---- stacks ---- */

static void
on_fork_child(void)
{
	if (n_stacks != 0)
		atomic_store(&is_forked_child, true);
}

static void
arm_atfork(void)
{
	pthread_atfork(NULL, NULL, on_fork_child);
}

int
stacks_add(struct darter_stack *s)
{
	int err = -EMFILE;

	pthread_once(&atfork_once, arm_atfork);
	pthread_mutex_lock(&stacks_lock);
	if (n_stacks < STACKS_MAX) {
		stacks[n_stacks++] = (struct open_stack){ .stack = s, .id = ++next_id };
		atomic_store_explicit(&first_stack, stacks[0].stack, memory_order_release);
		err = 0;
	}
	pthread_mutex_unlock(&stacks_lock);
	return err;
}

void
stacks_remove(struct darter_stack *s)
{
	unsigned i;

	pthread_mutex_lock(&stacks_lock);
	for (i = 0; i < n_stacks && stacks[i].stack != s; i++)
		;
	if (i < n_stacks) {
		n_stacks--;
		for (; i < n_stacks; i++)
			stacks[i] = stacks[i + 1];
		atomic_store_explicit(&first_stack, n_stacks == 0 ? NULL : stacks[0].stack,
		    memory_order_release);
		atomic_fetch_add_explicit(&stacks_epoch, 1, memory_order_acq_rel);
	}
	pthread_mutex_unlock(&stacks_lock);
}

/* Some stack was closed since this thread chose its own: is that one still open? */
static bool
choice_is_open(uint64_t epoch)
{
	bool is_open = false;
	unsigned i;

	pthread_mutex_lock(&stacks_lock);
	for (i = 0; i < n_stacks; i++) {
		if (stacks[i].stack == me.stack && stacks[i].id == me.id)
			is_open = true;
	}
	pthread_mutex_unlock(&stacks_lock);
	if (is_open)
		me.epoch = epoch;
	else
		me.stack = NULL;
	return is_open;
}

struct darter_stack *
stacks_current(void)
{
	uint64_t epoch;

	if (me.stack != NULL) {
		epoch = atomic_load_explicit(&stacks_epoch, memory_order_acquire);
		if (likely(me.epoch == epoch) || choice_is_open(epoch))
			return me.stack;
	}
	return atomic_load_explicit(&first_stack, memory_order_acquire);
}

void
stacks_use(struct darter_stack *s)
{
	unsigned i;

	me.stack = NULL;
	if (s == NULL)
		return;
	pthread_mutex_lock(&stacks_lock);
	for (i = 0; i < n_stacks; i++) {
		if (stacks[i].stack == s) {
			me.stack = s;
			me.id = stacks[i].id;
			me.epoch = atomic_load_explicit(&stacks_epoch, memory_order_acquire);
		}
	}
	pthread_mutex_unlock(&stacks_lock);
}

struct darter_stack *
stacks_get(unsigned i)
{
	struct darter_stack *s;

	pthread_mutex_lock(&stacks_lock);
	s = i < n_stacks ? stacks[i].stack : NULL;
	pthread_mutex_unlock(&stacks_lock);
	return s;
}

bool
stacks_are_lost(void)
{
	return atomic_load_explicit(&is_forked_child, memory_order_relaxed);
}
