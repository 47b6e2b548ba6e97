/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bringing DPDK's EAL up inside somebody else's process, and living in it as a guest.
 *
 * rte_eal_init pins its caller, so it runs in a thread of its own (eal_run), with all signals
 * blocked, and the threads that it starts inherit that. An EAL that is already up is the
 * application's: its log stream and levels are left alone. Ours logs to the sink of the stack that
 * joined last, but never from a thread that holds a netisr (the sink is application code): those
 * lines are dropped, since the packet path counts what it loses.
 *
 * EAL cannot be cleaned up and started again in one process, and its memory may be in use by
 * threads that outlive main(), so it is never cleaned up; nothing of it outlives the process: no
 * shared files, no hugepage files (eal_args.c), and the empty run-time directory is removed at
 * once.
 *
 * One mutex guards the process-wide state; it is taken at start-up, at the end and for log lines,
 * never on the packet path.
 */
#define _GNU_SOURCE 1 /* fopencookie */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "runtime/eal.h"
#include "runtime/netisr.h"
#include "runtime/stack.h"

/* DPDK last: its container_of gives way to ours. */
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>

enum eal_state { EAL_DOWN, EAL_OURS, EAL_APPLICATIONS };

static pthread_mutex_t eal_lock = PTHREAD_MUTEX_INITIALIZER; /* bringing up and joining */
static enum eal_state eal_state;
static bool eal_pci;

/* The log has a lock of its own: EAL writes lines while it is brought up. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *log_stream;
static const struct darter_stack *log_stack; /* whose sink gets the lines; NULL: dropped */
static char log_line[LOG_LINE_MAX_BYTES];
static size_t log_used;
static char log_first[160];
static unsigned log_marks; /* control calls under way that report failures themselves */

/* ---- threads of our own for DPDK's control calls ---- */

struct run {
	int (*fn)(void *arg);
	void *arg;
	int rc;
};

static void *
run_main(void *arg)
{
	struct run *run = arg;

	run->rc = run->fn(run->arg);
	return NULL;
}

int
eal_run(int (*fn)(void *arg), void *arg)
{
	struct run run = { .fn = fn, .arg = arg };
	sigset_t all, old;
	pthread_t thread;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, run_main, &run);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0)
		return -rc;
	pthread_join(thread, NULL);
	return run.rc;
}

/* ---- log ---- */

static enum log_level
darter_level(int dpdk_level)
{
	switch (dpdk_level) {
	case RTE_LOG_WARNING:
		return LOG_LVL_WARN;
	case RTE_LOG_NOTICE:
		return LOG_LVL_NOTICE;
	case RTE_LOG_INFO:
		return LOG_LVL_INFO;
	case RTE_LOG_DEBUG:
		return LOG_LVL_DEBUG;
	default:
		return LOG_LVL_ERR;
	}
}

/*
 * net_tap shouts about rte_flow, which darter never uses, on kernels without sch_multiq, and about
 * secondary processes, which there are none of. A run-time directory that cannot be made is not
 * missed.
 */
static bool
is_harmless(const char *line)
{
	static const char *const parts[] = { "tap_nl_dump_ext_ack", "multiq qdisc",
		"Disabling rte flow", "start req to secondary", "Error creating '",
		"runtime directory" };

	for (unsigned i = 0; i < ARRAY_LEN(parts); i++) {
		if (strstr(line, parts[i]) != NULL)
			return true;
	}
	return false;
}

/* log_lock held: hands a whole line on. */
static void
emit_line(void)
{
	int level = rte_log_cur_msg_loglevel();

	log_line[log_used] = '\0';
	log_used = 0;
	if (log_line[0] == '\0')
		return;
	if (is_harmless(log_line))
		level = RTE_LOG_DEBUG;
	if (level <= (int)RTE_LOG_WARNING && log_first[0] == '\0')
		snprintf(
		    log_first, sizeof(log_first), "%.*s", (int)sizeof(log_first) - 1, log_line);
	if (log_marks > 0 && level < (int)RTE_LOG_INFO)
		level = RTE_LOG_INFO;
	if (log_stack != NULL && netisr_current() == NULL)
		log_write(&log_stack->log, darter_level(level), "DPDK: %s", log_line);
}

static ssize_t
on_log(UNUSED void *cookie, const char *text, size_t len)
{
	pthread_mutex_lock(&log_lock);
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n')
			emit_line();
		else if (log_used + 1 < sizeof(log_line))
			log_line[log_used++] = text[i];
	}
	pthread_mutex_unlock(&log_lock);
	return (ssize_t)len;
}

static void
log_to(const struct darter_stack *s)
{
	pthread_mutex_lock(&log_lock);
	log_stack = s;
	pthread_mutex_unlock(&log_lock);
}

static int
open_log(void)
{
	cookie_io_functions_t io = { .write = on_log };

	if (log_stream != NULL)
		return 0;
	log_stream = fopencookie(NULL, "w", io);
	if (log_stream == NULL)
		return -ENOMEM;
	setvbuf(log_stream, NULL, _IOLBF, BUFSIZ);
	rte_openlog_stream(log_stream);
	return 0;
}

void
eal_log_mark(void)
{
	pthread_mutex_lock(&log_lock);
	log_first[0] = '\0';
	log_marks++;
	pthread_mutex_unlock(&log_lock);
}

void
eal_log_release(void)
{
	pthread_mutex_lock(&log_lock);
	log_marks--;
	pthread_mutex_unlock(&log_lock);
}

const char *
eal_log_first(char *buf, size_t size)
{
	pthread_mutex_lock(&log_lock);
	snprintf(buf, size, "%s", log_first);
	pthread_mutex_unlock(&log_lock);
	return buf;
}

/* ---- bringing EAL up ---- */

struct bring_up {
	struct eal_args args;
	int rte_error;
};

static int
init_eal(void *arg)
{
	struct bring_up *b = arg;

	if (rte_eal_init(b->args.argc, b->args.argv) >= 0)
		return 0;
	b->rte_error = rte_errno;
	return b->rte_error > 0 ? -b->rte_error : -EIO;
}

static int
explain_init(const struct bring_up *b, int rc, char *err, size_t err_size)
{
	char why[sizeof(log_first)];

	eal_log_first(why, sizeof(why));
	if (rc == -EALREADY)
		snprintf(err, err_size,
		    "DPDK: an earlier start in this process failed and it can be started only "
		    "once; start the program again");
	else
		snprintf(err, err_size, "DPDK: EAL does not start (%s); %s",
		    why[0] != '\0' ? why : rte_strerror(-rc),
		    b->args.is_huge ? "try eal.hugepages=no"
				    : "check eal.args and the memory limit");
	return rc;
}

static int
bring_up(const struct config *c, char *err, size_t err_size)
{
	struct bring_up *b;
	char cpus[512], base[256];
	bool had_base = access(eal_dir_base(base, sizeof(base)), F_OK) == 0;
	int rc = eal_cpu_list(cpus, sizeof(cpus));

	if (rc != 0) {
		snprintf(err, err_size, "DPDK: cannot read the CPU affinity: %s", strerror(-rc));
		return rc;
	}
	b = calloc(1, sizeof(*b));
	if (b == NULL || open_log() != 0) {
		free(b);
		snprintf(err, err_size, "DPDK: out of memory");
		return -ENOMEM;
	}
	rc = eal_args_build(&b->args, c, cpus, eal_free_huge_bytes(), err, err_size);
	if (rc == 0) {
		eal_dir_clean_stale();
		eal_log_mark();
		rc = eal_run(init_eal, b);
		if (rc != 0)
			explain_init(b, rc, err, err_size);
		eal_log_release();
	}
	if (rc == 0) {
		eal_state = EAL_OURS;
		eal_pci = b->args.has_pci;
	}
	/* Empty without shared files; with the operator's own arguments it may not be, and then
	 * stays. */
	if (rte_eal_get_runtime_dir()[0] != '\0')
		(void)rmdir(rte_eal_get_runtime_dir());
	if (!had_base)
		(void)rmdir(base);
	free(b);
	return rc;
}

/* eal_lock held. */
static int
join_or_bring_up(const struct config *c, char *err, size_t err_size)
{
	if (eal_state != EAL_DOWN)
		return 0;
	/* EAL counts its lcores when it starts; before that there are none. */
	if (rte_lcore_count() > 0 && log_stream == NULL) {
		eal_state = EAL_APPLICATIONS;
		eal_pci = rte_eal_has_pci() != 0;
		return 0;
	}
	return bring_up(c, err, err_size);
}

bool
eal_has_pci(void)
{
	return eal_pci;
}

/* ---- roles ---- */

static __thread unsigned lcore_before;

static int
register_lcore(void *arg)
{
	unsigned *ret_lcore = arg;

	if (rte_thread_register() != 0)
		return rte_errno > 0 ? -rte_errno : -ENOSPC;
	/* The id stays reserved; only this thread, which ends, gives it up. */
	*ret_lcore = rte_lcore_id();
	RTE_PER_LCORE(_lcore_id) = LCORE_ID_ANY;
	return 0;
}

static int
unregister_lcore(void *arg)
{
	RTE_PER_LCORE(_lcore_id) = *(unsigned *)arg;
	rte_thread_unregister();
	return 0;
}

int
eal_role_new(unsigned *ret_lcore)
{
	return eal_run(register_lcore, ret_lcore);
}

void
eal_role_free(unsigned lcore)
{
	eal_run(unregister_lcore, &lcore);
}

void
eal_role_enter(unsigned lcore)
{
	lcore_before = RTE_PER_LCORE(_lcore_id);
	RTE_PER_LCORE(_lcore_id) = lcore;
}

void
eal_role_leave(void)
{
	RTE_PER_LCORE(_lcore_id) = lcore_before;
}

static void
role_enter(struct netisr *n)
{
	if (n->stack->eal != NULL)
		eal_role_enter(n->lcore);
}

static void
role_leave(struct netisr *n)
{
	if (n->stack->eal != NULL)
		eal_role_leave();
}

static void
free_roles(struct darter_stack *s, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		eal_role_free(s->netisr[i]->lcore);
}

static int
new_roles(struct darter_stack *s, char *err, size_t err_size)
{
	for (unsigned i = 0; i < s->n_netisrs; i++) {
		int rc = eal_role_new(&s->netisr[i]->lcore);

		if (rc == 0)
			continue;
		free_roles(s, i);
		if (rc == -EINVAL)
			snprintf(err, err_size,
			    "DPDK: this EAL has secondary processes, then threads of others cannot "
			    "join; stop the secondary processes");
		else
			snprintf(err, err_size,
			    "DPDK: no lcore id left for netisr %u (%u in use of %d); set fewer "
			    "stack.netisrs or fewer EAL lcores",
			    i, rte_lcore_count(), RTE_MAX_LCORE);
		return rc;
	}
	return 0;
}

/* ---- stacks ---- */

int
eal_stack_init(struct darter_stack *s, char *err, size_t err_size)
{
	int rc;

	pthread_mutex_lock(&eal_lock);
	log_to(s);
	rc = join_or_bring_up(&s->config, err, err_size);
	if (rc == 0)
		rc = new_roles(s, err, err_size);
	if (rc == 0) {
		/* Netisrs of stacks without EAL pass the hooks too: s->eal tells them apart. */
		netisr_role_enter = role_enter;
		netisr_role_leave = role_leave;
		s->eal = &eal_state;
	} else {
		log_to(NULL);
	}
	pthread_mutex_unlock(&eal_lock);
	return rc;
}

void
eal_stack_fini(struct darter_stack *s)
{
	if (s->eal == NULL)
		return;
	pthread_mutex_lock(&eal_lock);
	s->eal = NULL;
	free_roles(s, s->n_netisrs);
	pthread_mutex_lock(&log_lock);
	if (log_stack == s)
		log_stack = NULL;
	pthread_mutex_unlock(&log_lock);
	pthread_mutex_unlock(&eal_lock);
}
