"""Question generation on the released scenes, and with the published templates."""

import gzip
import json

import pytest

from pfungst.world import answer, answer_text
from pfungst.world.questions import generate, load_templates, report


@pytest.fixture(scope="module")
def published(shared_data):
    return load_templates(shared_data / "clevr/templates")


@pytest.fixture(scope="module")
def scenes(shared_data):
    with gzip.open(shared_data / "clevr/CLEVR_train_scenes_1000.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)["scenes"]


def tree(template, node=-1):
    """What a template computes, without words: composite nodes spelled out, independent of the order of nodes."""
    node = template.nodes[node]
    inputs = tuple(tree(template, source) for source in node.inputs)
    if not node.composite:
        return (node.type, *inputs)
    steps = node.type.split("_")
    for step in steps:
        inputs = ((step, *inputs),)
    return inputs[0]


def test_the_published_templates_load(published):
    assert len(published) == 90
    assert {one.split for template in published.templates for one in template.phrasings} == {"train"}
    assert published.synonyms.of("cube", "train") == ("cube", "block")


def test_our_families_compute_what_the_published_ones_compute(published):
    own = load_templates()
    assert own.by_key.keys() == published.by_key.keys()
    for key, template in own.by_key.items():
        assert tree(template) == tree(published.by_key[key]), key


def test_no_wording_of_ours_is_a_published_one(published):
    texts = [
        {" ".join(one.text.split()) for template in found.templates for one in template.phrasings}
        for found in (load_templates(), published)
    ]
    assert not texts[0] & texts[1]


def test_questions_on_released_scenes_are_answered_and_balanced(scenes):
    made = list(generate(scenes[:250], 10))
    for one in made:
        assert answer_text(answer(one.program, scenes[one.image_index])) == one.answer
    found = report(made)
    assert found.originals == 2500
    assert found.family_balance > 0.999
    assert found.answer_balance["bool"] > 0.999
    assert min(found.answer_balance[kind] for kind in ("size", "material", "shape", "color")) > 0.98


def test_the_published_templates_make_questions(scenes, published):
    made = list(generate(scenes[:60], 10, rephrasings=1, templates=published))
    for one in made:
        assert answer_text(answer(one.program, scenes[one.image_index])) == one.answer
        assert not set(one.question) & set("<>[]")
    assert report(made).family_balance > 0.98


def test_published_family_0_of_compare_integer_is_never_true_and_ours_is(scenes, published):
    first = ("compare_integer", 0)
    theirs = {one.answer for one in generate(scenes[:60], 15, templates=published) if (one.kind, one.family) == first}
    ours = {one.answer for one in generate(scenes[:60], 15) if (one.kind, one.family) == first}
    assert theirs == {"no"}
    assert ours == {"yes", "no"}
