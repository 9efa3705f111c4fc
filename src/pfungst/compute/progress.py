"""How far the work is: a value for programs, a bar for people."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """State of a computation after its latest event."""

    total: int
    done: int
    """Finished shards, those of earlier runs included."""
    reused: int
    """Finished by an earlier run."""
    failed: int
    shard: str = ""
    """The shard the latest event is about; empty at the start."""


ProgressCallback = Callable[[Progress], None]


@contextlib.contextmanager
def progress_bar(description: str) -> Iterator[ProgressCallback]:
    """A rich bar on standard error, as a callback for `run_shards(..., progress=bar)`.

    Where standard error is not a terminal, only the last state is printed.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=None, note="")

        def show(state: Progress) -> None:
            notes = [f"{state.reused} from before"] if state.reused else []
            notes += [f"[red]{state.failed} failed[/red]"] if state.failed else []
            bar.update(task, total=state.total, completed=state.done + state.failed, note=", ".join(notes))

        yield show
