"""`pfungst examine --precision`: stops early, says so, and is read again from what was asked."""

import json

import pytest

QUESTIONS = 200


@pytest.fixture
def examine(folder, pfungst):
    rows = [{"id": f"q{n}", "question": f"Is it {n}?", "answer": "yes" if n % 3 else "no"} for n in range(QUESTIONS)]
    (folder / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return lambda *words, code=0: pfungst(
        "examine", "mine:answer", "-d", "many.jsonl", "-p", "control", *words, code=code
    )


def test_a_precise_drop_needs_few_questions_and_rescore_keeps_to_them(folder, pfungst, examine):
    drop = json.loads(examine("--precision", "0.1", "-o", "run", "--json"))["findings"][0]["drop"]
    assert drop["n"] < QUESTIONS
    assert -0.1 <= drop["low"] < 0 < drop["high"] <= 0.1
    before = (folder / "run" / "findings.json").read_bytes()
    pfungst("rescore", "run")
    assert (folder / "run" / "findings.json").read_bytes() == before
    again = json.loads(pfungst("rescore", "run", "--metric", "vqa", "--json"))["findings"][0]["drop"]
    assert again["n"] == drop["n"]
    (folder / "run" / "findings.json").unlink()
    pfungst("rescore", "run")
    assert (folder / "run" / "findings.json").read_bytes() == before


def test_without_the_option_the_rest_is_asked(folder, examine):
    examine("--precision", "0.1", "-o", "run")
    drop = json.loads(examine("-o", "run", "--json"))["findings"][0]["drop"]
    assert drop["n"] == QUESTIONS
    assert "precision" not in json.loads((folder / "run" / "exam.json").read_text())


def test_a_dry_run_counts_the_most_that_may_be_asked(examine):
    plan = json.loads(examine("--precision", "0.1", "--dry-run", "--json"))
    assert plan["at_most"] and plan["queries"] == 2 * QUESTIONS


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_precision_that_is_no_share_is_refused(examine, more):
    assert "must be between 0 and 1, such as 0.02" in examine("--precision", "2", *more, code=2)
