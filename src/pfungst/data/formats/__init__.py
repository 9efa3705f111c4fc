"""The published formats, one file each. A new one is one new file and one line here."""

from __future__ import annotations

from functools import cache

from pfungst.core import PfungstError
from pfungst.core.registry import Registry
from pfungst.data.formats.made import Made
from pfungst.data.job import Format

FORMATS = Registry(
    kind="data format",
    group="pfungst.datasets",
    builtin={
        "vqa": "pfungst.data.formats.vqa:Vqa",
        "rephrasings": "pfungst.data.formats.rephrasings:Rephrasings",
        "okvqa": "pfungst.data.formats.okvqa:OkVqa",
        "visual7w": "pfungst.data.formats.visual7w:Visual7W",
        "genome": "pfungst.data.formats.genome:VisualGenome",
        "cocoqa": "pfungst.data.formats.cocoqa:CocoQa",
        "daquar": "pfungst.data.formats.daquar:Daquar",
        "gqa": "pfungst.data.formats.gqa:Gqa",
        "convqa": "pfungst.data.formats.convqa:ConVqa",
        "mme": "pfungst.data.formats.mme:Mme",
        "clevr": "pfungst.data.formats.clevr:Clevr",
        "vlmevalkit": "pfungst.data.formats.vlmevalkit:VlmEvalKit",
        "table": "pfungst.data.formats.table:TableFiles",
        "hf": "pfungst.data.formats.hf:HuggingFace",
        "world": "pfungst.data.formats.made:World",
    },
)


@cache
def get_format(name: str) -> Format:
    """The format of this name. Third parties may register a Format, or a function that returns a Dataset."""
    part = FORMATS.get(name)
    if isinstance(part, type) and issubclass(part, Format):
        return part()
    if isinstance(part, Format):
        return part
    if callable(part):
        return Made(name, part)
    raise PfungstError(f"The data format {name} is neither a Format nor a function that returns a Dataset.")
