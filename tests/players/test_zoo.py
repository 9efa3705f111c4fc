"""Models of the zoo as players: they answer, and say plainly what they cannot do."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from pfungst.core import BytesImage, DataError, PfungstError, PlayerError, Query
from pfungst.models import MODELS, Inputs, Sizes, Trained, Vocabulary, build
from pfungst.players import check_player, resolve
from pfungst.players.zoo import ZooPlayer
from pfungst.world import Program, embedded
from tests.data.published_formats import OBJECT

WORDS = Vocabulary(("color", "cube", "is", "many", "no", "red", "the", "what", "yes"), ("yes", "no", "2", "Red"))
INPUTS = Inputs(width=20, height=16, question_length=8)
PLAYING = [name for name in MODELS.names() if "answer" in MODELS.get(name).learns_from]


def trained(name: str, seed: int = 0) -> Trained:
    model = build(name, Sizes(WORDS.size, 4, (3, 16, 20)), "tiny", seed=seed)
    return Trained(name, model, WORDS, INPUTS, fingerprint=f"{name} {seed}")


def player(name: str = "film") -> ZooPlayer:
    return ZooPlayer(trained(name))


def picture(mode: str = "RGB", size: tuple[int, int] = (30, 24), kind: str = "PNG") -> BytesImage:
    buffer = io.BytesIO()
    values = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 4), np.uint8)
    if mode == "I;16":
        shown = PIL.Image.fromarray(values[..., 0].astype(np.uint16) * 257)
    else:
        shown = PIL.Image.fromarray(values).convert(mode)
    shown.save(buffer, format=kind)
    return BytesImage(buffer.getvalue())


@pytest.mark.parametrize("name", PLAYING)
def test_every_model_keeps_the_promises_of_a_player(name: str) -> None:
    assert check_player(player(name)) == []


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "LA", "P", "1", "I;16", "CMYK"])
def test_any_kind_of_picture_is_seen(mode: str) -> None:
    kind = "JPEG" if mode == "CMYK" else "PNG"
    (answer,) = player().answer([Query("what color is the cube", picture(mode, kind=kind))])
    assert answer.text in WORDS.answers
    assert answer.confidence is not None


def test_a_grey_picture_is_the_same_in_one_and_in_three_channels() -> None:
    grey = PIL.Image.fromarray(np.random.default_rng(1).integers(0, 256, (24, 30), np.uint8))
    answers = []
    for shown in (grey, grey.convert("RGB"), grey.convert("RGBA")):
        buffer = io.BytesIO()
        shown.save(buffer, format="PNG")
        answers.append(player().answer([Query("is", BytesImage(buffer.getvalue()))])[0])
    assert answers[0] == answers[1] == answers[2]


def test_a_huge_picture_is_shrunk() -> None:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (6000, 4000), (200, 10, 10)).save(buffer, format="JPEG")
    assert player().answer([Query("is", BytesImage(buffer.getvalue()))])[0].text in WORDS.answers


def test_questions_that_are_cut_are_counted_and_told() -> None:
    one = player()
    length = one.trained.inputs.question_length
    one.answer([Query("is it " * (length // 2)), Query("is " * (length + 1)), Query("?" * 300)])
    assert one.notes == (
        f"1 of 3 questions were longer than the {length} words zoo:film can read, and were cut at the end.",
    )


def test_a_model_of_scenes_that_never_saw_one_says_so() -> None:
    blind, looking = player("rn-state"), player()
    for one in (blind, looking):
        one.answer([Query("is")])
    assert blind.notes == (
        "zoo:rn-state reads scenes, which these data do not have: it was shown an empty one every time.",
    )
    blind.answer([Query("is", scene={"objects": [OBJECT]})])
    assert blind.notes == looking.notes == ()


def test_a_corrupt_picture_is_refused_with_a_sentence() -> None:
    broken = BytesImage(picture().data[:60])
    with pytest.raises(DataError, match="not an image that can be decoded"):
        player().answer([Query("is", broken)])


def test_questions_without_words_or_with_unknown_ones_get_an_answer() -> None:
    for question in ("", "?!", "zebra xylophone", "the " * 500):
        assert player().answer([Query(question, picture())])[0].text in WORDS.answers


def test_too_many_objects_are_refused_with_a_sentence() -> None:
    scene = dict(embedded(scenes=1, rephrasings=0)[0].scene or {})
    scene["objects"] = [scene["objects"][0]] * 11
    with pytest.raises(DataError, match="11 objects; this model reads at most 10"):
        player("rn-state").answer([Query("is", scene=scene)])


def test_of_choices_it_takes_one_and_scores_all() -> None:
    query = Query("is the cube red", picture(), choices=("purple", "RED", "No"))
    (answer,) = player().answer([query])
    assert answer.text in ("RED", "No")
    assert answer.scores is not None
    assert answer.scores[0] == 0.0
    assert answer.scores[1] > 0


def test_choices_it_has_never_heard_of_leave_it_its_own_answer() -> None:
    (answer,) = player().answer([Query("is", picture(), choices=("purple", "mauve"))])
    assert answer.text in WORDS.answers
    assert answer.scores is None


def test_a_model_that_scores_choices_chooses_among_its_answers_without_them() -> None:
    (answer,) = player("mlp-iqa").answer([Query("is", picture())])
    assert answer.text in WORDS.answers
    (chosen,) = player("mlp-iqa").answer([Query("is", picture(), choices=("purple", "blue sky", ""))])
    assert chosen.text in ("purple", "blue sky", "")
    assert chosen.scores is not None
    assert len(chosen.scores) == 3


def test_programs_of_module_networks_can_be_read() -> None:
    queries = [Query("what color is the cube", picture()), Query("is the cube red", picture())]
    for program in player("iep").programs(queries):
        assert len(Program.from_json(program)) >= 2
    with pytest.raises(PlayerError, match="runs no programs"):
        player("film").programs(queries)


def test_maps_can_be_looked_at() -> None:
    maps = player("san").look([Query("what color is the cube", picture())])
    assert tuple(maps["picture"].shape) == (1, 2, 4, 5)
    assert float(maps["picture"][0, 0].sum()) == pytest.approx(1.0, abs=1e-5)


def test_a_trained_folder_plays(tmp_path: Path) -> None:
    trained("film").save(tmp_path / "mine")
    playing = resolve(f"zoo:{tmp_path / 'mine'}", batch_size=2)
    assert playing.name == f"zoo:{tmp_path / 'mine'}"
    assert [a.text for a in playing.answer([Query("is", picture())] * 3)] == [
        a.text for a in player().answer([Query("is", picture())] * 3)
    ]
    again = resolve(f"zoo:{tmp_path / 'mine'}")
    assert again.fingerprint == playing.fingerprint
    trained("film", seed=1).save(tmp_path / "other")
    assert resolve(f"zoo:{tmp_path / 'other'}").fingerprint != playing.fingerprint


def test_names_resolve_to_the_weights_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pfungst.models.trained.SHIPPED", tmp_path)
    with pytest.raises(PfungstError, match="no weights for film yet"):
        resolve("film")
    trained("film").save(tmp_path / "film.safetensors", half=True)
    assert resolve("film").name == resolve("zoo:film").name == "zoo:film"


def test_what_cannot_play_is_told(tmp_path: Path) -> None:
    with pytest.raises(PlayerError, match="finds objects; it answers no questions"):
        player("slot-attention")
    with pytest.raises(PfungstError, match="Did you mean film"):
        resolve("zoo:fillm")
    with pytest.raises(DataError, match="there is no trained model here"):
        resolve(f"zoo:{tmp_path}/nothing")
    with pytest.raises(PlayerError, match="Say which model: zoo:film"):
        resolve("zoo")
    with pytest.raises(PlayerError, match="takes nothing after a colon"):
        resolve("film:big")


def test_listing_players_does_not_load_torch() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from pfungst.players import available; assert 'film' in available(); print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
