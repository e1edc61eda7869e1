"""Conversations to token sessions, for slacktier-harness trace import.

Each record becomes a session, {"id", "group", "turns": [{"role", "ids"}]}, one a line. Understood are JSON Lines (plain, .gz,
.zst), whole JSON files (.json, .traj) and Parquet (.parquet, with pyarrow) of
  turns       {"turns": [{"role", "text"}]}: sessions as this project takes them, as text
  openai      {"messages": [{"role", "content"}]}: OpenAI's fine-tuning and chat logs, mini-swe-agent
  sharegpt    {"conversations": [{"from", "value"}]}
  wildchat    {"conversation": [{"role", "content"}]}
  trajectory  {"trajectory": [{"role", "content" or "text"}]}: SWE-rebench's OpenHands runs
  history     {"history": [{"role", "content"}]}: SWE-agent's .traj, OpenHands
  log         {"prompt", "response" or "completion"}: server logs, sorted by "arrival_ms" or "timestamp" where they have it
"""

import gzip
import json
import os
import shutil
import subprocess

from slacktier.errors import EnvironmentLacks, UsageError

ROLES = {
    "assistant": "assistant", "gpt": "assistant", "ai": "assistant", "model": "assistant", "bot": "assistant",
    "chatgpt": "assistant", "bing": "assistant", "bard": "assistant",
    "user": "user", "human": "user",
    "system": "system", "developer": "system",
    "tool": "tool", "function": "tool", "observation": "tool", "environment": "tool",
}
LISTS = {"turns": "turns", "openai": "messages", "sharegpt": "conversations", "wildchat": "conversation", "trajectory": "trajectory",
         "history": "history"}
FORMATS = list(LISTS) + ["log"]
IDS = ("id", "conversation_hash", "conversation_id", "instance_id", "trajectory_id", "uuid", "session_id", "request_id")
GROUPS = ("group", "repo", "model", "source", "user", "language")


class BadRecord(Exception):
    """A record that is no conversation; says why."""


def text_of(message):
    """Text of a message: its content (a string or a list of parts) and the calls it makes to tools."""
    content = message.get("content", message.get("value", message.get("text")))
    parts = []
    if isinstance(content, str):
        parts.append(content)
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, str):
                parts.append(part)
            elif isinstance(part, dict) and isinstance(part.get("text"), str):
                parts.append(part["text"])
    elif content is not None:
        raise BadRecord(f"content is a {type(content).__name__}")
    for call in message.get("tool_calls") or []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            arguments = function.get("arguments", "")
            parts.append(f"{function.get('name', '')}({arguments if isinstance(arguments, str) else json.dumps(arguments)})")
    return "\n".join(part for part in parts if part)


def format_of(record):
    for name, key in LISTS.items():
        if isinstance(record.get(key), list) and record[key] and isinstance(record[key][0], dict) and \
                any(k in record[key][0] for k in ("role", "from")):
            return name
    if isinstance(record.get("prompt"), str) and any(isinstance(record.get(k), str) for k in ("response", "completion")):
        return "log"
    raise BadRecord("is none of the known formats")


def turns_of(record, form):
    """[(role, text)] of a record."""
    if form == "log":
        if not isinstance(record.get("prompt"), str):
            raise BadRecord("prompt is missing")
        answer = record.get("response", record.get("completion"))
        if not isinstance(answer, str):
            raise BadRecord("response is missing")
        return [("user", record["prompt"]), ("assistant", answer)]
    messages = record.get(LISTS[form])
    if not isinstance(messages, list):
        raise BadRecord(f"{LISTS[form]} is missing")
    turns = []
    for i, message in enumerate(messages):
        if not isinstance(message, dict):
            raise BadRecord(f"{LISTS[form]}[{i}] is no object")
        name = str(message.get("role", message.get("from", ""))).lower()
        if name not in ROLES:
            raise BadRecord(f"{LISTS[form]}[{i}] has the unknown role '{name}'")
        text = text_of(message) or message.get("system_prompt") or ""
        if text:
            turns.append((ROLES[name], text))
    if not any(role == "assistant" for role, _ in turns):
        raise BadRecord("no assistant has a turn")
    return turns


def lines_of(path):
    """(line number, text) of a JSON Lines file, streamed."""
    if path.endswith(".gz"):
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                yield from enumerate(file, 1)
        except (EOFError, gzip.BadGzipFile) as error:
            raise UsageError(f"{path}: is damaged or cut off: {error}") from error
    elif path.endswith(".zst"):
        if not shutil.which("zstd"):
            raise EnvironmentLacks(f"{path}: the program zstd is not installed: apt-get install zstd")
        with subprocess.Popen(["zstd", "-qdc", "--", path], stdout=subprocess.PIPE, text=True, encoding="utf-8") as zstd:
            yield from enumerate(zstd.stdout, 1)
        if zstd.returncode != 0:
            raise UsageError(f"{path}: is damaged or cut off (zstd says so)")
    else:
        with open(path, encoding="utf-8") as file:
            yield from enumerate(file, 1)


def records_of(path):
    """(place, record) of a file; a record that could not be read is a BadRecord."""
    if path.endswith(".parquet"):
        try:
            import pyarrow.parquet as parquet
        except ImportError as error:
            raise EnvironmentLacks(f"{path}: pyarrow is not installed: pip install pyarrow") from error
        number = 0
        for batch in parquet.ParquetFile(path).iter_batches(batch_size=64):
            for record in batch.to_pylist():
                number += 1
                yield f"{path}: row {number}", record
        return
    if path.endswith((".json", ".traj")):
        with open(path, encoding="utf-8") as file:
            try:
                whole = json.load(file)
            except ValueError as error:
                raise UsageError(f"{path}: is no JSON: {error}") from error
        for number, record in enumerate(whole if isinstance(whole, list) else [whole]):
            if isinstance(record, dict) and not any(key in record for key in IDS):
                record["id"] = f"{os.path.basename(path)}:{number}"
            yield f"{path}: record {number}", record
        return
    for number, line in lines_of(path):
        if line.strip():
            try:
                yield f"{path}:{number}", json.loads(line)
            except ValueError as error:
                yield f"{path}:{number}", BadRecord(f"is no JSON: {error}")


def tokenizer_of(name):
    """A function from text to ids. "bytes" needs no library: one id a byte of UTF-8."""
    if name == "bytes":
        return lambda text: list(text.encode("utf-8"))
    try:
        import tokenizers
    except ImportError as error:
        raise EnvironmentLacks("tokenizers is not installed: pip install tokenizers") from error
    path = os.path.join(name, "tokenizer.json") if os.path.isdir(name) else name
    if not os.path.exists(path):
        raise UsageError(f"--tokenizer {name}: there is no such tokenizer.json")
    try:
        made = tokenizers.Tokenizer.from_file(path)
    except Exception as error:
        raise UsageError(f"--tokenizer {path}: {error}") from error
    return lambda text: made.encode(text, add_special_tokens=False).ids


def opened(path):
    return gzip.open(path, "wt", encoding="utf-8") if path.endswith(".gz") else open(path, "w", encoding="utf-8")


def import_traces(files, out, tokenizer, form="auto", strict=False, limit=0):
    """Writes the sessions of `files` to `out`, as a whole or not at all; returns what became of the records."""
    if form not in FORMATS + ["auto"]:
        raise UsageError(f"--input-format {form}: use auto or one of {', '.join(FORMATS)}")
    encode = tokenizer_of(tokenizer)
    seen, bad, formats, tokens, written = {}, [], {}, 0, 0
    bad_count, held = 0, []
    partial = (out[:-3] + ".part.gz") if out.endswith(".gz") else out + ".part"
    try:
        with opened(partial) as target:
            for path in files:
                for place, record in records_of(path):
                    if limit and written + len(held) >= limit:
                        break
                    try:
                        if isinstance(record, BadRecord):
                            raise record
                        if not isinstance(record, dict):
                            raise BadRecord("is no object")
                        found = format_of(record) if form == "auto" else form
                        turns = [{"role": role, "ids": encode(text)} for role, text in turns_of(record, found)]
                    except BadRecord as error:
                        if strict:
                            raise UsageError(f"{place}: {error}") from error
                        bad_count += 1
                        if len(bad) < 10:
                            bad.append(f"{place}: {error}")
                        continue
                    name = next((str(record[key]) for key in IDS if record.get(key) not in (None, "")), place)
                    seen[name] = seen.get(name, 0) + 1
                    session = {"id": name if seen[name] == 1 else f"{name}#{seen[name]}",
                               "group": next((str(record[key]) for key in GROUPS if isinstance(record.get(key), str)), ""),
                               "turns": turns}
                    formats[found] = formats.get(found, 0) + 1
                    tokens += sum(len(turn["ids"]) for turn in turns)
                    arrival = record.get("arrival_ms", record.get("timestamp"))
                    if found == "log" and isinstance(arrival, (int, float)):
                        session["arrival_ms"] = arrival
                        held.append(session)
                    else:
                        target.write(json.dumps(session) + "\n")
                        written += 1
            for session in sorted(held, key=lambda one: one["arrival_ms"]):
                target.write(json.dumps(session) + "\n")
                written += 1
        if written == 0:
            raise UsageError(f"no record of {', '.join(files)} is a conversation" + (f"; {bad[0]}" if bad else ""))
        os.replace(partial, out)
    finally:
        if os.path.exists(partial):
            os.remove(partial)
    return {"sessions": written, "tokens": tokens, "formats": formats, "bad_records": bad_count, "bad": bad}
