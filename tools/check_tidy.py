#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The habits of the tree that a machine can check.

usage: check_tidy.py [ROOT]

- SPDX line and opening comment in every C file; SPDX in scripts and build files.
- No typedef of structs or pointers; no #if inside a .c file's functions
  (but for the architecture).
- At most 100 columns (tabs count 8), no trailing blanks, a newline at the end, Unix line ends.
- A function of over 100 lines, or a file of over 800, says why: a comment "Long because ...", in
  the function (or right above it), or in the file's opening comment.
- No paths of a developer's machine.
"""
import pathlib
import re
import sys

COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 100
FILE_LINES_MAX = 800
REASON = 'Long because'

C_FOLDERS = ['src', 'include', 'tests', 'examples', 'tools']
SPDX = 'SPDX-License-Identifier: BSD-2-Clause'
# Function types may be named; a struct, union, enum or pointer may not.
TYPEDEF = re.compile(r'^\s*typedef\s+(struct|union|enum)\b[^()]*$|^\s*typedef\s+[^;(]*\*\s*\w+;')
MACHINE_PATH = re.compile(r'(?<![\w.])/(home|root|work|Users)/\w')
# An instruction that only one architecture has may stand where it is used.
IF_DIRECTIVE = re.compile(r'^\s*#\s*if(def|ndef)?\b(?! *defined\(__x86_64__\))')
# Data and prose: no column limit there.
TEXT_SUFFIXES = {'.md', '.1', '.7', '.ini', '.conf', '.txt', '.json'}


def functions(lines):
    """Yields (first line, last line, name), counting from 0: bodies open and close in column 0."""
    start = None
    for i, line in enumerate(lines):
        if line == '{':
            start = i
        elif line == '}' and start is not None:
            head = next((lines[k] for k in range(start - 1, max(start - 8, -1), -1)
                         if re.match(r'^\w+\(', lines[k])), '?(')
            yield start, i, head.split('(')[0]
            start = None


def check_lines(lines, limit_columns):
    for number, line in enumerate(lines, 1):
        if limit_columns and len(line.expandtabs(8)) > COLUMNS_MAX:
            yield number, f'{len(line.expandtabs(8))} columns'
        if line != line.rstrip():
            yield number, 'trailing blanks'
        if MACHINE_PATH.search(line):
            yield number, 'path of a machine'


def check_c(path, lines):
    if not lines or lines[0] != f'/* {SPDX} */':
        yield 1, 'first line is not the SPDX comment'
    elif len(lines) < 2 or not lines[1].startswith('/*'):
        yield 2, 'no opening comment'
    for number, line in enumerate(lines, 1):
        if TYPEDEF.match(line):
            yield number, 'typedef of a struct, union, enum or pointer'
    if path.suffix != '.c':
        return
    opening = '\n'.join(lines[:next((i for i, l in enumerate(lines) if l.startswith('#')), 40)])
    if len(lines) > FILE_LINES_MAX and REASON not in opening:
        yield 1, f'file of {len(lines)} lines and no "{REASON}"'
    for first, last, name in functions(lines):
        if any(IF_DIRECTIVE.match(line) for line in lines[first:last]):
            yield first + 1, f'#if inside {name}()'
        around = '\n'.join(lines[max(0, first - 10):last])
        if last - first - 1 > FUNCTION_LINES_MAX and REASON not in around:
            yield first + 1, f'{name}() has {last - first - 1} lines and no "{REASON}"'


def check_file(path):
    data = path.read_bytes()
    if b'\0' in data:
        return
    if b'\r' in data:
        yield 1, 'carriage return'
    if data and not data.endswith(b'\n'):
        yield data.count(b'\n') + 1, 'no newline at the end'
    lines = data.decode('utf-8').splitlines()
    yield from check_lines(lines, path.suffix not in TEXT_SUFFIXES)
    if path.suffix in ('.c', '.h', '.def'):
        yield from check_c(path, lines)
    elif path.suffix in ('.py', '.sh') or path.name == 'meson.build':
        if not any(SPDX in line for line in lines[:3]):
            yield 1, 'no SPDX line'


def tree(root):
    for folder in C_FOLDERS:
        for path in sorted((root / folder).rglob('*')):
            skip = 'corpus' in path.parts or '__pycache__' in path.parts
            if path.is_file() and not skip:
                yield path
    yield from sorted(p for p in root.iterdir()
                      if p.is_file() and (p.suffix == '.md' or p.name.startswith('meson')))


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else '.').resolve()
    complaints, files = [], 0
    for path in tree(root):
        complaints += [f'{path.relative_to(root)}:{n}: {what}' for n, what in check_file(path)]
        files += 1
    print('\n'.join(complaints) or f'{files} files tidy')
    return 1 if complaints or files == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
