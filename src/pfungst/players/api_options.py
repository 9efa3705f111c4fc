"""How a server is asked: every option of an API player, with its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pfungst.core import UsageError
from pfungst.players.letters import LETTERS_PROMPT, SHORT_PROMPT, check_prompts


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIOptions:
    """How a server is asked."""

    api_key_env: str = ""
    """Environment variable that holds the key. Empty: OPENAI_API_KEY, for api.openai.com alone."""
    prompt: str = SHORT_PROMPT
    """What is asked, with `{question}`."""
    choices_prompt: str = LETTERS_PROMPT
    """What is asked in a multiple choice, with `{question}` and `{options}`."""
    system: str = ""
    """System message, none if empty."""
    temperature: float | None = 0.0
    """None: the server's own."""
    max_tokens: int | None = 64
    """Longest answer. None: the server's own. Models that think aloud need more."""
    seed: int | None = 0
    """Sent as seed + take, so that a repetition is a new sample. None: not sent."""
    logprobs: bool = False
    """Ask for log-probabilities; the confidence is then the probability of the whole reply."""
    detail: str = ""
    """`low`, `high` or `auto` for servers that know it."""
    extra: Mapping[str, Any] | None = None
    """Further fields of the request, as JSON."""
    concurrency: int = 8
    """Requests under way at the same time, at most, at each address."""
    timeout: float = 120.0
    """Seconds for one reply, whole."""
    connect_timeout: float = 10.0
    """Seconds to reach the server."""
    retries: int = 8
    """How often one question is tried again."""
    backoff: float = 0.5
    """Seconds before the first retry; doubles with each, up to 30."""
    max_wait: float = 120.0
    """Longest Retry-After that is waited for; a server that asks for more is down."""
    breaker: int = 0
    """Failures in a row, over all questions, after which a server is down. 0: max(10, 2 x concurrency)."""
    price_in: float = 0.0
    """Price of a million prompt tokens."""
    price_out: float = 0.0
    """Price of a million completion tokens."""
    budget: float | None = None
    """Stop before a request once the spend has reached this."""
    batch_size: int = 0
    """Questions handed over at once. 0: 4 x concurrency."""
    name: str = ""
    """Name in reports; the model's by default."""
    version: str = ""
    """Name of the deployment; takes the place of the address in the fingerprint."""

    def __post_init__(self) -> None:
        for option, low in (("concurrency", 1), ("retries", 0), ("breaker", 0), ("batch_size", 0), ("max_wait", 0)):
            if getattr(self, option) < low:
                raise UsageError(f"The option {option} of an API player must be {low} or more.")
        for option in ("timeout", "connect_timeout"):
            if not getattr(self, option) > 0:
                raise UsageError(f"The option {option} of an API player must be more than 0 seconds.")
        check_prompts(self.prompt, self.choices_prompt)
        if self.budget is not None and not (self.price_in or self.price_out):
            raise UsageError("The option budget needs prices: set price_in and price_out (for a million tokens).")


NOT_ANSWER = frozenset(
    {
        *("api_key_env", "concurrency", "timeout", "connect_timeout", "retries", "backoff", "max_wait", "breaker"),
        *("price_in", "price_out", "budget", "batch_size", "name", "version"),
    }
)
"""Options that cannot change an answer, and so are not in the fingerprint."""
