"""Wu-Palmer against NLTK, and the look-up of words."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfungst.core import PfungstError
from pfungst.text import wup, wups
from pfungst.text.wordnet import base_forms, senses, wordnet

Pair = tuple[str, str]


@pytest.fixture(scope="module")
def nltk(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("nltk")
    from tests.text.wordnet_oracle import nltk_wordnet

    try:
        return nltk_wordnet(tmp_path_factory.mktemp("nltk"))
    except ImportError as error:
        pytest.skip(f"no WordNet files for NLTK: {error}")


def names(pos: str) -> list[str]:
    net = wordnet()
    return [net.name(synset) for synset in (range(net.nouns) if pos == "n" else range(net.nouns, len(net.min_depth)))]


def by_nltk(nltk: Any, pairs: list[Pair]) -> list[float | None]:
    return [nltk.synset(one).wup_similarity(nltk.synset(other)) for one, other in pairs]


def ours(pairs: list[Pair], pos: str = "n") -> list[float]:
    return [wup(one, other, pos) for one, other in pairs]


def assert_equal_where_nltk_has_a_value(pairs: list[Pair], expected: list[float | None]) -> None:
    found = ours(pairs)
    differing = [
        (pair, mine, theirs) for pair, mine, theirs in zip(pairs, found, expected) if theirs not in (mine, None)
    ]
    assert not differing
    assert sum(value is None for value in expected) <= 0.01 * len(pairs)


def test_synsets_have_the_names_that_nltk_gives_them(nltk: Any) -> None:
    assert {pos: len(set(names(pos))) for pos in "nv"} == {"n": 82_115, "v": 13_767}
    for name in random.Random("names").sample(names("n") + names("v"), 1_000):
        assert nltk.synset(name).name() == name


@pytest.mark.parametrize("pos", ["n", "v"])
def test_random_pairs_equal_nltk_to_the_last_bit(nltk: Any, pos: str) -> None:
    rng = random.Random(f"pairs {pos}")
    pool = names(pos)
    pairs = [(rng.choice(pool), rng.choice(pool)) for _ in range(2_000)]
    assert_equal_where_nltk_has_a_value(pairs, by_nltk(nltk, pairs))


def test_related_pairs_equal_nltk_to_the_last_bit(nltk: Any) -> None:
    """A synset against itself, an ancestor (both ways) and a cousin: where the tie rules matter."""
    rng = random.Random("relatives")
    pairs: list[Pair] = []
    for pos, count in (("n", 700), ("v", 300)):
        for name in rng.sample(names(pos), count):
            synset = nltk.synset(name)
            ancestor = rng.choice(rng.choice(list(synset._iter_hypernym_lists())))
            cousin = rng.choice([ancestor, *ancestor.hyponyms(), *ancestor.instance_hyponyms()])
            above = ancestor.name()
            pairs += [(name, name), (name, above), (above, name), (name, cousin.name()), (cousin.name(), name)]
    assert_equal_where_nltk_has_a_value(pairs, by_nltk(nltk, pairs))


def test_a_noun_and_a_verb_meet_at_the_simulated_root_like_in_nltk(nltk: Any) -> None:
    rng = random.Random("mixed")
    nouns, verbs = names("n"), names("v")
    pairs = [(rng.choice(nouns), rng.choice(verbs)) for _ in range(200)]
    pairs += [(other, one) for one, other in pairs]
    assert ours(pairs) == by_nltk(nltk, pairs)


def test_words_take_the_best_pair_of_noun_senses(nltk: Any) -> None:
    words = ["dog", "cat", "table", "red", "night", "6", "people", "window", "chair", "left"]
    expected = {
        (one, other): max(x.wup_similarity(y) for x in nltk.synsets(one, pos="n") for y in nltk.synsets(other, pos="n"))
        for one in words
        for other in words
        if one != other
    }
    assert dict(zip(expected, ours(list(expected)))) == expected


def test_wups_equals_the_published_procedure_over_nltk(nltk: Any) -> None:
    """Malinowski and Fritz word by word: optimistic senses, a tenth below the threshold, the lesser of two products."""

    def similarity(one: str, other: str, threshold: float) -> float:
        if one == other:
            return 1.0
        left, right = nltk.synsets(one, pos="n"), nltk.synsets(other, pos="n")
        best = max((x.wup_similarity(y) for x in left for y in right), default=0.0)
        return best * 0.1 if best < threshold else best

    def score(truth: list[str], said: list[str], threshold: float) -> float:
        there = math.prod(max(similarity(one, other, threshold) for other in said) for one in truth)
        back = math.prod(max(similarity(one, other, threshold) for other in truth) for one in said)
        return min(there, back)

    rng = random.Random("sets")
    words = ["cup", "bottle", "vase", "night_stand", "chairs", "2", "3", "sofa", "couch", "wall_decoration", "zxqv"]
    for _ in range(60):
        truth, said = (rng.choices(words, k=rng.randint(1, 3)) for _ in range(2))
        if truth != said:
            for threshold in (0.9, 0.0):
                assert wups(", ".join(said), ",".join(truth), threshold) == score(truth, said, threshold)


def test_the_values_that_the_decoys_paper_prints() -> None:
    assert round(wup("cat", "dog"), 3) == 0.857
    assert round(wup("lady", "woman"), 3) == 0.632


def test_a_synset_wins_ties_against_its_own_ancestors_so_order_matters() -> None:
    assert round(wup("woman.n.01", "lady.n.01"), 3) == 0.947
    assert round(wup("lady.n.01", "woman.n.01"), 3) == 0.632


def test_a_word_may_be_compared_with_a_synset() -> None:
    assert wup("mice", "mouse.n.01") == 1.0
    assert wup("hot_dog", "dog.n.01") == max(wup(sense, "dog.n.01") for sense in senses("hot dog"))


def test_verbs_and_both_parts_of_speech_on_request() -> None:
    assert wup("eat", "devour") == 0.0
    assert wup("eat", "devour", pos="v") > 0.8
    assert wup("walk", "run", pos="nv") == max(wup("walk", "run"), wup("walk", "run", pos="v"))


def test_equal_words_are_one_and_unknown_words_zero() -> None:
    assert wup("zxqv", "zxqv") == 1.0
    assert wup("zxqv", "dog") == wup("dog", "zxqv") == wup("", "dog") == 0.0
    assert ours([("zxqv", "Zxqv"), ("zxqv", "dog"), ("", "dog"), ("", "")]) == [1.0, 0.0, 0.0, 1.0]


def test_two_verbs_below_the_circle_of_wordnet_have_a_value() -> None:
    assert wup("restrain.v.01", "restrain.v.01") == 1.0
    assert 0.0 < wup("restrain.v.01", "inhibit.v.04") < 1.0


@pytest.mark.parametrize("name", ["dog.n.99", "dog.n.00", "no such thing.n.01", "swift.v.01"])
def test_a_synset_that_does_not_exist_is_an_error_that_names_it(name: str) -> None:
    with pytest.raises(PfungstError, match="WordNet 3.0 has no synset"):
        wup(name, "dog")


def test_adjectives_have_no_taxonomy_and_the_error_says_so() -> None:
    with pytest.raises(PfungstError, match="adjective or adverb"):
        wup("big.a.01", "small.a.01")


def test_an_unknown_part_of_speech_is_an_error() -> None:
    with pytest.raises(PfungstError, match="'n' \\(nouns\\)"):
        wup("dog", "cat", pos="a")


@pytest.mark.parametrize(
    ("form", "lemmas"),
    [
        ("mice", {"mouse"}),
        ("children", {"child"}),
        ("geese", {"goose"}),
        ("axes", {"ax", "axis"}),
        ("women", {"woman"}),
        ("glasses", {"glasses", "glass"}),
        ("knives", {"knife"}),
        ("boxes", {"box"}),
        ("cherries", {"cherry"}),
        ("tennis rackets", {"tennis_racket"}),
        ("Dogs", {"dog"}),
        ("asdfs", set()),
    ],
)
def test_plurals_find_their_lemmas(form: str, lemmas: set[str]) -> None:
    assert set(base_forms(form)) == lemmas


@pytest.mark.parametrize(("form", "lemma"), [("went", "go"), ("running", "run"), ("ate", "eat"), ("tries", "try")])
def test_verb_forms_find_their_lemmas(form: str, lemma: str) -> None:
    assert lemma in base_forms(form, pos="v")


def test_regular_forms_follow_nltk(nltk: Any) -> None:
    """NLTK has no exception lists here, so only forms that are no exceptions can be compared."""
    rng = random.Random("forms")
    for pos, endings in (("n", ("", "s", "es", "ies", "ves", "men")), ("v", ("", "s", "es", "ed", "ing", "ies"))):
        lexicon = wordnet().lexicons[pos]
        for lemma in rng.sample(list(lexicon.words), 1_500):
            ending = rng.choice(endings)
            form = lemma[: -1 if ending in ("ies", "ves") else None] + ending
            if form not in lexicon.exceptions:
                assert list(lexicon.base_forms(form)) == nltk._morphy(form, pos)
                assert senses(form, pos) == tuple(dict.fromkeys(s.name() for s in nltk.synsets(form, pos=pos)))


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_has_a_similarity_between_zero_and_one_or_a_clear_error(one: str, other: str) -> None:
    try:
        value = wup(one, other)
    except PfungstError:
        return
    assert 0.0 <= value <= 1.0
    assert ours([(one, other)]) == [value]


def test_the_licence_of_wordnet_travels_with_the_tables() -> None:
    text = (files("pfungst.text") / "wordnet_data" / "LICENSE.txt").read_text("utf-8")
    assert "Princeton" in text
    assert "Permission to use, copy, modify and distribute" in text


def test_single_calls_load_no_compiler() -> None:
    code = "import sys; from pfungst.text import wup; wup('dog', 'cat'); sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
