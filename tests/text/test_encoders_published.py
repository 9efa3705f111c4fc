"""The published skip-thoughts files, in small: the same names, layouts and kinds of arrays."""

from __future__ import annotations

import io
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from pfungst.core import DataError
from pfungst.text.encoders import EncoderError, check_encoder, get_encoder, load_published
from pfungst.text.encoders.skip_thoughts import GRUWeights, last_state

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
def release(tmp_path):
    """A folder as one downloads it, the tables converted, and what is in it."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "dictionary.txt").write_text("\n".join(WORDS) + "\n")
    tables = {name: rng.standard_normal((len(WORDS), 5)).astype(np.float32) for name in ("utable", "btable")}
    for name, table in tables.items():
        np.save(folder / f"{name}.npy", table)
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


def test_it_is_an_encoder_like_any_other_and_has_a_name(release):
    folder, _, _ = release
    encoder = get_encoder(f"skip-thoughts:{folder}")
    check_encoder(encoder)
    assert encoder.name == "skip-thoughts-published"


def test_our_python_2_pickles_are_real_pickles():
    table = np.random.default_rng(1).standard_normal((4, 100)).astype(np.float32)
    read_back = pickle.loads(python2_bytes(object_array(table)), encoding="latin1")  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(np.concatenate([row.ravel() for row in read_back]), table.ravel())


@pytest.mark.parametrize("writer", ["python 2", "python 3"])
def test_a_pickled_table_is_refused_with_the_line_that_converts_it(writer, release):
    folder, tables, _ = release
    save_objects(folder / "utable.npy", tables["utable"], writer)
    with pytest.raises(DataError, match="holds Python objects") as refusal:
        load_published(folder)
    line = str(refusal.value).partition("convert it once: ")[2].rstrip(".")
    subprocess.run([sys.executable, "-c", f"import numpy; {line}"], check=True)
    again = load_published(folder, device="numpy")
    assert isinstance(again.parts[0].table, np.memmap)
    np.testing.assert_array_equal(again.parts[0].table, tables["utable"])


class Evil:
    """Unpickled, it makes a folder."""

    def __reduce__(self):
        return (os.mkdir, ("pfungst-was-here",))


def test_a_pickle_is_never_run(release, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    objects = np.empty(len(WORDS), object)
    objects[:] = [Evil()] * len(WORDS)
    np.save(release[0] / "btable.npy", objects, allow_pickle=True)
    with pytest.raises(DataError, match="allow_pickle=True"):
        load_published(release[0])
    assert not Path("pfungst-was-here").exists()


@pytest.mark.parametrize("name", ["dictionary.txt", "utable.npy", "bi_skip.npz"])
def test_a_missing_file_is_named(release, name):
    (release[0] / name).unlink()
    with pytest.raises(EncoderError, match=name):
        load_published(release[0])


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("utable.npy", b"not numpy", "no numpy file"),
        ("uni_skip.npz", b"not a zip", "cannot be read"),
        ("dictionary.txt", b"one\ntwo\n", "UNK is missing"),
        ("dictionary.txt", b"UNK\n<eos>\n", "each of the 2 words"),
    ],
)
def test_damaged_files_are_errors_with_sentences(release, name, content, sentence):
    (release[0] / name).write_bytes(content)
    with pytest.raises((EncoderError, DataError), match=sentence):
        load_published(release[0])
