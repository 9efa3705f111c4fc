"""Template files: read, spelled out, checked.

Everything that could make a question wrong or ungrammatical later is refused here, in one sentence with the file and
the template. Our own files are written in a shorthand:

- `<D2>` stands for `<Z2> <C2> <M2> <S2>`, in texts and in side inputs.
- `"each": [{"A": "size", "P": "Z"}, ...]` makes one family of every entry, with `$A` and `${P}` filled in everywhere;
  an entry's `family` says its place in the file.
- `"text": {"train": [...], "heldout": [...]}` splits the phrasings. An entry `{"frames": NAME, "@": PHRASE}` takes the
  frames of that name and split from `frames.json` and puts PHRASE for `@`; `#` stands for a plural. Frames may have
  `forms`, too: they take the phrases of `train`.

A published template uses none of these and comes out as it went in.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Template as Dollar
from typing import Any

from pfungst.core import DataError
from pfungst.world.questions.template import (
    DESCRIPTION,
    FORMS,
    HELDOUT,
    NODES,
    SPLITS,
    TRAIN,
    Constraint,
    Phrasing,
    Synonyms,
    Template,
    TemplateNode,
    TemplateSet,
)

OWN = Path(__file__).parent / "templates"
"""The templates of this package."""

_SYNONYMS, _FRAMES = "synonyms.json", "frames.json"
_NO_TEMPLATES = {_SYNONYMS, _FRAMES, "metadata.json", "properties.json"}
_PARAM = re.compile(r"<\w+>")
_PUBLISHED_TYPES = {name.capitalize(): name for name in (*DESCRIPTION, "relation")}


def load_templates(folder: str | os.PathLike[str] | None = None) -> TemplateSet:
    """Read a folder of template files, by default our own.

    The published template files load as they are; a `synonyms.json` beside them (or one folder up, where the
    published code keeps it) gives the words, else ours do. Raises DataError with file and template for anything that
    cannot become a question.
    """
    return _own() if folder is None else _read_folder(Path(folder))


@cache
def _own() -> TemplateSet:
    return _read_folder(OWN)


def _read_folder(folder: Path) -> TemplateSet:
    if not folder.is_dir():
        raise DataError.at(folder, "", "there is no such folder of templates.", "Give the folder with the JSON files.")
    frames = _read_frames(folder / _FRAMES)
    templates: list[Template] = []
    for path in sorted(folder.glob("*.json")):
        if path.name in _NO_TEMPLATES:
            continue
        records = _read_json(path)
        if not isinstance(records, list):
            raise DataError.at(path, "", "a template file must hold a list of templates.")
        for index, (authored, record) in enumerate(expand(records, frames, str(path))):
            templates.append(_template(record, path, index, f"template {authored}"))
    if not templates:
        raise DataError.at(folder, "", "there are no templates in this folder.", "Give the folder with the JSON files.")
    return TemplateSet(tuple(templates), _find_synonyms(folder))


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise DataError.at(path, place, f"this is not valid JSON ({error.msg}).") from error
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise DataError.at(path, "", f"the file cannot be read ({error}).") from error


def _read_frames(path: Path) -> Frames:
    if not path.exists():
        return {}
    frames = _read_json(path)
    if not isinstance(frames, dict):
        raise DataError.at(path, "", "frames must be an object of name -> split -> texts.")
    for name, by_split in frames.items():
        if not isinstance(by_split, dict) or not all(_are_strings(by_split.get(split)) for split in SPLITS):
            raise DataError.at(path, f"frames {name!r}", "they need a list of texts for train and for heldout.")
    return frames


def _find_synonyms(folder: Path) -> Synonyms:
    for path in (folder / _SYNONYMS, folder.parent / _SYNONYMS):
        if path.exists():
            return _read_synonyms(path)
    return _read_synonyms(OWN / _SYNONYMS)


def _read_synonyms(path: Path) -> Synonyms:
    record = _read_json(path)
    if not isinstance(record, dict):
        raise DataError.at(path, "", "synonyms must be an object of value -> words.")
    words: dict[str, dict[str, tuple[str, ...]]] = {TRAIN: {}, HELDOUT: {}}
    for value, given in record.items():
        by_split = given if isinstance(given, dict) else {TRAIN: given}
        if not _are_strings(by_split.get(TRAIN)) or not by_split[TRAIN] or set(by_split) - set(SPLITS):
            raise DataError.at(
                path, f"{value!r}", "it needs a list of words, or one list for train and one for heldout."
            )
        for split, listed in by_split.items():
            if not _are_strings(listed) or not all(listed):
                raise DataError.at(path, f"{value!r}", "words must be texts that are not empty.")
            words[split][value] = tuple(listed)
        if all(word.startswith("+") for word in words[TRAIN][value]):
            raise DataError.at(path, f"{value!r}", "at least one train word must come before the noun (no `+`).")
    return Synonyms(words[TRAIN], words[HELDOUT])


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _template(record: Mapping[str, Any], path: Path, index: int, where: str) -> Template:
    def wrong(problem: str, hint: str = "") -> DataError:
        return DataError.at(path, where, problem, hint)

    declared = _declared(record.get("params"), wrong)
    nodes: list[TemplateNode] = []
    params: dict[str, str] = {}
    listed = record.get("nodes")
    if not isinstance(listed, list) or not listed:
        raise wrong("it needs a list of nodes.")
    for number, one in enumerate(listed):
        nodes.append(_node(one, number, nodes, params, declared, wrong))
    if nodes[-1].signature.output in ("objects", "object"):
        raise wrong(
            f"its last node, {nodes[-1].type}, gives no answer.", "End with a count, exist, query or comparison."
        )
    constraints = tuple(_constraint(one, nodes, params, wrong) for one in record.get("constraints", []))
    unsaid = {str(one.params[0]) for one in constraints if one.type == "NULL"}
    for text in record["text"]:
        _check_text(text, params, unsaid, wrong)
    kind = path.name.removesuffix(".json")
    phrasings = tuple(
        Phrasing(f"{kind}/{index}/{number}", text, split)
        for number, (text, split) in enumerate(zip(record["text"], record["split"], strict=True))
    )
    return Template(path.name, index, tuple(nodes), phrasings, params, constraints)


def _declared(given: Any, wrong: Any) -> dict[str, str] | None:
    """Parameter -> kind; None where the template leaves it to the nodes."""
    if given is None:
        return None
    if not isinstance(given, list):
        raise wrong("`params` must be a list.")
    declared: dict[str, str] = {}
    for one in given:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str) or not isinstance(one.get("type"), str):
            raise wrong(f"a parameter needs a name and a type, not {one!r}.")
        if one["type"] not in _PUBLISHED_TYPES:
            known = ", ".join(_PUBLISHED_TYPES)
            raise wrong(f"the parameter {one['name']} has the unknown type {one['type']!r}.", f"Choose from {known}.")
        declared[one["name"]] = _PUBLISHED_TYPES[one["type"]]
    return declared


def _node(
    one: Any,
    number: int,
    earlier: list[TemplateNode],
    params: dict[str, str],
    declared: Mapping[str, str] | None,
    wrong: Any,
) -> TemplateNode:
    if not isinstance(one, dict):
        raise wrong(f"node {number} must be an object, not {type(one).__name__}.")
    kind = one.get("type", one.get("function"))
    signature = NODES.get(kind) if isinstance(kind, str) else None
    if signature is None:
        raise wrong(
            f"node {number} has the unknown type {kind!r}.", f"The known types are: {', '.join(sorted(NODES))}."
        )
    inputs = one.get("inputs", [])
    if not isinstance(inputs, list) or len(inputs) != len(signature.inputs):
        raise wrong(f"node {number} ({kind}) needs {len(signature.inputs)} inputs, not {inputs!r}.")
    for source, wanted in zip(inputs, signature.inputs, strict=True):
        if not isinstance(source, int) or isinstance(source, bool) or not 0 <= source < number:
            raise wrong(f"node {number} ({kind}) takes its input from {source!r}, which is not an earlier node.")
        given = earlier[source].signature.output
        if given != wanted:
            raise wrong(f"node {number} ({kind}) takes {wanted}, but node {source} gives {given}.")
    side = one.get("side_inputs", one.get("value_inputs", []))
    if not isinstance(side, list) or not _are_strings(side):
        raise wrong(f"node {number} ({kind}): the side inputs must be a list of parameters.")
    names = _PARAM.findall(describe(" ".join(side)))
    if len(names) != len(signature.values):
        raise wrong(f"node {number} ({kind}) needs {len(signature.values)} parameters, not {len(names)}: {side!r}.")
    for name, wanted in zip(names, signature.values, strict=True):
        if declared is not None and name not in declared:
            raise wrong(f"node {number} ({kind}) uses the unknown parameter {name}.", "Declare it in `params`.")
        if declared is not None and declared[name] != wanted:
            raise wrong(f"node {number} ({kind}) takes a {wanted}, but {name} is declared as {declared[name]}.")
        if name in params:
            raise wrong(f"the parameter {name} is set by two nodes.", "Give each node its own parameters.")
        params[name] = wanted
    return TemplateNode(str(kind), tuple(inputs), tuple(names))


def _constraint(one: Any, nodes: list[TemplateNode], params: Mapping[str, str], wrong: Any) -> Constraint:
    if not isinstance(one, dict) or not isinstance(one.get("params"), list):
        raise wrong(f"a constraint needs a type and params, not {one!r}.")
    kind, given = one.get("type"), one["params"]
    counts = {"NULL": 1, "NEQ": 2, "OUT_NEQ": 2, "APART": 2}
    if kind not in counts:
        raise wrong(f"the constraint type {kind!r} is unknown.", f"Choose from {', '.join(counts)}.")
    if len(given) != counts[kind]:
        raise wrong(f"the constraint {kind} needs {counts[kind]} params, not {given!r}.")
    for place in given:
        if kind in ("NULL", "NEQ"):
            if place not in params:
                raise wrong(f"the constraint {kind} names the unknown parameter {place!r}.")
        elif not isinstance(place, int) or isinstance(place, bool) or not 0 <= place < len(nodes):
            raise wrong(f"the constraint {kind} names node {place!r}, which does not exist.")
        elif kind == "APART" and not nodes[place].composite:
            raise wrong(f"the constraint APART needs nodes with a description; node {place} is {nodes[place].type}.")
    if kind == "NULL" and params[given[0]] == "relation":
        raise wrong(f"the constraint NULL cannot hold for the relation {given[0]}.")
    return Constraint(kind, tuple(given))


def _check_text(text: Any, params: Mapping[str, str], unsaid: set[str], wrong: Any) -> None:
    if not isinstance(text, str) or not text.strip():
        raise wrong("a phrasing must be a text that is not empty.")
    said = _PARAM.findall(re.sub(r"\[[^\]]*\]", "", text))
    for name in _PARAM.findall(text):
        if name not in params:
            raise wrong(f"the text {text!r} has the unknown parameter {name}, which no node sets.")
    for name in params:
        if name not in said and name not in unsaid:
            raise wrong(f"the text {text!r} never says {name}, so the question would ask something else.")
    if text.count("[") != text.count("]"):
        raise wrong(f"the text {text!r} has a square bracket without its partner.")


Frames = Mapping[str, Mapping[str, list[str]]]

_DESCRIPTION = re.compile(r"<D(\d*)>")
_SLOT = re.compile(r"[@#]\d?")


def expand(records: list[Any], frames: Frames, file: str) -> list[tuple[int, dict[str, Any]]]:
    """All families of a file: (place in the file as authored, template in the published shape plus `split`)."""
    families: list[tuple[int, int, dict[str, Any]]] = []
    for authored, record in enumerate(records):
        where = f"template {authored}"
        if not isinstance(record, dict):
            raise DataError.at(file, where, f"a template must be an object, not {type(record).__name__}.")
        for variables in _variants(record, file, where):
            plain = _fill({key: value for key, value in record.items() if key != "each"}, variables, file, where)
            texts, splits = _texts(plain.get("text"), variables, frames, file, where)
            place = variables.get("family", len(families))
            families.append((place, authored, {**plain, "text": texts, "split": splits}))
    if sorted(place for place, _, _ in families) != list(range(len(families))):
        raise DataError.at(file, "", "the family numbers are not 0, 1, 2, ... without gaps and repeats.")
    return [(authored, record) for _, authored, record in sorted(families, key=lambda one: one[0])]


def describe(text: str) -> str:
    return _DESCRIPTION.sub(r"<Z\1> <C\1> <M\1> <S\1>", text)


def _variants(record: Mapping[str, Any], file: str, where: str) -> list[dict[str, Any]]:
    each = record.get("each", [{}])
    if not isinstance(each, list) or not each or not all(isinstance(one, dict) for one in each):
        raise DataError.at(file, where, "`each` must be a list of objects.")
    return each


def _fill(value: Any, variables: Mapping[str, Any], file: str, where: str) -> Any:
    if isinstance(value, str):
        if "$" not in value:
            return value
        try:
            return Dollar(value).substitute(variables)
        except (KeyError, ValueError) as error:
            raise DataError.at(file, where, f"{value!r} has a variable that `each` does not set ({error}).") from error
    if isinstance(value, list):
        return [_fill(one, variables, file, where) for one in value]
    if isinstance(value, dict):
        return {key: _fill(one, variables, file, where) for key, one in value.items()}
    return value


def _texts(
    given: Any, variables: Mapping[str, Any], frames: Frames, file: str, where: str
) -> tuple[list[str], list[str]]:
    by_split = {TRAIN: given} if isinstance(given, list) else given
    if not isinstance(by_split, dict) or not by_split:
        raise DataError.at(file, where, "it needs `text`: a list of phrasings, or one list per split.")
    texts: list[str] = []
    splits: list[str] = []
    for split, entries in by_split.items():
        if split not in SPLITS or not isinstance(entries, list):
            raise DataError.at(
                file, where, f"`text` has {split!r}; it may have lists of phrasings for {' and '.join(SPLITS)}."
            )
        for entry in entries:
            for text in _phrases(entry, split, frames, file, where):
                texts.append(describe(_fill(text, variables, file, where)))
                splits.append(split)
    if not texts:
        raise DataError.at(file, where, "it has no phrasing.")
    for entry in by_split.get(TRAIN, []):
        if isinstance(entry, dict):
            named = _fill(entry, variables, file, where)
            forms = [
                describe(_fill(text, variables, file, where)) for text in _phrases(named, FORMS, frames, file, where)
            ]
            texts += forms
            splits += [FORMS] * len(forms)
    return texts, splits


def _phrases(entry: Any, split: str, frames: Frames, file: str, where: str) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
        return
    if not isinstance(entry, dict) or not isinstance(entry.get("frames"), str):
        raise DataError.at(file, where, f"a phrasing must be a text or name its `frames`, not {entry!r}.")
    name = entry["frames"]
    if name not in frames:
        raise DataError.at(file, where, f"there are no frames called {name!r} in frames.json.")
    for frame in frames[name].get(split, ()):
        missing = [slot for slot in _SLOT.findall(frame) if slot not in entry]
        if missing:
            raise DataError.at(file, where, f"the frame {frame!r} of {name} needs a phrase for {missing[0]!r}.")
        text = _SLOT.sub(lambda found: str(entry[found.group()]), frame)
        yield re.sub(r"\b([Aa]) other\b", lambda found: f"{found.group(1)}nother", text)
