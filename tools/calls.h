/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket calls as a table, so that one program runs on darter's sockets or on the kernel's.
 * Arguments, results and errno as on Linux.
 */
#ifndef TOOLS_CALLS_H
#define TOOLS_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>

struct net_calls {
	const char *name;		/* "darter", "kernel" */
	int (*socket)(int domain, int type, int protocol);
	int (*bind)(int fd, const struct sockaddr *addr, socklen_t len);
	int (*listen)(int fd, int backlog);
	int (*accept4)(int fd, struct sockaddr *addr, socklen_t *len, int flags);
	int (*connect)(int fd, const struct sockaddr *addr, socklen_t len);
	ssize_t (*send)(int fd, const void *buf, size_t len, int flags);
	ssize_t (*sendto)(int fd, const void *buf, size_t len, int flags,
	    const struct sockaddr *to, socklen_t to_len);
	ssize_t (*recv)(int fd, void *buf, size_t len, int flags);
	ssize_t (*recvfrom)(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
	    socklen_t *from_len);
	ssize_t (*sendfile)(int out_fd, int in_fd, off_t *off, size_t count);
	int (*shutdown)(int fd, int how);
	int (*close)(int fd);
	int (*getsockopt)(int fd, int level, int name, void *val, socklen_t *len);
	int (*setsockopt)(int fd, int level, int name, const void *val, socklen_t len);
	int (*set_nonblock)(int fd, bool is_on);	/* 0, or -1 and errno */
	int (*epoll_create1)(int flags);
	int (*epoll_ctl)(int ep, int op, int fd, struct epoll_event *ev);
	int (*epoll_wait)(int ep, struct epoll_event *evs, int max, int timeout_ms);
};

extern const struct net_calls net_darter, net_kernel;

#endif
