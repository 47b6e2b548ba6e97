#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Wrong command lines of `darter bench` end with status 2 and a line that names what is wrong.

usage: check_usage.py DARTER
"""
import subprocess
import sys

BENCHES = ["rr", "connect", "ports", "msgport", "latency"]
WRONG = [
    ([], "usage"),
    (["nonsense"], "usage"),
    (["rr", "extra"], "usage"),
    (["rr", "--nonsense"], "usage"),
    (["rr", "--seconds", "0"], "--seconds"),
    (["rr", "--seconds", "5x"], "--seconds"),
    (["rr", "--seconds", ""], "--seconds"),
    (["ports", "--cpus", "0"], "--cpus"),
    (["ports", "--cpus", "0,1,2"], "--cpus"),
    (["ports", "--cpus", "0,-1"], "--cpus"),
    (["ports", "--cpus", "0,99999999"], "--cpus"),
    (["ports", "--cases", "fill"], "--cases"),
    (["ports", "--cases", "fill99,fill98"], "--cases"),
    (["ports", "--cases", "fill99,fill99"], "--cases"),
    (["connect", "--cases", "initport"], "--cases"),
    (["connect", "--variants", "memif,ether"], "--variants"),
]
NEEDED = {
    "rr": ["rr-1", "rr-16k"],
    "connect": ["connect-w16", "crr-w16", "initport-nonblocking", "initport-blocking"],
    "ports": ["fill0", "fill25", "fill50", "fill75", "fill90", "fill99", "fill99.9",
              "fill99-own", "lat-connect", "two-cores"],
    "msgport": ["round-trip", "batch-64", "wake-up", "one-core"],
    "latency": ["request", "idle"],
}
MAX_QUICK = 12


def bench(darter, args):
    """A finished process; none of these measures anything."""
    return subprocess.run([darter, "bench", *args], capture_output=True, text=True, timeout=30,
                          check=False)


def check_wrong(darter, args, word):
    """Complaints about one wrong command line."""
    done = bench(darter, args)
    wrong = []
    if done.returncode != 2:
        wrong.append(f"{args}: exit status {done.returncode}")
    if word not in done.stderr:
        wrong.append(f"{args}: standard error does not say {word}: {done.stderr!r}")
    return wrong


def check_list(darter, name):
    """Complaints about --list."""
    lines = bench(darter, [name, "--list"]).stdout.splitlines()
    cases = [line.split()[0] for line in lines]
    quick = [line for line in lines if line.endswith("(quick)")]
    wrong = [f"{name}: no case {c}" for c in NEEDED[name] if c not in cases]
    if not 0 < len(quick) <= MAX_QUICK:
        wrong.append(f"{name}: {len(quick)} quick cases")
    return wrong


def main():
    darter = sys.argv[1]
    wrong = [w for args, word in WRONG for w in check_wrong(darter, args, word)]
    wrong += [w for name in BENCHES for w in check_list(darter, name)]
    if bench(darter, ["--help"]).returncode != 0:
        wrong.append("--help fails")
    for w in wrong:
        print(w)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
