"""Compiles a pair of Avro schemas with records, arrays and maps inside of each other to a tree for the kernel `kernels.avro_tree`.

A tree exists if each part of the reader's schema is one column: a union of null and one type is, and one of several types is not. A field
that the writer does not have must have the default null. For other pairs `schemas.arrow.columns` decodes record by record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from msgspec import Struct

from barnabas.schemas.avro_bounds import has_weightless_items, is_recursive
from barnabas.schemas.avro_names import NAMED, full_name
from barnabas.tables.avro_program import Compiler, Longs, NotFlat, is_record, logical_types
from barnabas.tables.column_types import Field
from barnabas.tables.formats import Array
from barnabas.tables.kernels import avro_tree as k

MOST_NODES = 2000  # a schema that names its types often has many


class Out(Struct):
    """A column, or a part of one.

    Args:
        how: as in `avro_program.Program.columns`; for a struct, list or map None.
        children: numbers of outputs: the fields of a struct, the items of a list, the keys and values of a map.
        is_repeated: whether it is inside of a list or map.
    """

    field: Field
    is_repeated: bool
    how: Any = None
    children: list[int] = []


class Tree(Struct, frozen=True):
    """The instructions of the kernel for one writer's schema: tables as `kernels.avro_tree` has them, without their second dimension."""

    nodes: Longs
    links: Longs
    symbols: Longs
    texts: list[str]
    outs: list[Out]
    out_links: list[int]  # the first link of each output

    def width(self, payloads: Array) -> int:
        """The slots that a row takes, at most: an item of a list has at least a byte."""
        repeated = sum(each.is_repeated for each in self.outs)
        return len(self.outs) + repeated * int(payloads.nbytes // max(len(payloads), 1))


def compile_tree(writer: Any, reader: Any, fields: Sequence[Field]) -> Tree | None:
    """The tree that decodes data of `writer` to the fields of `reader`; None if there is none. Arguments as `compile_program`."""
    try:
        if has_weightless_items(writer) or is_recursive(writer):
            return None
        return _TreeCompiler(writer, reader, fields).tree()
    except (NotFlat, RecursionError):  # anybody may register a schema that is nested deeper than Python calls
        return None


class _TreeCompiler(Compiler):
    def __init__(self, writer: Any, reader: Any, fields: Sequence[Field]) -> None:
        super().__init__(writer, reader, ())
        self._fields = fields
        self._nodes: list[tuple[int, ...]] = []
        self._links: list[int] = []
        self._outs: list[Out] = []
        for side, schema in enumerate((writer, reader)):
            self._learn(schema, side)

    def _learn(self, schema: Any, side: int) -> None:
        """The named types of a schema."""
        for each in schema if isinstance(schema, list) else [schema]:
            if not isinstance(each, dict):
                continue
            if each.get("type") in NAMED:
                self._names[side][full_name(each, "")] = each
            for part in ("type", "items", "values"):
                self._learn(each.get(part), side)
            for field in each.get("fields") or ():
                self._learn(field["type"], side)

    def tree(self) -> Tree:
        root = self._new_out(pa.field("record", pa.struct(list(self._fields))), is_repeated=False)
        self._node(self._writer, self._reader, self._outs[root].field, root)
        out_links = []
        for number, each in enumerate(self._outs):
            each.how = self._columns[number] or "null"
            out_links.append(len(self._links))
            self._links += each.children if pt.is_struct(each.field.type) else []
        return Tree(
            np.array(self._nodes, np.int64).reshape(-1), np.array([*self._links, 0], np.int64), np.array(self._symbols, np.int64),
            list(self._texts), self._outs, out_links,
        )  # fmt: skip

    def _new_out(self, field: Field, *, is_repeated: bool) -> int:
        self._outs.append(Out(field, is_repeated))
        self._columns.append(None)
        return len(self._outs) - 1

    def _new_node(self) -> int:
        if len(self._nodes) >= MOST_NODES:
            raise NotFlat
        self._nodes.append(())
        return len(self._nodes) - 1

    def _node(self, ours: Any, theirs: Any, field: Field | None, out: int) -> int:
        """The node that reads `ours` as `theirs` to an output; without `theirs` it is skipped."""
        branches = self._branches_of(ours, 0)
        if theirs is not None and not self._is_same:
            others = self._branches_of(theirs, 1)
            if logical_types(branches) != logical_types(others) or ("null" in branches and "null" not in others):
                raise NotFlat
        if not isinstance(ours, list):
            return self._one(branches[0], theirs, field, out)
        number = self._new_node()
        children = [self._one(each, theirs, field, out) for each in branches]
        self._nodes[number] = (k.OP_UNION, out, *self._linked(children), 0, 0)
        return number

    def _linked(self, numbers: Sequence[int]) -> tuple[int, int]:
        """The first link and how many there are."""
        self._links += numbers
        return len(self._links) - len(numbers), len(numbers)

    def _one(self, schema: Any, theirs: Any, field: Field | None, out: int) -> int:
        number = self._new_node()
        kind = schema if isinstance(schema, str) else schema["type"]
        if is_record(schema):
            self._nodes[number] = self._record(schema, theirs, field, out)
        elif kind in ("array", "map"):
            self._nodes[number] = self._items(schema, kind, theirs, field, out)
        else:
            branch = self._branch(schema, out, field, None if theirs is None else {"type": theirs})
            self._nodes[number] = (branch[0], out, *branch[1:], 0)
        return number

    def _record(self, schema: Any, theirs: Any, field: Field | None, out: int) -> tuple[int, ...]:
        if field is None:
            children = [self._node(each["type"], None, None, k.SKIPPED) for each in schema["fields"]]
            return k.OP_RECORD, out, *self._linked(children), 0, 0
        name = full_name(schema, "")
        found = [each for each in self._branches_of(theirs, 1) if is_record(each) and full_name(each, "") == name]
        if not found or not pt.is_struct(field.type):
            raise NotFlat
        wanted = {each["name"]: each for each in found[0]["fields"]}
        kind: Any = field.type
        if list(wanted) != [each.name for each in kind]:
            raise NotFlat
        if not self._is_same and any("aliases" in each for each in (found[0], *wanted.values())):
            raise NotFlat
        outs = {each.name: self._new_out(each, is_repeated=self._outs[out].is_repeated) for each in kind}
        self._outs[out].children = list(outs.values())
        children = []
        for each in schema["fields"]:
            other = wanted.get(each["name"])
            if other is None:
                children.append(self._node(each["type"], None, None, k.SKIPPED))
            else:
                children.append(self._node(each["type"], other["type"], kind.field(each["name"]), outs[each["name"]]))
        written = {each["name"] for each in schema["fields"]}
        lacking = [each for each in wanted.values() if each["name"] not in written]
        if not all(_is_null_by_default(each) for each in lacking):
            raise NotFlat
        first, count = self._linked(children)
        return k.OP_RECORD, out, first, count, *self._linked([outs[each["name"]] for each in lacking])

    def _items(self, schema: Any, part: str, theirs: Any, field: Field | None, out: int) -> tuple[int, ...]:
        op, word = (k.OP_ARRAY, "items") if part == "array" else (k.OP_MAP, "values")
        if field is None:
            child = self._node(schema[word], None, None, k.SKIPPED)
            return op, out, *self._linked([child, 0]), 0, 0
        kind: Any = field.type
        found = [each for each in self._branches_of(theirs, 1) if isinstance(each, dict) and each["type"] == part]
        if not found or not (pt.is_list(kind) if part == "array" else pt.is_map(kind)):
            raise NotFlat
        keys = 0
        if part == "map":
            keys = self._new_out(kind.key_field, is_repeated=True)
            self._columns[keys] = "text"
        inner = kind.value_field if part == "array" else kind.item_field
        items = self._new_out(inner, is_repeated=True)
        self._outs[out].children = [items] if part == "array" else [keys, items]
        child = self._node(schema[word], found[0][word], inner, items)
        return op, out, *self._linked([child, keys]), 0, 0


def _is_null_by_default(field: Any) -> bool:
    kind = field["type"]
    return "default" in field and field["default"] is None and (kind == "null" or (isinstance(kind, list) and kind[0] == "null"))
