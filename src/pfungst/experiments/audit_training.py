"""Trains the scorers of the audit; the MLPs here, in processes of this machine or on a cluster.

What a scorer picked is kept in a file of its own, so that an audit that was killed goes on with the next scorer, and
the same audit trains nothing again: in the folder of an experiment, or, for MLPs, in the cache folder under everything
it depends on.

The question-only network of the open questions stands here too: words and short phrases of the question -> an answer.

    answer = argmax softmax(W2 relu(W1 mean of the vectors of all words, pairs of words and beginnings))

How a question begins ("is there", "how many people are") says most about its answer, and a mean of vectors of phrases
keeps that.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from pfungst import __version__
from pfungst.compute import Shard, place_of_work, run_shards
from pfungst.core import Example, PfungstError
from pfungst.core.files import cache_dir, file_name, write_atomic
from pfungst.core.flips import normalise
from pfungst.core.stats import Interval
from pfungst.core.types import Progress, no_progress
from pfungst.experiments import audit_scorers as scorers
from pfungst.experiments.audit import SEES, Cell, ScorerConfig, row_name
from pfungst.experiments.audit_features import Features, grid_features
from pfungst.experiments.audit_open import Judge, known_answers, worth
from pfungst.experiments.audit_scorers import (
    INPUTS,
    LOOKING,
    Reading,
    Task,
    Tasks,
    hold_out,
    picks_of,
    train_attention,
)
from pfungst.experiments.study import Scores
from pfungst.models import Batch, Model, Sizes
from pfungst.models.base import PAD, Output
from pfungst.models.layers import mean_words
from pfungst.models.trained import split_words
from pfungst.probes.decoys.sets import DecoySet
from pfungst.text import get_encoder
from pfungst.training import FitConfig, fit
from pfungst.training.data import ArrayData
from pfungst.training.numerics import answers as given_answers

FORMAT = 1
"""Counted up when the same training would give other picks."""

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

Key = tuple[str, str, int]
"""Choice set, what the scorer sees, number of the training."""
Trained = dict[Key, tuple[npt.NDArray[Any], int]]
"""What each scorer picked, and the epoch it ended in."""


def train_scorers(
    made: Sequence[DecoySet],
    variants: Sequence[str],
    models: Sequence[str],
    judge: Judge | None,
    seed: int,
    *,
    encoder: Any,
    features: Features | None,
    config: ScorerConfig,
    progress: Progress,
    folder: Path | None = None,
) -> tuple[list[Cell], dict[str, Interval], list[str]]:
    """The cells of the scorers, what seeing everything gains in each choice set, and what should be known of them.

    folder : keeps the picks of every scorer; it belongs to this data and this configuration. Where all are there, no
        image is looked at.
    """
    cells: list[Cell] = []
    gains: dict[str, Interval] = {}
    warnings: list[str] = []
    chosen = get_encoder(encoder)
    keys = [(variant, inputs, number) for variant in variants for inputs in models for number in range(config.seeds)]
    trained = _finished(folder, keys)
    features = None if trained else features
    grids = not trained and any(name in LOOKING for name in models)
    train, test = (Tasks(part, chosen, features, progress, grids) for part in made)
    if trained:
        pass
    elif train.images is None or test.images is None:
        dropped = [name for name in models if SEES[name] in ("the image alone", "everything")]
        models = [name for name in models if name not in dropped]
        if dropped:
            lost = train.without_image + test.without_image
            why = f"{lost} images are missing" if features is not None else "no image features were asked for"
            warnings.append(f"Without images {', '.join(map(row_name, dropped))} cannot be trained ({why}).")
    elif grids and (train.grids is None or test.grids is None):
        models = [name for name in models if name not in LOOKING]
        warnings.append("HieCoAtt and Attention need feature maps, and these image features are single vectors.")
    elif features is grid_features:
        warnings.append(
            "Image features are colours and edges on a grid, not those of a network: MLP-IA and MLP-IQA see little."
        )
    vectors = encoder.removeprefix("words:") if isinstance(encoder, str) and encoder.startswith("words:") else None
    looking = not trained and any(name in LOOKING for name in models)
    reading = Reading(train, test, vectors, config.device) if looking else None
    trained = trained or _train_mlps(train, test, variants, models, config, progress, folder)
    done, total = 0, len(variants) * len(models) * config.seeds
    for variant in variants:
        learnt, _ = train.of(variant)
        asked, groups = test.of(variant)
        worth = None if judge is None else test.worth(variant, judge)
        right: dict[str, Scores] = {}
        for inputs in models:
            picks, epochs = [], []
            for number, one in enumerate(config.each()):
                key = variant, inputs, number
                if key not in trained:
                    assert reading is not None
                    told = partial(_tell, progress, total, f"{row_name(inputs)} on {variant}", done)
                    trained[key] = _look(reading, learnt, asked, inputs, one, told, folder and folder / _file(key))
                found, epoch = trained[key]
                picks.append(found)
                epochs.append(str(epoch))
                done += 1
                progress("training scorers", done, total)
            right[inputs] = Scores(np.stack(picks)[:, :, 0], groups)
            by_vqa = None if worth is None else Scores(np.stack([(one * worth).sum(1) for one in picks]), groups).mean()
            note = f"sees {SEES[inputs]}; epoch {', '.join(epochs)} of {config.epochs}, hidden {config.hidden}"
            cells.append(Cell(variant, row_name(inputs), right[inputs].mean(), note, by_vqa))
        without = [inputs for inputs in right if SEES[inputs] != "everything"]
        if without and "IQA" in right:
            best = max(without, key=lambda inputs: float(right[inputs].values.mean()))
            gains[variant] = (right["IQA"] - right[best]).mean()
    return cells, gains, warnings


def _file(key: Key) -> str:
    """Where a scorer's picks are kept."""
    return file_name("-".join(map(str, key))) + ".npz"


def _finished(folder: Path | None, keys: Sequence[Key]) -> Trained:
    """What every scorer picked, if all of them are there; else nothing."""
    files = {key: folder / _file(key) for key in keys} if folder is not None else {}
    return {key: _read(file) for key, file in files.items()} if all(one.exists() for one in files.values()) else {}


def _look(
    reading: Reading, learnt: Task, asked: Task, inputs: str, config: ScorerConfig, told: Progress, file: Path | None
) -> tuple[npt.NDArray[Any], int]:
    """Train one model that looks at cells, in this process; FILE keeps what it picked."""
    if file is not None and file.exists():
        return _read(file)
    seen = [reading.of(part, task) for part, task in (("train", learnt), ("test", asked))]
    model, epoch = train_attention(reading, seen[0], inputs, config, told)
    picks = picks_of(model, seen[1], batch=256)
    if file is not None:
        write_atomic(file, _packed(picks, epoch))
    return picks, epoch


def _train_mlps(
    train: Tasks,
    test: Tasks,
    variants: Sequence[str],
    models: Sequence[str],
    config: ScorerConfig,
    progress: Progress,
    folder: Path | None,
) -> Trained:
    """Train where `pfungst.compute.working` says."""
    wanted = [one for one in models if one in INPUTS]
    if not wanted:
        return {}
    tasks = {variant: (train.of(variant)[0], test.of(variant)[0]) for variant in variants}
    keys: list[Key] = [(v, inputs, number) for v in variants for inputs in wanted for number in range(config.seeds)]
    shards = [Shard(0, _file(key), list(key)) for key in keys]
    # Steps are told by the process that trains, and only this one is heard.
    told = partial(_tell, progress, len(keys)) if place_of_work().on == "local" else None
    work = partial(_train, tasks=tasks, config=config, told=told)
    with contextlib.nullcontext(folder) if folder else _folder(_digest(tasks, wanted, config)) as kept:
        files = run_shards(work, shards, kept, progress=progress, what="training scorers")
        return {key: _read(file) for key, file in zip(keys, files, strict=True)}


@contextlib.contextmanager
def _folder(name: str) -> Iterator[Path]:
    """Where the picks are kept; a passing one where the cache folder cannot be written."""
    try:
        folder = cache_dir("scorers") / name
    except PfungstError:
        with tempfile.TemporaryDirectory() as passing:
            yield Path(passing)
    else:
        yield folder


def _train(
    shard: Shard, *, tasks: Mapping[str, tuple[Task, Task]], config: ScorerConfig, told: partial[None] | None
) -> bytes:
    variant, inputs, number = shard.payload
    learnt, asked = tasks[variant]
    heard = no_progress if told is None else partial(told, f"{row_name(inputs)} on {variant}", shard.index)
    scorer = scorers.train(learnt, inputs, list(config.each())[number], progress=heard)
    return _packed(scorers.picks(scorer, asked), scorer.epoch)


def _packed(picks: npt.NDArray[Any], epoch: int) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, picks=picks, epoch=epoch)
    return buffer.getvalue()


def _tell(progress: Progress, total: int, name: str, done: int, what: str, step: int, steps: int) -> None:
    progress(f"training scorers · {name}, step {step:,} of {steps:,}", done, total)


def _read(file: Path) -> tuple[npt.NDArray[Any], int]:
    with np.load(file, allow_pickle=False) as stored:
        return stored["picks"], int(stored["epoch"])


def _digest(tasks: Mapping[str, tuple[Task, Task]], models: Sequence[str], config: ScorerConfig) -> str:
    digest = hashlib.sha256(repr((FORMAT, __version__, torch.__version__, models, asdict(config))).encode())
    seen: set[int] = set()
    for variant, pair in tasks.items():
        digest.update(variant.encode())
        for array in (array for task in pair for array in vars(task).values() if array is not None):
            digest.update(repr((array.shape, array.dtype.str)).encode())
            if id(array) not in seen:  # vectors and features are shared by the choice sets
                seen.add(id(array))
                digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:24]


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
    data = _arrays(train, known, scores, len(answers))
    images = np.asarray([one.image_id or one.id for one in train])
    share = HELD_OUT if len(train) >= FEW else 0.0
    learnt, held = (data.rows(rows) for rows in hold_out(images, share, [seed, 0x0BE]))
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
    asked = _arrays(test, known, [{}] * len(test), len(answers))
    note = f"{len(answers):,} answers; epoch {ended.best_step // each if len(held) else FIT.epochs:g} of {FIT.epochs:g}"
    return [answers[number] for number in given_answers(model, asked, 1024, device)], note


def _arrays(
    examples: Sequence[Example], known: dict[str, int], scores: Sequence[dict[int, float]], answers: int
) -> ArrayData:
    """Questions as numbers of phrases, 1 for a question without a known one, with what each answer is worth."""
    numbers = [[known[phrase] for phrase in phrases(one.question) if phrase in known] or [1] for one in examples]
    none = np.zeros(len(examples), np.int64)
    arrays = {
        "question": _padded(numbers, PAD),
        "answer": none,
        "picture": none,
        "soft_answers": _padded([[*one] for one in scores], -1),
        "soft_scores": _padded([[*one.values()] for one in scores], 0.0),
    }
    return ArrayData(arrays, answers)


def _padded(rows: Sequence[Sequence[float]], filler: float) -> npt.NDArray[Any]:
    """(rows, length of the longest)"""
    array = np.full((len(rows), max(1, *map(len, rows))), filler)
    for at, row in enumerate(rows):
        array[at, : len(row)] = row
    return array
