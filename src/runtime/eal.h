/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DPDK's environment (EAL), of which a process has one. The first stack that needs it brings it up;
 * an EAL that the application brought up is used as it is. It stays until the process ends, since
 * EAL cannot be started twice.
 *
 * No rte_*.h here: everything but the four files that need DPDK may include this header.
 */
#ifndef RUNTIME_EAL_H
#define RUNTIME_EAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct darter_stack;

#define EAL_ARGS_MAX 64

/* ---- for stack_new ---- */

/*
 * Gives s a place in EAL: brings EAL up if need be, reserves an lcore id for each of s's netisrs
 * (netisr.lcore), sets s->eal and the hooks netisr_role_enter and netisr_role_leave. To be called
 * after the netisrs exist, before pkt_dpdk_init, when config_needs_eal(). The caller's CPU affinity
 * and signal mask stay as they are. 0, or a negative errno with one line in err and nothing left
 * behind.
 */
int eal_stack_init(struct darter_stack *s, char *err, size_t err_size);

/* Gives the lcore ids back. After the packet pool is gone. Does nothing for a stack without a
 * place. */
void eal_stack_fini(struct darter_stack *s);

/* ---- for the DPDK files ---- */

/*
 * Runs fn(arg) in a short-lived thread and returns what it returns: all signals are blocked there,
 * so that threads that a driver starts never run an application's signal handler, and nothing that
 * DPDK does to its caller touches the application's thread. Negative errno when no thread could be
 * made.
 */
int eal_run(int (*fn)(void *arg), void *arg);

/*
 * Around a control call that reports its failure itself: between mark and release DPDK's messages
 * go to the log as information only, and the first warning or error is kept for the report ("" if
 * none). One such call at a time counts.
 */
void eal_log_mark(void);
const char *eal_log_first(char *buf, size_t size);
void eal_log_release(void);

/* False when this process's EAL was started without its PCI bus. */
bool eal_has_pci(void);

/*
 * The identity that DPDK keeps per thread (lcore id, index of mempool caches) belongs to the role.
 * new reserves an id, free gives it back; enter puts it on the calling thread and remembers what
 * was there, leave restores that. 0 or a negative errno.
 */
int eal_role_new(unsigned *ret_lcore);
void eal_role_free(unsigned lcore);
void eal_role_enter(unsigned lcore);
void eal_role_leave(void);

/* ---- eal_args.c: no DPDK needed ---- */

struct eal_args {
	int argc;
	char *argv[EAL_ARGS_MAX + 1];
	char text[4096];
	size_t used;
	bool has_pci;
	bool is_huge;
};

/*
 * EAL's command line for a configuration: DPDK memory without huge pages or shared files unless
 * enough free huge pages are there (free_huge_bytes), no PCI bus unless a port names a PCI device,
 * one EAL lcore that may run on any of the CPUs in cpu_list, and the operator's arguments last;
 * those replace the ones of the same meaning. 0, or -EINVAL with one line in err.
 */
int eal_args_build(struct eal_args *a, const struct config *c, const char *cpu_list,
    uint64_t free_huge_bytes, char *err, size_t err_size);

/* Memory that a stack's packets and queues take, with room for the drivers. */
uint64_t eal_need_bytes(const struct config *c);

/* Free huge pages of the machine, all sizes. */
uint64_t eal_free_huge_bytes(void);

/* The CPUs that the calling thread may use, as "0-1,4". 0 or a negative errno. */
int eal_cpu_list(char *buf, size_t size);

/* Removes the run-time directories that processes left behind which are dead. */
void eal_dir_clean_stale(void);

/* Directory in which DPDK keeps its run-time directories for this user ("/var/run/dpdk"). Returns
 * buf. */
const char *eal_dir_base(char *buf, size_t size);

#endif
