"""Parses options and their values."""

from __future__ import annotations

import re

from barnabas.registry.formats.protobuf.tokens import Tokens
from barnabas.registry.formats.protobuf.tree import Aggregate, Option, Text, Value, ValueList, Word

_WORD = re.compile(r"[+-]?(?:[A-Za-z_][\w.]*|\.?[0-9][\w.+-]*)", re.ASCII)
_CLOSING = {"{": "}", "<": ">"}


def option_statement(tokens: Tokens) -> Option:
    """Read `option name = value;`."""
    tokens.expect("option")
    option = _option(tokens)
    tokens.expect(";")
    return option


def bracketed_options(tokens: Tokens) -> tuple[Option, ...]:
    """Read `[name = value, …]` if it follows."""
    if not tokens.taken("["):
        return ()
    options = [_option(tokens)]
    while tokens.taken(","):
        options.append(_option(tokens))
    tokens.expect("]")
    return tuple(options)


def _option(tokens: Tokens) -> Option:
    custom = tokens.taken("(")
    if custom:
        name, path = tokens.full_name(), ""
        tokens.expect(")")
    else:
        name, dot, rest = tokens.full_name().partition(".")
        path = dot + rest
    while not tokens.taken("="):
        if tokens.taken("."):
            tokens.expect("(")
            path += f".({tokens.full_name()})"
            tokens.expect(")")
        else:
            part = tokens.full_name()
            if part[0] != ".":
                raise tokens.error("expected '='", back=1)
            path += part
    return Option(name, _value(tokens), custom, path)


def _value(tokens: Tokens) -> Value:
    token = tokens.peek
    if token[:1] in ("'", '"'):
        return Text(tokens.string())
    if token in _CLOSING:
        return _aggregate(tokens)
    if token == "[":
        return _list(tokens)
    sign = "-" if tokens.taken("-") else ""
    word = tokens.take()
    if not _WORD.fullmatch(word):
        raise tokens.error(f"expected a value but found '{word[:60]}'", back=1)
    return Word(sign + word)


def _list(tokens: Tokens) -> ValueList:
    tokens.take()
    tokens.descend()
    items = []
    while not tokens.taken("]"):
        items.append(_value(tokens))
        if not tokens.taken(","):
            tokens.expect("]")
            break
    tokens.ascend()
    return ValueList(tuple(items))


def _aggregate(tokens: Tokens) -> Aggregate:
    closing = _CLOSING[tokens.take()]
    tokens.descend()
    entries: dict[str, list[Value]] = {}
    while not tokens.taken(closing):
        key = _key(tokens)
        if tokens.taken(":"):
            pass
        elif tokens.peek not in _CLOSING:
            raise tokens.error("expected ':'")
        entries.setdefault(key, []).append(_value(tokens))
        if not tokens.taken(","):
            tokens.taken(";")
    tokens.ascend()
    return Aggregate(tuple((key, _joined(values)) for key, values in entries.items()))


def _joined(values: list[Value]) -> Value:
    """The value of a field; if the field is given several times, a list."""
    if len(values) == 1:
        return values[0]
    items: list[Value] = []
    for value in values:
        items.extend(value.items if isinstance(value, ValueList) else (value,))
    return ValueList(tuple(items))


def _key(tokens: Tokens) -> str:
    if not tokens.taken("["):
        return tokens.name()
    name = tokens.full_name()
    if tokens.taken("/"):
        name += "/" + tokens.full_name()
    tokens.expect("]")
    return f"[{name}]"
