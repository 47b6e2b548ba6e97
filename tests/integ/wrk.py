# SPDX-License-Identifier: BSD-2-Clause
"""Runs wrk and reads what it says."""
import re

import lab


class Result:
    def __init__(self, text):
        self.text = text
        match = re.search(r'(\d+) requests in', text)
        lab.check(match, f'no result from wrk: {text}')
        self.requests = int(match.group(1))
        rate = re.search(r'Requests/sec:\s*([\d.]+)', text)
        self.per_second = float(rate.group(1)) if rate else 0.0
        self.errors = []
        for pattern in (r'Socket errors:.*', r'Non-2xx or 3xx responses: .*'):
            self.errors += re.findall(pattern, text)


def wrk(url, seconds, connections=64, threads=2, close=False):
    argv = [lab.tool('wrk'), f'-c{connections}', f'-t{threads}', f'-d{seconds}', '--timeout', '10']
    if close:
        argv += ['-H', 'Connection: close']
    return Result(lab.run(*argv, url, timeout=seconds + 60))
