"""A player in several copies: the same answers, whatever happens to the copies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pfungst import examine
from pfungst.compute import pool
from pfungst.core import Asker, BytesImage, PlayerDied, PlayerError, Query, UsageError
from pfungst.players import resolve
from pfungst.players.replicate import ReplicaSettings, closing, needs_of, replicate
from tests.conftest import png, squares

HERE = "tests.players.replica_players"
BATCHED = f"{HERE}:Batched"


def questions(*texts: str) -> list[Query]:
    return [Query(text, png(number)) for number, text in enumerate(texts)]


def plain(count: int) -> list[str]:
    return [f"What is in number {number}?" for number in range(count)]


def started(folder: Path) -> int:
    return len(list(folder.glob("started-*")))


def copies(tmp_path: Path, count: int = 1, spec: str = BATCHED, **settings: float):
    return replicate(spec, None, {"folder": str(tmp_path)}, ReplicaSettings(count, **settings))


def test_copies_answer_as_one_player_and_are_a_player_like_any_other(tmp_path):
    queries = questions(*plain(30))
    alone = resolve(BATCHED)
    player = copies(tmp_path)
    assert (player.name, player.fingerprint) == (alone.name, alone.fingerprint)
    assert player.streams and not player.reads_scenes and not player.samples
    assert Asker(player).answers(queries) == list(alone.answer(queries))
    assert Asker(player).answers(queries[:3]) == list(alone.answer(queries[:3]))
    assert len(list(tmp_path.glob("batch-*"))) == 8 + 1  # the batches that one player would get


def test_copies_tell_what_the_player_reads(tmp_path):
    queries = questions("How many large cubes are there?", "Is a zyzzyva there?")
    player = replicate("rn-state", None, {}, ReplicaSettings(1))
    with closing(player):
        assert player.has("reading")
        assert player.reading(queries) == resolve("rn-state").reading(queries)
    silent = copies(tmp_path)
    with closing(silent):
        assert not silent.has("reading")


def test_both_copies_work_with_one_thread_each(tmp_path):
    said = {answer.text for answer in Asker(copies(tmp_path, 2, f"{HERE}:Where")).answers(questions(*plain(40)))}
    assert len(said) == 2
    assert {text.split()[1] for text in said} == {"1"}


def test_a_copy_that_dies_or_hangs_is_replaced_and_its_batch_asked_again_as_it_was(tmp_path):
    player = copies(tmp_path, timeout=5.0)
    asked = questions(*plain(5), "die once", *plain(3), "hang")
    assert Asker(player).answers(asked) == list(
        resolve(BATCHED).answer(questions(*plain(5), "die okay", *plain(3), "hung"))
    )
    assert len(list(tmp_path.glob("batch-*"))) == 3 + 2
    assert player.notes == ("2 copies of the player died and were replaced.",)


def test_a_poisonous_query_is_given_up_after_three_deaths_and_all_others_are_answered(tmp_path):
    queries = questions(*plain(5), "a poison", *plain(3), "please fail", *plain(3))
    player = copies(tmp_path)
    asker = Asker(player)
    answers = asker.ask(queries)
    assert [place for place, answer in enumerate(answers) if answer is None] == [5, 9]
    assert player.notes == ("3 copies of the player died and were replaced.",)
    sentences = dict(asker.failures)
    assert "3 of its copies died on it" in sentences["a poison"] and "signal 9" in sentences["a poison"]
    assert "I do not like this one" in sentences["please fail"]
    assert Asker(player).ask(queries[5:6]) == [None]
    assert player.notes == ("3 copies of the player died and were replaced.",)  # it is known now
    with pytest.raises(PlayerDied, match="considered down"):
        Asker(player).ask(questions(*["fail"] * 6))


def test_a_broken_image_counts_once_for_copies_too():
    broken = [Query(f"What is it, {number}?", BytesImage(b"no image")) for number in range(9)]
    asker = Asker(replicate(f"{HERE}:echo", None, {}, ReplicaSettings(2)))
    whole = {str(place): query for place, query in enumerate([*questions(*plain(9)), *broken])}
    assert len(asker.fill(whole, tolerate=1)) == 9
    assert (asker.errors, asker.failed) == (1, 9)


def test_a_copy_that_grows_is_replaced_between_two_batches(tmp_path):
    player = copies(tmp_path, memory=0.2)
    Asker(player).answers(questions(*["leak"] * 3, *plain(1), *plain(8)))
    assert "grew too large" in player.notes[0]
    assert started(tmp_path) >= 2


def test_what_a_copy_forks_neither_answers_nor_keeps_anybody_waiting(tmp_path):
    asked, harmless = (questions(*words, *plain(8)) for words in (("a fork", "an orphan"), ("a frog", "an orchid")))
    assert Asker(copies(tmp_path)).answers(asked) == list(resolve(BATCHED).answer(harmless))


def test_a_player_that_cannot_be_made_is_told_in_its_own_words(monkeypatch):
    monkeypatch.setattr(pool, "STILLBORN", 1)
    with pytest.raises(PlayerError, match="no weights here"):
        replicate(BATCHED, None, {"start": "fail"}, ReplicaSettings(1))
    with pytest.raises(PlayerDied, match=r"die before they are ready \(signal 9"):
        replicate(BATCHED, None, {"start": "die"}, ReplicaSettings(1))
    with pytest.raises(PlayerError, match="from its name"):
        replicate(resolve("random"), None, {})  # type: ignore[arg-type]


def test_an_exam_with_copies_writes_the_bytes_of_one_without(tmp_path):
    data = squares(8)
    for name, count in (("one", None), ("two", "2")):
        examine(f"{HERE}:echo", data, ["control", "blind"], tmp_path / name, replicas=count)
    for file in ("findings.json", "exam.json", "report.html", "trials/control.parquet", "trials/blind.parquet"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file
    assert json.loads((tmp_path / "two" / "findings.json").read_text())["failed"] == []


def test_a_player_behind_servers_is_copied_by_more_servers():
    with pytest.raises(UsageError, match="URL1,URL2"):
        replicate("openai:m@http://127.0.0.1:1/v1", None, {})


def test_settings_are_read_and_needs_are_declared():
    assert ReplicaSettings.of("4:timeout=60,memory=8") == ReplicaSettings(4, 60.0, 8.0)
    assert ReplicaSettings.of("auto").count is None
    for wrong in ("many", "0", "2:timeout=0", "2:speed=3"):
        with pytest.raises(UsageError):
            ReplicaSettings.of(wrong)
    assert needs_of(BATCHED, {}).memory == 2.0
    assert needs_of("film", {"device": "cuda"}).gpus == 1.0
    assert needs_of("film", {}).gpus == 0.0
