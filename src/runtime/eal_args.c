/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What darter tells EAL, and what it cleans up after processes that were killed. No DPDK call is
 * made here, so that the rules can be tested anywhere.
 *
 * Without huge pages EAL takes all its memory at the start (-m); pages are only touched when used,
 * but each costs a descriptor, so the size follows the configuration instead of being generous.
 * --in-memory and --no-shconf keep files out of hugetlbfs and the run-time directory; EAL still
 * makes that directory, empty.
 */
#define _GNU_SOURCE 1 /* sched_getaffinity */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "runtime/config.h"
#include "runtime/eal.h"

#define PKT_SLOT_BYTES 2560     /* mbuf, struct pkt, head room, data room, pool header */
#define NETISR_BYTES (1u << 20) /* pool cache, driver queues */
#define DRIVER_BYTES (64u << 20)
#define MEMORY_MIN_MIB 256
#define STALE_PREFIX "darter_"

uint64_t
eal_need_bytes(const struct config *c)
{
	return (uint64_t)c->packets * PKT_SLOT_BYTES + (uint64_t)c->netisrs * NETISR_BYTES +
	       DRIVER_BYTES;
}

static PRINTF_LIKE(2, 3) int
add_arg(struct eal_args *a, const char *fmt, ...)
{
	size_t room = sizeof(a->text) - a->used;
	va_list ap;
	int n;

	if (a->argc == EAL_ARGS_MAX)
		return -ENOSPC;
	va_start(ap, fmt);
	n = vsnprintf(a->text + a->used, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room)
		return -ENOSPC;
	a->argv[a->argc++] = a->text + a->used;
	a->argv[a->argc] = NULL;
	a->used += (size_t)n + 1;
	return 0;
}

/* Adds the operator's words; quotes keep blanks in a word. */
static int
add_words(struct eal_args *a, const char *text)
{
	char word[1024];
	size_t n = 0;
	char quote = '\0';
	bool in_word = false;

	for (const char *p = text;; p++) {
		if (*p == '\0' || (quote == '\0' && isspace((unsigned char)*p))) {
			word[n] = '\0';
			if (in_word && add_arg(a, "%s", word) != 0)
				return -ENOSPC;
			in_word = false;
			n = 0;
			if (*p == '\0')
				return quote == '\0' ? 0 : -EINVAL;
		} else if (*p == quote) {
			quote = '\0';
		} else if (quote == '\0' && (*p == '"' || *p == '\'')) {
			quote = *p;
			in_word = true;
		} else if (n + 1 < sizeof(word)) {
			word[n++] = *p;
			in_word = true;
		} else {
			return -ENOSPC;
		}
	}
}

/* True when the operator's text has a word that begins with one of the (blank-separated) options.
 */
static bool
has_option(const char *text, const char *options)
{
	char list[256];
	char *save = NULL;

	snprintf(list, sizeof(list), "%s", options);
	for (char *opt = strtok_r(list, " ", &save); opt != NULL;
	     opt = strtok_r(NULL, " ", &save)) {
		for (const char *p = strstr(text, opt); p != NULL; p = strstr(p + 1, opt)) {
			char end = p[strlen(opt)];
			bool is_whole = opt[1] != '-' || end == '\0' || end == '=' ||
					isspace((unsigned char)end);

			if ((p == text || isspace((unsigned char)p[-1])) && is_whole)
				return true;
		}
	}
	return false;
}

/* What a word that EAL does not know would do to a process: print pages to its standard output. */
static bool
is_eal_option(const char *word)
{
	static const char *const names[] = {
		"allow",
		"base-virtaddr",
		"block",
		"create-uio-dev",
		"file-prefix",
		"force-max-simd-bitwidth",
		"huge-dir",
		"huge-unlink",
		"in-memory",
		"iova-mode",
		"lcores",
		"legacy-mem",
		"log-level",
		"main-lcore",
		"match-allocations",
		"mbuf-pool-ops-name",
		"no-hpet",
		"no-huge",
		"no-pci",
		"no-shconf",
		"no-telemetry",
		"proc-type",
		"single-file-segments",
		"socket-limit",
		"socket-mem",
		"syslog",
		"telemetry",
		"trace",
		"trace-bufsz",
		"trace-dir",
		"trace-mode",
		"vdev",
		"vfio-intr",
		"vfio-vf-token",
		"vmware-tsc-map",
	};
	size_t len;

	if (word[0] != '-')
		return true; /* the value of the word before */
	if (word[1] != '-')
		return word[1] != '\0' && strchr("abcdlmnrsSv", word[1]) != NULL;
	word += 2;
	len = strcspn(word, "=");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strlen(names[i]) == len && strncmp(names[i], word, len) == 0)
			return true;
	}
	return false;
}

static int
check_words(const struct eal_args *a, int first, char *err, size_t err_size)
{
	for (int i = first; i < a->argc; i++) {
		if (!is_eal_option(a->argv[i])) {
			snprintf(err, err_size,
			    "[eal] args: %.80s is not an EAL argument; see DPDK's Linux guide",
			    a->argv[i]);
			return -EINVAL;
		}
		if (strcmp(a->argv[i], "--proc-type=secondary") == 0) {
			snprintf(err, err_size,
			    "[eal] args: darter cannot be a DPDK secondary process; remove "
			    "--proc-type");
			return -EINVAL;
		}
	}
	return 0;
}

static int
add_memory(struct eal_args *a, const struct config *c, uint64_t free_huge_bytes, char *err,
    size_t err_size)
{
	uint64_t need = eal_need_bytes(c);
	uint64_t mib = need * 2 >> 20;

	if (c->hugepages == CONFIG_HUGEPAGES_YES && free_huge_bytes < need) {
		snprintf(err, err_size,
		    "[eal] hugepages: %llu MiB needed, %llu MiB free; raise vm.nr_hugepages or set "
		    "eal.hugepages=no",
		    (unsigned long long)(need >> 20), (unsigned long long)(free_huge_bytes >> 20));
		return -ENOMEM;
	}
	a->is_huge = c->hugepages != CONFIG_HUGEPAGES_NO && free_huge_bytes >= need;
	if (a->is_huge)
		return add_arg(a, "--in-memory");
	if (mib < MEMORY_MIN_MIB)
		mib = MEMORY_MIN_MIB;
	if (add_arg(a, "--no-huge") != 0 || add_arg(a, "--no-shconf") != 0 || add_arg(a, "-m") != 0)
		return -ENOSPC;
	return add_arg(a, "%llu", (unsigned long long)mib);
}

static int
add_devices(struct eal_args *a, const struct config *c)
{
	for (unsigned i = 0; i < c->n_ports; i++) {
		const char *device = c->ports[i].device;

		if (!config_device_is_pci(device))
			continue;
		a->has_pci = true;
		if (add_arg(a, "-a") != 0 || add_arg(a, "%s", device) != 0)
			return -ENOSPC;
	}
	if (a->has_pci)
		return 0;
	/* No device sees physical addresses. */
	if (add_arg(a, "--no-pci") != 0)
		return -ENOSPC;
	return has_option(c->eal_args, "--iova-mode") ? 0 : add_arg(a, "--iova-mode=va");
}

/* DPDK's level for ours; never below warnings, which error messages quote. */
static int
dpdk_level(int level)
{
	switch (level) {
	case LOG_LVL_NOTICE:
		return 6;
	case LOG_LVL_INFO:
		return 7;
	case LOG_LVL_DEBUG:
		return 8;
	default:
		return 5;
	}
}

int
eal_args_build(struct eal_args *a, const struct config *c, const char *cpu_list,
    uint64_t free_huge_bytes, char *err, size_t err_size)
{
	const char *user = c->eal_args;
	int rc, first_user;

	memset(a, 0, sizeof(*a));
	rc = add_arg(a, "darter");
	if (rc == 0 && !has_option(user, "--lcores --coremask -l -c"))
		rc = add_arg(a, "--lcores=0@(%s)", cpu_list);
	if (rc == 0 && !has_option(user, "--file-prefix"))
		rc = add_arg(a, "--file-prefix=" STALE_PREFIX "%d", (int)getpid());
	if (rc == 0 && !has_option(user, "--telemetry --no-telemetry"))
		rc = add_arg(a, "--no-telemetry");
	if (rc == 0 &&
	    !has_option(user, "--no-huge --in-memory --legacy-mem --socket-mem --huge-dir -m")) {
		rc = add_memory(a, c, free_huge_bytes, err, err_size);
		if (rc == -ENOMEM)
			return rc;
	}
	if (rc == 0 && has_option(user, "--allow --block --no-pci -a -b -w"))
		a->has_pci = !has_option(user, "--no-pci");
	else if (rc == 0)
		rc = add_devices(a, c);
	if (rc == 0 && !has_option(user, "--log-level"))
		rc = add_arg(a, "--log-level=%d", dpdk_level(c->log_level));
	first_user = a->argc;
	if (rc == 0)
		rc = add_words(a, user);
	if (rc == 0)
		return check_words(a, first_user, err, err_size);
	snprintf(err, err_size, "[eal] args: %s",
	    rc == -EINVAL ? "a quote is not closed" : "too long; at most 64 words of 1023 bytes");
	return rc;
}

uint64_t
eal_free_huge_bytes(void)
{
	DIR *dir = opendir("/sys/kernel/mm/hugepages");
	uint64_t bytes = 0;
	struct dirent *e;

	if (dir == NULL)
		return 0;
	while ((e = readdir(dir)) != NULL) {
		unsigned long kib, n_free;
		char path[320];
		FILE *f;

		if (sscanf(e->d_name, "hugepages-%lukB", &kib) != 1)
			continue;
		snprintf(
		    path, sizeof(path), "/sys/kernel/mm/hugepages/%s/free_hugepages", e->d_name);
		f = fopen(path, "re");
		if (f == NULL)
			continue;
		if (fscanf(f, "%lu", &n_free) == 1)
			bytes += (uint64_t)n_free * kib << 10;
		fclose(f);
	}
	closedir(dir);
	return bytes;
}

int
eal_cpu_list(char *buf, size_t size)
{
	cpu_set_t set;
	size_t used = 0;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return -errno;
	buf[0] = '\0';
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		unsigned last = cpu;
		int n;

		if (!CPU_ISSET(cpu, &set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set))
			last++;
		n = snprintf(buf + used, size - used, last > cpu ? "%s%u-%u" : "%s%u",
		    used > 0 ? "," : "", cpu, last);
		if (n < 0 || (size_t)n >= size - used)
			return -ENOSPC;
		used += (size_t)n;
		cpu = last;
	}
	return 0;
}

const char *
eal_dir_base(char *buf, size_t size)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");

	if (getuid() == 0)
		snprintf(buf, size, "/var/run/dpdk");
	else
		snprintf(buf, size, "%s/dpdk", xdg != NULL ? xdg : "/tmp");
	return buf;
}

/* The pid of a run-time directory of ours whose process is gone, else 0. */
static pid_t
stale_pid(const char *name)
{
	char *end;
	long pid;

	if (strncmp(name, STALE_PREFIX, strlen(STALE_PREFIX)) != 0)
		return 0;
	pid = strtol(name + strlen(STALE_PREFIX), &end, 10);
	if (*end != '\0' || pid <= 0 || pid == getpid())
		return 0;
	return kill((pid_t)pid, 0) != 0 && errno == ESRCH ? (pid_t)pid : 0;
}

void
eal_dir_clean_stale(void)
{
	char base[256], path[600];
	DIR *dir = opendir(eal_dir_base(base, sizeof(base)));
	struct dirent *e;

	if (dir == NULL)
		return;
	while ((e = readdir(dir)) != NULL) {
		if (stale_pid(e->d_name) == 0)
			continue;
		/* Only when empty, as darter's are: never somebody's files. */
		snprintf(path, sizeof(path), "%s/%s", base, e->d_name);
		(void)rmdir(path);
	}
	closedir(dir);
}
