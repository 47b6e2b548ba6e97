#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compiles each header alone and twice in one file, warnings as errors.

usage: headers_alone.py --lang c|c++|internal --include DIR... -- COMPILER... HEADER_OR_FOLDER

A folder stands for every *.h below it. Exits 1 and shows the compiler's words if one fails, or if
there was nothing to compile.
"""
import argparse
import pathlib
import subprocess
import sys

WARN = ['-Wall', '-Wextra', '-Wundef', '-Wpointer-arith', '-Werror']
# No -Wshadow in C++: a function may be named as a struct is (darter_fd_set), as stat() always was.
FLAGS = {
    'c': ['-xc', '-std=c11', '-D_DEFAULT_SOURCE', '-Wstrict-prototypes', '-Wshadow', '-pedantic',
          *WARN],
    'c++': ['-xc++', '-std=c++11', '-pedantic', *WARN],
    'internal': ['-xc', '-std=gnu11', '-D_GNU_SOURCE', '-Wstrict-prototypes', '-Wshadow',
                 '-Wconversion', *WARN],
}


def compiles(command, include_name):
    text = f'#include "{include_name}"\n' * 2 + 'int main(void) { return 0; }\n'
    done = subprocess.run([*command, '-fsyntax-only', '-'], input=text, text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        print(f'{include_name} does not compile alone:\n{done.stderr}', file=sys.stderr)
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--lang', choices=FLAGS, required=True)
    parser.add_argument('--include', action='append', default=[])
    parser.add_argument('rest', nargs='+')
    args = parser.parse_args()
    target = pathlib.Path(args.rest[-1])
    headers = sorted(target.rglob('*.h')) if target.is_dir() else [target]
    command = args.rest[:-1] + FLAGS[args.lang] + ['-I' + d for d in args.include]
    roots = [pathlib.Path(d).resolve() for d in args.include]
    bad = 0
    for header in headers:
        header = header.resolve()
        root = next(r for r in roots if r in header.parents)
        bad += not compiles(command, header.relative_to(root))
    print(f'{len(headers)} headers, {bad} bad')
    return 1 if bad or not headers else 0


if __name__ == '__main__':
    sys.exit(main())
