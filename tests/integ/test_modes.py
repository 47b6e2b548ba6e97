# SPDX-License-Identifier: BSD-2-Clause
"""The same HTTP load with one and with two netisrs (a tap with as many queues), served by
application threads, by attached threads, and by both at once, over a shared listener and one each:
every connection is accepted once, every request answered once, and both ends count the same.
"""
import lab
import http_client

CLOSE = (400, 1)
KEEP = (40, 25)

# netisrs, application threads, attached threads, a listener each
RUNS = [
    (1, 1, 0, False),
    (1, 3, 0, True),
    (1, 0, 1, False),
    (1, 1, 1, False),
    (2, 2, 0, False),
    (2, 0, 2, False),
    (2, 0, 2, True),
    (2, 1, 1, False),
    (2, 2, 2, True),
]


def one_run(l, number, netisrs, application, attached, each):
    arguments = ['--threads', application, '--attached', attached] + (['--each'] if each else [])
    name = (f'{netisrs} netisr{"s" if netisrs > 1 else ""}, {application} application and '
            f'{attached} attached threads, {"a listener each" if each else "one listener"}')
    server = l.server('integ_http_mix', arguments, netisrs=netisrs, tap=f'dtap{number}')
    opens = lab.kernel_counters('Tcp')['ActiveOpens']
    connections, answers = 0, 0
    for n, requests in (CLOSE, KEEP):
        counts = http_client.load((lab.DARTER_IP, 8080), n, requests, threads=8)
        lab.check(not counts.errors, f'{name}: {len(counts.errors)} errors, first: '
                  f'{counts.errors[:3]}')
        connections += counts.connections
        answers += counts.answers
    lab.check_nothing_left(server)
    report = server.report()
    opens = lab.kernel_counters('Tcp')['ActiveOpens'] - opens
    got = report.values
    lab.check_equal((connections, answers), (CLOSE[0] + KEEP[0], CLOSE[0] + KEEP[0] * KEEP[1]),
                    f'{name}: connections and answers of the client')
    lab.check_equal((got['accepted'], got['closed'], opens), (connections,) * 3,
                    f'{name}: connections accepted, closed, opened by the kernel')
    lab.check_equal(got['requests'], answers, f'{name}: requests')
    lab.check_equal(report.counters['tcp_accepts'], connections, f'{name}: counter tcp_accepts')
    # A tap moves a flow to the queue that last sent for it: a packet that is still being steered is
    # overtaken then, and what arrives behind it may look old. More than that may not be dropped.
    lab.check_clean(report, ('drop_tcp_paws', 'drop_tcp_window') if netisrs > 1 else ())
    lab.say(f'{name}: {connections} connections, {answers} answers; by thread '
            f'{[w[1] for w in report.workers]}; steered {report.counters["steered_pkts"]}')
    server.stop()


def test(l):
    for number, run in enumerate(RUNS):
        one_run(l, number, *run)


lab.main(test)
