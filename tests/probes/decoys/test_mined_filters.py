"""Decoys mined from a player's mistakes, and the filter of what people confuse."""

import numpy as np
import pytest

from pfungst.core import Answer, Example, PfungstError
from pfungst.core.store import AnswerStore
from pfungst.probes.decoys import EmbeddingFilter, WupFilter, build, confusions, mine
from tests.probes.decoys.conftest import triplet


class Confused:
    """Says cat for dog, and what is right otherwise."""

    name = fingerprint = "confused"

    def __init__(self, examples):
        self._right = {e.question: e.target for e in examples}

    def answer(self, queries):
        return [Answer("cat" if self._right[q.question] == "dog" else self._right[q.question]) for q in queries]


def test_mined_decoys_are_what_the_player_confuses(encoder):
    data = [triplet(n, f"what w{n}", answer) for n, answer in enumerate(("dog", "cat", "river", "dog", "pizza") * 4)]
    mined = mine(Confused(data), data)
    assert mined["0"] == ("cat",) and mined["1"] == ("dog",) and mined["2"] == ()
    made = build(data, ("mined",), k=1, mined=mined)
    assert made.decoys("Mined", 0) == ("cat",) and made.decoys("Mined", 1) == ("dog",)
    assert made.counts("mined")["frequent target"] == 8
    with pytest.raises(PfungstError, match="mined="):
        build(data, ("mined",))


def test_a_right_answer_in_a_sentence_is_no_mistake():
    class Talker(Confused):
        matcher = "lenient"

        def answer(self, queries):
            return [Answer(f"The answer is {said.text}.") for said in super().answer(queries)]

    data = [triplet(n, f"what w{n}", answer) for n, answer in enumerate(("dog", "cat", "river"))]
    assert mine(Talker(data), data) == mine(Confused(data), data)


def test_a_player_is_not_asked_again_what_the_store_knows(tmp_path):
    data = [triplet(n, f"what w{n}", answer) for n, answer in enumerate(("dog", "cat", "river"))]
    player = Confused(data)
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        first = mine(player, data, store=store)
        player.answer = None
        assert mine(player, data, store=store) == first and first["0"] == ("cat",)


def test_what_an_annotator_said_is_not_mined():
    data = [Example("0", "what w1", target="dog", answers=("dog", "cat"), image_id="i")]
    assert mine(Confused(data), data)["0"] == ()


def test_the_embedding_filter_takes_words_that_mean_the_same_and_are_swapped_by_people(encoder):
    class Vectors:
        name, fingerprint, dim = "two", "two", 2

        def encode(self, texts):
            rows = {"lady": (1, 0.1), "woman": (1, 0), "cat": (0.1, 1), "dog": (0, 1)}
            return np.asarray([rows.get(text, (0, 0)) for text in texts], np.float32)

    data = [
        triplet(0, "who w1", "lady"),
        triplet(1, "who w2", "woman"),
        triplet(2, "is w3 w5 w6", "cat"),
        triplet(3, "is w3 w5 w7", "dog"),
    ]
    assert build(data, ("qou",), k=1, encoder=encoder).decoys("QoU", 0) == ("woman",), "WUP is 0.632"
    human = {("lady", "woman"): 0.2, ("cat", "dog"): 0.0}
    filters = [WupFilter(), EmbeddingFilter(Vectors(), 0.9, human)]
    made = build(data, ("qou",), k=1, encoder=encoder, filters=filters)
    assert made.decoys("QoU", 0)[0] in ("cat", "dog") and made.decoys("QoU", 2) == ("dog",)
    alone = build(data, ("qou",), k=1, encoder=encoder, filters=[EmbeddingFilter(Vectors(), 0.9)])
    assert alone.decoys("QoU", 2)[0] in ("lady", "woman"), "the cosine alone cannot tell cat from dog"


def test_confusions_are_what_people_say_instead():
    data = [
        Example("0", "who", target="woman", answers=("woman",) * 8 + ("lady", "Lady.")),
        Example("1", "who", target="woman", answers=("woman",) * 10),
        Example("2", "what", target="dog", answers=("dog",)),
    ]
    assert confusions(data) == {("woman", "lady"): 0.1}


def test_yes_and_no_stay_decoys_of_each_other_although_people_disagree(encoder):
    class Same:
        name, fingerprint, dim = "same", "same", 1

        def encode(self, texts):
            return np.ones((len(texts), 1), np.float32)

    data = [triplet(0, "is w1 w3 w4", "yes"), triplet(1, "is w2 w3 w4", "no"), triplet(2, "who w9", "river")]
    filters = [EmbeddingFilter(Same(), human={("yes", "no"): 0.3})]
    assert build(data, ("qou",), k=1, encoder=encoder, filters=filters).decoys("QoU", 0) == ("no",)
