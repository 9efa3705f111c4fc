"""Tables, JSON and progress, the same for every command."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO

from pfungst.core import Progress
from pfungst.core.files import jsonable
from pfungst.core.types import no_progress

if TYPE_CHECKING:
    from pathlib import Path

    from pfungst.core import Table


_MESSAGES: list[str] = []
"""What the package had to say during this command."""


_TURNING = (0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""Signs that turn the order of what follows, or end a line."""
_CONTROLS = {code: f"\\u{code:04x}" for code in (*range(0x20), *range(0x7F, 0xA0), *_TURNING) if code != ord("\n")}
"""What a terminal would obey, and how it is shown: as JSON spells it."""


def visible(text: object) -> str:
    """A text as it may be printed: control characters are shown, but for ends of lines and tabs, which are blanks."""
    return str(text).replace("\t", "    ").translate(_CONTROLS).encode(errors="backslashreplace").decode()


def say(*things: object, end: str = "\n", file: TextIO | None = None, flush: bool = False) -> None:
    """Print. All that commands print goes through here: it may come from data, file names and replies of models."""
    print(*map(visible, things), end=end, file=file, flush=flush)


class _Messages(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _MESSAGES.append(record.getMessage())
        say(_MESSAGES[-1], file=sys.stderr)


_HANDLER = _Messages(logging.INFO)


def show_messages() -> None:
    """What the package logs is a line on standard error, and a field of what `--json` prints."""
    _MESSAGES.clear()
    logger = logging.getLogger("pfungst")
    logger.setLevel(logging.INFO)
    logger.addHandler(_HANDLER)  # the same one again is no second one


_JSON_GOES_TO: ContextVar[TextIO | None] = ContextVar("json_goes_to", default=None)


@contextmanager
def json_alone() -> Iterator[None]:
    """Standard output is for JSON alone: what a model or a metric of the user's prints goes to standard error, and so
    does what other processes of the command and libraries in C print."""
    with _standard_output_apart() as real, redirect_stdout(sys.stderr):
        token = _JSON_GOES_TO.set(real)
        try:
            yield
        finally:
            _JSON_GOES_TO.reset(token)


@contextmanager
def _standard_output_apart() -> Iterator[TextIO]:
    """What leads to standard output while the number 1 leads to standard error."""
    try:
        is_real = sys.stdout.fileno() == 1
    except (OSError, ValueError):  # somebody has put a text in its place
        is_real = False
    if not is_real:
        yield sys.stdout
        return
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        with open(kept, "w", encoding=sys.stdout.encoding, closefd=False) as real:
            os.dup2(2, 1)
            yield real
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def print_json(value: Any) -> None:
    """Strict JSON on standard output, for `--json`."""
    if _MESSAGES and isinstance(value, dict):
        value = {**value, "messages": list(_MESSAGES)}
    text = json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False)
    say(text, file=_JSON_GOES_TO.get(), flush=True)


def tell(value: Any, lines: Iterable[object], as_json: bool) -> None:
    """What came of a command: JSON where that is wanted, else these lines."""
    if as_json:
        print_json(value)
        return
    for line in lines:
        say(line)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Nothing is cut off: cells are folded in a terminal, and a file or pipe gets the table as wide as it is."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(visible(title), style="table.title") if title else None, title_justify="left")
    for name in columns:
        table.add_column(Text(visible(name)), overflow="fold")
    for row in rows:
        # Text objects: what comes from a data set must not be read as markup.
        table.add_row(*(cell if isinstance(cell, Text) else Text(visible(cell)) for cell in row))
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, Console(width=10_000).measure(table).maximum)
    console.print(table)


def link(file: Path) -> Any:
    """A cell that opens a file: one word in a terminal, its path in a file or pipe."""
    from rich.console import Console
    from rich.text import Text

    return Text("image", style=f"link {file.as_uri()}") if Console().is_terminal else Text(visible(file))


def show_table(table: Table) -> None:
    """A table of a probe or an experiment in the terminal, with its note below."""
    from pfungst.report.card import format_cell

    print_table(table.title, table.columns, [[format_cell(jsonable(cell)) for cell in row] for row in table.rows])
    if table.note:
        say(f"{table.note}\n")


PROGRESS_EVERY = 30.0
"""Seconds between two lines of progress in a file or pipe, where bars cannot move."""


@contextmanager
def progress_bar(quiet: bool = False) -> Iterator[Progress]:
    """Progress on standard error, so that standard output stays clean for --json; nothing if quiet."""
    if quiet:
        yield no_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, TimeRemainingColumn(), console=Console(file=sys.stderr)) as bars:
        tasks: dict[str, Any] = {}
        said = monotonic()

        def show(what: str, done: int, total: int) -> None:
            nonlocal said
            what = visible(what)
            kind = what.partition(" · ")[0]
            if kind not in tasks:
                tasks[kind] = bars.add_task(what, total=total)
            bars.update(tasks[kind], description=what, completed=done, total=total)
            if not bars.console.is_terminal and monotonic() - said >= PROGRESS_EVERY:
                said = monotonic()
                bars.console.print(f"{what}: {done:,} of {total:,}", markup=False, soft_wrap=True)

        yield show
