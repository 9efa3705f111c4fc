"""How often the intervals hold the truth: nominal and actual, on simulated runs.

    python benchmarks/interval_coverage.py [--quick] [--only WORDS]

Every row is a kind of number at a size of run. *Effective*: images of equal size that would tell as much, on average.
*95%*: share of the runs whose interval holds the truth. *at least*, *at most*: likewise for the one-sided bounds, which
`pfungst gate` uses; 5% less than 100 is the share of gates that pass by luck, or fewer. *Width*: of the interval, mean.

Questions about an image are alike: how easy they are is drawn for each image from a beta distribution, whose
intraclass correlation is the number behind "alike".
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from math import comb

import numpy as np

from pfungst.core.stats import Interval, compare_paired, interval_of, over_runs, resampled
from pfungst.scores import r_score, risk_coverage
from pfungst.scores.agreement import agreement, corrected_accuracy, corrected_drop
from pfungst.scores.reliability import over_people, reliability
from pfungst.scores.robustness import robustness

Draw = Callable[[np.random.Generator], Interval]
"""One simulated run and the interval made of it."""
Row = tuple[str, float, Draw]
"""What is measured, its true value, and how."""


def clusters_of(rng: np.random.Generator, images: int, sizes: Sequence[int]) -> np.ndarray:
    return np.repeat(np.arange(images), rng.choice(sizes, images))


def eases(rng: np.random.Generator, images: int, p: float, alike: float) -> np.ndarray:
    return rng.beta(p * (1 / alike - 1), (1 - p) * (1 / alike - 1), images)


def accuracy(images: int, sizes: Sequence[int], p: float, alike: float = 0.2) -> Draw:
    def draw(rng: np.random.Generator) -> Interval:
        clusters = clusters_of(rng, images, sizes)
        return interval_of((rng.random(len(clusters)) < eases(rng, images, p, alike)[clusters]).astype(float), clusters)

    return draw


def accuracies() -> Iterator[Row]:
    for images in (3, 5, 8, 10, 20, 50, 200):
        for p in (0.5, 0.8, 0.97):
            yield f"accuracy {p:.0%}, {images} images of 10", p, accuracy(images, [10], p)
    for images in (10, 20, 50):
        for p in (0.5, 0.8, 0.97):
            yield f"accuracy {p:.0%}, {images} images of 1 or 40", p, accuracy(images, [1, 40], p)
    for images in (10, 30, 100):
        for p in (0.5, 0.8, 0.95):
            yield f"accuracy {p:.0%}, {images} images of 1", p, accuracy(images, [1], p)


def groups() -> Iterator[Row]:
    """The accuracy on one type of answer: a fifth of the questions, from none to several an image."""
    for images in (10, 30, 100):

        def draw(rng: np.random.Generator, images: int = images) -> Interval:
            clusters = clusters_of(rng, images, range(1, 11))
            right = (rng.random(len(clusters)) < eases(rng, images, 0.7, 0.2)[clusters]).astype(float)
            return interval_of(np.where(rng.random(len(clusters)) < 0.2, right, np.nan), clusters)

        yield f"accuracy of a group, 70%, {images} images", 0.7, draw


def consensus() -> Iterator[Row]:
    """CS(k) of four wordings: easy questions are right in all."""
    p, alike, k = 0.7, 0.4, 3
    a, b = p * (1 / alike - 1), (1 - p) * (1 / alike - 1)
    truth = float(np.prod([(a + i) / (a + b + i) for i in range(k)]))
    for images in (10, 30, 100):

        def draw(rng: np.random.Generator, images: int = images) -> Interval:
            clusters = clusters_of(rng, images, [1, 2, 3, 4])
            shared = eases(rng, images, p, alike)[clusters]
            own = eases(rng, len(clusters), p, alike)
            ease = np.where(rng.random(len(clusters)) < 0.3, shared, own)
            right = rng.binomial(4, ease)
            return interval_of([comb(int(one), k) / comb(4, k) for one in right], clusters)

        yield f"CS({k}), {images} images", truth, draw


def fates(rng: np.random.Generator, images: int, each: int, lost: float, won: float, alike: float) -> np.ndarray:
    """1 where an answer is lost, -1 where one is won, by image; 0 elsewhere."""
    shares = rng.dirichlet(np.array([lost, won, 1 - lost - won]) * (1 / alike - 1), images)
    draw, bars = rng.random((images, each)), shares.cumsum(1)
    return np.where(draw < bars[:, :1], 1.0, np.where(draw < bars[:, 1:2], -1.0, 0.0)).ravel()


def drops() -> Iterator[Row]:
    for images, each in ((5, 10), (10, 10), (20, 3), (50, 4), (200, 2)):
        for lost, won in ((0.05, 0.05), (0.15, 0.05)):

            def draw(
                rng: np.random.Generator, images: int = images, each: int = each, lost: float = lost, won: float = won
            ) -> Interval:
                gone = fates(rng, images, each, lost, won, 0.1)
                return compare_paired(gone, np.zeros(len(gone)), np.arange(len(gone)) // each)

            yield f"drop {100 * (lost - won):.0f} points, {images} images of {each}", lost - won, draw


def robust() -> Iterator[Row]:
    for n in (100, 300, 1000, 3000):
        for loss in (0.0, 0.01, 0.1):

            def draw(rng: np.random.Generator, n: int = n, loss: float = loss) -> Interval:
                gone = rng.choice([1.0, -1.0, 0.0], n, p=[0.05 + loss, 0.05, 0.9 - loss])
                return robustness(gone, np.zeros(n), np.arange(n) // 2).score

            yield f"R_score, {100 * loss:.0f} points lost, {n} questions", r_score(100, 100 - 100 * loss), draw


def trainings() -> Iterator[Row]:
    for runs, apart in ((2, 0.05), (3, 0.02), (3, 0.05), (5, 0.05), (10, 0.05)):

        def draw(rng: np.random.Generator, runs: int = runs, apart: float = apart) -> Interval:
            images = np.repeat(np.arange(100), 3)
            ease = np.clip(rng.beta(4, 2, 100)[images] + rng.normal(0, apart, (runs, 1)), 0, 1)
            return over_runs((rng.random(ease.shape) < ease).astype(float), images)

        yield f"accuracy, {runs} trainings {100 * apart:.0f} points apart", 2 / 3, draw


def people() -> Iterator[Row]:
    def said(rng: np.random.Generator, workers: int, items: int) -> list[list[tuple[int, bool]]]:
        skill, ease = rng.normal(0, 0.7, workers), rng.normal(1, 0.7, items)
        return [
            [(int(who), bool(rng.random() < 1 / (1 + np.exp(-skill[who] - here)))) for who in some]
            for here in ease
            for some in [rng.choice(workers, 3, replace=False)]
        ]

    many = np.random.default_rng(0).normal(1, np.sqrt(2) * 0.7, 10**6)
    truth = float((1 / (1 + np.exp(-many))).mean())
    skill, ease = np.random.default_rng(1).normal(0, 0.7, (2, 10**6)), np.random.default_rng(2).normal(1, 0.7, 10**6)
    first, second = 1 / (1 + np.exp(-skill - ease))
    alike = float((first * second + (1 - first) * (1 - second)).mean())
    kappa = (alike - truth**2 - (1 - truth) ** 2) / (1 - truth**2 - (1 - truth) ** 2)
    for workers, items in ((6, 30), (12, 40), (20, 100)):

        def share(rng: np.random.Generator, workers: int = workers, items: int = items) -> Interval:
            return over_people(
                said(rng, workers, items), lambda some: (sum(one for _, one in some), len(some)), lambda one: one[0]
            )

        def agree(rng: np.random.Generator, workers: int = workers, items: int = items) -> Interval:
            some = said(rng, workers, items)
            labels = [[one for _, one in item] for item in some]
            return reliability(labels, [[who for who, _ in item] for item in some]).kappa

        yield f"share right, {workers} people, {items} items", truth, share
        yield f"Fleiss' kappa, {workers} people, {items} items", kappa, agree


def judged() -> Iterator[Row]:
    """A judge that calls 95% of the right and 10% of the wrong answers right, held against labels of other answers."""

    def judge(rng: np.random.Generator, right: np.ndarray) -> np.ndarray:
        return rng.random(right.shape) < np.where(right, 0.95, 0.1)

    def labelled(rng: np.random.Generator, labels: int) -> object:
        clusters = np.arange(labels) // 2
        right = rng.random(labels) < eases(rng, labels, 0.7, 0.2)[clusters]
        return agreement(judge(rng, right).tolist(), right.tolist(), clusters.tolist())

    for labels in (100, 300):
        for p in (0.5, 0.9):

            def one(rng: np.random.Generator, labels: int = labels, p: float = p) -> Interval:
                clusters = np.arange(400) // 4
                right = rng.random(400) < eases(rng, 100, p, 0.2)[clusters]
                return corrected_accuracy(judge(rng, right).astype(float), clusters, labelled(rng, labels))  # type: ignore[arg-type]

            yield f"accuracy {p:.0%} by a judge, {labels} labels", p, one

        def two(rng: np.random.Generator, labels: int = labels) -> Interval:
            gone = fates(rng, 100, 4, 0.15, 0.05, 0.1)
            before = np.where(gone == 0, rng.random(400) < 0.6, gone > 0)
            after = np.where(gone == 0, before, gone < 0)
            # The same answer is judged once.
            first, again = judge(rng, before), judge(rng, after)
            second = np.where(gone == 0, first, again)
            return corrected_drop(
                first.astype(float),
                second.astype(float),
                np.arange(400) // 4,
                labelled(rng, labels),  # type: ignore[arg-type]
            )

        yield f"drop 10 points by a judge, {labels} labels", 0.1, two


def selective() -> Iterator[Row]:
    def told(rng: np.random.Generator, images: int) -> tuple[np.ndarray, np.ndarray]:
        ease = np.repeat(rng.beta(4, 1.5, images), 3)
        sure = rng.binomial(4, ease) / 4
        return sure, (rng.random(len(ease)) < 0.25 + 0.7 * ease * (0.5 + 0.5 * sure)).astype(float)

    truth = risk_coverage(*told(np.random.default_rng(0), 300_000)).augrc
    for images in (10, 30, 100):

        def draw(rng: np.random.Generator, images: int = images) -> Interval:
            sure, right = told(rng, images)
            places = np.arange(3 * images) // 3
            return resampled(lambda rows: [risk_coverage(sure[rows], right[rows]).augrc], places, seed=0, draws=300)[0]

        yield f"AUGRC, {images} images", truth, draw


KINDS = {
    "accuracy": accuracies, "groups": groups, "consensus": consensus, "drops": drops, "R_score": robust,
    "trainings": trainings, "people": people, "judge": judged, "selective": selective,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="40 runs a row instead of 1,000")
    parser.add_argument("--only", help=f"one of {', '.join(KINDS)}")
    options = parser.parse_args()
    times = 40 if options.quick else 1000
    print("|  | effective | 95% | at least | at most | width |\n|---|---|---|---|---|---|")
    least: dict[str, list[float]] = {"ten": [], "five": []}
    for kind, rows in KINDS.items():
        if options.only not in (None, kind):
            continue
        for number, (what, truth, draw) in enumerate(rows()):
            rng = np.random.default_rng([number, times])
            found = [one for one in (draw(rng) for _ in range(times)) if one.low == one.low]
            if not found:
                print(f"| {what} | no interval |")
                continue
            held = float(np.mean([one.low - 1e-9 <= truth <= one.high + 1e-9 for one in found]))
            over = np.mean([one.at_least <= truth + 1e-9 for one in found])
            under = np.mean([one.at_most >= truth - 1e-9 for one in found])
            width, effective = (float(np.mean(some)) for some in zip(*((o.high - o.low, o.effective) for o in found)))
            missing = f", {1 - len(found) / times:.0%} without" if len(found) < times else ""
            size = "" if np.isnan(effective) else f"{effective:.1f}"
            print(f"| {what}{missing} | {size} | {held:.1%} | {over:.1%} | {under:.1%} | {width:.3f} |", flush=True)
            if effective >= 10 - 1e-9 or np.isnan(effective):
                least["ten"].append(held)
            elif effective >= 5 - 1e-9:
                least["five"].append(held)
    for name, shares in least.items():
        if shares:
            print(f"\nfrom {name} effective images on: {np.mean(shares):.1%} on average, {min(shares):.1%} at least")


if __name__ == "__main__":
    main()
