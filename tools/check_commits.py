#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Commit subjects read "area: imperative, lower case, no full stop".

usage: check_commits.py [ROOT]

Looks at the last 200 commits that are not merges; exits 77 (skipped) where there is no history.
"""
import re
import subprocess
import sys

SUBJECT = re.compile(r'^[a-z0-9_./-]+(, [a-z0-9_./-]+)*: [^A-Z\s].*[^.\s]$')
SUBJECT_MAX = 78


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else '.'
    done = subprocess.run(['git', '-C', root, 'log', '--no-merges', '-n', '200', '--format=%h %s'],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0 or not done.stdout:
        print('no git history here')
        return 77
    bad = 0
    for line in done.stdout.splitlines():
        commit, subject = line.split(' ', 1) if ' ' in line else (line, '')
        # An acronym (TCP, RFC) may open the sentence; a capitalised word may not.
        after = subject.split(': ', 1)[-1].split(' ')[0]
        lowered = subject.replace(': ' + after, ': ' + after.lower(), 1) if after.isupper() \
            else subject
        if not SUBJECT.match(lowered) or len(subject) > SUBJECT_MAX:
            print(f'{commit}: {subject}')
            bad += 1
    print(f'{bad} bad subjects')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
