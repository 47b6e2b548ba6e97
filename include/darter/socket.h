/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The POSIX-shaped socket calls: same arguments, constants, structs, results and errno as the
 * system's calls of the same name on Linux; what differs is said here. Callable from any thread,
 * several at once on one descriptor.
 *
 * Descriptors are integers from `stack.fd_base` upwards (configuration, default 1 << 20), so they
 * never collide with the kernel's; a kernel descriptor given here fails with ENOTSOCK (EBADF when
 * it is not open either). They are not inherited by exec.
 *
 * Errors of every call: EBADF not an open darter descriptor (also: closed by another thread during
 * the call); ENOTSUP in a forked child; EDEADLK from a signal handler that interrupted the library
 * at work. EINTR is returned by sleeping calls when a handler ran meanwhile, whatever SA_RESTART
 * says: the library can't restart a call by itself.
 *
 * Cancellation (pthread_cancel): calls that receive, send, accept, connect or wait for events are
 * cancellation points, whether they sleep or not. A request acts before the call has done anything,
 * or while it sleeps; what it held is given back, and bytes that it has not reported stay.
 *
 * Supported: AF_INET with SOCK_STREAM (TCP) and SOCK_DGRAM (UDP).
 */
#ifndef DARTER_SOCKET_H
#define DARTER_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <darter/darter.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes a socket in the calling thread's stack (darter_stack_use). `type` may carry SOCK_NONBLOCK
 * and SOCK_CLOEXEC. No message is sent and no netisr is chosen yet. errno: EAFNOSUPPORT,
 * EPROTONOSUPPORT, ESOCKTNOSUPPORT, EINVAL (flags), EMFILE (descriptors), ENOMEM, ENETDOWN (no open
 * stack).
 */
DARTER_API int darter_socket(int domain, int type, int protocol);

/* True for an open darter descriptor (socket or epoll). Never fails. */
DARTER_API bool darter_is_fd(int fd);

/* The first number that descriptors may have; 0 before the first stack is opened. */
DARTER_API int darter_fd_base(void);

/*
 * Port 0 draws a free port. There is no privileged range. errno: EADDRINUSE, EADDRNOTAVAIL (not an
 * address of this stack), EAFNOSUPPORT, EINVAL (bound already, wrong length), ENOTSOCK.
 */
DARTER_API int darter_bind(int fd, const struct sockaddr *addr, socklen_t len);

/*
 * An unbound socket is bound to a free port first. Calling it again changes the backlog. The
 * listener is known to all netisrs at return. backlog is clamped to 65535; 0 still lets one
 * connection wait, as on Linux. Listeners with SO_REUSEPORT on one address and port share its
 * connections; when one is closed, what waited there goes to the others. errno: EADDRINUSE, EINVAL
 * (connected), EOPNOTSUPP (not TCP).
 */
DARTER_API int darter_listen(int fd, int backlog);

/*
 * Next established connection; options are inherited from the listener, O_NONBLOCK is not (flags of
 * accept4 are SOCK_NONBLOCK and SOCK_CLOEXEC). A connection that the peer has reset meanwhile is
 * still returned and reports ECONNRESET when used, as on Linux. errno: EAGAIN (O_NONBLOCK, or
 * SO_RCVTIMEO passed), EINVAL (not listening, bad flags), EMFILE, EOPNOTSUPP (not TCP), EINTR.
 */
DARTER_API int darter_accept(int fd, struct sockaddr *addr, socklen_t *len);
DARTER_API int darter_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);

/*
 * TCP: begins a connection and waits for it, unless O_NONBLOCK, which always answers EINPROGRESS
 * first. The end of a non-blocking attempt is told by poll and SO_ERROR; the next connect says 0
 * once, then EISCONN. A sleeping connect that a signal interrupts goes on in the background
 * (EALREADY for whoever asks). After a failed attempt the descriptor may be connected again.
 * SO_SNDTIMEO bounds the wait (EINPROGRESS then).
 *
 * UDP: sets the peer; AF_UNSPEC dissolves the association (for a connected TCP socket:
 * EAFNOSUPPORT). Later errors of a UDP peer arrive exactly once, through send, receive or SO_ERROR.
 *
 * errno: ECONNREFUSED, ETIMEDOUT, ENETUNREACH, EHOSTUNREACH, EINPROGRESS, EALREADY, EISCONN,
 * ECONNABORTED (failed, and SO_ERROR has told why already), EADDRNOTAVAIL (no local port is left),
 * EAFNOSUPPORT, EINVAL, EINTR.
 */
DARTER_API int darter_connect(int fd, const struct sockaddr *addr, socklen_t len);

/*
 * Sending. TCP copies bytes into the send buffer and returns their number: all of them unless
 * O_NONBLOCK, MSG_DONTWAIT, SO_SNDTIMEO, a signal or an error cut it short after the first byte.
 * UDP sends one datagram, whole or not at all; one that does not fit the way's MTU is EMSGSIZE,
 * since this version does not send fragments.
 *
 * Flags: MSG_DONTWAIT, MSG_NOSIGNAL, MSG_MORE (TCP: as TCP_CORK for this call's bytes, until the
 * next send without it), MSG_CONFIRM and MSG_EOR (ignored). Others: EOPNOTSUPP. Ancillary data is
 * ignored. At most 1024 pieces (EMSGSIZE; writev: EINVAL). A TCP socket ignores `to`.
 *
 * errno: EAGAIN; EPIPE, with SIGPIPE to this thread unless MSG_NOSIGNAL (TCP: shut down, or never
 * connected, as on Linux); ECONNRESET and others pending on the socket, told once; EDESTADDRREQ;
 * EMSGSIZE; EACCES (broadcast without SO_BROADCAST); ENETUNREACH; EINVAL; EINTR.
 */
DARTER_API ssize_t darter_send(int fd, const void *buf, size_t len, int flags);
DARTER_API ssize_t darter_sendto(int fd, const void *buf, size_t len, int flags,
    const struct sockaddr *to, socklen_t to_len);
DARTER_API ssize_t darter_sendmsg(int fd, const struct msghdr *msg, int flags);
DARTER_API ssize_t darter_write(int fd, const void *buf, size_t len);
DARTER_API ssize_t darter_writev(int fd, const struct iovec *iov, int n_iov);

/*
 * Receiving. TCP: 1 to len bytes, 0 at the end of the stream. UDP: one datagram, what does not fit
 * is lost (MSG_TRUNC in msg_flags); a datagram may be empty. Flags: MSG_PEEK, MSG_DONTWAIT,
 * MSG_WAITALL (TCP; ignored for UDP), MSG_TRUNC (UDP: returns the real length; TCP: discards the
 * bytes, buf may be NULL), MSG_NOSIGNAL and MSG_CMSG_CLOEXEC (ignored). MSG_OOB: EINVAL.
 * MSG_ERRQUEUE: EAGAIN. Others: EOPNOTSUPP. msg_controllen becomes 0. errno: EAGAIN (O_NONBLOCK,
 * MSG_DONTWAIT, SO_RCVTIMEO), ECONNRESET, ETIMEDOUT and others pending on the socket (reported
 * once), ENOTCONN, EMSGSIZE (too many pieces), EINTR.
 */
DARTER_API ssize_t darter_recv(int fd, void *buf, size_t len, int flags);
DARTER_API ssize_t darter_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
    socklen_t *from_len);
DARTER_API ssize_t darter_recvmsg(int fd, struct msghdr *msg, int flags);
DARTER_API ssize_t darter_read(int fd, void *buf, size_t len);
DARTER_API ssize_t darter_readv(int fd, const struct iovec *iov, int n_iov);

/*
 * Copies up to count bytes of the *kernel* file in_fd to the darter TCP socket out_fd, as
 * sendfile(2): from *off (which is moved) or, off NULL, from the file position (which is moved by
 * what was sent). Returns bytes sent, 0 at end of file. errno: as darter_send and read(2).
 */
DARTER_API ssize_t darter_sendfile(int out_fd, int in_fd, off_t *off, size_t count);

/* SHUT_RD, SHUT_WR, SHUT_RDWR. errno: ENOTCONN, EINVAL. */
DARTER_API int darter_shutdown(int fd, int how);

/*
 * Closes a descriptor; the socket goes when its last descriptor does (darter_dup). Calls of other
 * threads that sleep on the socket then return EBADF. Data that was written is still delivered;
 * unread received data or SO_LINGER 0 reset the connection; SO_LINGER n waits up to n seconds (not
 * with O_NONBLOCK). Returns -1 with EBADF only.
 */
DARTER_API int darter_close(int fd);

/*
 * Another descriptor of the same socket. errno: EMFILE. dup2 replaces an open darter descriptor
 * `to`; EBADF when `to` is outside the range of darter descriptors. dup3 takes O_CLOEXEC.
 */
DARTER_API int darter_dup(int fd);
DARTER_API int darter_dup2(int fd, int to);
DARTER_API int darter_dup3(int fd, int to, int flags);

/* errno: ENOTCONN (getpeername). An address that is cut tells its full length in *len. */
DARTER_API int darter_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
DARTER_API int darter_getpeername(int fd, struct sockaddr *addr, socklen_t *len);

/*
 * SOL_SOCKET: SO_REUSEADDR, SO_REUSEPORT, SO_KEEPALIVE, SO_BROADCAST, SO_LINGER, SO_SNDBUF,
 * SO_RCVBUF (like Linux, the kernel's doubling included: reading gives twice what was set),
 * SO_RCVTIMEO, SO_SNDTIMEO, SO_RCVLOWAT, SO_DONTROUTE, SO_OOBINLINE, SO_INCOMING_CPU (below),
 * SO_PRIORITY (kept, no effect); read only: SO_ERROR, SO_TYPE, SO_PROTOCOL, SO_DOMAIN,
 * SO_ACCEPTCONN. IPPROTO_TCP: TCP_NODELAY, TCP_CORK, TCP_MAXSEG, TCP_KEEPIDLE, TCP_KEEPINTVL,
 * TCP_KEEPCNT, TCP_USER_TIMEOUT, TCP_SYNCNT, TCP_QUICKACK, TCP_DEFER_ACCEPT, TCP_INFO (read only),
 * and what the protocol adds. IPPROTO_IP: IP_TTL, IP_TOS, IP_BIND_ADDRESS_NO_PORT (TCP),
 * IP_LOCAL_PORT_RANGE (first | last << 16). errno: ENOPROTOOPT (unknown), EINVAL (length, value),
 * EDOM (timeout), ENOTSOCK.
 *
 * SO_INCOMING_CPU of a connection: the CPU of its netisr, to which a program may pin its thread:
 * the one that stack.cpus names, else the last on which the netisr ran (-1: unknown). Set on a
 * member of a SO_REUSEPORT group: connections of the netisr on that CPU go to it first.
 */
DARTER_API int darter_getsockopt(int fd, int level, int name, void *val, socklen_t *len);
DARTER_API int darter_setsockopt(int fd, int level, int name, const void *val, socklen_t len);

/*
 * F_GETFL, F_SETFL (O_NONBLOCK), F_GETFD, F_SETFD (FD_CLOEXEC, kept), F_DUPFD, F_DUPFD_CLOEXEC.
 * errno: EINVAL.
 */
DARTER_API int darter_fcntl(int fd, int cmd, ...);

/*
 * FIONREAD (bytes, or the next datagram's), FIONBIO, SIOCOUTQ (bytes not yet acknowledged). errno:
 * ENOTTY.
 */
DARTER_API int darter_ioctl(int fd, unsigned long request, ...);

#ifdef __cplusplus
}
#endif

#endif
