"""One dataclass: the arguments of examine, the options of the command, exam.json."""

import inspect
import json
from dataclasses import fields

import pfungst
from pfungst.cli.options import parameters
from pfungst.core import ExamSpec, read_config
from pfungst.planning import plan
from tests.conftest import squares


def test_examine_and_the_dry_run_take_what_the_spec_takes():
    names = [one.name for one in fields(ExamSpec)]
    assert list(inspect.signature(pfungst.examine).parameters) == names
    assert list(inspect.signature(plan).parameters) == names


def test_every_field_says_what_it_is_and_is_an_option_or_for_python_alone():
    options = {one.name for one in parameters(ExamSpec)}
    hidden = {one.name for one in fields(ExamSpec) if not one.metadata.get("shown", True)}
    assert options | hidden == {one.name for one in fields(ExamSpec)} and not options & hidden
    for one in fields(ExamSpec):
        assert f"{one.name}: " in pfungst.examine.__doc__


def test_options_stand_in_exam_json_and_none_stands_for_no_options(tmp_path):
    run = pfungst.examine(
        lambda image, question: "yes", squares(6), ["control"], tmp_path, precision=0.5, limit=4, player_options=None
    )
    config = read_config(run.path)
    assert (config["precision"], config["data"]["limit"], config["player"]["options"]) == (0.5, 4, {})
    assert config == json.loads((tmp_path / "exam.json").read_text())
