"""How a data set is named, and how formats are registered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pfungst import data as package
from pfungst.core import DataError, Dataset, Example, PfungstError, UsageError
from pfungst.core import registry as core_registry
from pfungst.data import FORMATS, Format, Job, load
from pfungst.data.formats import get_format
from pfungst.data.job import Found, canonical, choose_splits, split_of
from pfungst.data.loading import Spec, parse
from tests.data import published_formats as make


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("some/folder", Spec("some/folder")),
        ("vqa:some/folder", Spec("some/folder", "vqa")),
        ("vqa:some/folder#val", Spec("some/folder", "vqa", "val")),
        ("some/folder#val", Spec("some/folder", "", "val")),
        ("x.json?task=mc&version=1", Spec("x.json", "", None, {"task": "mc", "version": "1"})),
        ("vqa:x.json#val?task=mc", Spec("x.json", "vqa", "val", {"task": "mc"})),
        ("vqa:x.json?task=mc#val", Spec("x.json", "vqa", "val", {"task": "mc"})),
        ("hf:org/name#test", Spec("org/name", "hf", "test")),
        ("world", Spec("", "world")),
        ("world?seed=3", Spec("", "world", None, {"seed": "3"})),
        ("x.csv?images=a+b&question=what%20is", Spec("x.csv", "", None, {"images": "a+b", "question": "what is"})),
        (r"C:\data\vqa", Spec(r"C:\data\vqa")),
        ("./vqa", Spec("./vqa")),
    ],
)
def test_a_specification_is_taken_apart(text: str, spec: Spec) -> None:
    assert parse(text) == spec


def test_a_path_that_exists_is_that_path_whatever_it_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a#b", "vqa:c", "d?e=f", "world"):
        make.vqa2(tmp_path / name)
        assert parse(name) == Spec(name)
    assert parse("vqa:a#b") == Spec("a#b", "vqa")
    assert parse("vqa:a#b#val") == Spec("a", "vqa", "b#val")


def test_an_unknown_format_is_told_with_its_neighbours() -> None:
    with pytest.raises(PfungstError, match="vqua.*vqa"):
        load("vqua:folder")


def test_a_path_that_is_not_there_is_told_with_the_formats() -> None:
    with pytest.raises(DataError, match=r"no file or folder 'nowhere'.*vqa"):
        load("nowhere")
    for odd in ("", "  ", "\0", "x" * 5_000, "vqa:"):
        with pytest.raises(PfungstError):
            load(odd)


def test_an_unknown_option_is_told_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"format vqa has no option 'colour'.*task \(text\), version \(1 or 2"):
        load(make.vqa2(tmp_path), colour="red")
    with pytest.raises(DataError, match="options"):
        load(f"{tmp_path}?nonsense")


def test_a_folder_of_nothing_known_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no data files"):
        load(tmp_path)
    make.write(tmp_path / "notes.txt", "hello")
    with pytest.raises(DataError, match=r"no known format was recognised \(found: notes.txt\)"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("available", "asked", "chosen"),
    [
        (["train", "val", "test"], None, ["val"]),
        (["test2015", "train2014"], None, ["test2015"]),
        (["train"], None, ["train"]),
        (["train2014", "val2014"], "val", ["val2014"]),
        (["train2014", "val2014"], "validation", ["val2014"]),
        (["train", "eval"], "test", ["eval"]),
        (["train", "test"], "eval", ["test"]),
        (["train", "testdev"], "test-dev", ["testdev"]),
        (["b", "a"], "all", ["b", "a"]),
        ([""], None, [""]),
    ],
)
def test_splits_are_chosen_by_what_they_are(available: list[str], asked: str | None, chosen: list[str]) -> None:
    assert choose_splits(available, asked, "here") == chosen


@pytest.mark.parametrize(("available", "asked"), [(["train", "val"], "test"), (["train"], "val"), (["val"], "eval2")])
def test_a_split_is_never_replaced_by_another(available: list[str], asked: str) -> None:
    with pytest.raises(DataError, match="no split"):
        choose_splits(available, asked, "here")


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("mscoco_val2014", "val2014"),
        ("abstract_v002_train2015", "train2015"),
        ("mscoco_test-dev2015", "test-dev2015"),
        ("data_eval", "eval"),
        ("valuable_training", ""),
        ("contest", ""),
        ("questions", ""),
    ],
)
def test_a_split_is_read_off_a_name(name: str, split: str) -> None:
    assert split_of(name) == split
    assert canonical("val2014") == canonical("validation") == "val"


class Toy(Format):
    """A format somebody else wrote."""

    name = "toy"
    title = "a toy"
    expects = "*.toy.txt"

    def claims(self, file: package.File, head: str) -> float:
        return 0.99 if head.startswith("toy!") else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        for file in job.files:
            yield Example(id="1", question=f"From {file.name}?"), file, 1


def make_set(place: str = "", size: int = 2) -> Dataset:
    """A data set that a function makes."""
    examples = [Example(id=str(n), question=f"{place} {n}?") for n in range(size)]
    return Dataset("made", examples, metric="wups", notes={"made": True})


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Entry points as an installed package would bring them."""
    from importlib.metadata import EntryPoint

    group = "pfungst.datasets"
    here = "tests.data.test_specs"
    entries = [
        EntryPoint("toy", f"{here}:Toy", group),
        EntryPoint("made", f"{here}:make_set", group),
        EntryPoint("broken", "no_such_module_anywhere:thing", group),
        EntryPoint("wrong", f"{here}:__name__", group),
    ]
    monkeypatch.setattr(core_registry, "entry_points", lambda group: entries if group == "pfungst.datasets" else [])
    get_format.cache_clear()
    yield
    get_format.cache_clear()


@pytest.mark.usefixtures("plugins")
def test_a_format_of_a_third_party_is_found_by_name_and_by_content(tmp_path: Path) -> None:
    make.write(tmp_path / "x.txt", "toy! hello")
    assert load(f"toy:{tmp_path}")[0].question == "From x.txt?"
    assert load(tmp_path).notes["format"] == "toy"
    assert "toy" in FORMATS.names()


@pytest.mark.usefixtures("plugins")
def test_a_function_that_returns_a_data_set_is_a_format_too() -> None:
    data = load("made:here?size=3")
    assert [e.question for e in data] == ["here 0?", "here 1?", "here 2?"]
    assert (data.name, data.metric, data.notes["made"]) == ("made", "wups", True)
    assert len(load("made", limit=1)) == 1
    assert len(load("made", size=5)) == 5
    with pytest.raises(UsageError, match="data set made has no option 'colour'"):
        load("made?colour=red")


@pytest.mark.usefixtures("plugins")
def test_a_broken_plug_in_hurts_only_those_who_name_it(tmp_path: Path) -> None:
    assert len(load(make.vqa2(tmp_path))) == 2
    with pytest.raises(PfungstError, match="'broken' comes from .* cannot be loaded"):
        load("broken:x")
    with pytest.raises(PfungstError, match="neither a Format nor a function"):
        load("wrong:x")


def test_the_world_is_one_word(monkeypatch: pytest.MonkeyPatch) -> None:
    import pfungst.world

    if not hasattr(pfungst.world, "embedded"):
        pytest.skip("the embedded world is not there")
    data = load("world", limit=5)
    assert len(data) == 5
    assert data.notes["format"] == "world"
    assert all(example.scene is not None for example in data)
    with pytest.raises(DataError, match="takes no path"):
        load("world:somewhere")


def test_a_run_is_no_data_set(tmp_path: Path) -> None:
    from pfungst import examine

    small = Dataset("small", [Example("1", "What?", target="red")], metric="exact", fingerprint="small")
    examine(lambda image, question: "red", small, ["control"], tmp_path / "run")
    with pytest.raises(DataError, match="is the folder of a run, not a data set"):
        load(tmp_path / "run")


def test_an_answer_that_is_a_text_is_one_answer() -> None:
    assert Example("1", "What?", answers="red").answers == ("red",)  # type: ignore[arg-type]


def test_every_format_says_what_it_is() -> None:
    for name in FORMATS.builtin:
        format_ = get_format(name)
        assert format_.name == name
        assert format_.title and format_.expects
        assert not format_.reads_files or format_.claims(package.File(Path("x.bin")), "") == 0.0


def test_every_format_reads_its_own_files_without_a_complaint(tmp_path: Path) -> None:
    assert set(FORMATS.builtin) - set(make.ALL) == {"hf", "world"}  # both read no files, and have tests of their own
    for name, write in make.ALL.items():
        report = package.check(write(tmp_path / name), images="none")
        assert (report.ok, report.format, report.bad) == (True, name, ())
        assert report.as_dict()["examples"] == len(load(tmp_path / name, split="all"))
