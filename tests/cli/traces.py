"""slacktier-harness trace: conversations of each format to sessions, bad records counted or refused, counts, made-up sessions."""

import gzip
import json
import os
import subprocess
import sys
import tempfile

HARNESS = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-harness")


def harness(*arguments, expect=0):
    done = subprocess.run([HARNESS, "trace", *arguments], capture_output=True, text=True)
    if "built without" in done.stderr and done.returncode == 3:
        print("SKIPPED: the programs were built without Python")
        sys.exit(77)
    if done.returncode != expect:
        sys.exit(f"{arguments}: exit {done.returncode} instead of {expect}\n{done.stdout}\n{done.stderr}")
    return done.stdout if expect == 0 else done.stderr


def lines(path, *records):
    with (gzip.open(path, "wt") if path.endswith(".gz") else open(path, "w", encoding="utf-8")) as out:
        for record in records:
            out.write((record if isinstance(record, str) else json.dumps(record)) + "\n")
    return path


def sessions(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def texts(session):
    return [(turn["role"], bytes(turn["ids"]).decode()) for turn in session["turns"]]


with tempfile.TemporaryDirectory() as folder:
    out = f"{folder}/out.jsonl"
    for record, expected in [
            ({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "é"}]},
                           {"role": "assistant", "content": None,
                            "tool_calls": [{"function": {"name": "ls", "arguments": "{}"}}]},
                           {"role": "tool", "content": "t"}, {"role": "assistant", "content": "a"}]},
             [("system", "s"), ("user", "é"), ("assistant", "ls({})"), ("tool", "t"), ("assistant", "a")]),
            ({"conversations": [{"from": "human", "value": "h"}, {"from": "gpt", "value": "g"}]},
             [("user", "h"), ("assistant", "g")]),
            ({"conversation_hash": "x", "conversation": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]},
             [("user", "u"), ("assistant", "a")]),
            ({"instance_id": "i", "repo": "r", "trajectory": [{"role": "user", "text": "u"}, {"role": "ai", "text": "a"}]},
             [("user", "u"), ("assistant", "a")]),
            ({"history": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]},
             [("user", "u"), ("assistant", "a")])]:
        harness("import", lines(f"{folder}/in.jsonl", record), "--tokenizer", "bytes", "-o", out)
        assert texts(sessions(out)[0]) == expected, sessions(out)

    # Server logs come in the order of arrival; ids that repeat are told apart.
    log = lines(f"{folder}/log.jsonl.gz", {"id": "a", "prompt": "p", "response": "late", "arrival_ms": 9},
                {"id": "a", "prompt": "p", "completion": "early", "arrival_ms": 3})
    harness("import", log, "--tokenizer", "bytes", "-o", out)
    assert [(s["id"], texts(s)[1][1]) for s in sessions(out)] == [("a#2", "early"), ("a", "late")], sessions(out)

    # A .traj file is one record.
    lines(f"{folder}/one.traj", {"history": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]})
    harness("import", f"{folder}/one.traj", "--tokenizer", "bytes", "-o", out)
    assert sessions(out)[0]["id"] == "one.traj:0"

    # Records that are no conversation are counted and named, or fatal.
    good = {"messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "abc"}]}
    mixed = lines(f"{folder}/mixed.jsonl", good, "{", {"x": 1}, {"messages": [{"role": "wizard", "content": "w"}]},
                  {"messages": [{"role": "user", "content": "u"}]}, good)
    text = harness("import", mixed, "--tokenizer", "bytes", "-o", out)
    assert "2 sessions, 8 tokens" in text and "4 records left out" in text, text
    for part in ("mixed.jsonl:2: is no JSON", "mixed.jsonl:3: is none of the known formats", "unknown role 'wizard'",
                 "mixed.jsonl:5: no assistant has a turn"):
        assert part in text, text
    kept = open(out, "rb").read()
    for arguments, message in [
            ([mixed, "--tokenizer", "bytes", "--strict"], "mixed.jsonl:2: is no JSON"),
            ([mixed, "--tokenizer", "bytes", "--input-format", "xml"], "--input-format xml: use auto or one of"),
            ([lines(f"{folder}/none.jsonl", {"x": 1}), "--tokenizer", "bytes"], "is a conversation; ")]:
        assert message in harness("import", *arguments, "-o", out, expect=2)
    with open(f"{folder}/cut.jsonl.gz", "wb") as file:
        file.write(open(log, "rb").read()[:40])
    assert "is damaged or cut off" in harness("import", f"{folder}/cut.jsonl.gz", "--tokenizer", "bytes", "-o", out, expect=2)
    assert open(out, "rb").read() == kept, "a failed import touched the output"

    text = harness("stats", out)
    assert "sessions" in text and "largest token id 117" in text, text
    harness("generate", "chat", "--sessions", "5", "-o", f"{folder}/made.jsonl")
    assert len(sessions(f"{folder}/made.jsonl")) == 5
    harness("stats", f"{folder}/made.jsonl")
    harness("generate", "paper-agent", "--sessions", "2", "-o", f"{folder}/made.jsonl")
    assert len(sessions(f"{folder}/made.jsonl")) == 2
    assert "use agent, chat, paper-agent, paper-chat" in harness("generate", "paper", "-o", f"{folder}/made.jsonl", expect=2)
