"""Tensors on disk, as safetensors: nothing in such a file can run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import safetensors
from safetensors.torch import load, save
from torch import Tensor

from pfungst.core import DataError
from pfungst.core.files import write_atomic
from pfungst.core.seal import read_sealed, seal


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write the tensors with a checksum; the file is either whole or not there."""
    # Cloned: the format refuses tensors that share memory, as tied weights do.
    dense = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    write_atomic(path, seal(save(dense, dict(metadata) if metadata else None)))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a file, on the CPU. Raises DataError where it is no such file, or damaged."""
    try:
        content, metadata = read_sealed(path)
        return load(content), metadata
    except OSError as error:
        raise DataError.at(path, "", "the weights cannot be read.", "Check the path.") from error
    except safetensors.SafetensorError as error:
        problem = f"this is not a safetensors file, or a damaged one: {error}."
        raise DataError.at(path, "", problem, "Download or train it again.") from error


@contextmanager
def reading_record(path: Path, what: str, hint: str = "", part: str = "") -> Iterator[None]:
    """A DataError where there is no `what` at the path, or the part of it that is read is damaged."""
    try:
        yield
    except OSError as error:
        raise DataError.at(path, "", f"there is no {what} here.", hint) from error
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        raise DataError.at(path, "", f"the {part or what} is damaged ({error!r:.80}).") from error
