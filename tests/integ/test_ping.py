# SPDX-License-Identifier: BSD-2-Clause
"""A thousand pings without loss, of all sizes that fit a packet."""
import lab
import ping
from judge import Capture

COUNT = 1000


def test(l):
    server = l.server('integ_stream_server')
    with Capture(l, server.tap) as capture:
        lost = ping.pings(lab.DARTER_IP, [1 + i * 37 % 1472 for i in range(COUNT)])
    lab.check(not lost, f'{len(lost)} of {COUNT} pings lost, of sizes {lost[:20]}')
    if lab.has_tool('ping'):
        out = lab.run('ping', '-q', '-c', '200', '-i', '0.005', lab.DARTER_IP)
        lab.check('200 received' in out, out)
    capture.judge(COUNT)
    report = server.report()
    wanted = COUNT + (200 if lab.has_tool('ping') else 0)
    lab.check_equal(report.counters['icmp_echo_replies'], wanted, 'echoes that darter answered')
    lab.check_clean(report)
    server.stop()
    lab.say(f'{wanted} pings, 0 lost')


lab.main(test)
