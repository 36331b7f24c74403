"""Compares two Protobuf schemas by Confluent's rules: finds the changes, and decides which of them a reader cannot read.

Messages of the schema itself are matched by name, and each is compared once. If a field's message is imported in one of the
schemas, the two messages of the field are compared too. Such comparisons form a graph that may have cycles. So the code uses a
work list instead of recursion, and compares each pair of messages once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from barnabas.registry.formats.protobuf.names import Declared, Names
from barnabas.registry.formats.protobuf.tree import Enum, Field, File, Message, OneOf

Key = TypeVar("Key", str, int)
Item = TypeVar("Item")
_KINDS = {
    "int32": "number",
    "int64": "number",
    "uint32": "number",
    "uint64": "number",
    "bool": "number",
    "sint32": "signed",
    "sint64": "signed",
    "string": "text",
    "bytes": "text",
    "fixed32": "fixed32",
    "sfixed32": "fixed32",
    "fixed64": "fixed64",
    "sfixed64": "fixed64",
    "float": "float",
    "double": "double",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One change, with Confluent's name of its rule, at a path such as `#/Order/3`."""

    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class _Imported:
    """The pair of full names of two messages that must be compared because of a field."""

    pair: tuple[str, str]
    path: str


@dataclass(slots=True)
class _Place:
    """The current place of the comparison: the path, and the scopes for names in the two schemas."""

    path: str
    old_scope: str
    new_scope: str
    found: list[Difference | _Imported] = field(default_factory=list)

    def inside(self, name: str) -> _Place:
        """The place of a nested type; its changes go to the same list."""
        return _Place(self._below(name), _join(self.old_scope, name), _join(self.new_scope, name), self.found)

    def at(self, part: str | int) -> _Place:
        """The place of a field, oneof or value."""
        return _Place(self._below(part), self.old_scope, self.new_scope, self.found)

    def add(self, kind: str) -> None:
        """Add a change at this place."""
        self.found.append(Difference(kind, self.path))

    def _below(self, part: str | int) -> str:
        return f"{self.path}{'' if self.path.endswith('/') else '/'}{part}"


def _join(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def differences(old: File, old_names: Names, new: File, new_names: Names, compatible: frozenset[str]) -> list[Difference]:
    """All changes from `old` to `new`. `compatible` has the changes after which an imported message counts as the same type."""
    return _Comparison(old_names, new_names).run(old, new, compatible)


class _Comparison:
    def __init__(self, old: Names, new: Names) -> None:
        self._old = old
        self._new = new
        self._pairs: dict[tuple[str, str], list[Difference | _Imported]] = {}

    def run(self, old: File, new: File, compatible: frozenset[str]) -> list[Difference]:
        root = _Place("#/", old.package, new.package)
        if old.package != new.package:
            root.add("PACKAGE_CHANGED")
        self._types(root, old, new)
        waiting = list(_imported(root.found))
        while waiting:
            pair = waiting.pop()
            if pair not in self._pairs:
                self._pairs[pair] = self._imported_messages(pair)
                waiting += _imported(self._pairs[pair])
        return self._report(root.found, self._incompatible_pairs(compatible))

    def _imported_messages(self, pair: tuple[str, str]) -> list[Difference | _Imported]:
        old, new = self._old.types[pair[0]], self._new.types[pair[1]]
        if old.builtin and new.builtin:
            return []
        place = _Place("#/" + _local(pair[0], old).replace(".", "/"), *pair)
        if isinstance(old.node, Message) and isinstance(new.node, Message):
            self._messages(place, old.node, new.node)
        return place.found

    def _incompatible_pairs(self, compatible: frozenset[str]) -> set[tuple[str, str]]:
        users: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for pair, found in self._pairs.items():
            for needed in _imported(found):
                users.setdefault(needed, []).append(pair)
        waiting = [
            pair
            for pair, found in self._pairs.items()
            if any(isinstance(one, Difference) and one.kind not in compatible for one in found)
        ]
        bad: set[tuple[str, str]] = set()
        while waiting:
            pair = waiting.pop()
            if pair not in bad:
                bad.add(pair)
                waiting += users.get(pair, ())
        return bad

    def _report(self, found: list[Difference | _Imported], bad: set[tuple[str, str]]) -> list[Difference]:
        reported: list[Difference] = []
        told: set[tuple[str, str]] = set()
        stack: list[Iterator[Difference | _Imported]] = [iter(found)]
        while stack:
            one = next(stack[-1], None)
            if one is None:
                stack.pop()
            elif isinstance(one, Difference):
                reported.append(one)
            else:
                changed = [Difference("FIELD_NAMED_TYPE_CHANGED", one.path)] if one.pair in bad else []
                stack.append(iter(changed))
                if one.pair not in told:
                    told.add(one.pair)
                    stack.append(iter(self._pairs[one.pair]))
        return reported

    def _types(self, place: _Place, old: File | Message, new: File | Message) -> None:
        old_messages, new_messages = ({one.name: (index, one) for index, one in enumerate(file.messages)} for file in (old, new))
        for inner, before, after in _in_both(place.inside, "MESSAGE", old_messages, new_messages):
            self._messages(inner, before[1], after[1])
            if before[0] != after[0]:
                inner.add("MESSAGE_MOVED")
        old_enums, new_enums = ({one.name: one for one in file.enums} for file in (old, new))
        for inner, old_enum, new_enum in _in_both(place.inside, "ENUM", old_enums, new_enums):
            _enums(inner, old_enum, new_enum)

    def _messages(self, place: _Place, old: Message, new: Message) -> None:
        old_fields = {one.number: one for one in old.fields}
        new_fields = {one.number: one for one in new.fields}
        old_oneofs = {one.name: {f.number: f for f in one.fields} for one in old.oneofs}
        new_oneofs = {one.name: {f.number: f for f in one.fields} for one in new.oneofs}
        old_members = {number: name for name, fields in old_oneofs.items() for number in fields}
        moved = _moves_into_oneofs(place, old_fields, old_members, new.oneofs)
        for inner, before, after in _in_both(place.at, "ONEOF", old_oneofs, new_oneofs):
            for member, was, becomes in _in_both(inner.at, "ONEOF_FIELD", before, after, sorted(before.keys() | after)):
                self._fields(member, was, becomes)
        for number in sorted((old_fields.keys() | new_fields.keys()) - moved):
            self._plain_fields(place.at(number), old_fields.get(number), new_fields.get(number))
        new_members = {number: name for name, fields in new_oneofs.items() for number in fields}
        for number in sorted(old_members.keys() | moved):
            old_field = old_fields.get(number) or old_oneofs[old_members[number]][number]
            oneof = new_members.get(number)
            new_field = new_fields.get(number) if oneof is None else new_oneofs[oneof][number]
            if new_field is not None and old_members.get(number) != oneof:  # the field moved into, out of or between oneofs
                self._fields(place.at(number), old_field, new_field)
        self._types(place, old, new)

    def _plain_fields(self, place: _Place, old: Field | None, new: Field | None) -> None:
        if old is None:
            assert new is not None
            place.add("REQUIRED_FIELD_ADDED" if new.label == "required" else "FIELD_ADDED")
        elif new is None:
            place.add("REQUIRED_FIELD_REMOVED" if old.label == "required" else "FIELD_REMOVED")
        else:
            self._fields(place, old, new)

    def _fields(self, place: _Place, old: Field, new: Field) -> None:
        if old.name != new.name:
            place.add("FIELD_NAME_CHANGED")
        if bool(old.map_key) != bool(new.map_key):
            place.add("FIELD_KIND_CHANGED")
        elif old.map_key:
            self._value_types(place, old.map_key, new.map_key, ("", ""))
            self._value_types(place, old.type, new.type, ("", ""))
        else:
            self._value_types(place, old.type, new.type, (old.label, new.label))

    def _value_types(self, place: _Place, old: str, new: str, labels: tuple[str, str]) -> None:
        old_kind, old_name = _kind(self._old, old, place.old_scope)
        new_kind, new_name = _kind(self._new, new, place.new_scope)
        if (old_kind == "message") != (new_kind == "message"):
            place.add("FIELD_KIND_CHANGED")
        elif old_kind == "message":
            self._message_types(place, old_name, new_name)
        elif old_kind != new_kind:
            place.add("FIELD_SCALAR_KIND_CHANGED")
        elif all(labels) and labels[0] != labels[1]:
            place.add("FIELD_STRING_OR_BYTES_LABEL_CHANGED" if old_kind == "text" else "FIELD_NUMERIC_LABEL_CHANGED")

    def _message_types(self, place: _Place, old: str, new: str) -> None:
        old_type, new_type = self._old.types[old], self._new.types[new]
        if _local(old, old_type) != _local(new, new_type):
            place.add("FIELD_NAMED_TYPE_CHANGED")
        elif not (old_type.local and new_type.local):
            place.found.append(_Imported((old, new), place.path))


def _kind(names: Names, type_name: str, scope: str) -> tuple[str, str]:
    """The group of types that readers can exchange, and the full name of a message."""
    scalar = _KINDS.get(type_name)
    if scalar is not None:
        return scalar, ""
    full_name = names.resolve(type_name, scope)
    assert full_name is not None, type_name  # the pool has already resolved the name
    return ("number" if isinstance(names.types[full_name].node, Enum) else "message"), full_name


def _local(full_name: str, declared: Declared) -> str:
    return full_name.removeprefix(declared.package + ".") if declared.package else full_name


def _imported(found: Sequence[Difference | _Imported]) -> Iterator[tuple[str, str]]:
    return (one.pair for one in found if isinstance(one, _Imported))


def _enums(place: _Place, old: Enum, new: Enum) -> None:
    old_values = {one.number: one.name for one in old.values}
    new_values = {one.number: one.name for one in new.values}
    numbers = sorted(old_values.keys() | new_values.keys())
    for inner, before, after in _in_both(place.at, "ENUM_CONST", old_values, new_values, numbers):
        if before != after:
            inner.add("ENUM_CONST_CHANGED")


def _in_both(
    at: Callable[[Key], _Place], thing: str, old: dict[Key, Item], new: dict[Key, Item], order: Iterable[Key] = ()
) -> Iterator[tuple[_Place, Item, Item]]:
    """The items that both schemas have, with their places; adds a change for each item that was removed or added."""
    for key in order or old | new:
        place = at(key)
        if key not in new:
            place.add(f"{thing}_REMOVED")
        elif key not in old:
            place.add(f"{thing}_ADDED")
        else:
            yield place, old[key], new[key]


def _moves_into_oneofs(place: _Place, fields: dict[int, Field], members: dict[int, str], oneofs: Sequence[OneOf]) -> set[int]:
    """Check the plain fields that have moved into oneofs; returns their numbers."""
    moved: set[int] = set()
    for oneof in oneofs:
        numbers = {one.number for one in oneof.fields}
        from_fields = numbers & fields.keys()
        moved |= from_fields
        if len(from_fields) > 1:
            place.at(oneof.name).add("MULTIPLE_FIELDS_MOVED_TO_ONEOF")
        elif from_fields and numbers & members.keys():
            place.at(oneof.name).add("FIELD_MOVED_TO_EXISTING_ONEOF")
    return moved
