#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs `darter bench ARGS --json` and checks what it prints: fields, pairs, interval, self-check.

usage: check_bench.py DARTER rr|connect [ARG...]   (exit 77: nothing but skipped variants)
"""
import json
import subprocess
import sys

FIELDS = {"bench", "case", "unit", "variants", "ratio", "pairs", "selfcheck"}
NAMES = {"cable", "memif", "vhost", "kernel"}
MIN_PAIRS = 20


def check_line(line, bench):
    """One object; returns a list of complaints."""
    row = json.loads(line)
    wrong = []
    if not FIELDS <= row.keys():
        return [f"missing {sorted(FIELDS - row.keys())}: {line}"]
    if row["bench"] != bench:
        wrong.append(f"bench is {row['bench']}")
    if not set(row["variants"]) <= NAMES or not all(v > 0 for v in row["variants"].values()):
        wrong.append(f"variants {row['variants']}")
    if row["pairs"] < MIN_PAIRS:
        wrong.append(f"{row['pairs']} pairs, fewer than {MIN_PAIRS}")
    if row["selfcheck"] != "ok":
        wrong.append(f"self-check: {row['selfcheck']}")
    ratio = row["ratio"]
    if ratio is not None:
        a, b = ratio["of"].split("/")
        if a not in row["variants"] or b not in row["variants"]:
            wrong.append(f"ratio of {ratio['of']} without both variants")
        if not 0 < ratio["lo"] <= ratio["median"] <= ratio["hi"]:
            wrong.append(f"interval {ratio}")
    return [f"{row['case']}: {w}" for w in wrong]


def main():
    darter, bench, *args = sys.argv[1:]
    run = subprocess.run([darter, "bench", bench, "--json", *args], capture_output=True,
                         text=True, timeout=300, check=False)
    sys.stdout.write(run.stdout)
    sys.stderr.write(run.stderr)
    lines = run.stdout.splitlines()
    if run.returncode == 1 and not lines:
        return 77
    if run.returncode != 0:
        print(f"exit status {run.returncode}")
        return 1
    wrong = [w for line in lines for w in check_line(line, bench)]
    if not lines:
        wrong.append("no result")
    for w in wrong:
        print(w)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
