#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Installs into an empty folder and builds a program against that, shared and static.

usage: installed.py BUILD_DIR VERSION -- COMPILER...

The program knows only what pkg-config says. It defines functions named as internal ones of ours
are: linked statically, neither may get the other's.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = r'''
#include <stdio.h>
#include <darter/darter.h>

/* Names that the library uses inside. */
int tcp_parse(void);
int slab_alloc(void);
int siphash(void);

int tcp_parse(void) { return 1; }
int slab_alloc(void) { return 2; }
int siphash(void) { return 3; }

int
main(void)
{
	printf("%s %d\n", darter_version(), tcp_parse() + slab_alloc() + siphash());
	return 0;
}
'''


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f'{" ".join(map(str, command))}\n{done.stdout}{done.stderr}')
    return done.stdout


def main():
    build_dir, version = sys.argv[1:3]
    compiler = sys.argv[4:]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder, 'root')
        run(['meson', 'install', '-C', build_dir, '--no-rebuild', '--quiet', '--destdir', root])
        pc_folder = next(root.rglob('darter.pc')).parent
        env = dict(os.environ, PKG_CONFIG_PATH=str(pc_folder), PKG_CONFIG_SYSROOT_DIR=str(root))
        source = pathlib.Path(folder, 'program.c')
        source.write_text(PROGRAM)
        lib_folder = next(root.rglob('libdarter.a')).parent
        for kind, options in (('shared', []), ('static', ['--static'])):
            flags = run(['pkg-config', '--cflags', '--libs', *options, 'darter'], env=env).split()
            if '-march' in ' '.join(flags) or 'rte_config.h' in flags:
                sys.exit(f"{kind}: DPDK's compiler flags reach the application: {flags}")
            if kind == 'static':
                flags = ['-l:libdarter.a' if f == '-ldarter' else f for f in flags]
            program = pathlib.Path(folder, kind)
            run([*compiler, '-Wall', '-Werror', source, '-o', program, *flags])
            said = run([program], env=dict(os.environ, LD_LIBRARY_PATH=str(lib_folder))).strip()
            if said != f'{version} 6':
                sys.exit(f'{kind} program said "{said}", wanted "{version} 6"')
            print(f'{kind}: ok')


if __name__ == '__main__':
    main()
