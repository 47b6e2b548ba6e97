# SPDX-License-Identifier: BSD-2-Clause
"""wrk against darter for 10 s with 64 connections kept, and for 10 s with one connection a request:
no error, no connection left at either end, and both ends counted the same.

wrk stops in the middle of up to 64 requests, which the server may have answered: so much may the
counts differ, and no more.
"""
import lab
from judge import Capture, SAMPLE
from wrk import wrk

CONNECTIONS = 64
SECONDS = 10


def one_run(server, close):
    before, opens_before = server.report(), lab.kernel_counters('Tcp')['ActiveOpens']
    result = wrk(f'http://{lab.DARTER_IP}:8080/', SECONDS, CONNECTIONS, close=close)
    kind = 'a connection a request' if close else 'connections kept'
    lab.say(f'{kind}: {result.requests} requests, {result.per_second:.0f} a second')
    lab.check(not result.errors, f'wrk, {kind}: {result.errors}')
    lab.check(result.requests > CONNECTIONS, f'wrk got {result.requests} answers only')
    lab.check_nothing_left(server)
    after = server.report()
    answered = after.values['requests'] - before.values['requests']
    lab.check(0 <= answered - result.requests <= CONNECTIONS,
              f'{kind}: darter answered {answered} requests, wrk counted {result.requests}')
    accepted = after.values['accepted'] - before.values['accepted']
    opened = lab.kernel_counters('Tcp')['ActiveOpens'] - opens_before
    lab.check(0 <= opened - accepted <= CONNECTIONS,
              f'{kind}: darter accepted {accepted} connections, the kernel opened {opened}')
    if not close:
        lab.check_equal(accepted, opened, 'kept connections accepted and opened')
    lab.check_equal(after.values['errors'], 0, 'errors of the server')


def test(l):
    lab.tool('wrk')
    server = l.server('integ_http_mix', ['--threads', '1'])
    with Capture(l, server.tap, SAMPLE) as capture:
        one_run(server, close=False)
        one_run(server, close=True)
    capture.judge(100)
    report = server.report()
    lab.check_equal(report.values['accepted'], report.values['closed'], 'connections closed')
    lab.check_clean(report)
    lab.check_equal(lab.kernel_counters('Tcp')['InCsumErrors'], 0, 'wrong checksums')
    server.stop()


lab.main(test)
