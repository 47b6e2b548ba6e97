/* SPDX-License-Identifier: BSD-2-Clause */
/* capture.h: finds the device; link/capture.c does the work. */
#include <stdio.h>
#include <string.h>

#include <darter/capture.h>

#include "api/api.h"
#include "link/capture.h"
#include "link/dev.h"

static struct dev *
find(struct darter_stack *s, const char *port)
{
	return strcmp(port, "lo") == 0 ? dev_loop(s) : dev_find(s, port);
}

int
darter_capture_start(struct darter_stack *s, const char *port, const char *spec, char *err,
    size_t err_size)
{
	char unused[DARTER_ERR_MAX];
	struct dev *d;
	int rc;

	if (err == NULL || err_size == 0) {
		err = unused;
		err_size = sizeof(unused);
	}
	s = api_stack(s);
	if (s == NULL) {
		snprintf(err, err_size, "capture: no stack is open; call darter_open first");
		return -ENETDOWN;
	}
	d = find(s, port);
	if (d == NULL) {
		snprintf(err, err_size,
		    "capture: no port is called %s; name one of the configuration, or lo",
		    port);
		return -ENODEV;
	}
	rc = call_enter();
	if (rc < 0) {
		snprintf(err, err_size, "capture: %s", strerror(-rc));
		return rc;
	}
	rc = capture_start(d, spec, err, err_size);
	call_leave();
	return rc;
}

int
darter_capture_stop(struct darter_stack *s, const char *port)
{
	struct dev *d;
	int rc;

	s = api_stack(s);
	if (s == NULL)
		return -ENETDOWN;
	d = find(s, port);
	if (d == NULL)
		return -ENODEV;
	rc = call_enter();
	if (rc < 0)
		return rc;
	rc = capture_stop(d);
	call_leave();
	return rc;
}
