#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs tools/coverage on a program of ten lines: it counts, lists, and fails below a floor.

usage: test_coverage.py ROOT
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROGRAM = """#include "base/a.h"

static int
never(void)
{
	return 1;
}

int
main(int argc, char **argv)
{
	(void)argv;
	return argc > 100 ? never() : in_header(argc) - 1;
}
"""
HEADER = """static inline int
in_header(int x)
{
	return x;
}
"""
UNUSED = """int
in_object(int x)
{
	return x;
}
"""
FAILED = []


def expect(what, wanted, got):
    if wanted != got:
        FAILED.append(f'{what}: wanted {wanted}, got {got}')


def build(top):
    """src/ of two files and a header; one of the files is compiled but never run."""
    (top / 'src/base').mkdir(parents=True)
    (top / 'build').mkdir()
    (top / 'src/base/a.c').write_text(PROGRAM)
    (top / 'src/base/a.h').write_text(HEADER)
    (top / 'src/base/b.c').write_text(UNUSED)
    for name in ('a', 'b'):
        subprocess.run(['gcc', '--coverage', '-I../src', '-c', f'../src/base/{name}.c'],
                       cwd=top / 'build', check=True)
    subprocess.run(['gcc', '--coverage', '-o', 'a', 'a.o'], cwd=top / 'build', check=True)


def coverage(root, top, floors, *args):
    (top / 'floors').write_text(floors)
    done = subprocess.run([sys.executable, root / 'tools/coverage', top / 'build', '--root', top,
                           '--floors', top / 'floors', *args],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def check(root, top):
    code, words = coverage(root, top, 'folder base 1\n')
    expect('no data yet', True, code != 0 and 'no coverage data' in words)
    subprocess.run(['./a'], cwd=top / 'build', check=True)
    code, words = coverage(root, top, 'folder base 40\nfiles below 60\n', '--json', top / 'json')
    expect('above the floor', 0, code)
    expect('object that never ran is listed', True, 'base/b.c: 0.0' in words)
    report = json.loads((top / 'json').read_text())
    expect('function not run', ['never'], report['files']['base/a.c']['functions_not_run'])
    expect('lines not run', [[4, 4], [6, 6]], report['files']['base/a.c']['lines_not_run'])
    expect('header', (2, 2), tuple(report['files']['base/a.h'][k] for k in ('covered', 'lines')))
    code, words = coverage(root, top, 'folder base 60\n')
    expect('below the floor', True, code == 1 and 'FAILED: base' in words)
    code, words = coverage(root, top, 'folder base 60\nnot-run base/b.c integ\n')
    expect('file left to another suite', 0, code)
    code, words = coverage(root, top, '')
    expect('folder without floor', True, code == 1 and 'base has no floor' in words)
    code, words = coverage(root, top, 'folder base 40\nfolder wire 10\n')
    expect('floor without folder', True, code == 1 and 'wire has a floor' in words)
    code, words = coverage(root, top, 'folder base 40\nnot-run base/gone.c integ\n')
    expect('name without file', True, code == 1 and 'base/gone.c' in words)
    code, words = coverage(root, top, 'folder base 40\n', '--uncovered', 'base/a.c')
    expect('text of what is not covered', True, code == 0 and 'return 1;' in words)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    if not shutil.which('gcc') or not shutil.which('gcov'):
        print('gcc or gcov is missing')
        return 77
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder).resolve()
        build(top)
        check(root, top)
    print('\n'.join(FAILED) or 'the report is right and fails when it must')
    return 1 if FAILED else 0


if __name__ == '__main__':
    sys.exit(main())
