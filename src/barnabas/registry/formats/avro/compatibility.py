"""Checks whether a reader with one schema can read data of another schema: the rules of Avro's Java library, with the messages
of Confluent's registry.

The check walks pairs of types. It remembers each pair, so recursive types end and shared types are compared once. It has its
own stack, because references can make a graph deeper than Python's stack.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec

from barnabas.limits import MAX_AVRO_COMPARED_DEPTH, MAX_AVRO_COMPARISONS, MAX_AVRO_INCOMPATIBILITIES
from barnabas.registry.formats.avro.json_text import sorted_names
from barnabas.registry.formats.avro.printing import canonical_text
from barnabas.registry.formats.avro.types import Collected, Enum, Field, Fixed, Named, Place, Primitive, Record, Type, Union
from barnabas.registry.formats.interface import Incompatibility

_PROMOTED = {  # writer types that a reader's primitive type accepts, besides its own type
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
_DESCRIPTIONS = {
    "NAME_MISMATCH": "The name of the schema has changed (path '{path}')",
    "FIXED_SIZE_MISMATCH": "The size of FIXED type field at path '{path}' in the new schema does not match with the old schema",
    "MISSING_ENUM_SYMBOLS": "The new schema is missing enum symbols '{info}' at path '{path}' in the old schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field '{info}' at path '{path}' in the new schema has no default value"
    " and is missing in the old schema",
    "TYPE_MISMATCH": "The type (path '{path}') of a field in the new schema does not match with the old schema",
    "MISSING_UNION_BRANCH": "The new schema is missing a type inside a union field at path '{path}' in the old schema",
}
_FRAME = "{{errorType:'{kind}', description:'{description}', additionalInfo:'{info}'}}"
_Found = list[Incompatibility]
_Key = tuple[int, int]  # `id` of the reader's type and of the writer's type
_Pair = tuple[Type, Type, Place | None, int]
_Steps = Generator[_Pair, Any, _Found]  # yields pairs and receives a _Found for each; the first `send` passes None


class _GiveUp(Exception):
    """The check cannot return a list of incompatibilities. The message gives the reason."""


def other_format() -> Incompatibility:
    """A reader of one format cannot read data of another format."""
    text = "Incompatible because of different schema type"
    return Incompatibility("SCHEMA_TYPE_MISMATCH", text, text)


def find_incompatibilities(reader: Type, writer: Type) -> _Found:
    """The reasons why `reader` cannot read data of `writer`. In the messages, `new` is the reader and `old` the writer."""
    try:
        return _Comparison().run(reader, writer)
    except _GiveUp as error:
        text = f"Unexpected exception during compatibility check: {error}"
        return [Incompatibility("UNEXPECTED", text, text)]


class _Comparison:
    def __init__(self) -> None:
        self._known: dict[_Key, _Found] = {}
        self._branches: dict[int, dict[str, list[Type]]] = {}
        self._work = 0

    def run(self, reader: Type, writer: Type) -> _Found:
        """Runs the steps of a pair. Steps that need the result of another pair yield that pair and receive its result."""
        stack: list[tuple[_Key | None, _Steps]] = []
        found = self._enter((reader, writer, None, 0), stack)
        while stack:
            key, steps = stack[-1]
            try:
                pair = steps.send(found)
            except StopIteration as end:
                stack.pop()
                found = end.value[:MAX_AVRO_INCOMPATIBILITIES]
                if key:
                    self._known[key] = found
                self._spend(len(found))
            else:
                found = self._enter(pair, stack)
        return found or []

    def _enter(self, pair: _Pair, stack: list[tuple[_Key | None, _Steps]]) -> _Found | None:
        """The result of a pair that is known or of primitive types; otherwise None, with its steps on the stack."""
        reader, writer, place, depth = pair
        # primitive types are shared objects, so their `id` does not identify a place
        plain = isinstance(reader, Primitive) or isinstance(writer, Primitive)
        key = None if plain else (id(reader), id(writer))
        known = self._known.get(key) if key else None
        if known is not None:
            return known
        self._spend(1)
        if depth > MAX_AVRO_COMPARED_DEPTH:
            raise _GiveUp(f"the schemas are nested deeper than {MAX_AVRO_COMPARED_DEPTH} levels")
        if isinstance(reader, Primitive) and isinstance(writer, Primitive):
            return [] if _reads_kind(reader.kind, writer.kind) else _type_mismatch(reader, writer, place)
        if key:
            # ends the recursion: a pair inside itself counts as compatible until another difference is found
            self._known[key] = []
        stack.append((key, self._steps(reader, writer, place, depth + 1)))
        return None

    def _steps(self, reader: Type, writer: Type, place: Place | None, depth: int) -> _Steps:
        if isinstance(writer, Union):
            return self._writer_union(reader, writer, place, depth)
        if isinstance(reader, Union):
            return self._reader_union(reader, writer, place, depth)
        if isinstance(reader, Record) and isinstance(writer, Record):
            return self._records(reader, writer, place, depth)
        return self._others(reader, writer, place, depth)

    def _others(self, reader: Type, writer: Type, place: Place | None, depth: int) -> _Steps:
        if reader.kind != writer.kind:
            return _type_mismatch(reader, writer, place)
        if isinstance(reader, Collected) and isinstance(writer, Collected):
            assert reader.content is not None
            assert writer.content is not None
            below = Place(place, "items" if reader.kind == "array" else "values")
            found: _Found = yield reader.content, writer.content, below, depth
            return found
        if isinstance(reader, Fixed) and isinstance(writer, Fixed):
            return [*_names(reader, writer, place), *_sizes(reader, writer, place)]
        assert isinstance(reader, Enum)
        assert isinstance(writer, Enum)
        return [*_names(reader, writer, place), *_symbols(reader, writer, place)]

    def _writer_union(self, reader: Type, writer: Union, place: Place | None, depth: int) -> _Steps:
        """The reader must read each branch. If the reader is a union too, only the branch is reported; otherwise the problems
        of the branch."""
        result: _Found = []
        for index, branch in enumerate(writer.branches):
            here = Place(place, index)
            if isinstance(reader, Union):
                if (yield reader, branch, None, depth):
                    result.append(_missing_branch(branch, here))
            else:
                result += yield reader, branch, here, depth
        return result

    def _reader_union(self, reader: Union, writer: Type, place: Place | None, depth: int) -> _Steps:
        for branch in self._candidates(reader, writer):
            if not (yield branch, writer, None, depth):
                return []
        return [_missing_branch(writer, place)]

    def _candidates(self, reader: Union, writer: Type) -> list[Type]:
        """The branches that can be compatible with `writer`, by kind, name and alias. Unions may have thousands of branches."""
        index = self._branches.get(id(reader))
        if index is None:
            index = self._branches[id(reader)] = _branches_by_written(reader)
        return index.get(f"{writer.kind} {writer.name}" if isinstance(writer, Named) else writer.kind, [])

    def _records(self, reader: Record, writer: Record, place: Place | None, depth: int) -> _Steps:
        result = _names(reader, writer, place)
        above = Place(place, "fields")
        for index, field in enumerate(reader.fields):
            self._spend(1 + len(field.aliases))
            here = Place(above, index)
            written = _written_field(field, index, writer)
            if written is not None:
                result += yield field.type, written.type, Place(here, "type"), depth
            elif field.default is msgspec.UNSET:
                if isinstance(field.type, Enum) and field.type.default is not None:
                    result += yield field.type, writer, Place(here, "type"), depth
                else:
                    result.append(_incompatibility("READER_FIELD_MISSING_DEFAULT_VALUE", here, field.name))
        return result

    def _spend(self, amount: int) -> None:
        self._work += amount
        if self._work > MAX_AVRO_COMPARISONS:
            raise _GiveUp(f"the schemas need more than {MAX_AVRO_COMPARISONS} comparisons")


def _reads_kind(reader: str, writer: str) -> bool:
    return reader == writer or writer in _PROMOTED.get(reader, ())


def _branches_by_written(reader: Union) -> dict[str, list[Type]]:
    index: dict[str, list[Type]] = {}
    for branch in reader.branches:
        if isinstance(branch, Named):
            keys = [f"{branch.kind} {name}" for name in dict.fromkeys((branch.name, *branch.aliases))]
        else:
            keys = [branch.kind, *_PROMOTED.get(branch.kind, ())]
        for key in keys:
            index.setdefault(key, []).append(branch)
    return index


def _written_field(field: Field, position: int, writer: Record) -> Field | None:
    """The field of the writer that `field` reads, by its name or an alias. Raises _GiveUp if there are several."""
    names = dict.fromkeys((field.name, *field.aliases)) if field.aliases else (field.name,)
    found = [writer.by_name[name] for name in names if name in writer.by_name]
    if len(found) > 1:
        shown = f"{field.name} type:{field.type.kind.upper()} pos:{position}"
        text = canonical_text(writer, max_depth=None)
        raise _GiveUp(f"Reader record field {shown} matches multiple fields in writer record schema {text}")
    return found[0] if found else None


def _names(reader: Named, writer: Named, place: Place | None) -> _Found:
    if writer.name == reader.name or writer.name in reader.aliases:
        return []
    return [_incompatibility("NAME_MISMATCH", Place(place, "name"), f"expected: {writer.name}")]


def _sizes(reader: Fixed, writer: Fixed, place: Place | None) -> _Found:
    if reader.size == writer.size:
        return []
    return [_incompatibility("FIXED_SIZE_MISMATCH", Place(place, "size"), f"expected: {writer.size}, found: {reader.size}")]


def _symbols(reader: Enum, writer: Enum, place: Place | None) -> _Found:
    missing = set(writer.symbols) - set(reader.symbols)
    if not missing or reader.default is not None:
        return []
    return [_incompatibility("MISSING_ENUM_SYMBOLS", Place(place, "symbols"), f"[{', '.join(sorted_names(missing))}]")]


def _type_mismatch(reader: Type, writer: Type, place: Place | None) -> _Found:
    info = f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
    return [_incompatibility("TYPE_MISMATCH", place, info)]


def _missing_branch(writer: Type, place: Place | None) -> Incompatibility:
    return _incompatibility("MISSING_UNION_BRANCH", place, f"reader union lacking writer type: {writer.kind.upper()}")


def _incompatibility(kind: str, place: Place | None, info: str) -> Incompatibility:
    return Incompatibility.of(kind, _DESCRIPTIONS[kind], _FRAME, path=str(place or "/"), info=info)
