"""Encoders by name (`skip-thoughts`, `minilm`, `words:FILE`, ...), and `encode`: sentences to vectors, kept on disk.

Each sentence is encoded once. Vectors are found again by content: the encoder's fingerprint and the sentences
themselves.

A list of sentences becomes one `.npy` file that is opened as a memory map; `.crc` beside it holds its checksum, and
without the right one it is made again. While it grows it is a `.part` file with a count of finished rows beside it, so
that a killed run goes on where it was.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from pfungst.core.files import cache_root, only_here, write_atomic
from pfungst.core.registry import Registry
from pfungst.text.encoders.base import Encoder, EncoderError, FloatArray, best_device, check_sentences

DEFAULT = "skip-thoughts"
EMBEDDED = Path(__file__).parent / "weights" / "questions.safetensors"


def _skip_thoughts(argument: str) -> Encoder:
    """The default: our own compact model, 512-d; `:FOLDER` for the published one, `:FILE` for yours."""
    from pfungst.text.encoders.skip_thoughts import SkipThoughts, load_published

    path = Path(argument) if argument else EMBEDDED
    return load_published(path) if path.is_dir() else SkipThoughts.load(path)


def _minilm(argument: str) -> Encoder:
    """all-MiniLM-L6-v2, 384-d."""
    from pfungst.text.encoders.sentence_transformers import minilm

    return minilm(argument, device=best_device())


def _sentence_transformers(argument: str) -> Encoder:
    """`sentence-transformers:NAME`: any model of that library."""
    from pfungst.text.encoders.sentence_transformers import SentenceTransformer

    return SentenceTransformer(_required("sentence-transformers", argument, "NAME"), best_device())


def _words(argument: str) -> Encoder:
    """`words:FILE`: averaged word vectors."""
    from pfungst.text.encoders.word_vectors import AveragedWords, WordVectors

    return AveragedWords(WordVectors.read(_required("words", argument, "FILE")))


def _tfidf(argument: str) -> Encoder:
    """TF-IDF over words and word pairs, 2048-d."""
    from pfungst.text.encoders.word_vectors import TfIdf, load_counts

    if not argument:
        return load_counts()
    try:
        lines = Path(argument).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise EncoderError(f"{argument}: the corpus of TF-IDF cannot be read ({error}).") from error
    return TfIdf.fit([line for line in lines if line.strip()])


def _required(name: str, argument: str, what: str) -> str:
    if not argument:
        raise EncoderError(f"The encoder {name} needs to know which: {name}:{what}.")
    return argument


_BUILTIN: dict[str, Callable[[str], Encoder]] = {
    "skip-thoughts": _skip_thoughts,
    "minilm": _minilm,
    "sentence-transformers": _sentence_transformers,
    "words": _words,
    "tfidf": _tfidf,
}
"""name -> factory, called with what follows the colon (empty if nothing does)."""
ENCODERS = Registry("encoder", "pfungst.encoders", _BUILTIN, EncoderError)


def get_encoder(name: str | Encoder | None = DEFAULT) -> Encoder:
    """An encoder by name; the default where the name is empty or None. An object is checked and given back.

    | name | what |
    |---|---|
    | `skip-thoughts` | the embedded default, see docs/reference/encoders.md |
    | `skip-thoughts:FILE` | a file like the embedded one (safetensors) |
    | `skip-thoughts:FOLDER` | the published 4800-dimensional one |
    | `minilm`, `minilm:FOLDER` | all-MiniLM-L6-v2, 384 dimensions |
    | `sentence-transformers:NAME` | any model of that library |
    | `words:FILE` | averaged word vectors (word2vec, GloVe, npz) |
    | `tfidf`, `tfidf:FILE` | TF-IDF; frequencies of real questions, or of the lines of FILE |

    Other packages add theirs as entry points of the group `pfungst.encoders`: a callable that takes what follows the
    colon and returns an `Encoder`.
    """
    if name is not None and not isinstance(name, str):
        if not isinstance(name, Encoder):
            raise EncoderError(f"{type(name).__name__} is no encoder: one has name, fingerprint, dim and encode.")
        return name
    name = name or DEFAULT
    argument = name.partition(":")[2]
    stamp = None
    with contextlib.suppress(OSError, ValueError):
        if argument:
            status = Path(argument).stat()
            stamp = status.st_mtime_ns, status.st_size
    return _load(name, stamp)


@lru_cache(maxsize=4)
def _load(name: str, stamp: tuple[int, int] | None) -> Encoder:
    """Loaded once, and again when its file (`stamp`) has changed."""
    kind, _, argument = name.partition(":")
    encoder = ENCODERS.get(kind)(argument)
    if not isinstance(encoder, Encoder):
        raise EncoderError(f"What makes the encoder {kind} returned none (name, fingerprint, dim, encode).")
    return encoder


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
