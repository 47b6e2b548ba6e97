/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker: one end of a link. It pins itself, opens a stack and, with that profile, attaches to
 * its netisr (darter), or takes the namespace it is in (kernel), says that it is ready and then
 * runs slices as told.
 * Between slices it sleeps on its control socket, so that the variants do not take each other's
 * cores.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <darter/stats.h>

#include "bench.h"

void
bench_child_init(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
}

void
bench_worker_fail(const struct bench_worker *w, const char *why)
{
	struct bench_reply reply = { .failed = 1 };

	snprintf(reply.why, sizeof(reply.why), "%s", why);
	bench_msg_send(w->ctl_fd, &reply, sizeof(reply));
}

static bool
open_stack(const struct bench_worker *w, struct darter_stack **ret, char *why)
{
	struct darter_options opts = { .size = sizeof(opts), .overrides = w->overrides,
	    .conf_file = "/dev/null" };
	int rc;

	*ret = darter_open(&opts, why, BENCH_WHY_MAX);
	if (*ret == NULL)
		return false;
	darter_stack_use(*ret);
	if (w->profile != BENCH_PROFILE_ATTACHED)
		return true;
	rc = darter_attach(*ret, 0);
	if (rc == 0)
		return true;
	snprintf(why, BENCH_WHY_MAX, "darter_attach: %s", strerror(-rc));
	darter_stack_close(*ret);
	*ret = NULL;
	return false;
}

/* A server's knobs are the slice's too, before its first connection and after its last. */
static void
serve_slice(const struct bench_worker *w, struct bench_server *server, const struct bench_cmd *cmd,
    struct bench_reply *reply)
{
	struct darter_msg_rate one = { .count = 1, .batch = 1 };
	bool is_darter = w->net == &net_darter;

	if (cmd->c.kind == BENCH_RAW) {
		bench_raw_slice(w, cmd, reply);
		return;
	}
	if (is_darter && bench_knobs_set(cmd->server_knobs, reply->why) < 0)
		reply->failed++;
	/* Asleep when the knob was set, it would begin to poll with the first packet only. */
	if (w->profile == BENCH_PROFILE_PINNED && darter_msg_rate(NULL, 0, &one) < 0)
		reply->failed++;
	if (is_darter)
		bench_counters_begin(reply);
	bench_server_slice(server, cmd, w->shared, reply);
	if (is_darter)
		bench_counters_end(reply);
	if (is_darter && bench_knobs_set(cmd->server_knobs_after, reply->why) < 0)
		reply->failed++;
}

static void
serve_conductor(const struct bench_worker *w, struct bench_server *server)
{
	struct bench_reply reply;
	struct bench_cmd cmd;

	while (bench_msg_recv(w->ctl_fd, &cmd, sizeof(cmd), -1) == 0 && cmd.what !=
	    BENCH_WHAT_QUIT) {
		memset(&reply, 0, sizeof(reply));
		if (w->role == BENCH_SERVER)
			serve_slice(w, server, &cmd, &reply);
		else
			bench_client_slice(w, &cmd, &reply);
		if (bench_msg_send(w->ctl_fd, &reply, sizeof(reply)) < 0)
			break;
	}
}

void
bench_worker_run(const struct bench_worker *w)
{
	struct bench_reply ready = { 0 };
	struct darter_stack *stack = NULL;
	struct bench_server server;
	bool is_good = true;
	int rc;

	rc = w->cpu < 0 ? 0 : bench_pin(w->cpu);
	if (rc < 0) {
		is_good = false;
		snprintf(ready.why, sizeof(ready.why), "CPU %d: %s", w->cpu, strerror(-rc));
	}
	if (is_good && w->net == &net_darter)
		is_good = open_stack(w, &stack, ready.why);
	if (is_good && w->role == BENCH_SERVER)
		is_good = bench_server_init(&server, w->net, ready.why) == 0;
	if (is_good && w->role == BENCH_CLIENT && w->has_peer)
		is_good = bench_client_hello(w->net, w->server_ip, ready.why) == 0;
	ready.failed = !is_good;
	if (bench_msg_send(w->ctl_fd, &ready, sizeof(ready)) == 0 && is_good)
		serve_conductor(w, &server);
	if (stack != NULL) {
		if (w->profile == BENCH_PROFILE_ATTACHED)
			darter_detach();
		darter_stack_close(stack);
	}
}
