#!/usr/bin/env python3
"""How often a live run lands inside what the virtual clock predicted: small random configurations on --device cpu.

    sim_against_live.py BIN [--configurations 20] [--seed 1] [--out table.md]
    sim_against_live.py BIN --record FOLDER ...; then, anywhere, with the same options: sim_against_live.py BIN --replay FOLDER ...

Reads come from the page cache behind the wrapper `delayed`, so that their times are known: the link's by its settings, the
rest by one slacktier-iobench sweep before. Each configuration is predicted from that file and a gates file, with the ends of the
fit's intervals. The first --calibrate configurations are run for what idle host threads take to wake (until pages are asked for, and
until a gate opens), which a gates file has of busy ones, how much that changes from run to run, and how well a run's own mean is known
here; the others are predicted with that, and nothing that their live runs measured enters. Standard library only; run it on a quiet machine. --record only measures and runs; --replay
predicts what was recorded. With --untimed it measures nothing and only
checks that both runs agree in what is no time: lookups, hits and pages.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

TABLE = {
    "name": "small", "hash": "engram", "record": "fp8_e4m3_block32", "engram_layer_ids": [1, 14], "engram_max_ngram_size": 4,
    "engram_n_heads": 8, "engram_head_dim": 256, "engram_vocab_size": 12000, "engram_pad_token_id": 0, "vocab_size": 128000,
    "compressed_vocab_size": 128000, "seed": 0,
}
# What the model itself may be wrong by, either way, as the planner assumes without a fit (harness/plan_input.cpp).
MODEL_MS = 0.2


def middle(values):
    return statistics.median(values) if values else 0.0


def run(*command):
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"sim_against_live: {' '.join(command)} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


def windows(w1, w14, step):
    layers = [{"k": k, "w_ms": w, "lo_ms": None, "hi_ms": None, "estimator": "assumed", "status": "assumed", "reason": "assumed"}
              for k, w in ((1, w1), (14, w14))]
    return {"schema": "slacktier/windows/1.0", "settings": {"model": "drawn", "ranks": 1, "device": "cpu"},
            "results": [{"batch": 1, "context": None, "model_layers": 20, "step_ms": step, "perturbation_ms": None,
                         "reason": "assumed", "layers": layers}]}


class Comparison:
    def __init__(self, options, folder):
        self.bin, self.folder, self.options = options.bin, folder, options
        write(self.path("table.json"), TABLE)
        self.wakes, self.noise = [], []  # of each calibrating run: (until pages are asked for, until a gate opens) in us; ms

    def path(self, name):
        return os.path.join(self.folder, name)

    def measure(self):
        """Reads and gates of this machine, and the ends of the fit's intervals as reads files of their own."""
        if self.options.replay:
            for name in ("reads.json", "gates.json"):
                shutil.copy(os.path.join(self.options.replay, name), self.path(name))
        else:
            self.measure_here()
        if self.options.record:
            for name in ("reads.json", "gates.json"):
                shutil.copy(self.path(name), os.path.join(self.options.record, name))
        for end in ("lo", "hi"):
            reads = read(self.path("reads.json"))
            for result in reads["results"]:
                for fit in result["fit"]:
                    fit["a_us"] = max(0, fit[f"a_{end}_us"])
                    fit["b_us"] = {k: max(0.01, b) for k, b in fit[f"b_{end}_us"].items()}
            write(self.path(f"reads-{end}.json"), reads)
            gates = read(self.path("gates.json"))
            write(self.path(f"gates-{end}.json"), gates)

    def measure_here(self):
        run(os.path.join(self.bin, "slacktier-iobench"), "sweep", "--quick", "--disk", self.path("bench.image"), "--create", "64MiB",
            "--table", self.path("table.json"), "--source", self.options.source, "--threads-list", "1", "--batch", "32",
            "--ranks", "1", "--out", self.path("reads.json"), "-q")
        run(os.path.join(self.bin, "slacktier-probe"), "gates", "--device", "cpu", "--out", self.path("gates.json"))

    def calibrate(self, live, modelled):
        """Notes what the live run's host threads took beyond the model's."""
        asked, opened = None, []
        for a, b in zip(live["layers"], modelled["layers"]):
            a, b = a["ranks"][0], b["ranks"][0]
            if b["t_submit_us"]["mean"] is None:
                continue
            if asked is None:
                asked = a["t_submit_us"]["p50"] - b["t_submit_us"]["p50"]
                first = (a["t_submit_us"]["p50"], b["t_submit_us"]["p50"])
            if a["stall_us"]["p50"] > 50 and b["stall_us"]["p50"] > 50:
                opened.append((a["t_open_us"]["p50"] - first[0] - a["t_done_us"]["p50"])
                              - (b["t_open_us"]["p50"] - first[1] - b["t_done_us"]["p50"]))
        self.wakes.append((max(0, asked or 0), max(0, middle(opened)) if opened else None))
        self.noise.append((live["slowdown"]["hi_ms"] - live["slowdown"]["lo_ms"]) / 2)

    def use_calibration(self):
        """Gates files with those wakes; what a prediction may be off by because of host and run, in ms."""
        asked = middle([a for a, _ in self.wakes])
        opened = middle([o for _, o in self.wakes if o is not None])
        for end in ("-lo", "", "-hi"):
            gates = read(self.path(f"gates{end}.json"))
            gates["results"]["post_us"]["mean"] += asked
            for gate in gates["results"]["gates"]:
                if gate["supported"]:
                    gate["release_us"]["mean"] += opened
            write(self.path(f"gates{end}.json"), gates)
        changes = statistics.stdev([a for a, _ in self.wakes]) / 1e3 if len(self.wakes) > 1 else 0
        print(f"host threads wake {asked:.0f} us later than the gates file has until pages are asked for ({1e3 * changes:.0f} us from run to run), "
              f"{opened:.0f} us until a gate opens; a run's mean is known to {middle(self.noise):.2f} ms", flush=True)
        return (MODEL_MS ** 2 + (1.96 * changes) ** 2 + middle(self.noise) ** 2) ** 0.5

    def draw(self, rng):
        cache = rng.choice([0, 0, 500, 3000])
        link = f"delayed:latency_us={rng.randrange(100, 900)},gb_per_s={rng.uniform(0.15, 1.5):.2f}"
        disk = {"source": self.options.source, "wrappers": [link], "cache_rows_per_rank": cache}
        if self.options.source != "buffered":
            del disk["wrappers"]
            link = "none"
        w1, w14 = rng.uniform(0.3, 1.5), rng.uniform(2.0, 5.0)
        return {
            "windows": windows(w1, w14, w14 + rng.uniform(1, 4)), "link": link, "cache": cache,
            "campaign": {
                "name": "drawn", "table": self.path("table.json"), "ranks": 1, "rank": 0, "sessions": rng.choice([4, 8, 16]),
                "warm_steps": 200, "blocks": 10, "block_steps": 25, "lead_steps": 3, "image_bytes": 192 << 20, "check": False,
                "seed": rng.randrange(1, 1000), "workloads": [rng.choice(["agent", "chat"])],
                "placements": [{"name": "DRAM baseline", "layers": {"all": {"source": "dram"}}},
                               {"name": "drawn", "layers": {"1": disk if rng.random() < 0.8 else {"source": "dram"}, "14": disk}}]},
        }

    def harness(self, name, *more):
        run(os.path.join(self.bin, "slacktier-harness"), "run", self.path("campaign.json"), "--windows", self.path("windows.json"), "--rank", "0",
            "--scratch", self.path("scratch"), "--out", self.path(name), "-q", *more)
        return [c for c in read(self.path(name))["results"] if c["name"] == "drawn"][0]

    def fill_page_cache(self):
        """Stages the image by the shortest run there is, and reads it: a page that is not cached would come from the disk."""
        self.harness("staged.json", "--device", "cpu", "--warm-steps", "1", "--blocks", "2", "--block-steps", "2")
        for folder, _, files in os.walk(self.path("scratch")):
            for name in files:
                with open(os.path.join(folder, name), "rb") as file:
                    while file.read(1 << 20):
                        pass

    def live(self, drawn, number):
        """The drawn placement live, or as it was recorded."""
        kept = f"live-{number}.json"
        if self.options.replay:
            return read(os.path.join(self.options.replay, kept))
        if self.options.source == "buffered" and not self.options.untimed:
            self.fill_page_cache()
        live = self.harness("live.json", "--device", "cpu")
        shutil.rmtree(self.path("scratch"))  # an image holds the rows of one seed
        if self.options.record:
            write(os.path.join(self.options.record, kept), live)
        return live

    def compare(self, drawn, number):
        write(self.path("campaign.json"), drawn["campaign"])
        write(self.path("windows.json"), drawn["windows"])
        if self.options.record:
            return self.live(drawn, number)
        modelled = []
        for end in ("-lo", "", "-hi"):
            measured = [] if self.options.untimed else ["--reads", self.path(f"reads{end}.json"), "--gates", self.path(f"gates{end}.json")]
            modelled.append(self.harness("sim.json", "--device", "sim", *measured))
        live = self.live(drawn, number)
        for a, b in zip(live["layers"], modelled[1]["layers"]):
            for field in ("lookups", "owned", "hit_rate", "reuse_rate", "p_any_miss"):
                if a["ranks"][0][field] != b["ranks"][0][field]:
                    sys.exit(f"sim_against_live: layer {a['k']}: {field} is {a['ranks'][0][field]} live, {b['ranks'][0][field]} modelled")
            if a["ranks"][0]["miss_pages_per_step"]["mean"] != b["ranks"][0]["miss_pages_per_step"]["mean"]:
                sys.exit(f"sim_against_live: layer {a['k']}: pages differ")
        means = [m["slowdown"]["mean_ms"] for m in modelled]
        if self.options.times:
            with open(self.options.times, "a", encoding="utf-8") as file:
                json.dump({"campaign": drawn["campaign"], "link": drawn["link"], "live": live, "modelled": modelled[1], "means": means}, file)
                file.write("\n")
        return means, live, modelled[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("bin", help="folder of the programs")
    parser.add_argument("--configurations", type=int, default=20)
    parser.add_argument("--calibrate", type=int, default=5, help="configurations before these that host threads' wakes are taken from")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="Markdown table")
    parser.add_argument("--source", default="buffered", help="buffered, behind drawn links; or uring or pread: the disk itself, and no link")
    parser.add_argument("--times", help="file that gets, a line of JSON a configuration, both runs' times by layer")
    parser.add_argument("--record", help="folder that gets reads, gates and live runs; nothing is predicted")
    parser.add_argument("--replay", help="such a folder, made with the same seed: nothing is measured or run live")
    parser.add_argument("--untimed", action="store_true", help="check lookups, hits and pages only")
    options = parser.parse_args()
    if options.record:
        os.makedirs(options.record, exist_ok=True)
    if options.untimed:
        options.calibrate = 0
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        comparison = Comparison(options, folder)
        if not options.untimed:
            comparison.measure()
        lines, inside, meeting, widths, errors, off = [], 0, 0, [], [], MODEL_MS
        for i in range(options.calibrate + options.configurations):
            drawn = comparison.draw(rng)
            if options.untimed:
                drawn["campaign"].update(blocks=2, block_steps=5, warm_steps=20)
            found = comparison.compare(drawn, i + 1)
            if options.record:
                continue
            if options.untimed:
                print(f"configuration {i + 1}: lookups, hits and pages agree")
                continue
            means, live, modelled = found
            if i < options.calibrate:
                comparison.calibrate(live, modelled)
                if i + 1 == options.calibrate:
                    off = comparison.use_calibration()
                continue
            live, lo, hi = live["slowdown"], min(means) - off, max(means) + off
            inside += lo <= live["mean_ms"] <= hi
            meeting += live["lo_ms"] <= hi and lo <= live["hi_ms"]
            widths.append(hi - lo)
            errors.append(live["mean_ms"] - means[1])
            campaign = drawn["campaign"]
            lines.append(f"| {i + 1} | {campaign['workloads'][0]} | {campaign['sessions']} | {drawn['cache']} | {drawn['link'].split(':')[-1]} "
                         f"| {means[1]:+.2f} | {lo:+.2f} to {hi:+.2f} | {live['mean_ms']:+.2f} [{live['lo_ms']:+.2f}, {live['hi_ms']:+.2f}] "
                         f"| {'yes' if lo <= live['mean_ms'] <= hi else 'no'} |")
            print(lines[-1], flush=True)
        if options.untimed or options.record:
            return
        head = ["| # | load | B | cache rows | link | predicted, ms | interval, ms | live, ms [95%] | inside |",
                "| ---: | :--- | ---: | ---: | :--- | ---: | :--- | :--- | :--- |"]
        rmse = statistics.fmean(e * e for e in errors) ** 0.5
        summary = (f"{inside} of {options.configurations} live runs inside the predicted interval; median width {statistics.median(widths):.2f} ms; "
                   f"RMSE of the means {rmse:.2f} ms; {meeting} live 95% intervals meet the predicted one.")
        print(summary)
        if options.out:
            with open(options.out, "w", encoding="utf-8") as file:
                file.write("\n".join(head + lines) + "\n\n" + summary + "\n")


if __name__ == "__main__":
    main()
