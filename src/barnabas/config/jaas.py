"""Login contexts in Kafka's JAAS syntax: `org.x.LoginModule required username="alice" password="secret";`, one or several.

Owns the parsing of the text. The modules that use the options document their meaning.

Rules
  1. If Kafka refuses a text, this module refuses it with Kafka's sentence. No error contains the value of an option, since it
     may be a secret.
  2. Values are in double or single quotes, with the escapes of Java. A word of letters, digits and `._-$` needs no quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/
    |(?P<word>[\w.$\-]+)
    |"(?P<double>(?:[^"\\\n]|\\.)*)"
    |'(?P<single>(?:[^'\\\n]|\\.)*)'
    |(?P<sign>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_NAMED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasError(ValueError):
    """The text is not a list of login contexts; the error's text contains no secret."""


class LoginContext(NamedTuple):
    """One login module with its options."""

    module: str
    flag: str
    options: Mapping[str, str]

    @property
    def name(self) -> str:
        """The class without its package."""
        return self.module.rpartition(".")[2]

    def __repr__(self) -> str:
        return f"LoginContext({self.module}, options={sorted(self.options)})"


def parse(text: str) -> tuple[LoginContext, ...]:
    """The login contexts of `text`; raises JaasError."""
    tokens = _tokens(text)
    contexts = []
    for kind, module in tokens:
        if kind == "sign":
            raise JaasError("Login module not specified in JAAS config")
        contexts.append(_context(module, tokens))
    if not contexts:
        raise JaasError("Login module not specified in JAAS config")
    return tuple(contexts)


def quote(value: str) -> str:
    """A value with quotes and escapes for the text."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'


def _context(module: str, tokens: Iterator[tuple[str, str]]) -> LoginContext:
    kind, flag = next(tokens, ("end", ""))
    if kind == "end":
        raise JaasError("Login module control flag not specified in JAAS config")
    if flag.lower() not in FLAGS:
        raise JaasError("Invalid login module control flag in JAAS config")
    options: dict[str, str] = {}
    for kind, key in tokens:
        if (kind, key) == ("sign", ";"):
            return LoginContext(module, flag.lower(), options)
        sign, (value_kind, value) = next(tokens, ("end", "")), next(tokens, ("end", ""))
        if kind == "sign" or sign != ("sign", "=") or value_kind in {"sign", "end"}:
            raise JaasError(f"Value not specified for key '{key if kind == 'word' else ''}' in JAAS config")
        options[key] = value
    raise JaasError("JAAS config entry not terminated by semi-colon")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise JaasError(f"JAAS config cannot be read at character {position + 1}")
        position = found.end()
        kind = found.lastgroup
        if kind in {"double", "single"}:
            yield "quoted", _ESCAPE.sub(_unescape, found[kind])
        elif kind is not None:
            yield kind, found[kind]


def _unescape(found: re.Match[str]) -> str:
    text = found[1]
    return chr(int(text, 8)) if text[0] in "01234567" else _NAMED.get(text, text)
