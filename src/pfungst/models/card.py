"""The card of a trained model: what a reader of a result wants to know. No torch here: a list must not take seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pfungst.core import PfungstError
from pfungst.models.names import SHIPPED, TABLE


def shipped_cards() -> dict[str, dict[str, Any]]:
    """Name -> description (NAME.json) of every model whose weights come with the package."""
    return {path.stem: json.loads(path.read_bytes()) for path in sorted(SHIPPED.glob("*.json"))}


def shipped_card(name: str) -> str:
    """The card of a model that comes with the package, as Markdown."""
    records = shipped_cards()
    if name not in records:
        raise PfungstError(f"The package has no weights called {name!r}. There are: {', '.join(records)}.")
    return card_text(records[name], name)


def card_text(record: Mapping[str, Any], title: str = "") -> str:
    """A model's description (model.json) as Markdown."""
    card, model = record["card"], record["model"]
    data = (card["data"] or {}).get("data", {})
    named = "; ".join(f"{split}: {one['name']} ({str(one['fingerprint'])[:12]})" for split, one in data.items())
    lines = [
        f"# {title or model}",
        "",
        *([f"{TABLE[model][1]}.", ""] if model in TABLE else []),
        f"- accuracy {card['accuracy']:.1%} (95% interval {card['low']:.1%} to {card['high']:.1%}, n = {card['n']}), "
        f"asked: {card.get('asked_on') or card['asked']}",
        *([f"- accuracy with held-out wordings {card['heldout']:.1%}"] if card.get("heldout") else []),
        *([_worth(card["seeds"])] if card.get("seeds") else []),
        f"- {card['parameters']:,} parameters",
        f"- data: {named}",
        f"- {card['steps']} steps (ended by {card['ended']}), best at {card['best_step']}; "
        f"{card['seconds']:.0f} s on {card['device']}; seed {card['seed']}",
        *([f"- with grounding, weight {card['grounding']:g}"] if card.get("grounding") else []),
        f"- command: `{card['command']}`",
        f"- versions: {', '.join(f'{k} {v}' for k, v in card['versions'].items())}; {card['made']}",
    ]
    return "\n".join(lines) + "\n"


def _worth(seeds: Mapping[str, Any]) -> str:
    """What the image is worth to a model that has a twin without one."""
    every = seeds["scores"]["All"]
    worth = {name: 100 * value for name, value in every["worth"].items()}
    return (
        f"- {'mean of ' if seeds['n'] > 1 else ''}{seeds['n']} seed{'s' if seeds['n'] > 1 else ''}: "
        f"{every['sees']['value']:.1%}; the image is worth {worth['value']:+.1f} points (95% interval "
        f"{worth['low']:.1f} to {worth['high']:.1f}) over a twin that learnt from the questions alone"
    )
