"""`run_shards`: outputs, resumption, failures, on this machine."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfungst.compute import (
    ComputeError,
    Shard,
    ShardsFailed,
    make_shards,
    run_shards,
    split_range,
)
from pfungst.core import DataError, PfungstError
from pfungst.core.files import write_atomic
from tests.compute import compute_jobs as jobs


class Seen(list):
    """Remembers what a progress callback was told."""

    def __call__(self, what, done, total):
        self.append((what, done, total))


def contents(files: list[Path]) -> list[bytes]:
    return [file.read_bytes() for file in files]


def lines(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []


@pytest.mark.parametrize("work", [jobs.draw, jobs.draw_to_file])
@pytest.mark.parametrize(("on", "workers"), [("local", None), ("processes", 1), ("processes", 3)])
def test_bytes_are_the_same_on_every_backend_and_any_number_of_workers(work, on, workers, tmp_path):
    shards = make_shards(range(7), seed=5)
    files = run_shards(work, shards, tmp_path, on=on, workers=workers)
    assert [file.name for file in files] == [f"part-{i:05d}.bin" for i in range(7)]
    assert contents(files) == [jobs.draw(shard) for shard in shards]


def test_a_shard_draws_the_child_of_the_seed_with_its_index():
    expected = np.random.default_rng(np.random.SeedSequence(9).spawn(5)[4]).integers(0, 2**62)
    assert Shard(4, "x", seed=9).rng().integers(0, 2**62) == expected


def test_finished_shards_are_not_done_again(tmp_path):
    log = tmp_path / "log"
    shards = make_shards([{"log": str(log)}] * 5)
    first = run_shards(jobs.log_and_draw, shards, tmp_path / "out")
    stamps = [file.stat().st_mtime_ns for file in first]
    again = run_shards(jobs.log_and_draw, shards, tmp_path / "out", on="processes")
    assert len(lines(log)) == 5
    assert stamps == [file.stat().st_mtime_ns for file in again]


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "record", "record of another type"])
def test_a_damaged_output_is_done_again_and_only_that(damage, tmp_path):
    log = tmp_path / "log"
    shards = make_shards([{"log": str(log)}] * 4)
    files = run_shards(jobs.log_and_draw, shards, tmp_path / "out")
    good = contents(files)
    victim = files[2]
    if damage == "flip":
        victim.write_bytes(bytes([good[2][0] ^ 1]) + good[2][1:])
    elif damage == "cut":
        os.truncate(victim, 10)
    elif damage == "remove":
        victim.unlink()
    elif damage == "record":
        (tmp_path / "out" / ".done" / f"{victim.name}.json").write_text("{")
    else:
        (tmp_path / "out" / ".done" / f"{victim.name}.json").write_text("[1]")
    assert contents(run_shards(jobs.log_and_draw, shards, tmp_path / "out")) == good
    assert lines(log)[4:] == [shards[2].name]


@pytest.mark.parametrize("change", ["payload", "seed", "version"])
def test_another_payload_seed_or_version_is_another_output(change, tmp_path):
    run_shards(jobs.draw, make_shards([1, 2], seed=1), tmp_path, version="a")
    shards = make_shards([1, 9] if change == "payload" else [1, 2], seed=2 if change == "seed" else 1)
    seen = Seen()
    files = run_shards(jobs.draw, shards, tmp_path, version="b" if change == "version" else "a", progress=seen)
    assert contents(files) == [jobs.draw(shard) for shard in shards]
    assert seen[0] == (("shards · 1 from before", 1, 2) if change == "payload" else ("shards", 0, 2))


@pytest.mark.parametrize("on", ["local", "processes"])
def test_a_failing_shard_is_named_and_the_rest_is_kept(on, tmp_path):
    shards = make_shards(range(6))
    with pytest.raises(ShardsFailed, match=r"part-00003\.bin: ValueError: three is a bad number") as caught:
        run_shards(jobs.fail_on_three, shards, tmp_path, on=on, workers=2)
    assert [one.name for one in caught.value.failures] == ["part-00003.bin"]
    assert "fail_on_three" in caught.value.failures[0].details
    assert isinstance(caught.value, PfungstError)
    seen = Seen()
    run_shards(jobs.draw, shards, tmp_path, progress=seen)
    assert seen == [("shards · 5 from before", 5, 6), ("shards · 5 from before", 6, 6)]


def test_progress_counts_up_to_the_total(tmp_path):
    seen = Seen()
    run_shards(jobs.draw, make_shards(range(3)), tmp_path, progress=seen, what="ranking")
    assert seen == [("ranking", done, 3) for done in range(4)]


def test_progress_counts_what_failed(tmp_path):
    seen = Seen()
    with pytest.raises(ShardsFailed):
        run_shards(jobs.fail_on_three, make_shards(range(5)), tmp_path, progress=seen, retries=1)
    assert seen[3:] == [
        ("shards", 3, 5),
        ("shards · 1 to be tried again", 3, 5),
        ("shards · 1 to be tried again", 4, 5),
        ("shards · 1 failed", 5, 5),
    ]


@pytest.mark.parametrize("on", ["local", "processes"])
def test_an_error_is_tried_again_after_all_others_and_gives_the_same_bytes(on, tmp_path):
    shards = make_shards([{"marks": str(tmp_path), "errors": 2 if i == 1 else 0} for i in range(3)])
    files = run_shards(jobs.fail_some_times, shards, tmp_path / "out", on=on, workers=1)
    assert contents(files) == [jobs.draw(shard) for shard in shards]
    assert len(list(tmp_path.glob("1-*"))) == 2
    shards = make_shards([{"marks": str(tmp_path), "errors": 9}])
    with pytest.raises(ShardsFailed, match=r"part-00000\.bin: OSError: database is locked \(tried 3 times\)"):
        run_shards(jobs.fail_some_times, shards, tmp_path / "out", on=on)


def test_a_sentence_about_bad_input_is_not_tried_again(tmp_path):
    tries = []

    def refuse(shard: Shard) -> bytes:
        tries.append(shard.name)
        raise DataError("line 3 has no question.")

    with pytest.raises(ShardsFailed, match=r"line 3 has no question\.$"):
        run_shards(refuse, make_shards([1]), tmp_path)
    assert len(tries) == 1


def test_the_bar_prints_the_last_state_where_there_is_no_terminal(tmp_path, capfd):
    from pfungst.cli.show import progress_bar

    with progress_bar() as bar:
        run_shards(jobs.draw, make_shards(range(3)), tmp_path, progress=bar, what="ranking")
    error = capfd.readouterr().err
    assert "ranking" in error
    assert "3/3" in error


def test_long_work_says_how_far_it_is_in_a_log_file_too(monkeypatch, capfd):
    from pfungst.cli import show

    now = [0.0]
    monkeypatch.setattr(show, "monotonic", lambda: now[0])
    with show.progress_bar() as bar:
        for done, second in enumerate((10, 29, 31, 45, 70)):
            now[0] = second
            bar("asking [1]", 1000 * done, 5000)
        assert capfd.readouterr().err.splitlines() == ["asking [1]: 2,000 of 5,000", "asking [1]: 4,000 of 5,000"]


def test_no_shards_give_no_files(tmp_path):
    assert run_shards(jobs.draw, [], tmp_path, on="processes") == []


def test_a_second_run_in_the_same_folder_is_refused(tmp_path):
    def intrude(shard: Shard) -> bytes:
        with pytest.raises(ComputeError, match="Another run is working"):
            run_shards(jobs.draw, make_shards([1]), tmp_path)
        return b""

    run_shards(intrude, make_shards([0]), tmp_path)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"on": "moon"}, "cannot run on 'moon'"),
        ({"on": "5"}, "cannot run on '5'"),
        ({"workers": 0}, "At least one worker"),
        ({"retries": -1}, "cannot be negative"),
        ({"shards": make_shards([1, 2], name="same")}, "Two shards are named same"),
        ({"shards": make_shards([1], name="../up")}, "plain file name"),
        ({"shards": make_shards([1], name=".done")}, "plain file name"),
        ({"shards": make_shards([{1, 2}])}, "cannot be written as JSON"),
        ({"work": lambda shard: b"", "on": "processes"}, "top of a module"),
    ],
)
def test_bad_arguments_are_refused_with_a_sentence(arguments, sentence, tmp_path):
    call = {"work": jobs.draw, "shards": make_shards([1])} | arguments
    with pytest.raises(ComputeError, match=sentence):
        run_shards(call.pop("work"), call.pop("shards"), tmp_path, **call)


@pytest.mark.parametrize(
    ("work", "sentence"),
    [(lambda shard: "text", "must return bytes, not str"), (lambda shard, path: None, "without writing its output")],
)
def test_work_that_gives_no_output_is_a_failure_with_a_sentence(work, sentence, tmp_path):
    with pytest.raises(ShardsFailed, match=sentence):
        run_shards(work, make_shards([1]), tmp_path)


def test_a_partial_with_settings_is_sent_to_processes(tmp_path):
    files = run_shards(functools.partial(scaled, factor=3), make_shards([2, 5]), tmp_path, on="processes")
    assert [json.loads(file.read_bytes()) for file in files] == [6, 15]


def scaled(shard: Shard, *, factor: int) -> bytes:
    return json.dumps(shard.payload * factor).encode()


@given(st.integers(0, 500), st.integers(1, 60))
def test_split_range_covers_everything_once(count, size):
    covered = [i for piece in split_range(count, size) for i in range(piece["start"], piece["stop"])]
    assert covered == list(range(count))


def test_split_range_refuses_empty_pieces():
    with pytest.raises(ComputeError, match="at least one item"):
        split_range(10, 0)


def test_write_atomic_replaces_and_leaves_nothing_else(tmp_path):
    write_atomic(tmp_path / "a", b"one")
    write_atomic(tmp_path / "a", b"two")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("a", b"two")]


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    write_atomic(tmp_path / "a", b"one")
    with pytest.raises(TypeError):
        write_atomic(tmp_path / "a", "not bytes")  # type: ignore[arg-type]
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("a", b"one")]
