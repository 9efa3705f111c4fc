"""What people can be asked: one file a kind, registered here."""

from __future__ import annotations

from pfungst.core import UsageError
from pfungst.core.registry import Registry
from pfungst.core.settings import parse_settings, split_spec
from pfungst.study.kinds.base import Kind, Made, Outcome

KINDS = Registry(
    "kind of study",
    "pfungst.studies",
    {
        "same-different": "pfungst.study.kinds.same_different:SameDifferent",
        "withheld": "pfungst.study.kinds.withheld:Withheld",
        "rephrase": "pfungst.study.kinds.rephrase:Rephrase",
        "validate": "pfungst.study.kinds.validate:Validate",
        "judge": "pfungst.study.kinds.judge:Judge",
    },
    UsageError,
)

__all__ = ["KINDS", "Kind", "Made", "Outcome", "get_kind"]


def get_kind(spec: str) -> Kind:
    """A kind from a word, with settings after a colon: `withheld:conditions=A+IQA`."""
    name, words = split_spec(spec)
    kind: Kind = parse_settings(KINDS.get(name), words, what=f"study {name}")
    return kind
