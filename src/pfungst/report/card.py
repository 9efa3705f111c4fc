"""Findings as they stand in the files of a run, their names as a person writes them (`noise.drop`, `rephrase.cs4`,
`noise.accuracy[third]`), and the report card: one line per probe, with a verdict that tells where a player is stable
because it is blind. The summary of a report is made of the same findings.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pfungst.core import PfungstError
from pfungst.core.run import read_numbers
from pfungst.core.types import BEYOND, FRACTIONS, POINTS

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def key(words: str) -> str:
    """What is compared: letters and digits only, so that `CS(4)`, `cs4` and `cs-4` are one name.

    The noise levels are called First, Second ...; `partition 3` is another way to say Third.
    """
    plain = re.sub(r"[\W_]+", "", words.casefold())
    return f"partition{_ORDINALS.index(plain) + 1}" if plain in _ORDINALS else plain


def dashed(words: str) -> str:
    """A name as it is shown: `any-flip rate` -> `any-flip-rate`, `CS(4)` -> `cs4`."""
    return re.sub(r"[\W_]+", "-", re.sub(r"[()]", "", words.casefold())).strip("-")


def finding_name(probe: str, finding: Mapping[str, Any]) -> str:
    """`PROBE.FINDING`, with the condition in brackets where there is one."""
    condition = finding.get("condition") or ""
    return f"{probe}.{dashed(finding['name'])}" + (f"[{condition}]" if condition else "")


def read_findings(run: Path, label: str = "") -> list[dict[str, Any]]:
    """The list in findings.json, or in findings-LABEL.json."""
    found: list[dict[str, Any]] = read_numbers(run, label)["findings"]
    return found


def read_judge(run: Path, label: str = "") -> dict[str, Any] | None:
    """What is to be known about the judge, in the form of a probe's findings; None where no judge was the metric."""
    found: dict[str, Any] | None = read_numbers(run, label).get("judge")
    return found


def read_extras(run: Path, probe: str) -> dict[str, Any]:
    """What was added to a probe's findings beside findings.json: more tables, and albums of images by title."""
    return read_kept(run / probe / "extras.json") or {"tables": [], "albums": {}}


def read_kept(path: Path) -> dict[str, Any]:
    """What is kept in a file of its own, such as by the keys of answers; nothing where there is no such file."""
    if not path.exists():
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise PfungstError(f"{path} cannot be read ({error}). Delete it, or run the same command again.") from error
    return found


CARD_COLUMNS = ("probe", "clean", "disturbed", "drop", "p", "p (Holm)", "n", "verdict")
P_NOTE = "p: of the paired test of a drop, as it is; p (Holm): corrected over the drops of all probes of the run."
STABLE = 0.05
"""A player counts as stable under a probe if its accuracy falls by no more than this."""
FEW = 10
"""Effective images behind an interval, as in `pfungst.core.stats`; with fewer it is wide, and less sure."""


def number(value: float | None, unit: str = "%") -> str:
    """A number for people: fractions in percent or points, unknown ones as a dash."""
    if value is None or value != value:
        return "–"
    if unit in FRACTIONS:
        return f"{100 * value:.1f}{'%' if unit == '%' else f' {unit}'}"
    plain = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{plain}{' ' + unit if unit else ''}"


def format_finding(finding: Mapping[str, Any] | None) -> str:
    """`71.2% [69.8, 72.5]` from a finding as it stands in findings.json."""
    if finding is None:
        return "–"
    unit = finding.get("unit", "%")
    text = number(finding["value"], unit)
    if finding.get("changed") == 0 and finding.get("at_most") is not None:
        most = number(finding["at_most"])
        return f"{text} (0 of {finding['n']:,} scores changed, at most {most}; 95%, {finding['clusters']:,} images)"
    if finding.get("low") is None or finding.get("high") is None:
        return text
    low, high = (number(finding[name], unit).removesuffix("%").removesuffix(f" {POINTS}") for name in ("low", "high"))
    return f"{text} [{low}, {high}]"


def join_words(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def format_p(value: float | None) -> str:
    if value is None or value != value:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def format_cell(cell: Any) -> str:
    """A table cell: a finding, a number, or words."""
    if isinstance(cell, Mapping):
        return format_finding(cell)
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return str(cell)


def blindness(findings: Sequence[Mapping[str, Any]]) -> str:
    """Why stability is no robustness here, in a sentence; empty where nothing says so.

    findings: the list in findings.json.
    """
    from pfungst.probes.contrast.probe import BLIND, IMAGE

    rows = {(one["probe"], row["name"], row.get("condition", "")): row for one in findings for row in one["rows"]}
    same = rows.get(("contrast", "same answer", IMAGE))
    if same is not None and or_nan(same.get("at_least")) >= BLIND:
        return (
            f"Stable because it is blind: where the right answer changes with the image, it says the same in "
            f"{100 * same['value']:.1f}% of the pairs (contrast)."
        )
    gain = next((row for (probe, name, _), row in rows.items() if (probe, name) == ("blind", "gain")), None)
    if gain is not None and or_nan(gain.get("high")) <= STABLE and or_nan(gain.get("low")) <= 0:
        return (
            f"Stable, but nothing shows that it looks: it does as well without the image (blind, {gain['condition']})."
        )
    return ""


def clean_sides(findings: Sequence[Mapping[str, Any]], left_out: Mapping[str, int]) -> str:
    """Over how many questions each clean accuracy is, in a sentence; empty where they do not differ.

    left_out: by probe, its trials that are left out because asking failed, see `Run.left_out`.
    """
    known = [one for one in findings if one["clean"] and one["clean"]["value"] is not None]
    if len({number(one["clean"]["value"]) for one in known}) < 2:
        return ""
    asked: dict[int, list[str]] = {}
    for one in known:
        asked.setdefault(one["clean"]["n"], []).append(one["probe"])
    listed = "; ".join(f"{join_words(names)}: {n:,}" for n, names in sorted(asked.items(), reverse=True))
    if not left_out:
        return (
            "Clean accuracies differ: each is over the questions that its probe can ask, in the form in which it asks "
            f"them ({listed})."
        )
    if len({one["clean"]["n"] + left_out.get(one["probe"], 0) for one in known}) == 1:
        return f"Clean accuracies differ because queries failed: each is over the questions with an answer ({listed})."
    return (
        "Clean accuracies differ: each is over the questions that its probe can ask, in the form in which it asks "
        f"them, and queries failed: those without an answer are left out ({listed})."
    )


def too_few(findings: Sequence[Mapping[str, Any]]) -> str:
    """`few_images` for the numbers of the report card; where those have enough images, for all others of the run.

    findings: the list in findings.json.
    """
    cards, others = [], []
    for one in findings:
        named = {"probe": one["probe"]}
        cards += [{**(one[part] or {}), **named} for part in ("clean", "disturbed", "drop")]
        others += [{**row, **named} for row in one["rows"]]
        for table in one["tables"]:
            cells = [cell for row in table["rows"] for cell in row if isinstance(cell, Mapping)]
            others += [{**cell, "probe": f"{one['probe']}, {table['title']}"} for cell in cells]
    return few_images(cards) or few_images(others)


def how_many(config: Mapping[str, Any]) -> str:
    """How many questions a run asked about, and in how many wordings."""
    examples, originals = config["data"]["examples"], config["data"].get("originals")
    if config.get("logs"):
        return f"{examples:,} recorded replies"
    if originals in (None, examples):
        return f"{examples:,} questions"
    return f"{originals:,} questions in {examples:,} wordings"


def few_images(shown: Sequence[Mapping[str, Any]]) -> str:
    """What few images mean for these numbers, in a sentence or two; empty where there are enough."""
    known = [(row.get("effective") or row["clusters"], row) for row in shown if row.get("value") is not None]
    few = sorted(((behind, row) for behind, row in known if 0 < behind < FEW), key=lambda pair: pair[0])
    if not few:
        return ""
    behind, row = few[0]
    where = " ".join(
        filter(None, (f"{row['probe']}:" if "probe" in row else "", row.get("name"), row.get("condition")))
    )
    least = f"{where} on as many as {behind:.1f} of equal size" if where else f"as many as {behind:.1f} of equal size"
    told = f"{len(few)} of the {len(known)} numbers rest on few images, the fewest: {least}."
    return (
        f"{told} Below {FEW} effective images an interval is wide, and holds the true value in at least 90 of 100 "
        "cases rather than 95; below 5, even that is not sure; below 2 there is none."
    )


def verdict_of(one: Mapping[str, Any], blind: str) -> str:
    """The verdict of a probe; how much of its drop is formatting; where the player is stable because it is blind, that
    too."""
    drop = one["drop"] or {}
    stable = one["role"] == "keeps" and or_nan(drop.get("value")) <= STABLE
    return " ".join(filter(None, (one["verdict"], formatting(drop), blind if stable else "")))


def formatting(drop: Mapping[str, Any]) -> str:
    """How much of a drop is formatting, in a sentence; empty where nothing of it is."""
    without = drop.get("without_formatting")
    if without is None:
        return ""
    return (
        f"In {number(drop['formatting'])} of the trials ({round(drop['formatting'] * drop['n']):,} of {drop['n']:,}) "
        "answers that are the same score differently, by their form alone; where they score the same, the drop is "
        f"{format_finding(without)}."
    )


def or_nan(value: Any) -> float:
    """A number of a finding; NaN, which no comparison holds for, where it is unknown."""
    return float("nan") if value is None else float(value)


def card_rows(findings: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Rows under CARD_COLUMNS, from the list in findings.json. The control comes first: drops are read against it."""
    ordered = sorted(findings, key=lambda one: one["role"] != "control")
    blind = blindness(findings)
    return [
        (
            one["probe"],
            format_finding(one["clean"]),
            format_finding(one["disturbed"]),
            format_finding(one["drop"]),
            format_p((one["drop"] or {}).get("p")),
            format_p(one["p_holm"]),
            str((one["drop"] or one["clean"] or {}).get("n", "–")),
            verdict_of(one, blind),
        )
        for one in ordered
    ]


# --- the summary: the first screen of a report, and the result in two sentences ---------------------------------------

SUMMARY_COLUMNS = ("probe", "clean", "clean low", "clean high", "disturbed", "disturbed low", "disturbed high",
                   "drop", "drop low", "drop high", "p (Holm)", "n")  # fmt: skip
SUMMARY_TITLE = "Accuracy, clean and disturbed"
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Row:
    """One probe of the summary."""

    probe: str
    clean: Mapping[str, Any]
    disturbed: Mapping[str, Any] | None
    drop: Mapping[str, Any] | None
    removes: bool
    """Whether the probe takes the evidence away: there a large drop is as it should be."""
    p: float = math.nan
    """Of the drop, corrected by Holm over the drops of all probes, or of all conditions."""
    is_control: bool = False
    """Whether nothing is disturbed: the control, or a condition that repeats the clean one."""

    @property
    def lost(self) -> bool:
        """Whether a disturbance that keeps the right answer costs accuracy, beyond chance."""
        keeps = self.drop is not None and not (self.removes or self.is_control)
        return keeps and ((self.drop or {})["value"] or 0.0) > 0 and self.p < SIGNIFICANT


def summary_rows(findings: Sequence[Mapping[str, Any]], again: Sequence[str] = ()) -> list[Row]:
    """The probes that measured something: the control first, those that take evidence away last.

    Conditions that somebody else made are rows of their own. again: those of them that repeat the clean one.
    """
    rows: list[Row] = []
    for one in findings:
        if one["clean"] is None or one["clean"]["value"] is None:
            continue
        apart = _conditions(one, again) if one["probe"] == "conditions" else []
        whole = Row(one["probe"], one["clean"], one["disturbed"], one["drop"], one["role"] == "removes",
                    or_nan(one["p_holm"]), is_control=one["role"] == "control")  # fmt: skip
        rows += apart or [whole]
    rows.sort(key=lambda row: (not row.is_control, row.removes))
    return rows


def _conditions(one: Mapping[str, Any], again: Sequence[str]) -> list[Row]:
    """A row for each condition whose accuracy and drop the findings have."""
    scores = {row["condition"]: row for row in one["rows"] if row["name"] == "accuracy"}
    drops = {row["condition"]: row for row in one["rows"] if row["name"] == "drop"}
    # The mean over all of them stands among the rows too; each alone says more.
    names = [row["condition"] for row in one["rows"] if row["name"] == "answers changed"]
    found = []
    for name in names:
        if name in scores and name in drops:
            drop = drops[name]
            # An earlier version kept the corrected one alone, as p.
            p = drop["p"] if drop["p_holm"] is None else drop["p_holm"]
            found.append(Row(name, one["clean"], scores[name], drop, False, or_nan(p), name in again))
    return found


def verdict(name: str, rows: Sequence[Row], findings: Sequence[Mapping[str, Any]]) -> str:
    """The result in two sentences: what disturbances cost, and what it rests on. A third says where a player is stable
    because it is blind."""
    if not rows:
        return "No probe of this run measured an accuracy. The numbers of each probe are below."
    base = max(rows, key=lambda row: (row.is_control, row.clean["n"]))
    first = f"{name} scores {format_finding(base.clean)} on {base.clean['n']:,} questions"
    kept = [row for row in rows if row.drop is not None and not row.is_control and not row.removes]
    lost = sorted((row for row in kept if row.lost), key=lambda row: -(row.drop or {})["value"])
    if lost:
        beyond = {one["probe"]: row for one in findings for row in one["rows"] if row["name"] == BEYOND}
        named = [
            f"{row.probe} ({format_finding(beyond[row.probe])} beyond the mean of its controls)"
            if row.probe in beyond
            else row.probe
            for row in lost
        ]
        first += f" and loses {format_finding(lost[0].drop)} under {named[0]}"
        others = named[1:]
        first += f"; {join_words(others)} cost{'s' if len(others) == 1 else ''} accuracy too." if others else "."
    elif kept:
        several = f"none of the {len(kept)} disturbances costs it accuracy"
        first += f", and {several if len(kept) > 1 else f'{kept[0].probe} costs it no accuracy'} beyond chance"
        reach = max(kept, key=lambda row: (row.drop or {}).get("high") or -1.0)
        high = (reach.drop or {}).get("high") or 0.0
        fits = f", though a loss of up to {number(high, POINTS)} under {reach.probe} fits the data"
        first += f"{fits if high > 0 else ''}."
    else:
        first += "."
    blind = blindness(findings) if kept and not lost else ""
    return f"{first} {_foundation(rows, findings)} {blind}".rstrip()


def _foundation(rows: Sequence[Row], findings: Sequence[Mapping[str, Any]]) -> str:
    """What the first sentence has to be read against."""
    parts = [
        f"with the evidence taken away ({row.probe}, {row.disturbed['condition']}) it still scores "
        f"{format_finding(row.disturbed)}"
        for row in rows
        if row.removes and row.disturbed is not None and row.disturbed["value"] is not None
    ][:1]
    recorded = [one for one in findings if one["probe"] == "conditions"]
    every = [row for one in recorded for row in one["rows"] if row["name"] == "all of group" and row["n"]]
    parts += [f"all its answers to a question are right in {format_finding(row)}" for row in every]
    controls = {row.probe for row in rows if row.is_control}
    again = controls | {one["clean"]["condition"] for one in recorded if one["clean"]}
    changed = [
        row
        for one in findings
        for row in one["rows"]
        if row["name"] == "answers changed" and (one["role"] == "control" or row["condition"] in again)
    ]
    if changed:
        parts.append(f"asked again it changes {format_finding(changed[0])} of its answers")
    elif controls or recorded:
        parts.append("these are recorded answers, one per question, so sampling noise is unknown")
    else:
        parts.append("the control did not run, so sampling noise is unknown")
    told = join_words(parts)
    return f"{told[0].upper()}{told[1:]}."


def table_rows(rows: Sequence[Row]) -> list[list[Any]]:
    """The numbers of the figure, under SUMMARY_COLUMNS."""

    def three(one: Mapping[str, Any] | None) -> list[Any]:
        return [None, None, None] if one is None else [one["value"], one.get("low"), one.get("high")]

    return [
        [row.probe, *three(row.clean), *three(row.disturbed), *three(row.drop), None if row.p != row.p else row.p,
         row.clean["n"]]
        for row in rows
    ]  # fmt: skip
