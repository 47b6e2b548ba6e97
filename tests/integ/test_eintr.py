# SPDX-License-Identifier: BSD-2-Clause
"""10,000 pings over a tap, whose driver works with signals, interrupt no call of an application
that never asked for a signal: neither the kernel's calls nor darter's return EINTR.
"""
import socket

import lab
import ping

COUNT = 10000


def counts():
    """What the program counted; the end of the connection ends it."""
    with socket.create_connection((lab.DARTER_IP, 8080), timeout=20) as sock:
        text = b''
        while piece := sock.recv(4096):
            text += piece
    return {name: int(count) for name, count in map(str.split, text.decode().splitlines())}


def one_life(l, netisrs):
    server = l.server('integ_sleepers', netisrs=netisrs)
    lost = ping.pings(lab.DARTER_IP, [1 + i * 37 % 1400 for i in range(COUNT)])
    lab.check(len(lost) <= COUNT // 1000, f'{len(lost)} of {COUNT} pings lost')
    seen = counts()
    server.finish()
    lab.check(len(seen) == 8, f'counted: {seen}')
    lab.check(not any(seen.values()), f'calls that were interrupted: {seen}')
    lab.say(f'{COUNT} pings, {netisrs} netisr(s): 0 EINTR in {", ".join(seen)}')


def test(l):
    one_life(l, 1)
    one_life(l, 2)


lab.main(test)
