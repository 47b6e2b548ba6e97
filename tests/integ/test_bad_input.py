# SPDX-License-Identifier: BSD-2-Clause
"""What an operator gets wrong is refused in one line that names the thing, the reason and the fix;
the exit status says so, and nothing is left behind. `darter doctor` opens the configuration.
"""
import fcntl
import glob
import json
import os
import re
import struct
import subprocess

import lab

TUNSETIFF = 0x400454ca
IFF_TAP, IFF_NO_PI, IFF_MULTI_QUEUE = 0x2, 0x1000, 0x100
TAP = 'port.t.device=net_tap0,iface=dtap0'


def doctor_path():
    path = os.path.join(os.environ['DARTER_BUILD'], 'tools', 'darter')
    return path if os.path.isfile(path) else lab.binary('darter')


def links():
    return set(re.findall(r'^\d+: ([^:@]+)', lab.run('ip', '-o', 'link', 'show'), re.M))


def folders(pid):
    top = os.environ['XDG_RUNTIME_DIR']
    return glob.glob(f'/var/run/dpdk/*{pid}*') + glob.glob(f'{top}/dpdk/*')


def doctor(keys, before=()):
    """Runs doctor with a configuration; returns its exit status and the configuration's line."""
    argv = [*before, doctor_path(), 'doctor', '--json']
    for key in keys:
        argv += ['-o', key]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    out, err = process.communicate(timeout=60)
    lab.check(process.returncode >= 0, f'doctor was ended by signal {-process.returncode}')
    lab.check(err == '', f'{keys}: more lines than the report: {err[:300]}')
    lab.check(not folders(process.pid), f'{keys}: left {folders(process.pid)}')
    checks = [c for c in json.loads(out)['checks'] if c['name'] == 'configuration']
    lab.check_equal(len(checks), 1, f'{keys}: configuration lines')
    return process.returncode, checks[0]


def refused(name, keys, words, before=()):
    links_before = links()
    status, line = doctor(keys, before)
    lab.check_equal(line['status'], 'fail', f'{name}: verdict ({line["text"]})')
    lab.check_equal(status, 1, f'{name}: exit status')
    whole = f'{line["text"]}; {line["fix"]}'
    lab.check('\n' not in whole, f'{name}: several lines: {whole}')
    lab.check(len(whole) < 256, f'{name}: the line is cut: {whole}')
    for word in words:
        lab.check(word in whole, f'{name}: "{word}" is not in "{whole}"')
    lab.check_equal(links(), links_before, f'{name}: interfaces')
    lab.say(f'{name}: {whole}')


def hold_tap(iface):
    """Another process's tap: this one's."""
    fd = os.open('/dev/net/tun', os.O_RDWR)
    flags = IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE
    fcntl.ioctl(fd, TUNSETIFF, struct.pack('16sH22x', iface.encode(), flags))
    lab.run('ip', 'link', 'set', iface, 'up')
    return fd


def test(l):
    refused('unknown key', ['stack.netisr=2'], ['[stack] netisr', 'unknown key', 'netisrs'])
    refused('unknown section', ['stak.netisrs=2'], ['[stak]', 'known are stack'])
    refused('bad number', ['stack.netisrs=many'], ['netisrs', '1 to 64', '"many"'])
    refused('bad address', [TAP, 'port.t.addr=10.0.0.400/24'],
            ['[port.t] addr', 'expected', '10.0.0.400'])
    refused('unknown knob', ['sysctl.net.isr.borow=1'], ['net.isr.borow', 'net.isr.borrow'])
    refused('knob out of range', ['sysctl.net.isr.spin_us=100000'],
            ['net.isr.spin_us', '0 to 50'])
    refused('no device', ['port.t.mtu=1500'], ['[port.t] device', 'missing', 'set'])
    refused('unknown driver', ['port.t.device=net_nosuch0'], ['net_nosuch0', 'no driver'])
    refused('missing interface', ['port.t.device=net_af_packet0,iface=nosuch0'],
            ['[port.t]', 'no interface nosuch0', 'ip link'])
    refused('missing card', ['port.t.device=ffff:ff:1f.7'],
            ['ffff:ff:1f.7', 'no such PCI', 'lspci'])
    refused('driver argument', ['port.t.device=net_tap0,interface=x'], ['interface', 'iface'])
    refused('packets too few', [TAP, 'stack.packets=300'], ['packets', '300', '384'])
    refused('mtu too large', [TAP, 'port.t.mtu=9000'], ['[port.t]', 'mtu'])
    refused('EAL argument', [TAP, 'eal.args=--bogus'], ['[eal] args', '--bogus'])
    refused('no permission', [TAP], ['[port.t]', 'not permitted', 'CAP_NET_ADMIN', 'unshare'],
            before=['setpriv', '--bounding-set', '-net_admin', '--inh-caps', '-net_admin'])
    fd = hold_tap('dtap0')
    refused('port in use', [TAP], ['[port.t]', 'dtap0', 'in use by another process', 'choose'])
    os.close(fd)
    status, line = doctor([TAP, 'port.t.addr=10.0.0.2/24'])
    lab.check_equal(line['status'], 'ok', f'the same without the fault ({line["text"]})')
    lab.check_equal(status, 0, 'exit status without a fault')


lab.main(test)
