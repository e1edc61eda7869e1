#!/usr/bin/env python3
"""slacktier-tier serve, metrics, and the programs that read from it, as a user meets them; all on 127.0.0.1."""

import json
import os
import signal
import struct
import subprocess
import tempfile
import time
import unittest

BIN = os.environ["SLACKTIER_BIN"]
TIER, IOBENCH, HARNESS = (os.path.join(BIN, "slacktier-" + name) for name in ("tier", "iobench", "harness"))
TABLE = {
    "name": "tiny", "hash": "engram", "record": "fp8_e4m3_block32", "engram_layer_ids": [1, 14], "engram_max_ngram_size": 4,
    "engram_n_heads": 8, "engram_head_dim": 256, "engram_vocab_size": 500, "engram_pad_token_id": 2, "vocab_size": 1000,
    "compressed_vocab_size": 900, "seed": 0,
}
PATIENCE = 120


class Served:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([TIER, "serve", "--listen", "127.0.0.1:0", *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.head = self.process.stdout.readline()
        line = self.process.stdout.readline()
        assert line.startswith("listening on 127.0.0.1:"), (self.head, line, self.process.stderr.read())
        self.address = line.split()[-1]

    def end(self, signal_number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, err


class Serve(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.table = self.path("tiny.json")
        with open(self.table, "w") as file:
            json.dump(TABLE, file)
        self.key = self.make_key("key", "a key that is long enough")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def make_key(self, name, key):
        path = self.path(name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(key + "\n")
        return path

    def serve(self, *arguments):
        served = Served("--key-file", self.key, *arguments)
        self.addCleanup(served.end, signal.SIGKILL)
        return served

    def run_program(self, program, *arguments, code=0):
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=600, cwd=self.folder.name)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def metrics(self, served):
        return json.loads(self.run_program(TIER, "metrics", "--connect", served.address, "--key-file", self.key).stdout)

    def bench(self, served, *arguments, key=None, code=0):
        return self.run_program(IOBENCH, "run", "--source", "tcp", "--connect", served.address, "--key-file", key or self.key,
                                "--pages", "1:20,14:20", "-q", *arguments, code=code)

    def test_reads_counts_and_a_clean_end(self):
        served = self.serve("--table", self.table)
        self.assertIn("generated seed=1", served.head)
        for granularity in ("page", "record"):
            done = self.bench(served, "--batches", "30", "--rounds", "3", "--granularity", granularity, "--format", "json")
            result = json.loads(done.stdout)
            self.assertIn("no RDMA", result["results"][0]["engine"]["effective"])
            self.assertIn("granularity: " + granularity, result["settings"]["labels"])
        metrics = self.metrics(served)
        self.assertGreaterEqual(metrics["pages"], 2 * 30 * 40)
        self.assertEqual(metrics["table"], "tiny")
        for number in (signal.SIGTERM, signal.SIGINT):
            code, out, err = served.end(number)
            self.assertEqual(code, 0, err)
            self.assertIn("served ", out)
            served = self.serve("--table", self.table)

    def test_several_addresses_share_the_shards(self):
        image = self.path("tiny.img")
        self.run_program(TIER, "stage", "--table", self.table, "--ranks", "4", "--disk", image, "-q")
        for what, shards in [(["--table", self.table, "--size", "2MiB"], ["layer 1 rank 0", "layer 14 rank 0"]),
                             (["--disk", image, "--rank", "0,1"], ["layer 1 rank 0, layer 14 rank 0", "layer 1 rank 1, layer 14 rank 1"])]:
            process = subprocess.Popen([TIER, "serve", "--listen", "127.0.0.1:0,127.0.0.1:0", "--key-file", self.key, "-q", *what],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            lines = [process.stdout.readline() for _ in range(4)]
            for number, part in enumerate(shards):
                self.assertIn(f", {part} of ", lines[2 * number])
            both = ",".join(line.split()[-1] for line in lines[1::2])
            self.run_program(IOBENCH, "run", "--source", "tcp", "--connect", both, "--key-file", self.key, "--pages", "1:20,14:20", "-q",
                             "--batches", "10", "--rounds", "2", *(["--ranks", "2"] if "--disk" in what else []))
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0, err)
            self.assertIn("served ", out)

    def test_a_campaign_reads_from_a_staged_image(self):
        image = self.path("tiny.img")
        self.run_program(TIER, "stage", "--table", self.table, "--ranks", "4", "--disk", image, "-q")
        served = self.serve("--disk", image, "--rank", "3")
        campaign, trace, token_map = self.path("small.json"), self.path("ids.jsonl"), self.path("map.bin")
        with open(token_map, "wb") as file:
            file.write(struct.pack("<1000i", *(i % 900 for i in range(1000))))
        with open(trace, "w") as file:
            for session in range(40):
                turns = [{"role": role, "ids": [(7 * session + 13 * i) % 1000 for i in range(30)]} for role in ("user", "assistant")]
                file.write(json.dumps({"id": str(session), "turns": turns}) + "\n")
        with open(campaign, "w") as file:
            json.dump({"name": "small", "table": self.table, "sessions": 4, "warm_steps": 5, "blocks": 2, "block_steps": 3,
                       "workloads": [{"name": "ids", "traces": [trace]}],
                       "placements": [{"name": "DRAM", "layers": {"all": {"source": "dram"}}},
                                      {"name": "remote", "layers": {"all": {
                                          "source": "tcp", "cache_rows_per_rank": 100,
                                          "remote": {"granularity": "page"}}}},
                                      {"name": "disk", "layers": {"all": {"source": "pread", "cache_rows_per_rank": 100}}}]},
                      file)
        out = self.path("out.json")
        arguments = ["run", campaign, "--disk", image, "--connect", served.address, "--key-file", self.key,
                     "--token-map", token_map, "--step-ms", "4", "--model-layers", "20", "--out", out, "-q"]
        self.run_program(HARNESS, *arguments)
        with open(out) as file:
            results = json.load(file)
        self.assertIn("tables_remote", [warning["code"] for warning in results["warnings"]])
        for configuration in results["results"]:
            self.assertEqual(configuration["mismatches"], 0)

    def test_the_campaign_of_remote_tables_says_what_it_would_run(self):
        served = self.serve("--table", "engram_v41", "--ranks", "4", "--rank", "3", "--size", "8MiB")
        for sessions in ("8", "128", "256"):
            plan = self.run_program(HARNESS, "run", "remote", "--source", "tcp", "--connect", served.address, "--key-file", self.key,
                                    "--sessions", sessions, "--dry-run").stdout
            self.assertIn("campaign remote: ", plan)
            self.assertIn("runs 6020 steps", plan)

    def test_refusals_name_the_reason_on_both_sides(self):
        served = self.serve("--table", self.table)
        other = self.make_key("other", "another key, long enough")
        self.assertIn("keys differ", self.bench(served, key=other, code=2).stderr)
        wrong = self.bench(served, "--table", "engram_v41", code=2)
        self.assertIn("fingerprint", wrong.stderr)
        code, _, err = served.end()
        self.assertEqual(code, 0)
        self.assertIn("keys differ", err)
        self.assertIn("fingerprint", err)
        self.bench(served, code=4)

    def test_a_killed_reader_is_freed(self):
        served = self.serve("--table", self.table)
        reader = subprocess.Popen([IOBENCH, "run", "--source", "tcp", "--connect", served.address, "--key-file", self.key,
                                   "--pages", "1:20,14:20", "--duration", "1h", "-q"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(reader.kill)
        self.await_metrics(served, lambda metrics: metrics["clients"] >= 2 and metrics["pages"] > 100)
        reader.kill()
        reader.wait()
        self.await_metrics(served, lambda metrics: metrics["clients"] == 1)
        self.bench(served, "--batches", "10", "--rounds", "2")

    def await_metrics(self, served, condition):
        until = time.monotonic() + PATIENCE
        while not condition(metrics := self.metrics(served)):
            self.assertLess(time.monotonic(), until, metrics)
            time.sleep(0.05)

    def test_wrong_usage(self):
        def refused(*arguments, code=2):
            return self.run_program(TIER, "serve", *arguments, code=code).stderr
        self.assertIn("--listen", refused("--table", self.table, "--key-file", self.key))
        self.assertIn("--key-file", refused("--table", self.table, "--listen", "127.0.0.1:0"))
        self.assertIn("say what to serve", refused("--listen", "127.0.0.1:0", "--key-file", self.key))
        self.assertIn("host:port", refused("--table", self.table, "--listen", "7000", "--key-file", self.key))
        self.assertIn("address of this machine",
                      refused("--table", self.table, "--listen", "192.0.2.1:0", "--key-file", self.key, "-q", code=3))
        self.assertIn("2 servers", refused("--table", self.table, "--listen", "127.0.0.1:0,127.0.0.1:0", "--layers", "1",
                                           "--key-file", self.key, "-q"))
        self.assertIn("an address of its own", refused("--table", self.table, "--listen", "127.0.0.1:0", "--rdma", "a,b",
                                                       "--key-file", self.key, "-q"))
        self.assertIn("RDMA device", refused("--table", self.table, "--listen", "127.0.0.1:0", "--rdma", "nowhere0",
                                             "--key-file", self.key, "-q", code=3))
        self.assertIn("--connect", self.run_program(IOBENCH, "run", "--source", "tcp", "--pages", "1:1", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
