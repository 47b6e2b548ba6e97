/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Formats log lines for the application's sink.
 *
 * One call gives one line: it is cut to LOG_LINE_MAX_BYTES, and control characters, which may come
 * from a peer or a file, become '?', so that nobody can forge a line. No lock, no I/O: the sink
 * does what it wants with the text.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"

static const char *const level_names[] = {
	[LOG_LVL_ERR] = "err",
	[LOG_LVL_WARN] = "warn",
	[LOG_LVL_NOTICE] = "notice",
	[LOG_LVL_INFO] = "info",
	[LOG_LVL_DEBUG] = "debug",
};

STATIC_ASSERT(ARRAY_LEN(level_names) == LOG_LVL_MAX, "a name for each level");

const char *
log_level_name(int level)
{
	return level >= 0 && level < LOG_LVL_MAX ? level_names[level] : "?";
}

void
log_vwrite(const struct log_sink *sink, enum log_level level, const char *fmt, va_list ap)
{
	char line[LOG_LINE_MAX_BYTES];
	char *c;
	int n;

	if (sink == NULL || sink->write == NULL || (int)level > sink->max_level)
		return;
	n = vsnprintf(line, sizeof(line), fmt, ap);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof(line))
		memcpy(line + sizeof(line) - 4, "...", 4);
	for (c = line; *c != '\0'; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	sink->write(sink->arg, (int)level, line);
}

void
log_write(const struct log_sink *sink, enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_vwrite(sink, level, fmt, ap);
	va_end(ap);
}
