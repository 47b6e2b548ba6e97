#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs `darter bench ARGS --json` and checks what it prints: fields, pairs, interval, self-check.

usage: check_bench.py DARTER rr|connect|ports|msgport|latency [ARG...]
(exit 77: nothing but skipped variants)
"""
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

FIELDS = {"bench", "case", "unit", "variants", "ratio", "pairs", "selfcheck"}
LINKS = {"cable", "memif", "vhost", "kernel", "loopback"}
NAMES = {
    "rr": LINKS,
    "connect": LINKS | {"on", "off"},
    "ports": {"full", "empty", "home", "hash", "global", "evenodd", "kernel", "hash-empty",
              "global-empty", "evenodd-empty", "kernel-empty", "two", "one"},
    "msgport": {"msgport", "line", "batched", "single", "eventfd"},
    "latency": {"shared", "pinned", "attached", "kernel"},
}
MIN_PAIRS = 20
MAX_QUICK_ROWS = 12


def check_link(row):
    """Rows of links stand beside the links' own rates."""
    if "link_pps" not in row:
        return ["no link_pps"]
    return [f"no link_pps of {name}" for name in row["variants"]
            if row["link_pps"].get(name, 0) <= 0]


def check_row(row, bench):
    """A list of complaints."""
    wrong = []
    if not FIELDS <= row.keys():
        return [f"missing {sorted(FIELDS - row.keys())}: {row}"]
    if row["bench"] != bench:
        wrong.append(f"bench is {row['bench']}")
    if not set(row["variants"]) <= NAMES[bench] or not all(v > 0 for v in row["variants"].values()):
        wrong.append(f"variants {row['variants']}")
    if bench == "rr" or row["case"].startswith(("connect-", "crr-")):
        wrong += check_link(row)
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


def check_plot(name, rows):
    """The SVG is XML and has a point for a row at least."""
    root = xml.etree.ElementTree.parse(name).getroot()
    points = sum(1 for e in root.iter() if e.tag.endswith("circle"))
    return [] if points > 0 or not rows else [f"{name}: no points"]


def run(darter, bench, args, plot):
    """The finished process."""
    return subprocess.run([darter, "bench", bench, "--json", "--plot", plot, *args],
                          capture_output=True, text=True, timeout=300, check=False)


def main():
    darter, bench, *args = sys.argv[1:]
    with tempfile.NamedTemporaryFile(suffix=".svg") as plot:
        done = run(darter, bench, args, plot.name)
        sys.stdout.write(done.stdout)
        sys.stderr.write(done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode == 1 and not rows:
            return 77
        if done.returncode != 0:
            print(f"exit status {done.returncode}")
            return 1
        wrong = [w for row in rows for w in check_row(row, bench)] + check_plot(plot.name, rows)
    if not rows:
        wrong.append("no result")
    if "--quick" in args and len(rows) > MAX_QUICK_ROWS:
        wrong.append(f"{len(rows)} rows, more than {MAX_QUICK_ROWS}")
    for w in wrong:
        print(w)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
