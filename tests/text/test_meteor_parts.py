"""The parts of METEOR: its words, stems, synonyms and paraphrases."""

import subprocess

import pytest

from pfungst.core import PfungstError
from pfungst.core.files import cache_dir
from pfungst.text import tokenize
from pfungst.text.meteor.index import build
from pfungst.text.meteor.words import JAR, folder, java_hash, lists, paraphrases, stem, words_of
from tests.text.meteor_oracle import needs_java

pytest.importorskip("pycocoevalcap")


def silent(what, done, total):
    pass


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("What's the dog's name?", "what ' s the dog ' s name"),
        ("a well-known man-made lake", "a well known man made lake"),
        ("1,000 cars, 5:30 p.m. or $5", "1,000 cars 5 : 30 pm or $ 5"),
        ("Is it the U.S.?", "is it the us"),
        ("Mr. Smith vs. no. 5", "mr. smith vs. no . 5"),
        ("It is (really) loud", "it is -lrb- really -rrb- loud"),
        ("5'11 or ten o'clock", "5 ' 11 or ten o 'clock"),
        ("日本 ok", "日 本 ok"),
        ("", ""),
    ],
)
def test_words_are_cut_once_more(sentence, words):
    assert " ".join(words_of(tokenize(sentence), lists().prefixes)) == words


def test_rows_of_full_stops_stay_together():
    assert words_of(("a...b", "c.."), {}) == ("a", "...", "b", "c", "..")


def test_hash_codes_are_those_of_java():
    # From the definition of String.hashCode: s[0] 31^(n-1) + ... + s[n-1], in 32 bits.
    assert java_hash("") == 0
    assert java_hash("ab") == 97 * 31 + 98
    assert java_hash("😀") == 0xD83D * 31 + 0xDE00
    assert java_hash("variants") == java_hash("gelato")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("running", "run"), ("caresses", "caress"), ("ties", "tie"), ("cries", "cri"), ("gas", "gas"),
        ("kiwis", "kiwi"),
        ("hopping", "hop"), ("hoping", "hope"), ("agreed", "agre"), ("generously", "generous"), ("skies", "sky"),
        ("happiness", "happi"), ("sensational", "sensat"), ("dog's", "dog"), ("yellow", "yellow"), ("by", "by"),
        ("herring", "herring"), ("controlled", "control"), ("rational", "ration"), ("geology", "geolog"),
    ],
)  # fmt: skip
def test_stems(word, expected):
    assert stem(word) == expected


@needs_java
def test_stems_equal_those_of_the_jar_for_all_words_it_knows():
    known = sorted({*lists().synsets, *lists().bases, *paraphrases(silent).vocabulary})
    words = [word for word in known if word.isascii() and not any(letter.isdigit() for letter in word)]
    assert len(words) > 100_000
    command = ["java", "-cp", str(folder() / JAR), "Stemmer", "en"]
    done = subprocess.run(command, input="\n".join(words) + "\n", capture_output=True, check=True, text=True)
    assert [stem(word) for word in words] == done.stdout.splitlines()


def test_synonyms_share_a_synset_also_of_their_base_forms():
    synsets = lists().synsets_of
    assert synsets("car") & synsets("automobiles")
    assert synsets("mice") == synsets("mouse") | synsets("mice")
    assert not synsets("car") & synsets("zebra")
    assert not synsets("notaword")


def test_phrases_are_found_where_they_stand_and_linked_in_both_directions():
    # The table says that "the photograph of" may become "photo", and not the other way round.
    index = build(
        ["see the photograph of it", "a photo"], ["one photo", "the photograph of"], lists(), paraphrases(silent)
    )
    links, long = index.links, index.main.phrase[index.main.phrase_starts[0] : index.main.phrase_starts[1]]
    places = index.main.phrase_place[: len(long)].tolist()
    whole = next(p for p, place in zip(long, places, strict=True) if links.length[p] == 3 and place == 1)
    short = index.words.phrase[index.main.words[-1]]
    forward, backward = (
        [
            (int(other), bool(reverse))
            for other, reverse in zip(links.other[a:b], links.reverse[a:b], strict=True)
            if other in (whole, short)
        ]
        for a, b in (links.starts[p : p + 2] for p in (whole, short))
    )
    assert forward == [(short, False)]
    assert backward == [(whole, True)]
    assert links.word[short] == index.main.words[-1] and links.word[whole] == -1


def test_a_damaged_cache_is_named():
    paraphrases(silent)
    kept = next(cache_dir("meteor").glob("paraphrases-*.npz"))
    whole = kept.read_bytes()
    kept.write_bytes(whole[:1000])
    from pfungst.text.meteor import words

    words._load.cache_clear()
    try:
        with pytest.raises(PfungstError, match="delete it; it will be made again"):
            paraphrases(silent)
    finally:
        kept.write_bytes(whole)
