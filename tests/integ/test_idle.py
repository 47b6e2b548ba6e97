# SPDX-License-Identifier: BSD-2-Clause
"""A program that has darter open on a tap and nothing to do uses less than 2 % of a core a netisr:
over 10 s, all its threads taken together, by the scheduler's account. Also after it has served
something, and with two netisrs.
"""
import glob
import time

import lab
import http_client

SECONDS = 10
PERCENT = 2.0


def run_ns(pid):
    """Nanoseconds on a CPU of all threads."""
    total = 0
    for path in glob.glob(f'/proc/{pid}/task/*/schedstat'):
        with open(path, encoding='ascii') as file:
            total += int(file.read().split()[0])
    return total


def test(l):
    servers = [(l.server('http_hello', ['-p', '8080'], netisrs=1, tap='dtap0'), 1),
               (l.server('http_hello', ['-p', '8080'], netisrs=2, tap='dtap1', net='10.66.1'), 2)]
    for server, _ in servers:
        counts = http_client.load((server.net + '.2', 8080), 50, 2)
        lab.check(not counts.errors, str(counts.errors[:3]))
    # Retransmission, delayed-ACK and memory sweeps of the load die down first.
    time.sleep(2)
    start = time.monotonic()
    before = [run_ns(server.process.pid) for server, _ in servers]
    time.sleep(SECONDS)
    after = [run_ns(server.process.pid) for server, _ in servers]
    elapsed_ns = (time.monotonic() - start) * 1e9
    for (server, netisrs), a, b in zip(servers, before, after):
        percent = (b - a) / elapsed_ns * 100 / netisrs
        lab.say(f'{netisrs} netisr{"s" if netisrs > 1 else ""}: {percent:.2f} % of a core a netisr')
        lab.check(percent < PERCENT, f'{percent:.2f} % of a core a netisr, {PERCENT} % allowed')
        lab.check(b >= a, 'a thread ended meanwhile')
        server.stop()


lab.main(test)
