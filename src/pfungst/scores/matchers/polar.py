"""Yes or no."""

from __future__ import annotations

import re

from pfungst.scores.matchers.phrases import CUE, LEAD, REFUSAL, REVISION, WEAK_REVISION
from pfungst.scores.matchers.words import listed, sentences

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
