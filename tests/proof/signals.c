/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A signal handler at every instruction of a call that goes to sleep. The processor's trap flag
 * steps through the call; at instruction number k the trap handler does what an application's
 * handler does. No thread and no luck are needed: each k is one place between two instructions.
 *
 * Like a kernel's system call a call has a moment at which it begins: a handler that has run before
 * it does not interrupt it. So there is one k before which the call goes on and from which it
 * returns EINTR, with no exception behind it.
 */
#include "unit/both_nets.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>

#include "base/compiler.h"

#define TRAP_FLAG	0x100
#define SHORT_MS	60	/* a call that nobody interrupts; more when stepping takes longer */
#define LONG_MS		4000	/* … that was too slow to tell */
#define PLACES		120	/* of one call, evenly spread; with an argument every one */

static unsigned long places = PLACES;
static unsigned long n_steps;		/* instructions so far */
static unsigned long act_at;		/* 0: never */
static unsigned long slept_at;		/* the first futex */
static int short_ms;
static void (*act)(void);
static bool has_acted;
static int acted_errno;

static bool
is_futex(const ucontext_t *u)
{
	const uint8_t *at = (const uint8_t *)(uintptr_t)u->uc_mcontext.gregs[REG_RIP];

	return at[0] == 0x0f && at[1] == 0x05 && u->uc_mcontext.gregs[REG_RAX] == SYS_futex;
}

static void
on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	int saved = errno;

	(void)sig;
	(void)info;
	n_steps++;
	if (slept_at == 0 && is_futex(u))
		slept_at = n_steps;
	if (n_steps == act_at) {
		act();
		has_acted = true;
	}
	if (slept_at != 0 || n_steps == act_at)
		u->uc_mcontext.gregs[REG_EFL] &= ~(long long)TRAP_FLAG;
	errno = saved;
}

static void
step_from_here(void)
{
	__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static void
step_no_more(void)
{
	__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

/* ---- the calls ---- */

static int pair[2], lfd, ufd, ep;

static long
call_recv(int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	long rc;
	char c;

	darter_setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	step_from_here();
	rc = darter_recv(pair[1], &c, 1, 0);
	step_no_more();
	return rc;
}

static long
call_accept(int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	long rc;

	darter_setsockopt(lfd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	step_from_here();
	rc = darter_accept4(lfd, NULL, NULL, 0);
	step_no_more();
	return rc;
}

static long
call_recvfrom(int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	long rc;
	char c;

	darter_setsockopt(ufd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	step_from_here();
	rc = darter_recv(ufd, &c, 1, 0);
	step_no_more();
	return rc;
}

static long
call_epoll_wait(int ms)
{
	struct epoll_event ev;
	long rc;

	step_from_here();
	rc = darter_epoll_wait(ep, &ev, 1, ms);
	step_no_more();
	return rc;
}

static long
call_poll(int ms)
{
	struct pollfd p[2] = { { .fd = pair[1], .events = POLLIN },
	    { .fd = lfd, .events = POLLIN } };
	long rc;

	step_from_here();
	rc = darter_poll(p, 2, ms);
	step_no_more();
	return rc;
}

static const struct {
	const char *name;
	long (*fn)(int ms);
} calls[] = {
	{ "recv", call_recv },
	{ "accept", call_accept },
	{ "recv of datagrams", call_recvfrom },
	{ "epoll_wait", call_epoll_wait },
	{ "poll", call_poll },
};

/* The call with the action at instruction k: did it return EINTR? */
static bool
is_interrupted(long (*fn)(int ms), unsigned long k, int ms)
{
	long rc;

	n_steps = slept_at = 0;
	has_acted = false;
	act_at = k;
	errno = 0;
	rc = fn(ms);
	if (rc == -1 && errno == EINTR)
		return true;
	assert_true(rc == 0 || (rc == -1 && errno == EAGAIN));	/* its time-out */
	return false;
}

static unsigned long
steps_to_sleep(long (*fn)(int ms))
{
	unsigned i;

	/* the first call binds functions; the time-out may pass before the sleep */
	short_ms = SHORT_MS;
	for (i = 0; i < 10; i++) {
		assert_false(is_interrupted(fn, 0, short_ms));
		if (i > 0 && slept_at != 0)
			return slept_at;
		if (slept_at == 0)
			short_ms *= 2;
	}
	fail_msg("%s", "the call does not sleep");
	return 0;
}

/* ---- EINTR ---- */

static void
note_signal(void)
{
	darter_signal_note();
}

/* The first place at which the handler interrupts. */
static unsigned long
find_begin(long (*fn)(int ms), unsigned long end)
{
	unsigned long lo = 1, hi = end;

	while (lo < hi) {
		unsigned long mid = (lo + hi) / 2;

		if (is_interrupted(fn, mid, short_ms))
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static void
check_call(const char *name, long (*fn)(int ms))
{
	unsigned long end = steps_to_sleep(fn), begin, k, by;

	act = note_signal;
	begin = find_begin(fn, end);
	if (begin >= end / 4 * 3)
		fail_msg("%s: begins at instruction %lu of %lu", name, begin, end);
	by = (end - begin) / places + 1;
	for (k = begin; k < end; k += by) {
		/* a call that took a shorter way was over before */
		if (!is_interrupted(fn, k, LONG_MS) && has_acted)
			fail_msg("%s: a signal at instruction %lu of %lu is lost", name, k, end);
	}
}

static void
handler_at_any_instruction_interrupts_the_call(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(calls); i++)
		check_call(calls[i].name, calls[i].fn);
}

/* ---- calls from the handler ---- */

static void
call_from_handler(void)
{
	char c;

	errno = 0;
	acted_errno = darter_recv(pair[0], &c, 1, MSG_DONTWAIT) == -1 ? errno : 0;
}

/* EAGAIN before the call has begun and behind its end, EDEADLK in between; never anything else. */
static void
call_from_a_handler_is_refused_while_the_library_is_at_work(void **state)
{
	unsigned long end = steps_to_sleep(call_recv), k, by = end / places + 1, refused = 0;
	bool has_begun = false;

	(void)state;
	act = call_from_handler;
	for (k = 1; k < end; k += by) {
		is_interrupted(call_recv, k, 1);
		assert_true(acted_errno == EAGAIN || acted_errno == EDEADLK);
		has_begun |= acted_errno == EDEADLK;
		refused += acted_errno == EDEADLK;
	}
	assert_true(has_begun);
	assert_true(refused > end / by / 4);
	/* in front of the system call that sleeps nothing is half done any more */
	do
		is_interrupted(call_recv, steps_to_sleep(call_recv), short_ms);
	while (!has_acted);
	assert_int_equal(acted_errno, EAGAIN);
}

/*
 * An attached thread holds its netisr in the whole call but for the nap, so that refusals are many;
 * the call ends in time even if stepping is slow, so that some places lie behind its end.
 */
static void
handler_of_an_attached_thread_is_refused_while_it_holds(void **state)
{
	unsigned long end, k, by;
	unsigned refused = 0, n = 0;

	(void)state;
	assert_int_equal(darter_attach(the_stack, 0), 0);
	/* nothing is a futex there: a sample of its instructions */
	act = call_from_handler;
	for (k = 200, end = 4000, by = 97; k < end; k += by) {
		is_interrupted(call_recv, k, 1);
		if (!has_acted)
			continue;
		assert_true(acted_errno == EAGAIN || acted_errno == EDEADLK);
		refused += acted_errno == EDEADLK;
		n++;
	}
	assert_true(refused > n / 4);
	assert_int_equal(darter_detach(), 0);
}

static void
on_alarm(int sig)
{
	int saved = errno;

	(void)sig;
	call_from_handler();
	errno = saved;
}

/* It holds nothing there. An alarm that comes before the sleep is refused: try again. */
static void
handler_of_an_attached_thread_may_call_in_its_nap(void **state)
{
	const struct itimerval soon = { .it_value.tv_usec = 20000 };
	const struct timeval tv = { .tv_sec = 1 };
	struct sigaction sa = { .sa_handler = on_alarm }, old;
	char c;

	(void)state;
	assert_int_equal(darter_attach(the_stack, 0), 0);
	darter_setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	sigaction(SIGALRM, &sa, &old);
	do {
		acted_errno = EDEADLK;
		setitimer(ITIMER_REAL, &soon, NULL);
		assert_int_equal(darter_recv(pair[1], &c, 1, 0), -1);
	} while (acted_errno == EDEADLK);
	assert_int_equal(errno, EINTR);
	assert_int_equal(acted_errno, EAGAIN);
	sigaction(SIGALRM, &old, NULL);
	assert_int_equal(darter_detach(), 0);
}

/* ---- real signals ---- */

static _Atomic unsigned handled;

static void
on_usr1(int sig)
{
	(void)sig;
	darter_signal_note();
	atomic_fetch_add(&handled, 1);
}

static void *
send_signals(void *arg)
{
	unsigned i;

	for (i = 0; i < 50; i++) {
		unsigned before = atomic_load(&handled);

		usleep(200 + i * 13);
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
		while (atomic_load(&handled) == before)
			usleep(50);
	}
	return NULL;
}

/* An attached thread sleeps in poll, one that watches descriptors likewise. */
static void
signals_that_come_in_the_sleep_are_each_told(void **state)
{
	pthread_t self = pthread_self(), t;
	struct timeval tv = { .tv_sec = 10 };
	unsigned eintr = 0;
	char c;

	(void)state;
	signal(SIGUSR1, on_usr1);
	darter_setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	assert_int_equal(darter_attach(the_stack, 1), 0);
	assert_int_equal(pthread_create(&t, NULL, send_signals, &self), 0);
	while (atomic_load(&handled) < 50) {
		if (darter_recv(pair[1], &c, 1, 0) == -1 && errno == EINTR)
			eintr++;
	}
	pthread_join(t, NULL);
	assert_int_equal(darter_detach(), 0);
	assert_true(eintr > 0 && eintr <= 50);
}

static int
set_up(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	struct epoll_event ev = { .events = EPOLLIN };
	char err[DARTER_ERR_MAX];

	if (open_stack(state) != 0)
		return -1;
	/* a borrower's rounds and the spin would be stepped through before each sleep */
	darter_sysctl_set(the_stack, "net.isr.borrow", "never", err, sizeof(err));
	darter_sysctl_set(the_stack, "net.isr.spin_us", "0", err, sizeof(err));
	connected_pair(&darter_net, pair);
	lfd = listener(&darter_net, 4);
	ufd = bound(&darter_net, SOCK_DGRAM);
	ep = darter_epoll_create1(0);
	darter_epoll_ctl(ep, EPOLL_CTL_ADD, pair[1], &ev);
	set_nonblock(&darter_net, pair[0]);
	return sigaction(SIGTRAP, &sa, NULL);
}

static int
tear_down(void **state)
{
	darter_close(ep);
	darter_close(ufd);
	darter_close(lfd);
	darter_close(pair[0]);
	darter_close(pair[1]);
	return close_stack(state);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handler_at_any_instruction_interrupts_the_call),
		cmocka_unit_test(call_from_a_handler_is_refused_while_the_library_is_at_work),
		cmocka_unit_test(handler_of_an_attached_thread_is_refused_while_it_holds),
		cmocka_unit_test(handler_of_an_attached_thread_may_call_in_its_nap),
		cmocka_unit_test(signals_that_come_in_the_sleep_are_each_told),
	};

	(void)argv;
	if (argc > 1)
		places = 1000000;
	return cmocka_run_group_tests_name("proof signals", tests, set_up, tear_down);
}

#else

int
main(void)
{
	printf("no trap flag that can be used here\n");
	return 77;
}

#endif
