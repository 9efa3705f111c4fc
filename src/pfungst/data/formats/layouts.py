"""Tables as they are published: how columns of known data sets are called. One entry of `LAYOUTS` a data set, and only
for what the general names of `NAMES` do not say already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from pfungst.rows.cells import options_at_end

NAMES: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "query", "sent", "Question", "text"),
    "hint": ("hint",),
    "id": ("id", "question_id", "qa_id", "questionId", "uid", "qid", "index", "Index", "lndex"),
    "image": (
        "image",
        "image_path",
        "image_file",
        "file_name",
        "img",
        "Image",
        "image_name",
        "img_name",
        "imgname",
        "filename",
        "images",
        "image_1",
    ),
    "image_id": ("image_id", "imageId", "img_id", "image_source"),
    "answers": ("answers", "direct_answers"),
    "answer": ("answer", "label", "correct_choice_idx", "Answer"),
    "target": ("target", "multiple_choice_answer"),
    "choices": ("choices", "options", "multiple_choices", "Options"),
    "answer_type": ("answer_type",),
    "question_type": ("question_type", "type", "category", "l2-category", "content_type", "Question_Type"),
    "group": ("group", "rephrasing_of"),
    "contrast": ("contrast_group",),
    "wording": ("wording", "phrasing_split"),
    "scene": ("scene",),
    "program": ("program",),
}
"""Field of an example -> columns it is read from; the first that has a value counts."""

OPTION_COLUMNS = (
    tuple(ascii_uppercase),
    tuple(f"choice_{letter}" for letter in ascii_lowercase),
    tuple(f"option_{letter}" for letter in ascii_lowercase),
)
"""Columns that hold one option each: A, B ... (MMBench), choice_a, choice_b ... (SEED-Bench)."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The table of one data set."""

    name: str
    has: frozenset[str]
    """Columns by which it is recognised."""
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Fields that are read from other columns than those of `NAMES`."""
    id: tuple[str, ...] = ()
    """Columns whose values, joined by `_`, are the id."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """What the answers of the file mean."""
    image: str = ""
    """Where an image lies, from the columns of its row: `{split}/{id}/{image}`."""
    options_in_question: bool = False
    """The options stand at the end of the question, and the answer is a letter."""
    contrast: Callable[[Mapping[str, Any]], str] | None = None
    """The contrast group of a row: questions that look alike but are not answered alike."""
    linked: tuple[str, str] | None = None
    """Columns that list the ids of questions that ask the same, and of questions whose answers follow."""
    unfold: Callable[[Mapping[str, Any]], Iterable[Mapping[str, Any]]] | None = None
    """Several questions in one row."""


_TWO = ("A", "B")


def naturalbench(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A question of NaturalBench with its two options, where it is a multiple choice: they stand at its end."""
    question, answer = row.get("question"), row.get("answer")
    if row.get("question_type") != "multiple_choice" or not isinstance(question, str):
        return row
    question, options = options_at_end(question)
    options = options if len(options) == 2 else _TWO
    return {
        **row,
        "question": question,
        "choices": list(options),
        "answer": options[_TWO.index(answer)] if answer in _TWO else answer,
    }


def _wide(row: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Two questions on two images: four questions, named `q0i0` ... as in the paper."""
    for question in (0, 1):
        for image in (0, 1):
            yield naturalbench(
                {
                    "id": f"{row.get('Index')}-q{question}i{image}",
                    "question": row.get(f"Question_{question}"),
                    "image": row.get(f"Image_{image}"),
                    "image_id": f"{row.get('Index')}-i{image}",
                    "answer": row.get(f"Image_{image}_Question_{question}"),
                    "question_type": row.get("Question_Type"),
                    "contrast_group": str(row.get("Index")),
                }
            )


def _narrow(row: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """One question on one image a row, four rows a group."""
    number = str(row.get("Index")).strip().removesuffix(".0")
    yield naturalbench(
        {
            "id": row.get("Index"),
            "question": row.get("Question"),
            "image": row.get("Image"),
            "answer": row.get("Answer"),
            "question_type": row.get("Question_Type"),
            "contrast_group": str(int(number) // 4) if number.isdecimal() else None,
        }
    )


def _pair(row: Mapping[str, Any]) -> str:
    """MMVP counts its rows from 1, two of them a pair. Its release spells the column `lndex`."""
    number = str(row.get("Index", row.get("lndex"))).strip().removesuffix(".0")
    return str((int(number) - 1) // 2) if number.isdecimal() else ""


def _set(row: Mapping[str, Any]) -> str:
    """A set of HallusionBench: one or more questions, each about a figure and about edited copies of it."""
    return "_".join(str(row.get(part)) for part in ("category", "subcategory", "set_id"))


LAYOUTS = (
    Layout(
        "HallusionBench",
        frozenset({"category", "subcategory", "set_id", "figure_id", "question_id", "gt_answer"}),
        columns={"answer": ("gt_answer",), "image_id": ("filename",), "question_type": ("subcategory",)},
        id=("category", "subcategory", "visual_input", "set_id", "figure_id", "question_id"),
        answers={"0": "no", "1": "yes"},
        contrast=_set,
    ),
    Layout(
        "MMVP",
        frozenset({"Question", "Options", "Correct Answer"}),
        columns={"answer": ("Correct Answer",), "image_id": ("Index", "lndex")},
        contrast=_pair,
    ),
    Layout(
        "MMStar",
        frozenset({"index", "question", "answer", "l2_category", "meta_info"}),
        options_in_question=True,
    ),
    Layout(
        "MathVista",
        frozenset({"pid", "question", "answer", "unit", "precision"}),
        columns={"id": ("pid",), "image": ("decoded_image", "image")},
    ),
    Layout(
        "ScienceQA", frozenset({"id", "question", "choices", "image", "split", "lecture"}), image="{split}/{id}/{image}"
    ),
    Layout(
        "NaturalBench",
        frozenset({"Question_0", "Question_1", "Image_0_Question_0", "Image_1_Question_1"}),
        unfold=_wide,
    ),
    Layout(
        "NaturalBench for lmms-eval",
        frozenset({"Index", "Question", "Answer", "Question_Type"}),
        unfold=_narrow,
    ),
    Layout(
        "GQA",
        frozenset({"id", "imageId", "question", "isBalanced", "equivalent", "entailed"}),
        linked=("equivalent", "entailed"),
    ),
)

PLAIN = Layout("", frozenset())


def layout_of(columns: Iterable[str]) -> Layout:
    """The published layout that has these columns; a plain table if none does."""
    names = frozenset(columns)
    return next((layout for layout in LAYOUTS if layout.has <= names), PLAIN)


class Linked:
    """Names groups of questions that are linked by lists of ids, while they are read: the first one met names the group
    of all it is linked to.

    >>> groups = Linked()
    >>> groups.name("a", ["b", "c"]), groups.name("b", ["a"]), groups.name("d", [])
    ('a', 'a', '')
    """

    def __init__(self) -> None:
        self._groups: dict[str, str] = {}

    def name(self, id_: str, linked: Iterable[str]) -> str:
        """The group of a question; empty where it is linked to no other."""
        others = [other for other in linked if other != id_]
        if not others:
            return self._groups.get(id_, "")
        group = self._groups.get(id_) or next(filter(None, map(self._groups.get, others)), id_)
        for other in (id_, *others):
            self._groups.setdefault(other, group)
        return self._groups[id_]
