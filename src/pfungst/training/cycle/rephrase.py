"""Round trip: rephrasings by our own question generator G, kept where its model F still gives the right answer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pfungst.core import DataError, Example
from pfungst.models import Batch, Trained
from pfungst.models.encode import Encoder
from pfungst.models.trained import plain_answer, split_words
from pfungst.training.cycle.config import T_SIM
from pfungst.training.cycle.generator import QuestionGenerator, load_generator
from pfungst.training.cycle.loss import answer_chances
from pfungst.training.cycle.tap import Tap

_AT_ONCE = 64
_TRIES = 6
"""Questions written for each that is wanted."""


@dataclass(frozen=True)
class Writer:
    """A trained model and its generator, ready to write questions about examples."""

    trained: Trained
    generator: QuestionGenerator
    device: str = "cpu"

    @classmethod
    def load(cls, folder: str, device: str = "cpu") -> Writer:
        trained, generator = Trained.load(folder), load_generator(folder)
        if generator.count != trained.vocabulary.size:
            raise DataError.at(folder, "generator.json", "the generator knows other words than the model.")
        trained.model.to(device).eval()
        return cls(trained, generator.to(device).eval(), device)

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self.trained, self.device)

    def batch(self, examples: Sequence[Example], questions: Sequence[str]) -> Batch:
        """These questions about the images and scenes of the examples."""
        images, scenes = [one.image for one in examples], [one.scene for one in examples]
        return self._encoder.batch(questions, images, scenes, [()] * len(questions))

    @torch.no_grad()
    def write(
        self, examples: Sequence[Example], count: int = 1, seed: int = 0, *, noise: float | None = None,
        temperature: float | None = None, true_answer: bool = False,
    ) -> list[list[str]]:  # fmt: skip
        """`count` questions an example, each with its own noise; the first without any and greedily.

        true_answer : tell G the right answer where the model can give it, instead of what the model predicts
        """
        found: list[list[str]] = []
        with closing(Tap(self.trained.model)) as tap, torch.random.fork_rng():
            torch.manual_seed(seed)
            for start in range(0, len(examples), _AT_ONCE):
                part = examples[start : start + _AT_ONCE]
                batch = self.batch(part, [one.question for one in part])
                condition = self._condition(part, batch, tap, true_answer, 0.0)
                rows = [self.generator.write(condition, batch.question.shape[1], greedy=True)]
                for _ in range(count - 1):
                    condition = self._condition(part, batch, tap, true_answer, noise)
                    rows.append(self.generator.write(condition, batch.question.shape[1], temperature=temperature))
                found += [[self.text(row[i]) for row in rows] for i in range(len(part))]
        return found

    def _condition(
        self, examples: Sequence[Example], batch: Batch, tap: Tap, true_answer: bool, noise: float | None
    ) -> Tensor:
        output = self.trained.model(batch)
        chances = answer_chances(self.trained.model, output)
        if true_answer:
            for i, one in enumerate(examples):
                number = -1 if one.target is None else self.trained.vocabulary.answer_number(one.target)
                if number >= 0:
                    chances[i] = F.one_hot(torch.tensor(number), chances.shape[1])
        features = tap.features(output, self.generator.config.attended).float()
        return self.generator.condition(features, chances, noise)

    def text(self, row: Tensor) -> str:
        """Word numbers as a question."""
        words = self.trained.vocabulary.decode(row.tolist())
        return f"{words[:1].upper()}{words[1:]}?" if words else ""


@dataclass(frozen=True)
class RoundTrip:
    """`vqg:FOLDER`: the generator of a cycle-trained model asks, and the model must answer as the data set does."""

    argument: str
    """Folder that `pfungst train MODEL --cycle` wrote."""
    least: float = T_SIM
    """Smallest cosine of F's own encodings of the two questions."""
    device: str = "cpu"
    name: str = "vqg"

    @cached_property
    def writer(self) -> Writer:
        return Writer.load(self.argument, self.device)

    @property
    def keeps(self) -> str:
        return (
            f"the answer, by a round trip: the generator of {self.argument} asked for the same answer about the same "
            "picture, its model gives the data set's answer to the new question, and encodes the two with a cosine of "
            f"at least {self.least:g}; that model itself is flattered by this choice"
        )

    def rephrase(self, examples: Sequence[Example], count: int, seed: int) -> list[tuple[str, ...]]:
        written = self.writer.write(examples, 1 + count * _TRIES, seed, true_answer=True)
        found: list[tuple[str, ...]] = []
        for one, texts in zip(examples, written, strict=True):
            new = [text for text in dict.fromkeys(texts) if text and split_words(text) != split_words(one.question)]
            kept = [text for text, good in zip(new, self._good(one, new), strict=True) if good]
            found.append(tuple(kept[:count]))
        return found

    @torch.no_grad()
    def _good(self, example: Example, texts: Sequence[str]) -> list[bool]:
        if not texts or example.target is None:
            return [False] * len(texts)
        model, words = self.writer.trained.model, self.writer.trained.vocabulary
        asked = [example.question, *texts]
        batch = self.writer.batch([example] * len(asked), asked)
        with closing(Tap(model)) as tap:
            output = model(batch)
            encoding: Any = tap.encoding
        said = [plain_answer(words.answers[n]) for n in output.logits.argmax(-1).tolist()]
        alike = F.cosine_similarity(encoding[:1].float(), encoding[1:].float(), -1) >= self.least
        right = plain_answer(example.target)
        return [bool(near) and text == right for near, text in zip(alike.tolist(), said[1:], strict=True)]
