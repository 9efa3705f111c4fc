"""Models behind OpenAI-compatible servers: vLLM, SGLang, llama.cpp, hosted ones."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from pfungst.core import Answer, PfungstError, PlayerError, Query
from pfungst.players.api_options import OpenAIOptions
from pfungst.players.chat_api import Chat, Fatal, GivenUp
from pfungst.players.patience import PartialAnswers, Usage

OPENAI = "https://api.openai.com/v1"

__all__ = ["OPENAI", "OpenAIOptions", "OpenAIPlayer", "split_address"]


def split_address(argument: str) -> tuple[str, str]:
    """`MODEL@http://host:port/v1` as (model, URL). Without a URL: $OPENAI_BASE_URL, else api.openai.com."""
    model, at, rest = argument.rpartition("@http")
    if not at:
        model, url = argument, os.environ.get("OPENAI_BASE_URL") or OPENAI
    else:
        url = "http" + rest
    if not model:
        raise PlayerError("Say which model at which server: openai:MODEL@http://localhost:8000/v1.")
    return model, url


class OpenAIPlayer:
    """A vision model asked over HTTP (`POST URL/chat/completions`).

    Images travel as PNG data URLs with unchanged pixels. Failures that may pass (no connection, cut or unreadable
    replies, slow replies, 408, 409, 425, 429, 5xx) are tried again, `retries` times at most, with growing waits and as
    long as the server asks (`Retry-After`); failures that will not pass (400, 401, 403, 404 ...) stop at once, and so
    does a server that failed many times in a row. A multiple choice is asked with lettered options. Replies are kept as
    they were said; the matcher `lenient` reads them unless the user names another.

    `answer_iter` yields answers as they come. When a question fails for good the others are still yielded before
    the error is raised, so nothing paid for is lost; `answer` raises `PartialAnswers`, which carries them.

    The key is read from the environment variable `api_key_env`; without that option, `OPENAI_API_KEY` is used, and sent
    to api.openai.com alone. It is in no fingerprint, message or log. The fingerprint holds the address, the model and
    every option that can change an answer; `version` stands in for the address where a deployment moves.
    """

    matcher = "lenient"

    def __init__(self, model: str, url: str = OPENAI, options: OpenAIOptions | None = None) -> None:
        self.options = options or OpenAIOptions()
        _check_url(url)
        self._chat = Chat(model, url, self.options, _key(url, self.options.api_key_env))
        self.name = self.options.name or model
        self.fingerprint = self._chat.fingerprint
        self.batch_size = self.options.batch_size or 4 * self.options.concurrency
        self.samples = self.options.temperature is None or self.options.temperature > 0

    @property
    def usage(self) -> Usage:
        """Requests, retries, tokens and spend so far; safe to read from another thread."""
        return self._chat.usage

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        received: dict[int, Answer] = {}
        try:
            for index, answer in self.answer_iter(queries):
                received[index] = answer
        except PfungstError as error:
            if received:
                raise PartialAnswers(str(error), received) from error
            raise
        return [received[index] for index in range(len(queries))]

    def answer_iter(self, queries: Sequence[Query]) -> Iterator[tuple[int, Answer]]:
        """(position, answer) as they come, in any order; an error is raised after the last answer there is."""
        waiting = deque(enumerate(queries))
        done: queue.SimpleQueue[tuple[int, Answer | Exception] | None] = queue.SimpleQueue()
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                try:
                    index, query = waiting.popleft()
                except IndexError:
                    break
                try:
                    done.put((index, self._chat.ask(query, stop)))
                except GivenUp:
                    break
                except Exception as error:
                    # Told here, not by the reader, so that this thread takes no further question.
                    if isinstance(error, Fatal) or not isinstance(error, PfungstError):
                        stop.set()
                    done.put((index, error))
            done.put(None)

        running = min(self.options.concurrency, len(waiting))
        for number in range(running):
            # Daemons: whoever leaves (Ctrl-C) need not wait for replies nobody will read.
            threading.Thread(target=work, name=f"{self.name}-{number}", daemon=True).start()
        failures: list[Exception] = []
        try:
            while running:
                item = done.get()
                if item is None:
                    running -= 1
                elif isinstance(item[1], Answer):
                    yield item[0], item[1]
                else:
                    failures.append(item[1])
        finally:
            stop.set()
        if failures:
            raise next((one for one in failures if isinstance(one, Fatal)), failures[0])


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise PlayerError(f"'{url}' is not the address of a server: give one such as http://localhost:8000/v1.")
    if parts.username is not None or parts.password is not None:
        raise PlayerError(
            f"The address of {parts.hostname} holds a user name or password. Leave it out, and name the environment "
            f"variable that holds the key with the option api_key_env."
        )


def _key(url: str, variable: str) -> str:
    if not variable:
        # A key that lies around in the environment must not be sent to whoever runs the server.
        return os.environ.get("OPENAI_API_KEY", "").strip() if urlsplit(url).hostname == "api.openai.com" else ""
    if not variable.isidentifier():
        # Not repeated: it may well be the key.
        raise PlayerError("The option api_key_env is the name of an environment variable that holds the key.")
    key = os.environ.get(variable, "").strip()
    if not key:
        raise PlayerError(f"The environment variable {variable} that should hold the key is not set.")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise PlayerError(f"The environment variable {variable} holds characters that no key has.")
    return key
