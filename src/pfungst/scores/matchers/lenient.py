"""`lenient`: reads what a reply says beyond doubt, to a choice, a yes/no question, a number or an open question."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from pfungst.scores.matchers.choosing import choose
from pfungst.scores.matchers.options import Options
from pfungst.scores.matchers.reply import CUE, LEAD, REFUSAL, REVISION, WEAK_REVISION, ends, marked, plain, said
from pfungst.scores.matchers.words import answer_kind, listed, read_number, sentences

_WORDS = {
    **dict.fromkeys(
        listed("yes yeah yep yup y true correct affirmative sí sì oui ja да sim evet tak نعم 是 是的 对 有 はい 예 네"),
        "yes",
    ),
    **dict.fromkeys(
        listed(
            "no nope nah n false incorrect negative non nein nee нет não hayır nie لا "
            "不是 否 没有 不 いいえ 아니요 아니오"
        ),
        "no",
    ),
}
_WHOLE = {
    **_WORDS,
    **dict.fromkeys(
        listed(
            "it is|it does|there is|there are|they are|they do|he is|she is|it has|it was|i think so|i believe so|"
            "absolutely|definitely|certainly|of course|sure|indeed|"
            "that is correct|that's correct|that is right|that's right|that is true|that's true|this is correct|"
            "this is true|it appears so|it seems so|most likely yes|"
            "correct yes|yes it is|yes there is",
            "|",
        ),
        "yes",
    ),
    **dict.fromkeys(
        listed(
            "it is not|it isn't|it does not|it doesn't|there is not|there isn't|there are not|there aren't|"
            "they are not|they aren't|they do not|they don't|he is not|"
            "he isn't|she is not|she isn't|not really|not at all|definitely not|certainly not|absolutely not|"
            "of course not|i don't think so|i do not think so|"
            "not that i can see|not quite|probably not|it has not|it hasn't|it was not|it wasn't|that is incorrect|"
            "that's incorrect|that is not correct|that's not correct|"
            "that is false|that's false|that is not true|that's not true|there is none|there are none|none",
            "|",
        ),
        "no",
    ),
}
_HEAD = re.compile(
    r"(?P<word>yes|yeah|yep|yup|nope|nah|non|no|true|false|correct|incorrect|是的|是|对|有|不是|没有|否|はい|いいえ|네|예|아니요|sí|oui|"
    r"non|"
    r"nein|ja|да|нет)(?P<rest>.*)\Z",
    re.I | re.S,
)
_BOTH = re.compile(r"\A[\s\"']*(?:and|or|/|&|\||to some extent|-?ish|ish\b|\bmaybe|\?)\s*", re.I)
_OTHER = re.compile(r"(?:^|[.,;!?\n-]\s*|\b(?:or|and|then|maybe)\s+)(yes|no)\s*(?:[.,;!?\n]|\Z)", re.I)
_ABSENT = re.compile(
    r"\A(?:in (?:the|this) (?:image|picture|photo),? )?(?:based on the image, |"
    r"looking at the image, )?(?:it (?:appears|seems|looks like)(?: that)? )?"
    r"(?:there (?:is|are|was|were|appears? to be|seems? to be) (?:no|not (?:a|an|any))|there (?:isn't|aren't|wasn't|"
    r"weren't) (?:a|an|any)|"
    r"there (?:does not|doesn't|do not|don't) (?:appear|seem) to be (?:a|an|any)|"
    r"i (?:do not|don't|can't|cannot|can not) see (?:a|an|any)|i see no|no)\s+(?P<what>[\w'-]+)",
    re.I,
)
_DESPITE = re.compile(
    r"\b(?:mentioned|described|specified|information|text|passage|but|however|except|"
    r"there (?:is|are) (?:an?|one|two|some))\b",
    re.I,
)
_CONCLUDED = re.compile(r"(?:\bso|\bbut|,)\s+(yes|no)[.!]?\s*\Z", re.I)
_NOT_ABSENT = listed(
    "one doubt problem idea answer image picture photo way need matter "
    "question wonder more other difference body information comment "
    "but and or evidence indication"
)


def polar(text: str) -> str | None:
    """`yes`, `no`, or None where a reply says neither, or both.

    "There is no dog" is a no; that there *is* something is no yes, because something else may have been asked for.
    """
    text = text.strip()
    if text.endswith("?") and len(text.split()) < 4:
        return None
    if bare := _WHOLE.get(_bare(text)):
        return bare
    revisions = list(REVISION.finditer(text))
    if revisions:
        after = text[revisions[-1].end() :].lstrip(" ,.:;-…\n")
        return polar(re.sub(r"\A(?:(?:actually|sorry|hmm|wait|hold on)\b[\s,.:!…-]*)*", "", after, flags=re.I))
    told = _told(text)
    found = told if told else _heads(text)
    if concluded := _CONCLUDED.search(text):
        found = {*found, concluded[1].lower()}
    for revision in WEAK_REVISION.finditer(text):
        after = text[revision.end() :]
        word = re.match(r"(?:it's |it is |the answer is |i'd say )?(yes|no)\b\s*(?:[.,;!\n]|\Z)", after, re.I)
        if revision.start() and word:
            found = {word[1].lower()}
    if found:
        return found.pop() if len(found) == 1 else None
    if REFUSAL.search(text):
        return None
    first = next(sentences(text), "")
    absent = _ABSENT.match(first)
    if absent and absent["what"].lower() not in _NOT_ABSENT and not _DESPITE.search(text[absent.end() :]):
        return "no"
    return None


def _bare(text: str) -> str:
    return " ".join(re.sub(r"[^\w'\s]", " ", text.casefold()).split())


def _told(text: str) -> set[str]:
    """What is said to be the answer."""
    found = set()
    for cue in list(CUE.finditer(text))[-12:]:
        tail = text[cue.end() : cue.end() + 200].lstrip(" \n\"'-")
        if answer := _head(tail):
            found.add(answer)
    return found


def _heads(text: str) -> set[str]:
    """What sentences begin with."""
    found = set()
    for at, sentence in enumerate(sentences(text)):
        lead = LEAD.match(sentence)
        start = sentence[lead.end() :] if lead else sentence
        if lead and (said := re.search(r"\byes\b", lead[0], re.I)):
            start = sentence[said.start() :]
        if at and not re.match(r"\s*(?:yes|no|yeah|nope)\b\s*(?:[,.:;!\n]|\Z)", start, re.I):
            continue
        if answer := _head(start):
            found.add(answer)
            if at == 0 and (other := _OTHER.search(start[len(answer) :])) and other[1].lower() != answer:
                found.add(other[1].lower())
        elif (
            at == 0
            and re.match(r"\s*(?:yes|no)\b", start, re.I)
            and _BOTH.match(start.strip()[3 if start.strip()[:3].lower() == "yes" else 2 :])
        ):
            return {"yes", "no"}
    return found


def _head(text: str) -> str:
    text = text.strip().lstrip("\"'([")
    match = _HEAD.match(text)
    if match is None:
        return ""
    word, rest = match["word"].lower(), match["rest"]
    if rest[:1].isalnum() and word.isascii():
        return ""
    answer = _WORDS[word]
    if _BOTH.match(rest) and not re.match(r"\s*\?", rest):
        return ""
    if not rest.strip() or rest.lstrip()[0] in ".,:;!\"')]-–—…。，、(\n":
        return answer
    if word in ("yes", "yeah", "yep", "nope"):
        return answer
    if word == "no":
        # "No there is not" and "No it is" answer; "No dog is visible" is read as absence, "No parking" not at all.
        return answer if re.match(r"\s+(?:there|it|they|he|she|this|that|the|i|we|you)\b", rest, re.I) else ""
    return answer if word in ("不是", "没有", "是的", "はい", "いいえ") else ""


_FRAME = re.compile(
    r"\A(?:i (?:think|believe)(?: that)?\s+|i'd say\s+)?(?:(?:so|thus|therefore|hence|sure|okay|ok|well|"
    r"certainly)[,!.:]?\s+)?(?:based on the image,?\s+|"
    r"in the image,?\s+)?"
    r"(?P<frame>(?:it|this|that|he|she)(?:'s| is| was| appears to be| seems to be| looks like)|(?:they|these|"
    r"those)(?:'re| are| were| appear to be))\s+(?P<rest>.+)\Z",
    re.I | re.S,
)
_ANNOUNCED = re.compile(
    r"(?:\A|(?<=[\n.!?:,])\s*|\b(?:so|thus|therefore|hence|i think|i believe),?\s+)(?:the\s+|my\s+)?(?:final\s+|"
    r"short\s+|correct\s+|"
    r"best\s+)?(?:answer|ans)(?:\s+to\s+(?:the|this|your)\s+question)?\s*"
    r"(?:(?:is|would be|should be)\s*:?|:)\s*|\A(?:a|r|antwort|respuesta|réponse|答案|答え|答)\s*:\s*|"
    r"\A(?:答案是|答案为|答えは)\s*",
    re.I,
)
_ARTICLE = re.compile(r"\A(?:an?|the)\s+(?=\S)")
_SHORT = re.compile(r"\A((?:[^\s,]+\s){0,2}[^\s,]+), (?:because|since|as)\s.*\Z", re.I | re.S)
_CUT = re.compile(r"\s+(?:because|since)\s.*\Z|\s*[(,]?\s*\b(?:explanation|reason|reasoning)\s*:.*\Z", re.I | re.S)
_EXPLAINS = re.compile(r"\n\s*\n|\n(?=\s*(?:explanation|reason|reasoning|because|note)\b)", re.I)
_QUOTES = ('"', "'", "`")
_INITIALS = re.compile(r"(?:\b[^\W\d_]\.)+\Z|\b(?:etc|inc|ltd|st|jr|sr|co)\.\Z", re.I)
_LONG = 3000
_FRAMED = 5
"""Words that may follow "It is" for the frame to be taken off: longer sentences stay sentences."""


def clean(text: str, kind: str) -> str | None:
    """The answer in a reply to an open question; None for a refusal, or where two announced answers differ."""
    text = text.strip()
    if len(text) > _LONG:
        # No short answer, and nothing to gain from looking for one.
        return " ".join(text.split())
    announced = _announced(text)
    if announced is not None:
        return announced or None
    text = _first_part(text)
    if REFUSAL.search(text):
        return None
    if (
        kind == ""
        and (polar := re.match(r"(yes|no)(?=\s*(?:[,.!]\s+\S|[.!]?\Z))", text, re.I))
        and len(text.split()) > 1
    ):
        return polar[1].lower()
    text = _SHORT.sub(r"\1", text)
    text = _trim(" ".join(line.strip() for line in text.split("\n") if line.strip()))
    frame = _FRAME.match(text)
    if (
        frame
        and len(frame["rest"].split()) <= _FRAMED
        and not re.match(
            r"(?:an? |the )?(?:image|picture|photo)\b|(?:called|known|located|made|used|because|being|seen)\b|"
            r"not\b|no\b|n't|hard\b|difficult\b|possible\b|impossible\b|in\b.*\bthat\b",
            frame["rest"],
            re.I,
        )
    ):
        text = _ARTICLE.sub("", _trim(frame["rest"]))
    return text if any(map(_says, text)) else None


def _announced(text: str) -> str | None:
    """What follows "Answer:" or "The answer is"; None if nothing is announced, empty if that cannot be read."""
    cues = list(_ANNOUNCED.finditer(text))[-12:]
    if not cues:
        return None
    found: dict[str, str] = {}
    for cue in cues:
        tail = text[cue.end() : cue.end() + 2000].lstrip()
        if re.match(r"(?:not|unclear|unknown)\b", tail, re.I) or REFUSAL.search(next(sentences(tail), "")):
            return ""
        line = next((line for line in tail.split("\n") if line.strip()), "")
        answer = _ARTICLE.sub("", _trim(_CUT.sub("", next(sentences(line), ""))))
        found[answer.casefold()] = answer
    final = [cue for cue in cues if "final" in cue[0].lower()]
    if len(found) == 1 or (final and final[-1] is cues[-1]):
        return next(reversed(found.values()))
    return ""


def _first_part(text: str) -> str:
    """The first line where it is a short answer and an explanation follows."""
    parts = _EXPLAINS.split(text, maxsplit=1)
    if len(parts) == 2:
        first = parts[0].strip()
        if first and "\n" not in first and len(first.split()) <= 4 and first[-1] != ":" and len(parts[1].split()) >= 5:
            return first
    return text


def _trim(text: str) -> str:
    text = text.strip()
    while True:
        before = text
        if text[-1:] in ".。" and not _INITIALS.search(text) and not text.endswith("..."):
            text = text[:-1].rstrip()
        for quote in _QUOTES:
            if len(text) > 1 and text[0] == quote and text[-1] == quote and text.count(quote) == 2:
                text = text[1:-1].strip()
        text = text.strip("*_ \t").rstrip(",;: ")
        if text == before:
            return text


def _says(sign: str) -> bool:
    return sign.isalnum() or unicodedata.category(sign).startswith("S")


_PASSES = 6


def lenient(reply: str, choices: Sequence[str], kind: str) -> str | None:
    """The answer of a reply with thinking, markup, a letter, an explanation or a whole sentence around it.

    A wrong reading is far worse than none: two options, a letter with the text of another option, a range of numbers,
    a refusal, or thinking that never ended are unread. See docs/reference/matchers.md for what is read.
    """
    kind = answer_kind(kind)
    if choices:
        return _choice(reply, tuple(choices))
    if kind == "yes/no":
        return _marked(reply, polar)
    if kind == "number":
        return _marked(reply, _number)
    # What is read once must read the same again: clean until nothing changes.
    text = reply
    for _ in range(_PASSES):
        answer = _marked(text, lambda part: clean(part, kind), whole=True)
        if answer is None or answer == text:
            return answer
        text = answer
    return None


def _choice(reply: str, choices: tuple[str, ...]) -> str | None:
    options = Options.of(choices)
    exact = next(
        (index for index, choice in enumerate(choices) if choice.strip() and choice.strip() == reply.strip()), None
    )
    if exact is None:
        named = _marked(reply, lambda part: _name(part, options))
        exact = None if named is None else int(named)
    return None if exact is None or exact in options.unsafe or not choices[exact].strip() else choices[exact]


def _name(text: str, options: Options) -> str | None:
    offered = [choice.strip().casefold().rstrip(".") for choice in options.choices]
    index = choose(text, options)
    if sorted(offered) == ["no", "yes"]:
        # Letters first; then what the sentence says.
        spoken = polar(text)
        by_text = None if spoken is None else offered.index(spoken)
        if index is None:
            index = by_text
        elif by_text is not None and by_text != index:
            index = None
    return None if index is None else str(index)


def _number(text: str) -> str | None:
    revisions = list(REVISION.finditer(text))
    text = text[revisions[-1].end() :] if revisions else text
    number = read_number(text)
    return None if number is None or (REFUSAL.search(text) and len(text.split()) > 3) else number


def _marked(reply: str, reader: Callable[[str], str | None], depth: int = 3, whole: bool = False) -> str | None:
    """Read what stands where answers are marked, all of it alike; the whole reply where nothing is marked."""
    text = said(reply)
    if not text:
        return None
    parts = marked(text) if depth else []
    if not parts:
        return reader(plain(text if whole else ends(text))) if whole or any(map(str.isalnum, text)) else None
    answers = {_marked(part, reader, depth - 1, whole) for part in dict.fromkeys(parts)}
    return answers.pop() if len(answers) == 1 else None
