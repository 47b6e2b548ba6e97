# SPDX-License-Identifier: BSD-2-Clause
"""The bundled HTTP example answers 10,000 requests, a few dozen of them curl's; nothing is left."""
import lab
import http_client
from judge import Capture

KEEP = (100, 50)	# connections, requests each
CLOSE = (5000, 1)
CURLS = 24


def curl(times):
    url = f'http://{lab.DARTER_IP}:8080/'
    # --next keeps options apart; -w tells the status of each transfer.
    for _ in range(times):
        out = lab.run(lab.tool('curl'), '-sS', '--max-time', '10', '-o', '/dev/null', '-w',
                      '%{http_code}\n', url)
        lab.check_equal(out.strip(), '200', "curl's status")
    out = lab.run(lab.tool('curl'), '-sS', '--max-time', '20', *['-o', '/dev/null', url] * 12,
                  '-w', '%{http_code} %{num_connects}\n')
    lines = out.splitlines()
    lab.check_equal([l.split()[0] for l in lines], ['200'] * 12, "curl's statuses")
    return times + sum(int(l.split()[1]) for l in lines)


def requests():
    """All of them; returns how many connections that took."""
    connections = 0
    for n, each in (KEEP, CLOSE):
        counts = http_client.load((lab.DARTER_IP, 8080), n, each)
        lab.check(not counts.errors, f'{len(counts.errors)} errors, first: {counts.errors[:3]}')
        lab.check_equal((counts.connections, counts.answers), (n, n * each),
                        'connections and answers')
        lab.say(f'{n} connections with {each} requests each: {counts.body_bytes} bytes of bodies')
        connections += n
    return connections + curl(CURLS)


def test(l):
    server = l.server('http_hello', ['-p', '8080'])
    with Capture(l, server.tap) as capture:
        connections = requests()
    capture.judge(20000)
    lab.wait_until(lambda: not lab.kernel_connections(), 10, 'connections left in the kernel')
    kernel = lab.kernel_counters('Tcp')
    lab.check_equal(kernel['ActiveOpens'], connections, 'connections that the kernel opened')
    lab.check_equal(kernel['InCsumErrors'], 0, 'wrong checksums that the kernel saw')
    lab.check_equal(kernel['AttemptFails'], 0, 'connects that failed')
    server.stop()
    answers = KEEP[0] * KEEP[1] + CLOSE[0] * CLOSE[1] + CURLS + 12
    lab.check_equal(server.lines[-1], f'answered {answers} requests on {connections} connections',
                    'what the server counted')
    lab.say(f'{connections} connections, {answers} answers: both ends counted the same')


lab.main(test)
