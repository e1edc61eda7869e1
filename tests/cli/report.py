#!/usr/bin/env python3
"""slacktier-harness report: the page's structure, its Markdown and CSV, with and without matplotlib, and in a real browser where there is
one."""

import csv
import html.parser
import json
import os
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-harness")
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "unit", "reports", "examples")
KINDS = ["windows", "reads", "misses", "results", "placement", "exposure", "gates", "pairs", "control", "hot-rows"]
VOID = {"meta", "link", "br", "hr", "img", "input"}

MEASURE = """<script>
const scrolls = e => { for (; e && e !== document.body; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflowX)) return true;
  return false; };
document.body.dataset.measured = JSON.stringify({
  window: innerWidth, page: document.documentElement.scrollWidth,
  tables: [...document.querySelectorAll("table")].map(t => ({width: t.getBoundingClientRect().width, scrolls: scrolls(t),
    letters: parseFloat(getComputedStyle(t.querySelector("td, th")).fontSize)})),
  figures: [...document.querySelectorAll("figure svg")].map(f => f.getBoundingClientRect()).map(
    r => ({width: r.width, height: r.height, right: r.right}))});
</script>"""


class Page(html.parser.HTMLParser):
    """Elements with their attributes; fails on what is left open or closed twice."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text, self.problems = [], [], [], []
        self.feed(text)
        self.close()
        if self.open:
            self.problems.append(f"left open: {self.open}")

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes), list(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes), list(self.open)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"closed out of order: {tag} at {self.getpos()}")

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes, _ in self.elements if name == tag]


class Report(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def report(self, *files, code=0, environment=None):
        out = os.path.join(self.folder, "report")
        ran = subprocess.run([PROGRAM, "report", *files, "-o", out], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=300, env=environment)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        self.said = ran.stdout + ran.stderr
        if code:
            return None
        with open(os.path.join(out, "report.html"), encoding="utf-8") as file:
            self.text = file.read()
        return Page(self.text)

    def examples(self, *kinds):
        return [os.path.join(EXAMPLES, kind + ".json") for kind in kinds or KINDS]

    def test_structure(self):
        page = self.report(*self.examples())
        self.assertEqual(page.problems, [])
        self.assertEqual(page.all("html")[0]["lang"], "en")
        self.assertEqual(len(page.all("h1")), 1)
        self.assertEqual(len(page.all("title")), 1)
        self.assertIn("width=device-width", [meta.get("content", "") for meta in page.all("meta")][-1])
        # No script, nothing from elsewhere.
        self.assertEqual(page.all("script") + page.all("img") + page.all("iframe"), [])
        for _, attributes, _ in page.elements:
            for name in ("src", "href"):
                self.assertTrue(attributes.get(name, "#").startswith(("#", "data:")), attributes)
        self.assertNotIn("@import", self.text)
        for media in ("prefers-color-scheme: dark", "@media print"):
            self.assertIn(media, self.text)
        # Ids are each once, and links lead somewhere.
        ids = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
        self.assertEqual(len(ids), len(set(ids)), [one for one in ids if ids.count(one) > 1])
        for link in page.all("a"):
            self.assertIn(link["href"][1:], ids)
        # Tables: a caption, header cells with scope, a region that can be reached and has a name.
        tables = page.all("table")
        self.assertGreater(len(tables), 12)
        self.assertEqual(len(page.all("caption")), len(tables))
        for header in page.all("th"):
            self.assertIn(header.get("scope"), ("col", "row"))
        for region in (one for one in page.all("div") if one.get("role") == "region"):
            self.assertEqual(region["tabindex"], "0")
            self.assertIn(region["aria-labelledby"], ids)
        words = " ".join(page.text)
        for kind in KINDS:
            self.assertIn(kind + ": " + kind + ".json", words)
        for fact in ("0123456789ab", "AMD EPYC 9554", "SAMSUNG MZQL27T6", "windows: the paper's 4xH200, not this machine"):
            self.assertIn(fact, words)

    def test_figures_or_the_reason(self):
        page = self.report(*self.examples("windows", "reads", "misses", "results", "exposure"))
        if "without figures" in self.said:
            self.assertIn("matplotlib", " ".join(page.text))
            self.skipTest("matplotlib is not there")
        self.assertGreaterEqual(len(page.all("figure")), 7)
        self.assertEqual(len(page.all("svg")), len(page.all("figure")))
        for figure in page.all("figure"):
            self.assertGreater(len(figure["aria-label"]), 20)
        for title in ("Read times beside windows", "Prefetch windows over depth", "Hit rate against cache size", "Residuals of the fit",
                      "A mean step of"):
            self.assertIn(title, self.text)

    def test_without_matplotlib(self):
        # An environment of its own that has nothing, and no packages of the user's.
        version = subprocess.run([os.environ.get("PYTHON", "python3"), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                                 stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        empty = os.path.join(self.folder, "environment")
        os.makedirs(os.path.join(empty, "lib", "python" + version, "site-packages"))
        with open(os.path.join(empty, "pyvenv.cfg"), "w", encoding="utf-8") as file:
            file.write(f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {version}.0\n")
        page = self.report(*self.examples("results"), environment={**os.environ, "VIRTUAL_ENV": empty, "PYTHONNOUSERSITE": "1"})
        self.assertEqual(page.problems, [])
        self.assertIn("without figures", self.said)
        self.assertEqual(page.all("figure"), [])
        self.assertGreater(len(page.all("table")), 1)
        self.assertIn("Without figures: ", " ".join(page.text))

    def test_markdown_and_csv(self):
        self.report(*self.examples("results"))
        out = os.path.join(self.folder, "report")
        with open(os.path.join(out, "report.md"), encoding="utf-8") as file:
            markdown = file.read()
        self.assertTrue(markdown.startswith("# SlackTier report"))
        self.assertIn("| both on 1 disk, cache split evenly", markdown)
        tables = [name for name in os.listdir(out) if name.endswith(".csv")]
        self.assertGreaterEqual(len(tables), 3)
        for name in tables:
            with open(os.path.join(out, name), encoding="utf-8", newline="") as file:
                lines = list(csv.reader(file))
            self.assertEqual(len({len(line) for line in lines}), 1, name)

    def test_what_is_in_a_file_is_text(self):
        with open(os.path.join(EXAMPLES, "results.json"), encoding="utf-8") as file:
            envelope = json.load(file)
        envelope["results"][0]["name"] = "<script>alert(1)</script> & \"quoted\""
        path = os.path.join(self.folder, "hostile<b>.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(envelope, file)
        page = self.report(path)
        self.assertEqual(page.problems, [])
        self.assertEqual(page.all("script") + page.all("b"), [])

    def test_bad_input(self):
        self.report(os.path.join(self.folder, "absent.json"), code=2)
        self.assertIn("absent.json", self.said)
        path = os.path.join(self.folder, "broken.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write("{\"schema\": \"slacktier/results/1.0\"")
        self.report(path, *self.examples("windows"), code=2)
        self.assertIn("broken.json", self.said)

    def in_browser(self, width):
        """What a browser of that width makes of the page, by a script that only this copy of it has: [what it measured, console lines]."""
        browser = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
        if not browser:
            self.skipTest("no Chromium is installed")
        measured = os.path.join(self.folder, "report", f"measured-{width}.html")
        with open(measured, "w", encoding="utf-8") as file:
            file.write(self.text.replace("</body>", MEASURE + "</body>"))
        try:
            ran = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
                                  "--user-data-dir=" + os.path.join(self.folder, "browser"), f"--window-size={width},844", "--dump-dom",
                                  "file://" + measured], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 timeout=180)
        except subprocess.TimeoutExpired:
            self.skipTest("the browser did not end")
        shown = Page(ran.stdout).all("body") if ran.returncode == 0 and "<html" in ran.stdout else []
        if not shown or "data-measured" not in shown[0]:
            self.skipTest("the browser cannot run here: " + ran.stderr[-300:])
        return json.loads(shown[0]["data-measured"]), [line for line in ran.stderr.splitlines() if "CONSOLE" in line]

    def test_in_a_browser(self):
        page = self.report(*self.examples())
        for width in (390, 1200):
            seen, console = self.in_browser(width)
            with self.subTest(width):
                self.assertEqual(console, [])
                self.assertEqual(len(seen["tables"]), len(page.all("table")))
                # Nothing is wider than the page but what scrolls in a box of its own, and letters are of a readable size.
                self.assertLessEqual(seen["page"], seen["window"])
                for table in seen["tables"]:
                    self.assertGreaterEqual(table["letters"], 11)
                    self.assertTrue(table["width"] <= seen["window"] or table["scrolls"], table)
                for figure in seen["figures"]:
                    self.assertGreater(min(figure["width"], figure["height"]), 60)
                    self.assertLessEqual(figure["right"], seen["window"] + 1)


if __name__ == "__main__":
    unittest.main()
