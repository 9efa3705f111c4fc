"""Template files: what ours promise, and what is refused."""

import json
import re

import pytest

from pfungst.core import DataError
from pfungst.world.questions import load_templates
from pfungst.world.questions.loading import expand

FAMILIES = {
    "compare_integer": 9,
    "comparison": 16,
    "one_hop": 6,
    "same_relate": 28,
    "single_and": 5,
    "single_or": 8,
    "three_hop": 6,
    "two_hop": 6,
    "zero_hop": 6,
}
GOOD = {
    "text": ["How many <Z> <C> <M> <S>s are there?"],
    "nodes": [
        {"type": "scene", "inputs": []},
        {"type": "filter_count", "inputs": [0], "side_inputs": ["<Z>", "<C>", "<M>", "<S>"]},
    ],
    "params": [
        {"type": "Size", "name": "<Z>"},
        {"type": "Color", "name": "<C>"},
        {"type": "Material", "name": "<M>"},
        {"type": "Shape", "name": "<S>"},
    ],
    "constraints": [],
}


def write(folder, *templates, name="mine.json"):
    (folder / name).write_text(json.dumps(list(templates)), encoding="utf-8")
    return folder


def changed(**changes):
    return {**json.loads(json.dumps(GOOD)), **changes}


def test_our_templates_cover_the_ninety_families_of_the_nine_published_kinds():
    counts = {}
    for template in load_templates().templates:
        counts[template.kind] = counts.get(template.kind, 0) + 1
    assert counts == FAMILIES


def test_every_family_has_at_least_five_train_and_three_heldout_phrasings():
    for template in load_templates().templates:
        assert len(template.of_split("train")) >= 5, template.key
        assert len(template.of_split("heldout")) >= 3, template.key
        texts = [one.text for one in template.phrasings]
        assert len(set(texts)) == len(texts), template.key


def test_every_family_can_be_asked_as_a_question_and_as_a_request():
    for template in load_templates().templates:
        for split in ("train", "heldout"):
            endings = {one.text[-1] for one in template.of_split(split)}
            assert "?" in endings, template.key
        assert any(one.text.endswith(".") for one in template.phrasings), template.key


def test_heldout_phrasings_share_no_sentence_frame_with_train():
    def frame(text):
        return re.sub(r"\s+", " ", re.sub(r"<\w+>s?|\[[^\]]*\]", "", text)).strip()

    templates = load_templates().templates
    train = {frame(one.text) for template in templates for one in template.of_split("train")}
    heldout = {frame(one.text) for template in templates for one in template.of_split("heldout")}
    assert not train & heldout


def test_heldout_words_are_no_train_words():
    words = load_templates().synonyms
    for value, listed in words.heldout.items():
        assert not set(listed) & set(words.train[value])
        assert words.of(value, "train") == words.train[value]
        assert set(words.of(value, "heldout")) == {*words.train[value], *listed}


def test_phrasing_ids_are_unique():
    ids = [one.id for template in load_templates().templates for one in template.phrasings]
    assert len(set(ids)) == len(ids)


def test_the_fingerprint_changes_with_a_text_and_not_with_the_folder(tmp_path):
    for name, text in (("a", "How many <D>s are there?"), ("b", "How many <D>s are there?"), ("c", "Count the <D>s.")):
        (tmp_path / name).mkdir()
        write(tmp_path / name, changed(text=[text]))
    prints = [load_templates(tmp_path / name).fingerprint for name in "abc"]
    assert prints[0] == prints[1] != prints[2]


def test_a_published_template_loads_with_all_its_texts_in_train(tmp_path):
    (template,) = load_templates(write(tmp_path, GOOD)).templates
    assert [one.split for one in template.phrasings] == ["train"]
    assert template.params == {"<Z>": "size", "<C>": "color", "<M>": "material", "<S>": "shape"}
    assert template.answer_kind == "integer"


def test_published_synonyms_are_found_one_folder_up(tmp_path):
    (tmp_path / "synonyms.json").write_text('{"thing": ["gizmo"]}', encoding="utf-8")
    (tmp_path / "templates").mkdir()
    found = load_templates(write(tmp_path / "templates", GOOD))
    assert found.synonyms.of("thing", "train") == ("gizmo",)


def test_each_makes_one_family_of_every_entry_in_the_order_of_family():
    record = {
        "each": [{"A": "size", "family": 1}, {"A": "color", "family": 0}],
        "text": ["What $A has the <D>?"],
        "nodes": [{"type": "query_$A", "inputs": []}],
    }
    families = expand([record], {}, "file.json")
    assert [one["text"] for _, one in families] == [
        ["What color has the <Z> <C> <M> <S>?"],
        ["What size has the <Z> <C> <M> <S>?"],
    ]
    assert [one["nodes"][0]["type"] for _, one in families] == ["query_color", "query_size"]


def test_frames_take_a_phrase_and_an_other_thing_becomes_another():
    frames = {"exist": {"train": ["Is there a @?", "Are there any #?"], "heldout": ["See a @?"]}}
    record = {
        "text": {
            "train": [{"frames": "exist", "@": "other <D>", "#": "other <D>s"}],
            "heldout": [{"frames": "exist", "@": "<D>"}],
        }
    }
    ((_, plain),) = expand([record], frames, "file.json")
    assert plain["text"] == [
        "Is there another <Z> <C> <M> <S>?",
        "Are there any other <Z> <C> <M> <S>s?",
        "See a <Z> <C> <M> <S>?",
    ]
    assert plain["split"] == ["train", "train", "heldout"]


NODES = GOOD["nodes"]
WRONG = {
    "unknown parameter in a node": (
        changed(nodes=[NODES[0], {**NODES[1], "side_inputs": ["<Q>", "<C>", "<M>", "<S>"]}]),
        "unknown parameter <Q>",
    ),
    "unknown parameter in a text": (changed(text=["How many <Z> <C> <M> <S>s <Q>?"]), "unknown parameter <Q>"),
    "text without a parameter": (changed(text=["How many <C> <M> <S>s are there?"]), "never says <Z>"),
    "parameter only in optional words": (changed(text=["How many [<Z>] <C> <M> <S>s are there?"]), "never says <Z>"),
    "unknown node": (changed(nodes=[{"type": "see", "inputs": []}]), "unknown type 'see'"),
    "node without a type": (changed(nodes=[{"inputs": []}]), "unknown type None"),
    "no nodes": (changed(nodes=[]), "list of nodes"),
    "later node as input": (changed(nodes=[NODES[0], {**NODES[1], "inputs": [1]}]), "not an earlier node"),
    "wrong kind of input": (
        changed(nodes=[NODES[0], {"type": "query_size", "inputs": [0]}]),
        "takes object, but node 0 gives objects",
    ),
    "wrong number of inputs": (changed(nodes=[NODES[0], {**NODES[1], "inputs": []}]), "needs 1 inputs"),
    "wrong number of parameters": (changed(nodes=[NODES[0], {**NODES[1], "side_inputs": ["<Z>"]}]), "needs 4 param"),
    "parameter of another kind": (
        changed(nodes=[NODES[0], {**NODES[1], "side_inputs": ["<C>", "<Z>", "<M>", "<S>"]}]),
        "takes a size, but <C> is declared as color",
    ),
    "unknown kind of parameter": (changed(params=[{"type": "Weight", "name": "<Z>"}]), "unknown type 'Weight'"),
    "no answer": (changed(nodes=NODES[:1], text=["What?"], params=[]), "gives no answer"),
    "unknown constraint": (changed(constraints=[{"type": "ODD", "params": []}]), "'ODD' is unknown"),
    "constraint on a parameter that is not there": (
        changed(constraints=[{"type": "NULL", "params": ["<C7>"]}]),
        "unknown parameter '<C7>'",
    ),
    "constraint on a node that is not there": (
        changed(constraints=[{"type": "OUT_NEQ", "params": [0, 7]}]),
        "node 7, which does not exist",
    ),
    "constraint without params": (changed(constraints=["NULL"]), "needs a type and params"),
    "constraint with too many params": (
        changed(constraints=[{"type": "NULL", "params": ["<Z>", "<C>"]}]),
        "needs 1 params",
    ),
    "apart from a node without a description": (
        changed(constraints=[{"type": "APART", "params": [0, 1]}]),
        "node 0 is scene",
    ),
    "unsaid relation": (
        changed(
            text=["How many are <R> the <D>?"],
            params=None,
            nodes=[
                NODES[0],
                {"type": "filter_unique", "inputs": [0], "side_inputs": ["<D>"]},
                {"type": "relate", "inputs": [1], "side_inputs": ["<R>"]},
                {"type": "count", "inputs": [2]},
            ],
            constraints=[{"type": "NULL", "params": ["<R>"]}],
        ),
        "cannot hold for the relation",
    ),
    "parameter set twice": (changed(nodes=[*NODES, NODES[1]]), "set by two nodes"),
    "params of another kind": (changed(params={}), "`params` must be a list"),
    "parameter without a name": (changed(params=[{"type": "Size"}]), "needs a name and a type"),
    "node of another kind": (changed(nodes=[7]), "must be an object"),
    "side inputs of another kind": (changed(nodes=[NODES[0], {**NODES[1], "side_inputs": 7}]), "list of parameters"),
    "empty text": (changed(text=[" "]), "not empty"),
    "each of another kind": (changed(each=[]), "`each` must be"),
    "phrasing of another kind": (changed(text=[7]), "must be a text or name its `frames`"),
    "no text": (changed(text=[]), "no phrasing"),
    "text of another kind": (changed(text=7), "needs `text`"),
    "unknown split": (changed(text={"exam": ["<D>"]}), "'exam'"),
    "unknown frames": (changed(text=[{"frames": "ask"}]), "no frames called 'ask'"),
    "open bracket": (changed(text=["How many [all <Z> <C> <M> <S>s?"]), "without its partner"),
    "variable that is not set": (changed(text=["How $many <D>s?"]), "variable"),
    "not an object": ([], "must be an object"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_template_is_refused_with_file_template_and_reason(tmp_path, case):
    template, reason = WRONG[case]
    with pytest.raises(DataError) as caught:
        load_templates(write(tmp_path, GOOD, template))
    message = str(caught.value)
    assert str(tmp_path / "mine.json") in message
    assert "template 1" in message
    assert reason in message
    assert "\n" not in message


def test_a_frame_without_its_phrase_is_refused(tmp_path):
    (tmp_path / "frames.json").write_text('{"ask": {"train": ["What is @?"], "heldout": []}}', encoding="utf-8")
    with pytest.raises(DataError, match=r"template 0: the frame 'What is @\?' of ask needs a phrase for '@'"):
        load_templates(write(tmp_path, changed(text=[{"frames": "ask"}])))


@pytest.mark.parametrize("content", ["[]", '{"ask": {"train": ["a"]}}'])
def test_bad_frames_are_refused(tmp_path, content):
    (tmp_path / "frames.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"frames\.json"):
        load_templates(write(tmp_path, GOOD))


def test_family_numbers_with_a_gap_are_refused(tmp_path):
    with pytest.raises(DataError, match="family numbers"):
        load_templates(write(tmp_path, changed(each=[{"family": 1}])))


def test_broken_json_is_refused_with_its_line(tmp_path):
    (tmp_path / "mine.json").write_text('[{"text": [],\n "nodes" 7}]', encoding="utf-8")
    with pytest.raises(DataError, match=r"mine\.json, line 2, column \d+: this is not valid JSON"):
        load_templates(tmp_path)


def test_a_file_that_is_no_list_is_refused(tmp_path):
    (tmp_path / "mine.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="must hold a list of templates"):
        load_templates(tmp_path)


@pytest.mark.parametrize(
    "content", ["[]", '{"thing": []}', '{"thing": [7]}', '{"thing": {"exam": ["a"]}}', '{"a": ["+b"]}']
)
def test_bad_synonyms_are_refused(tmp_path, content):
    (tmp_path / "synonyms.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"synonyms\.json"):
        load_templates(write(tmp_path, GOOD))


def test_a_folder_that_is_missing_or_empty_is_refused(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        load_templates(tmp_path / "nowhere")
    with pytest.raises(DataError, match="no templates in this folder"):
        load_templates(tmp_path)
