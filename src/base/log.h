/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines for the application's log. The library never prints: it formats a line and hands it to the
 * sink the application gave; without one the line is dropped. Not for the packet path (counters
 * are). Callable from any thread when the sink is.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>

#include "base/compiler.h"

enum log_level {
	LOG_LVL_ERR,		/* it does not work */
	LOG_LVL_WARN,		/* it works, not as asked */
	LOG_LVL_NOTICE,		/* once a start or a change by the operator */
	LOG_LVL_INFO,		/* what an operator asks for when looking */
	LOG_LVL_DEBUG,		/* what a developer asks for */
	LOG_LVL_MAX,
};

#define LOG_LINE_MAX_BYTES 512	/* longer lines are cut, "..." at the end says so */

struct log_sink {
	/* One line without newline, valid during the call. NULL drops everything. */
	void (*write)(void *arg, int level, const char *line);
	void *arg;
	int max_level;		/* lines of a higher level are not even formatted */
};

/* A NULL sink is fine. Control characters become a question mark: one call is one line. */
void log_write(const struct log_sink *sink, enum log_level level, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
void log_vwrite(const struct log_sink *sink, enum log_level level, const char *fmt, va_list ap)
    PRINTF_LIKE(3, 0);

/* "err", "warn", "notice", "info", "debug"; "?" for anything else. */
const char *log_level_name(int level);

#endif
