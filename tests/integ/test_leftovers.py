# SPDX-License-Identifier: BSD-2-Clause
"""After SIGTERM, SIGINT and even SIGKILL of a program on darter nothing is left: no interface, no
huge-page file, no run-time folder of the dead; the next start works at once. Connections that are
open when the stack closes are closed too: the kernel's end sees it.
"""
import glob
import os
import re
import signal
import socket

import lab
import http_client


def links():
    out = lab.run('ip', '-o', 'link', 'show')
    return set(re.findall(r'^\d+: ([^:@]+)', out, re.M))


def of_process(folder, pid):
    """Files of a shared folder that carry the process's number; other programs run beside us."""
    return {p for p in glob.glob(folder + '/*') if re.search(rf'(?<!\d){pid}(?!\d)', p)}


def hugepage_files(pid):
    found = set()
    with open('/proc/self/mounts', encoding='utf-8') as file:
        for words in map(str.split, file):
            if words[2] == 'hugetlbfs':
                found |= of_process(words[1], pid)
    return found


def run_time_entries():
    top = os.environ['XDG_RUNTIME_DIR']
    return {os.path.join(d, f) for d, _, files in os.walk(top) for f in files}


def run_time_folders():
    return set(glob.glob(os.environ['XDG_RUNTIME_DIR'] + '/dpdk/*'))


def check_leftovers(name, pid, links_before, was_killed):
    for what, left in (('interfaces', links() - links_before),
                       ('huge-page files', hugepage_files(pid)),
                       ('/dev/shm', of_process('/dev/shm', pid))):
        lab.check(not left, f'{name}: {what} left behind: {sorted(left)}')
    # A killed process can't remove its folder: the next start does.
    if not was_killed:
        lab.check(not run_time_entries(), f'{name}: left {sorted(run_time_entries())}')
        lab.check(not run_time_folders(), f'{name}: left {sorted(run_time_folders())}')


def one_life(l, sig, netisrs):
    before = links()
    server = l.server('http_hello', ['-p', '8080'], netisrs=netisrs)
    counts = http_client.load((lab.DARTER_IP, 8080), 20, 3)
    lab.check(not counts.errors, f'{sig.name}: {counts.errors[:3]}')
    with socket.create_connection((lab.DARTER_IP, 8080), timeout=10) as sock:
        if sig == signal.SIGKILL:
            server.process.kill()
            server.process.wait(10)
        else:
            server.stop(sig)
            try:
                lab.check_equal(sock.recv(1), b'', f'{sig.name}: an open connection')
            except ConnectionResetError:
                pass
    check_leftovers(sig.name, server.process.pid, before, sig == signal.SIGKILL)
    lab.say(f'{sig.name}, {netisrs} netisr(s): nothing left')


def test(l):
    for sig, netisrs in ((signal.SIGTERM, 1), (signal.SIGINT, 2), (signal.SIGKILL, 1),
                         (signal.SIGTERM, 1)):
        one_life(l, sig, netisrs)


lab.main(test)
