/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parsing of numbers in configuration and knobs. Stricter than strtol: the whole text must be used,
 * white space in front is refused, and overflow by the suffix is found. Pure functions.
 */
#include "runtime/numtext.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static unsigned
suffix_shift(char c)
{
	switch (c) {
	case 'k':
	case 'K':
		return 10;
	case 'm':
	case 'M':
		return 20;
	case 'g':
	case 'G':
		return 30;
	default:
		return 0;
	}
}

int
numtext_parse_u64(const char *text, uint64_t *ret_value)
{
	unsigned long long v;
	unsigned shift;
	char *end;
	int base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, base);
	if (errno == ERANGE)
		return -ERANGE;
	if (end == text || (base == 16 && end == text + 1))
		return -EINVAL;
	shift = suffix_shift(*end);
	if (shift != 0)
		end++;
	if (*end != '\0')
		return -EINVAL;
	if (shift != 0 && v > UINT64_MAX >> shift)
		return -ERANGE;
	*ret_value = (uint64_t)v << shift;
	return 0;
}

int
numtext_parse(const char *text, int64_t *ret_value)
{
	bool is_negative = text[0] == '-';
	uint64_t v;
	int rc = numtext_parse_u64(text + (is_negative ? 1 : 0), &v);

	if (rc != 0)
		return rc;
	if (v > (uint64_t)INT64_MAX)
		return -ERANGE;
	*ret_value = is_negative ? -(int64_t)v : (int64_t)v;
	return 0;
}

int
numtext_parse_bool(const char *text, bool *ret_value)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {
		{ "yes", true },
		{ "on", true },
		{ "true", true },
		{ "1", true },
		{ "no", false },
		{ "off", false },
		{ "false", false },
		{ "0", false },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(text, words[i].word) == 0) {
			*ret_value = words[i].value;
			return 0;
		}
	}
	return -EINVAL;
}
