"""Whatever a file holds, a load ends with a valid data set or one PfungstError."""

from __future__ import annotations

import copy
import gzip
import json
import os
import tempfile
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pfungst.core import DataError, Dataset, PfungstError, Query
from pfungst.data import check, load, scenes
from pfungst.rows import files
from tests.data import published_formats as make

TEXT = ("cocoqa", "daquar", "mme", "vlmevalkit", "table")
"""Formats that are no JSON files."""
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def assert_valid(data: Dataset) -> None:
    """What every part behind the loader relies on."""
    assert len({example.id for example in data}) == len(data)
    assert len(data.fingerprint) == 64
    for example in data:
        texts = [example.id, example.question, example.image_id, example.answer_type, example.question_type]
        texts += [*example.answers, *example.choices, example.group, example.contrast, example.target or ""]
        assert all(type(text) is str for text in texts)
        "".join(texts).encode("utf-8")
        assert example.question.strip() and example.id
        assert example.target is None or not example.choices or example.target in example.choices
        assert example.program is None or all(isinstance(node["function"], str) for node in example.program)
        Query(example.question, None, example.choices, example.scene).key("player")
        json.dumps(example.program)


def survive(folder: Path, name: str) -> None:
    """Load and check, with and without skipping, with and without the name of the format."""
    before = sorted(path for path in folder.rglob("*"))
    for spec in (f"{name}:{folder}", str(folder)):
        for skip_bad in (False, True):
            for split in (None, "all"):
                try:
                    assert_valid(load(spec, skip_bad=skip_bad, split=split))
                except PfungstError as error:
                    assert 0 < len(str(error)) < 2_000
    try:
        report = check(folder)
        json.dumps(report.as_dict())
        assert str(report)
    except PfungstError:
        pass
    assert sorted(path for path in folder.rglob("*")) == before


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


ODD = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        float("nan"),
        float("inf"),
        10**400,
        "",
        " ",
        "\ud800",
        "\0",
        "x" * 70_000,
        [],
        [[]],
        [None],
        {},
        {"answer": None},
        {"": {}},
        "../../../etc/passwd",
        "1",
        1,
    ]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values inside a JSON value."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


@pytest.mark.parametrize("name", make.ALL)
@given(data=st.data())
@QUICK
def test_damaged_bytes(name: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = make.ALL[name](Path(place))
        file = data.draw(st.sampled_from(files_of(folder)))
        content = bytearray(file.read_bytes())
        kind = data.draw(st.sampled_from(["cut", "change", "insert", "drop", "bom", "crlf", "empty"]))
        at = data.draw(st.integers(0, len(content)))
        if kind == "cut":
            del content[at:]
        elif kind == "change":
            content[at : at + 1] = data.draw(st.binary(min_size=1, max_size=4))
        elif kind == "insert":
            content[at:at] = data.draw(st.binary(min_size=1, max_size=8))
        elif kind == "drop":
            del content[at : at + data.draw(st.integers(1, 40))]
        elif kind == "bom":
            content[:0] = b"\xef\xbb\xbf"
        elif kind == "crlf":
            content = content.replace(b"\n", b"\r\n")
        else:
            content.clear()
        file.write_bytes(bytes(content))
        survive(folder, name)


@pytest.mark.parametrize("name", [name for name in make.ALL if name not in TEXT])
@given(data=st.data())
@QUICK
def test_damaged_structure(name: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = make.ALL[name](Path(place))
        file = data.draw(st.sampled_from(files_of(folder)))
        value = json.loads(file.read_text())
        for _ in range(data.draw(st.integers(1, 3))):
            path = data.draw(st.sampled_from(places(value)))
            parent = value
            for key in path[:-1]:
                parent = parent[key]
            action = data.draw(st.sampled_from(["odd", "drop", "twice"]))
            if action == "odd":
                # A copy: the next damage may be done inside it, and the sample must stay what it is.
                parent[path[-1]] = copy.deepcopy(data.draw(ODD))
            elif action == "drop":
                del parent[path[-1]]
            elif isinstance(parent, list):
                parent.append(copy.deepcopy(parent[path[-1]]))
            if not places(value):
                break
        file.write_text(json.dumps(value))
        survive(folder, name)


@given(st.dictionaries(st.sampled_from(["question", "id", "image", "answers", "choices", "target", "scene"]), ODD))
@QUICK
def test_damaged_rows(row: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = make.jsonl(Path(place))
        with open(folder / "mine.jsonl", "a") as file:
            file.write(json.dumps(row) + "\n")
        survive(folder, "table")


@given(st.lists(st.lists(st.text(max_size=6), max_size=4), max_size=4), st.binary(max_size=20))
@QUICK
def test_damaged_csv(rows: list[list[str]], tail: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        text = "question,answer,choices\na?,x,\n" + "\n".join(",".join(row) for row in rows)
        (Path(place) / "mine.csv").write_bytes(text.encode("utf-8", "replace") + tail)
        survive(Path(place), "table")


@given(data=st.data())
@QUICK
def test_damaged_parquet(data: st.DataObject) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "mine.parquet"
        pq.write_table(pa.Table.from_pylist([{"question": "a?", "answers": ["x", "y"]}] * 3), path)
        content = bytearray(path.read_bytes())
        at = data.draw(st.integers(0, len(content)))
        if data.draw(st.booleans()):
            del content[at:]
        else:
            content[at : at + 1] = data.draw(st.binary(min_size=1, max_size=3))
        path.write_bytes(bytes(content))
        survive(Path(place), "table")


@given(data=st.data(), kind=st.sampled_from(["zip", "gz"]))
@QUICK
def test_damaged_archives(data: st.DataObject, kind: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        source = make.vqa2(Path(place) / "plain")
        folder = Path(place) / "packed"
        folder.mkdir()
        contents = {path.name: path.read_bytes() for path in files_of(source)}
        if kind == "zip":
            make.archive(folder / "packed.zip", contents)
        else:
            for name, content in contents.items():
                (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        file = data.draw(st.sampled_from(files_of(folder)))
        content = bytearray(file.read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(content) - 1))
            if data.draw(st.booleans()):
                content[at] = data.draw(st.integers(0, 255))
            else:
                del content[at + 1 :]
        file.write_bytes(bytes(content))
        survive(folder, "vqa")


@pytest.mark.parametrize("name", make.ALL)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"null", b"[]", b"{}", b"[" * 200_000, b"\0" * 1000, b'"'])
def test_files_that_hold_something_else(tmp_path: Path, name: str, content: bytes) -> None:
    folder = make.ALL[name](tmp_path)
    for file in files_of(folder):
        before = file.read_bytes()
        file.write_bytes(content)
        survive(folder, name)
        file.write_bytes(before)


@pytest.mark.parametrize("name", make.ALL)
def test_texts_of_ten_megabytes(tmp_path: Path, name: str) -> None:
    folder = make.ALL[name](tmp_path)
    file = files_of(folder)[0]
    text = file.read_text()
    word = next(
        word
        for word in ("cup", "red", "cat", "A dog", "Green", "race", "dogs", "sky", "table", "painting", "train")
        if word in text
    )
    file.write_text(text.replace(word, "x" * 10_000_000, 1))
    for skip_bad in (False, True):
        try:
            assert_valid(load(folder, skip_bad=skip_bad))
        except PfungstError as error:
            assert len(str(error)) < 2_000


def test_archive_members_with_names_that_climb_are_read_and_never_written(tmp_path: Path) -> None:
    inside = tmp_path / "deep" / "inside"
    inside.mkdir(parents=True)
    picture = make.picture(tmp_path / "outside.jpg")
    make.vqa2(tmp_path / "plain")
    members: dict[str, str | bytes] = {
        f"../../../{path.name}": path.read_bytes() for path in files_of(tmp_path / "plain")
    }
    members["../../COCO_val2014_000000000042.jpg"] = picture
    members["/etc/COCO_val2014_000000000043.jpg"] = picture
    packed = make.archive(inside / "slip.zip", members)
    before = sorted(tmp_path.rglob("*"))
    data = load(packed)
    assert data[0].target == "cup"
    assert data[0].image is not None and data[0].image.read() == picture
    assert sorted(tmp_path.rglob("*")) == before


def test_a_zip_bomb_is_given_up_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BOMB_FLOOR", 8 << 20)
    bomb = tmp_path / make.VQA2.format("val2014")
    bomb = bomb.with_suffix(".zip")
    with (
        zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(make.VQA2.format("val2014"), "w") as file,
    ):
        file.write(b'{"questions": [')
        for _ in range(64):
            file.write(b" " * (1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="unpacks to more than"):
            load(bomb)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_gzip_bomb_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BOMB_FLOOR", 8 << 20)
    (tmp_path / "mine.jsonl.gz").write_bytes(gzip.compress(b" " * (64 << 20)))
    with pytest.raises(DataError, match="unpacks to more than"):
        load(tmp_path)


def test_a_lying_zip_directory_does_not_lift_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BOMB_FLOOR", 1 << 20)
    packed = make.archive(tmp_path / "lie.zip", {make.VQA2.format("val2014"): b"[" + b" " * (8 << 20)})
    content = packed.read_bytes()
    size = (1 + (8 << 20)).to_bytes(4, "little")
    packed.write_bytes(content.replace(size, (10).to_bytes(4, "little")))
    with pytest.raises(PfungstError):
        load(packed)


def test_an_archive_in_an_archive_is_left_alone(tmp_path: Path) -> None:
    make.vqa2(tmp_path / "plain")
    inner = make.archive(tmp_path / "inner.zip", {"a.json": b"[]"})
    with pytest.raises(DataError, match="no known format"):
        load(make.archive(tmp_path / "outer.zip", {"inner.zip": inner.read_bytes()}))


def test_a_link_that_leads_in_a_circle_ends(tmp_path: Path) -> None:
    make.vqa2(tmp_path)
    try:
        (tmp_path / "again").symlink_to(tmp_path)
    except OSError:
        pytest.skip("no symbolic links here")
    assert len(load(tmp_path)) == 2


def test_a_pipe_among_the_files_is_not_waited_for(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes here")
    os.mkfifo(make.vqa2(tmp_path) / "more_questions.json")
    assert len(load(tmp_path)) == 2
    assert len(load(tmp_path / make.VQA2.format("val2014"))) == 2


def test_ids_that_differ_in_kind_alone_are_one_id(tmp_path: Path) -> None:
    rows = [{"id": 1, "question": "a?"}, {"id": "1", "question": "b?"}, {"id": 1.0, "question": "c?"}]
    make.write(tmp_path / "mine.jsonl", "\n".join(map(json.dumps, rows)))
    with pytest.raises(DataError, match="line 2: the id '1' appears twice"):
        load(tmp_path)
    assert load(tmp_path, skip_bad=True).skipped == 2


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"PK\x05\x06" + b"\0" * 18])
def test_archives_that_are_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.zip").write_bytes(content)
    with pytest.raises(PfungstError):
        load(tmp_path / "data.zip")
    with pytest.raises(PfungstError):
        load(tmp_path)


def test_a_long_line_of_spaces_takes_no_time(tmp_path: Path) -> None:
    line = "what" + " " * 5_000_000 + "in the image3 ?"
    make.write(tmp_path / "qa.894.raw.test.txt", f"{line}\ncup\n")
    assert load(tmp_path)[0].question == "what"


def test_scenes_survive_damage_too(tmp_path: Path) -> None:
    folder = make.clevr(tmp_path)
    file = folder / "scenes" / "CLEVR_val_scenes.json"
    value = json.loads(file.read_text())
    value["scenes"][1] = None
    file.write_text(json.dumps(value))
    with pytest.raises(DataError, match="record 2"):
        scenes(folder)
    assert len(scenes(folder, skip_bad=True)) == 2
