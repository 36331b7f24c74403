"""Regular expressions of Java, and their replacements, in Python's words.

It translates named groups, `\\Q…\\E`, POSIX classes such as `\\p{Lower}`, `\\h` and `\\z`. Properties of
Unicode such as `\\p{L}` are refused, as errors in an expression are.
"""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(
    r"\\Q(?P<literal>.*?)(?:\\E|\Z)|\\[pP]\{(?P<property>\w+)\}|\\k<(?P<back>\w+)>|\\.|\(\?<(?P<group>[A-Za-z]\w*)>|.", re.DOTALL
)
_PROPERTIES = {
    "Lower": "a-z", "Upper": "A-Z", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9", "XDigit": "0-9a-fA-F", "Space": r"\s",
    "Blank": r" \t", "Punct": r"!-/:-@\[-`{-~", "ASCII": r"\x00-\x7f",
}  # fmt: skip
_ESCAPES = {"z": r"\Z", "h": r"[ \t]", "e": r"\x1b", "R": r"(?:\r\n|[\n\r])"}


@lru_cache(256)
def java_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """An expression of Java. Raises re.error, also for one that is too large."""
    parts, is_in_class = [], False
    for match in _TOKEN.finditer(text):
        whole = match[0]
        if match["literal"] is not None:
            parts.append(re.escape(match["literal"]))
        elif match["property"] in _PROPERTIES:
            parts.append(_characters(_PROPERTIES[match["property"]], is_negated=whole[1] == "P", is_in_class=is_in_class))
        elif match["back"]:
            parts.append(f"(?P={match['back']})")
        elif match["group"] and not is_in_class:
            parts.append(f"(?P<{match['group']}>")
        elif whole[0] == "\\" and whole[1:] in _ESCAPES and not is_in_class:
            parts.append(_ESCAPES[whole[1:]])
        else:
            is_in_class = whole == "[" or (is_in_class and whole != "]")
            parts.append(whole)
    try:
        return re.compile("".join(parts), re.ASCII | flags)
    except (OverflowError, RecursionError) as error:
        raise re.error(str(error)) from None


def _characters(found: str, *, is_negated: bool, is_in_class: bool) -> str:
    if not is_in_class:
        return f"[{'^' if is_negated else ''}{found}]"
    if is_negated:
        raise re.error("a class within a class cannot be a negated property")
    return found


def java_replacement(pattern: re.Pattern[str], text: str) -> str:
    """A replacement with `$1` and `${name}`, as Python's `Match.expand` takes it. Raises re.error for a group that there is not."""
    parts, at = [], 0
    while at < len(text):
        if text[at] == "\\":
            if at + 1 == len(text):
                raise re.error("character to be escaped is missing")
            parts.append(text[at + 1].replace("\\", r"\\"))
            at += 2
        elif text[at] == "$":
            group, at = _group(pattern, text, at + 1)
            parts.append(f"\\g<{group}>")
        else:
            parts.append(text[at].replace("\\", r"\\"))
            at += 1
    return "".join(parts)


def _group(pattern: re.Pattern[str], text: str, at: int) -> tuple[str, int]:
    """The group behind a `$`, and where the text goes on. A number has as many digits as there are groups for."""
    named = re.compile(r"\{([A-Za-z]\w*)\}").match(text, at)
    if named is not None:
        if named[1] not in pattern.groupindex:
            raise re.error(f"No group with name {{{named[1]}}}")
        return named[1], named.end()
    if not text[at : at + 1].isdecimal():
        raise re.error("Illegal group reference")
    end = at + 1
    while text[end : end + 1].isdecimal() and int(text[at : end + 1]) <= pattern.groups:
        end += 1
    if int(text[at:end]) > pattern.groups:
        raise re.error(f"No group {int(text[at:end])}")
    return text[at:end], end
