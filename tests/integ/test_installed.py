# SPDX-License-Identifier: BSD-2-Clause
"""The installed library is enough: `meson install` into a folder of its own, then tcp_echo.c is
built there with nothing but a compiler and pkg-config, against the shared and against the static
library, with both sets of flags, and both programs answer over the loopback of their own stack.
"""
import glob
import os
import re
import signal
import shutil
import subprocess
import sys
import tempfile

import lab

PREFIX = '/usr/local'


def install(top):
    lab.run('meson', 'install', '-C', os.environ['DARTER_BUILD'], '--no-rebuild', '--destdir', top,
            timeout=120)
    found = glob.glob(top + '/**/darter.pc', recursive=True)
    lab.check_equal(len(found), 1, f'darter.pc files under {top}')
    return found[0]


def pkg_config(pc_file, top, *arguments):
    """pkg-config for the tree at its temporary place; DPDK's own files stay the system's."""
    pc_dir = os.path.dirname(pc_file)
    with open(pc_file, encoding='utf-8') as file:
        prefix = re.search(r'^prefix=(.*)$', file.read(), re.M).group(1)
    os.environ['PKG_CONFIG_PATH'] = pc_dir
    out = lab.run('pkg-config', f'--define-variable=prefix={top}{prefix}', *arguments, 'darter')
    return out.split()


def compile_example(source, flags, output):
    lab.run('cc', '-O2', '-Wall', '-Werror', '-o', output, source, *flags, timeout=120)


def headers_of(top):
    return sorted(os.path.basename(p) for p in glob.glob(top + '/**/darter/*.h', recursive=True))


def answers(program, library_path):
    """The example answers on its own loopback: client and server in one process."""
    env = dict(os.environ)
    if library_path:
        env['LD_LIBRARY_PATH'] = library_path
    with tempfile.TemporaryDirectory() as folder:
        env['XDG_RUNTIME_DIR'] = folder
        done = subprocess.run([program, '--self-test'], env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, cwd=folder)
    lab.check_equal(done.returncode, 0, f'exit status of {program}: {done.stdout}')
    return done.stdout.strip().splitlines()[-1]


def test(top):
    source_root = os.environ['DARTER_SOURCE']
    source = os.path.join(source_root, 'examples', 'tcp_echo.c')
    pc_file = install(top)
    lab.check('darter.h' in headers_of(top), f'headers installed: {headers_of(top)}')
    lib_dir = os.path.dirname(os.path.dirname(pc_file))
    for kind, flag in (('shared', []), ('static', ['--static'])):
        flags = pkg_config(pc_file, top, '--cflags', '--libs', *flag)
        if kind == 'static':
            flags = static_only(flags, lib_dir)
        output = os.path.join(top, f'tcp_echo_{kind}')
        compile_example(source, flags, output)
        needed = lab.run('objdump', '-p', output)
        lab.check_equal('libdarter.so' in needed, kind == 'shared', f'{kind}: linked to the .so')
        lab.say(f'{kind}: {answers(output, lib_dir if kind == "shared" else None)}')


def static_only(flags, lib_dir):
    """-ldarter means the archive, though the shared library lies beside it."""
    return [os.path.join(lib_dir, 'libdarter.a') if f == '-ldarter' else f for f in flags]


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for name in ('meson', 'cc', 'pkg-config', 'objdump'):
        lab.tool(name)
    top = tempfile.mkdtemp(prefix='darter-install-')
    try:
        test(top)
    except lab.Failed as failure:
        lab.say(f'FAILED: {failure}')
        sys.exit(1)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    lab.say('passed')


main()
