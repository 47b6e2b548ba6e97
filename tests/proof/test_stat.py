#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""darter stat: every counter of the catalogue, among them one for each limit, as table and as JSON.

usage: test_stat.py DARTER COUNTER_DEF
"""
import json
import re
import subprocess
import sys

# What is bounded, and the counter that tells when the bound was met. Bounds that a call reports by
# its errno alone: descriptors and stacks (EMFILE), UDP sockets (ENOBUFS), descriptors in one poll
# (EINVAL).
LIMITS = {
    'packet buffers': ('drop_pkt_nomem', 'drop'),
    'packet buffers, level': ('pkts_in_use', 'gauge'),
    'ring memory, received bytes': ('drop_tcp_rcv_nomem', 'drop'),
    'ring memory, datagrams': ('drop_udp_nomem', 'drop'),
    'ring memory, bytes to send': ('snd_nomem', 'event'),
    'ring memory, level': ('ring_bytes', 'gauge'),
    'connections': ('drop_tcp_pcb_limit', 'drop'),
    'half-open connections': ('drop_tcp_syn_full', 'drop'),
    'TIME_WAIT records': ('tcp_timewait_evicted', 'event'),
    'closed but unfinished connections': ('tcp_orphans_reset', 'event'),
    'accept queue, SYN': ('drop_tcp_listen_full', 'drop'),
    'accept queue, completed handshake': ('tcp_listen_overflows', 'event'),
    'intervals out of order': ('drop_tcp_reass_limit', 'drop'),
    'datagram queue': ('drop_udp_rcvq_full', 'drop'),
    'local ports': ('port_exhausted', 'event'),
    'packets that wait for a neighbour': ('drop_neigh_queue_full', 'drop'),
    'neighbours': ('drop_neigh_table_full', 'drop'),
    'steering ring': ('drop_steer_full', 'drop'),
    'transmit ring': ('drop_tx_ring_full', 'drop'),
    'ICMP answers': ('drop_icmp_rate', 'drop'),
    'challenge ACKs': ('tcp_challenge_limited', 'event'),
    'a borrower\'s hold': ('holds_over_1ms', 'event'),
}


def run(darter, *args, status=0):
    done = subprocess.run([darter, 'stat', *args], stdout=subprocess.PIPE, text=True, timeout=60,
                          stderr=subprocess.PIPE, check=False)
    assert done.returncode == status, (args, done)
    return done.stdout


def table(text):
    """name -> (kind, value or None, sentence)"""
    rows = {}
    for line in text.splitlines():
        kind, name, value, sentence = re.fullmatch(r'(\w+) +(\w+) +(\d+)? +(\S.*)', line).groups()
        rows[name] = (kind, None if value is None else int(value), sentence)
    return rows


def as_json(text):
    return {c['name']: (c['kind'], c['value'], c['text']) for c in json.loads(text)}


def check_catalogue(darter, path):
    with open(path, encoding='utf-8') as f:
        entries = re.findall(r'^COUNTER\((\w+), (\w+), "(.*)"\)$', f.read(), re.M)
    shown, told = table(run(darter)), as_json(run(darter, '--json'))
    assert len(entries) > 100 and len(shown) == len(told) == len(entries)
    for name, kind, sentence in entries:
        assert shown[name][0] == told[name][0] == kind.lower(), name
        assert shown[name][2] == told[name][2] == sentence, name
        assert (kind == 'DROP') == name.startswith('drop_'), name


def check_limits(darter):
    names = [name for name, _ in LIMITS.values()]
    shown, told = table(run(darter, *names)), as_json(run(darter, '--json', *names))
    for limit, (name, kind) in LIMITS.items():
        assert shown[name][0] == told[name][0] == kind, (limit, name)
    assert all(shown_name.startswith(tuple(names)) for shown_name in shown)
    assert run(darter, 'no_such_counter', status=1) == ''


def check_values(darter):
    """Those of the stack that it opens: one with a device announces its address."""
    cable = ('-o', 'port.a.device=pair:stat', '-o', 'port.a.addr=192.0.2.1/24',
             '-o', 'port.b.device=pair:stat', '-o', 'port.b.addr=198.51.100.1/24')
    assert as_json(run(darter, '--json', 'tx_pkts'))['tx_pkts'][1] == 0
    assert as_json(run(darter, '--json', *cable, 'tx_pkts'))['tx_pkts'][1] > 0
    assert table(run(darter, *cable, 'tx_pkts'))['tx_pkts'][1] > 0
    rows = table(run(darter, '-a'))
    assert all(value is not None for _, value, _ in rows.values())
    assert rows['drop_pkt_nomem'][1] == 0


def main():
    darter, path = sys.argv[1:]
    check_catalogue(darter, path)
    check_limits(darter)
    check_values(darter)


main()
