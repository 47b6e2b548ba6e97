# SPDX-License-Identifier: BSD-2-Clause
"""1 GiB each way over a clean tap, byte for byte the same at both ends (SHA-256); and both ways at
once. tshark judges a sample of the packets.
"""
import time

import lab
import stream_client
from judge import Capture, SAMPLE

TOTAL = 1 << 30
ECHO = 64 << 20


def timed(what, function, total):
    start = time.monotonic()
    function(total)
    seconds = time.monotonic() - start
    lab.say(f'{what}: {total} bytes in {seconds:.1f} s, {total * 8 / seconds / 1e6:.0f} Mbit/s, '
            f'equal SHA-256')


def test(l):
    server = l.server('integ_stream_server')
    with Capture(l, server.tap, SAMPLE) as capture:
        timed('kernel to darter', stream_client.to_darter, TOTAL)
        timed('darter to kernel', stream_client.from_darter, TOTAL)
        timed('both ways', stream_client.both_ways, ECHO)
    capture.judge(1000, data_port=stream_client.PORT)
    lab.check_nothing_left(server)
    report = server.report()
    lab.check_equal((report.values['served'], report.values['failed']), (3, 0),
                    'connections served and failed')
    lab.check_equal(lab.kernel_counters('Tcp')['InCsumErrors'], 0, 'wrong checksums')
    lab.check(report.counters['tcp_bytes_rcvd'] >= TOTAL + ECHO, 'bytes that darter counted')
    lab.check(report.counters['tcp_bytes_sent'] >= TOTAL + ECHO, 'bytes that darter counted')
    server.stop()


lab.main(test)
