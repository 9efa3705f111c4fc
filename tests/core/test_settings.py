"""One parser of key=value, with the types that a part declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from pfungst.core.errors import UsageError
from pfungst.core.settings import (
    REQUIRED,
    describe_settings,
    parse_settings,
    read_settings,
    split_settings,
    split_spec,
)


@dataclass(frozen=True)
class Knobs:
    """What can be turned."""

    count: int = 21
    """How many there are. Twenty-one as in the paper."""
    rate: float = 0.5
    loud: bool = False
    name: str = "knobs"
    folder: Path | None = None
    """Where things lie."""
    limit: int | None = None
    schedule: Literal["cosine", "linear"] = "cosine"
    members: tuple[str, ...] = ("a",)
    betas: tuple[float, float] = (0.9, 0.999)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class More(Knobs):
    depth: int = 3
    """How deep."""


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("count=3", 3),
        ("count=-3", -3),
        ("rate=1", 1.0),
        ("rate=1e-6", 1e-6),
        ("name=a=b", "a=b"),
        ("name=", ""),
        ("name=2", "2"),
        ("name=1.50", "1.50"),
        ("folder=/tmp/x", Path("/tmp/x")),
        ("folder=none", None),
        ("limit=none", None),
        ("limit=null", None),
        ("limit=7", 7),
        ("schedule=linear", "linear"),
        ("members=film+tbd", ("film", "tbd")),
        ("members=tree+film", ("tree", "film")),
        ("members=", ()),
        ('members=["a+b", "c"]', ("a+b", "c")),
        ("betas=0.8+1e+0", (0.8, 1.0)),
        ("betas=[0.8, 1]", (0.8, 1.0)),
        ('extra={"a": [1]}', {"a": [1]}),
        *((f"loud={word}", True) for word in ("yes", "true", "on", "1", "Yes", "TRUE")),
        *((f"loud={word}", False) for word in ("no", "false", "off", "0", "No")),
    ],
)
def test_a_word_is_read_as_its_field_says(word: str, value: object) -> None:
    name = word.partition("=")[0]
    read = getattr(parse_settings(Knobs, [word]), name)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("cuont=3", r"The probe knobs has no setting 'cuont'. Did you mean count\? Its settings are: count \(whole"),
        (
            "zzz=3",
            r"no setting 'zzz'. Its settings are: count \(whole number\), rate \(number\), loud \(yes or no\)",
        ),
        ("count", r"A setting of the probe knobs is written key=value, not 'count'. Its settings are"),
        ("=3", "written key=value, not '=3'"),
        ("count=many", "The setting count of the probe knobs must be a whole number, not 'many'"),
        ("count=1.5", "must be a whole number, not '1.5'"),
        ("rate=fast", "must be a number, not 'fast'"),
        ("rate=nan", "must be a number, not 'nan'"),
        ("loud=maybe", "must be yes or no, not 'maybe'"),
        ("loud=2", "must be yes or no, not '2'"),
        ("limit=few", "must be a whole number or none, not 'few'"),
        ("schedule=step", "must be cosine or linear, not 'step'"),
        ("betas=1", r"must be a number \+ a number, not '1'"),
        ("betas=1+2+3", r"must be a number \+ a number"),
        ("extra=[1]", "must be a JSON object"),
        ("extra={", "must be a JSON object"),
    ],
)
def test_what_does_not_fit_is_a_sentence(word: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        parse_settings(Knobs, [word], what="probe knobs")


def test_a_setting_given_twice_is_a_sentence() -> None:
    with pytest.raises(UsageError, match="The setting count was given twice: '1' and '2'"):
        split_settings(["count=1", "count=2"])


def test_values_pass_where_they_fit_and_are_refused_where_not() -> None:
    assert parse_settings(Knobs, {"rate": 1, "name": 2, "members": ["x"], "loud": True, "limit": None}) == Knobs(
        rate=1.0, name="2", members=("x",), loud=True
    )
    for name, value in (("count", 1.5), ("count", True), ("loud", 1), ("schedule", "step"), ("extra", 3)):
        with pytest.raises(UsageError, match=f"setting {name}"):
            parse_settings(Knobs, {name: value})


def test_fields_that_are_inherited_are_known_with_their_lines() -> None:
    assert parse_settings(More, ["depth=4", "count=1"]) == More(depth=4, count=1)
    told = {one.name: one for one in describe_settings(More)}
    assert told["count"].about == "How many there are."
    assert (told["depth"].about, told["depth"].type, told["depth"].default) == ("How deep.", "whole number", 3)
    assert told["rate"].about == ""
    assert told["folder"].type == "path or none"
    assert told["extra"].default == {}


def test_the_parameters_of_a_function_are_settings_too() -> None:
    def make(argument: str, *, data: object = None, seed: int = 0, plain=0.5, late=None, **others: Any) -> None:  # type: ignore[no-untyped-def]
        """Makes nothing."""

    hidden = ("argument", "data")
    read = read_settings(make, ["seed=4", "plain=1", "late=3", "version=1.50"], hidden=hidden)
    assert read == {"seed": 4, "plain": 1.0, "late": 3, "version": "1.50"}
    assert [one.name for one in describe_settings(make, hidden)] == ["seed", "plain", "late"]
    with pytest.raises(UsageError, match="The player make has no option 'data'"):
        read_settings(make, ["data=3"], what="player make", hidden=hidden, noun="option")


def test_a_parameter_without_annotation_is_guessed() -> None:
    def make(first, flag=False, text="a", **rest):  # type: ignore[no-untyped-def]
        pass

    words = ["first=3", "flag=on", "text=3", "rest_1=true", "rest_2=hello"]
    assert read_settings(make, words) == {"first": 3, "flag": True, "text": "3", "rest_1": True, "rest_2": "hello"}


def test_a_setting_without_default_is_needed() -> None:
    @dataclass(frozen=True)
    class Needs:
        path: str

    assert describe_settings(Needs)[0].default is REQUIRED
    with pytest.raises(UsageError, match="The format needs needs the setting 'path'"):
        parse_settings(Needs, [], what="format needs")


def test_a_comma_ends_a_value_only_before_a_new_key() -> None:
    assert split_spec("noise:k=3,pool=a,b.txt,lam=1") == ("noise", ["k=3", "pool=a,b.txt", "lam=1"])
    assert split_spec("noise") == ("noise", [])
    assert split_spec("noise:k=3,,lam=1,") == ("noise", ["k=3", "lam=1"])
