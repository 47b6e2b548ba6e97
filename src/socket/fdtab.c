/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptor table; see fdtab.h. Entries live in pages that are allocated when first needed and
 * never freed, so a lookup may always read them. Which indexes are taken is kept in a bitmap of
 * three levels, where a set bit says "full below": the lowest free index is three steps away
 * however many are open.
 *
 * An entry is cleared before its object is closed, and filled (generation first) after the object
 * is ready. A lookup that read an entry of which the object has been reused since notices that by
 * the generation, once it has pinned it.
 */
#include "socket/fdtab.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#define LEVELS		3
#define TOP_WORDS	(FDTAB_MAX / 64 / 64 / 64)
#define MAX_BASE	(INT_MAX - (int)FDTAB_MAX)

struct fd_entry *_Atomic fdtab_pages[FDTAB_MAX / FDTAB_PAGE];
_Atomic int fdtab_first_fd;

/* held for a few loads and stores: waiting on the CPU is cheaper than a sleep and a wake-up */
static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static uint64_t leaf[FDTAB_MAX / 64];			/* bit: index taken */
static uint64_t middle[FDTAB_MAX / 64 / 64];		/* bit: word of leaf[] full */
static uint64_t top[TOP_WORDS];				/* bit: word of middle[] full */
static uint64_t *const level[LEVELS] = { leaf, middle, top };
static _Atomic uint32_t n_taken;

int
fdtab_set_base(int base)
{
	int none = 0;

	if (base < 1 || base > MAX_BASE)
		return -EINVAL;
	if (atomic_compare_exchange_strong(&fdtab_first_fd, &none, base) || none == base)
		return 0;
	return -EBUSY;
}

static int
base_fd(void)
{
	return atomic_load_explicit(&fdtab_first_fd, memory_order_relaxed);
}

static bool
is_taken(uint32_t i)
{
	return (leaf[i / 64] >> (i % 64)) & 1;
}

static void
mark(uint32_t i)
{
	unsigned l;

	for (l = 0; l < LEVELS; l++) {
		level[l][i / 64] |= UINT64_C(1) << (i % 64);
		if (level[l][i / 64] != UINT64_MAX)
			break;
		i /= 64;
	}
	atomic_fetch_add_explicit(&n_taken, 1, memory_order_relaxed);
}

static void
unmark(uint32_t i)
{
	unsigned l;

	for (l = 0; l < LEVELS; l++) {
		level[l][i / 64] &= ~(UINT64_C(1) << (i % 64));
		i /= 64;
	}
	atomic_fetch_sub_explicit(&n_taken, 1, memory_order_relaxed);
}

/* The top level is short: word by word. */
static int64_t
find_in_top(uint32_t w)
{
	for (; w < TOP_WORDS; w++) {
		if (top[w] != UINT64_MAX)
			return (int64_t)w * 64 + __builtin_ctzll(~top[w]);
	}
	return -1;
}

/* Lowest clear bit >= from on level l, or -1. The words further right are found one level up. */
static int64_t
find_free(unsigned l, uint32_t from)
{
	uint32_t w = from / 64;
	uint64_t free_bits;
	int64_t up;

	if (from >= FDTAB_MAX >> (6 * l))
		return -1;
	free_bits = ~level[l][w] & (UINT64_MAX << (from % 64));
	if (free_bits != 0)
		return (int64_t)w * 64 + __builtin_ctzll(free_bits);
	up = l == LEVELS - 1 ? find_in_top(w + 1) : find_free(l + 1, w + 1);
	if (up < 0 || l == LEVELS - 1)
		return up;
	return up * 64 + __builtin_ctzll(~level[l][up]);
}

/* The entry of index i; its page is made if need be. NULL: out of memory. */
static struct fd_entry *
make_entry(uint32_t i)
{
	struct fd_entry *_Atomic *slot = &fdtab_pages[i / FDTAB_PAGE];
	struct fd_entry *page = atomic_load_explicit(slot, memory_order_relaxed);

	if (page == NULL) {
		page = calloc(FDTAB_PAGE, sizeof(*page));
		if (page == NULL)
			return NULL;
		atomic_store_explicit(slot, page, memory_order_release);
	}
	return &page[i % FDTAB_PAGE];
}

static int
reserve_locked(int min_fd)
{
	int64_t i;

	if (min_fd < base_fd())
		min_fd = base_fd();
	i = find_free(0, (uint32_t)(min_fd - base_fd()));
	if (i < 0)
		return -EMFILE;
	if (make_entry((uint32_t)i) == NULL)
		return -ENOMEM;
	mark((uint32_t)i);
	return base_fd() + (int)i;
}

int
fdtab_reserve(int min_fd)
{
	int fd;

	if (base_fd() == 0)
		return -ENETDOWN;
	pthread_mutex_lock(&lock);
	fd = reserve_locked(min_fd);
	pthread_mutex_unlock(&lock);
	return fd;
}

/*
 * The index is the caller's: others leave a taken one that is not open alone, so a new object needs
 * no lock. One that has descriptors already does, for its count of them.
 */
static void
install(int fd, struct fd_object *o, uint32_t generation, bool is_cloexec)
{
	struct fd_entry *e = fdtab_entry(fd);

	o->refs++;
	atomic_store_explicit(&e->generation, generation, memory_order_relaxed);
	atomic_store_explicit(&e->is_cloexec, is_cloexec, memory_order_relaxed);
	atomic_store_explicit(&e->object, fdtab_word(o), memory_order_release);
}

void
fdtab_install(int fd, struct fd_object *o, uint32_t generation, bool is_cloexec)
{
	install(fd, o, generation, is_cloexec);
}

void
fdtab_unreserve(int fd)
{
	pthread_mutex_lock(&lock);
	unmark((uint32_t)(fd - base_fd()));
	pthread_mutex_unlock(&lock);
}

/* Clears an open entry; its index stays taken. */
static void
clear_locked(struct fd_entry *e, struct fd_removed *ret_removed)
{
	struct fd_object *o = fdtab_object(atomic_load_explicit(&e->object, memory_order_relaxed));

	atomic_store_explicit(&e->object, 0, memory_order_release);
	ret_removed->object = o;
	ret_removed->was_last = --o->refs == 0;
}

static bool
is_open(const struct fd_entry *e)
{
	return e != NULL && atomic_load_explicit(&e->object, memory_order_acquire) != 0;
}

int
fdtab_remove(int fd, struct fd_removed *ret_removed)
{
	struct fd_entry *e = fdtab_entry(fd);
	int err = -EBADF;

	pthread_mutex_lock(&lock);
	if (is_open(e)) {
		clear_locked(e, ret_removed);
		unmark((uint32_t)(fd - base_fd()));
		err = 0;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

int
fdtab_dup(int fd, int min_fd, bool is_cloexec)
{
	struct fd_entry *e = fdtab_entry(fd);
	int to = -EBADF;

	if (min_fd != 0 && !fdtab_is_in_range(min_fd) && min_fd >= base_fd())
		return -EINVAL;
	pthread_mutex_lock(&lock);
	if (is_open(e)) {
		to = reserve_locked(min_fd);
		if (to >= 0)
			install(to,
			    fdtab_object(atomic_load_explicit(&e->object, memory_order_relaxed)),
			    atomic_load_explicit(&e->generation, memory_order_relaxed), is_cloexec);
	}
	pthread_mutex_unlock(&lock);
	return to;
}

static int
dup_to_locked(struct fd_entry *from, int to, bool is_cloexec, struct fd_removed *ret_removed)
{
	uint32_t i = (uint32_t)(to - base_fd());
	struct fd_entry *e;

	if (!is_open(from))
		return -EBADF;
	e = make_entry(i);
	if (e == NULL)
		return -ENOMEM;
	if (is_open(e))
		clear_locked(e, ret_removed);
	else if (is_taken(i))
		return -EBUSY;	/* another thread is about to open it, as Linux's dup2 */
	else
		mark(i);
	install(to, fdtab_object(atomic_load_explicit(&from->object, memory_order_relaxed)),
	    atomic_load_explicit(&from->generation, memory_order_relaxed), is_cloexec);
	return to;
}

int
fdtab_dup_to(int fd, int to, bool is_cloexec, struct fd_removed *ret_removed)
{
	int rc;

	ret_removed->object = NULL;
	ret_removed->was_last = false;
	if (!fdtab_is_in_range(to))
		return -EBADF;
	pthread_mutex_lock(&lock);
	rc = dup_to_locked(fdtab_entry(fd), to, is_cloexec, ret_removed);
	pthread_mutex_unlock(&lock);
	return rc;
}

bool
fdtab_next(uint32_t *cursor, int *ret_fd, struct fd_object **ret_object)
{
	while (*cursor < FDTAB_MAX) {
		uint32_t i = (*cursor)++;
		struct fd_entry *page = atomic_load_explicit(&fdtab_pages[i / FDTAB_PAGE],
		    memory_order_acquire);
		uintptr_t word;

		if (page == NULL) {
			*cursor = (i / FDTAB_PAGE + 1) * FDTAB_PAGE;
			continue;
		}
		word = atomic_load_explicit(&page[i % FDTAB_PAGE].object, memory_order_acquire);
		if (word != 0) {
			*ret_fd = base_fd() + (int)i;
			*ret_object = fdtab_object(word);
			return true;
		}
	}
	return false;
}

unsigned
fdtab_count(void)
{
	return atomic_load_explicit(&n_taken, memory_order_relaxed);
}
