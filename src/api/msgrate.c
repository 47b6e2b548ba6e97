/* SPDX-License-Identifier: BSD-2-Clause */
/* darter_msg_rate of stats.h: checks what it is asked for, runtime/msgrate.c does it. */
#include <errno.h>

#include <darter/stats.h>

#include "api/api.h"
#include "runtime/msgrate.h"
#include "runtime/netisr.h"
#include "runtime/stack.h"
#include "socket/call.h"

int
darter_msg_rate(struct darter_stack *s, unsigned netisr, struct darter_msg_rate *rate)
{
	int rc;

	s = api_stack(s);
	if (s == NULL)
		return -ENETDOWN;
	if (netisr >= s->n_netisrs || rate->count == 0 || rate->count > MSGRATE_MAX ||
	    rate->batch == 0 || rate->batch > MSGRATE_BATCH_MAX ||
	    rate->pause_us > MSGRATE_PAUSE_MAX_US)
		return -EINVAL;
	if (s->is_manual)
		return -EOPNOTSUPP;
	if (netisr_current() != NULL)
		return -EDEADLK;
	rc = call_enter();
	if (rc < 0)
		return rc;
	msgrate_run(s->netisr[netisr], rate->count, rate->batch, rate->pause_us,
	    &rate->elapsed_ns);
	call_leave();
	return 0;
}
