"""The syntax of JSON, for one text at a time: the values in it, each with its own text."""

from __future__ import annotations

import json
import re
from typing import Any

from barnabas import limits

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])', re.DOTALL)
_SPACE = re.compile(r"[ \t\n\r]*")


class Misfit(ValueError):
    """A record that does not fit; the text is the reason."""


class Number(str):
    """The text of a number."""

    __slots__ = ()


def _no_constant(name: str) -> None:
    raise Misfit(f"it is no JSON: {name}")


_DECODER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_no_constant)
_scan = _DECODER.raw_decode


def parse(payload: bytes) -> tuple[Any, str]:
    """The JSON value of a payload, with numbers as `Number`s, and its text without spaces around it. Raises Misfit."""
    try:
        text = payload.decode().strip(" \t\n\r")
        check_depth(text)
        return _DECODER.decode(text), text
    except UnicodeDecodeError as error:
        raise Misfit(f"it is no JSON: byte {error.start} is no UTF-8") from None
    except json.JSONDecodeError as error:
        raise Misfit(f"it is no JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise Misfit(f"it is nested deeper than {limits.MAX_VALUE_DEPTH} objects and arrays") from None


def check_depth(text: str) -> None:
    """Raises Misfit for more than `MAX_VALUE_DEPTH` objects and arrays inside of each other."""
    if text.count("[") + text.count("{") <= limits.MAX_VALUE_DEPTH:
        return
    depth = 0
    for match in _BRACKETS.finditer(text):
        depth += bool(match[1]) - bool(match[2])
        if depth > limits.MAX_VALUE_DEPTH:
            raise Misfit(f"it is nested deeper than {limits.MAX_VALUE_DEPTH} objects and arrays")


def members(text: str) -> dict[str, tuple[Any, str]]:
    """The values of an object with their texts; `text` is valid JSON."""
    found: dict[str, tuple[Any, str]] = {}
    at = _after_space(text, 1)
    while text[at] != "}":
        name, at = _scan(text, at)
        begin = _after_space(text, _after_space(text, at) + 1)
        value, end = _scan(text, begin)
        found[name] = value, text[begin:end]
        at = _after_comma(text, end)
    return found


def items(text: str) -> list[tuple[Any, str]]:
    """The values of an array with their texts; `text` is valid JSON."""
    found: list[tuple[Any, str]] = []
    at = _after_space(text, 1)
    while text[at] != "]":
        value, end = _scan(text, at)
        found.append((value, text[at:end]))
        at = _after_comma(text, end)
    return found


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _after_comma(text: str, at: int) -> int:
    at = _after_space(text, at)
    return _after_space(text, at + 1) if text[at] == "," else at
