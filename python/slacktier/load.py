"""Holds B streaming requests at an OpenAI-compatible server, so that its decode batch stays B."""

import http.client
import json
import threading
import urllib.parse

from slacktier import errors


class Load:
    def __init__(self, url, sessions, prompt_words, max_tokens):
        parts = urllib.parse.urlsplit(url if "://" in url else "http://" + url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise errors.UsageError(f"--load {url}: write http://HOST:PORT")
        self.parts, self.url = parts, url
        self.prompt_words, self.max_tokens = prompt_words, max_tokens
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.streaming, self.chunks, self.failure = 0, 0, ""
        self.model = self._model()
        self.threads = [threading.Thread(target=self._hold, args=(i,), daemon=True) for i in range(sessions)]
        for thread in self.threads:
            thread.start()

    def _connection(self):
        kind = http.client.HTTPSConnection if self.parts.scheme == "https" else http.client.HTTPConnection
        return kind(self.parts.hostname, self.parts.port, timeout=120)

    def _path(self, name):
        return self.parts.path.rstrip("/").removesuffix("/v1") + "/v1/" + name

    def _model(self):
        try:
            connection = self._connection()
            connection.request("GET", self._path("models"))
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                raise errors.EnvironmentLacks(f"--load {self.url}: GET /v1/models answered {answer.status}")
            return json.loads(text)["data"][0]["id"]
        except (OSError, http.client.HTTPException) as error:
            raise errors.EnvironmentLacks(f"--load {self.url}: no server answers there: {error}") from error
        except (ValueError, LookupError) as error:
            raise errors.EnvironmentLacks(f"--load {self.url}: GET /v1/models names no model") from error

    def _hold(self, number):
        """One request after the other: a session that ends is followed by the next at once."""
        while not self.stopping.is_set():
            try:
                self._stream(number)
            except (OSError, http.client.HTTPException, errors.EnvironmentLacks) as error:
                with self.lock:
                    self.failure = str(error) or type(error).__name__
                self.stopping.wait(0.5)

    def _stream(self, number):
        # Prompts differ, so that no prefix cache makes one prefill of them.
        prompt = " ".join(f"{number}-{word}" for word in range(self.prompt_words))
        body = {"model": self.model, "prompt": prompt, "max_tokens": self.max_tokens, "stream": True, "ignore_eos": True, "temperature": 1}
        connection = self._connection()
        try:
            connection.request("POST", self._path("completions"), json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise errors.EnvironmentLacks(f"POST /v1/completions answered {answer.status}: {answer.read(200)!r}")
            began = False
            try:
                for line in answer:
                    if self.stopping.is_set():
                        return
                    if line.startswith(b"data:"):
                        with self.lock:
                            self.chunks += 1
                            self.streaming += not began
                        began = True
            finally:
                with self.lock:
                    self.streaming -= began
        finally:
            connection.close()

    def status(self):
        with self.lock:
            return {"streaming": self.streaming, "chunks": self.chunks, "failure": self.failure}

    def stop(self):
        self.stopping.set()


_loads = []


def start(url, sessions, prompt_words=64, max_tokens=100_000):
    """Begins; returns the model's name. Raises EnvironmentLacks when no server answers."""
    load = Load(url, sessions, prompt_words, max_tokens)
    _loads.append(load)
    return {"model": load.model}


def status():
    """Requests that stream at this moment, chunks received, the last failure."""
    states = [load.status() for load in _loads]
    return {"streaming": sum(s["streaming"] for s in states), "chunks": sum(s["chunks"] for s in states),
            "failure": next((s["failure"] for s in states if s["failure"]), "")}


def stop():
    """Ends all; the server sees its requests cut."""
    while _loads:
        _loads.pop().stop()
