# SPDX-License-Identifier: BSD-2-Clause
"""ICMP echo from a raw socket of the kernel, each answer compared byte for byte."""
import os
import select
import socket
import struct
import time

import lab


def csum(data):
    data += b'\0' * (len(data) % 2)
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def echo(sock, to, number, payload, seconds=2.0):
    """One echo; True when its answer came in time and brought the payload back."""
    ident = os.getpid() & 0xffff
    head = struct.pack('!BBHHH', 8, 0, 0, ident, number & 0xffff)
    head = struct.pack('!BBHHH', 8, 0, csum(head + payload), ident, number & 0xffff)
    sock.sendto(head + payload, (to, 0))
    deadline = time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([sock], [], [], left)[0]:
            return False
        packet = sock.recv(65535)
        message = packet[(packet[0] & 15) * 4:]
        kind, code, _, got_ident, got_number = struct.unpack('!BBHHH', message[:8])
        if (kind, code, got_ident, got_number) == (0, 0, ident, number & 0xffff):
            lab.check(message[8:] == payload, f'echo {number}: the answer is not what was sent')
            return True


def pings(to, sizes):
    """One echo of each size in turn; returns the sizes that got no answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        return [size for number, size in enumerate(sizes)
                if not echo(sock, to, number, os.urandom(size))]
