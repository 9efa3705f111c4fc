"""The part of a reply that is meant as the answer: without thinking, special tokens and markup."""

from __future__ import annotations

import contextlib
import json
import re

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
