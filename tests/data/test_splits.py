"""Which split is read, what is left, and several at once."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from pfungst.core import DataError
from pfungst.data import check, load


def folder(root: Path, **splits: list[dict[str, object]]) -> Path:
    """A table for each split."""
    for split, rows in splits.items():
        (root / f"{split}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return root


def rows(*ids: object, **more: object) -> list[dict[str, object]]:
    return [{"id": id_, "question": f"What is {id_}?", "answer": "x", **more} for id_ in ids]


def test_the_split_that_is_taken_and_those_left_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = folder(tmp_path, train=rows(1, 2, 3), val=rows(4, 5), test=rows(6))
    with caplog.at_level(logging.INFO, "pfungst.data"):
        data = load(place)
    assert data.notes["splits"] == {"taken": ["val"], "left": ["test", "train"]}
    assert caplog.messages == [
        f"{place}: read the split val (2 questions); not read: test, train. Add #all for everything."
    ]


@pytest.mark.parametrize("split", ["train", "train+val", "all"])
def test_nothing_is_told_where_the_user_named_the_split(
    split: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder(tmp_path, train=rows(1), val=rows(2))
    with caplog.at_level(logging.INFO, "pfungst.data"):
        load(f"{tmp_path}#{split}")
    assert caplog.messages == []


def test_several_splits_are_read_in_the_order_they_are_named(tmp_path: Path) -> None:
    place = folder(tmp_path, train=rows(1, 2), val=rows(3), test=rows(4))
    assert [e.id for e in load(f"{place}#train+val")] == ["1", "2", "3"]
    assert [e.id for e in load(place, split="test+validation")] == ["4", "3"]
    assert [e.id for e in load(place, split="val+val")] == ["3"]
    assert load(f"{place}#train+val").notes["splits"] == {"taken": ["train", "val"], "left": ["test"]}
    with pytest.raises(DataError, match="there is no split 'trian'"):
        load(f"{place}#trian+val")


def test_ids_of_two_splits_stay_apart_and_so_do_groups(tmp_path: Path) -> None:
    train = [*rows("a", group="a"), *rows("a2", group="a"), *rows("b")]
    val = [*rows("a", group="a"), *rows("v2", group="a"), *rows("c")]
    data = load(f"{folder(tmp_path, train=train, val=val)}#train+val")
    assert [(e.id, e.group) for e in data] == [
        ("a", "a"),
        ("a2", "a"),
        ("b", ""),
        ("val-a", "val-a"),
        ("v2", "val-a"),
        ("c", ""),
    ]
    assert check(tmp_path).duplicate_ids == 0


def test_an_id_that_cannot_be_made_unique_is_a_sentence(tmp_path: Path) -> None:
    place = folder(tmp_path, train=rows("a", "val-a"), val=rows("a"))
    with pytest.raises(DataError, match=r"val\.jsonl, line 1: the id 'val-a' appears twice"):
        load(f"{place}#train+val")
    assert load(f"{place}#train+val", skip_bad=True).skipped == 1


def test_an_id_twice_in_one_split_is_still_a_bad_record(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the id '1' appears twice"):
        load(folder(tmp_path, val=rows(1, 1)))


def test_a_limit_counts_over_all_splits(tmp_path: Path) -> None:
    place = folder(tmp_path, train=rows(1, 2), val=rows(3, 4))
    assert [e.id for e in load(f"{place}#train+val", limit=3)] == ["1", "2", "3"]
