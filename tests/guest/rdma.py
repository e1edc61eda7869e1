#!/usr/bin/env python3
"""Source rdma on a real verbs stack (soft-RoCE): its own tests; the programs on one host and on two, with two readers at once, two
adapters, and MTUs that differ; and what happens when server or reader are killed."""

import json
import os
import tempfile

import guest
import perftest

TABLE = {
    "name": "tiny", "hash": "engram", "record": "fp8_e4m3_block32", "engram_layer_ids": [1, 14], "engram_max_ngram_size": 4,
    "engram_n_heads": 8, "engram_head_dim": 256, "engram_vocab_size": 500, "engram_pad_token_id": 2, "vocab_size": 1000,
    "compressed_vocab_size": 900, "seed": 0,
}
SERVE = """
slacktier-tier serve -q --table /tiny.json --listen %s:7430 --key-file key --rdma auto >served 2>&1 &
echo $! >server
until grep -q listening served || ! kill -0 $!; do sleep 0.2; done
cat served
grep -q listening served
"""
END = """
kill $(cat server)
until grep -q '^served ' served; do sleep 0.2; done
"""
KEYS = "umask 077; echo a key that is long enough >key; echo another that is long enough >other\n"
SHORT, FOR_LONG = "--batches 30 --rounds 3 --max-seconds 2 --format json", "--duration 1h --out out.json"
HERE, THERE = "127.0.0.1", "192.0.2.2"


def read(address=THERE, more=SHORT, key="key"):
    # Few pages: each packet of the cable takes two emulators' turns.
    return f"slacktier-iobench run -q --source rdma --connect {address}:7430 --pages 1:4,14:2 --key-file {key} {more}"


def until(clients):
    """Waits, at the server, until so many connections are there, this question's own among them."""
    return (f"until slacktier-tier metrics --connect {THERE}:7430 --key-file key | grep -q '\"clients\": {clients},'; "
            "do sleep 0.2; done\n")


STEPS = [
    guest.Step("unit", KEYS + "test_tier '[rdma]'"),
    # Two processes on one host.
    guest.Step("none", read(HERE)),
    guest.Step("serve here", SERVE % HERE),
    guest.Step("read here", read(HERE)),
    guest.Step("perftest", perftest.command(4096, 1, 1000, HERE) if perftest.there() else "exit 77"),
    guest.Step("ours", read(HERE, f"{SHORT} --granularity page --threads 1 --queue-pairs 1 --cpus 1").replace("1:4,14:2", "1:1")),
    guest.Step("end here", END),
    # Two hosts.
    guest.Step("serve", KEYS + SERVE % THERE, guest.PEER),
    guest.Step("page", read(more=f"{SHORT} --granularity page --verify-checksum")),
    guest.Step("record", read(more=f"{SHORT} --granularity record")),
    guest.Step("two", f"{read()} >first & {read()} --seed 2 >second; second=$?; wait $! && [ $second = 0 ]"),
    guest.Step("other key", read(key="other")),
    guest.Step("other GID", read(more=f"{SHORT} --gid-index 0")),
    guest.Step("smaller MTU here", f"ip link set eth0 mtu 1500; {read(more=SHORT + ' --granularity page')}; "
                                   "status=$?; ip link set eth0 mtu 9000; exit $status"),
    # Two adapters at both ends, one layer each.
    guest.Step("serve two", """
slacktier-tier serve -q --table /tiny.json --listen 192.0.2.2:7431,198.51.100.2:7432 --key-file key --rdma rxe0,rxe1 >two 2>&1 &
until [ $(grep -c listening two) = 2 ] || ! kill -0 $!; do sleep 0.2; done
cat two
cat /sys/class/net/eth0/device/../numa_node /sys/class/net/eth1/device/../numa_node
""", guest.PEER),
    guest.Step("read two", "slacktier-iobench run -q --source rdma --connect 192.0.2.2:7431,198.51.100.2:7432 --rdma-device rxe0,rxe1 "
                           f"--pages 1:4,14:2 --key-file key --threads 1 {SHORT} --granularity page --verify-checksum"),
    guest.Step("reading", f"( {read(more=FOR_LONG)} 2>lost; echo $? >status ) &"),
    guest.Step("server killed", f"{until(5)}sleep 1; kill -9 $(cat server)", guest.PEER),
    guest.Step("server lost", "until [ -s status ]; do sleep 0.2; done; cat lost >&2; exit $(cat status)"),
    guest.Step("serve again", "ip link set eth0 mtu 1500" + SERVE % THERE, guest.PEER),
    guest.Step("smaller MTU there", read(more=f"{SHORT} --granularity page --verify-checksum")),
    guest.Step("reading again", f"{read(more=FOR_LONG)} & echo $! >reader"),
    guest.Step("being read", until(5), guest.PEER),
    guest.Step("reader killed", "kill -9 $(cat reader)"),
    guest.Step("reader freed", until(1), guest.PEER),
    guest.Step("read again", read()),
    guest.Step("end", END, guest.PEER),
]


class Rdma(guest.Checks):
    @classmethod
    def setUpClass(cls):
        programs = [os.path.join(guest.PROGRAMS, name) for name in ["slacktier-tier", "slacktier-iobench", "test_tier"]]
        if perftest.there():
            programs += perftest.PROGRAMS
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

    def effective(self, name):
        return json.loads(self.passed(name))["results"][0]["engine"]["effective"]

    def test_the_programs_read_through_the_device_named(self):
        for name in ("serve here", "serve"):
            self.assertIn("remote reads through rxe0", self.passed(name))
        for name in ("read here", "page", "record", "read again"):
            self.assertIn("rdma rxe0 port 1, GID 1 (RoCE v2", self.effective(name))
        self.passed("two")
        self.passed("end here")

    def test_an_independent_reader_reads_from_the_same_device(self):
        ours = json.loads(self.passed("ours"))["results"][0]["points"][0]["t_us"]["1"]["mean"]
        if not perftest.there():
            self.skipTest("there is no perftest: ci/setup_guest.sh installs it, on Debian")
        theirs = perftest.mean_us(self.passed("perftest"), 4096, 1)
        self.assertGreater(theirs, 0)
        print(f"one read of 4 KiB at a time: ib_read_lat {theirs:.0f} us, slacktier-iobench {ours:.0f} us "
              "(tests/bench/against_perftest.py compares them in alternating runs)")

    def test_each_adapter_serves_its_shards_from_its_numa_node(self):
        served = self.passed("serve two").splitlines()
        nodes = served[-2:]
        self.assertEqual(sorted(nodes), ["0", "1"])
        for number, (layer, gid) in enumerate([(1, "192.0.2.2"), (14, "198.51.100.2")]):
            self.assertIn(f"layer {layer} rank 0 of 1 ranks", served[3 * number])
            self.assertIn(f"all on NUMA node {nodes[number]}", served[3 * number])
            self.assertIn(f"through rxe{number} port 1, GID 1 (RoCE v2, ::ffff:{gid})", served[3 * number + 1])
        self.assertIn("; rxe1 port 1", self.effective("read two"))

    def test_the_smaller_mtu_is_taken(self):
        self.assertIn("MTU 4096, read depth", self.effective("page"))
        self.assertIn("MTU 1024, read depth", self.effective("smaller MTU here"))
        self.assertIn("MTU 1024", self.passed("serve again"))
        self.assertIn("MTU 4096 (1024 in effect), read depth", self.effective("smaller MTU there"))

    def test_refusals(self):
        self.assertNotEqual(self.ran["none"].status, 0)
        self.refused("other key", 2, "keys differ")
        self.refused("other GID", 2, "--gid-index")

    def test_a_killed_server_is_named_and_a_killed_reader_is_freed(self):
        self.passed("server killed")
        self.refused("server lost", 4, "192.0.2.2:7430")
        self.passed("reader freed")
        self.passed("end")


if __name__ == "__main__":
    guest.main()
