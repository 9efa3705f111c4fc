"""pfungst list"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pfungst
from pfungst.cli.options import Json
from pfungst.cli.show import print_json, print_table, say
from pfungst.core.errors import PfungstError
from pfungst.core.registry import Registry
from pfungst.core.settings import REQUIRED, describe_settings

if TYPE_CHECKING:
    from pfungst.core.settings import Setting

COLUMNS = {"models": ("name", "what it is", "accuracy, asked on", "parameters")}
"""Of a kind that has more than a name and a line."""


def list_parts(
    kind: Annotated[str | None, typer.Argument(help="One kind: probes, players, models, adversaries ...")] = None,
    name: Annotated[
        str | None, typer.Argument(help="One part of this kind: show its settings, or a model's card.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the parts that can be named on the command line, including third-party ones.

    `pfungst list probes noise` shows a part's settings; `pfungst list models film` how a model was trained and
    what it was measured on.
    """
    found = parts()
    if kind is not None:
        if kind not in found:
            raise PfungstError(f"There is no kind of part called {kind!r}. There are: {', '.join(found)}.")
        found = {kind: found[kind]}
    if kind == "models" and name is not None:
        _print_card(name, as_json)
        return
    if kind is not None and name is not None:
        _print_settings(kind, name, as_json)
        return
    if as_json:
        print_json(found)
        return
    for title, rows in found.items():
        print_table(title, COLUMNS.get(title, ("name", "what it is")), rows)


def _print_settings(kind: str, name: str, as_json: bool) -> None:
    words = {None: "none", True: "yes", False: "no", REQUIRED: "required"}
    rows = [
        (one.name, one.type, next((words[key] for key in words if one.default is key), str(one.default)), one.about)
        for one in settings(kind, name)
    ]
    columns = ("setting", "value", "default", "what it does")
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif rows:
        print_table(f"{name}: settings", columns, rows)
    else:
        say(f"{name} has no settings.")


def _print_card(name: str, as_json: bool) -> None:
    from pfungst.models.names import shipped_card, shipped_cards

    card = shipped_card(name)
    if as_json:
        print_json(shipped_cards()[name]["card"])
    else:
        say(card, end="")


def parts() -> dict[str, list[tuple[str, ...]]]:
    """Kind to (name, one line about it, ...)."""
    from pfungst.data import FORMATS
    from pfungst.experiments import EXPERIMENTS
    from pfungst.logs import LOGS
    from pfungst.players import available
    from pfungst.players.judging import Judge, ReplyReader
    from pfungst.report.exports import EXPORTS
    from pfungst.scores import METRICS
    from pfungst.scores.matchers import MATCHERS
    from pfungst.text.encoders.vectors import ENCODERS

    known = _registries()
    metrics = Registry("metric", "pfungst.metrics", METRICS)
    own_metrics = [(name, _METRICS[name]) for name in METRICS]
    return {
        "probes": _of(known["probes"]),
        "players": list(available().items()),
        "models": _models(),
        "data": _of(FORMATS),
        "matchers": [*_of(MATCHERS), ("judge", _line(ReplyReader))],
        "metrics": [
            *own_metrics,
            *((name, _line_of(metrics, name)) for name in metrics.others()),
            ("judge", _line(Judge)),
        ],
        "logs": _of(LOGS),
        "exports": _of(EXPORTS),
        "rankers": _of(known["rankers"]),
        "rephrasers": _of(known["rephrasers"]),
        "adversaries": _of(known["adversaries"]),
        "encoders": _of(ENCODERS),
        "studies": _of(known["studies"]),
        "experiments": [(name, _line(EXPERIMENTS.get(name).config)) for name in EXPERIMENTS.names()],
    }


def _registries() -> dict[str, Registry]:
    """The kinds whose parts say themselves what can be set."""
    from pfungst.probes import PROBES
    from pfungst.probes.game.adversaries import ADVERSARIES
    from pfungst.probes.noise import RANKERS
    from pfungst.probes.rephrase.generators import REPHRASERS
    from pfungst.study.kinds import KINDS

    return {
        "probes": PROBES, "adversaries": ADVERSARIES, "rankers": RANKERS, "rephrasers": REPHRASERS, "studies": KINDS
    }  # fmt: skip


def settings(kind: str, name: str) -> list[Setting]:
    """What can be set of a part, with a line about each."""
    registries = _registries()
    if kind in registries:
        return describe_settings(registries[kind].get(name), ("argument", "name"))
    if name == "judge" and kind in ("metrics", "matchers"):
        from pfungst.players.judging import JudgeSettings, ReaderSettings

        return describe_settings(JudgeSettings if kind == "metrics" else ReaderSettings)
    if kind == "players":
        from pfungst.players.resolving import options_of

        return options_of(name)
    if kind == "data":
        from pfungst.data.formats import get_format

        return describe_settings(get_format(name).options, ("place", "split"))
    if kind == "experiments":
        from pfungst.experiments import get_experiment

        return describe_settings(get_experiment(name).config)
    raise PfungstError(f"Parts of the kind {kind} have no settings.")


def _models() -> list[tuple[str, ...]]:
    """Architectures and shipped weights, from their cards: torch, which takes seconds, is needed only for third-party
    ones."""
    from pfungst.models.names import TABLE, shipped_cards

    cards = shipped_cards()
    rows: list[tuple[str, ...]] = []
    for name, (_, about) in TABLE.items():
        named = [one for one in cards if cards[one]["model"] == name]
        rows += [(one, about, *_measured(cards[one]["card"])) for one in named]
        rows += [] if named else [(name, about, "no weights: pfungst train", "")]
    others = Registry("model", "pfungst.models", {})
    rows += [(name, _line_of(others, name), "no weights: pfungst train", "") for name in others.others()]
    return rows


def _measured(card: Mapping[str, Any]) -> tuple[str, str]:
    told = f"{card['accuracy']:.1%} [{card['low']:.1%}, {card['high']:.1%}], {card.get('asked_on', card['asked'])}"
    return told, f"{card['parameters']:,}"


_METRICS = {
    "vqa": "VQA accuracy, the published evaluation bug for bug",
    "vqa-fixed": "the same without its two bugs",
    "vqa-paper": "min(matches / 3, 1)",
    "exact": "the answer is the target",
    "choice": "the chosen option is the target",
    "wups0.9": "Wu-Palmer similarity of answers, threshold 0.9",
    "wups0.0": "Wu-Palmer similarity of answers, threshold 0.0",
    "yes/no": "yes or no right, for questions with one of the two as the right answer",
    "f1": "words shared with the target, as SQuAD counts them",
    "recall": "share of the target's words that the answer has",
    "anls": "edit distance to the target, 0 from half of the length on",
    "contains": "the target appears in the answer, as whole words",
    "relaxed": "a number may be 5% off, anything else must be equal",
    "any": "the answer is one of the right ones",
}
"""What the metrics are: functions made of other functions, which say nothing themselves."""


def _of(registry: Registry) -> list[tuple[str, ...]]:
    return [(name, _line_of(registry, name)) for name in registry.names()]


def _line_of(registry: Registry, name: str) -> str:
    """The first line about a part. Our own are read where they stand: some need torch, which takes seconds."""
    place = next((kind.builtin[name] for kind in (registry, *registry.further) if name in kind.builtin), None)
    if isinstance(place, str):
        module, _, attribute = place.partition(":")
        path = Path(pfungst.__file__).parents[1] / f"{module.replace('.', '/')}.py"
        for part in ast.parse(path.read_text("utf-8")).body if path.exists() else ():
            if isinstance(part, ast.ClassDef | ast.FunctionDef) and part.name == attribute:
                return (ast.get_docstring(part) or "").split("\n")[0]
    return _line(registry.get(name))


def _line(part: object) -> str:
    return (getattr(part, "__doc__", None) or "").strip().split("\n")[0]
