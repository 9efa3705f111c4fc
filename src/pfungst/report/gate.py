"""The gate: does a run meet its requirements, beyond what chance could have done?

A requirement such as `noise.drop<=0.05` is held against the finding's one-sided 95% bound, not against its value: for
`<=` the upper bound, for `>=` the lower one. The bound is a quantile of the same draws over images as the interval, and
stands in findings.json; where all images agree it is exact. A run written before there were such bounds is held
against its 95% interval, which is stricter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pfungst.core import Run, UsageError
from pfungst.core.types import FRACTIONS
from pfungst.report.card import format_finding, key, number
from pfungst.report.exports import Source
from pfungst.report.exports.formats import Case, junit_xml

_FORM = re.compile(r"\s*(?P<probe>[^.\[\]<>=\s]+)\.(?P<name>[^\[\]<>=]+?)\s*(?:\[(?P<condition>.*)\])?\s*"
                   r"(?P<sign><=|>=|≤|≥)\s*(?P<threshold>\S+)\s*")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Requirement:
    """`PROBE.FINDING<=THRESHOLD` or `>=`, with a condition in brackets where the finding has several."""

    text: str
    """As it was written."""
    probe: str
    name: str
    condition: str | None
    at_most: bool
    """Whether the finding may be at most, or must be at least, the threshold."""
    threshold: float
    """A fraction for findings shown in percent."""

    @classmethod
    def parse(cls, text: str) -> Requirement:
        match = _FORM.fullmatch(text)
        if match is None:
            raise UsageError(
                f"{text!r} is not a requirement. Write PROBE.FINDING<=NUMBER or >=NUMBER, for example "
                "'noise.drop<=0.05' or 'noise.accuracy[third]>=60%'."
            )
        return cls(
            text.strip(), match["probe"], match["name"], match["condition"], match["sign"] in ("<=", "≤"),
            _number(match["threshold"], text),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """A requirement and what became of it."""

    requirement: Requirement
    met: bool
    finding: Mapping[str, Any]
    """As in findings.json."""
    bound: float | None
    """What the threshold was held against; None where it cannot be known."""
    how: str
    """Which bound that is, or why there is none."""


def gate(run: str | Path, requirements: Sequence[str | Requirement], *, label: str = "") -> list[Verdict]:
    """Hold a run against its requirements. label: a second reading that `pfungst.rescore` wrote."""
    if not requirements:
        raise UsageError("A gate needs at least one requirement: --require 'noise.drop<=0.05'.")
    parsed = [one if isinstance(one, Requirement) else Requirement.parse(one) for one in requirements]
    source = Source.read(Path(run), label=label)
    found = [find(source, one) for one in parsed]
    for requirement, finding in zip(parsed, found, strict=True):
        _check_fraction(requirement, finding)
    lacking = [_missing(source, one) for one in parsed]
    return [
        Verdict(requirement, False, finding, None, why) if why else judge(requirement, finding)
        for requirement, finding, why in zip(parsed, found, lacking, strict=True)
    ]


def _missing(source: Source, requirement: Requirement) -> str:
    """Why a requirement cannot be judged, where trials of its probe are missing that the exam was not told to do
    without; else empty."""
    if source.config.get("max_errors") is not None:
        return ""
    left_out = Run(source.path, source.label).left_out
    probe = key(requirement.probe)
    # The judge is measured on all probes; an earlier version did not say of which probe a trial is.
    some = sum(count for name, count in left_out.items() if key(name) in ("", probe) or probe == "judge")
    if not some:
        return ""
    trials = f"1 trial of {requirement.probe} is" if some == 1 else f"{some:,} trials of {requirement.probe} are"
    return (
        f"{trials} missing because queries got no answer, so it cannot be judged. The same exam asks them again; with "
        "--max-errors N it does without them"
    )


def _check_fraction(requirement: Requirement, finding: Mapping[str, Any]) -> None:
    """Refuse `drop<=5`, which every run meets: five percent are 0.05."""
    threshold = requirement.threshold
    if finding.get("unit", "%") in FRACTIONS and abs(threshold) > 1 >= abs(finding["value"] or 0.0):
        raise UsageError(
            f"{requirement.text!r} asks for {threshold:.0%}: shares are fractions of 1. For {threshold:g} percent "
            f"write {threshold / 100:g} or {threshold:g}%."
        )


def judge(requirement: Requirement, finding: Mapping[str, Any]) -> Verdict:
    """Hold one finding against its requirement: it is met where the one-sided 95% bound meets it."""
    bound, how = _bound(finding, upper=requirement.at_most)
    if bound is None:
        return Verdict(requirement, False, finding, None, how)
    met = bound <= requirement.threshold if requirement.at_most else bound >= requirement.threshold
    return Verdict(requirement, met, finding, bound, how)


def _bound(finding: Mapping[str, Any], upper: bool) -> tuple[float | None, str]:
    """The bound and what it is, or None and why there is none."""
    value, images = finding["value"], finding["clusters"]
    if value is None:
        return None, "no bound can be known: the value itself is not known"
    if images < 2:
        return None, f"no bound can be known: the finding rests on {_images(images)}"
    which = "upper" if upper else "lower"
    bound, end = (finding.get("at_most"), finding["high"]) if upper else (finding.get("at_least"), finding["low"])
    if finding["low"] is None or finding["high"] is None:
        _, _, why = finding.get("how", "").partition("no interval: ")
        return None, f"no bound can be known: {why or 'the finding has no interval'}"
    if finding["low"] == finding["high"] and "bootstrap" in finding.get("how", "bootstrap"):
        return None, "no bound can be known: all images agree, so resampling them shows no spread (rescore an old run)"
    if bound is None:
        return end, f"{which} end of the 95% interval (rescore the run for the one-sided bound)"
    return bound, f"{which} one-sided 95% bound"


def find(source: Source, requirement: Requirement) -> Mapping[str, Any]:
    """The finding that a requirement names."""
    probes = {key(found["probe"]): found for found in source.sections}
    found = probes.get(key(requirement.probe))
    if found is None:
        names = {one["probe"]: one["probe"] for one in source.sections}
        raise UsageError(f"{source.path} has no probe {requirement.probe!r}. {_hint(requirement.probe, names)}")
    rows = [row for row in source.finding_rows() if row["probe"] == found["probe"]]
    wanted = key(requirement.name)
    if wanted in ("clean", "disturbed") and requirement.condition is None and found.get(wanted):
        return dict(found[wanted])
    named = [row for row in rows if key(row["name"]) == wanted]
    if not named:
        names = {row["name"]: row["id"].partition("[")[0] for row in rows}
        asked = f"{found['probe']}.{requirement.name}"
        raise UsageError(f"{source.path} has no finding {asked!r}. {_hint(requirement.name, names)}")
    if requirement.condition is not None:
        return _of_condition(named, requirement, source)
    if len(named) == 1:
        return named[0]
    for row in named:
        # Without a condition the headline drop is meant, and the control's accuracy is the player's.
        if not row["condition"] or (wanted == "drop" and "drop" in row["headline"]):
            return row
        if found["role"] == "control" and "clean" in row["headline"]:
            return row
    raise UsageError(f"{requirement.text!r} does not say which: {', '.join(row['id'] for row in named)}.")


def _of_condition(named: Sequence[Mapping[str, Any]], wanted: Requirement, source: Source) -> Mapping[str, Any]:
    condition = wanted.condition or ""
    fitting = [row for row in named if row["condition"] == condition] or [
        row for row in named if key(row["condition"]) == key(condition)
    ]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(f"{wanted.text!r} does not say which: {', '.join(row['id'] for row in fitting)}.")
    names = {row["condition"]: row["id"] for row in named}
    asked = f"{wanted.probe}.{wanted.name}[{condition}]"
    raise UsageError(f"{source.path} has no finding {asked!r}. {_hint(condition, names)}")


def junit(run: str | Path, verdicts: Sequence[Verdict], *, label: str = "") -> bytes:
    """The verdicts as JUnit XML, one test case per requirement."""
    source = Source.read(Path(run), label=label)
    cases = [
        Case(
            one.requirement.text,
            f"{format_finding(one.finding)}; n={one.finding['n']}, {_images(one.finding['clusters'])}; "
            f"{one.how}: {shown_bound(one)}; {one.finding['how']}",
            "" if one.met else sentence(one),
        )
        for one in verdicts
    ]
    return junit_xml({"pfungst.gate": cases}, datetime.now(UTC), source.about)


def shown_bound(verdict: Verdict) -> str:
    return number(verdict.bound, verdict.finding.get("unit", "%"))


def sentence(verdict: Verdict) -> str:
    """Why a requirement is met or not, in words."""
    wanted = verdict.requirement
    if verdict.bound is None:
        return f"{wanted.text} is not met: {verdict.how}."
    verb = "is met" if verdict.met else "is not met"
    return (
        f"{wanted.text} {verb}: the value{_condition(verdict)} is "
        f"{number(verdict.finding['value'], verdict.finding.get('unit', '%'))}, "
        f"the {verdict.how} is {shown_bound(verdict)} (n={verdict.finding['n']}). {verdict.finding.get('note', '')}"
    ).rstrip()


def _condition(verdict: Verdict) -> str:
    """Of which condition a number is, where the requirement leaves it open."""
    condition = verdict.finding["condition"]
    return f" ({condition})" if condition and verdict.requirement.condition is None else ""


def _number(text: str, requirement: str) -> float:
    percent = text.endswith("%")
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = float("nan")
    if value != value:
        raise UsageError(f"{text!r} in {requirement!r} is not a number. Write 0.05 or 5%.")
    return value / 100 if percent else value


def _images(count: int) -> str:
    return "one image" if count == 1 else f"{count} images"


def _hint(asked: str, names: Mapping[str, str]) -> str:
    """The closest names, and all there are. names: what is compared with what was asked -> what is shown."""
    keys = {key(compared): shown for compared, shown in names.items()}
    near = get_close_matches(key(asked), list(keys), n=3, cutoff=0.6)
    listed = f"There are: {', '.join(names.values())}."
    return f"Did you mean {' or '.join(keys[one] for one in near)}? {listed}" if near else listed
