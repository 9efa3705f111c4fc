"""`learnt:FOLDER`: rephrasings by a paraphraser that was learnt from pairs, kept where the meaning is.

The paraphraser is a transformer that reads one sentence and writes another that means the same. Only frequent words of
its pairs are words to it. All others, such as the things a question is about, are slots that are numbered as they
appear in the sentence and copied: "what color is the [0]?" -> "what is the color of the [0]?". So it learns how things
are asked from questions about anything, and can be used on questions about other things.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pfungst.core import Example
from pfungst.models import load_tensors
from pfungst.models.base import END, PAD, START, UNKNOWN
from pfungst.models.trained import reading_record
from pfungst.probes.rephrase.generators import Gate, gated, keeps_meaning

HOW = "`git checkout 3571785` has the command that learnt one: pfungst reproduce paraphraser."
SLOTS = 8
"""Words of a sentence that can be copied without being known."""
LENGTH = 24
"""Words of the longest sentence."""
FIRST = 4 + SLOTS
"""Number of the first word: special ones and slots come before."""
WEIGHTS, RECORD = "paraphraser.safetensors", "paraphraser.json"
DRAWN = 24
"""Sentences drawn for every question."""
FEWEST = 2
"""Draws that must agree on a sentence: what is drawn once is often no English."""
_AT_ONCE = 256


def split_sentence(text: str) -> list[str]:
    """Lower-case words; marks are left out."""
    return re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text.lower())


@dataclass(frozen=True)
class Slots:
    """The words that a paraphraser knows."""

    words: tuple[str, ...]

    @property
    def size(self) -> int:
        return FIRST + len(self.words)

    def read(self, sentence: Sequence[str]) -> tuple[list[int], list[str]]:
        """Word numbers, and the words in the slots."""
        unknown = list(dict.fromkeys(word for word in sentence if word not in self._known))[:SLOTS]
        slots = {word: 4 + i for i, word in enumerate(unknown)}
        numbers = [self._known.get(word) or slots.get(word, UNKNOWN) for word in sentence]
        return numbers, unknown + [""] * (SLOTS - len(unknown))

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


class Paraphraser(nn.Module):
    """The numbers of a sentence (B, T) -> those of another one. words: how many there are, with slots."""

    def __init__(self, words: int, config: ParaphraserConfig) -> None:
        super().__init__()
        self.config = config
        size, inner = config.size, 2 * config.size
        self.words: nn.Embedding = nn.Embedding(words, size, padding_idx=PAD)
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


def load_paraphraser(folder: str | Path) -> tuple[Paraphraser, Slots]:
    """Read a paraphraser; DataError where there is none or it does not fit."""
    path = Path(folder) / RECORD
    with reading_record(path, "paraphraser", HOW):
        record = json.loads(path.read_bytes())
        words = Slots(tuple(record["words"]))
        model = Paraphraser(words.size, ParaphraserConfig(**record["config"]))
        model.load_state_dict(load_tensors(Path(folder) / WEIGHTS)[0])
    model.eval()
    return model, words


@dataclass(frozen=True)
class LearntRephraser:
    """`learnt:FOLDER`: draws sentences from a learnt paraphraser and keeps those that mean the same."""

    argument: str
    """Folder with paraphraser.safetensors and paraphraser.json."""
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
