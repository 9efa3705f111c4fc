"""Matchers and metrics on what real models said. Run with -s for the figures."""

from __future__ import annotations

import ast
import csv
import gzip
import json
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from pfungst.core import Answer, Example
from pfungst.scores import get_metric, spelling_gap
from pfungst.scores.matchers import read


def lines(file: Path) -> list[dict[str, str]]:
    data = file.read_bytes()
    text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode("utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def rows(file: Path) -> Iterator[dict[str, str]]:
    """The rows of a workbook, whole numbers without a decimal point as they were written."""
    calamine = pytest.importorskip("python_calamine")
    head, *body = calamine.CalamineWorkbook.from_path(file).get_sheet_by_index(0).to_python()
    for cells in body:
        texts = (str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell) for cell in cells)
        yield dict(zip(map(str, head), texts, strict=True))


def options(row: dict[str, str]) -> list[str]:
    filled = [letter for letter in string.ascii_uppercase if row.get(letter, "")]
    return [row[letter] for letter in filled] if filled == list(string.ascii_uppercase[: len(filled)]) else []


def truths(cell: str) -> tuple[str, ...]:
    """The answers of a cell: the members of a Python list, or the cell itself."""
    try:
        value = ast.literal_eval(cell)
    except (ValueError, SyntaxError):
        return (cell,)
    return tuple(map(str, value)) if isinstance(value, list) else (cell,)


def official_pope(text: str) -> str:
    """The rule published with POPE: no, if the first sentence has the word no or not, else yes."""
    words = text.split(".")[0].replace(",", "").split(" ")
    return "no" if {"No", "not", "no"} & set(words) else "yes"


def test_pope_is_read_whole_and_as_the_official_rule_reads_it(shared_data: Path) -> None:
    files = [file for file in (shared_data / "answers" / "pope").glob("*.jsonl.gz") if "pope_test" not in file.name]
    replies = [row["text"] for file in files for row in lines(file)]
    answers = [read(reply, kind="yes/no") for reply in replies]
    unread = answers.count(None)
    agree = sum(answer == official_pope(reply) for reply, answer in zip(replies, answers) if answer is not None)
    print(f"\nPOPE: {len(replies):,} replies, {unread} unread, {agree:,} of {len(replies) - unread:,} as the rule")
    assert len(replies) > 50_000
    assert unread / len(replies) < 0.001
    assert agree / (len(replies) - unread) > 0.999


def test_yes_no_sets_are_read_as_vlmevalkit_extracted_them(shared_data: Path) -> None:
    files = sorted((shared_data / "answers" / "vlmevalkit" / "vila").glob("*_auxmatch.xlsx"))
    assert len(files) == 6
    for file in files:
        table = list(rows(file))
        theirs = [{"Yes": "yes", "No": "no"}.get(row["extracted"]) for row in table]
        assert [read(row["prediction"], kind="yes/no", matcher="vlmevalkit") for row in table] == theirs
        ours = [read(row["prediction"], kind="yes/no") for row in table]
        both = [(one, other) for one, other in zip(ours, theirs) if one is not None and other is not None]
        missed = sum(one is None and other is not None for one, other in zip(ours, theirs))
        print(f"\n{file.stem}: {len(table):,} replies, {ours.count(None)} unread, {missed} of them read by VLMEvalKit")
        assert all(one == other for one, other in both)
        assert missed <= 0.002 * len(table)
        assert ours.count(None) <= 0.02 * len(table)


def test_letters_are_read_as_the_recorded_hits_say(shared_data: Path) -> None:
    # CCBench counts a hit only if all four rotations are right, so its hits say nothing about one reply.
    files = sorted((shared_data / "answers" / "vlmevalkit").glob("*/*_openai_result.xlsx"))
    files = [file for file in files if "CCBench" not in file.name]
    assert len(files) == 10
    replies = unread = lettered = 0
    against = []
    for file in files:
        for row in rows(file):
            # Without a judge VLMEvalKit files what its rules cannot read under Z.
            if not (choices := options(row)) or "Failed in Prefetch" in row["log"] or row["log"] == "Match Log: Z. ":
                continue
            answer = read(row["prediction"], choices)
            replies += 1
            if answer is None:
                # Options that are letters themselves, in another order ("A. C"), are never read.
                letters = any(len(choice) == 1 and choice.isalpha() for choice in choices)
                unread, lettered = unread + (not letters), lettered + letters
                continue
            right = dict(zip(string.ascii_uppercase, choices)).get(row["answer"]) == answer
            if right != (row["hit"] in ("1", "True")):
                against.append(row["prediction"])
    print(
        f"\nVLMEvalKit letters: {replies:,} replies, {unread} unread and {lettered} with letters as options, "
        f"{len(against)} against the recorded hit"
    )
    assert replies > 15_000
    assert unread / replies < 0.002
    # "A molecule ... is H2S.": VLMEvalKit takes the article for option A.
    assert [reply[:10] for reply in against] == ["A molecule"]


def test_almost_all_replies_of_gpt_to_cv_bench_are_read(shared_data: Path) -> None:
    for file in sorted((shared_data / "answers" / "vlmevalkit" / "gpt41").glob("*CV-Bench-?D.xlsx")):
        table = [row for row in rows(file) if options(row)]
        answers = [read(row["prediction"], options(row)) for row in table]
        print(f"\n{file.stem}: {len(table):,} replies, {answers.count(None)} unread")
        # Long comparisons that name both objects and announce nothing stay unread.
        assert answers.count(None) / len(table) < 0.06


def test_the_lmms_eval_matcher_gives_the_score_of_the_log(shared_data: Path) -> None:
    (file,) = (shared_data / "answers" / "lmms_eval_log").glob("*_samples_scienceqa_img.jsonl")
    table = lines(file)
    labels = list(string.ascii_uppercase[:5])
    agree = sum(
        (read(row["filtered_resps"][0], labels, matcher="lmms-eval") == row["target"]) == bool(row["exact_match"])
        for row in table
    )
    print(f"\nlmms-eval ScienceQA: {agree:,} of {len(table):,} scored as in the log")
    assert agree == len(table)


def test_relaxed_accuracy_gives_the_number_printed_by_vlmevalkit(shared_data: Path) -> None:
    folder = shared_data / "answers" / "vlmevalkit" / "vila"
    metric = get_metric("relaxed")
    for size in ("8b", "13b"):
        with (folder / f"vila_{size}_ChartQA_TEST_acc.csv").open(newline="") as file:
            printed = {split: float(value) for split, value in next(csv.DictReader(file)).items()}
        scores: dict[str, list[float]] = {"Overall": []}
        for row in rows(folder / f"vila_{size}_ChartQA_TEST.xlsx"):
            score = metric(
                Example(row["index"], row["question"], answers=truths(row["answer"])), Answer(row["prediction"])
            )
            for split in ("Overall", row["split"]):
                scores.setdefault(split, []).append(score)
        assert {split: 100 * sum(values) / len(values) for split, values in scores.items()} == pytest.approx(printed)


def test_short_answers_of_chat_models_are_rarely_taken_for_refusals(shared_data: Path) -> None:
    folder = shared_data / "answers" / "blind_faith_in_text"
    for model in ("claude-3-7-sonnet-20250219", "gpt-4.1-mini-2025-04-14", "llava-hf-llava-1.5-7b-hf"):
        table = lines(folder / model / "base.jsonl.gz")
        answers = [read(row["output"], kind="other") for row in table]
        assert answers.count(None) / len(table) < 0.06


def test_what_spelling_costs_the_oracle_on_vqa2(shared_data: Path) -> None:
    """People's own most frequent answers, as they are, capitalised, and with a full stop."""
    with gzip.open(shared_data / "vqa2" / "val_annotations.json.gz") as file:
        annotations = json.load(file)["annotations"][:4_000]
    examples = [
        Example(str(a["question_id"]), "", answers=tuple(p["answer"] for p in a["answers"]),
                target=a["multiple_choice_answer"])
        for a in annotations
    ]  # fmt: skip
    told = {}
    for name, said in (("plain", str), ("capital", str.capitalize), ("stop", lambda text: f"{text}.")):
        told[name] = spelling_gap(examples, [Answer(said(example.target or "")) for example in examples], "vqa")
        print(f"\n{name}: {told[name].sentence or told[name]}")
    assert told["plain"].sentence == ""
    assert told["stop"].score < told["capital"].score < told["plain"].score - 0.1
    assert told["stop"].normalised == pytest.approx(told["plain"].normalised, abs=0.002)
    assert "Try --metric vqa-fixed or --matcher lenient." in told["stop"].sentence
