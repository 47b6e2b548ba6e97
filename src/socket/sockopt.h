/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of socket options share: reading and giving values, and the functions that
 * sockopt.c's table takes from ipopt.c. All return 0 or a negative errno; `so` is pinned.
 */
#ifndef SOCKET_SOCKOPT_H
#define SOCKET_SOCKOPT_H

#include <stddef.h>
#include <sys/socket.h>

struct sock;

/* An int of the application's. -EFAULT, -EINVAL (too short). */
int sockopt_read_int(const void *val, socklen_t len, int *ret);
/* As much of `src` as fits; *len becomes what was written. -EFAULT. */
int sockopt_give(void *val, socklen_t *len, const void *src, size_t size);
int sockopt_give_int(void *val, socklen_t *len, int v);

/* ---- ipopt.c ---- */

int ipopt_set_ttl(struct sock *so, const void *val, socklen_t len);
int ipopt_get_ttl(struct sock *so, void *val, socklen_t *len);
int ipopt_set_tos(struct sock *so, const void *val, socklen_t len);
int ipopt_get_tos(struct sock *so, void *val, socklen_t *len);
int ipopt_set_port_range(struct sock *so, const void *val, socklen_t len);

#endif
