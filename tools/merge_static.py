#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Merges static libraries into one archive with a single object whose hidden symbols are local.

usage: merge_static.py OUT.a IN.a...

LD, OBJCOPY and AR name other tools than the system's.
"""
import os
import subprocess
import sys


def main():
    out, libs = sys.argv[1], sys.argv[2:]
    obj = out + '.o'
    subprocess.run([os.environ.get('LD', 'ld'), '-r', '-o', obj, '--whole-archive', *libs],
                   check=True)
    subprocess.run([os.environ.get('OBJCOPY', 'objcopy'), '--localize-hidden', obj], check=True)
    if os.path.exists(out):
        os.unlink(out)
    subprocess.run([os.environ.get('AR', 'ar'), 'rcs', out, obj], check=True)
    os.unlink(obj)


if __name__ == '__main__':
    main()
