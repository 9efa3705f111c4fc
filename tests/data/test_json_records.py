"""JSON read record by record, against the standard library as the oracle."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.core import DataError
from pfungst.rows import json_records
from pfungst.rows.files import File
from pfungst.rows.json_records import JsonRecords

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
chunks = st.sampled_from([1, 2, 3, 7, 64, 1 << 18])
dumps = st.sampled_from([{}, {"ensure_ascii": False}, {"indent": 1}, {"separators": (",", ":")}])


class Window:
    """Reads through a window of so many characters, and gives the window back afterwards."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __enter__(self) -> None:
        self._before, json_records.CHUNK = json_records.CHUNK, self._size

    def __exit__(self, *_: object) -> None:
        json_records.CHUNK = self._before


def records(text: str | bytes, key: str = "questions", chunk: int = 1 << 18) -> tuple[list[Any], dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder, Window(chunk):
        path = Path(folder) / "file.json"
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        reader = JsonRecords(File(path))
        return list(reader.list(key)), reader.header


def members(text: str, chunk: int = 1 << 18) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, Window(chunk):
        path = Path(folder) / "file.json"
        path.write_text(text, encoding="utf-8")
        return dict(JsonRecords(File(path)).members())


@given(st.lists(values, max_size=6), st.dictionaries(st.text("abc", min_size=1), values, max_size=3), chunks, dumps)
@settings(max_examples=80, deadline=None)
def test_the_records_are_those_of_json_loads(
    items: list[Any], header: dict[str, Any], chunk: int, style: dict[str, Any]
) -> None:
    before, after = dict(list(header.items())[:1]), dict(list(header.items())[1:])
    text = json.dumps({**before, "questions": items, **after}, **style)
    found, seen = records(text, chunk=chunk)
    assert found == json.loads(text)["questions"]
    assert seen == {name: value for name, value in header.items() if not isinstance(value, list)}


@given(st.lists(values, max_size=6), chunks, dumps)
@settings(max_examples=40, deadline=None)
def test_a_bare_list_is_read_likewise(items: list[Any], chunk: int, style: dict[str, Any]) -> None:
    assert records(json.dumps(items, **style), chunk=chunk)[0] == items


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), values, max_size=5), chunks, dumps)
@settings(max_examples=40, deadline=None)
def test_the_members_are_those_of_json_loads(value: dict[str, Any], chunk: int, style: dict[str, Any]) -> None:
    assert members(json.dumps(value, **style), chunk) == value


@given(st.lists(values, min_size=1, max_size=4), st.data(), chunks)
@settings(max_examples=80, deadline=None)
def test_no_proper_beginning_of_a_file_passes_for_the_whole(items: list[Any], data: st.DataObject, chunk: int) -> None:
    text = json.dumps({"questions": items}).encode()
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(DataError):
        records(text[:cut], chunk=chunk)


@given(st.binary(max_size=40), chunks)
@settings(max_examples=80, deadline=None)
def test_any_bytes_are_records_or_a_data_error(content: bytes, chunk: int) -> None:
    for text in (content, b'{"questions": [' + content, b"[1, " + content + b"]"):
        try:
            records(text, chunk=chunk)
        except DataError as error:
            assert "file.json" in str(error)


@pytest.mark.parametrize("chunk", [1, 16, 1 << 18])
def test_numbers_are_never_cut_by_the_window(chunk: int) -> None:
    assert records("[1234567890, -1.5e300,12]", chunk=chunk)[0] == [1234567890, -1.5e300, 12]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("   ", "the file is empty"),
        ("5", "expected a list or an object here"),
        ("{5: 1}", "a name in double quotes"),
        ('{"questions" [1]}', "a colon"),
        ("[1 2]", "a comma"),
        ("[1, 2", "ends too early"),
        ('[{"a": 1', "middle of this record"),
        ("[1] x", "more text follows"),
        ('{"a": 1}', 'no list "questions"'),
        ('{"questions": 5}', 'no list "questions"'),
        ("[" * 100_000, "nested too deeply"),
        ('{"questions": [' + "[" * 100_000 + "]" * 100_000 + "]}", "nested too deeply"),
        ('{"info": ' + '{"a":' * 50_000, "nested too deeply"),
        ("[" + "9" * 5_000 + "]", "cannot be read"),
        ('["\\ud8', "not JSON"),
        ("[nul]", "not JSON"),
    ],
)
def test_damage_is_a_data_error_that_names_the_file(text: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"file\.json.*{message}"):
        records(text)


@pytest.mark.parametrize("chunk", [1, 5, 1 << 18])
def test_damage_is_named_with_its_record(chunk: int) -> None:
    with pytest.raises(DataError, match=r"file\.json, record 2: "):
        records('{"questions": [{"a": "über"}, {"b": x}]}', chunk=chunk)


def test_a_byte_order_mark_and_windows_line_ends_are_harmless() -> None:
    assert records(b'\xef\xbb\xbf{\r\n"questions":\r\n[1,\r\n2]\r\n}\r\n')[0] == [1, 2]


def test_utf16_is_refused_with_advice() -> None:
    with pytest.raises(DataError, match="UTF-16"):
        records('{"questions": []}'.encode("utf-16"))


def test_damage_at_the_beginning_of_a_long_file_is_found_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    with open(path, "wb") as file:
        file.write(b'{"questions": [{"a": oops}')
        file.truncate(1 << 33)  # sparse: eight GiB that would take long to read
    with pytest.raises(DataError, match="record 1: "):
        list(JsonRecords(File(path)).list("questions"))


def test_a_record_without_an_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_records, "MAX_RECORD", 1 << 20)
    path = tmp_path / "file.json"
    path.write_bytes(b'["' + b"x" * (8 << 20))
    with pytest.raises(DataError, match="longer than 1,048,576 characters"):
        list(JsonRecords(File(path)).list("questions"))
