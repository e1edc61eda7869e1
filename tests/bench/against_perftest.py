#!/usr/bin/env python3
"""Source rdma beside perftest's ib_read_lat and ib_read_bw, on one soft-RoCE device in the guest of tests/guest, in alternating runs:

    SLACKTIER_BIN=build/cpu/bin tests/bench/against_perftest.py [ROUNDS]

Both read from a process of the same guest, one queue pair each, at equal size and number of reads under way. perftest keeps that many
under way; ours are bursts, from a batch's submission to its last page's check, so they pay for each burst's beginning and end. Times are
those of an emulated processor: only ratios mean something. Of each round, the order of the two is drawn; the table has the medians of
the runs' means, and the ratio of each round's two runs: its median with a 95% interval (bootstrap over rounds). Needs perftest,
beside what ci/setup_guest.sh installs, and numpy.
"""

import json
import os
import random
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "guest"))
import guest  # noqa: E402
import perftest  # noqa: E402

PAIRS = [(512, 1), (4096, 1), (16384, 1), (512, 16), (4096, 16), (4096, 128)]  # bytes, reads under way
HERE, KEY = "192.0.2.1", "umask 077; echo a key that is long enough >key\n"


def serve(size):
    return (f"slacktier-tier serve -q --table engram_v41 --size 16MiB --page-size {size} --listen {HERE}:{7000 + size // 512} "
            f"--key-file key --rdma rxe0 >served{size} 2>&1 &\nuntil grep -q listening served{size}; do sleep 0.2; done\n")


def ours(size, depth):
    return (f"slacktier-iobench run -q --format json --source rdma --rdma-device rxe0 --granularity page --threads 1 --queue-pairs 1 --cpus 1 "
            f"--connect {HERE}:{7000 + size // 512} --key-file key --pages 1:{depth} --rounds 2 "
            f"--batches {2000 // depth + 20} --max-seconds 2")


def theirs(size, depth):
    number = int(1.5e6 / (45 + size / 50))  # about as long a run as ours, so that what else the host does falls on both
    return perftest.command(size, depth, number, HERE)


def mean_of_ours(output, _, depth):
    return json.loads(output)["results"][0]["points"][0]["t_us"]["1"]["mean"] / depth


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    draw = random.Random(1)
    steps = [guest.Step("serve", KEY + "".join(serve(size) for size in sorted({size for size, _ in PAIRS})))]
    for number in range(rounds):
        for size, depth in draw.sample(PAIRS, len(PAIRS)):
            both = [("ours", ours), ("perftest", theirs)]
            for name, command in draw.sample(both, 2):
                steps.append(guest.Step(f"{name} {size} {depth} {number}", command(size, depth)))
    programs = [os.path.join(guest.PROGRAMS, name) for name in ["slacktier-tier", "slacktier-iobench"]]
    ran = guest.run(steps, [*programs, *perftest.PROGRAMS], disks=(), seconds=3600)
    print(f"{rounds} rounds")
    print("| bytes | under way | perftest, µs a read | ours, µs a read | ours / perftest |\n| --- | --- | --- | --- | --- |")
    for size, depth in PAIRS:
        means = {}
        for name, read in [("ours", mean_of_ours), ("perftest", perftest.mean_us)]:
            outputs = [ran[f"{name} {size} {depth} {number}"] for number in range(rounds)]
            for outcome in outputs:
                if outcome.status != 0:
                    sys.exit(f"{name} {size} {depth}: {outcome}")
            means[name] = numpy.array([read(outcome.output, size, depth) for outcome in outputs])
        ratios = means["ours"] / means["perftest"]
        again = numpy.random.default_rng(1).choice(ratios, (10000, rounds))
        low, high = numpy.percentile(numpy.median(again, axis=1), [2.5, 97.5])
        print(f"| {size} | {depth} | {numpy.median(means['perftest']):.0f} | {numpy.median(means['ours']):.0f} | "
              f"{numpy.median(ratios):.2f} [{low:.2f}, {high:.2f}] |")


if __name__ == "__main__":
    main()
