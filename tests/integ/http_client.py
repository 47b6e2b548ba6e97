# SPDX-License-Identifier: BSD-2-Clause
"""HTTP clients on the kernel's sockets that count what they did."""
import socket
import threading

import lab


class Counts:
    def __init__(self):
        self.connections = self.answers = self.body_bytes = 0
        self.errors = []

    def add(self, other):
        self.connections += other.connections
        self.answers += other.answers
        self.body_bytes += other.body_bytes
        self.errors += other.errors


def read_answer(sock, pending):
    """One whole answer: (status, headers, body, rest of what was received)."""
    while b'\r\n\r\n' not in pending:
        data = sock.recv(65536)
        lab.check(data, f'end of stream inside the head of an answer: {pending!r}')
        pending += data
    head, _, pending = pending.partition(b'\r\n\r\n')
    lines = head.decode('latin-1').split('\r\n')
    headers = {k.strip().lower(): v.strip() for k, v in (l.split(':', 1) for l in lines[1:])}
    length = int(headers['content-length'])
    while len(pending) < length:
        data = sock.recv(65536)
        lab.check(data, f'end of stream after {len(pending)} of {length} bytes of a body')
        pending += data
    return lines[0], headers, pending[:length], pending[length:]


def one_connection(address, n_requests, counts, timeout):
    """n requests over one connection; the last asks for its end and must see it."""
    with socket.create_connection(address, timeout=timeout) as sock:
        counts.connections += 1
        pending = b''
        for i in range(n_requests):
            is_last = i == n_requests - 1
            extra = b'Connection: close\r\n' if is_last else b''
            sock.sendall(b'GET / HTTP/1.1\r\nHost: darter\r\n' + extra + b'\r\n')
            status, _, body, pending = read_answer(sock, pending)
            lab.check(' 200 ' in status, f'status line {status}')
            lab.check(body, 'an empty body')
            counts.answers += 1
            counts.body_bytes += len(body)
        lab.check_equal(sock.recv(1), b'', 'what follows the last answer')


def load(address, connections, requests_each, threads=4, timeout=20):
    """connections × requests_each requests from a few threads. Returns Counts."""
    total = Counts()
    lock = threading.Lock()
    turns = iter(range(connections))

    def work():
        mine = Counts()
        while True:
            with lock:
                if next(turns, None) is None:
                    break
            try:
                one_connection(address, requests_each, mine, timeout)
            except (OSError, lab.Failed) as error:
                mine.errors.append(str(error))
                if len(mine.errors) > 10:
                    break
        with lock:
            total.add(mine)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return total
