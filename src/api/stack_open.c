/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening and closing a stack: configuration, layers, knobs, threads; and the end of the process.
 *
 * Order: everything that can be wrong with the configuration is found before anything is touched;
 * knobs are set when the layers that own them are there and before a thread runs; the stack is
 * shown to calls last.
 *
 * exit(3): the application's descriptors are closed as the kernel would, and background threads go
 * on for up to exit_linger_ms while connections still have something to deliver; what is left then
 * is reset. Nothing is freed: other threads may be inside calls.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <darter/darter.h>

#include "api/api.h"
#include "inet/ip.h"
#include "link/dev.h"
#include "runtime/config.h"
#include "runtime/stack.h"
#include "socket/sock.h"
#include "transport/ulp.h"

static const struct layer *const layers[] = {
	&link_layer,
	&inet_layer,
	&demux_layer,
	&ulp_layer,
	&udp_layer,
	&tcp_layer,
	&sock_layer,
	NULL
};

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

/* ---- the end of the process ---- */

static void
on_exit_process(void)
{
	struct darter_stack *s;
	unsigned i;

	if (stacks_are_lost() || call_enter() < 0)
		return;
	for (i = 0; (s = stacks_get(i)) != NULL; i++)
		fd_close_stack(s);
	call_leave();
	for (i = 0; (s = stacks_get(i)) != NULL; i++) {
		if (!sock_drain(s, s->config.exit_linger_ms))
			sock_abort_all(s);
	}
}

static void
arm_exit(void)
{
	atexit(on_exit_process);
}

void
api_arm_exit(void)
{
	pthread_once(&exit_once, arm_exit);
}

/* ---- opening ---- */

static int
fail(int err, char *text, size_t size, const char *what, const char *fix)
{
	snprintf(text, size, "%s: %s; %s", what, strerror(-err), fix);
	return err;
}

static int
read_config(struct config *c, const struct darter_options *o, char *err, size_t err_size)
{
	const char *file = o->conf_file != NULL ? o->conf_file : getenv("DARTER_CONF");
	const char *const *a;
	int rc = 0;

	config_init(c);
	if (file != NULL && *file != '\0')
		rc = config_read_file(c, file, err, err_size);
	for (a = o->overrides; rc == 0 && a != NULL && *a != NULL; a++)
		rc = config_override(c, *a, err, err_size);
	return rc < 0 ? rc : config_check(c, err, err_size);
}

static int
set_knobs(struct darter_stack *s, char *err, size_t err_size)
{
	const struct config *c = &s->config;
	unsigned i;

	for (i = 0; i < c->n_sysctls; i++) {
		const struct config_sysctl *k = &c->sysctls[i];
		char why[DARTER_ERR_MAX];
		int rc = knob_set(s, k->name, k->value, why, sizeof(why));

		if (rc < 0) {
			snprintf(err, err_size, "%s: [sysctl] %s", k->where, why);
			return rc;
		}
	}
	return 0;
}

static int
start(struct darter_stack *s, char *err, size_t err_size)
{
	int rc = set_knobs(s, err, err_size);

	if (rc < 0)
		return rc;
	rc = netisr_start_keepers(s);
	if (rc < 0)
		return fail(rc, err, err_size, "background threads", "raise the limit of threads");
	rc = stacks_add(s);
	if (rc < 0)
		return fail(rc, err, err_size, "too many stacks are open", "close one first");
	api_arm_exit();
	return 0;
}

static struct darter_stack *
open_stack(const struct darter_options *o, struct config *c, int *ret_err, char *err,
    size_t err_size)
{
	struct log_sink log = { .write = o->log, .arg = o->log_arg };
	struct darter_stack *s;

	*ret_err = read_config(c, o, err, err_size);
	if (*ret_err < 0)
		return NULL;
	*ret_err = fdtab_set_base(c->fd_base);
	if (*ret_err < 0) {
		snprintf(err, err_size,
		    "stack.fd_base: %d, but the process uses %d already; use one value",
		    c->fd_base, atomic_load(&fdtab_first_fd));
		*ret_err = -EINVAL;
		return NULL;
	}
	log.max_level = c->log_level;
	s = stack_new(c, layers, NULL, &log, ret_err, err, err_size);
	if (s == NULL)
		return NULL;
	*ret_err = start(s, err, err_size);
	if (*ret_err < 0) {
		stack_free(s);
		return NULL;
	}
	return s;
}

/* Fields that this version knows; older callers have shorter structs. */
static int
copy_options(struct darter_options *to, const struct darter_options *from, char *err,
    size_t err_size)
{
	memset(to, 0, sizeof(*to));
	if (from == NULL)
		return 0;
	if (from->size < offsetof(struct darter_options, log) || from->size > 4096) {
		snprintf(err, err_size,
		    "darter_options.size: %zu; set it to sizeof(struct darter_options)",
		    from->size);
		return -EINVAL;
	}
	memcpy(to, from, min_size(from->size, sizeof(*to)));
	return 0;
}

struct darter_stack *
darter_open(const struct darter_options *opts, char *err, size_t err_size)
{
	char unused[DARTER_ERR_MAX];
	struct darter_stack *s = NULL;
	struct darter_options o;
	struct config *c;
	int rc;

	if (err == NULL || err_size == 0) {
		err = unused;
		err_size = sizeof(unused);
	}
	err[0] = '\0';
	c = malloc(sizeof(*c));
	if (c == NULL)
		rc = fail(-ENOMEM, err, err_size, "configuration", "free some memory");
	else if (stacks_are_lost())
		rc = fail(-ENOTSUP, err, err_size, "stack in a forked child", "open it after fork");
	else
		rc = copy_options(&o, opts, err, err_size);
	if (rc == 0)
		s = open_stack(&o, c, &rc, err, err_size);
	free(c);
	if (s == NULL)
		errno = -rc;
	return s;
}

int
darter_init(char *err, size_t err_size)
{
	int rc = 0;

	pthread_mutex_lock(&init_lock);
	if (stacks_current() == NULL && darter_open(NULL, err, err_size) == NULL)
		rc = -errno;
	pthread_mutex_unlock(&init_lock);
	return rc;
}

void
darter_stack_close(struct darter_stack *s)
{
	int old;

	if (s == NULL || call_enter() < 0)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	fd_close_stack(s);
	call_leave();
	if (!sock_drain(s, s->config.exit_linger_ms))
		sock_abort_all(s);
	stacks_remove(s);
	netisr_stop_keepers(s);
	stack_free(s);
	pthread_setcancelstate(old, NULL);
}
