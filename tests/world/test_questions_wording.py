"""Sentences: articles, plurals, optional words, "other", and words that follow their noun."""

import re
from random import Random

import numpy as np
import pytest

from pfungst.world import sample_scene
from pfungst.world.questions import generate, load_templates
from pfungst.world.questions.template import Phrasing, Synonyms, Template, TemplateNode, say, wordings

SCENE = TemplateNode("scene")
FILTER = TemplateNode("filter_unique", (0,), ("<Z>", "<C>", "<M>", "<S>"))
SAME = TemplateNode("same_size", (1,))
SECOND = TemplateNode("filter_exist", (2,), ("<Z2>", "<C2>", "<M2>", "<S2>"))
KINDS = ("size", "color", "material", "shape")


def said(text, values, split="train", words=None, seed=0):
    names = (*FILTER.params, *SECOND.params)
    template = Template(
        "mine.json",
        0,
        (SCENE, FILTER, SAME, SECOND),
        (Phrasing("mine/0/0", text, split),),
        dict(zip(names, KINDS * 2, strict=True)),
    )
    full = dict.fromkeys(names) | values
    synonyms = Synonyms(words or {}, {})
    return say(template, template.phrasings[0], full, synonyms, Random(seed))


D, D2 = "<Z> <C> <M> <S>", "<Z2> <C2> <M2> <S2>"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, "Is there a thing?"),
        ({"<S>": "cube"}, "Is there a cube?"),
        ({"<Z>": "small", "<M>": "rubber", "<S>": "cube"}, "Is there a small rubber cube?"),
        ({"<C>": "red"}, "Is there a red thing?"),
    ],
)
def test_what_is_not_said_leaves_no_gap(values, expected):
    assert said(f"Is there a {D}?", values) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Is there a {D}?", "Is there an object?"),
        (f"Is there an {D}?", "Is there an object?"),
        (f"A {D} is here.", "An object is here."),
        (f"Banana {D}.", "Banana object."),
    ],
)
def test_articles_agree_with_the_next_word(text, expected):
    assert said(text, {}, words={"thing": ("object",)}) == expected


def test_an_article_agrees_with_the_adjective_not_the_noun():
    assert said(f"Is there an {D}?", {"<C>": "red"}, words={"thing": ("object",)}) == "Is there a red object?"


@pytest.mark.parametrize(("word", "plural"), [("ball", "balls"), ("box", "boxes"), ("torch", "torches")])
def test_plurals_are_formed(word, plural):
    assert said(f"How many {D}s?", {"<S>": "cube"}, words={"cube": (word,)}) == f"How many {plural}?"


def test_a_plus_word_follows_its_noun():
    words = {"metal": ("+made of metal",), "cube": ("box",)}
    values = {"<Z>": "small", "<M>": "metal", "<S>": "cube"}
    assert said(f"How many {D}s are there?", values, words=words) == "How many small boxes made of metal are there?"
    assert said(f"Is there an {D}?", {"<M>": "metal"}, words=words) == "Is there a thing made of metal?"


def test_a_plus_word_is_not_used_where_no_noun_follows():
    words = {"metal": ("+made of metal", "shiny")}
    values = {"<M>": "metal"}
    assert said("Which <M> objects are <Z> <C> <S>s?", values, words=words) == "Which shiny objects are things?"


def test_optional_words_come_and_go():
    texts = {said(f"Is the {D} [that is] here?", {}, seed=seed) for seed in range(20)}
    assert texts == {"Is the thing that is here?", "Is the thing here?"}


def test_a_parameter_can_open_the_sentence():
    assert said(f"{D}s: how many?", {"<C>": "red", "<S>": "cube"}) == "Red cubes: how many?"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"<S>": "cube", "<S2>": "sphere"}, "Is there a sphere like the cube, any spheres?"),
        ({"<S>": "cube", "<S2>": "cube"}, "Is there another cube like the cube, any other cubes?"),
        ({"<S2>": "sphere"}, "Is there another sphere like the thing, any other spheres?"),
        ({"<S>": "cube"}, "Is there another thing like the cube, any other things?"),
        ({"<C>": "red", "<C2>": "blue"}, "Is there a blue thing like the red thing, any blue things?"),
    ],
)
def test_other_goes_where_the_descriptions_contradict(values, expected):
    text = f"Is there another {D2} like the {D}, any other {D2}s?"
    assert said(text, values) == expected


def test_phrasings_are_used_up_before_one_is_used_again():
    templates = load_templates()
    template = templates.by_key["zero_hop.json", 0]
    values = {"<Z>": "small", "<C>": "red", "<M>": "metal", "<S>": "cube"}
    count = sum(len(template.of_split(split)) for split in ("train", "heldout"))
    found = wordings(template, values, templates.synonyms, Random(1), count, "mixed")
    assert len({phrasing.id for phrasing, _ in found}) == count
    more = wordings(template, values, templates.synonyms, Random(1), count + 3, "mixed")
    assert len({text for _, text in more}) == count + 3


def test_fewer_wordings_come_back_where_there_are_no_more():
    templates = load_templates()
    template = templates.by_key["zero_hop.json", 0]
    values = {"<Z>": None, "<C>": "red", "<M>": None, "<S>": "cylinder"}
    found = wordings(template, values, templates.synonyms, Random(1), 50, "train")
    assert len(found) == len(template.of_split("train"))


def test_thousands_of_our_questions_are_well_formed():
    vowels = re.compile(r"\b[Aa] [aeiou]|\b[Aa]n [^aeiou]")
    repeated = re.compile(r"\b(\w+) \1\b")
    scenes = [sample_scene(np.random.default_rng([5, i]), index=i) for i in range(40)]
    made = list(generate(scenes, 10, rephrasings=8))
    assert len(made) == 40 * 10 * 9
    for one in made:
        text = one.question
        assert re.fullmatch(r"[A-Z][A-Za-z ,;:.'?-]+[?.]", text), text
        assert not vowels.search(text), text
        assert not repeated.search(text), text
        assert not re.search(r"\s[?.,;:]|thingss|\bother other\b|\ba other\b|\b(?:a|the) (?:of|in|to|that)\b", text), (
            text
        )
        assert text.count("?") + text.count(".") <= 2, text


def test_number_of_nouns_agrees_with_their_determiner():
    adjectives = (
        "other large big huge small tiny little metal metallic shiny rubber matte "
        "gray red blue green brown purple cyan yellow"
    ).replace(" ", "|")
    nouns = "thing object item cube block sphere ball orb cylinder".replace(" ", "|")
    plural = rf"(?:(?:{nouns})s|boxes)"
    singular = rf"(?:{nouns}|box)"
    wrong = re.compile(
        rf"\b(?:an?|another|one|that|any other) (?:(?:{adjectives}) )*{plural}\b"
        rf"|\bmany (?:(?:{adjectives}) )*{singular}\b"
        rf"|\b(?:number|quantity|count) of (?:(?:{adjectives}) )*{singular}\b"
    )
    allowed = re.compile(rf"\bany other (?:(?:{adjectives}) )*{plural}\b")
    scenes = [sample_scene(np.random.default_rng([6, i]), index=i) for i in range(20)]
    seen = 0
    for one in generate(scenes, 10, rephrasings=8):
        found = wrong.search(one.question)
        assert found is None or allowed.match(found.group()), one.question
        seen += 1
    assert seen == 20 * 10 * 9
