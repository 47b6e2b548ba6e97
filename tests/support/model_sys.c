/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Models of the system calls and libc functions that the runtime's lock-free parts use: futexes,
 * eventfds, timerfds, epoll and poll over them, mutexes, threads, memory.
 *
 * A sleep without a time-out ends only when it is woken, so that a lost wake-up is a thread that
 * never goes on. A sleep with one ends by itself too, but only after somebody has done something
 * (model_has_news), as a loop that polls does. Timers expire when a model says so. Every call
 * empties the store buffer of its thread, since the kernel's locks do.
 *
 * Memory comes from an arena that each run starts afresh: what a run that is given up has not
 * freed is no leak. Freed memory is filled with a pattern.
 */
#include "support/model_hooks.h"

#include "support/model_priv.h"

#define FDS_MAX		24
#define FD_FIRST	100
#define EPOLL_MEMBERS	6
#define ARENA_BYTES	(1024u * 1024u)
#define FREED		0xa5
#define NOBODY		MODEL_THREADS_MAX

enum fd_kind {
	FD_FREE,
	FD_EVENT,
	FD_TIMER,
	FD_EPOLL
};

struct fd {
	enum fd_kind kind;
	uint64_t count;			/* event: value; timer: expiries */
	bool is_armed;
	int member[EPOLL_MEMBERS];
	unsigned n_members;
};

/* In front of each piece of memory. */
struct piece {
	size_t size;
	size_t pad;
};

static struct fd fds[FDS_MAX];
static char arena[ARENA_BYTES] __attribute__((aligned(64)));
static size_t arena_used;
static pthread_once_t *onces[KEYS_MAX];
static unsigned n_onces, n_keys;

void
model_sys_begin(void)
{
	memset(fds, 0, sizeof(fds));
	arena_used = 0;
	n_onces = n_keys = 0;
}

static bool
is_outside(void)
{
	return model_current == NOBODY;
}

/* ---- descriptors ---- */

static struct fd *
fd_of(int fd)
{
	if (fd < FD_FIRST || fd >= FD_FIRST + FDS_MAX || fds[fd - FD_FIRST].kind == FD_FREE)
		model_fail(__FILE__, __LINE__, "descriptor %d is not open", fd);
	return &fds[fd - FD_FIRST];
}

static int
new_fd(enum fd_kind kind)
{
	int i;

	for (i = 0; i < FDS_MAX; i++) {
		if (fds[i].kind == FD_FREE) {
			fds[i] = (struct fd){ .kind = kind };
			return FD_FIRST + i;
		}
	}
	errno = EMFILE;
	return -1;
}

int
model_eventfd(unsigned value, int flags)
{
	int fd = new_fd(FD_EVENT);

	(void)flags;
	if (fd >= 0)
		fd_of(fd)->count = value;
	return fd;
}

int
model_timerfd_create(int clock, int flags)
{
	(void)clock;
	(void)flags;
	return new_fd(FD_TIMER);
}

int
model_epoll_create1(int flags)
{
	(void)flags;
	return new_fd(FD_EPOLL);
}

int
model_epoll_ctl(int ep, int op, int fd, struct epoll_event *ev)
{
	struct fd *e = fd_of(ep);

	(void)ev;
	if (op != EPOLL_CTL_ADD || e->n_members == EPOLL_MEMBERS)
		model_fail(__FILE__, __LINE__, "epoll_ctl is not modelled that far");
	fd_of(fd);
	e->member[e->n_members++] = fd;
	return 0;
}

int
model_close(int fd)
{
	fd_of(fd)->kind = FD_FREE;
	return 0;
}

bool
model_fd_is_ready(int fd)
{
	const struct fd *f = fd_of(fd);
	unsigned i;

	for (i = 0; i < f->n_members; i++) {
		if (model_fd_is_ready(f->member[i]))
			return true;
	}
	return f->count != 0;
}

static void
touch_fd(struct op *op, int fd, bool is_write)
{
	const struct fd *f = fd_of(fd);
	unsigned i;

	for (i = 0; i < f->n_members; i++)
		touch_fd(op, f->member[i], is_write);
	if (f->kind != FD_EPOLL)
		op_touch(op, model_object((uintptr_t)f), is_write);
}

/* A step that changes fd. */
static void
fd_step(int fd, const struct model_site *at)
{
	struct op op = { .at = at, .needs_drain = true, .is_blind = true };

	if (is_outside())
		return;
	touch_fd(&op, fd, true);
	model_step(&op);
}

int
model_timerfd_settime(int fd, int flags, const struct itimerspec *its, struct itimerspec *old)
{
	struct fd *f = fd_of(fd);

	(void)flags;
	(void)old;
	fd_step(fd, MODEL_SITE("timerfd_settime"));
	f->is_armed = its->it_value.tv_sec != 0 || its->it_value.tv_nsec != 0;
	f->count = 0;
	return 0;
}

void
model_timer_expire(int fd)
{
	struct fd *f = fd_of(fd);

	fd_step(fd, MODEL_SITE("a timer expires"));
	if (f->is_armed)
		f->count++;
	f->is_armed = false;
}

ssize_t
model_read(int fd, void *buf, size_t len)
{
	struct fd *f = fd_of(fd);

	fd_step(fd, f->kind == FD_TIMER ? MODEL_SITE("read timerfd") : MODEL_SITE("read eventfd"));
	if (len < sizeof(f->count) || f->kind == FD_EPOLL) {
		errno = EINVAL;
		return -1;
	}
	if (f->count == 0) {
		errno = EAGAIN;
		return -1;
	}
	memcpy(buf, &f->count, sizeof(f->count));
	f->count = 0;
	return sizeof(f->count);
}

ssize_t
model_write(int fd, const void *buf, size_t len)
{
	struct fd *f = fd_of(fd);
	uint64_t v;

	fd_step(fd, MODEL_SITE("write eventfd"));
	if (len != sizeof(v) || f->kind != FD_EVENT) {
		errno = EINVAL;
		return -1;
	}
	memcpy(&v, buf, sizeof(v));
	f->count += v;
	return (ssize_t)len;
}

struct poll_set {
	struct pollfd *fds;
	nfds_t n;
	bool is_timed;
	bool is_immediate;
};

static int
poll_now(const struct poll_set *set)
{
	int ready = 0;
	nfds_t i;

	for (i = 0; i < set->n; i++) {
		set->fds[i].revents = 0;
		if (set->fds[i].fd >= 0 && model_fd_is_ready(set->fds[i].fd)) {
			set->fds[i].revents = POLLIN;
			ready++;
		}
	}
	return ready;
}

static bool
poll_is_ready(struct op *op)
{
	const struct poll_set *set = op->arg;

	return set->is_immediate || poll_now(set) > 0 ||
	       (set->is_timed && model_has_news(op->thread));
}

static int
poll_set(struct poll_set *set, const struct model_site *at)
{
	struct op op = { .at = at, .needs_drain = true, .is_ready = poll_is_ready, .arg = set };
	const struct thread *t;
	nfds_t i;
	int r;

	if (is_outside())
		return poll_now(set);
	for (i = 0; i < set->n; i++) {
		if (set->fds[i].fd >= 0)
			touch_fd(&op, set->fds[i].fd, false);
	}
	t = &model_threads[model_current];
	for (i = 0; i < t->n_seen && set->is_timed && op.n < ACCESSES_MAX; i++)
		op_touch(&op, t->seen[i].o, false);
	model_step(&op);
	r = poll_now(set);
	if (r == 0 && !set->is_immediate)
		model_polled();
	return r;
}

int
model_poll(struct pollfd *pfds, nfds_t n, int timeout_ms)
{
	struct poll_set set = {
		.fds = pfds, .n = n, .is_timed = timeout_ms > 0, .is_immediate = timeout_ms == 0
	};

	return poll_set(&set, MODEL_SITE("poll"));
}

int
model_ppoll(struct pollfd *pfds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	struct poll_set set = { .fds = pfds, .n = n, .is_timed = timeout != NULL };

	(void)mask;
	return poll_set(&set, MODEL_SITE("ppoll"));
}

/* ---- futexes ---- */

static struct object *
futex_queue(const void *word)
{
	return model_object((uintptr_t)word + 1);
}

static bool
futex_is_woken(struct op *op)
{
	const struct object *q = op->arg;

	return q->wakes != (uint32_t)op->value ||
	       ((op->value >> 32) != 0 && model_has_news(op->thread));
}

static long
futex_wait(const uint32_t *word, uint32_t val, bool is_timed)
{
	struct object *q = futex_queue(word);
	struct op look = { .at = MODEL_SITE("futex wait begins"), .needs_drain = true };
	struct op sleep = { .at = MODEL_SITE("futex wait"),
		.needs_drain = true,
		.is_ready = futex_is_woken,
		.arg = q };
	const struct thread *t = &model_threads[model_current];
	unsigned i;

	op_touch(&look, model_object((uintptr_t)word), false);
	op_touch(&look, q, true);
	model_step(&look);
	if (*word != val) {
		errno = EAGAIN;
		return -1;
	}
	sleep.value = q->wakes | (uint64_t)is_timed << 32;
	op_touch(&sleep, q, false);
	for (i = 0; i < t->n_seen && is_timed && sleep.n < ACCESSES_MAX; i++)
		op_touch(&sleep, t->seen[i].o, false);
	model_step(&sleep);
	if (q->wakes != (uint32_t)sleep.value)
		return 0;
	model_polled();
	errno = ETIMEDOUT;
	return -1;
}

static long
futex_wake(const uint32_t *word)
{
	struct object *q = futex_queue(word);
	struct op op = { .at = MODEL_SITE("futex wake"), .needs_drain = true, .is_blind = true };

	op_touch(&op, q, true);
	model_step(&op);
	q->wakes++;
	return 0;
}

long
model_syscall(long nr, ...)
{
	const struct timespec *timeout;
	const uint32_t *word;
	uint32_t val;
	va_list ap;
	int op;

	va_start(ap, nr);
	word = va_arg(ap, const uint32_t *);
	op = va_arg(ap, int) & FUTEX_CMD_MASK;
	val = va_arg(ap, uint32_t);
	timeout = va_arg(ap, const struct timespec *);
	va_end(ap);
	if (nr != SYS_futex || (op != FUTEX_WAIT && op != FUTEX_WAKE))
		model_fail(__FILE__, __LINE__, "system call %ld is not modelled", nr);
	if (is_outside())
		return 0;
	return op == FUTEX_WAIT ? futex_wait(word, val, timeout != NULL) : futex_wake(word);
}

/* ---- threads ---- */

int
model_sched_yield(void)
{
	model_relax(MODEL_SITE("sched_yield"));
	return 0;
}

int
model_getpriority(int which, unsigned who)
{
	(void)which;
	(void)who;
	return 0;
}

int
model_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	(void)attr;
	*t = (pthread_t)model_spawn(fn, arg) + 1;
	return 0;
}

static bool
has_ended(struct op *op)
{
	return model_threads[op->value].state == THREAD_ENDED;
}

int
model_pthread_join(pthread_t t, void **ret)
{
	struct op op = { .at = MODEL_SITE("pthread_join"),
		.needs_drain = true,
		.is_ready = has_ended,
		.value = (uint64_t)t - 1 };

	(void)ret;
	if (!is_outside())
		model_step(&op);
	return 0;
}

int
model_pthread_setname_np(pthread_t t, const char *name)
{
	(void)t;
	(void)name;
	return 0;
}

int
model_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	(void)how;
	(void)set;
	(void)old;
	return 0;
}

/* Once a run. */
int
model_pthread_once(pthread_once_t *once, void (*fn)(void))
{
	unsigned i;

	for (i = 0; i < n_onces; i++) {
		if (onces[i] == once)
			return 0;
	}
	if (n_onces == KEYS_MAX)
		model_fail(__FILE__, __LINE__, "too many pthread_once_t");
	onces[n_onces++] = once;
	fn();
	return 0;
}

int
model_pthread_key_create(pthread_key_t *key, void (*fn)(void *))
{
	(void)fn;
	if (n_keys == KEYS_MAX)
		model_fail(__FILE__, __LINE__, "too many pthread_key_t");
	*key = n_keys++;
	return 0;
}

void *
model_pthread_getspecific(pthread_key_t key)
{
	return is_outside() ? NULL : model_threads[model_current].specific[key];
}

int
model_pthread_setspecific(pthread_key_t key, const void *v)
{
	if (!is_outside())
		model_threads[model_current].specific[key] = (void *)(uintptr_t)v;
	return 0;
}

/* Nobody is cancelled here. */
int
model_pthread_setcancelstate(int state, int *old)
{
	(void)state;
	if (old != NULL)
		if (old != NULL)
		*old = PTHREAD_CANCEL_ENABLE;
	return 0;
}

int
model_pthread_setcanceltype(int type, int *old)
{
	(void)type;
	if (old != NULL)
		if (old != NULL)
		*old = PTHREAD_CANCEL_DEFERRED;
	return 0;
}

/* ---- locks: the address is the lock, its content is not looked at ---- */

static bool
lock_is_free(struct op *op)
{
	return op->access[0].o->owner == 0;
}

static void
lock_step(const volatile void *m, const struct model_site *at)
{
	struct op op = { .at = at, .needs_drain = true, .is_ready = lock_is_free, .is_blind = true,
		.lock = LOCK_TAKE };

	if (is_outside())
		return;
	op_touch(&op, model_object((uintptr_t)m), true);
	model_step(&op);
	op.access[0].o->owner = model_current + 1;
}

static void
unlock_step(const volatile void *m, const struct model_site *at)
{
	struct op op = { .at = at, .needs_drain = true, .is_blind = true, .lock = LOCK_RELEASE };

	if (is_outside())
		return;
	op_touch(&op, model_object((uintptr_t)m), true);
	model_step(&op);
	if (op.access[0].o->owner != model_current + 1)
		model_fail(
		    __FILE__, __LINE__, "a lock is let go by a thread that does not hold it");
	op.access[0].o->owner = 0;
}

int
model_pthread_mutex_lock(pthread_mutex_t *m)
{
	lock_step(m, MODEL_SITE("mutex lock"));
	return 0;
}

int
model_pthread_mutex_trylock(pthread_mutex_t *m)
{
	struct op op = { .at = MODEL_SITE("mutex trylock"), .needs_drain = true, .lock = LOCK_TRY };

	if (is_outside())
		return 0;
	op_touch(&op, model_object((uintptr_t)m), true);
	model_step(&op);
	if (op.access[0].o->owner != 0)
		return EBUSY;
	op.access[0].o->owner = model_current + 1;
	return 0;
}

int
model_pthread_mutex_unlock(pthread_mutex_t *m)
{
	unlock_step(m, MODEL_SITE("mutex unlock"));
	return 0;
}

int
model_pthread_spin_lock(pthread_spinlock_t *m)
{
	lock_step(m, MODEL_SITE("spin lock"));
	return 0;
}

int
model_pthread_spin_unlock(pthread_spinlock_t *m)
{
	unlock_step(m, MODEL_SITE("spin unlock"));
	return 0;
}

/* ---- memory ---- */

void *
model_aligned_alloc(size_t align, size_t n)
{
	size_t at = (arena_used + sizeof(struct piece) + align - 1) / align * align;
	struct piece *p;

	if (at + n > ARENA_BYTES)
		return NULL;
	arena_used = at + n;
	p = (struct piece *)(void *)(arena + at) - 1;
	p->size = n;
	return arena + at;
}

void *
model_malloc(size_t n)
{
	return model_aligned_alloc(16, n);
}

void *
model_calloc(size_t n, size_t size)
{
	void *p = model_malloc(n * size);

	if (p != NULL)
		memset(p, 0, n * size);
	return p;
}

void
model_free(void *p)
{
	if (p != NULL)
		memset(p, FREED, ((struct piece *)p - 1)->size);
}
