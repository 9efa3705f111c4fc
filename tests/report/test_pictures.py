"""What a case shows besides words: the images its variants had, where the player looked, the plan of a moved scene."""

import json
from dataclasses import replace

import pytest

import pfungst
from pfungst.core import Answer, Exam, Run
from pfungst.core.images import as_rgb
from pfungst.core.types import Terms
from pfungst.data import load
from pfungst.probes.blind import Blind
from pfungst.probes.control import Control
from pfungst.probes.protocol import Protocol
from pfungst.report import add_looks, add_prompts, write_report
from pfungst.report.cases import sample_of
from tests.conftest import squares


class Yes:
    name, fingerprint = "yes", "yes"

    def answer(self, queries):
        return [Answer("yes") for _ in queries]


def examined(player, out, probes=(Control(), Blind()), data=None):
    data = data or squares(6, 1)
    Exam(player, data, probes, lambda e, a: float(a.text == e.target), out).run()
    return data


def test_variants_that_saw_other_images_are_shown_with_them(tmp_path):
    data = examined(Yes(), tmp_path)
    html = write_report(tmp_path, data).read_text()
    for words in ("clean: yes", "blank image: yes", "other image: yes"):
        assert f"<figcaption>{words}</figcaption>" in html
    # Six squares are asked about and one grey image: each is in the page once.
    assert html.count("<image ") == 7


def test_an_image_that_is_not_what_was_asked_about_is_not_shown(tmp_path):
    data = examined(Yes(), tmp_path)
    others = squares(7, 1)
    changed = [replace(one, image=other.image) for one, other in zip(data, others[1:], strict=True)]
    html = write_report(tmp_path, replace(data, examples=changed)).read_text()
    assert "other image: yes</figcaption>" not in html and "clean: yes</figcaption>" not in html
    assert "blank image: yes</figcaption>" in html


class Looking(Yes):
    def look(self, queries):
        import torch

        return {"picture": torch.eye(4).repeat(len(queries), 1, 1), "words": torch.ones(len(queries), 3)}


class Wandering(Looking):
    """Right on the scene as it stands and wrong on every other."""

    def __init__(self):
        self.known = {(one.question, as_rgb(one.image).tobytes()): one.target for one in load("world?scenes=4")}

    def answer(self, queries):
        return [Answer(self.known.get((one.question, as_rgb(one.image).tobytes()), "?")) for one in queries]


class Blinking(Yes):
    def look(self, queries):
        raise RuntimeError("no maps today")


def test_where_a_player_looks_is_kept_and_drawn(tmp_path):
    pytest.importorskip("torch")
    data = examined(Looking(), tmp_path)
    add_looks(tmp_path, Looking(), data)
    looks = json.loads((tmp_path / "looks.json").read_text())
    assert next(iter(looks.values()))[0] == [1.0, 0.0, 0.0, 0.0]
    html = write_report(tmp_path, data).read_text()
    assert "where it looks, clean: yes" in html
    assert "where it looks, other image: yes" in html, "also on the image that a probe showed instead"


def test_where_a_player_looks_in_a_moved_scene_is_drawn(tmp_path):
    pytest.importorskip("torch")
    data = load("world?scenes=4")
    player = Wandering()
    pfungst.examine(player, data, ["game:adversary=rsg,size=4,seeds=1,budget=4"], tmp_path / "run")
    assert "where it looks, moved: " in (tmp_path / "run" / "report.html").read_text()


class Chatting(Yes):
    """Puts questions into words of its own, or into those of the probe."""

    terms, takes = Terms(), frozenset({"template"})

    def answer(self, queries):
        return [Answer("no" if query.framing else "yes") for query in queries]

    def prompt(self, query):
        template = query.framing.template if query.framing else "{question} In a word!"
        return template.replace("{question}", query.question)


def test_a_case_shows_the_prompt_that_was_sent(tmp_path):
    data = examined(Chatting(), tmp_path, (Control(), Protocol()))
    add_prompts(tmp_path, Yes(), data)
    assert not (tmp_path / "prompts.json").exists(), "this player has no prompt of its own"
    add_prompts(tmp_path, Chatting(), data)
    html = write_report(tmp_path, data).read_text()
    question = data[0].question
    assert f'Prompt, as it was sent</p><div class="raw">{question} In a word!</div>' in html
    kept = json.loads((tmp_path / "prompts.json").read_text())
    rows = [row for case in sample_of(Run.open(tmp_path)).cases for row in (case.clean, case.disturbed)]
    assert {row["key"] for row in rows} == set(kept), "also where a probe says how to ask"
    framed = {text for key, text in kept.items() if not text.endswith(" In a word!")}
    assert framed == {f"{question}\nAnswer the question with one word or phrase."}


def test_a_player_that_fails_to_tell_loses_no_report(tmp_path, caplog):
    data = examined(Blinking(), tmp_path)
    add_looks(tmp_path, Blinking(), data)
    assert "no attention maps: no maps today" in caplog.text and not (tmp_path / "looks.json").exists()
    add_looks(tmp_path, Yes(), data)
    assert write_report(tmp_path, data).exists()
