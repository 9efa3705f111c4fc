"""Turns of phrase that frame an answer: announcing it, taking it back, refusing it, negating it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pfungst.scores.matchers.words import Word, listed

_VERB = r"(?:is|was|would be|should be|must be|will be|has to be|appears to be|seems to be|remains|=)"
_HEDGE = r"(?:(?:therefore|thus|clearly|likely|most likely|probably|definitely|simply|indeed|that|still),?\s+)?"
CUE = re.compile(
    rf"\b(?P<final>final\s+)?(?:(?:correct|right|best|likely|appropriate|accurate|suitable|closest|my)\s+){{0,2}}"
    rf"(?:answer|option|choice|ans|match)(?:\s+(?:choice|option|letter|here)|\s+(?:to|for)\s+(?:the|this|"
    rf"your)\s+question)?"
    rf"\s*(?:{_VERB}\s*:?|:|\s-\s)\s*{_HEDGE}"
    rf"|\b(?:response|output|prediction|result|correct|final|selection|selected)\s*:\s*"
    rf"|\A\s*(?:choose|select|pick|mark|go\s+(?:for|with))\s+(?=\W?[A-Z]\b)"
    rf"|\b(?:closest|best\s+fit|best\s+match|conclusion)\s+(?:{_VERB})\s*:?\s*{_HEDGE}"
    rf"|\bi(?:'d|'ll|\s+would|\s+will|\s+must|\s+have\s+to)?\s+(?:choose|chose|select|pick|picked|opt\s+for|"
    rf"go\s+with|vote\s+for|answer|say|guess|conclude)\s+"
    rf"(?:that\s+)?(?:(?:it's|it\s+is|the\s+answer\s+is)\s+)?(?:with\s+)?"
    rf"|\b(?:i'm|i\s+am)\s+going\s+with\s+|\bi(?:'m)?\s+lean(?:ing)?\s+towards?\s+|\blet's\s+(?:go\s+with|say|pick|"
    rf"choose)\s+|[选選](?:择|"
    rf"擇)?(?=\s*[:(]?\s*[A-Z](?![a-z]))\s*:?\s*"
    rf"|(?:正确)?(?:答案|选项)(?:应该)?(?:是|为|:)\s*:?\s*|(?:故|应|所以|因此)选(?:择)?\s*:?\s*|(?:答え|正解|解答)は\s*:?\s*|(?:정답|답)(?:은|"
    rf":)\s*:?\s*"
    rf"|\b(?:respuesta|réponse|antwort|risposta|resposta|ответ)(?:\s+(?:correcta|correcte|richtige|corretta|"
    rf"correta))?\s*(?:est|es|ist|lautet|è|é|:)\s*:?\s*",
    re.I,
)
"""What comes next is meant as the answer."""

JUDGED = re.compile(
    r"\b(?:is|are|seems|must\s+be|would\s+be)\s+(?:indeed\s+|clearly\s+)?(?:the\s+)?(?:most\s+)?"
    r"(?:correct|right|best|closest|likely|accurate|appropriate|true|answer)(?:\s+(?:one|answer|option|choice|match|"
    r"description|"
    r"statement))?\s*(?:[.,;!]|because|since|as\b|\Z)",
    re.I,
)
"""What came before is meant as the answer, unless it is negated."""

LEAD = re.compile(
    r"\A(?:\s|[-–—>→=:,]|so\b|thus\b|therefore\b|hence\b|then\b|yes\b|ok(?:ay)?\b|and\b|in conclusion\b|well\b|hmm\b|"
    r"oh\b|unfortunately\b|sorry\b|without a doubt\b|in summary\b|"
    r"overall\b|sure\b|"
    r"(?:based on|looking at|in|from) (?:the|this) (?:image|picture|photo)\b|(?:i think|i believe|i'd say|"
    r"it looks like|it seems)\b|it(?:'s| is| must be| has to be| would be)\b|that(?:'s|"
    r" is)\b|this is\b|probably\b|likely\b|definitely\b|ans(?:wer)?\b)*",
    re.I,
)
"""Small words in front of an answer."""

REVISION = re.compile(
    # "Wait" and "hold on" as interjections: "stop and wait for the light" takes nothing back.
    r"(?:\A|(?<=[.,;:!?…—\n-])\s*|\b(?:no|but|oh) )(?:wait|hold on)\b(?!\s+(?:for|until|in|at|on|here|to|and)\b)"
    r"|\b(?:correction(?=\s*:)|scratch that|on second thoughts?|my mistake|changing my answer|i change my answer|"
    r"let me (?:re\w*|correct|double|check|look)[\w -]*|i (?:mean|meant|misread|was wrong)|"
    r"i (?:need|have) to (?:correct|revise)[\w -]*)\b",
    re.I,
)
"""What came before is taken back."""
AGAIN = re.compile(
    r"\A[\s,.:;…-]*(?:(?:actually|no|sorry|hmm|wait|hold on|it should be|it must be)\b[\s,.:;…-]*)*", re.I
)
"""What may stand between taking an answer back and giving another."""
WEAK_REVISION = re.compile(r"(?:\b(?:actually|sorry|rather|or rather|oops|hmm)\b|\bno\b(?=[,:]))[\s,:.…-]*", re.I)

_CANNOT = (
    r"(?:can ?not|can't|could not|couldn't|am (?:not able|unable) to|'m (?:not able|unable) to|do not|don't|am not|"
    r"'m not)"
)
REFUSAL = re.compile(
    rf"\bi(?:'m| am) (?:really |very |so )?sorry,? (?:but )?(?:i|we|there|the|this|it|without|as)\b|\A(?:sorry|"
    rf"apologies|unfortunately),? (?:but )?(?:i|we)(?:'m| am| are)? (?:can|could|do not|don't|unable|not|was|were|"
    rf"have no)"
    rf"|\bi ?{_CANNOT} (?:actually |really |directly |fully |currently |clearly |reliably )?(?:see the|view|access|"
    rf"determine|tell|answer|identify|assist|help|provide|process|analy[sz]e|"
    rf"read|count|discern|distinguish|verify|confirm|be (?:sure|certain)|know|say for|able to|sure|certain|make out|"
    rf"have (?:enough|access|any (?:image|"
    rf"information)|information|the image)|see (?:any|an|the) (?:image|picture|photo))"
    rf"|\bas an ai\b|\bas a (?:large )?language model\b"
    rf"|\b(?:cannot|can't|can not|could not|not) be (?:determined|answered|known|inferred|seen|identified|confirmed|"
    rf"told|established)\b"
    rf"|\b(?:unable|impossible|not possible|not able|hard|difficult) to (?:determine|tell|say|answer|identify|know|"
    rf"see|confirm|give|provide)\b"
    rf"|\b(?:not|in)(?:-| )?(?:enough|sufficient) (?:information|context|detail|details|info|data|evidence)\b|"
    rf"\binsufficient (?:information|context|data|evidence)\b"
    rf"|\b(?:image|picture|photo) (?:is|was|has) not (?:been )?(?:provided|attached|loaded|visible|available|"
    rf"included|uploaded)\b|\bno image (?:is|was|has been)? ?(?:provided|attached|given|available)\b"
    rf"|\b(?:information|text|passage|context|paragraph|article)(?: provided| given)? (?:does not|doesn't|"
    rf"do not) (?:mention|specify|contain|provide|indicate|say|describe|include|state)\b"
    rf"|\bfailed to obtain answer\b"
    rf"|\A\W*(?:it(?:'s| is) )?(?:unanswerable|unknown|undetermined|indeterminate|unclear|uncertain|n/?a|not (?:sure|"
    rf"certain|clear|visible|applicable|specified|mentioned|given|available|answerable|determinable)|"
    rf"cannot (?:tell|say|determine|answer)|can't (?:tell|say|determine)|(?:i )?(?:don't|do not) know|i can't tell|"
    rf"no (?:answer|idea)|i have no idea|idk)\W*\Z",
    re.I,
)
"""The reply says that it gives no answer."""

_NEGATIONS = listed("not no never neither nor without cannot except excluding unlike incorrect wrong 不 非")
_FOLLOWING = listed("not incorrect wrong false unlikely ruled eliminated excluded cannot never absent")
_BREAKS = listed("but however although though whereas while yet")
_PAIRS = frozenset(
    (("rather", "than"), ("instead", "of"), ("other", "than"), ("opposed", "to"), ("out", "of"), ("ruled", "out"))
)
_DOUBTS = listed("than like similar whether if unless beside versus vs compared")
_STOPS = ".,;:!?\n()—"


def standing(found: Sequence[Word], first: int, last: int, text: str, others: frozenset[int]) -> str:
    """How a text stands to what its words first..last name: `for`, `against`, or `unclear`.

    `others` are the words at which another option is named: a "not" in front of one belongs to it.
    """
    for back in range(1, 13):
        at = first - back
        if at < 0 or any(sign in _STOPS for sign in text[found[at].end : found[at + 1].start]):
            break
        key = found[at].key
        after = found[at + 1].key
        if key == "but" and at and found[at - 1].key in ("anything", "everything", "all"):
            return "against"
        if key in _BREAKS:
            break
        if (key, after) in _PAIRS:
            return "against"
        if (key in _NEGATIONS or key.endswith("n't")) and after != "only":
            return "against" if back <= 5 else "unclear"
        if key == "than" and at and found[at - 1].key in ("rather", "other"):
            return "against"
        if key in _DOUBTS:
            return "unclear"
    for ahead in range(1, 5):
        at = last + ahead
        if at >= len(found) or any(sign in _STOPS for sign in text[found[at - 1].end : found[at].start]):
            break
        key = found[at].key
        if key in _BREAKS or key in ("because", "since"):
            break
        if key in _FOLLOWING or key.endswith("n't"):
            return "for" if at + 1 in others or at + 2 in others else "against"
    return "for"
