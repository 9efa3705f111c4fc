"""Run the blocks of a documentation page and compare what comes out with what the page shows.

    ```console                  commands behind "$ ", each run by bash; the lines below a command are its output
    ```python title="NAME"      written to the file NAME, as is any other block with a title
    ```python                   run in one namespace a page; a ```text block right behind it is what it prints

A line "..." in an output stands for any lines, "..." inside a line for any text. A comment before a block changes how
it is run: `<!-- tolerance: 3 -->` lets numbers differ by 3, `<!-- exit: 3 -->` expects this exit code.
`<!-- port: 8123 -->` anywhere puts a free port in place of 8123. A command that ends in "&" runs until the page ends.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

_BLOCK = re.compile(
    r"((?:^<!--[^\n]*-->\n)*)^```(console|python|csv|json|yaml)([^\n]*)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_COLOR = re.compile(r"\x1b\[[\d;]*m")
_RULE = re.compile(r"[━─═]+")


@dataclass(frozen=True)
class Block:
    """One block of a page."""

    kind: str
    text: str
    title: str = ""
    shown: str | None = None
    """What a python block prints."""
    tolerance: float = 0.0
    exit_code: int = 0
    span: tuple[int, int] = (0, 0)


@dataclass
class Shell:
    """Where the commands of a page run."""

    folder: Path
    servers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def run(self, command: str, exit_code: int = 0) -> str:
        """Its standard output; a failure is an error with all it said."""
        # One thread: on a busy machine, threads that wait for one another cost more than they bring.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}
        words = ["bash", "-c", command.removesuffix("&")]
        if command.endswith("&"):
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            self.servers.append(
                subprocess.Popen(words, cwd=self.folder, env=environment, start_new_session=True, **quiet)  # type: ignore[call-overload]
            )
            return ""
        done = subprocess.run(
            words, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=800
        )
        assert done.returncode == exit_code, f"$ {command}\nexit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def stop(self) -> None:
        for server in self.servers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def blocks(page: str) -> list[Block]:
    """What is to be run, in order."""
    found = []
    for match in _BLOCK.finditer(page):
        notes = dict(re.findall(r"<!-- (\w+): ([^ ]+) -->", match[1]))
        title = re.search(r'title="([^"]+)"', match[3])
        found.append(
            Block(
                match[2],
                match[4],
                title[1] if title else "",
                match[5],
                float(notes.get("tolerance", 0)),
                int(notes.get("exit", 0)),
                match.span(),
            )
        )
    return found


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Each command of a console block, with the output that is shown below it."""
    command, output = "", ""
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, output
            command, output = line[2:], ""
        elif command.endswith("\\") and not output:
            command = f"{command}\n{line}"
        else:
            output += line + "\n"
    if command:
        yield command, output


def run_page(path: Path, folder: Path) -> str:
    """Run a page in a folder; the page with the outputs as they came.

    Where the output is as shown (within the tolerance, dots matching anything) the page keeps its own text.
    """
    page = path.read_text(encoding="utf-8")
    ports = {said: str(_free_port()) for said in re.findall(r"<!-- port: (\d+) -->", page)}
    shell, names, parts, end = Shell(folder), {"__name__": "__main__"}, [], 0
    try:
        for block in blocks(page):
            parts += [page[end : block.span[0]]]
            end = block.span[1]
            source = page[slice(*block.span)]
            parts += [_run_block(block, source, shell, names, ports)]
    finally:
        shell.stop()
    return "".join([*parts, page[end:]])


def notebook_cells(page: str, book: NotebookNode) -> list[NotebookNode]:
    """The code cells of a page's notebook, a command of a `%%bash` cell in a cell of its own."""
    cells = []
    # The cell that installs the package is a comment.
    code = [cell for cell in book.cells if cell.cell_type == "code" and not cell.source.startswith("# %pip")]
    for block, cell in zip(blocks(page), code, strict=True):
        if block.title:
            assert cell.source == f"%%writefile {block.title}\n{block.text.rstrip()}"
            cells += [cell]
        elif block.kind == "console":
            asked = [command for command, _ in commands(block)]
            assert block.exit_code == 0 and cell.source == "\n".join(["%%bash", *asked])
            # A cell fails with its last command only; here each command must succeed and has an output of its own.
            cells += [new_code_cell(f"%%bash\n{command}") for command in asked]
        else:
            assert block.kind == "python" and cell.source == block.text.rstrip()
            cells += [cell]
    return cells


def read_page(page: str, cells: list[NotebookNode]) -> str:
    """The page with the outputs of its notebook's cells, which have been run."""
    said = [
        _COLOR.sub("", "".join(output.text for output in cell.outputs if output.get("name") == "stdout"))
        for cell in cells
    ]
    parts, end = [], 0
    for block in blocks(page):
        count = len([*commands(block)]) if block.kind == "console" and not block.title else 1
        mine, said = said[:count], said[count:]
        source = page[slice(*block.span)]
        parts += [page[end : block.span[0]], source if block.title else _with_outputs(block, source, mine)]
        end = block.span[1]
    return "".join([*parts, page[end:]])


def _run_block(block: Block, source: str, shell: Shell, names: dict[str, Any], ports: dict[str, str]) -> str:
    if block.title:
        (shell.folder / block.title).write_text(_swapped(block.text, ports), encoding="utf-8")
        return source
    if block.kind == "console":
        back = {new: old for old, new in ports.items()}
        said = [_swapped(shell.run(_swapped(command, ports), block.exit_code), back) for command, _ in commands(block)]
        return _with_outputs(block, source, said)
    if block.kind == "python":
        return _with_outputs(block, source, [_python(_swapped(block.text, ports), names)])
    return source


def _with_outputs(block: Block, source: str, said: list[str]) -> str:
    """The block as it stands where its outputs are as shown, otherwise with those that came."""
    if block.kind == "console":
        for (command, shown), output in zip(commands(block), said, strict=True):
            if not same(shown, output, block.tolerance):
                source = source.replace(f"$ {command}\n{shown}", f"$ {command}\n{_tidy(output)}")
    elif not same(block.shown or "", said[0], block.tolerance):
        head = source.partition("\n\n```text\n")[0]
        return f"{head}\n\n```text\n{_tidy(said[0])}```" if said[0].strip() else head
    return source


def _python(text: str, names: dict[str, Any]) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(text, "page", "exec", dont_inherit=True), names)
    return said.getvalue()


def same(shown: str, said: str, tolerance: float = 0.0) -> bool:
    """Is the output as shown? Spaces, the length of rules and the sign before "<0.001" do not count."""
    return _lines_match(_plain(shown), _plain(said), tolerance)


def _lines_match(shown: list[str], said: list[str], tolerance: float) -> bool:
    if not shown:
        return not said
    if shown[0] == "...":
        return any(_lines_match(shown[1:], said[start:], tolerance) for start in range(len(said) + 1))
    return bool(said) and _line_matches(shown[0], said[0], tolerance) and _lines_match(shown[1:], said[1:], tolerance)


def _line_matches(shown: str, said: str, tolerance: float) -> bool:
    pieces = [_NUMBER.sub("\0", piece) for piece in shown.split("...")]
    pattern = ".*?".join(re.escape(piece).replace("\0", f"({_NUMBER.pattern})") for piece in pieces)
    match = re.fullmatch(pattern, said)
    wanted = _NUMBER.findall(shown)
    return match is not None and all(
        abs(_value(one) - _value(other)) <= tolerance + 1e-9 for one, other in zip(wanted, match.groups(), strict=True)
    )


def _value(word: str) -> float:
    return float(word.replace(",", ""))


def _plain(text: str) -> list[str]:
    lines = (" ".join(re.sub(r"<(?=\d)", "", _RULE.sub("─", line)).split()) for line in text.splitlines())
    return [line for line in lines if line]


def _tidy(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.strip("\n").splitlines())


def _swapped(text: str, names: dict[str, str]) -> str:
    for old, new in names.items():
        text = text.replace(old, new)
    return text


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
