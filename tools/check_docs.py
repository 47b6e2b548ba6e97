#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every public function is documented where it is declared.

usage: check_docs.py HEADER...

A declaration marked DARTER_API follows a comment, either directly or in a group of declarations
(no blank line between) that a comment opens. Every header explains itself at its top.
"""
import pathlib
import re
import sys

NAME = re.compile(r'\b(darter_\w+)\s*\(')


def undocumented(lines):
    covered = in_comment = False
    for number, line in enumerate(lines, 1):
        if in_comment or line.lstrip().startswith('/*'):
            in_comment = '*/' not in line
            covered = True
        elif not line.strip():
            covered = False
        elif 'DARTER_API' in line and not line.startswith('#') and not covered:
            match = NAME.search(line)
            yield number, match.group(1) if match else line.strip()


def main():
    bad = count = 0
    for name in sys.argv[1:]:
        lines = pathlib.Path(name).read_text().splitlines()
        count += sum('DARTER_API' in line and not line.startswith('#') for line in lines)
        for number, what in undocumented(lines):
            print(f'{name}:{number}: {what} has no comment')
            bad += 1
    print(f'{count} public declarations, {bad} without comment')
    return 1 if bad or count == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
