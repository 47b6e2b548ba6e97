#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The libraries show only darter's own names, and the same in both forms.

usage: check_symbols.py LIBDARTER.SO LIBDARTER.A

Every defined global symbol begins with darter_; the static archive's set equals the shared
library's, so that no internal name can meet an application's.
"""
import subprocess
import sys

# Marks that sanitizers and linkers leave, not ours to name.
TOOLCHAIN = ('__asan', '__ubsan', '__tsan', '__sancov', '__odr_asan', '_init', '_fini', '_end',
             '_edata', '__bss_start', '__start_', '__stop_')


def defined(args):
    out = subprocess.run(['nm', '--defined-only', *args], capture_output=True, text=True,
                         check=True).stdout
    names = set()
    for line in out.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in 'TDBRVWuCG' and not words[2].startswith(TOOLCHAIN):
            names.add(words[2].split('@')[0])
    return names


def main():
    shared = defined(['-D', sys.argv[1]])
    static = defined(['-g', sys.argv[2]])
    bad = sorted(n for n in shared | static if not n.startswith('darter_'))
    differ = sorted(shared ^ static)
    for name in bad:
        print(f'{name}: does not begin with darter_')
    for name in differ:
        print(f'{name}: only in the {"shared" if name in shared else "static"} library')
    print(f'{len(shared)} public symbols')
    return 1 if bad or differ or not shared else 0


if __name__ == '__main__':
    sys.exit(main())
