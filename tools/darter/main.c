/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The darter command: finds the subcommand and runs it. `darter CMD --help` and `darter help CMD`
 * are the same.
 */
#include <string.h>

#include "commands.h"

struct command {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
	{ "bench", "measure this machine's stack against its own links and the kernel", cmd_bench },
	{ "doctor", "check this machine and a configuration, and say what to fix", cmd_doctor },
	{ "stat", "list the counters, drop reasons among them", cmd_stat },
	{ "sysctl", "list the knobs, or check values for them", cmd_sysctl },
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void
print_help(FILE *out)
{
	fputs("usage: darter COMMAND [OPTION]...\n\n", out);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
	fputs("\n"
	      "darter COMMAND --help tells more, with examples. darter --version prints the "
	      "version.\n"
	      "\n"
	      "Examples:\n"
	      "  darter doctor\n"
	      "  darter doctor -o port.tap0.device=net_tap0,iface=dtap0 -o "
	      "port.tap0.addr=10.0.0.2/24\n"
	      "  darter sysctl -a\n",
	    out);
}

static const struct command *
find_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

static int
run_command(int argc, char **argv)
{
	const struct command *c = find_command(argv[0]);

	if (c != NULL)
		return c->run(argc, argv);
	fprintf(stderr, "darter: no command \"%s\"; \"darter --help\" lists them\n", argv[0]);
	return EXIT_USAGE;
}

static int
run_help(int argc, char **argv)
{
	static char help[] = "--help";
	char *args[] = { argc > 0 ? argv[0] : NULL, help, NULL };

	if (argc > 0)
		return run_command(2, args);
	print_help(stdout);
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return run_help(argc - 2, argv + 2);
	if (strcmp(argv[1], "--version") == 0) {
		printf("darter %s\n", darter_version());
		return 0;
	}
	return run_command(argc - 1, argv + 1);
}
