# SPDX-License-Identifier: BSD-2-Clause
"""The bundled UDP echo example returns 10,000 datagrams of all sizes that fit a packet, each to
the socket that sent it; a closed port is answered by ICMP.
"""
import os
import select
import socket
import struct

import lab
from judge import Capture

COUNT = 10000
WINDOW = 32		# datagrams under way: no more than any receive queue holds
PORT = 7007


def size_of(number):
    return 8 + number * 13 % 1465


def echo_all(sockets):
    waiting, echoed, sent = {}, 0, 0
    pad = os.urandom(65536)
    while echoed < COUNT:
        while sent < COUNT and len(waiting) < WINDOW:
            data = struct.pack('!Q', sent) + pad[sent % 1000:sent % 1000 + size_of(sent) - 8]
            sock = sockets[sent % len(sockets)]
            waiting[sent] = (sock, data)
            sock.send(data)
            sent += 1
        ready = select.select(sockets, [], [], 5)[0]
        lab.check(ready, f'{len(waiting)} datagrams lost, of sizes '
                  f'{[len(d) for _, d in waiting.values()]}')
        for sock in ready:
            data = sock.recv(65536)
            number = struct.unpack('!Q', data[:8])[0]
            lab.check(number in waiting, f'datagram {number} came twice')
            lab.check(waiting.pop(number) == (sock, data), f'datagram {number} came back changed, '
                      'or to another socket')
            echoed += 1


def refused(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.connect((lab.DARTER_IP, port))
        sock.send(b'anybody?')
        try:
            sock.recv(100)
        except ConnectionRefusedError:
            return True
        except socket.timeout:
            return False
    return False


def test(l):
    server = l.server('udp_echo', ['-p', str(PORT)], netisrs=2)
    sockets = []
    for _ in range(16):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.connect((lab.DARTER_IP, PORT))
        sockets.append(sock)
    with Capture(l, server.tap) as capture:
        echo_all(sockets)
    capture.judge(COUNT * 9 // 10, data_port=PORT)
    lab.check(refused(PORT + 1), 'a closed port did not answer "port unreachable"')
    lab.check_equal(lab.kernel_counters('Udp')['InCsumErrors'], 0, 'wrong UDP checksums')
    server.stop()
    lab.say(f'{COUNT} datagrams echoed, none lost, none changed')


lab.main(test)
