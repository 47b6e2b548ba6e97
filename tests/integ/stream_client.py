# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's end of integ_stream_server: streams with their SHA-256 at both ends."""
import hashlib
import os
import socket
import struct
import threading

import lab

PORT = 8080
BLOCK_BYTES = 1 << 18


def connect(to=lab.DARTER_IP, timeout=60):
    sock = socket.create_connection((to, PORT), timeout=timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def read_line(sock):
    line = b''
    while not line.endswith(b'\n'):
        data = sock.recv(1)
        lab.check(data, f'end of stream in the closing line: {line!r}')
        line += data
    return line.decode().split()


def send_stream(sock, total, sha):
    """total bytes, no two blocks alike."""
    block = os.urandom(BLOCK_BYTES)
    for number in range(0, total, BLOCK_BYTES):
        piece = (struct.pack('!Q', number) + block[8:])[:min(BLOCK_BYTES, total - number)]
        sha.update(piece)
        sock.sendall(piece)


def receive_stream(sock, total, sha):
    buf = bytearray(BLOCK_BYTES)
    view = memoryview(buf)
    left = total
    while left:
        n = sock.recv_into(view, min(left, BLOCK_BYTES))
        lab.check(n, f'end of stream with {left} of {total} bytes missing')
        sha.update(view[:n])
        left -= n


def to_darter(total):
    """The kernel sends; both sums must be equal."""
    sha = hashlib.sha256()
    with connect() as sock:
        sock.sendall(b'sink\n')
        send_stream(sock, total, sha)
        sock.shutdown(socket.SHUT_WR)
        lab.check_equal(read_line(sock), [str(total), sha.hexdigest()],
                        'bytes and SHA-256 that darter received')
        lab.check_equal(sock.recv(1), b'', 'what follows the last line')


def from_darter(total, seed=1):
    """darter sends; both sums must be equal."""
    sha = hashlib.sha256()
    with connect() as sock:
        sock.sendall(b'source %d %d\n' % (total, seed))
        receive_stream(sock, total, sha)
        lab.check_equal(read_line(sock), [sha.hexdigest()], 'SHA-256 that darter sent')
        lab.check_equal(sock.recv(1), b'', 'what follows the last line')


def both_ways(total):
    """Every byte sent comes back, while more are sent."""
    sent, back = hashlib.sha256(), hashlib.sha256()
    failures = []
    with connect() as sock:
        sock.sendall(b'echo\n')

        def send():
            try:
                send_stream(sock, total, sent)
                sock.shutdown(socket.SHUT_WR)
            except OSError as error:
                failures.append(f'sending: {error}')

        sender = threading.Thread(target=send)
        sender.start()
        try:
            receive_stream(sock, total, back)
            line = read_line(sock)
        finally:
            sender.join(60)
        lab.check(not failures, str(failures))
        lab.check_equal(back.hexdigest(), sent.hexdigest(), 'SHA-256 of what came back')
        lab.check_equal(line, [sent.hexdigest()], 'SHA-256 that darter passed on')
