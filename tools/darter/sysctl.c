/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `darter sysctl`: the knobs of a fresh stack (loopback only), so that names, ranges and defaults
 * are the library's own. A value that is given is set on that stack, which checks it as a program's
 * configuration would.
 */
#include <inttypes.h>
#include <string.h>

#include "commands.h"

static const char help[] =
    "usage: darter sysctl [-a] [--json] [-c FILE] [-o SECTION.KEY=VALUE]... [NAME[=VALUE]]...\n"
    "\n"
    "Lists the knobs of a stack with their values, ranges and meaning. NAME prints one;\n"
    "NAME=VALUE checks that the value would be taken. A program takes them from the section\n"
    "[sysctl] of its configuration, from -o sysctl.NAME=VALUE or from darter_sysctl_set.\n"
    "\n"
    "  -a, --all        all knobs\n"
    "  -c, --conf FILE  of a stack with this configuration (its ports are opened)\n"
    "  -o S.K=VALUE     override a key of the configuration\n"
    "      --json       as JSON\n"
    "\n"
    "Examples:\n"
    "  darter sysctl -a\n"
    "  darter sysctl net.inet.tcp.msl_ms\n"
    "  darter sysctl net.isr.borrow=never\n";

struct listing {
	bool is_json;
	unsigned count;
	const char *only; /* NULL: all */
};

static void
print_json(const struct listing *l, const struct darter_knob *k)
{
	printf(l->count == 0 ? "\n{\"name\":" : ",\n{\"name\":");
	json_string(stdout, k->name);
	printf(",\"value\":");
	json_string(stdout, k->value);
	printf(",\"default\":%" PRId64 ",\"min\":%" PRId64 ",\"max\":%" PRId64 ",\"text\":",
	    k->dflt, k->min, k->max);
	json_string(stdout, k->text);
	putchar('}');
}

static int
on_knob(void *arg, const struct darter_knob *k)
{
	struct listing *l = arg;

	if (l->only != NULL && strcmp(l->only, k->name) != 0)
		return 0;
	if (l->is_json)
		print_json(l, k);
	else
		printf("%s = %s\n    %s (%" PRId64 " to %" PRId64 ", default %" PRId64 ")\n",
		    k->name, k->value, k->text, k->min, k->max, k->dflt);
	l->count++;
	return 0;
}

/* NAME=VALUE: sets it on the fresh stack. 0, or 1 when it is refused. */
static int
check_value(struct darter_stack *s, const char *operand, const char *eq)
{
	char name[128], err[DARTER_ERR_MAX];

	if ((size_t)(eq - operand) >= sizeof(name)) {
		fprintf(stderr, "darter: %.40s…: no such knob\n", operand);
		return 1;
	}
	memcpy(name, operand, (size_t)(eq - operand));
	name[eq - operand] = '\0';
	if (darter_sysctl_set(s, name, eq + 1, err, sizeof(err)) == 0)
		return 0;
	fprintf(stderr, "darter: %s\n", err);
	return 1;
}

/* One operand. 0 or 1. */
static int
show(struct darter_stack *s, struct listing *l, char *operand)
{
	char *eq = strchr(operand, '=');
	unsigned before = l->count;

	if (eq != NULL) {
		if (check_value(s, operand, eq) != 0)
			return 1;
		*eq = '\0';
	}
	l->only = operand;
	darter_sysctl_visit(s, on_knob, l);
	if (l->count != before)
		return 0;
	fprintf(stderr, "darter: %s: no such knob; \"darter sysctl -a\" lists all\n", operand);
	return 1;
}

int
cmd_sysctl(int argc, char **argv)
{
	char err[DARTER_ERR_MAX];
	struct darter_stack *s;
	struct listing l = { 0 };
	struct common c;
	int status, first = common_parse(&c, argc, argv, help, &status);

	if (first < 0)
		return status;
	if (!c.is_all && first == argc) {
		fputs(help, stderr);
		return EXIT_USAGE;
	}
	s = common_open(&c, err, sizeof(err));
	if (s == NULL) {
		fprintf(stderr, "darter: %s\n", err);
		return 1;
	}
	status = 0;
	l.is_json = c.is_json;
	if (c.is_json)
		putchar('[');
	if (c.is_all)
		darter_sysctl_visit(s, on_knob, &l);
	for (; first < argc; first++)
		status |= show(s, &l, argv[first]);
	if (c.is_json)
		printf("%s]\n", l.count > 0 ? "\n" : "");
	darter_stack_close(s);
	return status;
}
