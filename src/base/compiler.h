/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compiler helpers shared by every layer: branch hints, alignment, static assertions, container_of.
 */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#define CACHELINE_BYTES 64

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define ALIGNED(n)	__attribute__((aligned(n)))
#define CACHE_ALIGNED	ALIGNED(CACHELINE_BYTES)
#define PACKED		__attribute__((packed))
#define UNUSED		__attribute__((unused))
#define COLD		__attribute__((cold, noinline))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define MUST_USE	__attribute__((warn_unused_result))

#define STATIC_ASSERT(cond, msg) _Static_assert(cond, msg)
#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

#define prefetch(p)	__builtin_prefetch(p)

/* Tells the other hardware thread that this one only polls. */
static inline void
cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	__asm__ volatile("" ::: "memory");
#endif
}

static inline uint32_t
min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t
max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static inline uint64_t
min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t
max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline size_t
min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

#endif
