"""Learn a paraphraser from pairs of questions that mean the same, and see what it makes of other questions.

OUT then is what `learnt:OUT` names, as in `pfungst examine PLAYER --probe rephrase:generator=learnt:OUT`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pfungst.core import DataError, Table, UsageError
from pfungst.core.types import Progress
from pfungst.experiments.base import Experiment, argument, claim, lifted, option
from pfungst.training.config import FitConfig

SHOWN = 12
"""Rephrasings in the table of examples."""
ASKED = 1000
"""Test pairs that are written anew for BLEU."""


@dataclass(frozen=True)
class ParaphraserStudy:
    """Learn a paraphraser from pairs of sentences, for rephrasings by `learnt:OUT`."""

    files: tuple[str, ...] = argument()
    """Two text files whose lines mean the same; then two more to test on."""
    ask: str = option("")
    """Data set whose questions are rephrased for the table."""
    words: int = 4000
    """The most frequent words of the pairs are known; all others are copied."""
    preset: str = "compact"
    """Sizes of the transformer: compact, tiny."""
    fit: FitConfig = lifted(
        FitConfig(steps=4000, batch=256, rate=1e-3, schedule="linear", warmup=0.05, clip=1.0, precision="bf16"),
        "steps", "batch", "rate",
    )  # fmt: skip
    """A setting of the training."""
    limit: int | None = None
    """Only the first N questions of --ask."""
    seed: int = 0
    """Seed of every random choice."""
    device: str = option("cpu", free=True)
    """cpu, cuda, cuda:1, mps."""

    def __post_init__(self) -> None:
        if len(self.files) != 4:
            raise UsageError(
                "Name four text files: two to learn from and two to test on, with the same number of lines in each "
                "pair."
            )


@dataclass(frozen=True)
class Learnt:
    """What was learnt."""

    pairs: int
    """Pairs that were learnt from, in both directions."""
    test: int
    accuracy: float
    """Share of the words of test sentences that are guessed right, given those before them."""
    bleu: float
    """BLEU-4 of what it writes with the other sentence of a test pair, in percent."""
    copied: float
    """BLEU-4 of what it writes with the sentence it read, in percent."""
    between: float
    """BLEU-4 of the two sentences of a test pair, in percent."""
    asked: int = 0
    rephrased: dict[int, int] = field(default_factory=dict)
    """Rephrasings -> questions with so many."""
    samples: Sequence[tuple[str, ...]] = ()
    seconds: float = 0.0


def run(config: ParaphraserStudy, out: Path, *, progress: Progress) -> Learnt:
    """Learn, test, rephrase."""
    import dataclasses

    import numpy as np
    import torch

    from pfungst.data import load
    from pfungst.models import Sizes
    from pfungst.scores import generation_scores
    from pfungst.training import fit
    from pfungst.training.learnt_rephraser import LearntRephraser
    from pfungst.training.paraphraser import Paraphraser, Slots, make_pairs, save_paraphraser, split_sentence

    claim(out, config)
    train, test = (_read(*config.files[place : place + 2]) for place in (0, 2))
    both = [(split_sentence(a), split_sentence(b)) for a, b in train]
    words = Slots.of([sentence for pair in both for sentence in pair], config.words)
    told = [pair for a, b in both if a != b for pair in ((a, b), (b, a))]
    pairs = make_pairs(words, told, config.device)
    held = make_pairs(words, [(split_sentence(a), split_sentence(b)) for a, b in test], config.device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = Paraphraser(Sizes(words.size, words.size), Paraphraser.PRESETS[config.preset])
    settings = dataclasses.replace(config.fit, seed=config.seed, check_every=max(1, config.fit.total(len(pairs)) // 8))
    fitted = fit(
        model, pairs, validation=held, config=settings, out=out / "fit", device=config.device, progress=progress,
        tensorboard=False,
    )  # fmt: skip
    save_paraphraser(model, words, out)
    rephraser = LearntRephraser(str(out), device=config.device)
    first, second = [a for a, _ in test[:ASKED]], [b for _, b in test[:ASKED]]
    wrote = [drawn[0] for drawn in rephraser.write(first, config.seed)]
    bleu, copied, between = (
        100 * generation_scores(mine, [[one] for one in theirs], meteor=False)["BLEU-4"]
        for mine, theirs in ((wrote, second), (wrote, first), (first, second))
    )
    result = Learnt(len(told), len(held), fitted.accuracy, bleu, copied, between, seconds=round(fitted.seconds, 1))
    if not config.ask:
        return result
    asked = list(load(config.ask, limit=config.limit))
    texts = rephraser.rephrase(asked, 3, config.seed)
    found = {number: sum(len(one) == number for one in texts) for number in range(4)}
    drawn = np.random.default_rng(config.seed).permutation([i for i, one in enumerate(texts) if one])[:SHOWN]
    samples = [(asked[i].question, *texts[i]) for i in drawn.tolist()]
    return dataclasses.replace(result, asked=len(asked), rephrased=found, samples=samples)


def _read(one: str, other: str) -> list[tuple[str, str]]:
    first, second = (Path(name).read_text(encoding="utf-8").splitlines() for name in (one, other))
    if len(first) != len(second):
        raise DataError.at(other, "", f"there are {len(second):,} lines, and {len(first):,} in {one}.")
    return list(zip(first, second, strict=True))


def tables(result: Learnt) -> list[Table]:
    """How it does on test pairs, how many questions it can rephrase, and examples."""
    found = [
        Table(
            "Paraphraser",
            ("pairs", "test pairs", "words right", "BLEU-4 with the other", "with what it read", "of the pairs"),
            (
                (
                    f"{result.pairs:,}", f"{result.test:,}", f"{100 * result.accuracy:.1f}%", f"{result.bleu:.1f}",
                    f"{result.copied:.1f}", f"{result.between:.1f}",
                ),
            ),
            "One sentence drawn for each of the first test pairs, unchecked.",
        )
    ]  # fmt: skip
    if result.asked:
        rows = tuple(
            (f"{n}", f"{count:,}", f"{100 * count / result.asked:.1f}%") for n, count in result.rephrased.items()
        )
        found.append(Table(f"Rephrasings of {result.asked:,} questions", ("rephrasings", "questions", "share"), rows))
        shown = tuple((row[0], " / ".join(row[1:])) for row in result.samples)
        found.append(Table("Examples, drawn at random", ("question", "rephrasings"), shown))
    return found


EXPERIMENT = Experiment("paraphraser", ParaphraserStudy, run, tables)
