"""Models behind OpenAI-compatible servers: vLLM, SGLang, llama.cpp, hosted ones."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from pfungst.core import Answer, PfungstError, Player, PlayerError, Query
from pfungst.core.fingerprint import digest
from pfungst.core.types import Terms
from pfungst.players.chat_api import Chat, DataURLs
from pfungst.players.dispatch import Dispatcher
from pfungst.players.options import OpenAIOptions
from pfungst.players.servers import Server, Servers, Usage

log = logging.getLogger("pfungst.players")
OPENAI = "https://api.openai.com/v1"

__all__ = ["OPENAI", "OpenAIOptions", "OpenAIPlayer", "split_address"]


def split_address(argument: str) -> tuple[str, str]:
    """`MODEL@http://host:port/v1` as (model, URL). Without a URL: $OPENAI_BASE_URL, else api.openai.com.

    What stands behind an @ is an address, or nothing is asked: a misspelt one must not send images and questions to the
    default. `host:port` alone means http.
    """
    named = re.fullmatch(r"(.*?)@((?:[a-z][a-z0-9+.-]*:)?//.*)", argument, re.IGNORECASE | re.DOTALL)
    model, url = named.groups() if named else argument.rpartition("@")[::2] if "@" in argument else (argument, "")
    if not model:
        raise PlayerError("Say which model at which server: openai:MODEL@http://localhost:8000/v1.")
    if "@" not in argument:
        return model, os.environ.get("OPENAI_BASE_URL") or OPENAI
    return model, ",".join(_address(part.strip(), argument) for part in url.split(",") if part.strip())


def _address(text: str, argument: str) -> str:
    """The address of one server, with its scheme."""
    scheme, found, rest = text.partition("://")
    if found and scheme.lower() in ("http", "https"):
        return f"{scheme.lower()}://{rest}"
    if not found and re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9.-]+):\d+(/.*)?|localhost(/.*)?", text, re.IGNORECASE):
        return f"http://{text}"
    raise PlayerError(
        f"In openai:{argument} there is no address behind the @: {text!r}. Give one with its scheme, such as "
        "http://localhost:8000/v1; a model with an @ in its name needs its address, too: NAME@2@https://api.openai.com/v1."
    )


class PartialAnswers(PlayerError):
    """A batch that could not be finished. `answers` holds those that were received, by position in the batch."""

    def __init__(self, message: str, answers: Mapping[int, Answer]) -> None:
        super().__init__(message)
        self.answers = dict(answers)


class OpenAIPlayer(Player):
    """A vision model asked over HTTP (`POST URL/chat/completions`).

    Images travel as PNG data URLs with unchanged pixels. Failures that may pass (no connection, cut or unreadable
    replies, slow replies, 408, 409, 425, 429, 5xx) are tried again, `retries` times at most, with growing waits and as
    long as the server asks (`Retry-After`); failures that will not pass (401, 403, 404 ...) stop at once, and so does a
    server that failed many times in a row. A question that is refused (400 ...) fails alone where others are answered.
    A multiple choice is asked with lettered options. Replies are kept as they were said; the matcher `lenient` reads
    them unless the user names another.

    `answer_iter` yields answers as they come. When a question fails for good the others are still yielded before
    the error is raised, so nothing paid for is lost; `answer` raises `PartialAnswers`, which carries them.

    The key is read from the environment variable `api_key_env`; without that option, `OPENAI_API_KEY` is used, and sent
    to api.openai.com alone. It is in no fingerprint, message or log. The fingerprint holds the address, the model and
    every option that can change an answer; `version` stands in for the address where a deployment moves.
    """

    matcher = "lenient"
    takes: frozenset[str] = frozenset({"template", "options", "image_last", "as_is"})

    def __init__(self, model: str, url: str = OPENAI, options: OpenAIOptions | None = None) -> None:
        self.options = options or OpenAIOptions()
        addresses = [address.strip() for address in url.split(",") if address.strip()] or [url]
        for address in addresses:
            _check_url(address)
        servers = Servers(
            [Server(address, self.options, _key(address, self.options.api_key_env)) for address in addresses]
        )
        if len(set(servers.names)) < len(servers.names):
            raise PlayerError(f"Each server may be given only once, but these were given: {', '.join(servers.names)}.")
        self.name: str = self.options.name or model
        self.chat: Chat = Chat(model, self.options, DataURLs())
        self._at_once = self.options.concurrency * len(addresses)
        self._dispatcher = Dispatcher(self.name, self.chat, servers, self.options, self._at_once)
        where = self.options.version or (servers.names[0] if len(addresses) == 1 else sorted(servers.names))
        self._where = " and ".join(servers.names)
        self.terms = Terms(self.options.price_in, self.options.price_out, self.options.max_tokens, self._at_once)
        self.fingerprint: str = f"openai-1-{digest(where, model, self.options.settings())}"
        self.batch_size: int = self.options.batch_size or 4 * self._at_once
        self.samples: bool = self.options.samples

    def prompt(self, query: Query) -> str:
        """What is sent in words, the system message first."""
        return f"{self.options.system}\n{self.options.text(query)}".lstrip()

    @property
    def usage(self) -> Usage:  # type: ignore[override]
        """Requests, retries, tokens and spend so far; safe to read from another thread."""
        return self._dispatcher.meter.usage

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """What each server did, where there are several or one failed, and how many answers never began."""
        cut = self._dispatcher.meter.cut
        said = f"{'1 reply' if cut == 1 else f'{cut:,} replies'} reached max_tokens before an answer began."
        more = [f"{said} To let the model finish, raise the option max_tokens."] if cut else []
        return (*self._dispatcher.servers.notes, *more)

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

    def answer_bursts(self, queries: Sequence[Query]) -> Iterator[Sequence[tuple[int, Answer]]]:
        """As `answer_iter`; what comes in together is handed over together."""
        if self._where:
            log.info("%s is asked at %s.", self.name, self._where)
            self._where = ""
        return self._dispatcher.ask(queries)


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - read here, where it can be told
    except ValueError as error:
        raise PlayerError(f"'{url}' is not the address of a server ({error}).") from None
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
