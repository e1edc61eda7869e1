"""Alternating runs of fio and slacktier-iobench; against_fio.sh starts it. Standard library only.

Both read the same bytes of the same file: the job is what `slacktier-iobench run --print-fio` prints, with a number of reads instead
of a running time. Times are each program's own: fio's runtime over its batches, our time of whole cycles (drawing the pages, reading
them, looking at what came) over ours. CPU is what each one's threads used in that time.
"""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile

# Student's t, 97.5%, by degrees of freedom; more of them count as the last.
T975 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 11: 2.201, 14: 2.145, 19: 2.093, 29: 2.045}


def output_of(command):
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"against_fio: {' '.join(command)} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


class Comparison:
    """One load, read by both programs in turn."""

    def __init__(self, options, scratch, pages, threads, cached=False):
        self.options, self.scratch, self.pages, self.threads, self.cached = options, scratch, pages, threads, cached
        self.load = [options.program, "run", "--disk", options.disk, "--pages", f"{options.layer}:{pages}", "--threads", str(threads)]
        if cached:
            self.load.append("--page-cached")
        self.batches = 20
        self.pairs = []  # (fio, ours) of {"wall_us": a batch's, "cpu_us": a page's, "rate": pages a second}

    def ours(self):
        text = output_of([*self.load, "-q", "--duration", f"{self.options.seconds}s", "--format", "json"])
        point = json.loads(text)["results"][0]["points"][0]
        self.batches = point["batch_us"]["n"]  # as many for fio's next run
        return {"wall_us": point["cycle_us"], "cpu_us": point["cycle_cpu_us_per_page"], "rate": point["pages_per_s"]}

    def fio(self):
        job = output_of([*self.load, "--print-fio"]).split("\n")
        job = [line for line in job if line != "time_based" and not line.startswith("runtime=")]
        # Each job reads its part of the batches; as slacktier's threads share each batch.
        page_bytes = int(next(line for line in job if line.startswith("bs=")).split("=")[1])
        share = int(next(line for line in job if line.startswith("iodepth=")).split("=")[1])
        if self.threads > 1:  # free-running, at the depth that a thread of ours keeps: 128 a disk
            depth = max(1, min(share, 128 // self.threads))
            job = [f"iodepth={depth}" if line.startswith("iodepth=") else line for line in job if not line.startswith("iodepth_batch")]
            some = min(32, depth)
            job += [f"iodepth_batch={some}", "iodepth_batch_complete_min=1", f"iodepth_batch_complete_max={some}"]
        job.append(f"io_size={share * self.batches * page_bytes}")
        path = os.path.join(self.scratch, "job.fio")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(job) + "\n")
        text = output_of([self.options.fio, "--readonly", "--output-format=json", path])
        job = json.loads(text[text.index("{"):])["jobs"][0]
        read = job["read"]
        seconds = read["runtime"] / 1e3
        # usr_cpu and sys_cpu are of job_runtime, which is the sum of all jobs'.
        cpu = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1e3
        batches = read["total_ios"] / (share * self.threads)
        return {"wall_us": seconds / batches * 1e6, "cpu_us": cpu / read["total_ios"] * 1e6, "rate": read["total_ios"] / seconds}

    def alternate(self):
        if self.cached:  # the whole file into memory, before either
            with open(self.options.disk, "rb") as file:
                while file.read(1 << 24):
                    pass
        self.ours(), self.fio()  # warm
        for turn in range(self.options.turns):
            if turn % 2 == 0:
                fio = self.fio()
                self.pairs.append((fio, self.ours()))
            else:
                ours = self.ours()
                self.pairs.append((self.fio(), ours))
            print(f"  {turn + 1}/{self.options.turns}: {self.pairs[-1]}", file=sys.stderr)

    def row(self, what, key, unit, goal, inverse=False):
        logs = [math.log(f[key] / o[key] if inverse else o[key] / f[key]) for f, o in self.pairs]
        middle = statistics.mean(logs)
        half = T975[max(d for d in T975 if d <= len(logs) - 1)] * statistics.stdev(logs) / math.sqrt(len(logs))
        of = lambda side: statistics.median(pair[side][key] for pair in self.pairs)
        digits = 2 if key == "cpu_us" else 0
        return (f"| {what} | {self.pages} | {self.threads} | {of(0):.{digits}f} {unit} | {of(1):.{digits}f} {unit} | "
                f"**{math.exp(middle):.3f}** | [{math.exp(middle - half):.3f}, {math.exp(middle + half):.3f}] | "
                f"{math.exp(min(logs)):.3f}–{math.exp(max(logs)):.3f} | {goal} |")


def main():
    parser = argparse.ArgumentParser(prog="against_fio.sh", description="fio and slacktier-iobench on the same file, in alternating runs")
    parser.add_argument("--fio", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--program", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--disk", required=True, help="staged image; made if it is not there and --create is given")
    parser.add_argument("--create", help="size of an image to make, such as 4GiB")
    parser.add_argument("--layer", type=int, default=14)
    parser.add_argument("--pages", default="32,128,704", help="pages a batch at one thread")
    parser.add_argument("--threads", default="2,4", help="numbers of threads")
    parser.add_argument("--rate-pages", type=int, default=16384, help="pages a batch at several threads")
    parser.add_argument("--cached-pages", default="128,704", help="pages a batch from the page cache")
    parser.add_argument("--turns", type=int, default=10, help="pairs of runs")
    parser.add_argument("--seconds", type=float, default=2, help="length of a run; fio reads as many batches as we did")
    options = parser.parse_args()
    if options.turns < 2:
        parser.error("--turns: an interval needs at least 2")
    if options.create:
        output_of([options.program, "run", "--disk", options.disk, "--create", options.create, "--pages", f"{options.layer}:4", "--batches",
                   "1", "--rounds", "1", "-q"])
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        numbers = lambda text: [int(part) for part in text.split(",") if part]
        for pages in numbers(options.pages):
            comparison = Comparison(options, scratch, pages, 1)
            comparison.alternate()
            rows.append(comparison.row("time of a batch", "wall_us", "µs", "≤ 1.05"))
        for threads in numbers(options.threads):
            comparison = Comparison(options, scratch, options.rate_pages, threads)
            comparison.alternate()
            rows.append(comparison.row("pages a second (fio's over ours)", "rate", "/s", "≤ 1.05", inverse=True))
        for pages in numbers(options.cached_pages):
            comparison = Comparison(options, scratch, pages, 1, cached=True)
            comparison.alternate()
            rows.append(comparison.row("CPU per page, page cache", "cpu_us", "µs", "≤ 1"))
            rows.append(comparison.row("time of a batch, page cache", "wall_us", "µs", ""))
    version = output_of([options.fio, "--version"]).strip()
    print(f"{version}, kernel {platform.release()}, {os.cpu_count()} CPUs; {options.turns} pairs of runs, alternating; medians, the ratio's "
          f"geometric mean over the pairs with its 95% interval, and its range.\n")
    print("| what | pages | threads | fio | slacktier-iobench | ratio | 95% | min–max | goal |")
    print("| :--- | ---: | ---: | ---: | ---: | ---: | :--- | :--- | :--- |")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
