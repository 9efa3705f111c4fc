"""The question-only network of the audit: words and short phrases of the question -> an answer.

    answer = argmax softmax(W2 relu(W1 mean of the vectors of all words, pairs of words and beginnings))

How a question begins ("is there", "how many people are") says most about its answer, and a mean of vectors of phrases
keeps that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
from torch import nn

from pfungst.core import Example
from pfungst.core.flips import normalise
from pfungst.core.types import Progress, no_progress
from pfungst.experiments.audit_open import Judge, known_answers, worth
from pfungst.experiments.audit_scorers import Longs, hold_out
from pfungst.models import Batch, Model, Sizes
from pfungst.models.batch import PAD, Output
from pfungst.models.layers import mean_words
from pfungst.models.vocabulary import split_words
from pfungst.training import FitConfig, fit
from pfungst.training.evaluation import answers as given_answers

LENGTH = 30
"""Words of a question that are read."""
BEGINNING = 5
"""Longest beginning that is a phrase of its own."""
HELD_OUT = 0.1
"""Share of the training images that choose the epoch; none where there are few questions."""
FEW = 100
FIT = FitConfig(epochs=8, batch=256, rate=1.5e-2, weight_decay=1e-4, warmup=0.05)
"""Chosen on held-out training images of VQA v2."""
LEAST_BATCH, STEPS = 16, 64
"""Few questions are shown in smaller batches, so that an epoch has about so many steps."""


SIZE, HIDDEN, DROPOUT = 128, 256, 0.5
"""Length of a phrase's vector, neurons of the hidden layer, share of both that is dropped in training."""
SPREAD = 0.05
"""Of the vectors before training: a phrase that was seen three times should say little, not something random."""


class Words(Model):
    """question -> answers."""

    reads: ClassVar[frozenset[str]] = frozenset({"question"})

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes, None)
        self.words: nn.Embedding = nn.Embedding(sizes.words, SIZE, padding_idx=PAD)
        with torch.no_grad():
            self.words.weight *= SPREAD
        self.answers: nn.Sequential = nn.Sequential(
            nn.Dropout(DROPOUT),
            nn.Linear(SIZE, HIDDEN),
            nn.ReLU(),
            nn.Dropout(DROPOUT),
            nn.Linear(HIDDEN, sizes.answers),
        )

    def forward(self, batch: Batch) -> Output:
        return Output(self.answers(mean_words(self.words, batch.question)))


def phrases(question: str) -> list[str]:
    """Words, pairs of words, and beginnings: what the network reads."""
    words = split_words(question)[:LENGTH]
    pairs = [" ".join(pair) for pair in pairwise(words)]
    return [*words, *pairs, *("^" + " ".join(words[:size]) for size in range(1, min(BEGINNING, len(words)) + 1))]


class Questions:
    """Questions with what each answer is worth, as batches."""

    def __init__(self, rows: Longs, scores: Sequence[dict[int, float]], answers: int) -> None:
        self._rows, self._scores, self._answers = rows, scores, answers

    def __len__(self) -> int:
        return len(self._rows)

    def only(self, rows: Longs) -> Questions:
        return Questions(self._rows[rows], [self._scores[row] for row in rows.tolist()], self._answers)

    def batch(self, rows: Longs) -> Batch:
        answer = torch.zeros(len(rows), self._answers)
        for at, row in enumerate(rows.tolist()):
            for number, score in self._scores[row].items():
                answer[at, number] = score
        return Batch(torch.from_numpy(self._rows[rows]), answer=answer)


def answer_from_words(
    train: Sequence[Example],
    test: Sequence[Example],
    judge: Judge,
    *,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress = no_progress,
) -> tuple[list[str], str]:
    """Learn from the training questions, answer the others: the answers, and how the training went."""
    answers = known_answers(train)
    number_of = {normalise(text): number for number, text in enumerate(answers)}
    counts = Counter(phrase for one in train for phrase in set(phrases(one.question)))
    least = 3 if len(train) > 1000 else 1
    known = {phrase: at for at, phrase in enumerate(sorted(p for p, n in counts.items() if n >= least), start=2)}
    scores = [
        {number_of[name]: score for name, score in worth(one, judge).items() if name in number_of} for one in train
    ]
    data = Questions(_rows([one.question for one in train], known), scores, len(answers))
    images = np.asarray([one.image_id or one.id for one in train])
    share = HELD_OUT if len(train) >= FEW else 0.0
    learnt, held = (data.only(rows) for rows in hold_out(images, share, [seed, 0x0BE]))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Words(Sizes(len(known) + 2, len(answers), (1, 1, 1)))
    how = replace(FIT, batch=min(FIT.batch, max(LEAST_BATCH, len(learnt) // STEPS)), seed=seed)
    each = how.per_epoch(len(learnt))
    config = replace(how, check_every=each, log_every=each)

    def told(what: str, step: int, steps: int) -> None:
        progress("learning from questions alone", step, steps)

    ended = fit(
        model, learnt, validation=held if len(held) else None, config=config, device=device, progress=told,
        tensorboard=False,
    )  # fmt: skip
    asked = Questions(_rows([one.question for one in test], known), [{}] * len(test), len(answers))
    note = f"{len(answers):,} answers; epoch {ended.best_step // each if len(held) else FIT.epochs:g} of {FIT.epochs:g}"
    return [answers[number] for number in given_answers(model, asked, 1024, device)], note


def _rows(questions: Sequence[str], known: dict[str, int]) -> Longs:
    """(questions, most phrases) numbers of phrases; 1 stands for a question without a known one."""
    found = [[known[phrase] for phrase in phrases(text) if phrase in known] or [1] for text in questions]
    rows = np.full((len(found), max(map(len, found))), PAD, np.int64)
    for at, numbers in enumerate(found):
        rows[at, : len(numbers)] = numbers
    return rows
