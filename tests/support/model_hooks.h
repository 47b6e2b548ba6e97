/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Included before the source files that a model runs: what they take for C11 atomics, threads and
 * system calls becomes a step of the model's scheduler (model.h).
 *
 * The system's headers come first, then names are replaced as objects, not as functions: a struct
 * member that is called `poll` is then renamed everywhere in the program alike.
 */
#ifndef TEST_SUPPORT_MODEL_HOOKS_H
#define TEST_SUPPORT_MODEL_HOOKS_H

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/list.h"
#include "support/model.h"

/* Where a step is, for the printed schedule. */
struct model_site {
	const char *file;
	unsigned line;
	const char *what;
};

#define MODEL_SITE(text) __extension__ ({ \
	static const struct model_site model_site_ = { __FILE__, __LINE__, text }; \
	&model_site_; })

/* ---- steps ---- */

void model_load(const struct model_site *at, const volatile void *p, void *ret, size_t size);
/* is_drained: the store buffer is empty before and after (seq_cst). */
void model_store(
    const struct model_site *at, volatile void *p, const void *v, size_t size, bool is_drained);
/*
 * The caller does the operation itself right after. One that would not change the value (a
 * compare-exchange of another value than `operand`, an OR of bits that are set) counts as a read.
 */
enum model_rmw_kind {
	MODEL_RMW_ADD,
	MODEL_RMW_SUB,
	MODEL_RMW_OR,
	MODEL_RMW_AND,
	MODEL_RMW_EXCHANGE,
	MODEL_RMW_COMPARE
};
void model_rmw(const struct model_site *at, const volatile void *p, size_t size,
    enum model_rmw_kind kind, const void *operand);
void model_fence(const struct model_site *at);
void model_relax(const struct model_site *at);

/* ---- C11 atomics ---- */

#undef atomic_load
#undef atomic_load_explicit
#undef atomic_store
#undef atomic_store_explicit
#undef atomic_exchange
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak
#undef atomic_compare_exchange_weak_explicit
#undef atomic_fetch_add
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or
#undef atomic_fetch_or_explicit
#undef atomic_fetch_and
#undef atomic_fetch_and_explicit
#undef atomic_thread_fence

/* The type without _Atomic and const. */
#define MODEL_VALUE_OF(p) __typeof__((void)0, *(p))

#define atomic_load_explicit(PTR, MO) \
	__extension__({ \
		__auto_type model_lp_ = (PTR); \
		MODEL_VALUE_OF(model_lp_) model_lv_; \
		model_load(MODEL_SITE("load " #PTR), (const volatile void *)(uintptr_t)model_lp_, \
		    &model_lv_, sizeof(model_lv_)); \
		model_lv_; \
	})

#define atomic_store_explicit(PTR, VAL, MO) \
	__extension__({ \
		__auto_type model_sp_ = (PTR); \
		MODEL_VALUE_OF(model_sp_) model_sv_ = (VAL); \
		model_store(MODEL_SITE("store " #PTR), (volatile void *)(uintptr_t)model_sp_, \
		    &model_sv_, sizeof(model_sv_), (MO) == memory_order_seq_cst); \
	})

#define atomic_exchange_explicit(PTR, VAL, MO) \
	__extension__({ \
		__auto_type model_xp_ = (PTR); \
		MODEL_VALUE_OF(model_xp_) model_xv_ = (VAL), model_xo_; \
		model_rmw(MODEL_SITE("exchange " #PTR), \
		    (const volatile void *)(uintptr_t)model_xp_, sizeof(model_xv_), \
		    MODEL_RMW_EXCHANGE, &model_xv_); \
		__atomic_exchange(model_xp_, &model_xv_, &model_xo_, __ATOMIC_SEQ_CST); \
		model_xo_; \
	})

/* A weak one never fails for nothing here. */
#define atomic_compare_exchange_strong_explicit(PTR, EXPECTED, VAL, MO, MO_FAIL) \
	__extension__({ \
		__auto_type model_cp_ = (PTR); \
		MODEL_VALUE_OF(model_cp_) model_cv_ = (VAL), *model_ce_ = (EXPECTED); \
		model_rmw(MODEL_SITE("compare-exchange " #PTR), \
		    (const volatile void *)(uintptr_t)model_cp_, sizeof(model_cv_), \
		    MODEL_RMW_COMPARE, model_ce_); \
		__atomic_compare_exchange( \
		    model_cp_, model_ce_, &model_cv_, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
	})

#define MODEL_FETCH(OP, KIND, PTR, VAL) \
	__extension__({ \
		__auto_type model_fp_ = (PTR); \
		MODEL_VALUE_OF(model_fp_) model_fv_ = (MODEL_VALUE_OF(model_fp_))(VAL); \
		model_rmw(MODEL_SITE("fetch-" #OP " " #PTR), \
		    (const volatile void *)(uintptr_t)model_fp_, sizeof(model_fv_), \
		    MODEL_RMW_##KIND, &model_fv_); \
		__atomic_fetch_##OP(model_fp_, model_fv_, __ATOMIC_SEQ_CST); \
	})

#define atomic_load(PTR)		atomic_load_explicit(PTR, memory_order_seq_cst)
#define atomic_store(PTR, VAL)		atomic_store_explicit(PTR, VAL, memory_order_seq_cst)
#define atomic_exchange(PTR, VAL)	atomic_exchange_explicit(PTR, VAL, memory_order_seq_cst)
#define atomic_compare_exchange_strong(PTR, EXPECTED, VAL) \
	atomic_compare_exchange_strong_explicit( \
	    PTR, EXPECTED, VAL, memory_order_seq_cst, memory_order_seq_cst)
#define atomic_compare_exchange_weak(PTR, EXPECTED, VAL) \
	atomic_compare_exchange_strong_explicit( \
	    PTR, EXPECTED, VAL, memory_order_seq_cst, memory_order_seq_cst)
#define atomic_compare_exchange_weak_explicit(PTR, EXPECTED, VAL, MO, MO_FAIL) \
	atomic_compare_exchange_strong_explicit(PTR, EXPECTED, VAL, MO, MO_FAIL)
#define atomic_fetch_add_explicit(PTR, VAL, MO)	MODEL_FETCH(add, ADD, PTR, VAL)
#define atomic_fetch_sub_explicit(PTR, VAL, MO)	MODEL_FETCH(sub, SUB, PTR, VAL)
#define atomic_fetch_or_explicit(PTR, VAL, MO)	MODEL_FETCH(or, OR, PTR, VAL)
#define atomic_fetch_and_explicit(PTR, VAL, MO)	MODEL_FETCH(and, AND, PTR, VAL)
#define atomic_fetch_add(PTR, VAL)	MODEL_FETCH(add, ADD, PTR, VAL)
#define atomic_fetch_sub(PTR, VAL)	MODEL_FETCH(sub, SUB, PTR, VAL)
#define atomic_fetch_or(PTR, VAL)	MODEL_FETCH(or, OR, PTR, VAL)
#define atomic_fetch_and(PTR, VAL)	MODEL_FETCH(and, AND, PTR, VAL)
#define atomic_thread_fence(MO)		model_fence(MODEL_SITE("fence"))
#define cpu_relax()			model_relax(MODEL_SITE("cpu_relax"))

/* ---- thread-local variables: a section that is swapped with the coroutine ---- */

#define __thread __attribute__((section("model_tls")))

/* ---- libc ---- */

int model_eventfd(unsigned value, int flags);
int model_timerfd_create(int clock, int flags);
int model_timerfd_settime(int fd, int flags, const struct itimerspec *its, struct itimerspec *old);
int model_epoll_create1(int flags);
int model_epoll_ctl(int ep, int op, int fd, struct epoll_event *ev);
int model_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int model_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask);
ssize_t model_read(int fd, void *buf, size_t len);
ssize_t model_write(int fd, const void *buf, size_t len);
int model_close(int fd);
long model_syscall(long nr, ...);
int model_sched_yield(void);
int model_getpriority(int which, unsigned who);
int model_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int model_pthread_join(pthread_t t, void **ret);
int model_pthread_setname_np(pthread_t t, const char *name);
int model_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int model_pthread_once(pthread_once_t *once, void (*fn)(void));
int model_pthread_key_create(pthread_key_t *key, void (*fn)(void *));
void *model_pthread_getspecific(pthread_key_t key);
int model_pthread_setspecific(pthread_key_t key, const void *v);
int model_pthread_setcancelstate(int state, int *old);
int model_pthread_setcanceltype(int type, int *old);
int model_pthread_mutex_lock(pthread_mutex_t *m);
int model_pthread_mutex_trylock(pthread_mutex_t *m);
int model_pthread_mutex_unlock(pthread_mutex_t *m);
int model_pthread_spin_lock(pthread_spinlock_t *m);
int model_pthread_spin_unlock(pthread_spinlock_t *m);
void *model_malloc(size_t n);
void *model_calloc(size_t n, size_t size);
void *model_aligned_alloc(size_t align, size_t n);
void model_free(void *p);

#define eventfd			model_eventfd
#define timerfd_create		model_timerfd_create
#define timerfd_settime		model_timerfd_settime
#define epoll_create1		model_epoll_create1
#define epoll_ctl		model_epoll_ctl
#define poll			model_poll
#define ppoll			model_ppoll
#define read			model_read
#define write			model_write
#define close			model_close
#define syscall			model_syscall
#define sched_yield		model_sched_yield
#define getpriority		model_getpriority
#define pthread_create		model_pthread_create
#define pthread_join		model_pthread_join
#define pthread_setname_np	model_pthread_setname_np
#define pthread_sigmask		model_pthread_sigmask
#define pthread_once		model_pthread_once
#define pthread_key_create	model_pthread_key_create
#define pthread_getspecific	model_pthread_getspecific
#define pthread_setspecific	model_pthread_setspecific
#define pthread_setcancelstate	model_pthread_setcancelstate
#define pthread_setcanceltype	model_pthread_setcanceltype
#define pthread_mutex_lock	model_pthread_mutex_lock
#define pthread_mutex_trylock	model_pthread_mutex_trylock
#define pthread_mutex_unlock	model_pthread_mutex_unlock
#define pthread_spin_lock	model_pthread_spin_lock
#define pthread_spin_unlock	model_pthread_spin_unlock
#undef pthread_cleanup_push
#undef pthread_cleanup_pop
#define pthread_cleanup_push(fn, arg)	do { (void)(fn), (void)(arg)
#define pthread_cleanup_pop(is_run)	} while (0)

#define malloc			model_malloc
#define calloc			model_calloc
#define aligned_alloc		model_aligned_alloc
#define free			model_free

#endif
