"""pfungst list"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst.cli.examine import Json
from pfungst.cli.show import print_json, print_table
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
        print(f"{name} has no settings.")


def _print_card(name: str, as_json: bool) -> None:
    from pfungst.models.card import shipped_card, shipped_cards

    card = shipped_card(name)
    if as_json:
        print_json(shipped_cards()[name]["card"])
    else:
        typer.echo(card, nl=False)


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
    from pfungst.text.encoders import list_encoders

    known = _registries()
    return {
        "probes": _of(known["probes"]),
        "players": list(available().items()),
        "models": _models(),
        "data": _of(FORMATS),
        "matchers": [*_of(MATCHERS), ("judge", _line(ReplyReader))],
        "metrics": [*_told(METRICS), ("judge", _line(Judge))],
        "logs": _of(LOGS),
        "exports": _of(EXPORTS),
        "rankers": _of(known["rankers"]),
        "rephrasers": _told(known["rephrasers"].names()),
        "adversaries": _told(known["adversaries"].names()),
        "encoders": _told(list_encoders()),
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
    from pfungst.models.card import shipped_cards
    from pfungst.models.names import TABLE

    cards = shipped_cards()
    rows: list[tuple[str, ...]] = []
    for name, (_, about) in TABLE.items():
        named = [one for one in cards if cards[one]["model"] == name]
        rows += [(one, about, *_measured(cards[one]["card"])) for one in named]
        rows += [] if named else [(name, about, "no weights: pfungst train", "")]
    others = Registry("model", "pfungst.models", {})
    rows += [(name, _line(others.get(name)), "no weights: pfungst train", "") for name in others.others()]
    return rows


def _measured(card: Mapping[str, Any]) -> tuple[str, str]:
    told = f"{card['accuracy']:.1%} [{card['low']:.1%}, {card['high']:.1%}], {card.get('asked_on', card['asked'])}"
    return told, f"{card['parameters']:,}"


# Of parts that say nothing themselves, or only after torch was loaded.
_LINES = {
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
    "asked": "asked:POOL, questions that people asked about other images, with the same content words",
    "learnt": "learnt:FOLDER, a paraphraser that was learnt from pairs of sentences",
    "rules": "grammatical rules for wh- and yes/no questions, with a check of the meaning",
    "world": "the phrasings of the world's templates, for questions with a program",
    "model": "model:PLAYER, a player that writes, with a check of the meaning",
    "vqg": "vqg:FOLDER, the question generator of a cycle-trained model",
    "a2c": "the paper's actor-critic, on legal moves, imitating what it found",
    "a2c-pixel": "the same, seeing the picture instead of the objects",
    "a2c-plain": "the actor-critic exactly as in the paper",
    "committee": "the legal scenes that other models of the zoo find hardest",
    "cross-entropy": "one distribution per object, sharpened towards what did best",
    "greedy": "one object at a time, to all its legal places",
    "rsg": "random legal scenes",
    "skip-thoughts": "the default: our own compact model, 512-d; :FOLDER for the published one, :FILE for yours",
    "minilm": "all-MiniLM-L6-v2, 384-d",
    "sentence-transformers": "sentence-transformers:NAME, any model of that library",
    "words": "words:FILE, averaged word vectors",
    "tfidf": "TF-IDF over words and word pairs, 2048-d",
}


def _told(names: Iterable[str]) -> list[tuple[str, ...]]:
    return [(name, _LINES.get(name, "")) for name in names]


def _of(registry: Registry) -> list[tuple[str, ...]]:
    return [(name, _line(registry.get(name))) for name in registry.names()]


def _line(part: object) -> str:
    return (getattr(part, "__doc__", None) or "").strip().split("\n")[0]
