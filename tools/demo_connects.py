#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Connects COUNT times to an HTTP server, one request each, and counts.

usage: demo_connects.py ADDRESS PORT COUNT

Prints one line; exit status 0 only when every connection was accepted, answered with status 200 and
closed by the server.
"""
import socket
import sys
import threading
import time

THREADS = 4
REQUEST = b'GET / HTTP/1.1\r\nHost: darter\r\nConnection: close\r\n\r\n'


def one(address):
    """One connection, its answer to the end of the stream."""
    with socket.create_connection(address, timeout=10) as sock:
        sock.sendall(REQUEST)
        answer = b''
        while (data := sock.recv(65536)):
            answer += data
    if not answer.startswith(b'HTTP/1.1 200 ') and not answer.startswith(b'HTTP/1.0 200 '):
        raise OSError(f'unexpected answer {answer[:40]!r}')


def work(address, turns, lock, done, errors):
    while True:
        with lock:
            if next(turns, None) is None or len(errors) > 10:
                return
        try:
            one(address)
            with lock:
                done.append(1)
        except OSError as error:
            with lock:
                errors.append(str(error))


def main():
    address, count = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3])
    lock, done, errors = threading.Lock(), [], []
    turns = iter(range(count))
    start = time.monotonic()
    threads = [threading.Thread(target=work, args=(address, turns, lock, done, errors))
               for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - start
    if errors or len(done) != count:
        print(f'{len(done)} of {count} connections done; first error: {(errors or ["none"])[0]}')
        return 1
    print(f'{count} connections, each accepted, answered, closed; {count / seconds:.0f} a second')
    return 0


if __name__ == '__main__':
    sys.exit(main())
