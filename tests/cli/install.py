#!/usr/bin/env python3
"""`cmake --install` into a directory of one's own, then the programs, licence, documents and schemas as installed there."""

import glob
import json
import os
import subprocess
import sys
import tempfile

BUILD = os.environ["SLACKTIER_BUILD"]
PROGRAMS = os.environ["SLACKTIER_PROGRAMS"].split()


def run(*command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                          **options)


def check(prefix):
    installed = run("cmake", "--install", BUILD, "--prefix", prefix)
    if installed.returncode != 0:
        return [f"cmake --install failed: {installed.stderr}"]
    wrong = []
    # HIP's plug-in lies beside the programs, where they look for it.
    listed = sorted(os.path.basename(path) for path in glob.glob(os.path.join(prefix, "bin", "*")) if not path.endswith(".so"))
    if not PROGRAMS or listed != sorted(PROGRAMS):
        wrong.append(f"bin/ holds {listed}, the build makes {sorted(PROGRAMS)}")
    for program in listed:
        # From elsewhere and without the build's environment: an installed program stands on its own.
        help_text = run(os.path.join(prefix, "bin", program), "--help", cwd=prefix, env={"PATH": os.environ["PATH"]})
        if help_text.returncode != 0 or program not in help_text.stdout:
            wrong.append(f"{program} --help: exit {help_text.returncode}, stdout {help_text.stdout[:200]!r}, "
                         f"stderr {help_text.stderr[:200]!r}")
    for name in ["LICENSE", "README.md", "ARCHITECTURE.md"]:
        path = os.path.join(prefix, "share", "doc", "slacktier", name)
        if not os.path.isfile(path) or os.path.getsize(path) == 0:
            wrong.append(f"{path} lacks")
    if not os.path.isfile(os.path.join(prefix, "share", "slacktier", "python", "slacktier", "__init__.py")):
        wrong.append("the Python package of the programs is not installed")
    schemas = glob.glob(os.path.join(prefix, "share", "slacktier", "schemas", "*.json"))
    if not schemas:
        wrong.append("no schema is installed")
    for schema in schemas:
        with open(schema, encoding="utf-8") as file:
            json.load(file)
    return wrong


with tempfile.TemporaryDirectory() as scratch:
    problems = check(os.path.join(scratch, "prefix"))
print("\n".join(problems) or f"installed and started: {', '.join(PROGRAMS)}")
sys.exit(1 if problems else 0)
