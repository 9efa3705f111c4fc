"""How models are loaded and asked: every option of a player with a model behind it, with its default.

A multiple choice is put in words, with lettered options. A matcher reads the reply (`pfungst.scores.matchers`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from pfungst.core import Answer, Framing, Query, UsageError

SHORT_PROMPT = "{question}\nAnswer in one word or a short phrase."
"""Default template of an open question."""
LETTERS_PROMPT = "{question}\n{options}\nAnswer with the letter of the right option only."
"""Default template; `{question}` and `{options}` are filled in."""

_FIELD = re.compile(r"\{(\w+)\}")
_LETTER = re.compile(r"\bletter\b")


def label(index: int) -> str:
    """A, B, ..., Z, AA, AB, ... (702 labels)."""
    if not 0 <= index < 26 * 27:
        raise ValueError(f"there is no letter for option {index}; at most 702 options can be asked")
    return chr(65 + index) if index < 26 else chr(64 + index // 26) + chr(65 + index % 26)


STYLES: Mapping[str, tuple[Callable[[int], str], str]] = {
    "A.": (lambda index: f"{label(index)}. ", "letter"),
    "A)": (lambda index: f"{label(index)}) ", "letter"),
    "(a)": (lambda index: f"({label(index).lower()}) ", "letter"),
    "1)": (lambda index: f"{index + 1}) ", "number"),
    "text": (lambda index: "", "text"),
}
"""Ways to label options, and what an instruction calls such a label."""


def lettered(question: str, choices: Sequence[str], template: str = LETTERS_PROMPT, style: str = "") -> str:
    """The question with its options, one per line: `A. red`. Where a style has no letters, a template that asks for a
    letter asks for the number or the text instead."""
    before, called = STYLES[style or "A."]
    options = "\n".join(f"{before(index)}{choice}" for index, choice in enumerate(choices))
    return fill(_LETTER.sub(called, template), question=question, options=options)


def fill(template: str, **values: str) -> str:
    """Put values in for `{name}`. Unlike `str.format` it leaves other braces alone, in template and values."""
    return _FIELD.sub(lambda match: values.get(match[1], match[0]), template)


def in_words(query: Query, prompt: str, choices_prompt: str) -> str:
    """What a model is asked: the question by the one template, a multiple choice by the other, unless the query comes
    with a framing."""
    framing = query.framing or Framing()
    if query.choices:
        return lettered(query.question, query.choices, framing.template or choices_prompt, framing.options)
    return fill(framing.template or prompt, question=query.question)


def best_choice(choices: Sequence[str], chances: Sequence[float | None]) -> Answer | None:
    """The choice with the largest chance; one without scores 0. None where no choice has any."""
    if all(chance is None for chance in chances):
        return None
    scores = tuple(chance or 0.0 for chance in chances)
    best = max(range(len(scores)), key=lambda i: (chances[i] is not None, scores[i]))
    total = sum(scores)
    return Answer(choices[best], confidence=scores[best] / total if total else None, scores=scores)


def check_prompts(prompt: str, choices_prompt: str) -> None:
    """Raise UsageError where a template would lose what is asked."""
    if "{question}" not in prompt or "{options}" not in choices_prompt:
        raise UsageError("The option prompt must contain {question}, and choices_prompt {question} and {options}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedOptions:
    """How a model is asked in words."""

    FREE: ClassVar[frozenset[str]] = frozenset({"name"})
    """Options that cannot change an answer, and so are not in the fingerprint."""
    prompt: str = SHORT_PROMPT
    """What is asked, with `{question}`."""
    choices_prompt: str = LETTERS_PROMPT
    """What is asked in a multiple choice, with `{question}` and `{options}`."""
    name: str = ""
    """Name in reports; the model's by default."""
    version: str = ""
    """Anything else that changes the answers: part of the fingerprint."""

    def text(self, query: Query) -> str:
        """What is asked, in words."""
        return in_words(query, self.prompt, self.choices_prompt)

    def settings(self) -> dict[str, Any]:
        """Those that can change an answer."""
        return {name: value for name, value in asdict(self).items() if name not in self.FREE}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedOptions(AskedOptions):
    """How a model is asked that many are asked at once, and that may cost money."""

    system: str = ""
    """System message, none if empty."""
    temperature: float | None = 0.0
    """None: the server's or provider's own."""
    max_tokens: int | None = 64
    """Longest answer. None: the server's or provider's own. Models that think aloud need more."""
    concurrency: int = 8
    """Requests under way at the same time, at most; of several addresses, at each."""
    retries: int = 8
    """How often one question is tried again."""
    price_in: float = 0.0
    """Price of a million input tokens."""
    price_out: float = 0.0
    """Price of a million output tokens."""

    @property
    def samples(self) -> bool:
        """Whether the same question may be answered otherwise the next time."""
        return self.temperature is None or self.temperature > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIOptions(ServedOptions):
    """How a server is asked."""

    FREE: ClassVar[frozenset[str]] = frozenset(
        {
            *("api_key_env", "concurrency", "timeout", "connect_timeout", "retries", "backoff", "max_wait", "breaker"),
            *("price_in", "price_out", "budget", "batch_size", "name", "version"),
        }
    )
    api_key_env: str = ""
    """Environment variable that holds the key. Empty: OPENAI_API_KEY, for api.openai.com alone."""
    seed: int | None = 0
    """Sent as seed + take, so that a repetition is a new sample. None: not sent."""
    logprobs: bool = False
    """Ask for log-probabilities; the confidence is then the probability of the whole reply."""
    detail: str = ""
    """`low`, `high` or `auto` for servers that support it."""
    extra: Mapping[str, Any] | None = None
    """Further fields of the request, as JSON."""
    timeout: float = 120.0
    """Seconds for one reply, whole."""
    connect_timeout: float = 10.0
    """Seconds to reach the server."""
    backoff: float = 0.5
    """Seconds before the first retry; doubles with each, up to 30."""
    max_wait: float = 120.0
    """Longest Retry-After that is waited for; a server that asks for more counts as down."""
    breaker: int = 0
    """Failures in a row, over all questions, after which a server is down. 0: max(10, 2 x concurrency)."""
    budget: float | None = None
    """Stop before a request once the spend has reached this."""
    batch_size: int = 0
    """Questions handed over at once. 0: 4 x concurrency."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOptions(ServedOptions):
    """How a model of inspect_ai is asked."""

    FREE: ClassVar[frozenset[str]] = frozenset({"concurrency", "timeout", "retries", "price_in", "price_out", "name"})
    seed: int | None = None
    """Sent as seed + take, to providers that take one. None: not sent."""
    config: Mapping[str, Any] | None = None
    """Further fields of inspect's GenerateConfig, as JSON: top_p, reasoning_effort, logprobs ..."""
    args: Mapping[str, Any] | None = None
    """Arguments of the provider (-M of inspect), as JSON. Keys belong into the environment."""
    base_url: str = ""
    """Address of the server, if it is not the provider's own."""
    timeout: int = 120
    """Seconds for one reply."""

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
class LmmsOptions(AskedOptions):
    """How a model of lmms-eval is made and asked."""

    FREE: ClassVar[frozenset[str]] = frozenset({"name", "device"})
    args: str = ""
    """Its arguments as in --model_args: pretrained=...,device_map=auto. Keys belong into the environment."""
    batch_size: int = 1
    """Questions in one forward pass, for models that take more than one; handed over in groups of this size or 32."""
    device: str = ""
    """cuda, cuda:1, cpu; empty: the model's own."""
    simple: bool = False
    """Take the older of two ways of asking, without a chat template, if a model has both."""
    temperature: float = 0.0
    """Above 0 the model samples."""
    max_new_tokens: int = 64
    """Longest answer. Models that think aloud need more."""
    generation: Mapping[str, Any] | None = None
    """Further generation settings, as JSON: top_p, num_beams ..."""

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.max_new_tokens < 1:
            raise UsageError("The options batch_size and max_new_tokens of the player 'lmms' must be 1 or more.")
        check_prompts(self.prompt, self.choices_prompt)
        if "api_key=" in self.args:
            raise UsageError(
                "Leave api_key out of the option args, and set the environment variable that the model reads."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class HuggingFaceOptions:
    """How a Hugging Face model is loaded and asked."""

    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`, `mps`; auto uses the first accelerator it finds."""
    device_map: str = ""
    """`auto`, `balanced`, `sequential`: spreads a model that is too large for one device over all devices, in place
    of `device` (needs the package accelerate)."""
    dtype: str = "auto"
    """`float32`, `bfloat16`, `float16`; auto is the checkpoint's own (float32 for float16 on a CPU)."""
    batch_size: int = 8
    """Questions in one forward pass."""
    revision: str = ""
    """Branch, tag or commit of a model on the hub."""
    kind: str = "auto"
    """`classify` (ViLT), `generate` (BLIP) or `chat` (image and text to text); auto asks the configuration."""
    prompt: str = ""
    """What is asked, with `{question}`. Empty: the bare question for ViLT and BLIP, a request for a short answer for
    chat models, `Question: ... Answer:` for text models without a chat template."""
    choices_prompt: str = LETTERS_PROMPT
    """What is asked in a multiple choice by letters, with `{question}` and `{options}`."""
    choices: str = "auto"
    """`likelihood`: every choice is scored by its log-probability; `letters`: lettered options in the prompt; a matcher
    reads the reply. auto: likelihood for ViLT and BLIP, letters for the others."""
    system: str = ""
    """System message of a chat model, none if empty."""
    max_new_tokens: int = 32
    """Longest answer of a model that writes, in tokens."""
    temperature: float = 0.0
    """0: the most likely word each time. Above: sampling, seeded by `seed` and the query, one question at a time."""
    seed: int = 0
    name: str = ""
    """Name in reports; the model's by default."""
    version: str = ""
    """Anything you want in the fingerprint in addition to weights, revision, prompts and settings."""

    def __post_init__(self) -> None:
        _one_of("dtype", self.dtype, ("auto", "float32", "bfloat16", "float16"))
        _one_of("device_map", self.device_map, ("", "auto", "balanced", "balanced_low_0", "sequential"))
        _one_of("kind", self.kind, ("auto", "classify", "generate", "chat"))
        _one_of("choices", self.choices, ("auto", "likelihood", "letters"))
        if self.batch_size < 1 or self.max_new_tokens < 1:
            raise UsageError("The options batch_size and max_new_tokens of a Hugging Face player must be 1 or more.")
        if self.temperature < 0:
            raise UsageError("The option temperature of a Hugging Face player must be 0 or more.")
        if self.prompt and "{question}" not in self.prompt:
            raise UsageError("The option prompt of a Hugging Face player must contain {question}.")
        if "{options}" not in self.choices_prompt:
            raise UsageError(
                "The option choices_prompt of a Hugging Face player must contain {question} and {options}."
            )


def _one_of(option: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"The option {option} of a Hugging Face player is one of {', '.join(allowed)}, not '{value}'.")
