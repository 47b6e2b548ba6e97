/* SPDX-License-Identifier: BSD-2-Clause */
/* Options, opening a stack and JSON strings for the subcommands. One thread. */
#include <getopt.h>
#include <string.h>

#include "commands.h"

static int
add_override(struct common *c, const char *text)
{
	if (c->n_overrides == OVERRIDES_MAX) {
		fprintf(stderr, "darter: more than %d -o options\n", OVERRIDES_MAX);
		return -1;
	}
	c->overrides[c->n_overrides++] = text;
	return 0;
}

int
common_parse(struct common *c, int argc, char **argv, const char *help, int *ret_status)
{
	static const struct option longs[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "conf", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	memset(c, 0, sizeof(*c));
	*ret_status = EXIT_USAGE;
	optind = 1;
	while ((opt = getopt_long(argc, argv, "ac:ho:j", longs, NULL)) != -1) {
		switch (opt) {
		case 'a':
			c->is_all = true;
			break;
		case 'c':
			c->conf_file = optarg;
			break;
		case 'j':
			c->is_json = true;
			break;
		case 'o':
			if (add_override(c, optarg) != 0)
				return -1;
			break;
		case 'h':
			fputs(help, stdout);
			*ret_status = 0;
			return -1;
		default:
			fprintf(stderr, "Try 'darter %s --help'.\n", argv[0]);
			return -1;
		}
	}
	return optind;
}

static void
log_line(void *arg, int level, const char *line)
{
	(void)arg;
	if (level <= DARTER_LOG_WARN)
		fprintf(stderr, "darter: %s\n", line);
}

struct darter_stack *
common_open(const struct common *c, char *err, size_t err_size)
{
	struct darter_options opts = {
		.size = sizeof(opts),
		/* Without -c the built-in defaults: the environment's file would open its ports. */
		.conf_file = c->conf_file != NULL ? c->conf_file : "/dev/null",
		.overrides = c->overrides,
		.log = log_line,
	};

	return darter_open(&opts, err, err_size);
}

void
json_string(FILE *out, const char *text)
{
	putc('"', out);
	for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p < 0x20)
			fprintf(out, "\\u%04x", *p);
		else
			putc(*p, out);
	}
	putc('"', out);
}
