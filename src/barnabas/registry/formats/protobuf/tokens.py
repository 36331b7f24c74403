"""Splits the text of a `.proto` file into tokens, and stores the position of the reader."""

from __future__ import annotations

import re

from barnabas.limits import MAX_PROTOBUF_CHARACTERS, MAX_PROTOBUF_DEPTH, MAX_PROTOBUF_NAMES
from barnabas.registry.formats.interface import InvalidSchema

# Each quantifier is possessive or bounded by its first character, so the time is linear in the length of the text.
_TOKEN = re.compile(
    r"""(?:\s++|//[^\n]*+|/\*.*?\*/)*+"""
    r"""(\.?[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)*+|\.?[0-9](?:[eE][+-]|[\w.])*+|"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|.|\Z)""",
    re.DOTALL | re.ASCII,
)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_FULL_NAME = re.compile(r"\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
_INTEGER = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")
_ESCAPE = re.compile(r"\\(?:[xX]([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_MAX_DIGITS = 20  # digits of a number; a longer number is out of any range


class Tokens:
    """The tokens of a text, to read one after the other. The end is an empty token."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PROTOBUF_CHARACTERS:
            raise InvalidSchema(f"the schema has {len(text)} characters; at most {MAX_PROTOBUF_CHARACTERS} are allowed")
        self._text = text
        self._tokens = _TOKEN.findall(text)
        self._at = 0
        self._depth = 0
        self._names = 0

    @property
    def peek(self) -> str:
        """The next token."""
        return self._tokens[self._at]  # type: ignore[no-any-return]  # re returns lists of Any

    def after(self) -> str:
        """The token after the next one."""
        return "" if self._at + 1 >= len(self._tokens) else self._tokens[self._at + 1]

    def take(self) -> str:
        """Read a token."""
        token: str = self._tokens[self._at]
        if token:
            self._at += 1
        return token

    def taken(self, token: str) -> bool:
        """Read `token` if it is the next one."""
        if self._tokens[self._at] != token:
            return False
        self._at += 1
        return True

    def expect(self, token: str) -> None:
        """Read `token`; raises the error of another token."""
        if self._tokens[self._at] != token:
            raise self.error(f"expected '{token}' but found {self._found()}")
        self._at += 1

    def name(self) -> str:
        """Read a simple name, and count it."""
        token = self.take()
        if not _NAME.fullmatch(token):
            raise self.error(f"expected a name but found {_shown(token)}", back=1)
        self._names += 1
        if self._names > MAX_PROTOBUF_NAMES:
            raise InvalidSchema(f"the schema has more than {MAX_PROTOBUF_NAMES} names")
        return token

    def full_name(self) -> str:
        """Read a name with dots; it may begin with a dot."""
        token = self.take()
        if not _FULL_NAME.fullmatch(token):
            raise self.error(f"expected a name but found {_shown(token)}", back=1)
        return token

    def integer(self) -> int:
        """Read a whole number; it may have a sign."""
        negative = self.taken("-")
        token = self.take()
        if not _INTEGER.fullmatch(token) or len(token) > _MAX_DIGITS:
            raise self.error(f"expected a number but found {_shown(token)}", back=1)
        number = _integer(token)
        if number is None:
            raise self.error(f"expected a number but found {_shown(token)}", back=1)
        return -number if negative else number

    def string(self) -> str:
        """Read a string literal, or several adjacent ones."""
        parts = []
        while self.peek[:1] in ("'", '"') and len(self.peek) > 1:
            parts.append(_unescape(self.take()[1:-1]))
        if not parts:
            raise self.error(f"expected a string but found {self._found()}")
        return "".join(parts)

    def descend(self) -> None:
        """Enter a level of braces or brackets; raises InvalidSchema if they are too deep."""
        self._depth += 1
        if self._depth > MAX_PROTOBUF_DEPTH:
            raise self.error(f"the schema is nested deeper than {MAX_PROTOBUF_DEPTH} levels")

    def ascend(self) -> None:
        """Leave a level."""
        self._depth -= 1

    def error(self, what: str, back: int = 0) -> InvalidSchema:
        """The error at the next token, or `back` tokens before it."""
        index = max(self._at - back, 0)
        offset = len(self._text)
        for count, match in enumerate(_TOKEN.finditer(self._text)):
            if count == index:
                offset = match.start(1)
                break
        line = self._text.count("\n", 0, offset) + 1
        column = offset - self._text.rfind("\n", 0, offset)
        return InvalidSchema(f"Syntax error at {line}:{column}: {what}")

    def _found(self) -> str:
        return _shown(self.peek)


def _integer(token: str) -> int | None:
    if token[:2] in ("0x", "0X"):
        return int(token, 16)
    if token[0] == "0" and len(token) > 1:
        return int(token, 8) if token.strip("01234567") == "" else None
    return int(token)


def _shown(token: str) -> str:
    return f"'{token[:60]}'" if token else "the end of the text"


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(match: re.Match[str]) -> str:
    hexadecimal, octal, short, long, letter = match.groups()
    if letter is not None:
        return _ESCAPED.get(letter, letter)
    if octal is not None:
        return chr(int(octal, 8) & 0xFF)
    number = int(hexadecimal or short or long, 16)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
