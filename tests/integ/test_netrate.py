# SPDX-License-Identifier: BSD-2-Clause
"""DragonFly's netrate programs: each pair runs for a second or two on the kernel's sockets alone,
from the kernel to darter, and from darter to the kernel. Both ends count the same connections and
bytes, and the kernel's own counters agree; the texts they print are those of the originals.
"""
import json
import os
import re
import signal
import socket
import subprocess
import time

import lab

PORT = 8000
UDP_PORT = 9
SETTLE_S = 0.3		# connections that the server has yet to accept or see closed
LOOP = '127.0.0.1'


def last_json(program, text):
    lines = [line for line in text.splitlines() if line.startswith('{')]
    lab.check(lines, f'{program} printed no JSON: {text.strip()}')
    report = json.loads(lines[-1])
    lab.check_equal((report['program'], report['event']), (program, 'end'), 'the last report')
    return report


class KernelServer:
    """A program with -K."""

    def __init__(self, l, program, arguments):
        self.program = program
        self.process = l.background(lab.binary(program), '-K', '--json', *arguments,
                                    stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        lab.check('listening' in line, f'{program} -K does not listen: {line}')

    def stop(self, settle_s=SETTLE_S):
        time.sleep(settle_s)
        self.process.send_signal(signal.SIGTERM)
        text = self.process.communicate(timeout=20)[0]
        lab.check_equal(self.process.returncode, 0, f'exit status of {self.program} -K')
        return last_json(self.program, text)


class DarterServer:
    """A program on darter behind a tap."""

    def __init__(self, l, program, arguments, **options):
        self.program = program
        self.server = l.server(program, ['--json', *arguments], **options)

    def stop(self):
        time.sleep(SETTLE_S)
        self.server.stop()
        return last_json(self.program, '\n'.join(self.server.lines))


def kernel_client(program, *arguments):
    return last_json(program, lab.run(lab.binary(program), '-K', '--json', *arguments))


def has_interface(name):
    return name in (n for _, n in socket.if_nameindex())


def darter_client(l, program, arguments, tap, netisrs=1):
    """Runs a client on darter; the kernel's end of its tap gets its address as soon as there is
    a tap."""
    server = lab.Server(l, program, ['--json', *arguments], netisrs=netisrs, tap=tap,
                        keys=['sysctl.net.inet.tcp.msl_ms=50'])
    process = l.background(*server.argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, cwd=l.folder)
    lab.wait_until(lambda: has_interface(tap) or process.poll() is not None, lab.START_SECONDS,
                   f'no interface {tap}')
    if process.poll() is None:
        lab.run('ip', 'addr', 'add', f'{lab.KERNEL_IP}/24', 'dev', tap)
        lab.run('ip', 'link', 'set', tap, 'up')
    text = process.communicate(timeout=60)[0]
    lab.check_equal(process.returncode, 0, f'exit status of {program} on darter: {text.strip()}')
    return last_json(program, text)


def check_connections(what, client, server):
    """The server may have seen, besides, what the end of the run interrupted."""
    done, accepted = client['connections'], server['accepted']
    lab.check(done > 0, f'{what}: no connection')
    lab.check_equal(client['errors'] + server['errors'], 0, f'{what}: errors')
    lab.check(done <= accepted <= done + client['unfinished'],
              f'{what}: the client counts {done} connections (and {client["unfinished"]} '
              f'unfinished), the server {accepted}')
    if 'closed' in server:
        lab.check(accepted - client['unfinished'] <= server['closed'] <= accepted,
                  f'{what}: {server["closed"]} of {accepted} connections saw a FIN')
    lab.say(f'{what}: {done} connections, {accepted} accepted, '
            f'{client["connections_per_s"]:.0f}/s')


def check_bytes(what, client, server):
    lab.check(client['bytes'] > 0, f'{what}: nothing sent')
    lab.check_equal(client['errors'] + server['errors'], 0, f'{what}: errors')
    lab.check_equal(server['bytes'], client['bytes'], f'{what}: bytes received')
    lab.check_equal(server['connections'], client['connections'], f'{what}: connections')
    lab.check_equal(server['closed'], client['connections'], f'{what}: closed connections')
    lab.say(f'{what}: {client["bytes"]} bytes, {client["mbps"]:.0f} Mbit/s, '
            f'jain {client["jain"]:.2f}')


def check_datagrams(what, client, server):
    sent = client['send_calls'] - client['send_errors']
    lab.check(0 < server['received'] <= sent, f'{what}: {sent} sent, {server["received"]} received')
    lab.say(f'{what}: {sent} datagrams sent, {server["received"]} received')


def kernel_alone(l):
    """Both ends -K, over the kernel's loopback, all pairs at once; the originals' texts."""
    addrs = [word for i in range(1, 5) for word in ('-4', f'127.0.0.{i}')]
    counted = KernelServer(l, 'kq_accept_server', ['-p', PORT + 1, '-i', 2, '-r', '-B'])
    servers = [KernelServer(l, 'accept_server', ['-p', PORT, '-D']),
               KernelServer(l, 'kq_recvserv', ['-t', 1]),
               KernelServer(l, 'udpecho', ['-4', LOOP, '-p', UDP_PORT, '-i', 1])]
    texts = [('connect_client', ['-4', LOOP, '-p', PORT, '-l', 1], r'\d+\.\d\d\n'),
             ('kq_connect_client', [*addrs, '-p', PORT, '-l', 1, '-i', 1], r'\d+\n'),
             ('kq_sendcli', ['-4', LOOP, '-c', 2, '-l', 1, '-S'],
              r'Total: [\d.]+ Mbps, min/max [\d.]+ Mbps/[\d.]+ Mbps, jain [\d.]+, error 0\n'),
             ('netblast', [LOOP, UDP_PORT, 18, 1],
              r'\nstart: {13}\d+\.\d{9}\nfinish: {12}\d+\.\d{9}\nsend calls: {8}\d+\n'
              r'send errors: {7}\d+\napprox send rate:  \d+\napprox error rate: \d+\n')]
    clients = [l.background(lab.binary(program), '-K', *arguments, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True)
               for program, arguments, _ in texts]
    client = kernel_client('kq_connect_client', *addrs, '-p', PORT + 1, '-i', 2, '-l', 1)
    for (program, _, pattern), process in zip(texts, clients):
        text = process.communicate(timeout=30)[0]
        lab.check(process.returncode == 0 and re.fullmatch(pattern, text),
                  f'{program} printed {text!r}, expected {pattern}')
    check_connections('kq_connect_client -K to kq_accept_server -K', client, counted.stop())
    for server in servers:
        server.process.send_signal(signal.SIGTERM)
    for server in servers:
        server.stop(0)


def refusals():
    for program, arguments, wanted in [
            ('kq_connect_client', ['-K', '-6', '::1', '-p', PORT], 'IPv6'),
            ('udpecho', ['-K', '-o', 'stack.netisrs=1', '-4', LOOP, '-p', UDP_PORT], 'not with -K'),
            ('connect_client', ['-K', '-4', LOOP], '-4 inet4 -p port'),
            ('accept_server', ['-K', '-p', '0'], 'a number from 1 to 65535')]:
        done = subprocess.run([lab.binary(program), *map(str, arguments)], text=True,
                              capture_output=True, timeout=20)
        lab.check(done.returncode == 2 and wanted in done.stderr,
                  f'{program} {arguments}: status {done.returncode}, {done.stderr.strip()}')


def kernel_to_darter(l):
    before = lab.kernel_counters('Tcp')['ActiveOpens']
    to = ['-4', lab.DARTER_IP, '-p', PORT, '-l', 1]
    server = DarterServer(l, 'kq_accept_server', ['-p', PORT, '-i', 2, '-r'], netisrs=2)
    client = kernel_client('kq_connect_client', *to, '-i', 1, '-u')
    check_connections('kernel to kq_accept_server -r', client, server.stop())
    lab.check_equal(client['datagrams'], client['connections'] + client['unfinished'],
                    'kq_connect_client -u: datagrams')
    lab.check_equal(lab.kernel_counters('Tcp')['ActiveOpens'] - before,
                    client['connections'] + client['unfinished'], 'connections the kernel opened')

    server = DarterServer(l, 'accept_server', ['-p', PORT, '-i', 1, '-A'], tap='dtap1')
    check_connections('kernel to accept_server -A', kernel_client('connect_client', *to),
                      server.stop())

    server = DarterServer(l, 'kq_recvserv', ['-t', 2], tap='dtap2')
    check_bytes('kernel to kq_recvserv', kernel_client(
        'kq_sendcli', '-4', lab.DARTER_IP, '-c', 4, '-t', 2, '-l', 1), server.stop())

    before = lab.kernel_counters('Udp')['OutDatagrams']
    server = DarterServer(l, 'udpecho', ['-4', lab.DARTER_IP, '-p', UDP_PORT, '-i', 2],
                          tap='dtap3')
    client = kernel_client('netblast', lab.DARTER_IP, UDP_PORT, 18, 1)
    report = server.stop()
    check_datagrams('kernel to udpecho', client, report)
    lab.check_equal(report['echoed'] + report['errors'], report['received'], 'datagrams echoed')
    lab.check_equal(lab.kernel_counters('Udp')['OutDatagrams'] - before,
                    client['send_calls'] - client['send_errors'], 'datagrams the kernel sent')


def darter_to_kernel(l):
    to = ['-4', lab.KERNEL_IP, '-p', PORT, '-l', 2]
    before = lab.kernel_counters('Tcp')['PassiveOpens']
    server = KernelServer(l, 'kq_accept_server', ['-p', PORT, '-i', 2])
    client = darter_client(l, 'kq_connect_client', [*to, '-i', 2], 'dtap4', netisrs=2)
    report = server.stop()
    check_connections('kq_connect_client to the kernel', client, report)
    lab.check_equal(report['accepted'], lab.kernel_counters('Tcp')['PassiveOpens'] - before,
                    'connections the kernel says it accepted')

    server = KernelServer(l, 'accept_server', ['-p', PORT])
    client = darter_client(l, 'connect_client', [*to, '-A'], 'dtap5')
    check_connections('connect_client -A to the kernel', client, server.stop())

    server = KernelServer(l, 'kq_recvserv', ['-R', '-t', 2])
    client = darter_client(l, 'kq_sendcli', ['-4', lab.KERNEL_IP, '-c', 4, '-t', 2, '-l', 1],
                           'dtap6')
    check_bytes('kq_sendcli to the kernel', client, server.stop())

    before = lab.kernel_counters('Udp')['InDatagrams']
    lab.run('ip', 'addr', 'add', f'{lab.KERNEL_IP}/32', 'dev', 'lo')	# to bind before the tap
    server = KernelServer(l, 'udpecho', ['-4', lab.KERNEL_IP, '-p', UDP_PORT, '-N'])
    client = darter_client(l, 'netblast', [lab.KERNEL_IP, UDP_PORT, 18, 2], 'dtap7')
    report = server.stop()
    check_datagrams('netblast to the kernel', client, report)
    lab.check_equal(lab.kernel_counters('Udp')['InDatagrams'] - before, report['received'],
                    'datagrams the kernel says it delivered')


def widen_ports():
    """A fast machine may use up the kernel's usual 28,000 local ports within a second."""
    try:
        with open('/proc/sys/net/ipv4/ip_local_port_range', 'w', encoding='ascii') as file:
            file.write('16384 65535')
    except OSError as error:
        lab.say(f'note: the usual range of local ports: {error.strerror}')


def test(l):
    os.chdir(l.folder)
    widen_ports()
    refusals()
    kernel_alone(l)
    kernel_to_darter(l)
    darter_to_kernel(l)


lab.main(test)
