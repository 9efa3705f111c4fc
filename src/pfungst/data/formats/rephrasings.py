"""VQA-Rephrasings: VQA v2 validation questions, each with three rephrasings by people.

`v2_OpenEnded_mscoco_valrep2014_humans_og_questions.json` and `v2_mscoco_valrep2014_humans_og_annotations.json` are in
the format of VQA; a rephrasing names its original question in `rephrasing_of`. The published ids of some rephrasings
are those of other questions; such a rephrasing is loaded with the id `ORIGINAL:ID`.
"""

from __future__ import annotations

from pfungst.data.formats.vqa import Vqa
from pfungst.data.formats.vqa_files import is_questions
from pfungst.rows.files import File


class Rephrasings(Vqa):
    """VQA-Rephrasings. `Example.group` is the id of the original question, for the original too."""

    name = "rephrasings"
    title = "VQA-Rephrasings"
    expects = "*valrep2014*questions.json and *valrep2014*annotations.json"

    def claims(self, file: File, head: str) -> float:
        return 0.95 if is_questions(file) and ("valrep" in file.stem.lower() or '"rephrasing_of"' in head) else 0.0
