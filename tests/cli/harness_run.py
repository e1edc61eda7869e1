#!/usr/bin/env python3
"""slacktier-harness run as a user meets it: a small campaign end to end, and what each bad input gets."""

import json
import os
import random
import signal
import subprocess
import tempfile
import time
import unittest

import seccomp

PROGRAM = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-harness")
TABLE = {
    "name": "tiny", "hash": "engram", "record": "fp8_e4m3_block32", "engram_layer_ids": [1, 3], "engram_max_ngram_size": 3,
    "engram_n_heads": 4, "engram_head_dim": 256, "engram_vocab_size": 20000, "engram_pad_token_id": 0, "vocab_size": 600,
    "compressed_vocab_size": 600, "seed": 0,
}
WINDOWS = {
    "schema": "slacktier/windows/1.0",
    "settings": {"model": "tiny-model", "ranks": 1, "device": "cpu"},
    "results": [{"batch": 8, "context": None, "model_layers": 5, "step_ms": 4.0, "perturbation_ms": None, "reason": "assumed",
                 "layers": [{"k": k, "w_ms": w, "lo_ms": None, "hi_ms": None, "estimator": "assumed", "status": "assumed",
                             "reason": "assumed"} for k, w in [(1, 0.5), (3, 2.0)]]}],
}


def on_disk(cache=0, source="uring", disks=1):
    return {"source": source, "disks": disks, "threads": 1, "cache_rows_per_rank": cache}


class Run(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ["SLACKTIER_BUILD"])  # temporary folders may lack direct I/O
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.write("tiny.json", TABLE)
        self.write("windows.json", WINDOWS)
        self.write_trace("work.jsonl", 40)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, value):
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(value, file)

    def write_trace(self, name, sessions, turn=30):
        rng = random.Random(5)
        with open(self.path(name), "w", encoding="utf-8") as file:
            for s in range(sessions):
                turns = []
                for _ in range(3):
                    turns.append({"role": "user", "ids": [rng.randrange(3, 600) for _ in range(20)]})
                    turns.append({"role": "assistant", "ids": [rng.randrange(3, 60) for _ in range(turn)]})
                file.write(json.dumps({"id": f"s{s}", "group": "g", "turns": turns}) + "\n")

    def campaign(self, placements=None, **changes):
        dram = {"source": "dram"}
        value = {
            "name": "small", "table": self.path("tiny.json"), "ranks": 1, "rank": 0, "sessions": 8, "warm_steps": 20, "blocks": 3,
            "block_steps": 6, "lead_steps": 1, "image_bytes": 32 << 20, "workloads": [{"name": "work", "traces": [self.path("work.jsonl")]}],
            "placements": [{"name": "DRAM baseline", "layers": {"1": dram, "3": dram}}] + (placements if placements is not None else [
                {"name": "both on disk", "layers": {"1": on_disk(), "3": on_disk()}},
                {"name": "both on disk, cached", "layers": {"1": on_disk(500), "3": on_disk(10**9)}},
            ]),
        }
        value.update(changes)
        self.write("campaign.json", value)
        return self.path("campaign.json")

    def arguments(self, *extra):
        return [PROGRAM, "run", self.path("campaign.json"), "--windows", self.path("windows.json"), "--scratch", self.path("scratch"),
                "--out", self.path("out.json"), "-q", *extra]

    def run_harness(self, *extra, code=0, **options):
        ran = subprocess.run(self.arguments(*extra), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             timeout=300, **options)
        self.assertEqual(ran.returncode, code, f"{extra}: {ran.stdout}{ran.stderr}")
        return ran

    def refused(self, code, parts, *extra, **options):
        ran = self.run_harness(*extra, code=code, **options)
        errors = [line for line in ran.stderr.split("\n") if line.startswith("slacktier-harness: error: ")]
        self.assertEqual(len(errors), 1, ran.stderr)
        for part in parts:
            self.assertIn(part, errors[0])

    def results(self):
        with open(self.path("out.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_a_campaign_end_to_end(self):
        self.campaign()
        ran = self.run_harness()
        self.assertIn("DRAM baseline", ran.stdout)
        results = self.results()
        self.assertEqual([r["name"] for r in results["results"]], ["DRAM baseline", "both on disk", "both on disk, cached"])
        for result in results["results"]:
            self.assertEqual(result["mismatches"], 0)
            self.assertEqual(result["steps"], 18)
            self.assertEqual(result["checked_rows"], 21 * 8 * 8 * 2)
            self.assertGreaterEqual(result["step_ms"]["min"], 4.0)
            self.assertTrue(os.path.exists(os.path.join(self.folder, result["samples"]["file"]))
                            or os.path.exists(os.path.join(self.folder, "out-samples", result["samples"]["file"])))
        uncached = results["results"][1]["layers"][0]["ranks"][0]
        self.assertEqual(uncached["hit_rate"], 0)
        self.assertEqual(uncached["owned"], uncached["lookups"])
        self.assertEqual(uncached["p_any_miss"], 1)
        # A cache larger than the table is a cache of the whole table, not an error.
        self.assertGreater(results["results"][2]["layers"][1]["ranks"][0]["hit_rate"], 0)
        self.assertEqual(results["provenance"]["seed"], 1)
        codes = [w["code"] for w in results["warnings"]]
        self.assertNotIn("windows_assumed", codes)

    def test_prefill_by_reads_is_timed_apart(self):
        self.campaign(warm_steps=2, block_steps=30, prefill="read", prefill_chunk=32)
        ran = self.run_harness()
        self.assertIn("Prefill by chunk", ran.stdout)
        for result in self.results()["results"]:
            self.assertEqual(result["mismatches"], 0)
            prefill = result["prefill"]
            self.assertGreater(prefill["chunk_ms"]["n"], 3)
            self.assertGreater(prefill["tokens"], 3 * 20)
            for layer in prefill["layers"]:
                self.assertEqual(layer["status"], {"ok": prefill["chunk_ms"]["n"]})
                self.assertEqual(layer["read_ms"]["n"] > 0, result["name"] != "DRAM baseline")
        self.assertNotIn("prefill", self.run_and_read("--prefill", "directory")["results"][1])
        self.refused(2, ["--prefill", "'both'", "directory", "read"], "--prefill", "both")
        self.refused(2, ["prefill_chunk"], "--prefill-chunk", "0")

    def run_and_read(self, *extra):
        self.run_harness(*extra)
        return self.results()

    def test_several_tokens_a_session_and_step(self):
        self.campaign(warm_steps=2)
        results = self.run_and_read("--tokens-per-session", "3")
        # Turns of 30 tokens end within no step; a turn of 31 leaves two padded rows of three once a turn.
        self.assertEqual(results["results"][1]["layers"][0]["ranks"][0]["lookups"], 3 * 8 * 8 * 18)
        self.write_trace("work.jsonl", 40, turn=31)
        ran = self.run_harness("--tokens-per-session", "3")
        self.assertIn("q 3", ran.stdout)
        results = self.results()
        for result in results["results"]:
            self.assertEqual(result["mismatches"], 0)
            self.assertEqual(result["checked_rows"], 21 * 8 * 3 * 8 * 2)
        lookups = results["results"][1]["layers"][0]["ranks"][0]["lookups"]
        self.assertLess(lookups, 3 * 8 * 8 * 18)
        self.assertGreater(lookups, 2 * 8 * 8 * 18)

    def test_sources_wrappers_and_reads_on_demand(self):
        self.campaign([
            {"name": "wrapped", "layers": {"1": {**on_disk(), "wrappers": ["shared:tenants=2", "delayed:latency_us=20"]},
                                           "3": {**on_disk(50), "read": "on-demand"}}},
            {"name": "cached", "layers": {"1": {**on_disk(source="buffered"), "page_cache": {"drop": True}},
                                          "3": on_disk(source="mmap", disks=2)}}])
        self.run_harness()
        results = self.results()
        self.assertEqual([r["mismatches"] for r in results["results"]], [0, 0, 0])
        layers = results["results"][1]["placement"]["layers"]
        self.assertEqual(layers["1"]["wrappers"], ["shared:tenants=2", "delayed:latency_us=20"])
        self.assertEqual(layers["3"]["read"], "on-demand")
        sources, activity = results["settings"]["sources"], results["settings"]["activity"]["work"]
        self.assertIn("delayed as by a link of 20 us, shared with 1 other(s)", sources["wrapped"]["1"])
        self.assertIn("on demand", sources["wrapped"]["3"])
        self.assertIn("pages read by others", activity["wrapped"]["1"]["end"])
        for k in ["1", "3"]:
            self.assertIn("page cache holds", activity["cached"][k]["begin"])
            self.assertIn("page cache holds", activity["cached"][k]["end"])
        disks = results["provenance"]["disks"]
        self.assertEqual(len(disks), 3)
        for disk in disks:
            self.assertEqual(disk["extents"]["hole_bytes"] if disk["extents"] else 0, 0)
            self.assertIn("works", disk["direct_io"])
            self.assertIn("options", disk["file_system"])
            self.assertEqual(disk["extents"]["unwritten_bytes"] if disk["extents"] else 0, 0)
        self.assertFalse({"image_holes", "image_unwritten"} & {w["code"] for w in results["warnings"]})
        self.run_harness("--redact")
        text = json.dumps(self.results())
        for disk in disks:
            self.assertNotIn(disk["path"], text)
            if disk.get("serial"):
                self.assertNotIn(disk["serial"], text)

    def test_tables_in_device_memory_and_rows_in_fp32(self):
        self.campaign([{"name": "first in HBM", "layers": {"1": {"source": "hbm"}, "3": on_disk(50)}}])
        results = self.run_and_read("--output", "fp32")
        self.assertEqual([r["mismatches"] for r in results["results"]], [0, 0])
        self.assertEqual(results["settings"]["output"], "fp32")
        self.assertEqual(results["results"][1]["placement"]["layers"]["1"], {"source": "hbm"})
        self.assertTrue(results["settings"]["sources"]["first in HBM"]["1"].startswith("device memory, "))
        self.assertEqual(self.run_and_read("--output", "bf16")["settings"]["output"], "bf16")
        self.refused(2, ["--output", "'fp8'", "bf16", "fp32"], "--output", "fp8")
        self.campaign([{"name": "far", "layers": {"1": {"source": "peer", "peer": "cuda:1"}, "3": on_disk()}}])
        self.refused(3, ["far: layer 1 in peer", "a cpu device has no peers"])
        self.campaign([{"name": "far", "layers": {"1": {"source": "peer"}, "3": on_disk()}}])
        self.refused(2, ["placements[1].layers.1.peer", "is missing", "cuda:1"])

    def test_a_gates_file_says_what_auto_is(self):
        none = {"n": 0, "mean": None, "p50": None, "p99": None, "min": None, "max": None, "reason": "not measured"}

        def write_gates(gate, name):
            self.write("gates.json", {
                "schema": "slacktier/gates/1.0", "settings": {"device": "cpu"}, "warnings": [],
                "provenance": {"tool": "by hand", "version": "0", "commit": "unknown", "dirty": False, "argv": [], "seed": 0,
                               "start_utc": None, "device": {"name": name}},
                "results": {"gates": [{"gate": gate, "supported": True, "dispatch_us": none, "release_us": none}],
                            "callbacks_serialised": None, "reason": "by hand", "default_gate": gate}})

        self.campaign()
        write_gates("futex", "cpu")
        device = self.run_and_read("--gates", self.path("gates.json"))["provenance"]["device"]
        self.assertEqual([device["gate"], device["work"]], ["futex", "wait"])
        write_gates("futex", "NVIDIA H200")
        self.refused(2, ["gates.json", "was measured on NVIDIA H200", "cpu is cpu"], "--gates", self.path("gates.json"))
        write_gates("spin", "NVIDIA H200")
        self.refused(2, ["gates.json", "measured gate spin", "of another device"], "--gates", self.path("gates.json"))
        self.refused(2, ["windows.json", "gates"], "--gates", self.path("windows.json"))

    def test_steps_without_a_graph(self):
        self.campaign()
        with_graph = self.run_and_read()
        without = self.run_and_read("--no-graph")
        self.assertEqual([with_graph["settings"]["graph"], without["settings"]["graph"]], [True, False])
        self.assertIn("no_graph", [w["code"] for w in without["warnings"]])
        for a, b in zip(with_graph["results"], without["results"]):
            self.assertEqual([a["mismatches"], b["mismatches"]], [0, 0])
            self.assertEqual(a["checked_rows"], b["checked_rows"])
            for one, other in zip(a["layers"], b["layers"]):
                for field in ["lookups", "owned", "hit_rate", "reuse_rate", "miss_pages_per_step"]:
                    self.assertEqual(one["ranks"][0].get(field), other["ranks"][0].get(field), field)

    def test_a_faulty_disk_ends_the_run_and_is_named(self):
        self.campaign([{"name": "faulty", "layers": {"1": {**on_disk(), "wrappers": ["faulty:class=stale,nth=300"]}, "3": on_disk()}}])
        self.refused(4, ["layer 1: page ", "stale", "what had run is saved in"])
        self.assertIn("device_failure", [w["code"] for w in self.results()["warnings"]])

    def test_a_memory_limit_is_set_or_its_refusal_says_how(self):
        self.campaign()
        ran = subprocess.run(self.arguments("--memory-limit", "16GiB"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=300)
        self.assertIn(ran.returncode, [0, 3], ran.stderr)
        if ran.returncode == 3:
            self.assertIn("systemd-run --scope -p MemoryHigh=17179869184", ran.stderr)
        else:
            self.assertIsNotNone(self.results()["provenance"]["host"]["cgroup_memory_high_bytes"])

    def test_formats_and_dry_run(self):
        self.campaign()
        self.assertIn("steps", self.run_harness("--dry-run").stdout)
        self.assertFalse(os.path.exists(self.path("out.json")))
        for form in ["md", "csv", "json"]:
            ran = self.run_harness("--format", form)
            self.assertIn("both on disk", ran.stdout)
        json.loads(self.run_harness("--format", "json").stdout)

    def test_help_and_list(self):
        ran = subprocess.run([PROGRAM, "run", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0)
        self.assertIn("--placement", ran.stdout)
        ran = subprocess.run([PROGRAM, "run", "--list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertIn("quickstart", ran.stdout)
        self.assertIn("placement", ran.stdout)

    def test_a_placement_file(self):
        self.campaign()
        self.write("placement.json", {"schema": "slacktier/placement/1.0",
                                      "settings": {"model": None, "table": "tiny", "ranks": 1, "shard_map": "contiguous"},
                                      "results": {"name": "mine", "layers": {"1": {"source": "dram"}, "3": on_disk(100)}}})
        self.run_harness("--placement", self.path("placement.json"))
        self.assertEqual([r["name"] for r in self.results()["results"]], ["DRAM baseline", "mine"])

    def both_on_disk(self, **changes):
        return {"name": "mine", "layers": {"1": on_disk(100), "3": on_disk(100)}, **changes}

    def codes(self):
        return [warning["code"] for warning in self.results()["warnings"]]

    def test_policies(self):
        policies = ["lru", "s3fifo", "sieve", "static"]
        layers = {"1": on_disk(3000), "3": on_disk(3000)}
        self.campaign([self.both_on_disk(name=policy, layers=layers, cache={"policy": policy}) for policy in policies])
        self.run_harness()
        for result in self.results()["results"][1:]:
            self.assertEqual(result["mismatches"], 0)
            self.assertGreater(result["layers"][0]["ranks"][0]["hit_rate"], 0, result["name"])

    def test_hot_rows_from_a_file(self):
        self.campaign([{"name": "hot", "layers": {"1": on_disk(10**9), "3": on_disk(0)},
                        "cache": {"policy": "static", "hot_rows": self.path("hot.json")}}])
        settings = {"table": "tiny", "table_fingerprint": "0" * 16}
        hot = {"schema": "slacktier/hot-rows/1.0", "settings": settings, "results": {"layers": {"1": list(range(155000)), "3": []}}}
        self.write("hot.json", hot)
        self.refused(2, ["hot.json", "table_fingerprint"])
        self.campaign([])
        self.run_harness()
        settings["table_fingerprint"] = self.results()["settings"]["table_fingerprint"]
        self.write("hot.json", hot)
        self.campaign([{"name": "hot", "layers": {"1": on_disk(10**9), "3": on_disk(0)},
                        "cache": {"policy": "static", "hot_rows": self.path("hot.json")}}])
        self.run_harness()
        result = self.results()["results"][1]
        self.assertEqual(result["mismatches"], 0)
        self.assertGreater(result["layers"][0]["ranks"][0]["hit_rate"], 0.9)
        self.assertEqual(result["layers"][1]["ranks"][0]["hit_rate"], 0)

    def test_a_control_file(self):
        layers = {"1": dict(on_disk(100), cache_rows_reserved_per_rank=500), "3": on_disk(100)}
        self.campaign([self.both_on_disk(layers=layers)])
        control = {"schema": "slacktier/control/1.0", "results": {"layers": {"1": {"cache_rows_per_rank": 500}, "3": {"cache_rows_per_rank": 0}}}}
        self.write("control.json", control)
        ran = self.run_harness("--control", self.path("control.json"))
        self.assertIn("control.json applied (change 1)", ran.stderr)
        self.assertIn("control_applied", self.codes())
        self.assertEqual(self.results()["results"][1]["mismatches"], 0)
        self.assertEqual(self.results()["results"][1]["layers"][1]["ranks"][0]["hit_rate"], 0)
        control["results"]["layers"]["1"]["cache_rows_per_rank"] = 501
        self.write("control.json", control)
        ran = self.run_harness("--control", self.path("control.json"))
        self.assertEqual(ran.stderr.count("501 rows are more than the 500 reserved"), 1)
        self.assertIn("control_refused", self.codes())
        self.assertGreater(self.results()["results"][1]["layers"][1]["ranks"][0]["hit_rate"], 0)
        self.campaign()
        self.refused(2, ["--control", "--placement"], "--control", self.path("control.json"))

    def test_a_split_controller(self):
        # Times of a busy machine decide where it goes, not that it tries: 70 steps are two observations.
        self.campaign([self.both_on_disk(layers={"1": on_disk(400), "3": on_disk(400)})], blocks=7, block_steps=10)
        ran = self.run_harness("--controller")
        self.assertIn("controller.json applied (change 1)", ran.stderr)
        results = self.results()
        controller = results["settings"]["controller"]["work"]
        self.assertEqual(controller["rows_per_rank"], 800)
        self.assertEqual([o["share"] for o in controller["observations"]], [0.5, 0.75])
        self.assertEqual(results["results"][1]["mismatches"], 0)
        self.assertEqual(results["results"][1]["placement"]["layers"]["1"]["cache_rows_reserved_per_rank"], 800)
        with open(self.path("scratch/controller.json"), encoding="utf-8") as file:
            rows = {k: layer["cache_rows_per_rank"] for k, layer in json.load(file)["results"]["layers"].items()}
        self.assertEqual(sum(rows.values()), 800)
        self.campaign([self.both_on_disk(layers={"1": on_disk(0), "3": on_disk(0)})])
        self.refused(2, ["no layer has a cache to share"], "--controller")
        self.campaign()
        self.refused(2, ["--controller", "--placement"], "--controller")

    def test_rows_never_seen_are_skipped(self):
        def build(ranks, *traces, code=0):
            arguments = [PROGRAM, "seen-set", "build", "--table", self.path("tiny.json"), "--ranks", str(ranks), "-o", self.path("seen")]
            for trace in traces:
                arguments += ["--trace", self.path(trace)]
            ran = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
            self.assertEqual(ran.returncode, code, ran.stderr)
            return ran

        self.campaign([self.both_on_disk(skip_unseen=self.path("seen"))])
        self.assertIn("40 sessions", build(1, "work.jsonl").stdout)
        shown = subprocess.run([PROGRAM, "seen-set", "show", self.path("seen")], stdout=subprocess.PIPE, text=True, timeout=60)
        self.assertIn("layer   3, rank 0 of 1 (contiguous)", shown.stdout)
        self.run_harness()
        for layer in self.results()["results"][1]["layers"]:
            self.assertEqual(layer["ranks"][0]["skipped"], 0)
        with open(self.path("work.jsonl"), encoding="utf-8") as whole, open(self.path("half.jsonl"), "w", encoding="utf-8") as half:
            half.writelines(whole.readlines()[:4])
        build(1, "half.jsonl")
        ran = self.run_harness()
        result = self.results()["results"][1]
        self.assertEqual(result["mismatches"], 0)
        for layer in result["layers"]:
            self.assertGreater(layer["ranks"][0]["skipped"], 0)
            self.assertLess(layer["ranks"][0]["skipped"], layer["ranks"][0]["owned"])
        self.assertNotIn("skipped", self.results()["results"][0]["layers"][0]["ranks"][0])
        self.assertIn("rows_skipped", self.codes())
        self.assertIn("delivered as zeros", ran.stdout)
        build(2, "half.jsonl")
        self.refused(2, ["seen", "ranks is 2"])
        build(1, "none.jsonl", code=2)

    def test_too_few_sessions(self):
        self.campaign()
        self.write_trace("work.jsonl", 9, turn=3)
        self.refused(2, ["sessions"])

    def test_a_torn_trace_line(self):
        self.campaign()
        with open(self.path("work.jsonl"), "r+", encoding="utf-8") as file:
            lines = file.readlines()
            lines[4] = lines[4][:60] + "\n"
            file.seek(0)
            file.truncate()
            file.writelines(lines)
        self.refused(2, ["work.jsonl:5"])

    def test_unknown_names(self):
        self.campaign([{"name": "x", "layers": {"1": on_disk(source="floppy"), "3": on_disk()}}])
        self.refused(2, ["campaign.json", "floppy", "uring"])
        self.campaign([{"name": "x", "layers": {"1": on_disk(), "7": on_disk()}}])
        self.refused(2, ["campaign.json", "layer 7", "1, 3"])
        self.campaign([{"name": "x", "layers": {"1": on_disk()}}])
        self.refused(2, ["layer 3", "missing"])
        self.campaign([{"name": "x", "layers": {"1": on_disk(), "3": on_disk()}, "cache": {"policy": "psychic"}}])
        self.refused(2, ["psychic", "clock"])
        self.campaign(blcks=3)
        self.refused(2, ["blcks"])
        ran = subprocess.run([PROGRAM, "run", "no-such-campaign", "-q"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("quickstart", ran.stderr)

    def test_an_image_of_another_seed_is_staged_again_or_refused(self):
        self.campaign()
        self.run_harness()
        image = [f for f in os.listdir(self.path("scratch")) if f.endswith(".slacktier")]
        self.assertEqual(len(image), 1)
        self.campaign(rank=0, ranks=2)
        self.refused(2, [image[0]], "--disk", os.path.join(self.path("scratch"), image[0]))

    def test_a_truncated_image(self):
        self.campaign()
        self.run_harness()
        image = os.path.join(self.path("scratch"), os.listdir(self.path("scratch"))[0])
        os.truncate(image, 2 << 20)
        self.refused(2, [os.path.basename(image)], "--disk", image)

    def test_io_uring_refused_by_seccomp(self):
        self.campaign([{"name": "uring", "layers": {"1": {"source": "dram"}, "3": on_disk()}}])
        self.refused(3, ["io_uring", "seccomp", "pread"], preexec_fn=seccomp.refuse_io_uring)
        self.campaign([{"name": "pread", "layers": {"1": {"source": "dram"}, "3": on_disk(source="pread")}}])
        self.run_harness(preexec_fn=seccomp.refuse_io_uring)
        self.assertIn("pread", self.results()["settings"]["sources"]["pread"]["3"])

    def test_a_file_system_without_direct_io(self):
        if not os.path.isdir("/dev/shm"):
            self.skipTest("no tmpfs at hand")
        self.campaign()
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            self.refused_or_direct(folder)

    def refused_or_direct(self, folder):
        ran = subprocess.run(self.arguments("--disk", folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, timeout=300)
        if ran.returncode == 0:  # Linux 6.6 and later have direct I/O on tmpfs
            self.assertEqual(self.results()["results"][1]["mismatches"], 0)
        else:
            self.assertEqual(ran.returncode, 3, ran.stderr)
            self.assertIn("direct", ran.stderr)

    def spoil_images_soon(self, how):
        process = subprocess.Popen(self.arguments("--blocks", "60"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        scratch = self.path("scratch")
        deadline = time.monotonic() + 120
        # The image is complete when the run has mapped its host tables and begun: its samples of CPU time grow; a second is plenty.
        while time.monotonic() < deadline and not (os.path.isdir(scratch) and os.listdir(scratch)):
            time.sleep(0.05)
        time.sleep(2.0)
        if process.poll() is None:
            how(process, os.path.join(scratch, os.listdir(scratch)[0]))
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def test_a_read_error_in_mid_run(self):
        self.campaign(warm_steps=5)
        self.write_trace("work.jsonl", 400)
        status, out, err = self.spoil_images_soon(lambda process, image: os.truncate(image, 1 << 20))
        self.assertEqual(status, 4, err)
        self.assertIn("page", err)
        self.assertIn(".slacktier", err)
        self.assertIn("both on disk", out)
        self.assertIn("device_failure", [w["code"] for w in self.results()["warnings"]])

    def test_interrupted(self):
        self.campaign(warm_steps=5)
        self.write_trace("work.jsonl", 400)
        status, _, err = self.spoil_images_soon(lambda process, image: process.send_signal(signal.SIGINT))
        self.assertEqual(status, 130, err)
        self.assertIn("interrupted", [w["code"] for w in self.results()["warnings"]])


if __name__ == "__main__":
    unittest.main()
