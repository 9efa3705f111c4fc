"""The static copy: every link leads to a file, and it writes over nothing of the user's."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from pfungst.cli.app import app
from pfungst.core import PfungstError
from pfungst.core.progress import PROGRESS_FILE
from pfungst.web import bundle


@pytest.fixture(scope="module")
def copy(made_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy") / "site"
    made = bundle([made_runs / "prior", made_runs / "world"], folder, most=40)
    assert made.pages == len(list(folder.glob("*.html"))) and made.images == len(list((folder / "images").iterdir()))
    return folder


def test_every_link_leads_to_a_file_of_the_copy(copy: Path) -> None:
    pages = list(copy.glob("*.html"))
    assert len(pages) > 30
    for page in pages:
        for link in re.findall(r'(?:href|src)="([^"]*)"', page.read_text()):
            place = html.unescape(link).partition("#")[0]
            assert not place or (copy / place).is_file(), (page.name, link)
            assert "://" not in link and not link.startswith("/")


def test_the_copy_needs_no_server_and_runs_nothing_foreign(copy: Path) -> None:
    for page in copy.glob("*.html"):
        text = page.read_text()
        assert "<form" not in text and "<script>alert" not in text and "form-token" not in text
        assert "default-src 'none'" in text


def test_a_long_list_says_that_it_is_cut(copy: Path) -> None:
    whole = next(page for page in copy.glob("*.html") if re.fullmatch(r"answers-prior-[0-9a-f]{10}.html", page.name))
    text = whole.read_text()
    assert "180 answers" in text and "this copy holds the first 40" in text


def test_a_folder_with_other_files_is_left_alone(made_runs: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(PfungstError, match="other files"):
        bundle([made_runs], tmp_path)
    with pytest.raises(PfungstError, match="no run"):
        bundle([tmp_path], tmp_path / "new")


def test_nothing_goes_on_in_a_copy(made_runs: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "half"
    run.mkdir(parents=True)
    for name in ("exam.json", "answers.sqlite"):
        shutil.copy(made_runs / "prior" / name, run / name)
    (run / PROGRESS_FILE).write_text('{"what": "asking", "done": 3, "total": 7}')
    bundle([run], tmp_path / "site")
    for page in (tmp_path / "site").glob("*.html"):
        assert "running" not in page.read_text() and "asking" not in page.read_text()
    assert "unfinished" in (tmp_path / "site" / "index.html").read_text()


def test_a_run_of_an_earlier_version_is_no_copy_without_answers_and_a_word(made_runs: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(made_runs / "prior", tmp_path / "old"))
    for file in (run / "trials").iterdir():
        pq.write_table(pq.read_table(file).drop_columns(["trial", "place", "flip"]), file)
    done = CliRunner().invoke(app, ["bundle", str(run), str(made_runs / "world"), "--out", str(tmp_path / "site")])
    assert done.exit_code == 1 and (tmp_path / "site" / "index.html").exists()
    assert "old: " in done.stderr and "was written by an earlier version" in done.stderr
    assert f"`pfungst rescore {run}`" in done.stderr and "world" not in done.stderr
    shutil.rmtree(run / "trials")
    done = CliRunner().invoke(app, ["bundle", str(run), "--out", str(tmp_path / "none")])
    assert done.exit_code == 1 and "old: it has numbers but no answers" in done.stderr
