"""A paraphraser learnt from pairs: what it reads and writes, and what it may keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pfungst.players  # noqa: F401  (offers the rephraser learnt)
from pfungst.core import DataError, Example, UsageError
from pfungst.experiments.paraphraser import Learnt, ParaphraserStudy, run, tables
from pfungst.probes.rephrase import get_rephraser
from pfungst.probes.rephrase.generators import keeps_meaning, kind_of
from pfungst.training import FitConfig
from pfungst.training.learnt_rephraser import LearntRephraser
from pfungst.training.paraphraser import (
    FIRST,
    Paraphraser,
    Slots,
    load_paraphraser,
    make_pairs,
    split_sentence,
)

THINGS = ["cat", "dog", "bus", "cup", "hat", "kite", "vase", "oven", "boat", "lamp"]
SMALL = FitConfig(steps=250, batch=40, rate=1e-2, schedule="linear", clip=1.0)


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Learnt]:
    """Learnt from pairs about things, of which it knows none by name."""
    folder = tmp_path_factory.mktemp("paraphraser")
    for name, things in (("train", THINGS * 2), ("test", ["pear", "sofa"])):
        (folder / f"{name}-a").write_text("\n".join(f"What color is the {thing}?" for thing in things))
        (folder / f"{name}-b").write_text("\n".join(f"What is the color of the {thing}?" for thing in things))
    files = tuple(str(folder / name) for name in ("train-a", "train-b", "test-a", "test-b"))
    config = ParaphraserStudy(files, words=5, preset="tiny", fit=SMALL)
    return folder / "out", run(config, folder / "out", progress=lambda what, done, total: None)


def test_unknown_words_are_copied_through_slots() -> None:
    words = Slots.of([["what", "is", "the", "what", "is"]], 3)
    assert words.words == ("is", "what", "the")
    numbers, filled = words.read(split_sentence("What is the giraffe's zyx?"))
    assert numbers == [FIRST + 1, FIRST, FIRST + 2, 4, 5] and filled[:2] == ["giraffe's", "zyx"]
    assert words.follow(["the", "zyx", "is", "new"], filled) == [FIRST + 2, 5, FIRST, 1]
    assert words.write([FIRST + 2, 5, FIRST], filled) == "The zyx is?"
    assert words.write([FIRST + 2, 6], filled) == ""  # nothing is in that slot


def test_pairs_that_need_more_than_was_said_are_left_out() -> None:
    words = Slots(("a", "b"))
    pairs = make_pairs(words, [(["a", "x"], ["x", "b"]), (["a"], ["y"]), (["a"] * 30, ["b"]), ([], ["a"])])
    assert pairs.sources[:, :3].tolist() == [[FIRST, 4, 0]] and pairs.targets[0, :2].tolist() == [4, FIRST + 1]
    batch = pairs.batch(np.array([0]))
    assert batch.answer is not None
    assert batch.question[0, 1] == batch.answer[0, 0]  # the slot is another one, the same on both sides
    assert 4 <= int(batch.question[0, 1]) < FIRST
    with pytest.raises(DataError, match="No pair"):
        make_pairs(words, [(["a"], ["y"])])


def test_it_learns_to_ask_in_other_words_about_things_it_has_never_heard_of(learnt: tuple[Path, Learnt]) -> None:
    folder, told = learnt
    assert told.pairs == 2 * 2 * len(THINGS) and told.accuracy > 0.8
    rephraser = get_rephraser(f"learnt:{folder}")
    assert isinstance(rephraser, LearntRephraser)
    asked = [Example("1", "What color is the axolotl?"), Example("2", "Is the axolotl here?")]
    texts = rephraser.rephrase(asked, 3, 0)
    assert texts[0][0] == "What is the color of the axolotl?"
    assert texts == rephraser.rephrase(asked, 3, 0)
    assert all(keeps_meaning(one.question, text) for one, found in zip(asked, texts, strict=True) for text in found)
    assert tables(told)[0].rows[0][0] == "40"


def test_a_stored_paraphraser_is_the_same_and_a_damaged_one_is_told(
    learnt: tuple[Path, Learnt], tmp_path: Path
) -> None:
    model, words = load_paraphraser(learnt[0])
    source = torch.tensor([words.read(["what", "color", "is", "the", "newt"])[0]])
    drawn = [model.draw(source, 0.8, torch.Generator().manual_seed(1)).tolist() for _ in range(2)]
    assert drawn[0] == drawn[1] and isinstance(model, Paraphraser)
    with pytest.raises(DataError, match="no paraphraser here"):
        load_paraphraser(tmp_path)
    (tmp_path / "paraphraser.json").write_text('{"words": []}')
    with pytest.raises(DataError, match="damaged"):
        load_paraphraser(tmp_path)


@pytest.mark.parametrize(
    ("question", "other", "same"),
    [
        ("What color is the cat?", "Which color is the cat?", True),
        ("Where is the cat?", "What is the cat?", False),
        ("What color is the cat?", "What is the cat?", False),
        ("What is on the table?", "What is under the table?", False),
        ("What is in the picture?", "What do you see?", True),
        ("What number is the car?", "What kind of car is it?", False),
        ("How many donuts are there?", "How much are the donuts?", False),
        ("Is it raining?", "Has it been raining?", False),
        ("How many cats are there?", "What is the number of cats?", True),
        ("How many cats are there?", "Are there cats?", False),
        ("Is the cat black?", "Is the black cat?", True),
        ("Is the cat black?", "Is the cat white?", False),
        ("Is the cat black?", "Why is the cat black?", False),
    ],
)
def test_a_rephrasing_keeps_content_words_and_what_is_asked_for(question: str, other: str, same: bool) -> None:
    assert keeps_meaning(question, other) is same


def test_kinds_of_questions() -> None:
    kinds = {"Who is it?": "person", "When was it?": "time", "What time is it?": "time", "How is it made?": "manner"}
    assert {text: kind_of(text) for text in kinds} == kinds
    assert kind_of("Is it so?") == "yes/no" and kind_of("What's on?") == "thing"


def test_wrong_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="four text files"):
        ParaphraserStudy(("a", "b"))
    names = []
    for name, text in (("a", "x\ny"), ("b", "x")):
        (tmp_path / name).write_text(text)
        names.append(str(tmp_path / name))
    config: Any = ParaphraserStudy((*names, *names))
    with pytest.raises(DataError, match="1 lines, and 2 in"):
        run(config, tmp_path / "out", progress=print)


def test_questions_of_others_that_mean_the_same_are_rephrasings(tmp_path: Path) -> None:
    pool = ["What is the color of the cat?", "what color is the  cat", "What color is the dog?", "Is the cat black?"]
    (tmp_path / "pool.txt").write_text("\n".join(pool))
    rephraser = get_rephraser(f"asked:{tmp_path / 'pool.txt'}")
    asked = [Example("1", "What color is the cat?"), Example("2", "Why is the cat black?")]
    assert rephraser.rephrase(asked, 3, 0) == [("What is the color of the cat?",), ()]
    assert "another image" in rephraser.keeps
