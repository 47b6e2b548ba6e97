#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Who may include whom, and what each layer may not call.

usage: check_layers.py [ROOT]

- A file under src/ includes its own layer or lower, spelled with the layer ("base/seq.h").
- rte_*.h appears only in the files named in DPDK_FILES.
- preload, examples and tools include only the public headers (and their own folder's).
- base and wire do no I/O, wire allocates nothing; link, inet and transport read no clock, draw no
  entropy, start no thread (law 4).
"""
import pathlib
import re
import sys

LAYERS = ['base', 'wire', 'runtime', 'link', 'inet', 'transport', 'socket', 'api']
DPDK_FILES = {'pkt_dpdk.c', 'eal_dpdk.c', 'dev_dpdk.c', 'rss_dpdk.c'}
OUTSIDE = ['src/preload', 'examples', 'tools']

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

IO_CALLS = {'printf', 'fprintf', 'puts', 'perror', 'fopen', 'open', 'read', 'write', 'socket',
            'send', 'recv', 'ioctl', 'exit', 'getenv'}
CLOCK_CALLS = {'clock_gettime', 'gettimeofday', 'time', 'usleep', 'nanosleep', 'sleep',
               'getrandom', 'random', 'rand', 'arc4random', 'pthread_create', 'fork'}
ALLOC_CALLS = {'malloc', 'calloc', 'realloc', 'aligned_alloc', 'posix_memalign', 'strdup', 'free'}
FORBIDDEN = {
    'base': IO_CALLS | CLOCK_CALLS,
    'wire': IO_CALLS | CLOCK_CALLS | ALLOC_CALLS,
    'link': CLOCK_CALLS,
    'inet': IO_CALLS | CLOCK_CALLS,
    'transport': IO_CALLS | CLOCK_CALLS,
}
# Not protocol code: files of a capture carry wall-clock times, read once when it starts.
EXEMPT = {('link/capture.c', 'clock_gettime')}
CALL = re.compile(r'(?<![\w.>])([a-z_][a-z0-9_]*)\s*\(')


def strip_comments(text):
    """Comments and string literals become blanks; line numbers stay."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)

    def blank(match):
        if match.group().startswith('"'):
            return '""'
        return re.sub(r'[^\n]', ' ', match.group())
    return pattern.sub(blank, text)


def check_include(path, layer, kind, name):
    """The complaint about one include of a file in a layer, or None."""
    if kind == '<':
        if name.startswith('darter/') and layer != 'api':
            return f'{layer} includes public header <{name}>'
        return None
    if name.startswith('darter/'):
        return None if layer == 'api' else f'{layer} includes public header "{name}"'
    other = name.split('/')[0]
    if '/' not in name or other not in LAYERS:
        return f'"{name}" is not spelled with its layer'
    if LAYERS.index(other) > LAYERS.index(layer):
        return f'{layer} includes upward: "{name}"'
    if layer == 'socket' and other == 'wire':
        return f'socket includes packet headers: "{name}"'
    return None


def check_source(root, path):
    """Complaints about one file of a layer."""
    layer = path.relative_to(root / 'src').parts[0]
    text = path.read_text()
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        complaint = check_include(path, layer, *match.groups())
        if complaint:
            yield f'{path.relative_to(root)}:{number}: {complaint}'
        if match.group(2).startswith('rte_') and path.name not in DPDK_FILES:
            yield f'{path.relative_to(root)}:{number}: includes {match.group(2)}'
    if path.suffix != '.c' or path.name in DPDK_FILES:
        return
    in_src = str(path.relative_to(root / 'src'))
    for number, line in enumerate(strip_comments(text).splitlines(), 1):
        for call in CALL.findall(line):
            if call in FORBIDDEN.get(layer, ()) and (in_src, call) not in EXEMPT:
                yield f'{path.relative_to(root)}:{number}: {layer} may not call {call}()'


def check_outside(root, folder, path):
    """Complaints about a program that must stand on the public headers alone."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        kind, name = match.groups()
        local = kind == '"' and ((path.parent / name).exists() or (root / folder / name).exists())
        is_internal = name.split('/')[0] in LAYERS and '/' in name and not local
        if is_internal or name.startswith(('src/', 'rte_')) or 'src/' in name:
            yield f'{path.relative_to(root)}:{number}: includes internal "{name}"'


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else '.').resolve()
    complaints, files = [], 0
    for layer in LAYERS:
        for path in sorted((root / 'src' / layer).rglob('*.[ch]')):
            complaints += check_source(root, path)
            files += 1
    for folder in OUTSIDE:
        for path in sorted((root / folder).rglob('*.[ch]')):
            complaints += check_outside(root, folder, path)
            files += 1
    print('\n'.join(complaints) or f'{files} files, all layers respected')
    return 1 if complaints or files == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
