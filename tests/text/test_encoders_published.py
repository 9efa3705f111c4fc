"""The published skip-thoughts files, in small: the same names, layouts and kinds of arrays."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from pfungst.core import DataError
from pfungst.text.encoders import EncoderError, check_encoder, get_encoder, load_published
from pfungst.text.encoders.gru import GRUWeights, last_state
from pfungst.text.encoders.pickled_table import read_table

WORDS = ["<eos>", "UNK", "How", "old", "is", "the", "car", "?", "man", "Is", "smiling", "n't", "word"]


class Python2Pickler(pickle._Pickler):  # type: ignore[name-defined,misc]
    """Writes what Python 2 wrote: byte strings by the opcodes U and T."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

    def save_python2(self, value):
        data = value.encode("latin-1") if isinstance(value, str) else value
        head = b"U" + struct.pack("<B", len(data)) if len(data) < 256 else b"T" + struct.pack("<i", len(data))
        self.write(head + data)
        self.memoize(value)

    dispatch[bytes] = save_python2
    dispatch[str] = save_python2


def python2_bytes(objects: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    pickler = Python2Pickler(buffer, 2)
    pickler.dump(objects)
    return buffer.getvalue().replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


def object_array(table: np.ndarray) -> np.ndarray:
    """Vectors of two shapes, as in the release: trained words (e,), mapped ones (1, e)."""
    objects = np.empty(len(table), object)
    for row, vector in enumerate(table):
        objects[row] = vector.copy() if row % 2 else vector[None].copy()
    return objects


def save_objects(path: Path, table: np.ndarray, writer: str) -> None:
    objects = object_array(table)
    if writer == "python 3":
        np.save(path, objects, allow_pickle=True)
        return
    with open(path, "wb") as file:
        header = {"descr": "|O", "fortran_order": False, "shape": objects.shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(python2_bytes(objects))


def random_gru(rng, e, h):
    shapes = [(e, 2 * h), (h, 2 * h), (e, h), (h, h), (2 * h,), (h,)]
    return GRUWeights(*(rng.standard_normal(shape).astype(np.float32) for shape in shapes))


@pytest.fixture
def release(tmp_path, monkeypatch):
    """A folder as one downloads it, and what is in it."""
    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "dictionary.txt").write_text("\n".join(WORDS) + "\n")
    tables = {name: rng.standard_normal((len(WORDS), 5)).astype(np.float32) for name in ("utable", "btable")}
    for name, table in tables.items():
        save_objects(folder / f"{name}.npy", table, "python 2")
    uni, ahead, behind = random_gru(rng, 5, 8), random_gru(rng, 5, 4), random_gru(rng, 5, 4)
    names = ("W", "U", "Wx", "Ux", "b", "bx")
    history = np.array([{"error": 1.0}], dtype=object)
    np.savez(
        folder / "uni_skip.npz",
        Wemb=tables["utable"],
        history_errs=history,
        **{f"encoder_{n}": getattr(uni, n) for n in names},
    )
    np.savez(
        folder / "bi_skip.npz",
        **{f"encoder_{n}": getattr(ahead, n) for n in names},
        **{f"encoder_r_{n}": getattr(behind, n) for n in names},
    )
    return folder, tables, (uni, ahead, behind)


def by_hand(tables, grus, tokens):
    """One sentence the way the released program encodes it."""
    uni, ahead, behind = grus
    rows = [WORDS.index(token) if token in WORDS else WORDS.index("UNK") for token in tokens]
    one = last_state(uni, tables["utable"][rows][:, None])[0]
    x = tables["btable"][rows][:, None]
    two = np.concatenate([last_state(ahead, x)[0], last_state(behind, x[::-1])[0]])
    return np.concatenate([one / np.linalg.norm(one), two / np.linalg.norm(two)])


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_the_published_files_give_the_published_vectors(release, device):
    folder, tables, grus = release
    encoder = load_published(folder, device=device)
    assert encoder.dim == 16
    rows = encoder.encode(["How old is the car?", "Isn't the zebra smiling?", "car"])
    expected = [["How", "old", "is", "the", "car", "?"], ["Is", "n't", "the", "zebra", "smiling", "?"], ["car"]]
    np.testing.assert_allclose(rows, [by_hand(tables, grus, tokens) for tokens in expected], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), np.sqrt(2), rtol=1e-5)


def test_the_end_of_sentence_word_is_appended_on_request(release):
    folder, tables, grus = release
    encoder = load_published(folder, device="numpy", end_of_sentence=True)
    np.testing.assert_allclose(
        encoder.encode(["old car"])[0], by_hand(tables, grus, ["old", "car", "<eos>"]), atol=1e-5
    )
    assert encoder.fingerprint != load_published(folder, device="numpy").fingerprint


def test_it_is_an_encoder_like_any_other_and_has_a_name(release):
    folder, _, _ = release
    encoder = get_encoder(f"skip-thoughts:{folder}")
    check_encoder(encoder)
    assert encoder.name == "skip-thoughts-published"


@pytest.mark.parametrize("writer", ["python 2", "python 3"])
def test_a_pickled_table_is_read_without_unpickling(writer, tmp_path):
    table = np.random.default_rng(1).standard_normal((40, 7)).astype(np.float32)
    save_objects(tmp_path / "t.npy", table, writer)
    np.testing.assert_array_equal(read_table(tmp_path / "t.npy", 40), table)


def test_our_python_2_pickles_are_real_pickles():
    table = np.random.default_rng(1).standard_normal((4, 100)).astype(np.float32)
    read_back = pickle.loads(python2_bytes(object_array(table)), encoding="latin1")  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(np.concatenate([row.ravel() for row in read_back]), table.ravel())


def test_a_converted_table_is_kept_and_a_plain_one_used_as_it_is(release):
    folder, tables, _ = release
    load_published(folder, device="numpy")
    kept = sorted(Path(os.environ["PFUNGST_CACHE"]).rglob("*.npy"))
    assert len(kept) == 2
    stamp = [one.stat().st_mtime_ns for one in kept]
    load_published(folder, device="numpy")
    assert [one.stat().st_mtime_ns for one in kept] == stamp
    np.save(folder / "utable.npy", tables["utable"])
    again = load_published(folder, device="numpy")
    assert isinstance(again.parts[0].table, np.memmap)
    np.testing.assert_array_equal(again.parts[0].table, tables["utable"])


class Evil:
    """Unpickled, it makes a folder."""

    def __reduce__(self):
        return (os.mkdir, ("pfungst-was-here",))


def evil_rows(rows):
    objects = np.empty(rows, object)
    objects[:] = [Evil()] * rows
    return objects


def nested(rows):
    objects = np.empty(rows, object)
    for row in range(rows):
        objects[row] = {"a": 1}
    return objects


def strings(rows):
    return np.array(["x"] * rows, object)


def ragged(rows):
    objects = np.empty(rows, object)
    for row in range(rows):
        objects[row] = np.zeros(row + 1, np.float32)
    return objects


@pytest.mark.parametrize("make", [evil_rows, nested, strings, ragged])
def test_any_other_pickle_is_refused_with_a_way_out_and_never_run(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "t.npy", make(3), allow_pickle=True)
    with pytest.raises(DataError, match="allow_pickle=True"):
        read_table(tmp_path / "t.npy", 3)
    assert not Path("pfungst-was-here").exists()


@pytest.mark.parametrize("cut", [40, 90, 140, 200, 400, -1])
def test_a_cut_table_is_an_error_with_a_place(cut, tmp_path):
    save_objects(tmp_path / "t.npy", np.ones((9, 7), np.float32), "python 2")
    data = (tmp_path / "t.npy").read_bytes()
    (tmp_path / "t.npy").write_bytes(data[:cut])
    with pytest.raises(DataError):
        read_table(tmp_path / "t.npy", 9)


def test_every_single_flipped_byte_gives_numbers_or_a_data_error(tmp_path):
    path = tmp_path / "t.npy"
    save_objects(path, np.ones((3, 4), np.float32), "python 2")
    good = path.read_bytes()
    start = good.index(b"\x80\x02")
    for place in range(start, len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x41]) + good[place + 1 :])
        with contextlib.suppress(DataError):
            assert read_table(path, 3).shape == (3, 4)


@pytest.mark.parametrize("name", ["dictionary.txt", "utable.npy", "bi_skip.npz"])
def test_a_missing_file_is_named(release, name):
    (release[0] / name).unlink()
    with pytest.raises(EncoderError, match=name):
        load_published(release[0])


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("utable.npy", b"not numpy", "not a numpy file"),
        ("uni_skip.npz", b"not a zip", "cannot be read"),
        ("dictionary.txt", b"one\ntwo\n", "UNK is missing"),
        ("dictionary.txt", b"UNK\n<eos>\n", "each of the 2 words"),
    ],
)
def test_damaged_files_are_errors_with_sentences(release, name, content, sentence):
    (release[0] / name).write_bytes(content)
    with pytest.raises((EncoderError, DataError), match=sentence):
        load_published(release[0])
