/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files that read the configuration (config.c, config_keys.c). */
#ifndef RUNTIME_CONFIG_PRIV_H
#define RUNTIME_CONFIG_PRIV_H

#include <stdbool.h>
#include <stdio.h>

#include "runtime/config.h"

/* One reading of a file or of one override. */
struct config_reading {
	struct config *c;
	const char *path; /* NULL: an override */
	FILE *file;
	int line;
	int rc; /* first failure */
	char *err;
	size_t err_size;
	bool args_seen; /* [eal] args= of this file: the next one adds */
	bool addrs_seen[CONFIG_MAX_PORTS];
};

struct config_key {
	const char *name;
	/* 0; -EINVAL: not what is expected; -ENOSPC: too many. */
	int (*set)(struct config_reading *r, struct config_port *p, const char *value);
	const char *expect;
};

/* Ended by an entry without name. */
extern const struct config_key config_stack_keys[];
extern const struct config_key config_eal_keys[];
extern const struct config_key config_port_keys[];

/* "10.0.0.2/24" or "10.0.0.2" (a host: all bits). 0 or -EINVAL. */
int config_parse_addr(const char *text, struct config_addr *ret_addr);

#endif
