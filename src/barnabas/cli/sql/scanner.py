"""Cuts input into statements and commands.

Owns where a statement ends: at a semicolon outside of quotes, comments and dollar quotes, as the engine reads them. A backslash there
begins a command, which reaches to the end of its line.

Rules
  1. A text that is not finished stays pending, and is scanned again from its last open token, not from its start.
  2. The text of a statement begins with its first word, so that positions in it count from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from barnabas import limits


class Kind(Enum):
    """The kind of a token."""

    SPACE = "space"
    COMMENT = "comment"
    STRING = "string"
    NAME = "name"  # in quotes
    WORD = "word"
    NUMBER = "number"
    VARIABLE = "variable"
    SEMICOLON = "semicolon"
    COMMAND = "command"
    SYMBOL = "symbol"


class Token(NamedTuple):
    """A part of a text, [start, end). It is open if its closing quote is missing; `mark` is the quote's first character."""

    kind: Kind
    start: int
    end: int
    is_open: bool = False
    mark: str = ""


class Statement(NamedTuple):
    """A statement without its semicolon, and the line of the input that it begins on, from 1 on."""

    text: str
    line: int


class Command(NamedTuple):
    """A command: its name without the backslash, and the rest of its line."""

    name: str
    rest: str
    line: int


Item = Statement | Command


class TooLong(ValueError):
    """A statement with more characters than the engine takes."""


_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<comment>--[^\n]*)
    |(?P<block>/\*)
    |(?P<string>[eE]'(?:[^'\\]+|\\.|'')*+'|'(?:[^']+|'')*+')
    |(?P<openstring>[eE]'(?:[^'\\]+|\\.|'')*+|'(?:[^']+|'')*+)
    |(?P<name>"(?:[^"]+|"")*+"|`(?:[^`]+|``)*+`)
    |(?P<openname>"(?:[^"]+|"")*+|`(?:[^`]+|``)*+)
    |(?P<dollar>\$(?:[^\W\d]\w*)?\$)
    |(?P<word>[^\W\d][\w$]*)
    |(?P<number>\d[\w.]*)
    |(?P<cast>::)
    |(?P<variable>:(?:[^\W\d]\w*|'[^\W\d]\w*'|"[^\W\d]\w*"))
    |(?P<semicolon>;)
    |(?P<command>\\[^\n]*)
    |(?P<symbol>.)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_COMMAND = re.compile(r"\\([A-Za-z_]+\+?|[?!])?(.*)", re.DOTALL)
_KINDS = {each.value: each for each in Kind}


def tokens(text: str, start: int = 0) -> Iterator[Token]:
    """The tokens from a place on, spaces and comments included."""
    at = start
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None  # `symbol` takes every character
        assert found.lastgroup is not None
        token = _token(text, found.lastgroup, at, found.end())
        yield token
        at = token.end


def _token(text: str, group: str, start: int, end: int) -> Token:
    match group:
        case "openstring" | "openname":
            return Token(_KINDS[group.removeprefix("open")], start, len(text), True, text[start + (text[start] in "eE")])
        case "block":
            closed = _comment_end(text, end)
            return Token(Kind.COMMENT, start, closed or len(text), closed is None, "*")
        case "dollar":
            closing = text.find(text[start:end], end)
            return Token(Kind.STRING, start, len(text) if closing < 0 else closing + end - start, closing < 0, "$")
        case "cast":
            return Token(Kind.SYMBOL, start, end)
    return Token(_KINDS[group], start, end)


def _comment_end(text: str, at: int) -> int | None:
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge[0] == "/*" else -1
        if not depth:
            return edge.end()
    return None


class Splitter:
    """Cuts input that comes line by line."""

    def __init__(self) -> None:
        self._text, self._scanned = "", 0
        self._line = 1  # of the first character of _text
        self._first: int | None = None  # where the first word of the pending statement begins
        self._mark = ""

    @property
    def pending(self) -> str:
        """The statement that has not ended, from its first word on."""
        return "" if self._first is None else self._text[self._first :].rstrip()

    @property
    def mark(self) -> str:
        """The place of the input's end: within a quote its first character, `*` of a comment, `-` of a statement, `=` of nothing."""
        return self._mark or ("=" if self._first is None else "-")

    def feed(self, text: str) -> Iterator[Item]:
        """The statements and commands that whole lines of input complete. Raises TooLong."""
        self._text += text
        while (item := self._next()) is not None:
            yield item
        if len(self._text) > limits.MAX_SQL_CHARACTERS:
            count = len(self._text)
            self.reset()
            raise TooLong(f"a statement of {count} characters; allowed are {limits.MAX_SQL_CHARACTERS}")

    def _next(self) -> Item | None:
        for token in self._tokens():
            if token.is_open:
                self._mark = token.mark
                if self._first is None and token.kind is not Kind.COMMENT:
                    self._first = token.start
                self._scanned = token.start
                return None
            self._mark, self._scanned = "", token.end
            if token.kind is Kind.COMMAND:
                return self._command(token)
            if token.kind is Kind.SEMICOLON:
                return self._statement(token)
            if self._first is None and token.kind not in (Kind.SPACE, Kind.COMMENT):
                self._first = token.start
        if self._first is None:
            self._drop(len(self._text))
        return None

    def _tokens(self) -> Iterator[Token]:
        """The tokens from the scanned place on; a semicolon after nothing is left out."""
        for token in tokens(self._text, self._scanned):
            if token.kind is not Kind.SEMICOLON or self._first is not None:
                yield token

    def _statement(self, end: Token) -> Statement:
        assert self._first is not None
        made = Statement(self._text[self._first : end.start].rstrip(), self._line + self._text.count("\n", 0, self._first))
        self._drop(end.end)
        return made

    def _command(self, token: Token) -> Command:
        found = _COMMAND.fullmatch(self._text[token.start : token.end])
        assert found is not None
        line = self._line + self._text.count("\n", 0, token.start)
        self._text = self._text[: token.start] + self._text[token.end :]
        self._scanned = token.start
        return Command(found[1] or "", found[2].strip(), line)

    def _drop(self, end: int) -> None:
        self._line += self._text.count("\n", 0, end)
        self._text = self._text[end:]
        self._scanned, self._first, self._mark = 0, None, ""

    def take(self) -> Statement | None:
        """The pending statement, as if it had ended."""
        if self._first is None:
            self._drop(len(self._text))
            return None
        made = Statement(self.pending, self._line + self._text.count("\n", 0, self._first))
        self._drop(len(self._text))
        return made

    def reset(self) -> None:
        """Forget what is pending."""
        self._drop(len(self._text))

    def would_complete(self, text: str) -> bool:
        """Whether more input is not needed after this text: it ends in a semicolon, is a command, or is empty."""
        other = Splitter()
        other._text, other._scanned, other._first, other._mark = self._text, self._scanned, self._first, self._mark
        if not text.strip():
            return True
        try:
            items = list(other.feed(text + "\n"))
        except TooLong:
            return True
        return other.mark == "=" or (bool(items) and isinstance(items[-1], Command))
