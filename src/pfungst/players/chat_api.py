"""The chat completions protocol: what is sent for a query, images included, and how a reply or refusal is read."""

from __future__ import annotations

import base64
import io
import json
import math
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future
from email.utils import parsedate_to_datetime
from typing import Any

from pfungst.core import Answer, BudgetSpent, Image, PlayerDied, PlayerError, Query
from pfungst.core.asker import LONGEST_ANSWER
from pfungst.core.images import as_rgb, shines_through, upright
from pfungst.players.options import OpenAIOptions

_PASSING = frozenset({408, 409, 425, 429})
_LASTING_5XX = frozenset({501, 505})
_GATEWAYS = frozenset({502, 503, 504})
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "moderation_blocked"})
_FILTERED = b'{"choices": [{"finish_reason": "content_filter"}]}'
"""What other servers reply where their filter kept a question or an image from the model."""

Body = tuple[bytes, ...]
"""A request in pieces: the image, which many requests share, is a piece of its own."""


class Fatal(PlayerDied):
    """Asking on is no use: the same would happen to every question."""


class AllFailing(Fatal):
    """The servers reply, but with errors, to one question after the other."""


class Spent(Fatal, BudgetSpent):
    """The money is spent."""


class Unfit(PlayerError):
    """A request that the server does not take. Where it takes others, the question or its image is why."""


class Refused(Exception):
    """A server that will not answer, whatever it is asked; another may."""


class Passing(Exception):
    """May go well next time.

    wait: seconds that the server asks for.
    alive: the server is up, it just does not want to answer now.
    pushed: it asks for less, or could not keep up.
    taken: it took the request, so the question itself may be why.
    """

    def __init__(
        self, reason: str, wait: float | None = None, alive: bool = False, pushed: bool = False, taken: bool = False
    ) -> None:
        super().__init__(reason)
        self.wait = wait
        self.alive = alive
        self.pushed = pushed
        self.taken = taken


class Chat:
    """A model, asked by the options. Safe to use from many threads."""

    def __init__(self, model: str, options: OpenAIOptions, urls: DataURLs) -> None:
        self._model = model
        self._options = options
        self._urls = urls
        # Stands where the URL of the image goes while the rest becomes JSON. By chance, so that no question holds it.
        self._mark = uuid.uuid4().hex

    def body(self, query: Query, digest: str | None = None) -> Body:
        """The request as JSON. `digest` is that of the image, where it is known already."""
        options = self._options
        content: Any = options.text(query)
        if query.image is not None:
            image = {"url": self._mark, **({"detail": options.detail} if options.detail else {})}
            parts = [{"type": "image_url", "image_url": image}, {"type": "text", "text": content}]
            content = parts[::-1] if query.framing is not None and query.framing.image_last else parts
        messages = [{"role": "user", "content": content}]
        if options.system:
            messages.insert(0, {"role": "system", "content": options.system})
        request: dict[str, Any] = {"model": self._model, "messages": messages}
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if options.max_tokens is not None:
            request["max_tokens"] = options.max_tokens
        if options.seed is not None:
            request["seed"] = options.seed + query.take
        if options.logprobs:
            request["logprobs"] = True
        # A question may hold half a surrogate pair, which UTF-8 cannot; JSON's own escapes can.
        whole = json.dumps({**request, **(options.extra or {})}).encode("ascii")
        before, mark, after = whole.partition(self._mark.encode("ascii"))
        if not mark or query.image is None:
            return (whole,)
        as_is = query.framing is not None and query.framing.as_is
        return before, self._urls.of(query.image, digest, as_is), after

    def parse(self, payload: bytes) -> dict[str, Any]:
        """The object that a reply holds."""
        try:
            text = payload.decode("utf-8-sig")
        except UnicodeDecodeError:
            said = one_line(payload.decode("utf-8", "backslashreplace"))
            raise Passing(f"a reply that is not UTF-8: '{said}'", taken=True) from None
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            raise Passing(f"a reply that is not JSON: '{one_line(text)}'", taken=True) from None
        if not isinstance(parsed, dict):
            raise Passing(f"a reply that is not an object: '{one_line(text)}'", taken=True)
        return parsed

    def read(
        self, reply: Mapping[str, Any], used: tuple[int | None, int | None], seconds: float, others: bool = False
    ) -> Answer:
        """The reply as it was said; a matcher reads the answer in it. `used`: tokens in and out. `others`: whether the
        model has answered other questions."""
        choices = reply.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise Passing(f"a reply without choices: '{one_line(json.dumps(reply))}'", taken=True)
        choice = choices[0]
        message = choice.get("message")
        text = _text(message if isinstance(message, dict) else {})
        if text is None and choice.get("finish_reason") == "content_filter":
            text = ""
        if not text and choice.get("finish_reason") == "length":
            text = ""
            if not others:
                raise Fatal(
                    f"The model '{self._model}' reached max_tokens ({self._options.max_tokens}) before its answer "
                    f"began. Raise the option max_tokens."
                )
        if text is None:
            raise Passing(f"a reply without text: '{one_line(json.dumps(choice))}'", taken=True)
        plain, stop = text.strip(), choice.get("finish_reason")
        if len(plain) > LONGEST_ANSWER:  # this question fails alone; its answer would stop all that are under way
            raise Passing(f"a reply of {len(plain):,} characters", alive=True, taken=True)
        return Answer(
            plain,
            confidence=_confidence(choice.get("logprobs")),
            raw=text if text != plain else None,
            thinking=_thinking(message if isinstance(message, dict) else {}),
            stop=stop if isinstance(stop, str) else "",
            input_tokens=used[0],
            output_tokens=used[1],
            seconds=seconds,
        )

    def refuse(self, status: int, headers: Mapping[str, str], payload: bytes, query: Query, server: str) -> bytes:
        """What a reply without success means: raised, or returned as the reply that it stands for."""
        message, code = _error(payload.decode("utf-8", "replace"))
        if status in (400, 403) and code in _FILTER_CODES:
            return _FILTERED
        said = f"{status}: {one_line(message)}" if message else str(status)
        passing = status in _PASSING or (status >= 500 and status not in _LASTING_5XX)
        if passing and code != "insufficient_quota":
            wait = retry_after(headers)
            asks_for_less = status == 429 or wait is not None
            taken = status >= 500 and status not in _GATEWAYS
            raise Passing(said, wait, alive=asks_for_less, pushed=asks_for_less, taken=taken)
        begins = f"The server at {server} refused the request ({said})."
        if status in (401, 403):
            raise Refused(
                f"{begins} It refused the key: name the environment variable that holds it with the option api_key_env."
            )
        if status == 404:
            raise Refused(
                f"{begins} Check that it serves the model '{self._model}' and that the address ends as it should "
                "(often /v1)."
            )
        if 300 <= status < 400:
            raise Refused(
                f"{begins} It redirects to '{one_line(headers.get('location', ''))}': use that address if it is right."
            )
        if status in (402, 429):
            raise Refused(f"{begins} The account has no quota left.")
        raise Unfit(
            f"{begins} It happened with the question '{query.question:.80}'. Check the options this model may not "
            "accept (max_tokens, seed, temperature, logprobs, detail, extra) and the size of the image."
        )


def one_line(text: str) -> str:
    return " ".join(text[:10_000].split())[:300]


def tokens(reply: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Tokens in and out, None where the server does not say."""
    usage = reply.get("usage")
    if not isinstance(usage, dict):
        return None, None
    return _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))


def _count(number: Any) -> int | None:
    return int(number) if isinstance(number, int | float) and 0 <= number < 1e12 else None


def _error(text: str) -> tuple[str, str]:
    """Message and code of an error reply; its text where it has another form."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return text, ""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        return str(error.get("message") or error.get("detail") or text), str(
            error.get("code") or error.get("type") or ""
        )
    return str(error), ""


def _text(message: dict[str, Any]) -> str | None:
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    if isinstance(content, str):
        return content
    refusal = message.get("refusal")
    return refusal if isinstance(refusal, str) else None


def _thinking(message: dict[str, Any]) -> str:
    """What reasoning models thought, under the names servers give it."""
    for name in ("reasoning_content", "reasoning", "thinking"):
        text = message.get(name)
        if isinstance(text, str):
            return text
    return ""


def _confidence(logprobs: Any) -> float | None:
    """Probability of the whole reply: exp of the sum of its tokens' log-probabilities."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list) or not content:
        return None
    values = [token.get("logprob") if isinstance(token, dict) else None for token in content]
    # NaN is not in any range, and a whole number of any length can be compared.
    if not all(isinstance(v, int | float) and (-1e300 < v < 1e300 or v == -math.inf) for v in values):
        return None
    return min(1.0, math.exp(min(0.0, math.fsum(v for v in values if v is not None))))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks to wait, from `Retry-After` (seconds or an HTTP date) or `retry-after-ms`."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    try:
        then = parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    try:
        # The server's own clock, where it tells the time: ours may be wrong.
        now = parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (ValueError, TypeError, OverflowError):
        now = time.time()
    return max(0.0, then - now)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


_JPEG = b"\xff\xd8\xff"
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# What PNG can hold as it is; others (CMYK, YCbCr, float) become RGB. Servers clip grey of 16 bits to white.
_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA"})
_DEEP_GREY = b"\x10\x00"
"""Bit depth 16, colour type grey, as the header of a PNG says them."""
_WITH_ALPHA = (b"\x04", b"\x06")
"""Colour types of PNG; a transparent colour of the others is in a chunk tRNS."""


def png_bytes(image: Image) -> bytes:
    """The image as PNG: the very bytes where it is one already, else decoded and encoded without loss.

    Never JPEG: a second lossy encoding would disturb the image behind the probe's back. Servers see what a person sees
    and what players on this machine see: EXIF orientation is applied, grey of 16 bits is scaled to 8, transparent
    pixels lie on white. No other metadata travels with an image that is encoded here.
    """
    data = image.read()
    as_it_is = data.startswith(_SIGNATURE) and data[24:26] != _DEEP_GREY and b"eXIf" not in data
    if as_it_is and data[25:26] not in _WITH_ALPHA and b"tRNS" not in data:
        return data
    pixels = upright(image.pil())
    if pixels.mode not in _MODES or shines_through(pixels):
        pixels = as_rgb(pixels)
    elif as_it_is:
        return data
    pixels.info = {key: value for key, value in pixels.info.items() if key == "transparency"}
    buffer = io.BytesIO()
    pixels.save(buffer, format="PNG", compress_level=1)
    return buffer.getvalue()


class DataURLs:
    """`data:` URLs of images, the latest kept. However many threads ask for one, it is encoded once."""

    def __init__(self, limit_bytes: int = 64 << 20) -> None:
        self._limit = limit_bytes
        self._kept: OrderedDict[str, Future[bytes]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def of(self, image: Image, digest: str | None = None, as_is: bool = False) -> bytes:
        """The URL, in ASCII; whoever comes while it is being made waits for it.

        as_is: the image's own bytes where they are a JPEG, which otherwise travels as a PNG of the same pixels.
        """
        name = f"{digest or image.digest}{' as is' if as_is else ''}"
        with self._lock:
            known = self._kept.get(name)
            if known is not None:
                self._kept.move_to_end(name)
            else:
                made: Future[bytes] = Future()
                self._kept[name] = made
        if known is not None:
            return known.result()
        try:
            own = image.read() if as_is else b""
            kind, data = (b"jpeg", own) if own.startswith(_JPEG) else (b"png", png_bytes(image))
            url = b"data:image/" + kind + b";base64," + base64.b64encode(data)
        except BaseException as error:
            with self._lock:
                del self._kept[name]
            made.set_exception(error)
            raise
        with self._lock:
            made.set_result(url)
            self._size += len(url)
            while self._size > self._limit and (oldest := self._oldest()) != name:
                self._size -= len(self._kept.pop(oldest).result())
        return url

    def _oldest(self) -> str:
        """Of those that are finished."""
        return next(name for name, made in self._kept.items() if made.done())
