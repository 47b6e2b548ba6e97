# SPDX-License-Identifier: BSD-2-Clause
"""Streams stay whole on a link that loses 1 % of the frames each way, reorders, doubles and damages
some: 8 MiB each way and both ways, with equal SHA-256; and no connection hangs or ends early.
"""
import lab
import http_client
import stream_client

TOTAL = 8 << 20
LINKS = {
    'loss 1 %': 'drop=0.01,seed=7',
    'reordering 5 %': 'reorder=0.05,seed=8',
    'loss 1 %, reordering 2 %, doubling 1 %, damage 0.2 %, 1 ms':
        'drop=0.01,reorder=0.02,dup=0.01,corrupt=0.002,delay_us=500-1000,seed=9',
}


def one_link(l, number, name, fault):
    tap = f'dtap{number}'
    server = l.server('integ_stream_server', port_keys=[f'fault={fault}'], tap=tap)
    for function in (stream_client.to_darter, stream_client.from_darter):
        function(TOTAL)
    stream_client.both_ways(TOTAL // 4)
    lab.check_nothing_left(server, 30)
    report = server.report()
    lab.check_equal((report.values['served'], report.values['failed']), (3, 0),
                    f'{name}: connections served and failed')
    if 'drop=' in fault:
        lab.check(report.counters['drop_fault'] > 0, f'{name}: nothing was dropped')
        lab.check(report.counters['tcp_retransmits'] > 0, f'{name}: nothing was sent again')
    if 'reorder=' in fault:
        lab.check(report.counters['tcp_ooo_segs'] > 0, f'{name}: nothing arrived out of order')
    if 'corrupt=' in fault:
        damage = report.counters['drop_tcp_csum'] + report.counters['drop_ip_csum']
        lab.check(damage > 0, f'{name}: no damage was noticed')
    lab.say(f'{name}: equal SHA-256; retransmits {report.counters["tcp_retransmits"]}, '
            f'timeouts {report.counters["tcp_rto"]}, '
            f'out of order {report.counters["tcp_ooo_segs"]}')
    server.stop()


def http_on_loss(l):
    server = l.server('integ_http_mix', port_keys=['fault=drop=0.01,seed=3'], tap='dtap9')
    counts = http_client.load((lab.DARTER_IP, 8080), 300, 2, threads=32, timeout=60)
    lab.check(not counts.errors, f'{len(counts.errors)} errors, first: {counts.errors[:3]}')
    lab.check_equal((counts.connections, counts.answers), (300, 600), 'connections and answers')
    lab.check_nothing_left(server, 30)
    report = server.report()
    lab.check_equal((report.values['accepted'], report.values['requests']), (300, 600),
                    'connections and requests at darter')
    lab.say('300 connections and 600 requests at 1 % loss: every one counted once at both ends')
    server.stop()


def test(l):
    for number, (name, fault) in enumerate(LINKS.items()):
        one_link(l, number, name, fault)
    http_on_loss(l)


lab.main(test)
