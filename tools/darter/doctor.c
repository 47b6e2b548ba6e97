/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `darter doctor`: looks at the machine and says what darter can use, what costs speed, and what to
 * type to change that. With a configuration it opens a stack of it, which is the only real test of
 * a device. Only a failure makes the exit status 1.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "doctor.h"

static const char help[] =
    "usage: darter doctor [--json] [-c FILE] [-o SECTION.KEY=VALUE]...\n"
    "\n"
    "Checks the machine: DPDK and its drivers, huge pages, rights, network devices, CPUs,\n"
    "clock. Each line says ok, warn (works, with less speed or fewer choices) or fail, and what\n"
    "to do. With -c or -o it also opens a stack with that configuration and closes it again.\n"
    "The exit status is 1 when something failed.\n"
    "\n"
    "  -c, --conf FILE  configuration to try\n"
    "  -o S.K=VALUE     key of the configuration to try\n"
    "      --json       as JSON\n"
    "\n"
    "Examples:\n"
    "  darter doctor\n"
    "  darter doctor -c server.conf\n"
    "  unshare -Urn darter doctor -o port.t.device=net_tap0,iface=dtap0\n";

static const char *const verdict_names[] = { "ok", "warn", "fail" };

void
report_add(
    struct report *r, enum verdict v, const char *name, const char *fix, const char *fmt, ...)
{
	struct check *c = &r->checks[r->n_checks < CHECKS_MAX ? r->n_checks++ : CHECKS_MAX - 1];
	va_list ap;

	c->verdict = v;
	snprintf(c->name, sizeof(c->name), "%s", name);
	snprintf(c->fix, sizeof(c->fix), "%s", fix != NULL ? fix : "");
	va_start(ap, fmt);
	vsnprintf(c->text, sizeof(c->text), fmt, ap);
	va_end(ap);
}

bool
read_line(const char *path, char *buf, unsigned size)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (f == NULL)
		return false;
	ok = fgets(buf, (int)size, f) != NULL;
	fclose(f);
	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	return ok;
}

long
read_number(const char *path, long missing)
{
	char line[64], *end;
	long v;

	if (!read_line(path, line, sizeof(line)))
		return missing;
	errno = 0;
	v = strtol(line, &end, 10);
	return end == line || errno != 0 ? missing : v;
}

/* A stack without devices must open everywhere. */
static void
check_loopback(struct report *r)
{
	struct common none = { 0 };
	char err[DARTER_ERR_MAX];
	struct darter_stack *s = common_open(&none, err, sizeof(err));

	if (s == NULL) {
		report_add(r, VERDICT_FAIL, "stack", err, "a stack without devices does not open");
		return;
	}
	darter_stack_close(s);
	report_add(r, VERDICT_OK, "stack", NULL, "a stack without devices opens (darter %s)",
	    darter_version());
}

/* The error line holds the reason and, behind its last "; ", the fix. */
static void
check_configuration(struct report *r, const struct common *c)
{
	char err[DARTER_ERR_MAX];
	struct darter_stack *s = common_open(c, err, sizeof(err));
	char *fix;

	if (s != NULL) {
		darter_stack_close(s);
		report_add(r, VERDICT_OK, "configuration", NULL, "a stack with it opens");
		return;
	}
	fix = strrchr(err, ';');
	if (fix != NULL) {
		*fix++ = '\0';
		fix += strspn(fix, " ");
	}
	report_add(r, VERDICT_FAIL, "configuration", fix, "%s", err);
}

static enum verdict
worst(const struct report *r)
{
	enum verdict v = VERDICT_OK;

	for (unsigned i = 0; i < r->n_checks; i++) {
		if (r->checks[i].verdict > v)
			v = r->checks[i].verdict;
	}
	return v;
}

static void
print_text(const struct report *r)
{
	for (unsigned i = 0; i < r->n_checks; i++) {
		const struct check *c = &r->checks[i];

		printf("%-4s  %-14s %s\n", verdict_names[c->verdict], c->name, c->text);
		if (c->fix[0] != '\0')
			printf("      %-14s -> %s\n", "", c->fix);
	}
}

static void
print_json(const struct report *r)
{
	printf("{\"status\":\"%s\",\"checks\":[", verdict_names[worst(r)]);
	for (unsigned i = 0; i < r->n_checks; i++) {
		const struct check *c = &r->checks[i];

		printf("%s\n{\"name\":", i == 0 ? "" : ",");
		json_string(stdout, c->name);
		printf(",\"status\":\"%s\",\"text\":", verdict_names[c->verdict]);
		json_string(stdout, c->text);
		printf(",\"fix\":");
		json_string(stdout, c->fix);
		putchar('}');
	}
	printf("\n]}\n");
}

int
cmd_doctor(int argc, char **argv)
{
	static struct report r;
	struct common c;
	int status, first = common_parse(&c, argc, argv, help, &status);

	if (first < 0)
		return status;
	if (first < argc) {
		fprintf(stderr,
		    "darter doctor: unexpected \"%s\"; configuration goes behind -c or -o\n",
		    argv[first]);
		return EXIT_USAGE;
	}
	doctor_host(&r);
	doctor_nics(&r);
	doctor_cpu(&r);
	check_loopback(&r);
	if (c.conf_file != NULL || c.n_overrides > 0)
		check_configuration(&r, &c);
	if (c.is_json)
		print_json(&r);
	else
		print_text(&r);
	return worst(&r) == VERDICT_FAIL ? 1 : 0;
}
