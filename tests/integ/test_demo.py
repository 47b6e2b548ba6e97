# SPDX-License-Identifier: BSD-2-Clause
"""tools/demo does what it says, on a tap and over the loopback, without a terminal; it ends with
status 0, shows a table, colours nothing, and leaves nothing, also after SIGTERM and SIGINT.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

import lab


def start(folder, *arguments):
    env = dict(os.environ, TMPDIR=folder)
    argv = [os.path.join(os.environ['DARTER_SOURCE'], 'tools', 'demo'), '--no-install',
            '--no-build', '--build', os.environ['DARTER_BUILD'], *arguments]
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, env=env, start_new_session=True)


def whole(folder, *arguments):
    process = start(folder, *arguments)
    out, _ = process.communicate(timeout=120)
    name = ' '.join(('demo',) + arguments)
    lab.check_equal(process.returncode, 0, f'exit status of {name}:\n{out}\n')
    lab.check('nothing left behind' in out and 'FAILED' not in out, out)
    lab.check('\x1b' not in out, f'{name} colours its output without a terminal')
    lab.check_equal(os.listdir(folder), [], f'files that {name} left')
    return out


def interrupted(folder, sig):
    process = start(folder)
    for line in process.stdout:
        if line.startswith('   ping') or 'instead' in line:
            break
    time.sleep(0.5)
    os.killpg(process.pid, sig)
    out, _ = process.communicate(timeout=60)
    lab.check(process.returncode != 0, f'{sig.name}: exit status 0 of a demo that was ended')
    lab.check_equal(os.listdir(folder), [], f'files left after {sig.name}: {out}')
    # Nobody of its session is alive.
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return
    raise lab.Failed(f'processes left after {sig.name}')


def main():
    with tempfile.TemporaryDirectory(prefix='darter-demo-') as folder:
        try:
            out = whole(folder)
            lab.say(out)
            if 'no tap can be had' not in out:
                for row in ('ping', 'curl', 'wrk', 'connect/accept', 'counts of both hosts'):
                    lab.check(row in out, f'no row "{row}"')
            lab.check('accepted' in whole(folder, '--loopback'), 'no counts over the loopback')
            for sig in (signal.SIGTERM, signal.SIGINT):
                interrupted(folder, sig)
        except lab.Failed as failure:
            lab.say(f'FAILED: {failure}')
            sys.exit(1)
    lab.say('passed')


main()
