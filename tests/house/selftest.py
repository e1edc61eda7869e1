#!/usr/bin/env python3
"""Plants one breach of each rule in a scratch tree and requires that the checks of this folder find it, and nothing else."""

import contextlib
import io
import os
import tempfile
import unittest

import documents
import include_rules
import names

# A tree that keeps all rules, with something near each of them.
CLEAN = {
    "platforms/clock.hpp": "#include <chrono>\nauto now = std::chrono::steady_clock::now();\n",
    "platforms/cpu/stream.hpp": "",
    "platforms/cpu/stream.cpp": '#include <thread>\n#include "platforms/cpu/stream.hpp"\n#include "platforms/clock.hpp"\n',
    "platforms/open.cpp": '#include "platforms/cpu/stream.hpp"\n',
    "tier/hash.hpp": '#include <vector>\n#include "platforms/clock.hpp"\n',
    "tier/sources/ring.hpp": "",
    "tier/source.cpp": '#include "tier/sources/ring.hpp"\nint n = 1\'000; // std::thread is not used, nor sleep(\n',
    "tier/cli/main.cpp": '#include "tier/hash.hpp"\n#include "reports/table.hpp"\n#include "tier/cli/stage.hpp"\n',
    "tier/cli/stage.hpp": "",
    "harness/run.cpp": '#include "tier/hash.hpp"\n#include "reports/table.hpp"\nclock.sleep_until(now); auto s = "usleep(1)";\n',
    "python/embedded.hpp": "",
    "python/embedded.cpp": '#include "platforms/clock.hpp"\n#include "reports/table.hpp"\n',
    "python/native/module.cpp": '#include "probe/window.hpp"\n',
    "probe/window.hpp": "",
    "probe/torch.cpp": '#include "python/embedded.hpp"\n',
    "reports/table.hpp": '/* #include "tier/hash.hpp"\n   #include <thread> */\n',
    "tests/unit/tier/hash.cpp": '#include <thread>\n#include "tier/hash.hpp"\nstd::thread t;\n',
    "README.md": "a mapping of uncommon words: see ../work/ and $HOME/work/\n`tier/hash.hpp`, `tier/`, `tests/unit/ROOM/`, [x](tier/cli), `build/cpu`\n",
}


class Checks(unittest.TestCase):
    def problems(self, changes):
        """Problems of all checks in the clean tree with `changes` applied."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**CLEAN, **changes}.items():
                path = os.path.join(root, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            with contextlib.redirect_stdout(io.StringIO()):
                return [problem for check in (include_rules, names, documents) for problem in check.check(root)[0]]

    def finds(self, name, text, expected):
        """The planted file is the one problem, and the message says `expected`."""
        found = self.problems({name: text})
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(name), found[0])
        self.assertIn(expected, found[0])

    def test_clean_tree(self):
        self.assertEqual(self.problems({}), [])

    def test_nothing_checked_is_a_failure(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(include_rules.tree.report([], 0), 1)
            self.assertEqual(include_rules.tree.report(["x"], 1), 1)
            self.assertEqual(include_rules.tree.report([], 1), 0)

    def test_rooms(self):
        for name, target in [("platforms/a.cpp", "tier/hash.hpp"), ("platforms/a.cpp", "reports/table.hpp"),
                             ("tier/a.cpp", "reports/table.hpp"), ("tier/a.cpp", "harness/plan.hpp"),
                             ("reports/a.cpp", "platforms/clock.hpp"), ("reports/a.cpp", "tier/hash.hpp"),
                             ("iobench/a.cpp", "harness/plan.hpp"), ("probe/a.cpp", "harness/plan.hpp"),
                             ("python/a.cpp", "probe/windows.hpp"), ("tier/a.cpp", "python/embedded.hpp"),
                             ("harness/a.cpp", "iobench/sweep.hpp"), ("tier/cli/a.cpp", "harness/plan.hpp"),
                             ("tier/a.cpp", "tests/catch.hpp")]:
            with self.subTest(name=name, target=target):
                found = self.problems({target: "", name: f'#include <vector>\n#include "{target}"\n'})
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith(name + ":2: "), found[0])
                self.assertIn("may not include", found[0])

    def test_unknown_room(self):
        self.finds("attic/a.cpp", '#include "tier/hash.hpp"\n', "no known room")

    def test_angle_brackets_do_not_hide(self):
        self.finds("reports/a.cpp", "#include <tier/hash.hpp>\n", "may not include")

    def test_programs(self):
        self.finds("tier/a.cpp", '#include "tier/cli/stage.hpp"\n', "belongs to a program")
        self.finds("harness/cli/a.cpp", '#include "tier/cli/stage.hpp"\n', "belongs to a program")
        self.finds("tests/unit/tier/a.cpp", '#include "tier/cli/stage.hpp"\n', "belongs to a program")

    def test_native_module(self):
        self.finds("python/native/b.cpp", '#include "tier/hash.hpp"\n', "may not include")
        found = self.problems({"python/native/c.hpp": "", "probe/a.cpp": '#include "python/native/c.hpp"\n'})
        self.assertEqual(len(found), 1, found)

    def test_private_folders(self):
        self.finds("harness/a.cpp", '#include "tier/sources/ring.hpp"\n', "private to tier/")
        self.finds("tests/unit/tier/a.cpp", '#include "tier/sources/ring.hpp"\n', "private to tier/")
        self.assertEqual(self.problems({"tier/sources/b.cpp": '#include "tier/sources/ring.hpp"\n'}), [])
        deep = {"tier/sources/deep/x.hpp": "", "tier/a.cpp": '#include "tier/sources/deep/x.hpp"\n'}
        self.assertEqual(len(self.problems(deep)), 1)

    def test_paths_from_the_root(self):
        self.finds("tier/a.cpp", '#include "hash.hpp"\n', "no file of the tree")

    def test_time_headers(self):
        for header in sorted(include_rules.TIME_HEADERS):
            self.finds("tier/a.cpp", f"#include <{header}>\n", "for platforms/ alone")

    def test_time_words(self):
        for code in ["std::thread t;", "std::this_thread::yield();", "std :: chrono::milliseconds(1)", "std::jthread t;",
                     "std::async(f);", "nanosleep(&t, nullptr);", "usleep (1);", "::sleep(1);", "clock_gettime(0, &t);",
                     "gettimeofday(&t, 0);", "int n = 1'000; pthread_create(0);"]:
            for room in ["tier", "harness", "iobench", "probe", "reports", "tier/cli"]:
                self.finds(f"{room}/a.cpp", code + "\n", "come from platforms/")

    def test_names(self):
        for name in ["tier/ut" "ils.hpp", "tier/string_ut" "il.cpp", "com" "mon/a.md", "tests/test_hel" "pers.py"]:
            with self.subTest(name=name):
                found = names_only(self, name)
                self.assertIn("does not say", found)

    def test_markers(self):
        for marker in ["TO" "DO", "FIX" "ME", "X" "XX", "a st" "ub", "not " "implemented"]:
            self.finds("tier/a.cpp", f"\n// {marker}: later\n", "unfinished")
            self.finds("ci/a.sh", f"# {marker}\n", "unfinished")

    def test_machine_paths(self):
        for path in ["/wo" "rk/x", "/ro" "ot/x", "/t" "mp/x"]:
            self.finds("tier/a.md", f"see '{path}'\n", "path of one machine")
        self.assertEqual(self.problems({"ci/a.sh": "mktemp -d /t" "mp/aXXXXXX\n"}), [])

    def test_texts(self):
        self.finds("reports/wheel.whl", "PK\0", "no text")

    def test_documents(self):
        self.finds("ARCHITECTURE.md", "\nsee `tier/gone.hpp`\n", "no 'tier/gone.hpp'")
        self.finds("ARCHITECTURE.md", "see [there](tier/gone.md)\n", "no 'tier/gone.md'")

    def test_lengths(self):
        self.finds("tier/a.cpp", "\n" * 501, "501 lines")
        self.finds("tier/a.md", "\n" * 501, "501 lines")
        self.assertEqual(self.problems({"tier/a.cpp": "\n" * 500, "tier/a.json": "\n" * 1000}), [])


def names_only(case, name):
    found = case.problems({name: "\n"})
    case.assertEqual(len(found), 1, found)
    return found[0]


if __name__ == "__main__":
    unittest.main()
