#!/usr/bin/env python3
"""The documents at the root name only what is there: `room/file` in backquotes, and the targets of relative links.

Usage: documents.py [ROOT]. Prints each breach and exits 1 when there is one.
"""

import re
import sys

import tree

# Outputs of a build, and patterns such as tests/unit/ROOM, are no files of the tree.
PATH = re.compile(r"`([a-z]+/[\w./-]+)`|\]\(([^):#]+)\)")
PATTERN = re.compile(r"^build/|[A-Z*]{3,}/|/[A-Z*]{3,}")


def check(root):
    names = tree.files(root)
    there = set(names)
    for name in names:
        parts = name.split("/")
        there.update("/".join(parts[:end]) for end in range(1, len(parts)))
    problems, checked = [], 0
    for name in names:
        if "/" in name or not name.endswith(".md"):
            continue
        checked += 1
        for number, line in enumerate(tree.read(root, name).split("\n"), 1):
            for match in PATH.finditer(line):
                target = (match.group(1) or match.group(2)).rstrip("/")
                if target not in there and not PATTERN.search(target):
                    problems.append(f"{name}:{number}: there is no '{target}'")
    return problems, checked


if __name__ == "__main__":
    sys.exit(tree.report(*check(sys.argv[1] if len(sys.argv) > 1 else tree.ROOT)))
