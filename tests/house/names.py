#!/usr/bin/env python3
"""Names, markers, paths and lengths of the source tree's files.

Usage: names.py [ROOT]. Prints each breach and exits 1 when there is one; files that near the limit of length are only mentioned.
"""

import re
import sys

import tree

SAYS_NOTHING = {"util", "utils", "common", "misc", "helper", "helpers"}
CODE = (".cpp", ".hpp", ".h", ".cu", ".cuh", ".py", ".sh", ".cmake", "CMakeLists.txt")
# Data is as long as it is; so is the licence.
LIMITED = CODE + (".md",)
LONGEST, LONG = 500, 400

# Written in pieces, so that this file is not a breach of itself.
MARKERS = re.compile(r"\b(" + "|".join(["TO" "DO", "FIX" "ME", "X" "XX", "st" "ub", "place" "holder", "un" "implemented",
                                        "not " "implemented"]) + r")\b")
# Absolute paths of one machine; a scratch folder is made with mktemp.
MACHINE = re.compile(r"(?<![\w.$}/-])/(" + "|".join(["wo" "rk", "fa" "rm", "ro" "ot"]) + r")/|(?<![\w.$}-])/t" r"mp/[a-z]")


def check(root):
    problems, checked = [], 0
    for name in tree.files(root):
        checked += 1
        for part in name.split("/"):
            if SAYS_NOTHING & set(re.split(r"[_.-]", part.lower())):
                problems.append(f"{name}: '{part}' does not say what is in it")
        text = tree.read(root, name)
        if text is None:
            if not name.startswith("tests/fuzz/corpus/"):
                problems.append(f"{name}: no text: packages, programs and data of others stay out of the tree")
            continue
        lines = text.split("\n")
        for number, line in enumerate(lines, 1):
            if name.endswith(CODE) and MARKERS.search(line):
                problems.append(f"{name}:{number}: unfinished: '{MARKERS.search(line).group(0)}'")
            if MACHINE.search(line) and "mktemp" not in line:
                problems.append(f"{name}:{number}: a path of one machine: '{MACHINE.search(line).group(0)}'")
        length = len(lines) - 1
        if name.endswith(LIMITED) and length > LONGEST:
            problems.append(f"{name}: {length} lines; {LONGEST} at most: does it still hold one concept?")
        elif name.endswith(LIMITED) and length > LONG:
            print(f"{name}: {length} lines, of {LONGEST} at most")
    return problems, checked


if __name__ == "__main__":
    sys.exit(tree.report(*check(sys.argv[1] if len(sys.argv) > 1 else tree.ROOT)))
