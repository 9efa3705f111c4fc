"""Which option a reply chooses: by letter, by text, by place; none where that is not beyond doubt."""

from __future__ import annotations

import re

from pfungst.scores.matchers.options import (
    LONGEST,
    Letters,
    Options,
    Reading,
    loose,
    meant_in,
    mentioned,
    nth,
    says_none,
    single,
)
from pfungst.scores.matchers.reply import AGAIN, CUE, JUDGED, LEAD, REFUSAL, REVISION, WEAK_REVISION
from pfungst.scores.matchers.words import labels, read_number, sentences, worth

_SHORT = 120
"""Characters up to which every sentence of a reply should agree with its answer."""
_CUES = 12
"""Announcements looked at, from the end."""

_BECAUSE = re.compile(
    r"\b(?:because|since|due to|given that|based on|considering)\b|, (?:as|which|not|rather|instead)\b|"
    r"\brather than\b|\binstead of\b",
    re.I,
)
_EXPLAINS = re.compile(
    r"\s+(?:because|since|as\b|due|for\b|is (?:the )?(?:most )?(?:correct|right|best)|seems|would be|looks|matches|"
    r"fits|given|based|if\b|\(?not\b|but not\b|rather than|instead of|over\b)",
    re.I,
)
_BEFORE = re.compile(r"\A[^\w(\[{<\"']+")
_INLINE = re.compile(r"(?<!\w)([A-Z])[.):]\s*(?=\S)")
_OTHERWISE = re.compile(r"\b(?:alternatively|or (?:maybe|perhaps|possibly)|(?:could|might|may) also be)\b[\s,:]*", re.I)
_TICK = re.compile(r"[✅✓✔☑]|\((?:correct|right)\)", re.I)
_DENIED = re.compile(
    r"[ )\]]*(?:\w+ )?(?:is|are|was|can|does|would|seems)(?: \w+)?(?:n't| not| incorrect| wrong| false| unlikely|"
    r" ruled)",
    re.I,
)


def choose(text: str, options: Options) -> int | None:
    """Index of the option that a cleaned text chooses, None where it chooses none or several."""
    found = _choose(text, options)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _choose(text: str, options: Options) -> Reading:
    whole = single(options.equal(text))
    if whole is not None:
        return whole
    if options.none is not None and says_none(text) and len(text) < 60:
        return options.none
    revisions = list(REVISION.finditer(text))
    if revisions:
        return _choose(AGAIN.sub("", text[revisions[-1].end() :]), options)
    ticked = _ticked(text, options)
    if ticked is not None:
        return ticked
    body = _without_list(text, options)
    told = _announced(body, options)
    if told is None:
        told = _ends(body, options)
    if told is not None:
        return False if _at_odds(told, body, options) else _revised(told, body, options)
    if len(body) > 16 * LONGEST and not options.values:
        return None
    if REFUSAL.search(body):
        return options.unknown if options.unknown is not None and len(body) < 400 else False
    if says_none(body):
        return options.none if options.none is not None else False
    if options.values:
        value = _value(body)
        return options.values.get(value) if value is not None else None
    return _revised(mentioned(body, options), body, options)


def _at_odds(told: Reading, text: str, options: Options) -> bool:
    """Whether a short reply says one option in words and then another by letter: "Red. The answer is B." """
    *earlier, _ = list(sentences(text)) or [""]
    if told is False or told is None or not earlier or len(text) > _SHORT or "final" in text.lower():
        return False
    named = single({option for mention in meant_in(" ".join(earlier), options) for option in mention.options})
    own = {option for mention in options.mentions(text) for option in mention.options}
    return named is not None and named is not False and named != told and told not in own


def _value(text: str) -> float | None:
    """Of the one number that a text says."""
    number = read_number(text)
    return None if number is None else worth(number)


def _without_list(text: str, options: Options) -> str:
    """The text without a list that repeats several options."""
    if "\n" not in text or not options.choices:
        return text
    rows = []
    letters = labels(len(options.choices))
    for row in Letters.up_to(len(options.choices)).listed.finditer(text):
        own = letters.index(row["letter"].upper())
        if loose(row["rest"]).startswith(loose(options.choices[own])):
            rows.append((own, row.start(), row.end()))
    if len({own for own, *_ in rows}) < 2:
        return text
    kept, at = [], 0
    for _, start, end in rows:
        kept.append(text[at:start])
        at = end
    return "".join([*kept, text[at:]]).strip()


def _ticked(text: str, options: Options) -> Reading:
    """The option that is ticked in a list of options."""
    if not _TICK.search(text):
        return None
    rows = list(Letters.up_to(len(options.choices)).listed.finditer(text))
    ticked = [row["letter"].upper() for row in rows if _TICK.search(row["rest"])]
    if len(rows) < 2 or not ticked:
        return None
    return labels(len(options.choices)).index(ticked[0]) if len(ticked) == 1 else False


def _announced(text: str, options: Options) -> Reading:
    """What is said to be the answer: "The answer is B", "B is correct"."""
    told: list[tuple[int, Reading, bool]] = []
    for cue in list(CUE.finditer(text))[-_CUES:]:
        # "Which answer is right?" and "the answer is not A" announce nothing.
        tail = text[cue.end() : cue.end() + 600].lstrip()
        if re.match(
            r"(?:not|never|neither)\b|(?:in)?correct\b|right\b|wrong\b|clear\b|based\b|as follows\b|found\b|given\b",
            tail,
            re.I,
        ):
            continue
        if re.search(
            r"\b(?:which|what|the question|if the|whether the|select the|choose the)\s*\Z",
            text[max(0, cue.start() - 16) : cue.start()],
            re.I,
        ):
            continue
        told.append((cue.start(), _head(_first_block(tail), options), bool(cue.group("final"))))
    at = 0
    for sentence in list(sentences(text))[-2 * _CUES :] if JUDGED.search(text) else ():
        at = text.find(sentence, at)
        judged = JUDGED.search(sentence)
        if (
            judged
            and not CUE.search(sentence)
            and not re.search(r"\b(?:which|what|not|n't)\b|n't\b|\?", sentence, re.I)
        ):
            before = re.split(r"[,;]|\b(?:but|while|whereas|so)\b", sentence[: judged.start()])[-1].strip()
            reading = _labelled(before, options)
            told.append((at, reading if reading is not None else mentioned(before, options), False))
        at += len(sentence)
    if not told:
        return None
    told.sort(key=lambda item: item[0])
    readings = {reading for _, reading, _ in told if reading is not None}
    if len(readings) == 1 and told[-1][1] is not None:
        return readings.pop()
    return told[-1][1] if told[-1][2] and told[-1][1] is not None else False


def _labelled(text: str, options: Options) -> Reading:
    """The option whose letter a clause begins or ends with, as in "Option B (red)" before "is correct"."""
    lead = LEAD.match(text)
    head = _letter(f"{text[lead.end() :] if lead else text} is correct", options)
    return head[0] if head is not None and head[0] is not False else None


def _first_block(text: str) -> str:
    return next((line.strip(" -") for line in text.split("\n") if line.strip(" -")), "")


def _ends(text: str, options: Options) -> Reading:
    """What the first words and the last sentence say, if either is an option by its letter."""
    first = _letter(text, options)
    lines = [line for line in text.split("\n") if line.strip()]
    last = None
    if lines:
        final = list(sentences(lines[-1]))[-1:]
        for candidate in dict.fromkeys((lines[-1].strip(), *final)):
            shortened = candidate[LEAD.match(candidate).end() :] or candidate  # type: ignore[union-attr]
            found = _letter(shortened, options)
            if found is not None and (not found[1] or found[0] is False):
                last = found[0]
                break
            if len(lines) > 1 and (named := single(options.equal(shortened))) is not None:
                last = named
                break
    start = first[0] if first is not None else None
    if start is None and len(lines) > 1:
        start = single(options.equal(lines[0].strip()))
        # "Red" in a line of its own, followed by an explanation that need not name it again.
    if start is None or last is None or start == last:
        return last if start is None else start
    return False


def _letter(text: str, options: Options) -> tuple[Reading, str] | None:
    """The option whose letter the text begins with, and what follows; False for two letters or letter against text."""
    count = len(options.choices)
    lead = _BEFORE.sub("", text, count=1)
    patterns = Letters.up_to(count)
    match = patterns.head.match(lead)
    if match is None or not count:
        return _ordinal(lead, options)
    letter, word = match["letter"], match["word"]
    index = labels(count).index(letter.upper())
    rest = lead[match.end() :]
    bracketed = bool(re.search(r"[(\[{<\"']", match["open"])) and bool(match["close"])
    marked = bool(re.match(r"[.):\]](?:\s|\Z)", rest)) or bool(match["close"])
    line, _, _ = rest.partition("\n")
    tail = line.lstrip(" .):]-–—=>,;!。").strip()
    own = bool(tail) and _starts(tail, options, index)
    if word and "answer" in word.lower() and letter == "a" and not (bracketed or marked):
        return None
    certain = (
        bracketed
        or bool(word)
        or (marked and (letter.isupper() or not tail or own))
        or (letter.isupper() and bool(re.match(r"\s*(?:\n|\Z|[,;!。]|[-–—=]+>?\s|です|だ|입니다|이다)", rest)))
        or (letter.islower() and not rest.strip(" .)"))
        or (own and letter.isupper() and rest[:1] in " .:)-–,")
        or (letter.isupper() and bool(_EXPLAINS.match(rest)))
        or (letter.isupper() and (letter not in "AI" or rest.lstrip()[:1] == "(") and bool(options.equal(tail)))
    )
    if not certain or _DENIED.match(rest):
        return None
    if patterns.more.match(rest) or re.match(r"\s*(?:and|or|&|/)\s", rest, re.I):
        return False, tail
    if letter == "A" and own and not (bracketed or word or marked):
        # "A man and a woman": an article, and more than one option.
        named = {option for mention in meant_in(next(sentences(tail), ""), options) for option in mention.options}
        if named - {index} and -1 not in named:
            return None
    if letter == "A" and not own and tail and rest[:1] == ":" and not (bracketed or word):
        # "A:" may stand for the word answer.
        return None
    if tail and (_contradicts(tail, options, index) if not own else _lists_more(tail, options, index)):
        return False, tail
    return index, "" if own and len(loose(tail)) <= len(loose(options.choices[index])) + 2 else tail


def _ordinal(text: str, options: Options) -> tuple[Reading, str] | None:
    match = Letters.up_to(len(options.choices)).ordinal.match(re.sub(r"\A(?:the|my)\s+", "", text, flags=re.I))
    index = nth(match, options) if match else None
    if match is None:
        return None
    return (False, "") if index is None else (index, "")


def _starts(tail: str, options: Options, index: int) -> bool:
    mentions = options.mentions(tail)
    if (
        mentions
        and index in mentions[0].options
        and not re.search(r"\w", re.sub(r"\A(?:an?|the)\s", "", tail[: mentions[0].start] + " ", flags=re.I))
    ):
        return True
    own = loose(options.choices[index])
    return bool(own) and (
        loose(tail) == own
        or loose(tail).startswith(own + " ")
        or (not own[-1].isalnum() and loose(tail).startswith(own))
    )


def _contradicts(tail: str, options: Options, index: int) -> bool:
    """Whether the first sentence after a letter names exactly one option, another one."""
    first = next(sentences(tail), "")
    if (says_none(first) and options.none != index) or (REFUSAL.match(first) and options.unknown != index):
        return True
    named = {option for mention in meant_in(first, options) for option in mention.options}
    return len(named) == 1 and index not in named


def _lists_more(tail: str, options: Options, index: int) -> bool:
    """Whether other options follow with letter and text, as in "A. red B. blue"."""
    letters = labels(len(options.choices))
    for match in _INLINE.finditer(tail):
        other = letters.index(match[1]) if match[1] in letters else index
        if other != index and _starts(tail[match.end() : match.end() + 200], options, other):
            return True
    return False


def _head(tail: str, options: Options) -> Reading:
    """What an announced answer says: its letter, or the option that its first clause names."""
    tail = tail.strip()
    lead = LEAD.match(tail)
    for text in dict.fromkeys((tail, tail[lead.end() :] if lead else tail)):
        if (found := _letter(text, options)) is not None:
            return found[0]
    sentence = next(sentences(tail), "")
    whole = single(options.equal(sentence) or options.equal(tail))
    if whole is not None:
        return whole
    if says_none(sentence):
        return options.none if options.none is not None else False
    if REFUSAL.search(sentence):
        return options.unknown if options.unknown is not None else False
    clause = _BECAUSE.split(sentence, maxsplit=1)[0]
    if options.values:
        value = _value(clause)
        return options.values.get(value) if value is not None else False
    return mentioned(clause, options)


def _revised(told: Reading, text: str, options: Options) -> Reading:
    """A later "actually, B" takes an answer back; what follows must then be readable."""
    for revision in list(WEAK_REVISION.finditer(text))[-_CUES:]:
        if revision.start() == 0:
            continue
        tail = text[revision.end() : revision.end() + 80]
        cue = CUE.search(tail)
        lead = LEAD.match(tail)
        after = tail[cue.end() :] if cue and cue.start() < 12 else tail[lead.end() :] if lead else tail
        found = _letter(after, options) or _letter(tail, options)
        reading = found[0] if found is not None else single(options.equal(next(sentences(after), "")))
        if reading is not None:
            told = reading
    for other in list(_OTHERWISE.finditer(text))[-_CUES:]:
        reading = _head(text[other.end() : other.end() + 80], options)
        if reading is not None and reading != told:
            return False
    return told
