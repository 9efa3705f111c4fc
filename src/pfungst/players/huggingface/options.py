"""Options of a Hugging Face player, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass

from pfungst.core import UsageError
from pfungst.players.letters import LETTERS_PROMPT

PLAIN_PROMPT = "Question: {question} Answer:"


@dataclass(frozen=True, slots=True, kw_only=True)
class HuggingFaceOptions:
    """How a Hugging Face model is loaded and asked."""

    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`, `mps`; auto takes the first accelerator there is."""
    device_map: str = ""
    """`auto`, `balanced`, `sequential`: spreads a model that is too large for one device over all there are, in
    place of `device` (needs the package accelerate)."""
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
    """Anything you want in the fingerprint besides weights, revision, prompts and settings."""

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
