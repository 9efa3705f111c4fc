"""A paraphraser learnt from pairs: what it reads and writes, and what it may keep."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import pfungst.players  # noqa: F401  (offers the rephraser learnt)
from pfungst.core import DataError, Example
from pfungst.models import save_tensors
from pfungst.models.base import END, START
from pfungst.probes.rephrase import get_rephraser
from pfungst.probes.rephrase.generators import keeps_meaning, kind_of
from pfungst.training.learnt_rephraser import (
    FIRST,
    LearntRephraser,
    Paraphraser,
    ParaphraserConfig,
    Slots,
    load_paraphraser,
    split_sentence,
)

ASKED, WRITTEN = "What color is the thing", "What is the color of the thing"


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A paraphraser that was taught one pair, in which it does not know the thing by name."""
    folder = tmp_path_factory.mktemp("paraphraser")
    words, config = Slots(("the", "is", "color", "what", "of")), ParaphraserConfig(16, 1, 2, 0.0)
    source, target = (torch.tensor([words.read(split_sentence(text))[0]]) for text in (ASKED, WRITTEN))
    before = torch.cat([torch.tensor([[START]]), target], 1)
    wanted = torch.cat([target, torch.tensor([[END]])], 1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Paraphraser(words.size, config)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        for _ in range(100):
            loss = F.cross_entropy(model.next_words(*model.read(source), before)[0], wanted[0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    save_tensors(folder / "paraphraser.safetensors", model.state_dict())
    record = {"format": 1, "words": words.words, "config": dataclasses.asdict(config)}
    (folder / "paraphraser.json").write_text(json.dumps(record))
    return folder


def test_unknown_words_are_copied_through_slots() -> None:
    words = Slots(("is", "what", "the"))
    numbers, filled = words.read(split_sentence("What is the giraffe's zyx?"))
    assert numbers == [FIRST + 1, FIRST, FIRST + 2, 4, 5] and filled[:2] == ["giraffe's", "zyx"]
    assert words.write([FIRST + 2, 5, FIRST], filled) == "The zyx is?"
    assert words.write([FIRST + 2, 6], filled) == ""  # nothing is in that slot


def test_it_asks_in_other_words_about_things_it_has_never_heard_of(learnt: Path) -> None:
    rephraser = get_rephraser(f"learnt:{learnt}")
    assert isinstance(rephraser, LearntRephraser)
    asked = [Example("1", "What color is the axolotl?"), Example("2", "Is the axolotl here?")]
    texts = rephraser.rephrase(asked, 3, 0)
    assert texts[0][0] == "What is the color of the axolotl?"
    assert texts == rephraser.rephrase(asked, 3, 0)
    assert all(keeps_meaning(one.question, text) for one, found in zip(asked, texts, strict=True) for text in found)


def test_a_stored_paraphraser_is_the_same_and_a_damaged_one_is_told(learnt: Path, tmp_path: Path) -> None:
    model, words = load_paraphraser(learnt)
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


def test_questions_of_others_that_mean_the_same_are_rephrasings(tmp_path: Path) -> None:
    pool = ["What is the color of the cat?", "what color is the  cat", "What color is the dog?", "Is the cat black?"]
    (tmp_path / "pool.txt").write_text("\n".join(pool))
    rephraser = get_rephraser(f"asked:{tmp_path / 'pool.txt'}")
    asked = [Example("1", "What color is the cat?"), Example("2", "Why is the cat black?")]
    assert rephraser.rephrase(asked, 3, 0) == [("What is the color of the cat?",), ()]
    assert "another image" in rephraser.keeps
