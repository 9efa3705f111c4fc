"""The published skip-thoughts model: 2400 uni-skip and 2400 bi-skip dimensions, 930,911 words."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import numpy as np

from pfungst.core import DataError
from pfungst.core.files import cache_root, replacing
from pfungst.text.encoders.base import EncoderError, FloatArray, best_device
from pfungst.text.encoders.gru import GRUWeights
from pfungst.text.encoders.pickled_table import read_table
from pfungst.text.encoders.skip_thoughts import Part, SkipThoughts

FILES = ("dictionary.txt", "utable.npy", "btable.npy", "uni_skip.npz", "bi_skip.npz")
UNKNOWN, END = "UNK", "<eos>"


def load_published(folder: str | Path, *, device: str | None = None, end_of_sentence: bool = False) -> SkipThoughts:
    """Load the five published files (`FILES`) from one folder; the `.pkl` files beside them are not read.

    Vectors have 4800 dimensions and length sqrt 2 (two parts of length 1), as in the papers. `end_of_sentence` appends
    `<eos>` to every sentence, which its authors advise for sentences without final punctuation. `device`: a torch
    device, or `numpy`; by default the GPU, else torch on the CPU, else numpy.
    """
    home = Path(folder)
    missing = [name for name in FILES if not (home / name).is_file()]
    if missing:
        raise EncoderError(
            f"{home}: the skip-thoughts model is not complete; {', '.join(missing)} missing. All of "
            f"{', '.join(FILES)} must be in one folder."
        )
    words = [line.strip() for line in (home / "dictionary.txt").read_text("utf-8").splitlines()]
    # The released program keeps the last of two equal words.
    vocabulary = {word: row for row, word in enumerate(words)}
    for word in (UNKNOWN, END):
        if word not in vocabulary:
            raise EncoderError(f"{home / 'dictionary.txt'}: the word {word} is missing.")
    uni = Part(_table(home / "utable.npy", len(words)), _gru(home / "uni_skip.npz", "encoder"))
    both = _gru(home / "bi_skip.npz", "encoder"), _gru(home / "bi_skip.npz", "encoder_r")
    bi = Part(_table(home / "btable.npy", len(words)), *both)
    for part, name in ((uni, "utable.npy"), (bi, "btable.npy")):
        if part.table.shape[1] != part.forward.W.shape[0]:
            raise EncoderError(
                f"{home / name}: words have {part.table.shape[1]} numbers, not {part.forward.W.shape[0]}."
            )
    return SkipThoughts(
        parts=(uni, bi),
        vocabulary=vocabulary,
        tokens="penn",
        unknown=vocabulary[UNKNOWN],
        end=vocabulary[END] if end_of_sentence else None,
        reset_after=True,
        name="skip-thoughts-published",
        source=_content([home / name for name in FILES]),
        device=device or best_device(),
    )


def _gru(path: Path, prefix: str) -> GRUWeights:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return GRUWeights.read(archive, f"{prefix}_", f"{path}, {prefix}")
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise EncoderError(f"{path}: the weights {prefix}_* cannot be read ({error}).") from error


def _table(path: Path, rows: int) -> FloatArray:
    """Word vectors as a memory map. A table of objects is first converted, once, into the cache folder."""
    try:
        table: FloatArray = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:  # Objects, or no numpy file at all, which the other reader will say.
        table = _converted(path, rows)
    except (OSError, EOFError) as error:
        raise DataError.at(path, "", f"the file cannot be read ({error}).") from error
    if table.ndim != 2 or table.dtype.kind != "f" or len(table) != rows:
        raise DataError.at(path, "", f"one vector for each of the {rows} words of dictionary.txt is needed.")
    return table


def _converted(path: Path, rows: int) -> FloatArray:
    target = cache_root() / "skip-thoughts" / f"{_content([path])}.npy"
    if not target.is_file():
        table = read_table(path, rows)
        try:
            with replacing(target) as temporary, open(temporary, "wb") as file:
                np.save(file, table, allow_pickle=False)
        except OSError:
            return table
    return np.load(target, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]


def _content(paths: list[Path]) -> str:
    """Names the content: sizes, and 64 pieces of 64 KiB over each file (the tables have 2 GB)."""
    content = hashlib.sha256()
    for path in paths:
        size = path.stat().st_size
        content.update(f"{path.name} {size}\n".encode())
        with open(path, "rb") as file:
            for place in range(64):
                file.seek(max(0, size - 65536) * place // 63)
                content.update(file.read(65536))
    return content.hexdigest()[:16]
