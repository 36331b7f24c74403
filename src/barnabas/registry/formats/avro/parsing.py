"""Parses the text of an Avro schema into a graph of types.

A text may use a name before its definition. So the parser resolves unknown names at the end. After that it checks the rules
that need the whole graph: branches of unions, repeated definitions and, if strict, defaults. Errors begin with the words of
Avro's own parser, because clients search for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from barnabas.limits import MAX_AVRO_DEPTH
from barnabas.registry.formats.avro.defaults import DefaultCheck, read_number
from barnabas.registry.formats.avro.equality import same_definition
from barnabas.registry.formats.avro.json_text import json_text, read_json
from barnabas.registry.formats.avro.printing import canonical_text
from barnabas.registry.formats.avro.types import (
    PLAIN,
    Collected,
    Enum,
    Field,
    Fixed,
    Named,
    Place,
    Primitive,
    Record,
    Type,
    Union,
    branch_name,
)
from barnabas.registry.formats.interface import InvalidSchema

_RESERVED = frozenset(("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"))
_RESERVED_OF_ENUM = _RESERVED | {"default"}
_RESERVED_OF_FIELD = frozenset(("default", "doc", "name", "order", "type", "aliases"))
_ORDERS = ("ascending", "descending", "ignore")
_WORD = re.compile(r"[^\W\d]\w*")
_ASCII_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN = 100  # characters of an invalid value in an error message
MAX_FIXED_SIZE = (1 << 31) - 1


class _Unresolved(NamedTuple):
    """A name that was unknown when it was read. `holder` gets the type at `position`; without a position, as its content or
    type."""

    name: str
    holder: Collected | Field | list[Type]
    position: int
    place: Place | None


class Parser:
    """Parses texts into one table of names.

    Args:
        strict: names have ASCII letters only, namespaces are checked too, and defaults must fit their types.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.names: dict[str, Record | Enum | Fixed] = {}
        self._strict = strict
        self._word = _ASCII_WORD if strict else _WORD
        self._unresolved: list[_Unresolved] = []
        self._unions: list[tuple[Union, Place | None]] = []
        self._repeated: list[tuple[Type, Type, Place | None]] = []
        self._defaults: list[tuple[Field, Place]] = []

    def parse(self, text: str) -> Type:
        """The root type. Raises InvalidSchema."""
        roots: list[Type] = []
        self._add(roots, read_json(text), "", None, 0)
        for unresolved in self._unresolved:
            self._resolve(unresolved)
        for union, place in self._unions:
            _check_branches(union, place)
        for first, second, place in self._repeated:
            if not same_definition(first, second):
                raise _wrong(f"Can't redefine: {branch_name(first)}", place)
        if self._strict:
            check = DefaultCheck()
            for field, place in self._defaults:
                if not check.fits(field.type, field.default):
                    raise _wrong(
                        f"Invalid default for field {field.name}: {_shown(field.default)} not a {_cut(canonical_text(field.type))}",
                        place,
                    )
        for pending in (self._unresolved, self._unions, self._repeated, self._defaults):
            pending.clear()
        return roots[0]

    def _add(self, holder: Collected | Field | list[Type], node: Any, namespace: str, place: Place | None, depth: int) -> None:
        """Parse `node` and put its type into `holder`, now or when its name is known."""
        word = node.get("type") if isinstance(node, dict) else node
        kind: Type | None
        if not isinstance(word, str) or (word in _PARSERS and word is not node):
            kind = self._parse(node, namespace, place, depth)
        elif word in PLAIN:
            kind = PLAIN[word] if word is node else _primitive(node, word)
        else:
            kind = self._find(word, namespace)
            if kind is None:
                full = word if "." in word or not namespace else f"{namespace}.{word}"
                self._unresolved.append(_Unresolved(full, holder, len(holder) if isinstance(holder, list) else 0, place))
                kind = PLAIN["null"]  # a placeholder until the name is resolved
        _put(holder, kind)

    def _parse(self, node: Any, namespace: str, place: Place | None, depth: int) -> Type:
        if depth > MAX_AVRO_DEPTH:
            raise InvalidSchema(f"The schema is nested deeper than {MAX_AVRO_DEPTH} levels")
        if isinstance(node, list):
            branches: list[Type] = []
            for index, branch in enumerate(node):
                self._add(branches, branch, namespace, Place(place, index), depth + 1)
            union = Union(branches)
            self._unions.append((union, place))
            return union
        if not isinstance(node, dict):
            raise _wrong(f"A type is a name, an object or an array, not {_shown(node)}", place)
        word = node.get("type")
        if not isinstance(word, str):
            raise _wrong(f"No type: {_shown(node)}", place)
        return _PARSERS[word](self, node, namespace, place, depth)

    def _find(self, name: str, namespace: str) -> Type | None:
        if "." not in name and namespace:
            found = self.names.get(f"{namespace}.{name}")
            if found is not None:
                return found
        return self.names.get(name)

    def _collected(self, node: dict[str, Any], namespace: str, place: Place | None, depth: int) -> Collected:
        word = node["type"]
        attribute = "items" if word == "array" else "values"
        if attribute not in node:
            raise _wrong(f"{word.capitalize()} has no {attribute} type: {_shown(node)}", place)
        kind = Collected(word, None, _properties(node, _RESERVED))
        self._add(kind, node[attribute], namespace, Place(place, attribute), depth + 1)
        return kind

    def _record(self, node: dict[str, Any], namespace: str, place: Place | None, depth: int) -> Type:
        name, space = self._name(node, namespace, place)
        nodes = node.get("fields")
        if not isinstance(nodes, list):
            raise _wrong(f"Record has no fields: {_shown(node)}", place)
        record = Record(
            "record",
            name,
            _text(node, "doc"),
            self._aliases_of_type(node, space, place),
            _properties(node, _RESERVED),
            is_error=node["type"] == "error",
            fields=[],
            by_name={},
        )
        defined = self._define(record, place)
        above = Place(place, "fields")
        for index, field_node in enumerate(nodes):
            here = Place(above, index)
            field = self._field(field_node, space, here, depth + 1)
            if field.name in record.by_name:
                raise _wrong(f"Duplicate field {field.name} in record {name}", here)
            record.by_name[field.name] = field
            record.fields.append(field)
        return defined

    def _field(self, node: Any, namespace: str, place: Place, depth: int) -> Field:
        name = node.get("name") if isinstance(node, dict) else None
        if not isinstance(name, str):
            raise _wrong(f"No field name: {_shown(node)}", place)
        self._check_word(name, place)
        if "type" not in node:
            raise _wrong(f"No field type: {_shown(node)}", place)
        order = node.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise _wrong(f"The order of field {name!r} is one of {', '.join(_ORDERS)}, not {_shown(order)}", place)
        field = Field(
            name,
            PLAIN["null"],
            _text(node, "doc"),
            node.get("default", msgspec.UNSET),
            order.lower(),
            _aliases(node, place),
            _properties(node, _RESERVED_OF_FIELD),
        )
        self._add(field, node["type"], namespace, Place(place, "type"), depth)
        if field.default is not msgspec.UNSET:
            if isinstance(field.default, str) and field.type.kind in ("float", "double"):
                try:
                    field.default = read_number(field.default)
                except ValueError:
                    raise _wrong(f"The default {_shown(field.default)} of field {name!r} is no number", place) from None
            self._defaults.append((field, place))
        return field

    def _enum(self, node: dict[str, Any], namespace: str, place: Place | None, _: int) -> Type:
        name, space = self._name(node, namespace, place)
        symbols = node.get("symbols")
        if not isinstance(symbols, list):
            raise _wrong(f"Enum has no symbols: {_shown(node)}", place)
        seen: set[str] = set()
        for symbol in symbols:
            if not isinstance(symbol, str):
                raise _wrong(f"A symbol of the enum {name!r} is a string, not {_shown(symbol)}", place)
            self._check_word(symbol, place)
            if symbol in seen:
                raise _wrong(f"Duplicate enum symbol: {symbol}", place)
            seen.add(symbol)
        default = _text(node, "default")
        if default is not None and default not in symbols:
            raise _wrong(f"The Enum Default: {default} is not in the enum symbol set: {_shown(symbols)}", place)
        aliases = self._aliases_of_type(node, space, place)
        properties = _properties(node, _RESERVED_OF_ENUM)
        return self._define(Enum("enum", name, _text(node, "doc"), aliases, properties, symbols=symbols, default=default), place)

    def _fixed(self, node: dict[str, Any], namespace: str, place: Place | None, _: int) -> Type:
        name, space = self._name(node, namespace, place)
        size = node.get("size")
        if type(size) is not int or not 0 <= size <= MAX_FIXED_SIZE:
            raise _wrong(f"Invalid or no size: {_shown(node)}", place)
        aliases = self._aliases_of_type(node, space, place)
        return self._define(Fixed("fixed", name, _text(node, "doc"), aliases, _properties(node, _RESERVED), size=size), place)

    def _define(self, kind: Record | Enum | Fixed, place: Place | None) -> Type:
        """Enter the name of `kind`. If it is known already, the first definition is the type; the second must equal it."""
        first = self.names.setdefault(kind.name, kind)
        if first is not kind:
            self._repeated.append((first, kind, place))
        return first

    def _name(self, node: dict[str, Any], namespace: str, place: Place | None) -> tuple[str, str]:
        """The full name of a type, and its namespace."""
        name = node.get("name")
        if not isinstance(name, str):
            raise _wrong(f"No name in schema: {_shown(node)}", place)
        space, dot, simple = name.rpartition(".")
        if not dot:
            given = _text(node, "namespace")
            space = namespace if given is None else given
        self._check_word(simple, place)
        if not space and simple in PLAIN:
            raise _wrong(f"{simple!r} is the name of a primitive type", place)
        if self._strict and space:
            for part in space.split("."):
                self._check_word(part, place)
        return (f"{space}.{simple}" if space else simple), space

    def _check_word(self, word: str, place: Place | None) -> None:
        if self._word.fullmatch(word) is None:
            initial = "initial character" if self._word.fullmatch(word[:1]) is None else "character in"
            raise _wrong(f"Illegal {initial}: {_cut(word)}" if word else "Empty name", place)

    def _aliases_of_type(self, node: dict[str, Any], space: str, place: Place | None) -> list[str]:
        aliases = _aliases(node, place)
        for alias in aliases:
            self._check_word(alias.rpartition(".")[2], place)
        full = (alias.removeprefix(".") if "." in alias or not space else f"{space}.{alias}" for alias in aliases)
        return list(dict.fromkeys(full))

    def _resolve(self, unresolved: _Unresolved) -> None:
        kind = self.names.get(unresolved.name)
        if kind is None:
            raise _wrong(f"Undefined schema: {unresolved.name}", unresolved.place)
        if isinstance(unresolved.holder, list):
            unresolved.holder[unresolved.position] = kind
        else:
            _put(unresolved.holder, kind)


_PARSERS = {
    "record": Parser._record,
    "error": Parser._record,
    "enum": Parser._enum,
    "fixed": Parser._fixed,
    "array": Parser._collected,
    "map": Parser._collected,
}


def parse_with_references(text: str, references: Mapping[str, str], *, strict: bool) -> tuple[Type, list[str]]:
    """The root type of `text`, and the full names of the root types of its references. Raises InvalidSchema."""
    parser = Parser(strict=strict)
    known: list[str] = []
    for name, reference in references.items():
        try:
            root = parser.parse(reference)
        except InvalidSchema as error:
            raise InvalidSchema(f"In the reference {name!r}: {error}") from None
        if isinstance(root, Named):
            known.append(root.name)
    return parser.parse(text), known


def _primitive(node: dict[str, Any], name: str) -> Primitive:
    properties = _properties(node, _RESERVED)
    return PLAIN[name] if properties is None else Primitive(name, properties)


def _put(holder: Collected | Field | list[Type], kind: Type) -> None:
    if isinstance(holder, Field):
        holder.type = kind
    elif isinstance(holder, Collected):
        holder.content = kind
    else:
        holder.append(kind)


def _wrong(what: str, place: Place | None) -> InvalidSchema:
    return InvalidSchema(f"{what}, at {place or '/'}")


def _shown(value: Any) -> str:
    return _cut(json_text(value))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _text(node: dict[str, Any], attribute: str) -> str | None:
    value = node.get(attribute)
    return value if isinstance(value, str) else None


def _properties(node: dict[str, Any], reserved: frozenset[str]) -> dict[str, Any] | None:
    if node.keys() <= reserved:
        return None
    return {name: value for name, value in node.items() if name not in reserved}


def _aliases(node: dict[str, Any], place: Place | None) -> list[str]:
    aliases = node.get("aliases")
    if aliases is None and "aliases" not in node:
        return []
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise _wrong("'aliases' is an array of strings", place)
    return list(dict.fromkeys(aliases))


def _check_branches(union: Union, place: Place | None) -> None:
    seen: set[str] = set()
    for index, branch in enumerate(union.branches):
        if isinstance(branch, Union):
            raise _wrong("Nested union", Place(place, index))
        name = branch_name(branch)
        if name in seen:
            raise _wrong(f"Duplicate in union:{name}", Place(place, index))
        seen.add(name)
