"""One question to one server: what is sent, how it is tried again, how the reply is read."""

from __future__ import annotations

import ipaddress
import json
import math
import ssl
import threading
import time
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import urlsplit

import httpx

from pfungst.core import Answer, PlayerDied, PlayerError, Query
from pfungst.players.api_options import NOT_ANSWER, OpenAIOptions
from pfungst.players.hashing import digest
from pfungst.players.letters import fill, lettered
from pfungst.players.patience import Backoff, Breaker, Gate, ServerDead, Usage, retry_after
from pfungst.players.png import DataURLs

_PASSING = frozenset({408, 409, 425, 429})
_LASTING_5XX = frozenset({501, 505})
_LONGEST_BODY = 16 << 20


class Fatal(PlayerDied):
    """Asking on is no use: the same would happen to every question."""


class GivenUp(Exception):
    """The question was given up because the run is stopping; it is neither answered nor failed."""


class _Passing(Exception):
    """May go well next time."""

    def __init__(self, reason: str, wait: float | None = None, alive: bool = False) -> None:
        super().__init__(reason)
        self.wait = wait
        self.alive = alive


class Chat:
    """A model at a server. Safe to use from many threads."""

    def __init__(self, model: str, url: str, options: OpenAIOptions, key: str) -> None:
        parts = urlsplit(url)
        self._server = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._url = self._server + "/chat/completions" + (f"?{parts.query}" if parts.query else "")
        self._model = model
        self._options = options
        self._key = key
        self._urls = DataURLs()
        self._backoff = Backoff(options.backoff)
        self._gate = Gate()
        self._breaker = Breaker(options.breaker or max(10, 2 * options.concurrency), self._server)
        self._usage = Usage()
        self._lock = threading.Lock()
        seconds = options.timeout
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(seconds, connect=options.connect_timeout),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=options.concurrency),
            follow_redirects=False,
            trust_env=not _is_loopback(parts.hostname or ""),
            # Reading the system's certificates takes longer than a request: only where they are needed. A bare
            # context trusts nobody.
            verify=True if parts.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )
        settings = {name: value for name, value in asdict(options).items() if name not in NOT_ANSWER}
        self.fingerprint = f"openai-1-{digest(options.version or self._server, model, settings)}"

    @property
    def usage(self) -> Usage:
        with self._lock:
            return self._usage

    def ask(self, query: Query, stop: threading.Event) -> Answer:
        """The answer, after as many tries as allowed. `stop` ends waiting and retrying, not a request under way."""
        body = self._body(query)
        for attempt in range(self._options.retries + 1):
            self._gate.wait(stop)
            if stop.is_set():
                raise GivenUp
            self._check_worth_asking()
            try:
                began = time.monotonic()
                reply = self._post(body, query, retry=attempt > 0)
                answer = replace(self._read(reply), seconds=time.monotonic() - began)
            except _Passing as failure:
                if not failure.alive:
                    self._breaker.failure(str(failure))
                if failure.wait is not None and failure.wait > self._options.max_wait:
                    raise Fatal(
                        f"The server at {self._server} asks to wait {failure.wait:.0f} s, longer than max_wait "
                        f"({self._options.max_wait:g} s). Run again later: answers already received are kept."
                    ) from None
                if failure.wait is not None:
                    self._gate.close_for(failure.wait)
                reason = str(failure)
                if attempt < self._options.retries:
                    stop.wait(max(self._backoff.delay(attempt), failure.wait or 0.0))
            else:
                self._breaker.success()
                return answer
        self._check_worth_asking()
        raise PlayerError(
            f"The question '{query.question:.80}' failed {self._options.retries + 1} times at {self._server} "
            f"(last: {reason}). Run again: answers already received are kept."
        )

    def _check_worth_asking(self) -> None:
        try:
            self._breaker.check()
        except ServerDead as dead:
            raise Fatal(str(dead)) from None
        budget = self._options.budget
        if budget is not None and self.usage.spend >= budget:
            raise Fatal(f"The budget of {budget:g} is spent ({self.usage}). Answers already received are kept.")

    def _body(self, query: Query) -> bytes:
        options = self._options
        if query.choices:
            text = lettered(query.question, query.choices, options.choices_prompt)
        else:
            text = fill(options.prompt, question=query.question)
        content: Any = text
        if query.image is not None:
            picture = {"url": self._urls.of(query.image), **({"detail": options.detail} if options.detail else {})}
            content = [{"type": "image_url", "image_url": picture}, {"type": "text", "text": text}]
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
        return json.dumps({**request, **(options.extra or {})}).encode("ascii")

    def _post(self, body: bytes, query: Query, retry: bool) -> dict[str, Any]:
        with self._lock:
            self._usage = replace(
                self._usage, requests=self._usage.requests + 1, retries=self._usage.retries + int(retry)
            )
        deadline = time.monotonic() + self._options.timeout
        chunks: list[bytes] = []
        try:
            headers = {"Content-Type": "application/json"}
            with self._client.stream("POST", self._url, content=body, headers=headers) as reply:
                for chunk in reply.iter_bytes():
                    chunks.append(chunk)
                    # The client's own limit is for each read: a server that drips would never reach it.
                    if time.monotonic() > deadline:
                        raise _Passing(f"no whole reply within {self._options.timeout:g} s")
                    if sum(map(len, chunks)) > _LONGEST_BODY:
                        raise _Passing("a reply of more than 16 MiB", alive=True)
        except httpx.TimeoutException as error:
            raise _Passing(f"no reply in time ({type(error).__name__})") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise _Passing(self._clean(f"{type(error).__name__}: {error}")) from None
        text = b"".join(chunks).decode("utf-8", "replace")
        if reply.status_code != 200:
            self._refuse(reply, text, query)
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            raise _Passing(f"a reply that is not JSON: '{self._clean(text)}'") from None
        if not isinstance(parsed, dict):
            raise _Passing(f"a reply that is not an object: '{self._clean(text)}'")
        return parsed

    def _refuse(self, reply: httpx.Response, text: str, query: Query) -> None:
        status = reply.status_code
        message, code = _error(text)
        said = f"{status}: {self._clean(message)}" if message else str(status)
        passing = status in _PASSING or (status >= 500 and status not in _LASTING_5XX)
        if passing and code != "insufficient_quota":
            wait = retry_after(reply.headers)
            raise _Passing(said, wait, alive=status == 429 or wait is not None)
        if status in (401, 403):
            hint = "It refused the key: name the environment variable that holds it with the option api_key_env."
        elif status == 404:
            hint = f"Check that it serves the model '{self._model}' and that the address ends as it should (often /v1)."
        elif 300 <= status < 400:
            hint = f"It sends us on to '{self._clean(reply.headers.get('location', ''))}': give that address if right."
        elif status in (402, 429):
            hint = "The account has no quota left."
        else:
            hint = (
                f"It happened with the question '{query.question:.80}'. Check the options this model may not take "
                f"(max_tokens, seed, temperature, logprobs, detail, extra) and the size of the image."
            )
        raise Fatal(f"The server at {self._server} refused the request ({said}). {hint}")

    def _read(self, reply: dict[str, Any]) -> Answer:
        """The reply as it was said; a matcher reads the answer in it."""
        used = self._count(reply.get("usage"))
        choices = reply.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise _Passing(f"a reply without choices: '{self._clean(json.dumps(reply))}'")
        choice = choices[0]
        message = choice.get("message")
        text = _text(message if isinstance(message, dict) else {})
        if text is None and choice.get("finish_reason") == "content_filter":
            text = ""
        if not text and choice.get("finish_reason") == "length":
            raise Fatal(
                f"The model '{self._model}' reached max_tokens ({self._options.max_tokens}) before its answer began. "
                f"Raise the option max_tokens."
            )
        if text is None:
            raise _Passing(f"a reply without text: '{self._clean(json.dumps(choice))}'")
        with self._lock:
            self._usage = replace(self._usage, answers=self._usage.answers + 1)
        plain, stop = text.strip(), choice.get("finish_reason")
        return Answer(
            plain,
            confidence=_confidence(choice.get("logprobs")),
            raw=text if text != plain else None,
            thinking=_thinking(message if isinstance(message, dict) else {}),
            stop=stop if isinstance(stop, str) else "",
            input_tokens=used[0],
            output_tokens=used[1],
        )

    def _count(self, usage: Any) -> tuple[int | None, int | None]:
        """Add what one reply used; its tokens in and out, None where the server does not say."""
        if not isinstance(usage, dict):
            return None, None
        tokens = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
        known = [int(n) if isinstance(n, int | float) and 0 <= n < 1e12 else None for n in tokens]
        prompt, completion = (number or 0 for number in known)
        spend = (prompt * self._options.price_in + completion * self._options.price_out) / 1e6
        with self._lock:
            old = self._usage
            self._usage = replace(
                old,
                prompt_tokens=old.prompt_tokens + prompt,
                completion_tokens=old.completion_tokens + completion,
                spend=old.spend + spend,
            )
        return known[0], known[1]

    def _clean(self, text: str) -> str:
        """One short line, without the key, which some servers quote back."""
        if self._key:
            text = text.replace(self._key, "[key]")
        return " ".join(text.split())[:300]


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
    found = (message.get(name) for name in ("reasoning_content", "reasoning", "thinking"))
    return next((text for text in found if isinstance(text, str)), "")


def _confidence(logprobs: Any) -> float | None:
    """Probability of the whole reply: exp of the sum of its tokens' log-probabilities."""
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(tokens, list) or not tokens:
        return None
    values = [token.get("logprob") if isinstance(token, dict) else None for token in tokens]
    if not all(isinstance(v, int | float) and not math.isnan(v) for v in values):
        return None
    return min(1.0, math.exp(min(0.0, math.fsum(v for v in values if v is not None))))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
