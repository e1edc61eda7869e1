#!/usr/bin/env python3
"""Who may include whom, and where threads, sleeps and clocks may be. ARCHITECTURE.md, "Rooms", explains the rules.

Usage: include_rules.py [ROOT]. Prints each breach as file:line and exits 1 when there is one.
"""

import os
import re
import sys

import tree

# Rooms that a room's files may include beside itself; its program (ROOM/cli) may include reports as well.
ALLOWED = {
    "platforms": set(),
    "tier": {"platforms"},
    "iobench": {"platforms", "tier", "reports", "python"},
    "probe": {"platforms", "tier", "reports", "python"},
    "harness": {"platforms", "tier", "reports", "python"},
    "reports": set(),
    "python": {"platforms", "reports"},
    "tests": {"platforms", "tier", "iobench", "probe", "harness", "reports", "python"},
}
# What lies in these folders may include more, and nothing includes it.
BELOW = {"python/native": {"probe"}}
# The only room that starts threads, sleeps and reads clocks; tests may, to provoke and to measure.
TIMEKEEPERS = {"platforms", "tests"}
TIME_HEADERS = {"thread", "chrono", "future", "stop_token", "pthread.h", "sys/time.h", "sys/timerfd.h"}
TIME_WORDS = re.compile(
    r"\bstd\s*::\s*(this_thread|thread|jthread|async|chrono)\b"
    r"|\b(nanosleep|clock_nanosleep|usleep|sleep|clock_gettime|gettimeofday|timerfd_create|pthread_create|__rdtsc)\s*\(")

SOURCES = (".cpp", ".hpp", ".h", ".cu", ".cuh", ".inl")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# In this order: raw strings, comments, strings, numbers (their ' is no quote), characters.
TOKENS = re.compile(
    r'R"(?P<d>[^()\s\\]*)\(.*?\)(?P=d)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\b\d[\w\']*|\'(?:\\.|[^\'\\\n])+\'', re.S)


def bare_code(text):
    """The text without comments and literals; lines keep their numbers, and include lines their file names."""
    def replace(match):
        token = match.group(0)
        if token[0].isdigit():
            return token
        line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if re.fullmatch(r"\s*#\s*include\s*", line):
            return token
        return "\n" * token.count("\n") or " "
    return TOKENS.sub(replace, text)


def program(name):
    """The program's folder that a path lies in, or ''."""
    parts = name.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 and parts[1] == "cli" else ""


def breach(name, target, known):
    """Why file `name` may not include `target` (a path from the root), or None."""
    room, target_room = name.split("/")[0], target.split("/")[0]
    if target not in known:
        return f'"{target}" is no file of the tree: paths start at its root, and what comes from elsewhere stands in <>'
    if program(target) and program(target) != program(name):
        return f'"{target}" belongs to a program, which nothing includes'
    if any(target.startswith(folder + "/") and not name.startswith(folder + "/") for folder in BELOW):
        return f'"{target}" belongs to the Python package alone, which nothing includes'
    allowed = ALLOWED.get(room)
    if allowed is None:
        return f"{room}/ is no known room: add it to the rules in tests/house/include_rules.py"
    for folder, more in BELOW.items():
        if name.startswith(folder + "/"):
            allowed = allowed | more
    if target_room != room and target_room not in allowed and not (program(name) and target_room == "reports"):
        return f'{room}/ may not include "{target}" ({", ".join(sorted(allowed)) or "itself alone"} it may)'
    folder = os.path.dirname(target)
    owner = os.path.dirname(folder)
    if owner and not name.startswith(owner + "/"):
        return f'"{target}" is private to {owner}/: include what lies directly in {target_room}/'
    return None


def check(root):
    names = tree.files(root)
    known = set(names)
    rooms = set(ALLOWED)
    problems, checked = [], 0
    for name in names:
        if "/" not in name or not name.endswith(SOURCES):
            continue
        checked += 1
        room = name.split("/")[0]
        for number, line in enumerate(bare_code(tree.read(root, name) or "").split("\n"), 1):
            include = INCLUDE.match(line)
            if include:
                quote, target = include.groups()
                why = None
                if quote == '"' or target.split("/")[0] in rooms and target in known:
                    why = breach(name, target, known)
                elif target in TIME_HEADERS and room not in TIMEKEEPERS:
                    why = f"<{target}> is for platforms/ alone: use platforms/clock.hpp or platforms/executor.hpp"
            else:
                word = TIME_WORDS.search(line) if room not in TIMEKEEPERS else None
                why = word and f"{word.group(0).rstrip('( ')}: threads, sleeps and clocks come from platforms/"
            if why:
                problems.append(f"{name}:{number}: {why}")
    return problems, checked


if __name__ == "__main__":
    sys.exit(tree.report(*check(sys.argv[1] if len(sys.argv) > 1 else tree.ROOT)))
