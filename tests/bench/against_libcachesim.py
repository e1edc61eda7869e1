"""slacktier's simulated caches beside libCacheSim's: the same stream of lookups, one core, alternating runs.

The stream is the rows that generated agent sessions ask for, in a file of libCacheSim's own format; both programs read it, and their
times include that. LRU's hits must be equal. S3-FIFO, SIEVE and ARC are compared by hits alone: their descriptions leave things open.
Beside it stands the memory's limit: the same file read, and one random line touched for each lookup. Run it on a quiet machine:

    python3 -m venv lcs && lcs/bin/pip install libcachesim
    lcs/bin/python tests/bench/against_libcachesim.py --program build/cpu/bin/bench_caches --lookups 100000000

It needs 24 bytes a lookup in --scratch, and ends with 1 if LRU's hits differ.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

# Ours, libCacheSim's, and why their hits may differ.
OTHERS = [("sieve", "Sieve", "the same hand and bits"),
          ("s3fifo", "S3FIFO", "queue sizes, what the small queue's hits count, and the ghosts' length"),
          ("arc", "ARC", "the same lists and targets; adaptation in whole rows or in fractions")]

SIMULATE = """
import json, sys, time
import libcachesim as lib
path, name, capacity = sys.argv[1], sys.argv[2], int(sys.argv[3])
reader = lib.TraceReader(path, trace_type=lib.TraceType.ORACLE_GENERAL_TRACE)
cache = getattr(lib, name)(capacity)
begin = time.perf_counter()
missed, _ = cache.process_trace(reader)
took = time.perf_counter() - begin
lookups = reader.get_num_of_req()
print(json.dumps({"lookups": lookups, "seconds": took, "hits": round((1 - missed) * lookups)}))
"""


def answer(command, core):
    if core is not None:
        command = ["taskset", "-c", str(core), *command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"against_libcachesim: {' '.join(command[:4])} … ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def millions(one):
    return one["lookups"] / one["seconds"] / 1e6


def spread(values):
    return f"{statistics.median(values):.1f} [{min(values):.1f}, {max(values):.1f}]"


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def compare(options, stream):
    def ours(policy):
        return answer([options.program, "run", stream, policy, str(options.capacity)], options.core)

    def theirs(policy):
        return answer([sys.executable, "-c", SIMULATE, stream, policy, str(options.capacity)], options.core)

    both = not options.without_libcachesim
    runs = []
    for _ in range(options.pairs):
        runs.append((ours("lru"), theirs("LRU") if both else None,
                     answer([options.program, "limit", stream, str(options.capacity)], options.core)))
    lookups = runs[0][0]["lookups"]
    print(f"{lookups:,} lookups, {options.capacity:,} rows cached, one core of {processor()}; "
          f"{options.pairs} runs each, by turns; median [least, most]\n")
    print("| LRU at one capacity | M lookups/s | hits |\n| :--- | ---: | ---: |")
    print(f"| slacktier | {spread([millions(run[0]) for run in runs])} | {runs[0][0]['hits']:,} |")
    if both:
        print(f"| libCacheSim | {spread([millions(run[1]) for run in runs])} | {runs[0][1]['hits']:,} |")
        print(f"| ratio of each pair | {spread([millions(run[0]) / millions(run[1]) for run in runs])} | |")
    print(f"| one line of memory a lookup (limit) | {spread([millions(run[2]) for run in runs])} | |")
    curve = answer([options.program, "curve", stream], options.core)
    print(f"\nThe exact curve, all capacities in one pass: {millions(curve):.1f} M lookups/s, {curve['bytes_per_row']} bytes for each of "
          f"{curve['distinct']:,} distinct rows at most.")
    equal = all(run[0]["hits"] == runs[0][0]["hits"] and (not both or run[0]["hits"] == run[1]["hits"]) for run in runs)
    if both and not options.lru_only:
        print("\n| hits | slacktier | libCacheSim | apart | what is defined differently |\n| :--- | ---: | ---: | ---: | :--- |")
        for mine, other, why in OTHERS:
            a, b = ours(mine)["hits"], theirs(other)["hits"]
            print(f"| {other} | {100 * a / lookups:.3f}% | {100 * b / lookups:.3f}% | {100 * (a - b) / lookups:+.3f} | {why} |")
    if not equal:
        print("\nLRU's hits differ")
    return equal


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/cpu/bin/bench_caches")
    parser.add_argument("--lookups", type=int, default=20_000_000)
    parser.add_argument("--capacity", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--core", type=int, help="pin both programs to this core")
    parser.add_argument("--scratch", help="folder for the stream")
    parser.add_argument("--lru-only", action="store_true")
    parser.add_argument("--without-libcachesim", action="store_true", help="only ours, to see that it runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        stream = os.path.join(folder, "stream.oracleGeneral")
        subprocess.run([options.program, "make", stream, str(options.lookups)], check=True)
        return 0 if compare(options, stream) else 1


if __name__ == "__main__":
    sys.exit(main())
