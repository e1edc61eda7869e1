#!/usr/bin/env python3
"""Source rdma on a real verbs stack (soft-RoCE): its own tests, the programs with two readers at once, and what happens when server or
reader are killed."""

import json
import os
import tempfile

import guest

TABLE = {
    "name": "tiny", "hash": "engram", "record": "fp8_e4m3_block32", "engram_layer_ids": [1, 14], "engram_max_ngram_size": 4,
    "engram_n_heads": 8, "engram_head_dim": 256, "engram_vocab_size": 500, "engram_pad_token_id": 2, "vocab_size": 1000,
    "compressed_vocab_size": 900, "seed": 0,
}
SERVE = """
slacktier-tier serve -q --table /tiny.json --listen 127.0.0.1:7430 --key-file key --rdma auto >served 2>&1 &
echo $! >server
until grep -q listening served; do sleep 0.2; done
cat served
"""
READ = "slacktier-iobench run -q --source rdma --connect 127.0.0.1:7430 --pages 1:20,14:10 --key-file key"
METRICS = "slacktier-tier metrics --connect 127.0.0.1:7430 --key-file key"
SHORT = "--batches 30 --rounds 3 --format json"

STEPS = [
    # As many lookups as an emulated machine compares in about half a minute; the bound is the number, not the time.
    guest.Step("unit", "SLACKTIER_RDMA_LOOKUPS=50000 test_tier '[rdma]'"),
    guest.Step("none", f"{READ} {SHORT}"),
    guest.Step("serve", "umask 077; echo a key that is long enough >key; echo another that is long enough >other" + SERVE),
    guest.Step("page", f"{READ} {SHORT} --granularity page --verify-checksum"),
    guest.Step("record", f"{READ} {SHORT} --granularity record"),
    guest.Step("two", f"{READ} {SHORT} >first & {READ} {SHORT} --seed 2 >second; second=$?; wait $! && [ $second = 0 ]"),
    guest.Step("other key", f"{READ.replace('file key', 'file other')} {SHORT}"),
    guest.Step("other GID", f"{READ} {SHORT} --gid-index 0"),
    guest.Step("server killed", f"""
{READ} --duration 1h --out out.json &
reader=$!
until {METRICS} | grep -q '"clients": 5'; do sleep 0.2; done
sleep 1
kill -9 $(cat server)
wait $reader
"""),
    guest.Step("serve again", SERVE),
    guest.Step("read again", f"{READ} {SHORT}"),
    guest.Step("reader killed", f"""
{READ} --duration 1h --out out.json &
reader=$!
until {METRICS} | grep -q '"clients": 5'; do sleep 0.2; done
kill -9 $reader
until {METRICS} | grep -q '"clients": 1,'; do sleep 0.2; done
{READ} {SHORT}
"""),
    guest.Step("end", """
kill $(cat server)
until grep -q '^served ' served; do sleep 0.2; done
"""),
]


class Rdma(guest.Checks):
    @classmethod
    def setUpClass(cls):
        programs = [os.path.join(guest.PROGRAMS, name) for name in ["slacktier-tier", "slacktier-iobench", "test_tier"]]
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "tiny.json")
            with open(table, "w", encoding="utf-8") as file:
                json.dump(TABLE, file)
            cls.ran = guest.run(STEPS, programs, files=[table + ":/tiny.json"])

    def test_lookups_are_bit_exact_and_refusals_of_the_device_are_reported(self):
        output = self.passed("unit")
        print(output)
        for granularity in ("page", "record"):
            self.assertIn(granularity + " granularity: ", output)
        self.assertIn("refused: the server's GID 1", output)

    def test_the_programs_read_through_the_device_named(self):
        self.assertIn("remote reads through rxe0", self.passed("serve"))
        for name in ("page", "record", "read again"):
            self.assertIn("rdma rxe0 port 1, GID 1 (RoCE v2", json.loads(self.passed(name))["results"][0]["engine"]["effective"])
        self.passed("two")

    def test_refusals(self):
        self.assertNotEqual(self.ran["none"].status, 0)
        self.refused("other key", 2, "keys differ")
        self.refused("other GID", 2, "--gid-index")

    def test_a_killed_server_is_named_and_a_killed_reader_is_freed(self):
        self.refused("server killed", 4, "127.0.0.1:7430")
        self.passed("serve again")
        self.passed("reader killed")
        self.passed("end")


if __name__ == "__main__":
    guest.main()
