"""The names of the zoo, and the cards of the models that come with the package. No torch here: a list must not take
seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pfungst.core import PfungstError

SHIPPED = Path(__file__).parent / "weights"
"""Where the weights are that come with the package: NAME.safetensors, and NAME.json with its card."""
TABLE = {
    "lstm-qi": ("lstm_qi:LstmQI", "LSTM Q+I: a deeper LSTM with a normalised image (Antol et al. 2015)"),
    "hiecoatt": ("hiecoatt:HieCoAtt", "hierarchical co-attention, alternating (Lu et al. 2016)"),
    "mutan": ("mutan:Mutan", "MUTAN without attention: Tucker fusion (Ben-younes et al. 2017)"),
    "mutan-att": ("mutan:MutanAttention", "MUTAN with attention (Ben-younes et al. 2017)"),
    "mlb": ("mlb:Mlb", "MLB with attention: Hadamard low-rank pooling (Kim et al. 2017)"),
    "butd": ("butd:Butd", "bottom-up and top-down attention (Anderson et al. 2018)"),
    "pythia": ("pythia:Pythia", "Pythia v0.1 (Jiang et al. 2018)"),
    "ban": ("ban:Ban", "bilinear attention network (Kim et al. 2018)"),
    "san": ("san:San", "stacked attention (Yang et al. 2016)"),
    "film": ("film:Film", "feature-wise linear modulation (Perez et al. 2018)"),
    "rn": ("relation:Relation", "relation network on pixels (Santoro et al. 2017)"),
    "rn-state": ("relation:RelationState", "relation network on scenes (Santoro et al. 2017)"),
    "iep": ("iep:Iep", "inferring and executing programs (Johnson et al. 2017)"),
    "tbd": ("tbd:Tbd", "transparency by design (Mascharka et al. 2018)"),
    "mdetr": ("mdetr:Mdetr", "text-modulated detection transformer, compact (Kamath et al. 2021)"),
    "state-transformer": ("state_transformer:StateTransformer", "State-Input Transformer on scenes (the game's A.3)"),
    "mlp-a": ("mlp:MlpA", "scores choices by the choices alone (Jabri et al. 2016)"),
    "mlp-qa": ("mlp:MlpQA", "scores choices by the question (Jabri et al. 2016)"),
    "mlp-ia": ("mlp:MlpIA", "scores choices by the image (Jabri et al. 2016)"),
    "mlp-iqa": ("mlp:MlpIQA", "scores choices by image and question (Jabri et al. 2016)"),
    "attention": ("spatial_memory:SpatialMemory", "spatial memory network for choices (Xu and Saenko 2016)"),
    "hiecoatt-mc": ("hiecoatt:HieCoAttChoice", "hierarchical co-attention for choices (Lu et al. 2016)"),
    "slot-attention": (
        "slot_attention:SlotAttentionModel",
        "finds objects and their attributes (Locatello et al. 2020)",
    ),
    "world-cnn": ("world_cnn:WorldCnn", "the CNN whose frozen features the others see on the world"),
}
"""Name -> module:class below pfungst.models, and a line about it."""


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
