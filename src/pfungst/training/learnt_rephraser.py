"""`learnt:FOLDER`: rephrasings by a paraphraser that was learnt from pairs, kept where the meaning is."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from pfungst.core import Example
from pfungst.models.batch import PAD
from pfungst.probes.rephrase.generators import Gate, gated, keeps_meaning
from pfungst.training.paraphraser import LENGTH, WEIGHTS, Paraphraser, Slots, load_paraphraser, split_sentence

DRAWN = 24
"""Sentences drawn for every question."""
FEWEST = 2
"""Draws that must agree on a sentence: what is drawn once is often no English."""
_AT_ONCE = 256


@dataclass(frozen=True)
class LearntRephraser:
    """Draws sentences from a learnt paraphraser and keeps those that mean the same."""

    argument: str
    """Folder that `pfungst reproduce paraphraser` wrote."""
    least: float = 0.6
    """Smallest cosine of the sentence vectors. With the embedded encoder "What color is the dog?" and "What is the
    color of the dog?" have 0.67; the words are checked more strictly than those of the rules."""
    encoder: str = "skip-thoughts"
    temperature: float = 0.8
    """Temperature of drawing the words."""
    device: str = ""
    """cpu, cuda; empty: cuda if there is one."""
    name: str = "learnt"

    def __repr__(self) -> str:
        weights = hashlib.sha256((Path(self.argument) / WEIGHTS).read_bytes()).hexdigest()
        return f"learnt {weights} {self.least} {self.encoder} {self.temperature}"

    @property
    def keeps(self) -> str:
        return (
            "the answer: a paraphraser learnt from pairs wrote it, every content word of the question stays, none is "
            f"added, it asks for the same kind of thing, and the sentence vectors ({self.encoder}) have a cosine of at "
            f"least {self.least:g}"
        )

    def rephrase(self, examples: Sequence[Example], count: int, seed: int) -> list[tuple[str, ...]]:
        questions = [one.question for one in examples]
        different = list(dict.fromkeys(questions))
        offered = dict(zip(different, self._candidates(different, seed), strict=True))
        return gated(questions, [offered[text] for text in questions], count, Gate(self.least, self.encoder))

    def write(self, sentences: Sequence[str], seed: int = 0, count: int = 1) -> list[list[str]]:
        """`count` sentences drawn for each, unchecked; empty texts where it copied from nowhere."""
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        model, words = self._loaded
        model.to(device).eval()
        generator = torch.Generator(device).manual_seed(seed)
        found: list[list[str]] = []
        for start in range(0, len(sentences), _AT_ONCE):
            read = [words.read(split_sentence(text)[:LENGTH]) for text in sentences[start : start + _AT_ONCE]]
            width = max(1, *(len(numbers) for numbers, _ in read))
            source = torch.tensor([numbers + [PAD] * (width - len(numbers)) for numbers, _ in read], device=device)
            drawn = model.draw(source.repeat_interleave(count, 0), self.temperature, generator).cpu().tolist()
            for i, (_, filled) in enumerate(read):
                rows = drawn[i * count : (i + 1) * count]
                found.append([words.write([number for number in row if number != PAD], filled) for row in rows])
        return found

    @cached_property
    def _loaded(self) -> tuple[Paraphraser, Slots]:
        return load_paraphraser(self.argument)

    def _candidates(self, questions: Sequence[str], seed: int) -> list[list[str]]:
        """Sentences that pass the checks of words, those first that were drawn most often."""
        found = []
        for text, drawn in zip(questions, self.write(questions, seed, DRAWN), strict=True):
            said = Counter(one for one in drawn if one)
            ranked = sorted(said, key=lambda one: (-said[one], one))
            found.append([one for one in ranked if said[one] >= FEWEST and keeps_meaning(text, one)])
        return found
