"""Small real examples for all tests."""

import gc
import io
import os
from collections.abc import Generator
from pathlib import Path

# As the command line does: threads that wait must not burn the processors, which two workers share.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import PIL.Image
import pytest

from pfungst.core import BytesImage, Dataset, Example

LONG = ("tests/real/", "tests/browser/", "tests/experiments/", "tests/packaging/")
"""Folders that `make quick` leaves out as a whole."""
SLOW = Path(__file__).with_name("slow.txt")
"""Tests that `make quick` leaves out; `make slow` writes it."""
SECONDS = 0.15


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help=f"leave out the tests named in tests/slow.txt, and {', '.join(LONG)}"
    )
    parser.addoption("--write-slow", action="store_true", help=f"write tests/slow.txt: all that take {SECONDS} s")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # A million objects are made here that stay until the end. Looking through them for garbage, here and whenever the
    # tests have made many more, takes half of the collection and a good part of the tests.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        slow = set(SLOW.read_text("utf-8").split())
        left_out = [item for item in items if _name(item.nodeid) in slow or item.nodeid.startswith(LONG)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("--write-slow"):
        spent: dict[str, float] = {}
        for reports in terminalreporter.stats.values():
            for report in reports:
                if isinstance(report, pytest.TestReport):
                    spent[_name(report.nodeid)] = spent.get(_name(report.nodeid), 0.0) + report.duration
        SLOW.write_text("\n".join(sorted(name for name, time in spent.items() if time >= SECONDS)) + "\n", "utf-8")


def _name(nodeid: str) -> str:
    """Without the parameters."""
    return nodeid.partition("[")[0]


def png(shade: int, size: tuple[int, int] = (8, 6)) -> BytesImage:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", size, (shade, 255 - shade, 40)).save(buffer, format="PNG")
    return BytesImage(buffer.getvalue())


def squares(count: int = 40, questions: int = 2, choices: tuple[str, ...] = ()) -> Dataset:
    """`count` pictures of one colour with `questions` questions each; the right answer depends on the picture."""
    examples = []
    for picture in range(count):
        image = png(picture * 255 // count)
        for number in range(questions):
            target = ("yes", "no")[(picture + number) % 2]
            examples.append(
                Example(
                    id=f"{picture}-{number}",
                    question=f"Is number {number} shown?",
                    image=image,
                    image_id=f"picture {picture}",
                    answers=(target,),
                    target=target,
                    answer_type="yes/no",
                    question_type=f"is {number}",
                    choices=choices,
                )
            )
    return Dataset("squares", examples, metric="exact", fingerprint=f"squares {count} {questions} {choices}")


@pytest.fixture
def data() -> Dataset:
    return squares()


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or fills the cache of the user."""
    folder = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("PFUNGST_CACHE", str(folder))
    # Reading five million paraphrases and drawing the world take seconds: once for all workers is enough.
    for name in ("meteor", "world") if "PYTEST_XDIST_WORKER" in os.environ else ():
        if not (folder / name).exists():
            shared = tmp_path_factory.getbasetemp().parent / name
            shared.mkdir(exist_ok=True)
            folder.mkdir(exist_ok=True)
            (folder / name).symlink_to(shared)
    return folder
