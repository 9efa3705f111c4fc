"""A paraphraser learnt from pairs of sentences that mean the same: a transformer that reads one and writes the other.

Only frequent words of the pairs are words to it. All others, such as the things a question is about, are slots that are
numbered as they appear in the sentence and copied: "what color is the [0]?" -> "what is the color of the [0]?". So it
learns how things are asked from questions about anything, and can be used on questions about other things.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from pfungst.core import DataError
from pfungst.core.files import write_json
from pfungst.models import Batch, Model, Output, Sizes, load_tensors, save_tensors
from pfungst.models.batch import END, PAD, START, UNKNOWN
from pfungst.models.tensors import reading_record
from pfungst.training.cycle.generator import targets

SLOTS = 8
"""Words of a sentence that can be copied without being known."""
LENGTH = 24
"""Words of the longest sentence."""
FIRST = 4 + SLOTS
"""Number of the first word: special ones and slots come before."""
WEIGHTS, RECORD = "paraphraser.safetensors", "paraphraser.json"


def split_sentence(text: str) -> list[str]:
    """Lower-case words; marks are left out."""
    return re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text.lower())


@dataclass(frozen=True)
class Slots:
    """The words that a paraphraser knows."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, sentences: Sequence[Sequence[str]], most: int) -> Slots:
        """The most frequent words."""
        counts = Counter(word for sentence in sentences for word in sentence)
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return cls(tuple(ranked[:most]))

    @property
    def size(self) -> int:
        return FIRST + len(self.words)

    def read(self, sentence: Sequence[str], order: Sequence[int] = tuple(range(SLOTS))) -> tuple[list[int], list[str]]:
        """Word numbers, and the words in the slots; `order` says which slot the first unknown word takes."""
        filled = [""] * SLOTS
        unknown = dict.fromkeys(word for word in sentence if word not in self._known)
        for word, slot in zip(unknown, order, strict=False):
            filled[slot] = word
        return self.follow(sentence, filled), filled

    def follow(self, sentence: Sequence[str], filled: Sequence[str]) -> list[int]:
        """Word numbers of another sentence, with the slots of the first."""
        slots = {word: 4 + i for i, word in enumerate(filled) if word}
        return [self._known.get(word) or slots.get(word, UNKNOWN) for word in sentence]

    def write(self, numbers: Sequence[int], filled: Sequence[str]) -> str:
        """A question from word numbers; empty where a slot is used that nothing is in."""
        words = [filled[n - 4] if n < FIRST else self.words[n - FIRST] for n in numbers]
        text = " ".join(words)
        return f"{text[:1].upper()}{text[1:]}?" if all(words) and text else ""

    @cached_property
    def _known(self) -> dict[str, int]:
        return {word: FIRST + i for i, word in enumerate(self.words)}


@dataclass(frozen=True)
class ParaphraserConfig:
    """Sizes of the transformer."""

    size: int = 256
    layers: int = 3
    heads: int = 4
    dropout: float = 0.1


class Paraphraser(Model):
    """question (B, T), and in `Batch.answer` (B, T') the words it should become -> logits (B, T' + 1, words)."""

    Config = ParaphraserConfig
    PRESETS: ClassVar[dict[str, Any]] = {"compact": ParaphraserConfig(), "tiny": ParaphraserConfig(16, 1, 2, 0.0)}
    reads: ClassVar[frozenset[str]] = frozenset({"question"})

    def __init__(self, sizes: Sizes, config: ParaphraserConfig) -> None:
        super().__init__(sizes, config)
        size, inner = config.size, 2 * config.size
        self.words: nn.Embedding = nn.Embedding(sizes.words, size, padding_idx=PAD)
        self.places: nn.Parameter = nn.Parameter(torch.randn(LENGTH + 2, size) * 0.02)
        nn.init.normal_(self.words.weight, std=size**-0.5)
        more: dict[str, Any] = {"dropout": config.dropout, "batch_first": True, "norm_first": True}
        reader = nn.TransformerEncoderLayer(size, config.heads, inner, **more)
        writer = nn.TransformerDecoderLayer(size, config.heads, inner, **more)
        self.reader: nn.TransformerEncoder = nn.TransformerEncoder(
            reader, config.layers, nn.LayerNorm(size), enable_nested_tensor=False
        )
        self.writer: nn.TransformerDecoder = nn.TransformerDecoder(writer, config.layers, nn.LayerNorm(size))

    def read(self, question: Tensor) -> tuple[Tensor, Tensor]:
        """What was read (B, T, d), and where there is nothing (B, T) bool."""
        nothing = question == PAD
        nothing[:, 0] = False  # an empty sentence would attend to nothing at all
        return self.reader(self._embedded(question), src_key_padding_mask=nothing), nothing

    def next_words(self, read: Tensor, nothing: Tensor, before: Tensor) -> Tensor:
        """Logits (B, T', words) of the word behind each of those before it (B, T'), which begin with START."""
        count = before.shape[1]
        later = torch.ones(count, count, dtype=torch.bool, device=before.device).triu(1)
        hidden = self.writer(self._embedded(before), read, tgt_mask=later, memory_key_padding_mask=nothing)
        logits: Tensor = hidden @ self.words.weight.T
        return logits

    def forward(self, batch: Batch) -> Output:
        start = torch.full_like(batch.answered[:, :1], START)
        return Output(self.next_words(*self.read(batch.question), torch.cat([start, batch.answered], 1)))

    def losses(self, batch: Batch, output: Output) -> dict[str, Tensor]:
        wanted = targets(batch.answered).flatten()
        return {"words": F.cross_entropy(output.logits.float().flatten(0, 1), wanted, ignore_index=PAD)}

    def correct(self, batch: Batch, output: Output) -> Tensor:
        """(B,) share of the words that come first where they should."""
        wanted = targets(batch.answered)
        there = wanted != PAD
        return ((output.logits.argmax(-1) == wanted) & there).sum(-1) / there.sum(-1)

    @torch.inference_mode()
    def draw(self, question: Tensor, temperature: float, generator: torch.Generator) -> Tensor:
        """A sentence for every row, word by word: (B, T) -> (B, LENGTH), 0 behind its end. Only slots that are in the
        sentence are written."""
        read, nothing = self.read(question)
        slots = torch.arange(4, FIRST, device=question.device)
        empty = (question[:, :, None] != slots).all(1)
        words = torch.full((len(question), 1), START, device=question.device)
        for place in range(LENGTH):
            logits = self.next_words(read, nothing, words)[:, -1].float() / temperature
            logits[:, [PAD, UNKNOWN, START]] = -torch.inf
            logits[:, 4:FIRST].masked_fill_(empty, -torch.inf)
            if not place:
                logits[:, END] = -torch.inf
            drawn = torch.multinomial(logits.softmax(-1), 1, generator=generator)
            ended = (words == END).any(1, keepdim=True)
            words = torch.cat([words, torch.where(ended, PAD, drawn)], 1)
            if bool((words == END).any(1).all()):
                break
        found = words[:, 1:]
        return F.pad(found.masked_fill(found == END, PAD), (0, LENGTH - found.shape[1]))

    def _embedded(self, numbers: Tensor) -> Tensor:
        embedded: Tensor = self.words(numbers) * self.config.size**0.5 + self.places[: numbers.shape[1]]
        return embedded


@dataclass(frozen=True)
class Pairs:
    """Sentences and what they should become, (N, LENGTH) each; slots are numbered anew every time, so that all are
    learnt."""

    sources: NDArray[np.int16]
    targets: NDArray[np.int16]
    device: str = "cpu"

    def __len__(self) -> int:
        return len(self.sources)

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        source, target = (torch.from_numpy(part[rows].astype(np.int64)) for part in (self.sources, self.targets))
        width = max(1, int((source != PAD).sum(1).max())), max(1, int((target != PAD).sum(1).max()))
        moved = np.arange(FIRST)
        moved[4:] = 4 + np.random.default_rng(int(rows[0])).permutation(SLOTS)
        places = torch.from_numpy(moved)
        one, two = (
            torch.where(part < FIRST, places[part.clamp(max=FIRST - 1)], part)[:, :count]
            for part, count in zip((source, target), width, strict=True)
        )
        return Batch(one, answer=two).to(self.device)


def make_pairs(words: Slots, sentences: Sequence[tuple[Sequence[str], Sequence[str]]], device: str = "cpu") -> Pairs:
    """As arrays. A pair is left out where a sentence is too long, or the second has an unknown word of its own."""
    sources, targets = [], []
    for one, two in sentences:
        if not 0 < len(one) <= LENGTH or not 0 < len(two) <= LENGTH:
            continue
        source, filled = words.read(one)
        target = words.follow(two, filled)
        if UNKNOWN not in source and UNKNOWN not in target:
            sources.append(source + [PAD] * (LENGTH - len(source)))
            targets.append(target + [PAD] * (LENGTH - len(target)))
    if not sources:
        raise DataError("No pair of sentences is left to learn from.")
    return Pairs(np.array(sources, np.int16), np.array(targets, np.int16), device)


def save_paraphraser(model: Paraphraser, words: Slots, folder: str | Path) -> None:
    """Write paraphraser.safetensors and paraphraser.json."""
    save_tensors(Path(folder) / WEIGHTS, model.state_dict())
    record = {"format": 1, "words": list(words.words), "config": dataclasses.asdict(model.config)}
    write_json(Path(folder) / RECORD, record)


def load_paraphraser(folder: str | Path) -> tuple[Paraphraser, Slots]:
    """Read back what `save_paraphraser` wrote; DataError where there is none or it does not fit."""
    path = Path(folder) / RECORD
    with reading_record(path, "paraphraser", "Learn one: pfungst reproduce paraphraser."):
        record = json.loads(path.read_bytes())
        words = Slots(tuple(record["words"]))
        model = Paraphraser(Sizes(words.size, words.size), ParaphraserConfig(**record["config"]))
        model.load_state_dict(load_tensors(Path(folder) / WEIGHTS)[0])
    model.eval()
    return model, words
