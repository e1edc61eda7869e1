"""slacktier-harness misses, access and vocab as a user meets them: files, tables, and what bad input is answered with."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

HARNESS = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-harness")


def harness(*arguments, expect=0):
    done = subprocess.run([HARNESS, *arguments], capture_output=True, text=True)
    if done.returncode != expect:
        sys.exit(f"{arguments}: exit {done.returncode} instead of {expect}\n{done.stdout}\n{done.stderr}")
    return done.stdout if expect == 0 else done.stderr


def write(path, text):
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


with tempfile.TemporaryDirectory() as folder:
    table = write(f"{folder}/table.json", json.dumps({
        "name": "small", "hash": "engram", "record": "fp8_e4m3_block32", "vocab_size": 100, "engram_layer_ids": [1, 4],
        "engram_max_ngram_size": 3, "engram_n_heads": 2, "engram_head_dim": 32, "engram_vocab_size": 5000,
        "compressed_vocab_size": 100, "engram_pad_token_id": 2, "seed": 0}))
    sessions = [{"id": f"s{s}", "group": f"g{s % 3}", "turns": [
        {"role": "user" if t % 2 == 0 else "assistant", "ids": [(7 * s + 3 * t + i * i) % 50 for i in range(30)]}
        for t in range(4)]} for s in range(30)]
    trace = write(f"{folder}/agent.jsonl", "".join(json.dumps(s) + "\n" for s in sessions))
    common = ["--table", table, "--trace", trace, "--sessions", "4"]

    text = harness("misses", *common, "--ranks", "2", "--warm-steps", "20", "--capacity", "0,1k,10k", "--policy",
                   "lru,arc,belady", "-o", f"{folder}/m.json", "--plot", f"{folder}/m.svg", "-q")
    assert "agent, belady, 4 sessions, decode" in text, text
    with open(f"{folder}/m.json", encoding="utf-8") as file:
        envelope = json.load(file)
    assert envelope["schema"].startswith("slacktier/misses/1."), envelope["schema"]
    assert [r["policy"] for r in envelope["results"]] == ["lru", "arc", "belady"]
    assert [p["rows"] for p in envelope["results"][0]["layers"][1]["ranks"][1]["curve"]] == [0, 1000, 10000]
    with open(f"{folder}/m.svg", encoding="utf-8") as file:
        assert file.read().startswith("<svg")
    assert "belady" in harness("misses", "--list")

    for arguments, message in [
            (["misses", *common, "--idle", "5:2"], "--idle 5:2: the first is larger"),
            (["misses", *common, "--idle", "x"], "steps as LEAST:MOST"),
            (["misses", *common, "--cache", "own"], "use shared or per-session"),
            (["misses", "--table", table, "--sessions", "4"], "give --trace FILE"),
            (["misses", "--table", table, "--trace", f"{folder}/none.jsonl"], "none.jsonl"),
            (["misses", *common, "--layers", "7"], "7"),
            (["access", *common, "nothing"], "unknown question 'nothing'"),
            (["vocab", table], "is this a tokenizer.json?")]:
        answer = harness(*arguments, expect=2)
        assert message in answer, f"{arguments}: {answer}"

    # Input that says little, or nothing.
    def sessions_of(name, count, ids):
        return write(f"{folder}/{name}.jsonl", "".join(json.dumps({"id": f"{name}{s}", "turns": [
            {"role": "user", "ids": ids(s)}, {"role": "assistant", "ids": ids(s)}]}) + "\n" for s in range(count)))

    with open(f"{folder}/map.bin", "wb") as file:
        file.write(bytes(4 * 99))
    mixed = write(f"{folder}/mixed.jsonl", json.dumps(sessions[0]) + "\n" + json.dumps({"messages": [{"role": "user", "content": "u"}]}))
    one = sessions_of("one", 1, lambda s: list(range(40)))
    for arguments, message in [
            (["--trace", trace, "--token-map", f"{folder}/map.bin"], "map.bin"),
            (["--trace", trace, "--sessions", "31"], "are needed"),
            (["--trace", write(f"{folder}/empty.jsonl", "")], "empty.jsonl"),
            (["--trace", mixed, "--sessions", "1"], "mixed.jsonl:2: the session has no"),
            (["--trace", one, "--sessions", "2"], "are needed")]:
        answer = harness("misses", "--table", table, *arguments, "-q", expect=2)
        assert message in answer, f"{arguments}: {answer}"
    assert "cannot be split" in harness("access", "--table", table, "--trace", one, expect=2)
    text = harness("misses", "--table", table, "--trace", one, "--sessions", "1", "--warm-steps", "0", "--capacity", "0,1k", "-q")
    assert "1 sessions" in text or "one" in text, text
    again = sessions_of("again", 3, lambda s: [7] * 40)
    harness("misses", "--table", table, "--trace", again, "--sessions", "1", "--warm-steps", "0", "--capacity", "0,1G", "-q", "-o",
            f"{folder}/again.json", expect=2)  # G is no unit of rows
    harness("misses", "--table", table, "--trace", again, "--sessions", "1", "--warm-steps", "0", "--capacity", "0,1000M", "-q", "-o",
            f"{folder}/again.json")
    with open(f"{folder}/again.json", encoding="utf-8") as file:
        assert {w["code"] for w in json.load(file)["warnings"]} == {"degenerate_sessions", "capacity_above_table"}
    if shutil.which("zstd"):
        subprocess.run(["zstd", "-q", trace, "-o", f"{folder}/cut.jsonl.zst"], check=True)
        with open(f"{folder}/cut.jsonl.zst", "r+b") as file:
            file.truncate(os.path.getsize(f"{folder}/cut.jsonl.zst") - 5)
        answer = harness("misses", "--table", table, "--trace", f"{folder}/cut.jsonl.zst", "--sessions", "4", expect=2)
        assert "cut.jsonl.zst" in answer and "the zstd data is truncated" in answer, answer

    bad = write(f"{folder}/bad.jsonl", '{"id": "a", "turns": [{"role": "assistant", "ids": [100]}]}\n')
    assert "bad.jsonl" in harness("misses", "--table", table, "--trace", bad, "--sessions", "1", expect=2)

    text = harness("access", *common, "shards", "--ranks", "2")
    assert "striped" in text, text
    assert "give the table's safetensors with --rows" in harness("access", *common, "redundancy", expect=2)
    text = harness("access", *common, "coverage", "distinct", "--format", "md")
    assert "agent: Decode lookups whose row is among" in text, text
    assert "coverage" in harness("access", "--list")

    tokenizer = write(f"{folder}/tokenizer.json", json.dumps({
        "model": {"vocab": {"a": 0, "A": 1, "b": 2}}, "decoder": {"type": "ByteLevel"}}))
    assert "3 ids, 2 classes" in harness("vocab", tokenizer, "-o", f"{folder}/map.bin")
    with open(f"{folder}/map.bin", "rb") as file:
        assert file.read() == b"\0\0\0\0" b"\0\0\0\0" b"\1\0\0\0"
