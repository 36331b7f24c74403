"""Parses the text of a `.proto` file to its syntax tree, by recursive descent; `Tokens` limits the depth and the number of
tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from barnabas.registry.formats.protobuf.options import bracketed_options, option_statement
from barnabas.registry.formats.protobuf.tokens import Tokens
from barnabas.registry.formats.protobuf.tree import (
    MAX_ENUM_NUMBER,
    MAX_FIELD_NUMBER,
    SCALARS,
    Enum,
    EnumValue,
    Extend,
    Field,
    File,
    Group,
    Import,
    Message,
    OneOf,
    Range,
    Ranges,
    Rpc,
    Service,
)

_LABELS = frozenset(("optional", "required", "repeated"))
_EDITIONS = frozenset(("2023", "2024"))
_MAP_KEYS = SCALARS - {"double", "float", "bytes"}

Parts = defaultdict[str, list[Any]]  # attribute name of the node -> parts of the body


def parse_file(text: str) -> File:
    """The tree of a text. Raises InvalidSchema with line and column."""
    tokens = Tokens(text)
    syntax = _syntax(tokens)
    package = ""
    parts: Parts = defaultdict(list)
    while word := tokens.peek:
        if word == "package":
            if package:
                raise tokens.error("the package is named twice")
            tokens.take()
            package = tokens.full_name()
            tokens.expect(";")
        elif word == "import":
            parts["imports"].append(_import(tokens))
        elif word == "service":
            parts["services"].append(_service(tokens))
        elif not tokens.taken(";") and not _declaration(tokens, word, parts):
            raise tokens.error(f"unexpected '{word[:60]}'")
    return File(syntax, package, **_tuples(parts))


def _tuples(parts: Parts) -> dict[str, Any]:
    return {name: tuple(values) for name, values in parts.items()}


def _syntax(tokens: Tokens) -> str:
    word = tokens.peek
    if word not in ("syntax", "edition") or tokens.after() != "=":
        return ""
    tokens.take()
    tokens.expect("=")
    value = tokens.string()
    if value not in (("proto2", "proto3") if word == "syntax" else _EDITIONS):
        raise tokens.error(f"the {word} '{value[:60]}' is not known", back=1)
    tokens.expect(";")
    return value


def _import(tokens: Tokens) -> Import:
    tokens.take()
    kind = tokens.take() if tokens.peek in ("public", "weak") else ""
    path = tokens.string()
    tokens.expect(";")
    return Import(path, kind)


def _declaration(tokens: Tokens, word: str, parts: Parts) -> bool:
    """Read a declaration that a file or a message may contain; False if the next token begins something else."""
    following = tokens.after()
    if word == "message" and following != "=":
        tokens.take()
        parts["messages"].append(_message(tokens, tokens.name()))
    elif word == "enum":
        parts["enums"].append(_enum(tokens))
    elif word == "option":
        parts["options"].append(option_statement(tokens))
    elif word == "extend":
        tokens.take()
        name = tokens.full_name()
        body: Parts = defaultdict(list)
        tokens.expect("{")
        while not tokens.taken("}"):
            if not tokens.taken(";"):
                _field_or_group(tokens, body)
        if body["groups"]:
            raise tokens.error("a group cannot stand in an extension here")
        parts["extends"].append(Extend(name, tuple(body["fields"])))
    else:
        return False
    return True


_STATEMENTS = frozenset(("message", "enum", "option", "extend", "oneof", "reserved", "extensions"))


def _message(tokens: Tokens, name: str) -> Message:
    tokens.expect("{")
    tokens.descend()
    parts: Parts = defaultdict(list)
    while not tokens.taken("}"):
        word = tokens.peek
        if word not in _STATEMENTS:
            if not tokens.taken(";"):
                _field_or_group(tokens, parts)
        elif word == "oneof":
            parts["oneofs"].append(_oneof(tokens))
        elif word in ("reserved", "extensions"):
            parts[word].append(_ranges(tokens, MAX_FIELD_NUMBER))
        else:
            _declaration(tokens, word, parts)
    tokens.ascend()
    return Message(name, **_tuples(parts))


def _field_or_group(tokens: Tokens, parts: Parts, *, labelled: bool = True) -> None:
    label = tokens.take() if labelled and tokens.peek in _LABELS else ""
    if tokens.peek == "group" and tokens.after()[:1].isupper():
        tokens.take()
        name = tokens.name()
        tokens.expect("=")
        number = tokens.integer()
        options = bracketed_options(tokens)
        parts["groups"].append(Group(label, number, _message(tokens, name), options))
        return
    kind = tokens.full_name()
    key = ""
    if kind == "map" and tokens.taken("<"):
        if label or not labelled:
            raise tokens.error("a map has no label and stands in no oneof")
        key = tokens.full_name()
        if key not in _MAP_KEYS:
            raise tokens.error(f"'{key[:60]}' cannot be the key of a map", back=1)
        tokens.expect(",")
        kind = tokens.full_name()
        tokens.expect(">")
    name = tokens.name()
    tokens.expect("=")
    number = tokens.integer()
    options = bracketed_options(tokens)
    tokens.expect(";")
    parts["fields"].append(Field(label, kind, name, number, options, key))


def _block(tokens: Tokens, take: Callable[[Parts], None]) -> tuple[str, Parts]:
    """Read a block with options, and with statements that `take` reads; returns its name and its parts."""
    tokens.take()
    name = tokens.name()
    parts: Parts = defaultdict(list)
    tokens.expect("{")
    while not tokens.taken("}"):
        if tokens.peek == "option":
            parts["options"].append(option_statement(tokens))
        elif not tokens.taken(";"):
            take(parts)
    return name, parts


def _oneof(tokens: Tokens) -> OneOf:
    name, parts = _block(tokens, lambda parts: _field_or_group(tokens, parts, labelled=False))
    return OneOf(name, **({"fields": ()} | _tuples(parts)))


def _enum(tokens: Tokens) -> Enum:
    tokens.take()
    name = tokens.name()
    parts: Parts = defaultdict(list)
    tokens.expect("{")
    while not tokens.taken("}"):
        word = tokens.peek
        if word == "option" and tokens.after() != "=":
            parts["options"].append(option_statement(tokens))
        elif word == "reserved" and tokens.after() != "=":
            parts["reserved"].append(_ranges(tokens, MAX_ENUM_NUMBER))
        elif not tokens.taken(";"):
            value = tokens.name()
            tokens.expect("=")
            number = tokens.integer()
            parts["values"].append(EnumValue(value, number, bracketed_options(tokens)))
            tokens.expect(";")
    return Enum(name, **_tuples(parts))


def _ranges(tokens: Tokens, maximum: int) -> Ranges:
    tokens.take()
    values: list[int | Range | str] = []
    while True:
        token = tokens.peek
        if token[:1] in ("'", '"'):
            values.append(tokens.string())
        elif token[:1].isalpha() or token[:1] == "_":
            values.append(tokens.name())
        else:
            first = tokens.integer()
            if tokens.taken("to"):
                last = maximum if tokens.taken("max") else tokens.integer()
                values.append(Range(first, last))
            else:
                values.append(first)
        if not tokens.taken(","):
            break
    bracketed_options(tokens)  # options of extension ranges; Confluent's normalised form drops them
    tokens.expect(";")
    return Ranges(tuple(values))


def _service(tokens: Tokens) -> Service:
    name, parts = _block(tokens, lambda parts: parts["rpcs"].append(_rpc(tokens)))
    return Service(name, **_tuples(parts))


def _rpc(tokens: Tokens) -> Rpc:
    tokens.expect("rpc")
    name = tokens.name()
    request_streams, request = _rpc_type(tokens)
    tokens.expect("returns")
    response_streams, response = _rpc_type(tokens)
    options = []
    if tokens.taken("{"):
        while not tokens.taken("}"):
            if not tokens.taken(";"):
                options.append(option_statement(tokens))
        tokens.taken(";")
    else:
        tokens.expect(";")
    return Rpc(name, request, response, request_streams, response_streams, tuple(options))


def _rpc_type(tokens: Tokens) -> tuple[bool, str]:
    tokens.expect("(")
    streams = tokens.peek == "stream" and tokens.after() != ")"
    if streams:
        tokens.take()
    name = tokens.full_name()
    tokens.expect(")")
    return streams, name
