"""The scorers of the audit: MLP-A, MLP-QA, MLP-IA and MLP-IQA of the zoo (Eq. 1), each shown only what it may see.

Answers and questions are single vectors here, averages of word vectors or of a sentence encoder. The models read words,
so every distinct answer and question is one "word" whose vector is fixed.

The rows HieCoAtt and Attention of Tables 3 and 4 are models that read words and look at the cells of an image's grid:
`hiecoatt-mc` and `attention` of the zoo, in the sizes of their papers, trained as the MLPs are. Words have the vectors
of the audit's file, which do not learn, so that an answer never seen in training means something; without such a file
they are learnt.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from pfungst.core import Answer, Example, Image
from pfungst.core.types import Progress, no_progress
from pfungst.experiments.audit import ScorerConfig
from pfungst.experiments.audit_features import Features, Floats, grid_features, grids_of, is_there, table_of
from pfungst.models import Batch, Model, Sizes, Vocabulary, build
from pfungst.models.base import PAD
from pfungst.probes.decoys import DecoySet
from pfungst.text import encode
from pfungst.training import Data, FitConfig, fit
from pfungst.training.data import batches
from pfungst.training.words import start_words

INPUTS = ("A", "QA", "IA", "IQA")
LOOKING = {"HieCoAtt": "hiecoatt-mc", "Attention": "attention"}
"""Row -> model of the zoo."""
QUESTION_LENGTH, ANSWER_LENGTH = 24, 6
_SIZE = 512
"""Words and hidden states of both published models."""
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Task:
    """Multiple-choice questions as numbers."""

    candidates: Longs
    """(n, C) rows of `answers`; the target stands first, -1 where there are fewer candidates."""
    question: Longs
    """(n,) rows of `questions`."""
    image: Longs
    """(n,) rows of `images`, or any numbers where there are no images: they say which questions belong together."""
    answers: Floats
    questions: Floats
    images: Floats | None

    def __len__(self) -> int:
        return len(self.question)

    def part(self, rows: Longs) -> Task:
        return replace(self, candidates=self.candidates[rows], question=self.question[rows], image=self.image[rows])

    def tables(self, inputs: str) -> dict[str, Floats]:
        """What a scorer sees, by letter."""
        tables = {"A": self.answers, "Q": self.questions, "I": self.images}
        return {name: table for name, table in tables.items() if name in inputs and table is not None}


@dataclass(frozen=True, eq=False)
class Scorer:
    """A trained model with the scales of its inputs."""

    inputs: str
    model: Model
    scales: dict[str, tuple[Floats, Floats]]
    config: ScorerConfig
    epoch: int
    """The epoch that was kept, from 1; 0 where training did not help."""


class _Seen:
    """A task as batches of the zoo, and its vectors as the words of a model."""

    def __init__(self, task: Task, scorer: Scorer) -> None:
        tables = {
            name: ((table - scorer.scales[name][0]) / scorer.scales[name][1]).astype(np.float32)
            for name, table in task.tables(scorer.inputs).items()
        }
        self.task, self.device = task, torch.device(scorer.config.device)
        self.offset = len(task.answers) + 1
        no_word = np.zeros((1, tables["A"].shape[1]), np.float32)
        words = np.concatenate([no_word, *(tables[name] for name in "AQ" if name in tables)])
        self.words = torch.from_numpy(words).to(self.device)
        self.images = torch.from_numpy(tables["I"]).to(self.device)[:, :, None, None] if "I" in tables else None

    def only(self, rows: Longs) -> _Seen:
        """Some of the questions."""
        part = copy(self)
        part.task = self.task.part(rows)
        return part

    def give_words(self, model: Model) -> None:
        """The vectors belong to the task, not to the model: from now on it reads these."""
        count, size = self.words.shape
        model.words = nn.Embedding(count, size, padding_idx=PAD, _weight=self.words, _freeze=True)

    def __len__(self) -> int:
        return len(self.task)

    def batch(self, rows: Longs) -> Batch:
        def moved(array: Longs) -> Tensor:
            return torch.from_numpy(array).to(self.device)

        return Batch(
            moved(self.task.question[rows] + self.offset)[:, None],
            image=None if self.images is None else self.images[moved(self.task.image[rows])],
            choices=moved(self.task.candidates[rows] + 1)[..., None],
            answer=torch.zeros(len(rows), dtype=torch.int64, device=self.device),
        )


def train(
    task: Task,
    inputs: str,
    config: ScorerConfig | None = None,
    start: Scorer | None = None,
    progress: Progress = no_progress,
) -> Scorer:
    """Train a scorer that sees `inputs` (`A`, `QA`, `IA` or `IQA`). `start`: fine-tune this one."""
    config = config or ScorerConfig()
    tables = task.tables(inputs)
    scales = {name: _scale(table) for name, table in tables.items()} if start is None else start.scales
    scorer = Scorer(inputs, _model(tables, inputs, config, start), scales, config, 0)
    model, seen = scorer.model, _Seen(task, scorer)
    seen.give_words(model)
    learnt, held = (seen.only(rows) for rows in hold_out(task.image, config.held_out, config.seed))
    untuned = float(picks_of(model, held)[:, 0].mean()) if start is not None and len(held) else -1.0
    before = {name: value.clone() for name, value in model.state_dict().items()}
    epoch, accuracy = fit_scorer(model, learnt, held, config, progress)
    if accuracy <= untuned:
        model.load_state_dict(before)
        return scorer
    return replace(scorer, epoch=epoch)


def fit_scorer(
    model: Model, learnt: Data, held: Data, config: ScorerConfig, progress: Progress = no_progress
) -> tuple[int, float]:
    """Train a model that scores choices, the target first; the epoch that was best on `held`, and its accuracy."""

    def check(model: Model) -> dict[str, float]:
        return {"accuracy": float(picks_of(model, held)[:, 0].mean())}

    each = FitConfig(batch=config.batch).per_epoch(len(learnt))
    how = FitConfig(
        epochs=config.epochs, batch=config.batch, rate=config.rate, weight_decay=config.decay, schedule="constant",
        warmup=0.0, clip=0.0, check_every=each, log_every=each, seed=config.seed,
    )  # fmt: skip
    ended = fit(model, learnt, config=how, check=check if len(held) else None, device=config.device, progress=progress)
    return ended.best_step // each if len(held) else config.epochs, ended.accuracy


def picks(scorer: Scorer, task: Task) -> npt.NDArray[np.float64]:
    """(n, C) 1 for the candidate with the highest score, 1/ties for each of several, else 0."""
    seen = _Seen(task, scorer)
    seen.give_words(scorer.model)
    return picks_of(scorer.model, seen)


def right(scorer: Scorer, task: Task) -> npt.NDArray[np.float64]:
    """1 where the target has the highest score, 1/ties where it shares it, else 0: (n,)."""
    return np.asarray(picks(scorer, task)[:, 0])


@torch.no_grad()
def picks_of(model: Model, data: Data, batch: int = 1024) -> npt.NDArray[np.float64]:
    """(n, C) what a model picks, shared between equals: the target stands first and must not win every tie."""
    result = []
    model.eval()
    for part in batches(data, batch, next(model.parameters()).device):
        scores = model(part).logits
        best = (scores == scores.max(1, keepdim=True).values).double()
        result.append((best / best.sum(1, keepdim=True)).cpu().numpy())
    return np.concatenate(result) if result else np.zeros((0, 1))


def _model(tables: dict[str, Floats], inputs: str, config: ScorerConfig, start: Scorer | None) -> Model:
    width = {name: table.shape[1] for name, table in tables.items()}
    settings = {
        "word_size": width["A"],
        "hidden": config.hidden if start is None else start.model.config.hidden,
        "dropout": config.dropout,
        "learn_words": False,
    }
    model = build(f"mlp-{inputs.lower()}", Sizes(1, 1, (width.get("I", 1), 1, 1)), settings, seed=config.seed)
    if start is not None:
        begin = {name: value for name, value in start.model.state_dict().items() if not name.startswith("words.")}
    else:
        generator = torch.Generator().manual_seed(config.seed)
        # Each part begins with the same weight, or the longest feature vector would drown the others.
        parts = [_uniform(config.hidden, width[name], len(width), generator) for name in "AIQ" if name in width]
        begin = {
            "hidden.weight": torch.cat(parts, 1),
            "hidden.bias": torch.zeros(config.hidden),
            "score.weight": _uniform(1, config.hidden, 1, generator),
            "score.bias": torch.zeros(1),
        }
    # The words come with the task.
    model.load_state_dict(begin, strict=False)
    return model.to(config.device)


def _uniform(rows: int, width: int, parts: int, generator: torch.Generator) -> Tensor:
    bound = (6 / (width * parts)) ** 0.5
    values: Tensor = (torch.rand((rows, width), generator=generator) * 2 - 1) * bound
    return values


def _scale(table: Floats) -> tuple[Floats, Floats]:
    mean, std = table.mean(0), table.std(0)
    return mean, np.where(std > 1e-6, std, 1).astype(np.float32)


def hold_out(image: npt.NDArray[Any], share: float, seed: int | Sequence[int]) -> tuple[Longs, Longs]:
    """Training questions, and those of some images to choose the epoch by. image: (n,) of each question."""
    images = np.unique(image)
    count = round(share * len(images))
    if count < 1 or count >= len(images):
        return np.arange(len(image)), np.zeros(0, np.int64)
    chosen = np.random.default_rng(seed).choice(images, count, replace=False)
    held = np.isin(image, chosen)
    return np.flatnonzero(~held), np.flatnonzero(held)


def vectors_of(texts: Sequence[str], encoder: Any) -> Floats:
    """Vectors of texts, float32; one without known words gets random numbers of its own, fixed by the text.

    Otherwise all unknown answers would be one answer to the scorer, and telling them apart is what is tested.
    """
    rows = np.array(encode(texts, encoder), np.float32)
    known = rows[rows.any(1)]
    scale = float(known.std()) if len(known) else 1.0
    for row in np.flatnonzero(~rows.any(1)).tolist():
        rng = np.random.default_rng(zlib.crc32(texts[row].casefold().encode("utf-8", "surrogatepass")))
        rows[row] = rng.normal(scale=scale, size=rows.shape[1])
    return rows


class Tasks:
    """The tasks of one split, a choice set at a time; vectors and image features are shared."""

    def __init__(
        self,
        decoys: DecoySet,
        encoder: Any,
        features: Features | None = grid_features,
        progress: Progress = no_progress,
        grids: bool = False,
    ) -> None:
        """grids: keep the feature maps of the images too, for models that look at their cells."""
        self.decoys = decoys
        self._answers = vectors_of(decoys.split.book.texts, encoder)
        self._questions = vectors_of(decoys.split.questions, encoder)
        seen: dict[int, Image] = {}
        for number, example in zip(decoys.split.image.tolist(), decoys.examples, strict=True):
            if example.image is not None and is_there(example.image):
                seen.setdefault(number, example.image)
        images = len(decoys.split.by_image.starts) - 1
        self.images: Floats | None = None
        self.grids: npt.NDArray[Any] | None = None
        if features is not None and len(seen) == images:
            shown = [seen[number] for number in range(images)]
            self.grids = grids_of(shown, features, progress) if grids else None
            self.images = table_of(shown, features, progress, self.grids)
        self.without_image: int = images - len(seen)

    def worth(self, variant: str, judge: Callable[[Example, Answer], float]) -> Floats:
        """(n, C) What a metric gives for each candidate of `of`; 0 where there is none."""
        task, _ = self.of(variant)
        texts = self.decoys.split.book.texts
        kept = [one for one, wrong in zip(self.decoys.examples, self.decoys.distinct(variant), strict=True) if wrong]
        result = np.zeros(task.candidates.shape, np.float32)
        for at, (example, row) in enumerate(zip(kept, task.candidates.tolist(), strict=True)):
            result[at] = [judge(example, Answer(texts[one])) if one >= 0 else 0.0 for one in row]
        return result

    def of(self, variant: str) -> tuple[Task, list[str]]:
        """The task of a choice set, and the images of its questions. Questions without a decoy are left out."""
        split = self.decoys.split
        decoys = dict(enumerate(self.decoys.distinct(variant)))
        rows = [[int(split.targets[number]), *wrong] for number, wrong in decoys.items() if wrong]
        candidates = np.full((len(rows), max(map(len, rows), default=1)), -1, np.int64)
        for at, row in enumerate(rows):
            candidates[at, : len(row)] = row
        kept = np.asarray([number for number, wrong in decoys.items() if wrong], np.int64)
        question, image = (numbers[kept].astype(np.int64) for numbers in (split.question, split.image))
        task = Task(candidates, question, image, self._answers, self._questions, self.images)
        examples = [self.decoys.examples[number] for number in kept.tolist()]
        return task, [example.image_id or example.id for example in examples]


@dataclass(frozen=True, eq=False)
class Looked:
    """The questions of one choice set, with words and grids."""

    question: Longs
    """(n, words)"""
    choices: Longs
    """(n, C, words); the target stands first, rows of zeros are no choice."""
    image: Longs
    """(n,) rows of `grids`."""
    grids: Any
    """(images, channels, height, width): an array, or a tensor on a device."""
    scale: tuple[Tensor, Tensor]
    """Mean and spread of each channel, of the training images."""
    device: str

    def __len__(self) -> int:
        return len(self.question)

    def only(self, rows: Longs) -> Looked:
        return replace(self, question=self.question[rows], choices=self.choices[rows], image=self.image[rows])

    def batch(self, rows: Longs) -> Batch:
        seen = self.grids[torch.from_numpy(self.image[rows]) if isinstance(self.grids, Tensor) else self.image[rows]]
        grid = seen if isinstance(seen, Tensor) else torch.from_numpy(np.ascontiguousarray(seen)).to(self.device)
        return Batch(
            torch.from_numpy(self.question[rows]).to(self.device),
            image=(grid.float() - self.scale[0]) / self.scale[1],
            choices=torch.from_numpy(self.choices[rows]).to(self.device),
            answer=torch.zeros(len(rows), dtype=torch.int64, device=self.device),
        )


class Reading:
    """Training and test questions in words that both know."""

    def __init__(self, train: Tasks, test: Tasks, vectors: str | None, device: str) -> None:
        texts = [text for part in (train, test) for text in part.decoys.split.book.texts]
        questions = [text for part in (train, test) for text in part.decoys.split.questions]
        self.vocabulary = Vocabulary.build(questions, ["-"], choices=texts)
        self.vectors, self.device = vectors, device
        assert train.grids is not None and test.grids is not None
        self.shape = tuple(train.grids.shape[1:])
        sample = np.asarray(train.grids[:: max(1, len(train.grids) // 2000)], np.float32)
        mean, spread = sample.mean((0, 2, 3)), np.maximum(sample.std((0, 2, 3)), 1e-4)
        scale = [torch.from_numpy(one)[:, None, None].to(device) for one in (mean, spread)]
        self._scale = scale[0], scale[1]
        self._parts: dict[str, tuple[Longs, Longs, Any]] = {}
        for name, part in (("train", train), ("test", test)):
            words = self.vocabulary.encode(part.decoys.split.questions, QUESTION_LENGTH).astype(np.int64)
            grids = part.grids if device == "cpu" else torch.from_numpy(np.asarray(part.grids)).to(device)
            self._parts[name] = words, self._answers(part.decoys.split.book.texts), grids

    def _answers(self, texts: Sequence[str]) -> Longs:
        words = self.vocabulary.encode(texts, ANSWER_LENGTH).astype(np.int64)
        # An answer without a letter ("?") is still a choice.
        words[~words.any(1), 0] = 1
        return np.concatenate([words, np.zeros((1, ANSWER_LENGTH), np.int64)])

    def of(self, part: str, task: Task) -> Looked:
        """A task of the training (`train`) or the test questions (`test`)."""
        questions, answers, grids = self._parts[part]
        words = questions[task.question], answers[task.candidates]
        return Looked(*words, task.image, grids, self._scale, self.device)


def train_attention(
    reading: Reading, data: Looked, name: str, config: ScorerConfig, progress: Progress = no_progress
) -> tuple[Model, int]:
    """A trained model, and the epoch that was kept."""
    size = min(_SIZE, config.hidden)
    settings: dict[str, Any] = {"choice_hidden": config.hidden, "dropout": config.dropout}
    settings |= {"hidden": size, "top": 2 * size} if name == "HieCoAtt" else {"word_size": size}
    channels, height, width = reading.shape
    sizes = Sizes(reading.vocabulary.size, 1, (channels, height, width))
    model = build(LOOKING[name], sizes, settings, seed=config.seed)
    if reading.vectors is not None:
        start_words(model, reading.vocabulary, reading.vectors, fixed=True, seed=config.seed)
    model.to(config.device)
    learnt, held = (data.only(rows) for rows in hold_out(data.image, config.held_out, config.seed))
    epoch, _ = fit_scorer(model, learnt, held, config, progress)
    return model, epoch
