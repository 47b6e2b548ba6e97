/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line and the report that the netrate programs share, and the stack's life. See
 * netrate.h; instances are in run.c.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "netrate.h"

const struct net_calls *net;

enum { OPT_CONF = 256, OPT_JSON, OPT_HELP };

static void
print_usage(const struct netrate *nr, FILE *out)
{
	fprintf(out, "%s %s [-K] [-A] [--json] [--conf file] [-o section.key=value]...\n"
	    "-i: threads on darter, processes on the kernel. -K: the kernel's sockets.\n"
	    "-A: instance n runs netisr n itself, as far as there are netisrs.\n",
	    nr->program, nr->usage);
}

void
netrate_usage(const struct netrate *nr)
{
	print_usage(nr, stderr);
	exit(2);
}

unsigned long
netrate_number(const char *option, const char *text, unsigned long min, unsigned long max)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || *text == '-' || v < min || v > max)
		errx(2, "%s %s: expected a number from %lu to %lu", option, text, min, max);
	return v;
}

struct sockaddr_in
netrate_addr(const char *option, const char *text, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct in6_addr six;

	if (inet_pton(AF_INET, text, &a.sin_addr) == 1)
		return a;
	if (inet_pton(AF_INET6, text, &six) == 1)
		errx(2, "%s %s: IPv6 is not supported, give an IPv4 address", option, text);
	errx(2, "%s %s: invalid inet address", option, text);
}

/* True when the option is one that all programs have. */
static bool
take_common(struct netrate *nr, int c)
{
	switch (c) {
	case '4':
		if (nr->n_addrs == NETRATE_ADDRS_MAX)
			errx(2, "-4: at most %d addresses", NETRATE_ADDRS_MAX);
		nr->addrs[nr->n_addrs++] = netrate_addr("-4", optarg, 0);
		return true;
	case '6':
		errx(2, "-6 %s: IPv6 is not supported, use -4", optarg);
	case 'p':
		nr->port = (uint16_t)netrate_number("-p", optarg, 1, UINT16_MAX);
		return true;
	case 'i':
		nr->n_instances = (unsigned)netrate_number("-i", optarg, 1, NETRATE_INSTANCES_MAX);
		return true;
	case 'l':
		nr->seconds = (unsigned)netrate_number("-l", optarg, nr->is_server ? 0 : 1,
		    1000000);
		return true;
	case 'K':
		nr->is_kernel = true;
		return true;
	case 'A':
		nr->must_attach = true;
		return true;
	case 'o':
		if (nr->n_overrides == NETRATE_OVERRIDES_MAX)
			errx(2, "-o: at most %d times", NETRATE_OVERRIDES_MAX);
		nr->overrides[nr->n_overrides++] = optarg;
		return true;
	case 'D':	/* DragonFly's "no daemon": these servers stay in the foreground anyway */
		return nr->is_server;
	default:
		return false;
	}
}

int
netrate_getopt(struct netrate *nr, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "conf", required_argument, NULL, OPT_CONF },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "help", no_argument, NULL, OPT_HELP },
		{ NULL, 0, NULL, 0 },
	};
	char letters[64];
	int c;

	snprintf(letters, sizeof(letters), "KAo:%s%s", nr->is_server ? "D" : "", nr->letters);
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == OPT_CONF) {
			nr->conf_file = optarg;
		} else if (c == OPT_JSON) {
			nr->is_json = true;
		} else if (c == OPT_HELP) {
			print_usage(nr, stdout);
			exit(0);
		} else if (c == '?') {
			netrate_usage(nr);
		} else if (!take_common(nr, c)) {
			return c;
		}
	}
	if (nr->is_kernel && (nr->must_attach || nr->n_overrides > 0 || nr->conf_file != NULL))
		errx(2, "-A, -o and --conf are about darter: not with -K");
	for (unsigned i = 0; i < nr->n_addrs; i++)
		nr->addrs[i].sin_port = htons(nr->port);
	net = nr->is_kernel ? &net_kernel : &net_darter;
	return -1;
}

static void
log_line(void *arg, int level, const char *line)
{
	const struct netrate *nr = arg;

	if (level <= DARTER_LOG_WARN)
		fprintf(stderr, "%s: %s\n", nr->program, line);
}

/*
 * The signals are blocked first: the stack's threads and all workers inherit that, so the main
 * thread alone takes them.
 */
void
netrate_begin(struct netrate *nr)
{
	struct darter_options opts = { .size = sizeof(opts), .conf_file = nr->conf_file,
	    .overrides = nr->overrides, .log = log_line, .log_arg = nr };
	char why[DARTER_ERR_MAX];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (!nr->is_kernel) {
		nr->stack = darter_open(&opts, why, sizeof(why));
		if (nr->stack == NULL)
			errx(1, "%s", why);
	}
	if (nr->n_instances == 0)
		nr->n_instances = nr->must_attach ? darter_netisr_count(nr->stack) :
		    (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	nr->n_workers = nr->n_instances + nr->n_extra;
}

int
netrate_listen(const struct sockaddr_in *addr, int flags, bool must_share, bool may_fail)
{
	int fd = net->socket(AF_INET, SOCK_STREAM | flags, 0), on = 1;

	if (fd < 0)
		err(1, "socket failed");
	if (!must_share && net->setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		err(1, "setsockopt(REUSEADDR) failed");
	if (must_share && net->setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0)
		err(1, "a listener for each instance: setsockopt(REUSEPORT) failed");
	if (net->bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ||
	    net->listen(fd, NETRATE_BACKLOG) < 0) {
		if (!may_fail || errno != EADDRINUSE)
			err(1, "listen on port %u failed", ntohs(addr->sin_port));
		net->close(fd);
		errno = EADDRINUSE;
		return -1;
	}
	return fd;
}

void
netrate_say_listening(const struct netrate *nr, uint16_t port)
{
	if (!nr->is_json)
		return;
	printf("{\"program\": \"%s\", \"stack\": \"%s\", \"event\": \"listening\", \"port\": %u}\n",
	    nr->program, net->name, port);
	fflush(stdout);
}

unsigned long
netrate_sum(const struct netrate *nr, unsigned i)
{
	unsigned long sum = 0;

	for (unsigned k = 0; k < nr->n_workers; k++)
		sum += atomic_load_explicit(&nr->shared->instances[k].count[i],
		    memory_order_relaxed);
	return sum;
}

void
netrate_json(const struct netrate *nr, const struct netrate_value *values, unsigned n_values)
{
	printf("{\"program\": \"%s\", \"stack\": \"%s\", \"event\": \"end\", \"instances\": %u, "
	    "\"attached\": %s, \"seconds\": %.6f", nr->program, net->name, nr->n_instances,
	    nr->must_attach ? "true" : "false", nr->run_s);
	for (unsigned i = 0; i < NETRATE_COUNTS_MAX && nr->count_names[i] != NULL; i++)
		printf(", \"%s\": %lu", nr->count_names[i], netrate_sum(nr, i));
	for (unsigned i = 0; i < n_values; i++)
		printf(", \"%s\": %.2f", values[i].name, values[i].value);
	printf("}\n");
	fflush(stdout);
}

double
netrate_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

void
netrate_end(struct netrate *nr)
{
	if (fflush(stdout) != 0)
		err(1, "standard output");
	darter_stack_close(nr->stack);
	nr->stack = NULL;
}
