"""A few hundred damaged inputs; `python -m tests.fuzz.run --count 10000` feeds the rest."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pfungst.core import Answer, Example, PfungstError
from tests.fuzz.run import TooLong, bounded, feed, warm_up
from tests.fuzz.targets import TARGETS

COUNT = {"packed_loaders": 15, "run_folders": 15, "server_responses": 15, "weights": 15}
"""Inputs of the targets that take longer; others get 25."""


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_damaged_input_is_used_or_refused_with_a_sentence(name: str) -> None:
    warm_up([name])
    ended = [feed(name, seed) for seed in range(COUNT.get(name, 25))]
    assert set(ended) <= {"used", "refused"}
    assert "refused" in ended or name == "replies", "what is never refused was never damaged"


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("run_folders", 20701),
        ("run_folders", 40040),
        ("run_folders", 40352),
        ("weights", 40100),
        ("basic_questions", 40193),
    ],
)
def test_what_once_ended_in_a_traceback_is_refused(name: str, seed: int) -> None:
    assert feed(name, seed) in ("used", "refused")  # `used` where the real files of the corpus are not at hand


def test_numbers_that_no_float_can_hold_are_refused() -> None:
    from pfungst.core import Finding
    from pfungst.core.settings import parse_settings, shaped
    from pfungst.training import FitConfig

    with pytest.raises(ValueError, match="must be a number"):
        shaped(10**400, float, "low")
    with pytest.raises(ValueError, match="lacks"):
        shaped({}, Finding, "finding")
    with pytest.raises(PfungstError, match="rate"):
        parse_settings(FitConfig, {"rate": 10**400})


@pytest.mark.parametrize(
    ("logprob", "confidence"), [(float("-inf"), 0.0), (float("nan"), None), (10**400, None), (-(10**400), None)]
)
def test_odd_probabilities_of_a_server_are_no_confidence(logprob: float, confidence: float | None) -> None:
    from pfungst.players.chat_api import _confidence

    assert _confidence({"content": [{"logprob": logprob}]}) == confidence


def test_the_same_seed_feeds_the_same_input(tmp_path: Path) -> None:
    from tests.fuzz.mutate import harm_bytes, harm_value, text

    value = json.loads(
        (Path(__file__).parents[1] / "scores" / "golden_replies.jsonl").read_text("utf-8").split("\n")[0]
    )
    for make in (lambda rng: harm_bytes(rng, b"abc" * 50), lambda rng: json.dumps(harm_value(rng, value)), text):
        assert [make(random.Random(n)) for n in range(20)] == [make(random.Random(n)) for n in range(20)]


def test_the_harness_notices_what_it_is_there_for() -> None:
    with pytest.raises(TooLong), bounded(seconds=0.1):
        while True:
            pass
    with pytest.raises(MemoryError), bounded():
        bytearray(3 << 30)


@given(st.text(max_size=200), st.lists(st.text(max_size=8), max_size=5).map(tuple), st.text(max_size=10))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_reply_is_read_as_one_of_the_choices_or_not_at_all(reply: str, choices: tuple[str, ...], kind: str) -> None:
    from pfungst.scores import METRICS
    from pfungst.scores.matchers import MATCHERS, read

    for name in MATCHERS.names():
        found = read(reply, choices, kind, name)
        assert found is None or not choices or found in choices
    example = Example("e", "q", answers=(reply,) * 10, target=reply, choices=choices)
    for name, metric in METRICS.items():
        score = metric(example, Answer(reply))
        assert score != score or 0 <= score <= 1, name


@pytest.mark.parametrize(
    "reply",
    [
        "Answer: \u0130",
        "(\u0131)",
        "\u017f",
        "the fir\u017ft option",
        "option " + "9" * 5000,
        "option \u017fix",
        "\u212a.",
    ],
)
def test_letters_of_other_alphabets_are_no_letters_of_options(reply: str) -> None:
    from pfungst.scores.matchers import MATCHERS, read

    choices = tuple(f"thing number {number}" for number in range(20))
    for name in MATCHERS.names():
        assert read(reply, choices, "", name) in (None, *choices)
    assert read(reply, choices, "", "lenient") is None


@given(st.text(max_size=60), st.sampled_from(["probe", "player", "data", "metric", "matcher"]))
@settings(max_examples=100, deadline=None)
def test_any_spec_names_a_part_or_is_refused_with_a_sentence(spec: str, what: str) -> None:
    from pfungst.data import load
    from pfungst.players import resolve
    from pfungst.probes import get_probe
    from pfungst.scores import get_metric
    from pfungst.scores.matchers import get_matcher

    make = {"probe": get_probe, "player": resolve, "data": load, "metric": get_metric, "matcher": get_matcher}[what]
    try:
        make(spec)
    except PfungstError as error:
        assert str(error)
