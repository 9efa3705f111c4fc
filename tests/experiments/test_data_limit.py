import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from pfungst.core import PfungstError
from pfungst.experiments.data_limit import Cell, CellResult, DataLimitConfig, DataLimitResult, figures, run, tables
from pfungst.experiments.data_limit_training import ANSWERS, LimitWorld, draw_layouts
from pfungst.world import answer, answer_text

torch = pytest.importorskip("torch")

from pfungst.experiments.data_limit_training import LimitData, open_layouts, train_cell  # noqa: E402


def test_every_layout_is_there_once_and_no_two_objects_share_a_cell() -> None:
    for objects, count in ((2, 49 * 48), (3, 49 * 48 * 47), (4, 48 * 47 * 46)):
        cells = LimitWorld(objects).cells
        assert cells.shape == (count, objects) and len(np.unique(cells, axis=0)) == count
    assert (LimitWorld(4).cells[:, 3] == 24).all()
    with pytest.raises(PfungstError, match="2 to 4 objects"):
        LimitWorld(5)


def few(objects: int, rows: Any) -> LimitWorld:
    """A world of some of the layouts."""
    world = LimitWorld(objects)
    object.__setattr__(world, "cells", world.cells[rows])
    return world


@pytest.mark.parametrize("objects", [2, 3, 4])
def test_answers_are_the_engines(objects: int) -> None:
    rng = np.random.default_rng(objects)
    world = few(objects, rng.integers(0, len(LimitWorld(objects).cells), 12))
    asked, table = world.questions("mixhop"), world.answers("mixhop")
    assert len(asked) == len(world.questions("onehop")) + len(world.questions("twohop"))
    assert len({one.text for one in asked}) == len(asked)
    for layout in range(12):
        scene = world.scene(layout)
        for number in rng.integers(0, len(asked), 20):
            value = answer(asked[number].program(), scene)
            assert value is not None and answer_text(value) == ANSWERS[table[layout, number]]
    assert {one.hops for one in asked} == {1, 2}


def test_no_question_has_the_same_answer_on_all_layouts() -> None:
    for objects in (2, 3, 4):
        table = few(objects, slice(None, None, 1 if objects == 2 else 53)).answers("mixhop")
        assert (table.min(axis=0) < table.max(axis=0)).all()


def test_a_share_of_layouts_is_trained_on_and_the_rest_asked(tmp_path: Path) -> None:
    plan = DataLimitConfig((2,), ("onehop",), (50.0,), ("film",), trials=2, steps=3, batch=8, width=32, height=24)
    pictures = np.random.default_rng(0).integers(0, 255, (2352, 3, 24, 32), dtype=np.uint8)
    data = LimitData(plan, 2, pictures)
    first = train_cell(plan, Cell(2, "onehop", 50.0, "film", 0), data)
    assert 0 <= first.unseen <= 1 and 0.4 < first.majority < 0.8 and first.layouts == 2352
    again = train_cell(plan, Cell(2, "onehop", 50.0, "film", 0), data)
    assert (again.seen, again.unseen) == (first.seen, first.unseen)


@pytest.mark.slow
def test_a_model_learns_what_the_images_show() -> None:
    plan = DataLimitConfig((2,), ("onehop",), (50.0,), ("film",), trials=1, steps=40, batch=64, width=32, height=24)
    cells = LimitWorld(2).cells
    pictures = np.zeros((len(cells), 3, 24, 32), np.uint8)
    for number, (a, _) in enumerate(cells):
        x, y = divmod(int(a), 7)
        pictures[number, 0, 3 * y : 3 * y + 3, 4 * x : 4 * x + 4] = 255
    data = LimitData(plan, 2, pictures)
    yes, no = (data.vocabulary.answer_number(word) for word in ("yes", "no"))
    # A rule that one look decides: is the first object in the right half?
    data.answers["onehop"][:] = torch.from_numpy(np.where(cells[:, :1] >= 28, yes, no).astype(np.int16))
    found = train_cell(plan, Cell(2, "onehop", 50.0, "film", 0), data)
    assert found.unseen > 0.9 > found.majority


def test_models_can_look_at_the_features_of_a_fixed_network(tmp_path: Path) -> None:
    from pfungst.models import Inputs, Sizes, Trained, Vocabulary, build

    cnn = build("world-cnn", Sizes(5, 1, (3, 24, 32)), "tiny", seed=0)
    Trained("world-cnn", cnn.eval(), Vocabulary((), ("yes",)), Inputs(width=32, height=24)).save(tmp_path)
    plan = DataLimitConfig(
        (2,), ("onehop",), (50.0,), ("film", "rn"), trials=1, steps=2, batch=4, sees=f"world:{tmp_path}"
    )  # fmt: skip
    pictures = np.random.default_rng(0).integers(0, 255, (2352, 3, 24, 32), dtype=np.uint8)
    data = LimitData(plan, 2, pictures)
    assert data.images.shape == (2352, *cnn.shape) and data.images.dtype == torch.float16
    for model in plan.models:
        assert 0 <= train_cell(plan, Cell(2, "onehop", 50.0, model, 0), data).unseen <= 1
    with pytest.raises(PfungstError, match="pixels or world"):
        DataLimitConfig(sees="smell")


def test_finished_runs_are_not_trained_again_and_other_settings_are_refused(tmp_path: Path) -> None:
    plan = DataLimitConfig((2,), ("twohop",), (10.0,), ("film",), trials=1, steps=2, batch=4, width=32, height=24)
    out = tmp_path / "out"
    (out / "images").mkdir(parents=True)
    np.save(out / "images" / "layouts-2-32x24.npy", np.zeros((2352, 3, 24, 32), np.uint8))
    heard: list[tuple[str, int, int]] = []
    (first,) = run(plan, out, progress=lambda *told: heard.append(told)).results
    assert heard == [("training steps · 2-twohop-10-film-0", 2, 2)]
    stamp = (out / "cells" / first.cell.file).stat().st_mtime_ns
    (second,) = run(plan, out).results
    assert second == first and (out / "cells" / first.cell.file).stat().st_mtime_ns == stamp
    with pytest.raises(PfungstError, match="steps was 2, now it is 5"):
        run(replace(plan, steps=5), out)
    more = run(replace(plan, percents=(10.0, 20.0)), out)
    assert len(more.results) == 2 and more.results[0] == first
    for bad in ({"percents": (0.0,)}, {"models": ("ban",)}, {"trials": 0}, {"begin": -1.0}):
        with pytest.raises(PfungstError):
            DataLimitConfig(**bad)


def test_the_figure_has_a_line_for_objects_and_questions() -> None:
    cells = [
        CellResult(Cell(objects, "onehop", percent, model, trial), 1.0, share, 0.5, 10, 1.0)
        for objects in (2, 3)
        for percent, share in ((1.0, 0.6), (50.0, 0.9))
        for model in ("rn", "film")
        for trial in (0, 1)
    ]
    result = DataLimitResult(tuple(cells), ("rn", "film"))
    (figure,) = figures(result)
    assert [one.name for one in figure.series] == ["2 objects, onehop", "3 objects, onehop"]
    assert figure.series[0].x == (1.0, 50.0) and figure.series[0].y == pytest.approx((0.6, 0.9))
    assert len(tables(result)[0].rows) == 4


def test_the_command_draws_what_is_finished(tmp_path: Path) -> None:
    from pfungst.cli.experiments import app

    words = ["data-limit", "--out", str(tmp_path), "--hops", "onehop", "--percent", "5", "--model", "film", "--read"]
    assert isinstance(CliRunner().invoke(app, words).exception, PfungstError)
    (tmp_path / "cells").mkdir()
    record = {"cell": vars(Cell(2, "onehop", 5.0, "film", 0)), "seen": 1.0, "unseen": 0.7, "majority": 0.5}
    path = tmp_path / "cells" / "2-onehop-5-film-0.json"
    path.write_text(json.dumps({**record, "layouts": 2352, "seconds": 1.0}))
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and "70.0%" in done.stdout and "missing" not in done.output
    assert (tmp_path / "data-limit.svg").read_text().startswith("<svg")
    part = CliRunner().invoke(app, [*words, "--trials", "3"])
    assert part.exit_code == 1 and "70.0%" in part.stdout
    assert "Intervals over trials. 2 training runs are missing:" in part.stdout
    assert "2 runs are missing from the tables" in part.stderr


def test_images_show_the_layout() -> None:
    first, second = draw_layouts(few(2, [0, 2000]), 32, 24)
    assert first.shape == (3, 24, 32) and (first != second).any()


def test_training_begins_with_few_layouts_and_has_all_of_its_share_after_half_of_the_steps() -> None:
    plan = DataLimitConfig(steps=100, begin=1.0)
    grown = [open_layouts(plan, step, layouts=2352, count=1176) for step in range(100)]
    assert grown[0] == 24 and grown == sorted(grown) and 24 < grown[25] < 1176 and set(grown[50:]) == {1176}
    assert {open_layouts(plan, step, 2352, 24) for step in range(100)} == {24}  # a small share is taken at once
    assert {open_layouts(DataLimitConfig(steps=100, begin=0.0), step, 2352, 1176) for step in range(100)} == {1176}
