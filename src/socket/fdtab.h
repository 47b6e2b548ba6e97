/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of descriptors, one a process, shared by all stacks: descriptor = base + index. The
 * lowest free index is given out, as POSIX asks. Looking up takes no lock; opening, duplicating and
 * closing take the table's mutex.
 *
 * An entry names an object, its kind and its generation. Objects are counted by the entries that
 * name them (`refs`, under the mutex); whoever removes the last entry closes the object.
 */
#ifndef SOCKET_FDTAB_H
#define SOCKET_FDTAB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define FDTAB_MAX	(1u << 22)	/* descriptors a process */
#define FDTAB_PAGE	1024u		/* entries that are allocated together */

enum fd_kind {
	FD_SOCK,		/* struct sock */
	FD_EVQ			/* struct evq */
};

/* What an object brings along; struct sock and struct evq embed one. */
struct fd_object {
	uint32_t refs;			/* entries; table's mutex, but for the first */
	enum fd_kind kind;
};

struct fd_entry {
	/* address of the object's fd_object, its kind in the lowest bit; 0: free */
	_Atomic uintptr_t object;
	_Atomic uint32_t generation;
	/* FD_CLOEXEC as set: darter's descriptors never survive exec */
	_Atomic uint32_t is_cloexec;
};

extern struct fd_entry *_Atomic fdtab_pages[FDTAB_MAX / FDTAB_PAGE];
extern _Atomic int fdtab_first_fd;

/*
 * The number of the first descriptor; fixed by the first caller. 0, or -EBUSY when it is fixed to
 * another one.
 */
int fdtab_set_base(int base);

/* Is fd in the range that darter's descriptors may have? */
static inline bool
fdtab_is_in_range(int fd)
{
	int base = atomic_load_explicit(&fdtab_first_fd, memory_order_acquire);

	return base != 0 && (uint32_t)fd - (uint32_t)base < FDTAB_MAX;
}

/* The entry of fd, NULL when there can be none. */
static inline struct fd_entry *
fdtab_entry(int fd)
{
	struct fd_entry *page;
	uint32_t i;

	if (unlikely(!fdtab_is_in_range(fd)))
		return NULL;
	i = (uint32_t)fd - (uint32_t)atomic_load_explicit(&fdtab_first_fd, memory_order_relaxed);
	page = atomic_load_explicit(&fdtab_pages[i / FDTAB_PAGE], memory_order_acquire);
	return likely(page != NULL) ? &page[i % FDTAB_PAGE] : NULL;
}

static inline uintptr_t
fdtab_word(const struct fd_object *o)
{
	return (uintptr_t)o | (uintptr_t)(o->kind == FD_EVQ);
}

static inline struct fd_object *
fdtab_object(uintptr_t word)
{
	return (struct fd_object *)(word & ~(uintptr_t)1);
}

static inline enum fd_kind
fdtab_kind(uintptr_t word)
{
	return word & 1 ? FD_EVQ : FD_SOCK;
}

/*
 * Takes the lowest free descriptor >= min_fd without an object yet (lookups find nothing). -EMFILE,
 * -ENOMEM, -EINVAL.
 */
int fdtab_reserve(int min_fd);

/* Gives a reserved descriptor its object, whose refs it raises. */
void fdtab_install(int fd, struct fd_object *o, uint32_t generation, bool is_cloexec);

/* Gives up a reserved descriptor. */
void fdtab_unreserve(int fd);

/* What the last entry of an object leaves to do. */
struct fd_removed {
	struct fd_object *object;
	bool was_last;		/* the caller must close the object */
};

/* Removes fd. 0, or -EBADF. */
int fdtab_remove(int fd, struct fd_removed *ret_removed);

/*
 * A second descriptor of fd's object, the lowest free one >= min_fd (0: any). -EBADF, -EMFILE,
 * -ENOMEM, -EINVAL.
 */
int fdtab_dup(int fd, int min_fd, bool is_cloexec);

/*
 * Makes `to` a descriptor of fd's object; what `to` was before is removed in the same step and
 * told. Returns `to`; -EBADF (fd not open, `to` out of range), -ENOMEM.
 */
int fdtab_dup_to(int fd, int to, bool is_cloexec, struct fd_removed *ret_removed);

/*
 * Visits the descriptors that are open, in order, from index *cursor on; false when there is none
 * left.
 */
bool fdtab_next(uint32_t *cursor, int *ret_fd, struct fd_object **ret_object);

/* Descriptors open or reserved. */
unsigned fdtab_count(void);

#endif
