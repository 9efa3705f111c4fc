"""The rows HieCoAtt and Attention of Tables 3 and 4: models that read words and look at the cells of an image's grid.

The models are `hiecoatt-mc` and `attention` of the zoo, in the sizes of their papers, trained as the MLPs are. Words
have the vectors of the audit's file, which do not learn, so that an answer never seen in training means something;
without such a file they are learnt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pfungst.core.types import Progress, no_progress
from pfungst.experiments.audit_config import ScorerConfig
from pfungst.experiments.audit_scorers import Longs, Task, Tasks, fit_scorer, hold_out
from pfungst.models import Batch, Model, Sizes, Vocabulary, build
from pfungst.training.words import start_words

NAMES = {"HieCoAtt": "hiecoatt-mc", "Attention": "attention"}
"""Row -> model of the zoo."""
QUESTION_LENGTH, ANSWER_LENGTH = 24, 6
_SIZE = 512
"""Words and hidden states of both published models."""


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


def train(
    reading: Reading, data: Looked, name: str, config: ScorerConfig, progress: Progress = no_progress
) -> tuple[Model, int]:
    """A trained model, and the epoch that was kept."""
    size = min(_SIZE, config.hidden)
    settings: dict[str, Any] = {"choice_hidden": config.hidden, "dropout": config.dropout}
    settings |= {"hidden": size, "top": 2 * size} if name == "HieCoAtt" else {"word_size": size}
    channels, height, width = reading.shape
    sizes = Sizes(reading.vocabulary.size, 1, (channels, height, width))
    model = build(NAMES[name], sizes, settings, seed=config.seed)
    if reading.vectors is not None:
        start_words(model, reading.vocabulary, reading.vectors, fixed=True, seed=config.seed)
    model.to(config.device)
    learnt, held = (data.only(rows) for rows in hold_out(data.image, config.held_out, config.seed))
    epoch, _ = fit_scorer(model, learnt, held, config, progress)
    return model, epoch
