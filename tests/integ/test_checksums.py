# SPDX-License-Identifier: BSD-2-Clause
"""tshark judges a full capture of pings, HTTP, wrk, UDP and streams, taken at the kernel's end of
the tap: no bad checksum, no malformed packet, and on this clean link nothing lost.
"""
import socket

import lab
import http_client
import ping
import stream_client
from judge import Capture
from wrk import wrk

def all_kinds():
    lost = ping.pings(lab.DARTER_IP, [1 + i * 7 % 1472 for i in range(200)])
    lab.check(not lost, f'pings lost: {lost}')
    for n, each in ((20, 10), (200, 1)):
        counts = http_client.load((lab.DARTER_IP, 8080), n, each)
        lab.check(not counts.errors, str(counts.errors[:3]))
    lab.run(lab.tool('curl'), '-sS', f'http://{lab.DARTER_IP}:8080/')
    if lab.has_tool('wrk'):
        for close in (False, True):
            wrk(f'http://{lab.DARTER_IP}:8080/', 1, close=close)
    # A closed port, a datagram nobody waits for: resets and ICMP errors are packets too.
    with socket.socket() as sock:
        lab.check(sock.connect_ex((lab.DARTER_IP, 9)) != 0, 'port 9 is open')
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b'x' * 600, (lab.DARTER_IP, 9))


def traffic(l):
    server = l.server('integ_http_mix', netisrs=2)
    with Capture(l, server.tap) as capture:
        all_kinds()
        server.stop()
    return capture


def streams(l):
    server = l.server('integ_stream_server', netisrs=2, tap='dtap1')
    with Capture(l, server.tap) as capture:
        stream_client.to_darter(4 << 20)
        stream_client.from_darter(4 << 20)
        stream_client.both_ways(2 << 20)
        server.stop()
    return capture


def test(l):
    lab.tool('tshark')
    traffic(l).judge(200)
    streams(l).judge(1000, data_port=stream_client.PORT)


lab.main(test)
