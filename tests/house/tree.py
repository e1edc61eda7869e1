#!/usr/bin/env python3
"""The files of the source tree, for the checks in this folder: what git tracks or would track; without git, all but build outputs."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUTPUTS = {".git", ".cache", "build", "__pycache__"}


def files(root):
    """Paths relative to root, sorted, with forward slashes."""
    try:
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()
        found = [name for name in listed.split("\0") if name and os.path.isfile(os.path.join(root, name))]
    except (OSError, subprocess.CalledProcessError):
        found = []
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in OUTPUTS]
            found += [os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/") for name in names]
    return sorted(found)


def read(root, name):
    """The text of a file, or None when it is no text."""
    with open(os.path.join(root, name), "rb") as file:
        data = file.read()
    if b"\0" in data:
        return None
    return data.decode("utf-8", errors="replace")


def report(problems, checked):
    """Prints the problems; returns the exit status. A check that saw no file has checked nothing, and fails."""
    for problem in problems:
        print(problem)
    if not checked:
        print("no file was checked")
    print(f"{len(problems)} problems in {checked} files")
    return 1 if problems or not checked else 0


if __name__ == "__main__":
    end = "\0" if "--null" in sys.argv else "\n"
    endings = tuple(argument for argument in sys.argv[1:] if argument.startswith("."))
    for name in files(ROOT):
        if not endings or name.endswith(endings):
            sys.stdout.write(name + end)
