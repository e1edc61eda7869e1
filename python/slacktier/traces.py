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

Where the tokenizer comes with a chat template, turns are what it writes, markers and all; the prompt for an answer is the last part
of what is read before it.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import tempfile

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
        try:
            opened_file = parquet.ParquetFile(path)
        except Exception as error:
            raise UsageError(f"{path}: is no Parquet file: {error}") from error
        for batch in opened_file.iter_batches(batch_size=64):
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


class ChatTemplate:
    """Turns as a model's chat template writes them, rendered as Hugging Face transformers does."""

    def __init__(self, source, name, tokens):
        try:
            import jinja2
            import jinja2.sandbox
        except ImportError as error:
            raise EnvironmentLacks(f"{name} has a chat template, and jinja2 is not installed: pip install jinja2, "
                                   "or leave markers out with --chat-template none") from error

        def refuse(message):
            raise jinja2.TemplateError(message)

        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                                   extensions=["jinja2.ext.loopcontrols"])
        environment.filters["tojson"] = lambda value, **how: json.dumps(value, ensure_ascii=False, indent=how.get("indent"))
        environment.globals["raise_exception"] = refuse
        environment.globals["strftime_now"] = lambda form: "1 January 2026"  # a day is as good as another, and the same each time
        self.name, self.tokens = name, tokens
        source = re.sub(r"\{%-?\s*(end)?generation\s*-?%\}", "", source)  # marks for training, of transformers alone
        try:
            self.template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise UsageError(f"the chat template of {name}: {error}") from error

    def render(self, messages, prompt):
        try:
            return self.template.render(messages=messages, add_generation_prompt=prompt, **self.tokens)
        except Exception as error:
            raise BadRecord(f"the chat template refuses it: {error}") from error

    def turns(self, turns):
        """[(role, text with markers)] of [(role, text)]. A template that writes earlier turns anew with later ones has no turns."""
        messages, written, before = [], [], ""

        def add(role, text):
            nonlocal before
            if not text.startswith(before):
                raise BadRecord(f"the chat template writes what comes before turn {len(messages)} differently with it")
            if len(text) > len(before):
                written.append((role, text[len(before):]))
            before = text

        for role, text in turns:
            if role == "assistant":
                add("user" if messages else "system", self.render(messages, True))
            messages.append({"role": role, "content": text})
            add(role, self.render(messages, False))
        return written


def chat_template_of(wanted, tokenizer):
    """The template to use, or None. `wanted`: auto, none, or a file."""
    if wanted == "none" or (wanted == "auto" and tokenizer == "bytes"):
        return None
    folder = tokenizer if os.path.isdir(tokenizer) else os.path.dirname(os.path.abspath(tokenizer))
    config, tokens = {}, {}
    path = os.path.join(folder, "tokenizer_config.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            try:
                config = json.load(file)
            except ValueError as error:
                raise UsageError(f"{path}: is no JSON: {error}") from error
        for key in ("bos_token", "eos_token", "pad_token", "unk_token"):
            token = config.get(key)
            if token is not None:
                tokens[key] = token.get("content", "") if isinstance(token, dict) else token
    beside = os.path.join(folder, "chat_template.jinja")
    if wanted == "auto":
        source = config.get("chat_template")
        if isinstance(source, list):  # several by name
            named = {one.get("name"): one.get("template") for one in source if isinstance(one, dict)}
            source = named.get("default", next(iter(named.values()), None))
        if not source and os.path.exists(beside):
            path, wanted = beside, beside
        elif not source:
            return None
        else:
            return ChatTemplate(source, path, tokens)
    try:
        with open(wanted, encoding="utf-8") as file:
            return ChatTemplate(file.read(), wanted, tokens)
    except OSError as error:
        raise UsageError(f"--chat-template {wanted}: {error.strerror}") from error


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


class Sorter:
    """Sessions by arrival, kept on disk until all are there: memory holds a few numbers of each."""

    def __enter__(self):
        self.file, self.places = tempfile.TemporaryFile(), []
        return self

    def __exit__(self, *_):
        self.file.close()

    def __len__(self):
        return len(self.places)

    def add(self, arrival, session):
        line = (json.dumps(session) + "\n").encode("utf-8")
        self.places.append((arrival, self.file.tell(), len(line)))
        self.file.write(line)

    def lines(self):
        for _, place, size in sorted(self.places):
            self.file.seek(place)
            yield self.file.read(size).decode("utf-8")


def import_traces(files, out, tokenizer, form="auto", chat_template="auto", strict=False, limit=0):
    """Writes the sessions of `files` to `out`, as a whole or not at all; returns what became of the records."""
    if form not in FORMATS + ["auto"]:
        raise UsageError(f"--input-format {form}: use auto or one of {', '.join(FORMATS)}")
    encode = tokenizer_of(tokenizer)
    template = chat_template_of(chat_template, tokenizer)
    seen, bad, formats, tokens, written = {}, [], {}, 0, 0
    bad_count = 0
    partial = (out[:-3] + ".part.gz") if out.endswith(".gz") else out + ".part"
    try:
        with opened(partial) as target, Sorter() as later:
            for path in files:
                for place, record in records_of(path):
                    if limit and written + len(later) >= limit:
                        break
                    try:
                        if isinstance(record, BadRecord):
                            raise record
                        if not isinstance(record, dict):
                            raise BadRecord("is no object")
                        found = format_of(record) if form == "auto" else form
                        said = turns_of(record, found)
                        if template:
                            said = template.turns(said)
                        turns = [{"role": role, "ids": encode(text)} for role, text in said]
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
                        later.add(arrival, session)
                    else:
                        target.write(json.dumps(session) + "\n")
                        written += 1
            for line in later.lines():
                target.write(line)
                written += 1
        if written == 0:
            raise UsageError(f"no record of {', '.join(files)} is a conversation" + (f"; {bad[0]}" if bad else ""))
        os.replace(partial, out)
    finally:
        if os.path.exists(partial):
            os.remove(partial)
    return {"sessions": written, "tokens": tokens, "formats": formats, "bad_records": bad_count, "bad": bad,
            "chat_template": template.name if template else ""}
