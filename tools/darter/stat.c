/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `darter stat`: the catalogue of counters, as the library has it, with the values of a stack that
 * it opens itself. A stack lives inside its program, where darter_counter_visit reads the same
 * names: there is no way in from another process.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <darter/stats.h>

#include "commands.h"

static const char help[] =
    "usage: darter stat [-a] [--json] [-c FILE] [-o SECTION.KEY=VALUE]... [PREFIX]...\n"
    "\n"
    "Lists the counters of a stack and what they mean: drops (one for each reason why a packet\n"
    "is lost), events (only grow) and gauges (levels). With PREFIX, those whose names begin so.\n"
    "The values are those of a stack that is opened for it: with -c or -o, what its ports meet in\n"
    "their first quarter of a second. They are printed when not 0, or with -a. The stack of a\n"
    "running program cannot be seen from outside: the program prints its counters, under these\n"
    "names, with darter_counter_visit or darter_counter_get (darter/stats.h).\n"
    "\n"
    "  -a, --all        print all values\n"
    "  -c, --conf FILE  of a stack with this configuration (its ports are opened)\n"
    "  -o S.K=VALUE     override a key of the configuration\n"
    "      --json       as JSON\n"
    "\n"
    "Examples:\n"
    "  darter stat\n"
    "  darter stat drop_tcp tcp_re\n"
    "  darter stat --json\n";

#define FIRST_MOMENTS_US	250000

struct listing {
	const struct common *c;
	char **prefixes;
	int n_prefixes;
	unsigned count;
};

static const char *
kind_name(enum darter_counter_kind kind)
{
	static const char *const names[] = { "drop", "event", "gauge" };

	return kind <= DARTER_COUNTER_GAUGE ? names[kind] : "?";
}

static bool
is_wanted(const struct listing *l, const char *name)
{
	if (l->n_prefixes == 0)
		return true;
	for (int i = 0; i < l->n_prefixes; i++) {
		if (strncmp(name, l->prefixes[i], strlen(l->prefixes[i])) == 0)
			return true;
	}
	return false;
}

static void
print_json(const struct listing *l, const struct darter_counter *k)
{
	printf(l->count == 0 ? "\n{\"name\":" : ",\n{\"name\":");
	json_string(stdout, k->name);
	printf(",\"kind\":\"%s\",\"value\":%" PRIu64 ",\"text\":", kind_name(k->kind), k->value);
	json_string(stdout, k->text);
	putchar('}');
}

static int
on_counter(void *arg, const struct darter_counter *k)
{
	struct listing *l = arg;

	if (!is_wanted(l, k->name))
		return 0;
	if (l->c->is_json)
		print_json(l, k);
	else if (l->c->is_all || k->value != 0)
		printf("%-5s %-24s %10" PRIu64 "  %s\n", kind_name(k->kind), k->name, k->value,
		    k->text);
	else
		printf("%-5s %-24s %10s  %s\n", kind_name(k->kind), k->name, "", k->text);
	l->count++;
	return 0;
}

int
cmd_stat(int argc, char **argv)
{
	char err[DARTER_ERR_MAX];
	struct darter_stack *s;
	struct common c;
	struct listing l = { .c = &c };
	int status, first = common_parse(&c, argc, argv, help, &status);

	if (first < 0)
		return status;
	s = common_open(&c, err, sizeof(err));
	if (s == NULL) {
		fprintf(stderr, "darter: %s\n", err);
		return 1;
	}
	if (c.conf_file != NULL || c.n_overrides > 0)
		usleep(FIRST_MOMENTS_US);
	l.prefixes = argv + first;
	l.n_prefixes = argc - first;
	if (c.is_json)
		putchar('[');
	darter_counter_visit(s, on_counter, &l);
	if (c.is_json)
		printf("%s]\n", l.count > 0 ? "\n" : "");
	darter_stack_close(s);
	if (l.count > 0)
		return 0;
	fprintf(stderr, "darter: no counter begins so; \"darter stat\" lists all\n");
	return 1;
}
