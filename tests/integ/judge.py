# SPDX-License-Identifier: BSD-2-Clause
"""Captures at the kernel's end of a tap and lets tshark judge every packet: checksums of IP, TCP,
UDP and ICMP, and whether it can be read at all.
"""
import os
import re
import signal
import time

import lab

CHECKS = [w for p in ('ip', 'tcp', 'udp') for w in ('-o', f'{p}.check_checksum:TRUE')]
FIELDS = ['ip.src', 'ip.checksum.status', 'tcp.checksum.status', 'udp.checksum.status',
          'icmp.checksum.status', '_ws.malformed', 'tcp.analysis.retransmission',
          'tcp.checksum']
SUMS = range(1, 5)
# One TCP segment in 64, by its checksum: as good as chance, and 0xffff is among them.
SAMPLE = 'tcp and tcp[17] & 0x3f = 0x3f'


def is_bad(row):
    """Linux sends a TCP checksum of 0 as 0xffff, as if it were UDP's; darter may not."""
    if row[0] != lab.DARTER_IP and row[7] == '0xffff':
        return bool(row[5])
    return any(row[i] == '0' for i in SUMS) or bool(row[5])


class Capture:
    """with Capture(lab, tap) as c: traffic; then c.judge(). Does nothing without tshark."""

    def __init__(self, l, tap, packet_filter=''):
        self.l, self.tap, self.filter = l, tap, packet_filter
        self.file = l.path(f'{tap}.pcap')
        self.log = open(l.path(f'{tap}.log'), 'w+', encoding='utf-8')
        self.process = None

    def __enter__(self):
        if not lab.has_tool('tshark'):
            return self
        # tshark's own tool, not tcpdump: that changes user, which a user namespace refuses.
        argv = [lab.tool('dumpcap'), '-P', '-q', '-B', '64', '-i', self.tap, '-w', self.file,
                '-f', self.filter]
        self.process = self.l.background(*argv, stderr=self.log, stdout=self.log)
        lab.wait_until(lambda: os.path.exists(self.file) or self.process.poll() is not None, 20,
                       f'{argv[0]} did not start')
        time.sleep(0.3)
        lab.check(self.process.poll() is None, f'{argv[0]} ended: {self.text()}')
        return self

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def __exit__(self, *_):
        if self.process is None or self.process.poll() is not None:
            return
        time.sleep(0.5)
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)
        counts = re.search(r'received/dropped on interface .*: (\d+)/(\d+)', self.text())
        if counts and int(counts.group(2)) > 0:
            lab.say(f'note: the capture itself lost {counts.group(2)} packets')

    def judge(self, at_least, data_port=None):
        """Failed when a packet is bad, or when darter sent fewer than at_least. Payload of
        data_port is random: nothing above TCP may be read into it."""
        if self.process is None:
            lab.say('note: packets not judged: tshark is not installed')
            return
        argv = [lab.tool('tshark'), '-n', '-r', self.file, *CHECKS, '-T', 'fields',
                '-E', 'separator=/t', '-E', 'occurrence=f']
        argv += [w for f in FIELDS for w in ('-e', f)]
        if data_port:
            argv += ['-d', f'tcp.port=={data_port},data', '-d', f'udp.port=={data_port},data']
        rows = [l.split('\t') for l in lab.run(*argv, timeout=240).splitlines() if '\t' in l]
        # Status: 0 is bad, 1 good, 2 not checked. An ICMP error quotes a packet; its own is first.
        bad = [n for n, row in enumerate(rows, 1) if is_bad(row)]
        ours = [row for row in rows if row[0] == lab.DARTER_IP]
        again = sum(1 for row in ours if row[6])
        if bad:
            numbers = ' || '.join(f'frame.number == {n}' for n in bad[:10])
            raise lab.Failed(f'{len(bad)} of {len(rows)} packets are bad, first:\n' + lab.run(
                lab.tool('tshark'), '-n', '-r', self.file, *CHECKS, '-Y', numbers, timeout=240))
        good = sum(1 for row in ours if any(row[i] == '1' for i in SUMS[1:]))
        lab.check(good >= at_least, f'{len(ours)} packets of darter captured and {good} judged, '
                  f'{at_least} expected')
        lab.say(f'tshark: {len(rows)} packets, {len(ours)} of them darter\'s: no bad checksum, '
                f'none malformed; sent again: {again}')
