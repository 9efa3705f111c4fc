"""How the models of other harnesses are asked: every option, with its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pfungst.core import UsageError
from pfungst.players.letters import LETTERS_PROMPT, SHORT_PROMPT, check_prompts


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOptions:
    """How a model of inspect_ai is asked."""

    prompt: str = SHORT_PROMPT
    """What is asked, with `{question}`."""
    choices_prompt: str = LETTERS_PROMPT
    """What is asked in a multiple choice, with `{question}` and `{options}`."""
    system: str = ""
    """System message, none if empty."""
    temperature: float | None = 0.0
    """None: the provider's own."""
    max_tokens: int | None = 64
    """Longest answer. None: the provider's own. Models that think aloud need more."""
    seed: int | None = None
    """Sent as seed + take, to providers that take one. None: not sent."""
    config: Mapping[str, Any] | None = None
    """Further fields of inspect's GenerateConfig, as JSON: top_p, reasoning_effort, logprobs ..."""
    args: Mapping[str, Any] | None = None
    """Arguments of the provider (-M of inspect), as JSON. Keys belong into the environment."""
    base_url: str = ""
    """Address of the server, where it is not the provider's own."""
    concurrency: int = 8
    """Requests under way at the same time, at most."""
    timeout: int = 120
    """Seconds for one reply."""
    retries: int = 8
    """How often inspect tries one question again."""
    price_in: float = 0.0
    """Price of a million input tokens, for --dry-run."""
    price_out: float = 0.0
    """Price of a million output tokens, for --dry-run."""
    name: str = ""
    """Name in reports; the model's by default."""
    version: str = ""
    """Anything else that changes the answers: part of the fingerprint."""

    def __post_init__(self) -> None:
        for option, low in (("concurrency", 1), ("timeout", 1), ("retries", 0)):
            if getattr(self, option) < low:
                raise UsageError(f"The option {option} of the player 'inspect' must be {low} or more.")
        check_prompts(self.prompt, self.choices_prompt)
        if any("api_key" in name for name in (self.args or {})):
            raise UsageError("Leave the key out of the option args, and set the provider's environment variable.")
        own = {"temperature", "max_tokens", "seed", "system_message", "cache", "max_retries", "max_connections"}
        taken = sorted(own & set(self.config or {}))
        if taken:
            raise UsageError(
                f"The option config may not set {', '.join(taken)}: use the player's own option instead. The cache of "
                "inspect stays off, because the run folder keeps the answers."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LmmsOptions:
    """How a model of lmms-eval is made and asked."""

    args: str = ""
    """Its arguments as in --model_args: pretrained=...,device_map=auto. Keys belong into the environment."""
    batch_size: int = 1
    """Questions in one forward pass, for models that take more than one; handed over in groups of this size or 32."""
    device: str = ""
    """cuda, cuda:1, cpu; empty: the model's own."""
    simple: bool = False
    """Take the older of two ways of asking, without a chat template, where a model has both."""
    prompt: str = SHORT_PROMPT
    """What is asked, with `{question}`."""
    choices_prompt: str = LETTERS_PROMPT
    """What is asked in a multiple choice, with `{question}` and `{options}`."""
    temperature: float = 0.0
    """Above 0 the model samples."""
    max_new_tokens: int = 64
    """Longest answer. Models that think aloud need more."""
    generation: Mapping[str, Any] | None = None
    """Further generation settings, as JSON: top_p, num_beams ..."""
    name: str = ""
    """Name in reports; the model's by default."""
    version: str = ""
    """Anything else that changes the answers: part of the fingerprint."""

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.max_new_tokens < 1:
            raise UsageError("The options batch_size and max_new_tokens of the player 'lmms' must be 1 or more.")
        check_prompts(self.prompt, self.choices_prompt)
        if "api_key=" in self.args:
            raise UsageError(
                "Leave api_key out of the option args, and set the environment variable that the model reads."
            )
