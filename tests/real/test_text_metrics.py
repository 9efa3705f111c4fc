"""The tokenizer and the metrics on real questions, against the published Java and Python code."""

import gzip
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pfungst.text import pairwise, tokenize
from pfungst.text.words import DROPPED
from tests.text.test_metrics import published


@pytest.fixture(scope="module")
def questions(shared_data):
    return sorted(set(gzip.open(shared_data / "vqa1" / "val2014_questions.txt.gz", "rt").read().splitlines()))


@pytest.mark.skipif(shutil.which("java") is None, reason="the published tokenizer is a Java program")
def test_words_agree_with_the_stanford_tokenizer_on_all_but_two_in_ten_thousand(questions, tmp_path):
    from pycocoevalcap.tokenizer import ptbtokenizer

    jar = str(Path(ptbtokenizer.__file__).parent / ptbtokenizer.STANFORD_CORENLP_3_4_1_JAR)
    (tmp_path / "questions.txt").write_text("\n".join(questions))
    command = ["java", "-cp", jar, "edu.stanford.nlp.process.PTBTokenizer", "-preserveLines", "-lowerCase"]
    cut = subprocess.run([*command, str(tmp_path / "questions.txt")], capture_output=True, check=True, text=True).stdout
    lines = cut.split("\n")[: len(questions)]
    wrong = sum(
        [word for word in line.rstrip().split(" ") if word and word not in DROPPED] != list(tokenize(question))
        for line, question in zip(lines, questions, strict=True)
    )
    assert wrong <= 2e-4 * len(questions)


@pytest.mark.parametrize("metric", ["bleu1", "bleu2", "bleu3", "bleu4", "rouge", "cider"])
def test_real_pairs_equal_the_published_metric(questions, metric):
    picked = np.random.default_rng(0).permutation(len(questions))
    main, pool = [questions[i] for i in picked[:15]], [questions[i] for i in picked[15:300]]
    assert pairwise(metric, main, pool) == pytest.approx(published(metric, main, pool), abs=1e-9)
