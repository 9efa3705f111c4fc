"""`encode`: sentences to vectors, each sentence once, remembered on disk.

Vectors are found again by content: the encoder's fingerprint and the sentences themselves.

A list of sentences becomes one `.npy` file that is opened as a memory map; `.crc` beside it holds its checksum, and
without the right one it is made again. While it grows it is a `.part` file with a count of finished rows beside it, so
that a killed run goes on where it was.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from pfungst.core.files import cache_root, only_here, write_atomic
from pfungst.text.encoders.base import Encoder, EncoderError, FloatArray, check_sentences
from pfungst.text.encoders.registry import DEFAULT, get_encoder

CHUNK = 2048
"""Sentences between two points a run can resume from."""
SMALLEST = 32
"""Shorter lists are encoded faster than they are looked up."""

Progress = Callable[[int, int], None]
"""Called with (sentences encoded, sentences in all)."""


def encode(
    sentences: Sequence[str],
    encoder: str | Encoder = DEFAULT,
    *,
    cache: bool = True,
    progress: Progress | None = None,
) -> FloatArray:
    """Vectors (sentences, dim), float32, one row a sentence, in order.

    `encoder` is a name for `get_encoder` or any object with `name`, `fingerprint`, `dim` and `encode`. Lists are kept
    in the cache folder (`$PFUNGST_CACHE`, else the user's) under their content, and come back as read-only memory maps;
    a run that was killed goes on where it was. Vectors are as the encoder gives them: scale them to length 1 for
    cosines.

    A sentence without words gives a row of zeros. Something that is not text raises DataError with its position.
    """
    chosen = get_encoder(encoder)
    checked = check_sentences(sentences)
    distinct = list(dict.fromkeys(checked))
    if cache and len(distinct) >= SMALLEST:
        rows = cached(chosen, distinct, progress)
    else:
        rows = encode_checked(chosen, distinct)
    if len(distinct) == len(checked):
        return rows
    where = {sentence: row for row, sentence in enumerate(distinct)}
    picked: FloatArray = rows[np.array([where[sentence] for sentence in checked], dtype=np.intp)]
    return picked


def content_key(encoder: Encoder, sentences: Sequence[str]) -> str:
    content = hashlib.sha256(f"vectors-1\n{encoder.fingerprint}\n{encoder.dim}\n".encode())
    for sentence in sentences:
        data = sentence.encode("utf-8", "surrogatepass")
        # The length keeps ["ab"] and ["a", "b"] apart.
        content.update(f"{len(data)}\n".encode())
        content.update(data)
    return content.hexdigest()


def cached(encoder: Encoder, sentences: Sequence[str], progress: Progress | None = None) -> FloatArray:
    """Vectors of `sentences` as a read-only memory map, encoded only if they are not on disk yet.

    Where the cache folder cannot be written, the vectors are simply calculated.
    """
    folder = cache_root() / "vectors" / re.sub(r"[^A-Za-z0-9._+-]", "_", encoder.name)[:80]
    file = folder / f"{content_key(encoder, sentences)}.npy"
    shape = (len(sentences), encoder.dim)
    found = _open(file, shape)
    if found is not None:
        return found
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with only_here(file.with_suffix(".part")):
            found = _open(file, shape)  # Somebody else may have finished it meanwhile.
            if found is None:
                _fill(encoder, sentences, file, progress)
                found = _open(file, shape)
    except OSError:
        found = None
    return encode_checked(encoder, sentences) if found is None else found


def encode_checked(encoder: Encoder, sentences: Sequence[str]) -> FloatArray:
    """What the encoder says, if it is what an encoder may say."""
    rows = encoder.encode(sentences)
    if np.shape(rows) != (len(sentences), encoder.dim):
        raise EncoderError(
            f"The encoder {encoder.name} returned an array of shape {np.shape(rows)} for {len(sentences)} sentences, "
            f"not ({len(sentences)}, {encoder.dim})."
        )
    rows = np.asarray(rows, dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        sentence = sentences[int(bad[0])]
        raise EncoderError(f"The encoder {encoder.name} returned NaN or infinity for {sentence[:60]!r}.")
    return rows


def _open(file: Path, shape: tuple[int, int]) -> FloatArray | None:
    try:
        rows: FloatArray = np.load(file, mmap_mode="r", allow_pickle=False)
        known = file.with_suffix(".crc").read_text()
    except (OSError, ValueError, EOFError):
        return None
    whole = rows.shape == shape and rows.dtype == np.float32 and rows.flags.c_contiguous
    return rows if whole and known == _checksum(rows) else None


def _checksum(rows: FloatArray) -> str:
    """A gigabyte takes a second; a flipped bit on the disk would give another ranking."""
    return f"{zlib.crc32(rows.data):08x}"


def _fill(encoder: Encoder, sentences: Sequence[str], file: Path, progress: Progress | None) -> None:
    part, count = file.with_suffix(".part"), file.with_suffix(".rows")
    shape = (len(sentences), encoder.dim)
    begun = _begun(part, count, shape)
    rows = np.lib.format.open_memmap(part, mode="r+" if begun else "w+", dtype=np.float32, shape=shape)
    for start in range(begun, len(sentences), CHUNK):
        chunk = sentences[start : start + CHUNK]
        rows[start : start + len(chunk)] = encode_checked(encoder, chunk)
        if len(sentences) > CHUNK:
            rows.flush()
            count.write_text(f"{start + len(chunk)}\n")
        if progress is not None:
            progress(start + len(chunk), len(sentences))
    rows.flush()
    write_atomic(file.with_suffix(".crc"), _checksum(rows).encode())
    del rows
    with open(part, "rb+") as written:
        os.fsync(written.fileno())
    part.replace(file)
    count.unlink(missing_ok=True)


def _begun(part: Path, count: Path, shape: tuple[int, int]) -> int:
    """Rows a killed run has left. A count that was cut short by the kill does not end with a newline."""
    try:
        text = count.read_text()
        size = part.stat().st_size
    except OSError:
        return 0
    whole = size > shape[0] * shape[1] * 4
    return int(text) if whole and re.fullmatch(r"\d+\n", text) and int(text) <= shape[0] else 0
