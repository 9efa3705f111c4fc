"""A Hugging Face model as a player."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from pfungst.core import Answer, Image, MissingExtra, PfungstError, Player, PlayerError, Query, Reading
from pfungst.core.code import describe
from pfungst.core.files import at_home
from pfungst.core.fingerprint import digest
from pfungst.core.images import as_rgb
from pfungst.players.function import gray
from pfungst.players.options import HuggingFaceOptions


class _Backend(Protocol):
    needs_picture: bool
    one_by_one: bool
    longest: int | None
    settings: dict[str, Any]

    def text_of(self, query: Query) -> str: ...
    def answer(self, queries: Sequence[Query], pictures: Sequence[Any]) -> list[Answer]: ...


def load(source: str, options: HuggingFaceOptions | None = None) -> HuggingFacePlayer:
    """The player of a model on the hub (`owner/name`) or in a folder."""
    return HuggingFacePlayer(source, options)


class HuggingFacePlayer(Player):
    """Asks a `transformers` model.

    The confidence is the probability of the answer: softmax over the answer vocabulary (ViLT), of the written tokens
    (the others), or of the choice among the choices where these are scored by likelihood. A query without image is
    put as text alone to models with a chat template, and with a plain gray image to others, which cannot do without.

    Weights are read from safetensors files only, and no code of the model's repository is run. The fingerprint holds
    the digest of the folder or the commit on the hub, number type, prompts, decoding settings, image processor and
    `transformers` version, but not device and batch size, which change an answer by rounding at most.
    """

    def __init__(self, source: str, options: HuggingFaceOptions | None = None) -> None:
        self.options = options = options or HuggingFaceOptions()
        for package in ("torch", "transformers"):
            if importlib.util.find_spec(package) is None:
                raise MissingExtra("A Hugging Face player", "hf")
        import transformers

        from pfungst.players.huggingface import loading, models

        folder = at_home(source)
        loaded = loading.load_model(source, options)
        makers: dict[str, Any] = {
            "classify": models.Classifier,
            "generate": models.Generator,
            "chat": models.Writer,
        }
        self._backend: _Backend = makers[loaded.kind](loaded, options)
        self._loaded = loaded
        self._cut = 0
        self.kind: str = loaded.kind
        self.name: str = options.name or (folder.resolve().name if folder.is_dir() else source.rsplit("/", 1)[-1])
        self.batch_size: int = options.batch_size
        self.samples = False
        self.matcher = "" if loaded.kind == "classify" else "lenient"
        """Models that write are read by a matcher; classifiers name one of their answers."""
        self.takes: frozenset[str] = getattr(self._backend, "takes", frozenset())
        self.fingerprint: str = "hf-2-" + digest(
            loaded.kind,
            loaded.weights,
            str(loaded.dtype),
            options.prompt,
            self._backend.settings,
            type(getattr(loaded.processor, "image_processor", None)).__name__,
            transformers.__version__.split(".")[:2],
            options.version,
        )

    def prompt(self, query: Query) -> str:
        """What is asked in words, the system message first; a chat template then marks who speaks."""
        return f"{self._backend.settings.get('system', '')}\n{self._backend.text_of(query)}".lstrip()

    def reading(self, queries: Sequence[Query]) -> list[Reading]:
        """Tokens of the question; of all it is sent, those behind the last that it reads are cut."""
        tokenizer = self._loaded.processor.tokenizer
        tokens = [tokenizer(query.question, add_special_tokens=False).input_ids for query in queries]
        return [
            Reading(len(some), self._too_many(query), some.count(tokenizer.unk_token_id))
            for some, query in zip(tokens, queries, strict=True)
        ]

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """What a user should know about the answers so far."""
        if not self._cut:
            return ()
        return (
            f"{self._cut} questions were longer than the {self._backend.longest} tokens {self.name} can read, "
            f"and were cut at the end.",
        )

    def answer_iter(self, queries: Sequence[Query]) -> Iterator[tuple[int, Answer]]:
        """Answers as each forward pass ends, in order."""
        size = 1 if self._backend.one_by_one else self.options.batch_size
        for first in range(0, len(queries), size):
            some = queries[first : first + size]
            self._cut += sum(self._too_many(query) > 0 for query in some)
            pictures = [self._picture(query.image) for query in some]
            try:
                answers = self._backend.answer(some, pictures)
            except PfungstError:
                raise
            except Exception as error:
                if type(error).__name__ == "OutOfMemoryError":
                    hint = f"It ran out of memory: lower batch_size (now {size}) or use dtype=bfloat16."
                else:
                    hint = f"It began with the question '{some[0].question:.80}'."
                raise PlayerError(f"{self.name} failed on a batch of {len(some)}: {describe(error)}. {hint}") from error
            yield from enumerate(answers, first)

    def _picture(self, image: Image | None) -> Any:
        if image is not None:
            return as_rgb(image)
        return gray() if self._backend.needs_picture else None

    def _too_many(self, query: Query) -> int:
        """Tokens of what it is sent, behind the last that it reads."""
        text, longest = self._backend.text_of(query), self._backend.longest
        # No token is shorter than a character, so most questions need no second tokenisation.
        if longest is None or len(text) + 2 <= longest:
            return 0
        return max(0, len(self._loaded.processor.tokenizer(text).input_ids) - longest)
