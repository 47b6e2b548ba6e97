/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the subcommands of `darter` share. Each cmd_* gets its own argv (argv[0] is the subcommand)
 * and returns the exit status: 0, 1 when it found or hit a failure, 2 for a wrong command line.
 */
#ifndef DARTER_COMMANDS_H
#define DARTER_COMMANDS_H

#include <stdbool.h>
#include <stdio.h>

#include <darter/darter.h>

#define EXIT_USAGE 2
#define OVERRIDES_MAX 64

int cmd_bench(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_sysctl(int argc, char **argv);

/* Options that doctor, stat and sysctl have in common. */
struct common {
	const char *conf_file;                    /* -c; NULL: none, not even DARTER_CONF's */
	const char *overrides[OVERRIDES_MAX + 1]; /* -o, NULL-terminated */
	unsigned n_overrides;
	bool is_json;
	bool is_all; /* -a */
};

/*
 * Reads the options into c; `help` is printed for --help. Returns the index of the first operand,
 * or -1 when the program should end with *ret_status.
 */
int common_parse(struct common *c, int argc, char **argv, const char *help, int *ret_status);

/* Opens a stack as c says, warnings and errors going to stderr. NULL with a line in err. */
struct darter_stack *common_open(const struct common *c, char *err, size_t err_size);

/* Text as a JSON string, quotes included. */
void json_string(FILE *out, const char *text);

#endif
