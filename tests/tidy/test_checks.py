#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the checks of tools/ on small trees, good and bad: a check that never complains is none.

usage: test_checks.py ROOT
"""
import pathlib
import subprocess
import sys
import tempfile

HEAD = '/* SPDX-License-Identifier: BSD-2-Clause */\n/* A file for a test. */\n'
FAILED = []


def run(root, check, files):
    """The check's exit code and words over a tree of these files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, pathlib.Path(root, 'tools', check), folder],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


def expect(root, check, files, want):
    """want is a part of the complaint, or None for a tree without fault."""
    code, words = run(root, check, files)
    if (want is None) != (code == 0) or (want is not None and want not in words):
        FAILED.append(f'{check}: {list(files.values())} gave {code}: {words}, wanted {want}')


def check_layers(root):
    def expect_one(name, text, want):
        expect(root, 'check_layers.py', {name: HEAD + text}, want)
    expect_one('src/inet/a.c', '#include "base/seq.h"\n#include "inet/b.h"\n', None)
    expect_one('src/inet/a.c', '#include "transport/b.h"\n', 'upward')
    expect_one('src/base/a.c', '#include "seq.h"\n', 'not spelled')
    expect_one('src/link/dev.c', '#include <rte_ethdev.h>\n', 'includes rte_ethdev.h')
    expect_one('src/link/dev_dpdk.c', '#include <rte_ethdev.h>\n', None)
    expect_one('src/wire/a.c', 'p = malloc(3);\n', 'malloc()')
    expect_one('src/wire/a.c', '/* malloc(3) */\n', None)
    expect_one('src/transport/tcp/a.c', 't = time(NULL);\n', 'time()')
    expect_one('src/socket/a.c', '#include <darter/socket.h>\n', 'public header')
    expect_one('examples/a.c', '#include "inet/route.h"\n', 'internal')
    expect_one('examples/a.c', '#include <darter/darter.h>\n', None)


def check_tidy(root):
    def expect_one(text, want):
        expect(root, 'check_tidy.py', {'src/base/a.c': text}, want)
    body = 'static int\nf(void)\n{\n' + '\tg();\n' * 101 + '}\n'
    expect_one(HEAD, None)
    expect_one('/* no licence */\n', 'SPDX')
    expect_one(HEAD.splitlines()[0] + '\nint a;\n', 'opening comment')
    expect_one(HEAD + 'int a; \n', 'trailing blanks')
    expect_one(HEAD + 'int a;', 'no newline')
    expect_one(HEAD + '\t' * 12 + 'int a;\n', '102 columns')
    expect_one(HEAD + 'typedef struct a b;\n', 'typedef')
    expect_one(HEAD + body, 'f() has 101 lines')
    expect_one(HEAD + '/* Long because it is data. */\n' + body, None)
    expect_one(HEAD + 'int a;\n' * 800, 'file of 802 lines')
    expect_one(HEAD + 'const char *p = "/' + 'home/me";\n', 'path of a machine')
    expect_one(HEAD + 'int\nf(void)\n{\n#ifdef X\n#endif\n}\n', '#if inside f()')


def main():
    root = sys.argv[1]
    check_layers(root)
    check_tidy(root)
    print('\n'.join(FAILED) or 'every check complains where it should')
    return 1 if FAILED else 0


if __name__ == '__main__':
    sys.exit(main())
