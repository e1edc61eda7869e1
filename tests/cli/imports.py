"""slacktier-harness trace import: Parquet, zstd, real tokenizers, chat templates, mini-swe-agent, files larger than memory, --anonymise.

What needs a package of ci/python.txt that is not there is left out, and named.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

HARNESS = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-harness")
PYTHON = os.path.join(os.environ.get("VIRTUAL_ENV") or "/usr", "bin", "python3")
left_out = []


def harness(*arguments, expect=0):
    """Output (errors, if one is expected), and the program's largest memory in MiB."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        started = subprocess.Popen([HARNESS, *arguments], stdout=out, stderr=err)
        _, status, usage = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        text, errors = out.read(), err.read()
    if "built without" in errors and started.returncode == 3:
        print("SKIPPED: the programs were built without Python")
        sys.exit(77)
    if started.returncode != expect:
        sys.exit(f"{arguments}: exit {started.returncode} instead of {expect}\n{text}\n{errors}")
    return (text if expect == 0 else errors), usage.ru_maxrss / 1024


def has(package):
    found = subprocess.run([PYTHON, "-c", f"import {package}"], capture_output=True).returncode == 0
    if not found:
        left_out.append(package)
    return found


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def lines(path, records):
    with (gzip.open(path, "wt", compresslevel=1) if path.endswith(".gz") else open(path, "w", encoding="utf-8")) as out:
        for record in records:
            out.write(json.dumps(record) + "\n")
    return path


def sessions(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def texts(session):
    return [(turn["role"], bytes(turn["ids"]).decode()) for turn in session["turns"]]


def talk(user, assistant):
    return [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]


with tempfile.TemporaryDirectory() as folder:
    out = f"{folder}/out.jsonl"

    # mini-swe-agent: one JSON file a run.
    write(f"{folder}/run.traj.json", json.dumps({"info": {"exit_status": "Submitted"}, "trajectory_format": "mini-swe-agent-1",
                                                 "messages": [{"role": "system", "content": "s"}, *talk("fix it", "```ls```")]}))
    harness("trace", "import", f"{folder}/run.traj.json", "--tokenizer", "bytes", "-o", out)
    assert texts(sessions(out)[0]) == [("system", "s"), ("user", "fix it"), ("assistant", "```ls```")], sessions(out)

    # zstd, whole and cut off anywhere.
    plain = lines(f"{folder}/chats.jsonl", [{"id": f"c{i}", "messages": talk(f"question {i}", f"answer {i}")} for i in range(40)])
    if shutil.which("zstd"):
        packed = f"{folder}/chats.jsonl.zst"
        subprocess.run(["zstd", "-q", plain, "-o", packed], check=True)
        harness("trace", "import", packed, "--tokenizer", "bytes", "-o", out)
        assert texts(sessions(out)[39]) == [("user", "question 39"), ("assistant", "answer 39")]
        kept = open(out, "rb").read()
        with open(packed, "rb") as file:
            whole = file.read()
        for size in (len(whole) // 2, len(whole) - 1):
            with open(packed, "wb") as file:
                file.write(whole[:size])
            answer, _ = harness("trace", "import", packed, "--tokenizer", "bytes", "-o", out, expect=2)
            assert "chats.jsonl.zst: is damaged or cut off" in answer, answer
        assert open(out, "rb").read() == kept, "a failed import touched the output"
    else:
        left_out.append("zstd")

    # Parquet, as Hugging Face hands WildChat and SWE-rebench out: lists of structures.
    if has("pyarrow"):
        subprocess.run([PYTHON, "-c", f"""
import pyarrow, pyarrow.parquet
records = [{{"conversation_hash": str(i), "model": "m", "conversation": [
    {{"role": "user", "content": f"q{{i}}", "turn": 1}}, {{"role": "assistant", "content": f"a{{i}}", "turn": 1}}]}} for i in range(200)]
records[7]["conversation"] = []
pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), {folder!r} + "/w.parquet", row_group_size=50)
"""], check=True)
        text, _ = harness("trace", "import", f"{folder}/w.parquet", "--tokenizer", "bytes", "-o", out)
        assert "199 sessions" in text and "w.parquet: row 8" in text and "199 records as wildchat" in text, text
        assert texts(sessions(out)[9]) == [("user", "q10"), ("assistant", "a10")] and sessions(out)[0]["group"] == "m"
        write(f"{folder}/no.parquet", "not parquet")
        answer, _ = harness("trace", "import", f"{folder}/no.parquet", "--tokenizer", "bytes", "-o", out, expect=2)
        assert "no.parquet: is no Parquet file" in answer, answer

    # A Hugging Face tokenizer, and the chat template beside it.
    if has("tokenizers"):
        words = ["[UNK]", "<s>", "user", "assistant", "hello", "there", ":", "bye"]
        os.mkdir(f"{folder}/model")
        write(f"{folder}/model/tokenizer.json", json.dumps({
            "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None, "decoder": None,
            "added_tokens": [{"id": 1, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                              "special": True}],
            "pre_tokenizer": {"type": "Whitespace"},
            "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(words)}, "unk_token": "[UNK]"}}))
        spoken = lines(f"{folder}/spoken.jsonl", [{"messages": talk("hello there", "bye")}])
        harness("trace", "import", spoken, "--tokenizer", f"{folder}/model", "-o", out)
        assert [turn["ids"] for turn in sessions(out)[0]["turns"]] == [[4, 5], [7]], sessions(out)
        config = {"bos_token": {"content": "<s>"}, "chat_template":
                  "{% for m in messages %}<s> {{ m.role }} : {% generation %}{{ m.content }}{% endgeneration %} {% endfor %}"
                  "{% if add_generation_prompt %}<s> assistant : {% endif %}"}
        write(f"{folder}/model/tokenizer_config.json", json.dumps(config))
        if has("jinja2"):
            text, _ = harness("trace", "import", spoken, "--tokenizer", f"{folder}/model", "-o", out)
            assert "chat template of" in text and "tokenizer_config.json" in text, text
            # What the model writes begins behind the prompt for it.
            assert [(t["role"], t["ids"]) for t in sessions(out)[0]["turns"]] == [
                ("user", [1, 2, 6, 4, 5]), ("user", [1, 3, 6]), ("assistant", [7])], sessions(out)
            harness("trace", "import", spoken, "--tokenizer", f"{folder}/model", "--chat-template", "none", "-o", out)
            assert [turn["ids"] for turn in sessions(out)[0]["turns"]] == [[4, 5], [7]]
            for template, message in [("{% for %}", "the chat template of"),
                                      ("{{ raise_exception('no systems') }}", "the chat template refuses it: no systems"),
                                      ("{{ messages | length }}", "writes what comes before turn")]:
                own = write(f"{folder}/own.jinja", template)
                answer, _ = harness("trace", "import", spoken, "--tokenizer", f"{folder}/model", "--chat-template", own, "--strict",
                                    "-o", out, expect=2)
                assert message in answer, answer
        else:
            answer, _ = harness("trace", "import", spoken, "--tokenizer", f"{folder}/model", "-o", out, expect=3)
            assert "pip install jinja2" in answer, answer

    # Memory does not grow with the file: 64 times as much of it, server logs that are sorted by arrival included.
    def log(records):
        for i in range(records):
            yield {"id": f"r{i}", "arrival_ms": (i * 7919) % 100_003, "prompt": "p", "response": "r", "trace": "x" * 100_000}

    def talks(records):
        for i in range(records):
            yield {"id": f"t{i}", "messages": talk("u", "a"), "raw": "x" * 100_000}

    for records in (log, talks):
        small = lines(f"{folder}/small.jsonl.gz", records(8))
        large = lines(f"{folder}/large.jsonl.gz", records(8 * 64))
        _, least = harness("trace", "import", small, "--tokenizer", "bytes", "-o", out)
        text, most = harness("trace", "import", large, "--tokenizer", "bytes", "-o", out)
        assert "512 sessions" in text, text
        assert most < least + 24, f"{most:.0f} MiB for 51 MB, {least:.0f} MiB for 0.8 MB"
    wide = lines(f"{folder}/wide.jsonl.gz", ({"id": str(i), "ignored": "x" * 100_000, "turns": [{"role": "assistant", "ids": [1]}]}
                                             for i in range(512)))
    text, most = harness("trace", "stats", wide)
    assert "512" in text and most < 100, f"{most:.0f} MiB"

    # Row indices alone.
    table = write(f"{folder}/table.json", json.dumps({
        "name": "small", "hash": "engram", "record": "fp8_e4m3_block32", "vocab_size": 256, "engram_layer_ids": [1],
        "engram_max_ngram_size": 3, "engram_n_heads": 2, "engram_head_dim": 32, "engram_vocab_size": 5000,
        "compressed_vocab_size": 256, "engram_pad_token_id": 2, "seed": 0}))
    secret = lines(f"{folder}/secret.jsonl", [{"id": f"alice-{i}", "messages": talk("hush hush", f"nobody hears {i}")} for i in range(9)])
    text, _ = harness("trace", "import", secret, "--tokenizer", "bytes", "--anonymise", "--table", table, "-o", f"{folder}/a.jsonl")
    assert "no text, ids or names" in text, text
    answer, _ = harness("trace", "import", secret, "--tokenizer", "bytes", "--anonymise", "-o", f"{folder}/c.jsonl", expect=2)
    assert "give its token map with --token-map" in answer, answer
    assert sorted(name for name in os.listdir(folder) if name.startswith("a.jsonl")) == [
        "a.jsonl", "a.jsonl.rows", "a.jsonl.table.json"], os.listdir(folder)
    assert "alice" not in open(f"{folder}/a.jsonl", encoding="utf-8").read()
    for command in (["misses", "--capacity", "0,100", "--warm-steps", "2", "--ranks", "1", "-q"], ["access", "coverage", "handoff"]):
        harness(*command, "--trace", f"{folder}/a.jsonl", "--table", f"{folder}/a.jsonl.table.json", "--sessions", "2")
    harness("trace", "anonymise", f"{folder}/a.jsonl", "--table", f"{folder}/a.jsonl.table.json", "-o", f"{folder}/b.jsonl")

if left_out:
    print(f"left out, not installed: {', '.join(sorted(set(left_out)))}")
