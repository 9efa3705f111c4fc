"""Models of inspect_ai as players: `inspect:openai/gpt-4o`, `inspect:anthropic/...`, `inspect:hf/...`."""

from __future__ import annotations

import asyncio
import math
import queue
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from pfungst.core import Answer, Framing, MissingExtra, Player, PlayerDied, PlayerError, Query
from pfungst.core.errors import ended
from pfungst.core.fingerprint import digest
from pfungst.core.types import Terms
from pfungst.players.chat_api import DataURLs
from pfungst.players.dispatch import Background, by_image
from pfungst.players.options import InspectOptions

_FAILURES_IN_A_ROW = 10


class InspectPlayer(Player):
    """A model behind inspect_ai's `get_model`. inspect brings the provider and tries again what may pass; its cache is
    off. Images travel as PNG data URLs with unchanged pixels."""

    matcher = "lenient"
    takes: frozenset[str] = frozenset({"template", "options", "image_last", "as_is"})

    def __init__(self, model: str, options: InspectOptions | None = None) -> None:
        if find_spec("inspect_ai") is None:
            raise MissingExtra("A model of inspect_ai", "inspect")
        from inspect_ai.model import GenerateConfig, get_model

        self.options = options = options or InspectOptions()
        if "/" not in model:
            raise PlayerError("Say which model of which provider: inspect:openai/gpt-4o, inspect:mockllm/model.")
        try:
            self._config = GenerateConfig(
                temperature=options.temperature,
                max_tokens=options.max_tokens,
                max_retries=options.retries,
                timeout=options.timeout,
                max_connections=options.concurrency,
                **dict(options.config or {}),
            )
            args = dict(options.args or {})
            self._model = get_model(
                model, config=self._config, base_url=options.base_url or None, memoize=False, **args
            )
        except Exception as error:  # a provider may raise anything: no package, no key, no such model
            raise PlayerError(f"inspect_ai could not make the model {model}: {_one_line(error)}") from error
        self.name: str = options.name or model
        self.samples: bool = options.samples
        self.terms = Terms(options.price_in, options.price_out, options.max_tokens, options.concurrency)
        self.fingerprint: str = f"inspect-1-{digest(model, version('inspect_ai'), options.settings())}"
        self._urls = DataURLs()
        self._background = Background(self.name)

    def prompt(self, query: Query) -> str:
        """What is sent in words, the system message first."""
        return f"{self.options.system}\n{self.options.text(query)}".lstrip()

    def answer_iter(self, queries: Sequence[Query]) -> Iterator[tuple[int, Answer]]:
        """(position, answer) as they come, in any order; an error is raised after the last answer there is."""
        done: queue.SimpleQueue[tuple[int, Answer] | Exception | None] = queue.SimpleQueue()
        asking = asyncio.run_coroutine_threadsafe(self._ask_all(queries, done), self._background.loop)
        asking.add_done_callback(lambda _: done.put(None))
        failures: list[Exception] = []
        try:
            while (came := done.get()) is not None:
                if isinstance(came, Exception):
                    failures.append(came)
                else:
                    yield came
        finally:
            asking.cancel()
        if not asking.cancelled() and (bug := asking.exception()) is not None:
            raise bug
        if failures:
            raise next((error for error in failures if isinstance(error, PlayerDied)), failures[0])

    async def _ask_all(self, queries: Sequence[Query], done: queue.SimpleQueue[Any]) -> None:
        order, in_a_row = iter(by_image(queries, {})), 0

        async def work() -> None:
            nonlocal in_a_row
            for index in order:
                if in_a_row >= _FAILURES_IN_A_ROW:
                    return
                try:
                    done.put((index, await self._ask(queries[index])))
                    in_a_row = 0
                except Exception as error:  # of a provider: anything
                    in_a_row += 1
                    why = ended(_one_line(error))
                    said = f"{self.name} failed on the question '{queries[index].question:.80}': {why}"
                    if in_a_row == _FAILURES_IN_A_ROW:
                        done.put(PlayerDied(f"{said} It was the {in_a_row}th failure in a row: it is considered down."))
                    else:
                        done.put(PlayerError(f"{said} Run again: answers already received are kept."))

        await asyncio.gather(*(work() for _ in range(self.options.concurrency)))

    async def _ask(self, query: Query) -> Answer:
        from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText, GenerateConfig

        framing = query.framing or Framing()
        content: list[Any] = [ContentText(text=self.options.text(query))]
        if query.image is not None:
            url = await asyncio.to_thread(self._urls.of, query.image, as_is=framing.as_is)
            content.insert(len(content) if framing.image_last else 0, ContentImage(image=url.decode("ascii")))
        messages: list[Any] = [ChatMessageUser(content=content)]
        if self.options.system:
            messages.insert(0, ChatMessageSystem(content=self.options.system))
        seed = self.options.seed
        config = self._config if seed is None else self._config.merge(GenerateConfig(seed=seed + query.take))
        began = time.monotonic()
        output = await self._model.generate(messages, config=config, cache=False)
        return self._read(output, time.monotonic() - began)

    def _read(self, output: Any, seconds: float) -> Answer:
        if output.empty:
            raise PlayerError(output.error or "a reply without choices.")
        choice = output.choices[0]
        text, usage = choice.message.text, output.usage
        if not text and choice.stop_reason == "max_tokens":
            raise PlayerError("max_tokens was reached before the answer began. Raise the option max_tokens.")
        parts = choice.message.content if isinstance(choice.message.content, list) else []
        thinking = [str(part.reasoning) for part in parts if part.type == "reasoning"]
        plain = text.strip()
        return Answer(
            plain,
            confidence=_confidence(choice.logprobs),
            raw=text if text != plain else None,
            thinking="\n".join(thinking),
            stop=str(choice.stop_reason or ""),
            input_tokens=None if usage is None else _total(usage),
            output_tokens=None if usage is None else int(usage.output_tokens),
            seconds=seconds,
        )


def _total(usage: Any) -> int:
    """Input tokens, those of the provider's own prompt cache included."""
    return int(usage.input_tokens + (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0))


def _confidence(logprobs: Any) -> float | None:
    if logprobs is None or not logprobs.content:
        return None
    return min(1.0, math.exp(min(0.0, math.fsum(token.logprob for token in logprobs.content))))


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
