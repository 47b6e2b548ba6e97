/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * socket.h: each call finds and pins its socket, does its work in socket/, leaves, and turns a
 * negative errno into errno. The right to be the reader or the writer is taken together with the
 * pin, and given back with it.
 */
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>

#include <darter/socket.h>

#include "api/api.h"
#include "socket/sock.h"

#define IOV_MAX_PIECES 1024

/* ---- making and naming ---- */

static int
pick_protocol(int domain, int type, int protocol, uint8_t *ret_proto)
{
	if (domain != AF_INET)
		return -EAFNOSUPPORT;
	switch (type) {
	case SOCK_STREAM:
		*ret_proto = IPPROTO_TCP;
		break;
	case SOCK_DGRAM:
		*ret_proto = IPPROTO_UDP;
		break;
	default:
		return -ESOCKTNOSUPPORT;
	}
	return protocol == 0 || protocol == *ret_proto ? 0 : -EPROTONOSUPPORT;
}

static int
make_socket(int domain, int type, int protocol)
{
	struct darter_stack *s = stacks_current();
	int flags = type & (SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct sock *so;
	uint8_t proto;
	int rc;

	if (s == NULL)
		return -ENETDOWN;
	if (type & ~(0xf | SOCK_NONBLOCK | SOCK_CLOEXEC))
		return -EINVAL;
	type &= 0xf;
	rc = pick_protocol(domain, type, protocol, &proto);
	if (rc == 0)
		rc = sock_new(s, domain, type, proto, &so);
	if (rc < 0)
		return rc;
	atomic_store_explicit(&so->is_nonblock, (flags & SOCK_NONBLOCK) != 0, memory_order_relaxed);
	return sock_publish(so, (flags & SOCK_CLOEXEC) != 0);
}

int
darter_socket(int domain, int type, int protocol)
{
	int rc = call_enter();

	if (rc < 0)
		return api_refuse(rc);
	return (int)api_return(make_socket(domain, type, protocol));
}

bool
darter_is_fd(int fd)
{
	struct fd_entry *e = fdtab_entry(fd);

	return e != NULL && atomic_load_explicit(&e->object, memory_order_acquire) != 0;
}

int
darter_fd_base(void)
{
	return atomic_load_explicit(&fdtab_first_fd, memory_order_acquire);
}

int
darter_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sock *so;
	int rc = call_enter();

	if (rc < 0)
		return api_refuse(rc);
	rc = sock_pin(fd, 0, &so);
	if (rc == 0) {
		rc = sock_bind(so, addr, len);
		sock_unpin(so, 0);
	}
	return (int)api_return(rc);
}

int
darter_listen(int fd, int backlog)
{
	struct sock *so;
	int rc = call_enter();

	if (rc < 0)
		return api_refuse(rc);
	rc = sock_pin(fd, 0, &so);
	if (rc == 0) {
		rc = sock_listen(so, backlog);
		sock_unpin(so, 0);
	}
	return (int)api_return(rc);
}

int
darter_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	uint32_t held = USER_TX_BUSY;
	struct sock *so;
	int rc = call_enter_cancel();

	if (rc < 0)
		return api_refuse(rc);
	rc = sock_pin(fd, held, &so);
	if (rc == 0) {
		rc = sock_connect(so, addr, len, &held);
		sock_unpin(so, held);
	}
	return (int)api_return(rc);
}

int
darter_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	uint32_t held = USER_RX_BUSY;
	struct sock *so;
	int rc = call_enter_cancel();

	if (rc < 0)
		return api_refuse(rc);
	rc = sock_pin(fd, held, &so);
	if (rc == 0) {
		rc = sock_accept(so, addr, len, flags, &held);
		sock_unpin(so, held);
	}
	return (int)api_return(rc);
}

int
darter_accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return darter_accept4(fd, addr, len, 0);
}

int
darter_shutdown(int fd, int how)
{
	struct sock *so;
	int rc = call_enter();

	if (rc < 0)
		return api_refuse(rc);
	rc = sock_pin(fd, USER_TX_BUSY, &so);
	if (rc == 0) {
		rc = sock_shutdown(so, how);
		sock_unpin(so, USER_TX_BUSY);
	}
	return (int)api_return(rc);
}

static int
get_name(int fd, bool is_peer, struct sockaddr *addr, socklen_t *len)
{
	struct sock *so;
	int rc = call_enter();

	if (rc < 0)
		return api_refuse(rc);
	rc = sock_pin(fd, 0, &so);
	if (rc == 0) {
		rc = sock_name(so, is_peer, addr, len);
		sock_unpin(so, 0);
	}
	return (int)api_return(rc);
}

int
darter_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return get_name(fd, false, addr, len);
}

int
darter_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return get_name(fd, true, addr, len);
}

/* ---- sending ---- */

static ssize_t
do_send(int fd, struct sock_io *io)
{
	bool is_broken_pipe = false;
	struct sock *so;
	int64_t n = call_enter_cancel();

	if (n < 0)
		return api_refuse((int)n);
	io->held = USER_TX_BUSY;
	n = sock_pin(fd, io->held, &so);
	if (n == 0) {
		n = so->type == SOCK_STREAM ? stream_send(so, io) : dgram_send(so, io);
		is_broken_pipe = n == -EPIPE && so->type == SOCK_STREAM &&
		    !(io->flags & MSG_NOSIGNAL);
		sock_unpin(so, io->held);
	}
	n = api_return(n);
	if (is_broken_pipe) {
		pthread_kill(pthread_self(), SIGPIPE);
		errno = EPIPE;
	}
	return (ssize_t)n;
}

static ssize_t
send_to(int fd, struct sock_io *io, const struct sockaddr *to, socklen_t to_len)
{
	struct endpoint peer;
	int err;

	if (to == NULL || to_len == 0)
		return do_send(fd, io);
	/* a stream ignores the address, as on Linux */
	err = sock_addr_in(to, to_len, &peer);
	if (err == 0)
		io->to = &peer;
	else if (!darter_is_fd(fd))
		return api_refuse(-EBADF);
	else if (err != -EAFNOSUPPORT || to->sa_family != AF_UNSPEC)
		return api_refuse(err);
	return do_send(fd, io);
}

ssize_t
darter_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
    socklen_t to_len)
{
	/* the struct is the receiver's too, hence not const */
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = min_size(len,
	    SSIZE_MAX) };
	struct sock_io io = { .iov = &iov, .n_iov = 1, .flags = flags };

	return send_to(fd, &io, to, to_len);
}

ssize_t
darter_send(int fd, const void *buf, size_t len, int flags)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = min_size(len,
	    SSIZE_MAX) };
	struct sock_io io = { .iov = &iov, .n_iov = 1, .flags = flags };

	return do_send(fd, &io);
}

ssize_t
darter_write(int fd, const void *buf, size_t len)
{
	return darter_send(fd, buf, len, 0);
}

ssize_t
darter_writev(int fd, const struct iovec *iov, int n_iov)
{
	struct sock_io io = { .iov = iov, .n_iov = (size_t)n_iov };

	if (n_iov < 0 || n_iov > IOV_MAX_PIECES)
		return api_refuse(-EINVAL);
	return do_send(fd, &io);
}

ssize_t
darter_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct sock_io io = { .flags = flags };

	if (msg == NULL)
		return api_refuse(-EFAULT);
	if (msg->msg_iovlen > IOV_MAX_PIECES)
		return api_refuse(-EMSGSIZE);
	io.iov = msg->msg_iov;
	io.n_iov = msg->msg_iovlen;
	return send_to(fd, &io, msg->msg_name, msg->msg_name != NULL ? msg->msg_namelen : 0);
}

ssize_t
darter_sendfile(int out_fd, int in_fd, off_t *off, size_t count)
{
	struct sock_io io = { .held = USER_TX_BUSY };
	bool is_broken_pipe = false;
	struct sock *so;
	int64_t n = call_enter_cancel();

	if (n < 0)
		return api_refuse((int)n);
	n = sock_pin(out_fd, io.held, &so);
	if (n == 0) {
		n = sock_sendfile(so, &io, in_fd, off, count);
		is_broken_pipe = n == -EPIPE;
		sock_unpin(so, io.held);
	}
	n = api_return(n);
	if (is_broken_pipe) {
		pthread_kill(pthread_self(), SIGPIPE);
		errno = EPIPE;
	}
	return (ssize_t)n;
}

/* ---- receiving ---- */

static ssize_t
do_recv(int fd, struct sock_io *io)
{
	struct sock *so;
	int64_t n = call_enter_cancel();

	if (n < 0)
		return api_refuse((int)n);
	io->held = USER_RX_BUSY;
	n = sock_pin(fd, io->held, &so);
	if (n == 0) {
		n = so->type == SOCK_STREAM ? stream_recv(so, io) : dgram_recv(so, io);
		sock_unpin(so, io->held);
	}
	return (ssize_t)api_return(n);
}

ssize_t
darter_recv(int fd, void *buf, size_t len, int flags)
{
	struct iovec iov = { .iov_base = buf, .iov_len = min_size(len, SSIZE_MAX) };
	struct sock_io io = { .iov = &iov, .n_iov = 1, .flags = flags };

	return do_recv(fd, &io);
}

ssize_t
darter_read(int fd, void *buf, size_t len)
{
	struct iovec iov = { .iov_base = buf, .iov_len = min_size(len, SSIZE_MAX) };
	struct sock_io io = { .iov = &iov, .n_iov = 1, .is_read_call = true };

	return do_recv(fd, &io);
}

ssize_t
darter_readv(int fd, const struct iovec *iov, int n_iov)
{
	struct sock_io io = { .iov = iov, .n_iov = (size_t)n_iov, .is_read_call = true };

	if (n_iov < 0 || n_iov > IOV_MAX_PIECES)
		return api_refuse(-EINVAL);
	return do_recv(fd, &io);
}

/* Tells where a datagram came from; a stream's source is not told (length 0), as on Linux. */
static void
tell_from(const struct endpoint *from, struct sockaddr *addr, socklen_t *len)
{
	if (addr == NULL || len == NULL)
		return;
	if (from->port != 0)
		sock_addr_out(AF_INET, from, addr, len);
	else
		*len = 0;
}

ssize_t
darter_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
    socklen_t *from_len)
{
	struct iovec iov = { .iov_base = buf, .iov_len = min_size(len, SSIZE_MAX) };
	struct endpoint peer = { .port = 0 };
	struct sock_io io = { .iov = &iov, .n_iov = 1, .flags = flags, .ret_from = &peer };
	ssize_t n = do_recv(fd, &io);

	if (n >= 0)
		tell_from(&peer, from, from_len);
	return n;
}

ssize_t
darter_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct endpoint peer = { .port = 0 };
	struct sock_io io = { .flags = flags, .ret_from = &peer };
	ssize_t n;

	if (msg == NULL)
		return api_refuse(-EFAULT);
	if (msg->msg_iovlen > IOV_MAX_PIECES)
		return api_refuse(-EMSGSIZE);
	io.iov = msg->msg_iov;
	io.n_iov = msg->msg_iovlen;
	n = do_recv(fd, &io);
	if (n < 0)
		return n;
	msg->msg_flags = io.ret_flags | (flags & MSG_CMSG_CLOEXEC);
	msg->msg_controllen = 0;
	if (msg->msg_name != NULL)
		tell_from(&peer, msg->msg_name, &msg->msg_namelen);
	else
		msg->msg_namelen = 0;
	return n;
}

/* ---- options ---- */

int
darter_getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	struct sock *so;
	int rc = call_enter();

	if (rc < 0)
		return api_refuse(rc);
	rc = sock_pin(fd, 0, &so);
	if (rc == 0) {
		rc = sock_getopt(so, level, name, val, len);
		sock_unpin(so, 0);
	}
	return (int)api_return(rc);
}

int
darter_setsockopt(int fd, int level, int name, const void *val, socklen_t len)
{
	struct sock *so;
	int rc = call_enter();

	if (rc < 0)
		return api_refuse(rc);
	rc = sock_pin(fd, 0, &so);
	if (rc == 0) {
		rc = sock_setopt(so, level, name, val, len);
		sock_unpin(so, 0);
	}
	return (int)api_return(rc);
}

int
darter_ioctl(int fd, unsigned long request, ...)
{
	struct sock *so;
	void *arg;
	va_list ap;
	int rc = call_enter();

	if (rc < 0)
		return api_refuse(rc);
	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	rc = sock_pin(fd, 0, &so);
	if (rc == 0) {
		rc = sock_ioctl(so, request, arg);
		sock_unpin(so, 0);
	}
	return (int)api_return(rc);
}

/* ---- descriptors ---- */

int
darter_close(int fd)
{
	int rc = call_enter();

	/* a forked child only forgets: the connection is its parent's */
	if (rc == -ENOTSUP)
		return darter_is_fd(fd) ? 0 : api_refuse(-EBADF);
	if (rc < 0)
		return api_refuse(rc);
	return (int)api_return(fd_close(fd));
}

int
darter_dup(int fd)
{
	int rc = call_enter();

	if (rc < 0)
		return api_refuse(rc);
	return (int)api_return(fdtab_dup(fd, 0, false));
}

int
darter_dup3(int fd, int to, int flags)
{
	int rc = call_enter();

	if (rc < 0)
		return api_refuse(rc);
	if ((flags & ~O_CLOEXEC) || fd == to)
		return (int)api_return(-EINVAL);
	return (int)api_return(fd_dup_to(fd, to, (flags & O_CLOEXEC) != 0));
}

int
darter_dup2(int fd, int to)
{
	if (fd == to)
		return darter_is_fd(fd) ? to : api_refuse(-EBADF);
	return darter_dup3(fd, to, 0);
}

/* F_GETFL and F_SETFL; an epoll has no flag that could change. */
static int
status_flags(int fd, int cmd, int arg)
{
	struct sock *so;
	int rc = sock_pin(fd, 0, &so);

	if (rc == -ENOTSOCK && darter_is_fd(fd))
		return cmd == F_GETFL ? O_RDWR : 0;
	if (rc < 0)
		return rc;
	if (cmd == F_SETFL)
		atomic_store_explicit(&so->is_nonblock, (arg & O_NONBLOCK) != 0,
		    memory_order_relaxed);
	else
		rc = O_RDWR |
		    (atomic_load_explicit(&so->is_nonblock, memory_order_relaxed) ? O_NONBLOCK : 0);
	sock_unpin(so, 0);
	return rc;
}

static int
do_fcntl(int fd, int cmd, int arg)
{
	struct fd_entry *e = fdtab_entry(fd);

	if (!darter_is_fd(fd))
		return -EBADF;
	switch (cmd) {
	case F_GETFL:
	case F_SETFL:
		return status_flags(fd, cmd, arg);
	case F_GETFD:
		return atomic_load_explicit(&e->is_cloexec, memory_order_relaxed) ? FD_CLOEXEC : 0;
	case F_SETFD:
		atomic_store_explicit(&e->is_cloexec, (arg & FD_CLOEXEC) != 0,
		    memory_order_relaxed);
		return 0;
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return arg < 0 ? -EINVAL : fdtab_dup(fd, arg, cmd == F_DUPFD_CLOEXEC);
	default:
		return -EINVAL;
	}
}

int
darter_fcntl(int fd, int cmd, ...)
{
	va_list ap;
	int arg, rc = call_enter();

	if (rc < 0)
		return api_refuse(rc);
	va_start(ap, cmd);
	arg = va_arg(ap, int);
	va_end(ap);
	return (int)api_return(do_fcntl(fd, cmd, arg));
}
