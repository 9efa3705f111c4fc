"""The part of a reply that is meant as the answer, without thinking, special tokens and markup; and turns of phrase
that announce an answer, take one back or refuse one."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence

from pfungst.scores.matchers.words import Word, listed

_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_SIGNS = str.maketrans(
    {
        **{chr(code): chr(plain) for code, plain in _WIDE.items()},
        **dict.fromkeys("\u3000\u00a0\u202f\u2009", " "),
        **dict.fromkeys("\u200b\ufeff\u2060", ""),
        **dict.fromkeys("‘’ʼ", "'"),
        **dict.fromkeys("“”„«»", '"'),
        "【": "[",
        "】": "]",
        "\r": "\n",
    }
)

_THINK = re.compile(
    r"<\s*(/?)\s*(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|scratchpad)\s*>"
    r"|\[(/?)THINK\]|◁(/?)think▷|<\|(?:begin()|(end))_of_thought\|>",
    re.I,
)
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<]{0,40}<\|message\|>")
_BARE_CHANNEL = "assistantfinal"
_STOP = re.compile(
    r"</s>|<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end|return|endofturn|end▁of▁sentence|user)\|>"
    r"|<end_of_turn>|<eos>|<pad>|\[/?INST\]"
)
_OPEN = re.compile(
    r"\A(?:\s|<s>|<bos>|<\|(?:begin_of_text|start|assistant)\|>(?:assistant\b)?|<\|im_start\|>(?:assistant\b)?"
    r"|<\|start_header_id\|>\w+<\|end_header_id\|>|<start_of_turn>model\b|ASSISTANT:)+"
)

_TURN = re.compile(r"\n[^\S\n]*(?:#+\s*)?(?:question|user|human|q)\s*:", re.I)
"""A model that does not stop goes on with the next question. It begins at one newline alone: from each of a thousand in
a row all the others would be tried."""
_TAG = re.compile(
    r"<\s*(/?)\s*(?:final[_ ]?)?(?:answer|conclusion|final|response|output)\s*>|<\|(?:begin()|(end))_of_box\|>", re.I
)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{|[{}]")
_KEY = re.compile(
    r"[{,]\s*[\"'](?:final|correct|your|selected|predicted)?[_ ]?(?:answer|option|choice|prediction)[\"']\s*:\s*"
    r"(?:\"((?:[^\"\\\n]|\\.)*)\"|'([^'\n]*)'|\[\s*\"([^\"\n]*)\"\s*\]|([^\s,{}\[\]\"']+))",
    re.I,
)

_FENCE = re.compile(r"```[a-z]*\n?", re.I)
_COMMAND = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|mathsf|operatorname)\s*\{([^{}]*)\}")
_DOLLARS = re.compile(r"\$\$?(?=[^\s$])([^$\n]{0,200}?[^\s$\\])\$\$?(?!\d)")
_SPACING = re.compile(r"\\[,;:! ]|\\q?quad\b|\\[()\[\]]")
_HTML = re.compile(r"</?(?:b|i|u|em|strong|p|br|code|span|div|li|ul|ol|pre|mark|h[1-6])\s*/?>", re.I)
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~")
_LINE_MARK = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]+)+", re.M)
_STARS = re.compile(r"\*{2,}|__+|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])|`")
_BULLET = re.compile(r"^[ \t]*[*•·-][ \t]+", re.M)


def said(reply: str) -> str | None:
    """The reply after its thinking part, without special tokens; None where the thinking never ended."""
    text = reply.replace("\r", "\n") if reply.isascii() else reply.translate(_SIGNS)
    channels = list(_CHANNEL.finditer(text)) if "<|channel|>" in text else []
    if channels:
        final = [channel for channel in channels if channel[1] == "final"]
        if not final:
            return None
        text = text[final[-1].end() :]
    elif text.startswith("analysis") and _BARE_CHANNEL in text:
        text = text.rpartition(_BARE_CHANNEL)[2]
    told = _without_thinking(text)
    if told is None:
        return None
    text = _OPEN.sub("", told)
    turn = _TURN.search(text)
    text = text[: turn.start()] if turn and text[: turn.start()].strip() else text
    if "<" not in text and "[" not in text:
        return text.strip()
    # The first token with something in front of it ends the reply; what follows is another turn.
    text = re.sub(rf"\A(?:\s|{_STOP.pattern})+", "", text)
    stop = _STOP.search(text)
    return (text[: stop.start()] if stop else text).strip()


def _without_thinking(text: str) -> str | None:
    tags = list(_THINK.finditer(text)) if "<" in text or "[" in text or "◁" in text else []
    if not tags:
        return text
    closing = [any(tag.groups(default="")) for tag in tags]
    if not closing[-1]:
        # An answer that is marked as such at the very end was meant, although the thinking was never closed.
        end = re.search(r"<answer>(?:(?!<answer>)[^<]){1,400}</answer>\s*\Z", text, re.I)
        return end[0] if end else None
    before = text[: tags[0].start()] if not closing[0] else ""
    return f"{before}\n{text[tags[-1].end() :]}"


def marked(text: str) -> list[str]:
    """What stands in the places made for answers: `<answer>`, else `\\boxed{}`, else the answer of a JSON object."""
    return _tagged(text) or _boxed(text) or _keyed(text)


def _tagged(text: str) -> list[str]:
    if "<" not in text:
        return []
    found = []
    tags = list(_TAG.finditer(text))
    for at, tag in enumerate(tags):
        if any(tag.groups(default="")):
            continue
        # A stop sequence may have eaten the closing tag.
        found.append(text[tag.end() : tags[at + 1].start() if at + 1 < len(tags) else len(text)])
    return found


def _boxed(text: str) -> list[str]:
    if "boxed" not in text and "fbox" not in text:
        return []
    found = []
    open_braces: list[int | None] = []
    for brace in _BOX.finditer(text):
        if brace[0] == "}":
            start = open_braces.pop() if open_braces else None
            if start is not None and all(outer is None for outer in open_braces):
                found.append(text[start : brace.start()])
        else:
            open_braces.append(None if brace[0] == "{" else brace.end())
    return found


def _keyed(text: str) -> list[str]:
    if "{" not in text:
        return []
    found = []
    for match in _KEY.finditer(text):
        quoted, single, listed, bare = match.groups()
        if quoted is not None:
            with contextlib.suppress(ValueError):
                quoted = str(json.loads(f'"{quoted}"'))
        found.append(next(value for value in (quoted, single, listed, bare, "") if value is not None))
    return found


_HEAD, _TAIL = 1200, 1800


def ends(text: str) -> str:
    """The beginning and the end of a long reply: answers stand there, and reading takes no longer for a longer text."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n…\n{text[-_TAIL:]}"


def plain(text: str) -> str:
    """The text without markdown, HTML and LaTeX around its words. What was struck out is gone."""
    if "`" in text:
        text = _FENCE.sub("", text)
    if "~~" in text:
        text = _STRUCK.sub("", text)
    if "\\" in text:
        for _ in range(3):
            text = _COMMAND.sub(r"\1", text)
        text = _SPACING.sub(" ", text).replace("\\%", "%").replace("\\$", "$")
    if "$" in text:
        text = _DOLLARS.sub(r"\1", text)
    if "<" in text:
        text = _HTML.sub("", text)
    if "#" in text or ">" in text:
        text = _LINE_MARK.sub("", text)
    if "*" in text or "•" in text or "·" in text:
        text = _BULLET.sub("- ", text)
    if "*" in text or "_" in text or "`" in text:
        text = _STARS.sub("", text)
    return text.strip()


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
