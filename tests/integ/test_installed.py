# SPDX-License-Identifier: BSD-2-Clause
"""The installed library is enough: `meson install` into a folder of its own, then two examples are
built from copies of their sources with nothing but a compiler and pkg-config, against the shared
and the static library. loopback_demo runs over the loopback of its own stack, tcp_echo on a tap
with the kernel as its client (where a tap can be had).
"""
import glob
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import lab
import stream_client

TOP = 'DARTER_INSTALLED_TOP'
KINDS = ('shared', 'static')


def install(top):
    lab.run('meson', 'install', '-C', os.environ['DARTER_BUILD'], '--no-rebuild', '--destdir', top,
            timeout=120)
    found = glob.glob(top + '/**/darter.pc', recursive=True)
    lab.check_equal(len(found), 1, f'darter.pc files under {top}')
    return found[0]


def flags_of(pc_file, top, kind):
    """What pkg-config says; -ldarter of a static build means the archive."""
    with open(pc_file, encoding='utf-8') as file:
        prefix = re.search(r'^prefix=(.*)$', file.read(), re.M).group(1)
    env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(pc_file))
    static = ['--static'] if kind == 'static' else []
    flags = lab.run('pkg-config', f'--define-variable=prefix={top}{prefix}', '--cflags', '--libs',
                    *static, 'darter', env=env).split()
    return ['-l:libdarter.a' if f == '-ldarter' and static else f for f in flags]


def build(top, pc_file):
    sources = os.path.join(top, 'sources')
    shutil.copytree(os.path.join(os.environ['DARTER_SOURCE'], 'examples'), sources)
    for kind in KINDS:
        flags = flags_of(pc_file, top, kind)
        os.mkdir(os.path.join(top, kind))
        for name in ('tcp_echo', 'loopback_demo'):
            output = os.path.join(top, kind, name)
            lab.run('cc', '-O2', '-Wall', '-Werror', '-pthread', '-o', output,
                    os.path.join(sources, name + '.c'), *flags, timeout=120)
            needs = lab.run('objdump', '-p', output)
            lab.check_equal('libdarter.so' in needs, kind == 'shared',
                            f'{name}, {kind}: linked to the shared library')


def loopback(top, kind):
    with tempfile.TemporaryDirectory() as folder:
        out = lab.run(os.path.join(top, kind, 'loopback_demo'), '2000', '200', cwd=folder,
                      env=dict(os.environ, XDG_RUNTIME_DIR=folder))
    lab.check('server: 202 connections accepted, 2201 requests answered' in out, out)
    lab.say(f'{kind}: {out.splitlines()[-1]}')


def echo(total):
    """Everything comes back from tcp_echo, which has no end of its own."""
    sent, back = hashlib.sha256(), hashlib.sha256()
    with socket.create_connection((lab.DARTER_IP, 7), timeout=30) as sock:
        for _ in range(total // 8192):
            data = os.urandom(8192)
            sent.update(data)
            sock.sendall(data)
            stream_client.receive_stream(sock, len(data), back)
    lab.check_equal(back.hexdigest(), sent.hexdigest(), 'SHA-256 of what tcp_echo sent back')


def on_tap(l):
    for number, kind in enumerate(KINDS):
        os.environ['DARTER_BINARIES'] = os.path.join(os.environ[TOP], kind)
        server = l.server('tcp_echo', ['-p', '7'], tap=f'dtap{number}')
        echo(1 << 20)
        server.stop()
        lab.say(f'{kind}: tcp_echo returned 1 MiB over a tap')


def all_kinds(top):
    pc_file = install(top)
    build(top, pc_file)
    os.environ['LD_LIBRARY_PATH'] = os.path.dirname(os.path.dirname(pc_file))
    for kind in KINDS:
        loopback(top, kind)
    status = subprocess.run([sys.executable, __file__], env=dict(os.environ, **{TOP: top}),
                            stdin=subprocess.DEVNULL, check=False).returncode
    lab.check(status in (0, lab.SKIP), 'the installed tcp_echo on a tap')


def main():
    if TOP in os.environ:
        lab.main(on_tap)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for name in ('meson', 'cc', 'pkg-config', 'objdump'):
        lab.tool(name)
    with tempfile.TemporaryDirectory(prefix='darter-install-') as top:
        try:
            all_kinds(top)
        except lab.Failed as failure:
            lab.say(f'FAILED: {failure}')
            sys.exit(1)


main()
