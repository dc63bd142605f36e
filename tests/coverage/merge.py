#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
"""Usage: merge.py DIR LIST FLOOR

Adds up what gcov says of every program in DIR: a branch of a line of include/ is taken when any copy of it was,
in any unit. (gcovr 5 can't add up functions that stand at different lines in different units.) Prints a table,
then each line with a branch that nothing took; such a line must be in LIST (file, tab, text of the line, tab, reason),
and what is listed must be a line of the source. Exits 1 when that is not so, or less than FLOOR percent were taken."""
import collections
import glob
import json
import os
import subprocess
import sys


NOT_COUNTED = ("PCBATCH_INJECT_", "PCBATCH_PRIV_ASSERT", "PCBATCH_PRIV_CHECK_PROCESS")


def collect(directory):
    """{file: {line: [taken?]}}"""
    seen = collections.defaultdict(lambda: collections.defaultdict(list))
    for data in sorted(glob.glob(os.path.join(directory, "*.gcda"))):
        out = subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--stdout", data],
                             capture_output=True, text=True, check=True).stdout
        for text in out.splitlines():
            for source in json.loads(text)["files"]:
                name = os.path.relpath(source["file"])
                if name.startswith("include/"):
                    for line in source["lines"]:
                        seen[name][line["line_number"]].append([b["count"] > 0 for b in line["branches"]])
    return {name: fold(name, lines) for name, lines in seen.items()}


def fold(name, lines):
    """A line that was inlined several times into a function has its branches as many times: one copy of each."""
    with open(name, encoding="utf-8") as source:
        text = source.read().splitlines()
    folded = {}
    for number, copies in lines.items():
        size = min((len(c) for c in copies if c), default=0)
        # The tests' own hooks are not the library's branches; what debug builds check ends in a process that dies.
        if size != 0 and not any(word in text[number - 1] for word in NOT_COUNTED):
            folded[number] = [any(c[k] for c in copies for k in range(i, len(c), size)) for i in range(size)]
    return folded


def table(taken):
    total = covered = 0
    for name in sorted(taken):
        branches = [b for line in taken[name].values() for b in line]
        if not branches:
            continue
        total += len(branches)
        covered += sum(branches)
        print(f"{name:40} {len(branches):6} {100 * sum(branches) / len(branches):7.1f} %")
    percent = 100 * covered / total if total else 0.0
    print(f"{'all':40} {total:6} {percent:7.1f} %")
    return percent


def missed(taken):
    for name in sorted(taken):
        with open(name, encoding="utf-8") as source:
            text = source.read().splitlines()
        for number in sorted(taken[name]):
            if not all(taken[name][number]):
                yield name, number, " ".join(text[number - 1].split())


def main():
    if len(sys.argv) != 4:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    taken = collect(sys.argv[1])
    percent = table(taken)
    with open(sys.argv[2], encoding="utf-8") as source:
        entries = [line.rstrip("\n").split("\t") for line in source if line.strip() and not line.startswith("#")]
    known = {(e[0], e[1]): e[2] for e in entries}
    wrong = percent < float(sys.argv[3])
    found = set()
    for name, number, text in missed(taken):
        reason = known.get((name, text))
        found.add((name, text))
        wrong = wrong or reason is None
        print(f"{name}:{number}: {text}\n\t{reason or 'NO REASON GIVEN'}")
    for name, text in sorted(set(known) - found):
        there = text in (" ".join(line.split()) for line in open(name, encoding="utf-8"))
        print(f"{name}: listed, and {'taken this time' if there else 'NOT THERE'}: {text}")
        wrong = wrong or not there
    print("coverage: " + ("1 passed, 0 failed" if not wrong else "0 passed, 1 failed"))
    return 1 if wrong else 0


sys.exit(main())
