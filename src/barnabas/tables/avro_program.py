"""Compiles a pair of Avro schemas, the writer's and the reader's, to a program for the kernel.

A program exists for records of primitive types, enums, fixed and unions of them, as the writer has them, if the reader's columns are such
too. For any other pair `schemas.arrow.columns` decodes record by record; it has the rules that the programs follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt
from msgspec import Struct

from barnabas.schemas.avro_names import NAMED, full_name
from barnabas.tables import iso_times
from barnabas.tables.column_types import LOCAL, TIME, UTC, Field
from barnabas.tables.formats import Array
from barnabas.tables.kernels import avro as k

Longs = npt.NDArray[np.int64]
Branch = tuple[int, int, int, int]
_INT, _LONG = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
_SECOND_MS, _DAY_MS = 1000, 86_400_000
# The bounds of a number and its factor, by the type and the logical type; those of the date and times are what fastavro takes.
_NUMBERS: dict[tuple[str, str], tuple[int, int, int, pa.DataType]] = {
    ("int", ""): (*_INT, 1, pa.int32()),
    ("long", ""): (*_LONG, 1, pa.int64()),
    ("int", "date"): (iso_times.FIRST_DAY, iso_times.LAST_DAY, 1, pa.date32()),
    ("int", "time-millis"): (0, _DAY_MS - 1, 1, pa.int32()),
    ("long", "time-micros"): (0, _DAY_MS * 1000 - 1, 1, pa.int64()),
    ("long", "timestamp-millis"): (iso_times.FIRST_US // 1000, iso_times.LAST_US // 1000, 1000, UTC),
    ("long", "timestamp-micros"): (iso_times.FIRST_US, iso_times.LAST_US, 1, UTC),
    ("long", "local-timestamp-millis"): (iso_times.FIRST_US // 1000, iso_times.LAST_US // 1000, 1000, LOCAL),
    ("long", "local-timestamp-micros"): (iso_times.FIRST_US, iso_times.LAST_US, 1, LOCAL),
}
_SEEN = ("uuid", "decimal")  # not every text is one
assert TIME not in {each[3] for each in _NUMBERS.values()}  # times are numbers, as in `schemas.arrow.avro_shapes`


class Program(Struct, frozen=True):
    """The instructions of the kernel for one writer's schema.

    Args:
        fields, branches, symbols: as `kernels.avro` has them.
        texts: the symbols of enums, to which `symbols` points.
        columns: the kinds of the columns: `value`, `double`, `boolean`, `text`, `uuid`, `bytes`, `decimal`, `symbol`, or a
            constant for a field that the writer does not have.
    """

    fields: Longs
    branches: Longs
    symbols: Longs
    texts: list[str]
    columns: list[Any]

    def width(self, payloads: Array) -> int:
        """The cells that a row takes."""
        return len(self.columns)

    def only(self, wanted: Sequence[int]) -> tuple[Program, list[int]]:
        """The program that makes these columns alone, and the columns that it makes: also those whose values it has to see."""
        kept = [number for number, how in enumerate(self.columns) if number in wanted or how in _SEEN]
        places = np.full(len(self.columns) + 2, k.CHECKED, np.int64)  # the last two are for CHECKED and SKIPPED
        places[kept] = np.arange(len(kept))
        places[k.SKIPPED] = k.SKIPPED
        fields = self.fields.copy()
        fields[:, k.TARGET] = places[fields[:, k.TARGET]]
        return Program(fields, self.branches, self.symbols, self.texts, [self.columns[number] for number in kept]), kept


class NotFlat(Exception):
    """The kernel cannot decode this pair of schemas."""


class Constant(Struct, frozen=True):
    """The default of the reader's field."""

    value: Any


def compile_program(writer: Any, reader: Any, fields: Sequence[Field]) -> Program | None:
    """The program that decodes data of `writer` to the fields of `reader`; None if there is none.

    Args:
        writer, reader: parsed schemas; the same object if both are the same.
        fields: columns for all fields of the reader, in its order.
    """
    try:
        return Compiler(writer, reader, fields).program()
    except NotFlat:
        return None


class Compiler:
    """Compiles one pair of schemas; `tree` compilers build on it."""

    def __init__(self, writer: Any, reader: Any, wanted: Sequence[Field]) -> None:
        if not is_record(writer) or not is_record(reader) or full_name(writer, "") != full_name(reader, ""):
            raise NotFlat
        self._writer, self._reader, self._is_same = writer, reader, writer is reader
        self._wanted = {field.name: (number, field) for number, field in enumerate(wanted)}
        self._branches: list[Branch] = []
        self._symbols: list[int] = []
        self._texts: dict[str, int] = {}
        self._columns: list[Any] = [None] * len(wanted)
        self._names: tuple[dict[str, Any], dict[str, Any]] = {}, {}

    def program(self) -> Program:
        theirs = {each["name"]: each for each in self._reader["fields"]}
        if not self._is_same and any("aliases" in each for each in (self._reader, *theirs.values())):
            raise NotFlat
        if not self._is_same:
            for each in theirs.values():
                self._branches_of(each["type"], 1)  # learns the names
        rows = [self._field(each, theirs.get(each["name"])) for each in self._writer["fields"]]
        for name, (number, field) in self._wanted.items():
            if self._columns[number] is None:
                self._columns[number] = _default(theirs[name], field)
        return Program(
            np.array(rows, np.int64).reshape(-1, k.FIELD_COLUMNS),
            np.array(self._branches, np.int64).reshape(-1, k.BRANCH_COLUMNS),
            np.array(self._symbols, np.int64),
            list(self._texts),
            self._columns,
        )

    def _field(self, ours: Any, theirs: Any) -> tuple[int, int, int, int]:
        branches = self._branches_of(ours["type"], 0)
        number, field = self._wanted[ours["name"]] if theirs is not None else (k.SKIPPED, None)
        if field is not None and not self._is_same:
            other = self._branches_of(theirs["type"], 1)
            if logical_types(branches) != logical_types(other) or ("null" in branches and "null" not in other):
                raise NotFlat
        first = len(self._branches)
        for each in branches:
            self._branches.append(self._branch(each, number, field, theirs))
        return number, first, len(branches), int(isinstance(ours["type"], list))

    def _branches_of(self, kind: Any, side: int) -> list[Any]:
        """The schemas of a union, or the one of another type, with names in place of their definitions."""
        names = self._names[side]
        found = []
        for each in kind if isinstance(kind, list) else [kind]:
            one = names.get(each, each) if isinstance(each, str) else each
            if isinstance(one, dict) and isinstance(one["type"], dict | list):
                raise NotFlat
            if isinstance(one, dict) and one["type"] in NAMED:
                names[full_name(one, "")] = one
            found.append(one)
        return found

    def _branch(self, schema: Any, number: int, field: Field | None, theirs: Any) -> Branch:
        kind = schema if isinstance(schema, str) else schema["type"]
        logical = "" if isinstance(schema, str) else schema.get("logicalType", "")
        if kind == "null":
            self._set(number, None)
            return k.OP_NULL, 0, 0, 0
        if kind == "boolean":
            self._set(number, "boolean", field, pa.bool_())
            return k.OP_BOOLEAN, 0, 0, 0
        if kind in ("int", "long"):
            return self._number(kind, logical, number, field)
        if kind in ("float", "double"):
            if field is not None and not (pt.is_floating(field.type) and (kind == "float" or pt.is_float64(field.type))):
                raise NotFlat
            self._set(number, "double")
            return k.OP_FLOAT if kind == "float" else k.OP_DOUBLE, 0, 0, 0
        if kind == "enum":
            return self._enum(schema, number, field, theirs)
        if kind in ("string", "bytes", "fixed"):
            return self._text(schema, kind, logical, number, field, theirs)
        raise NotFlat

    def _number(self, kind: str, logical: str, number: int, field: Field | None) -> Branch:
        low, high, factor, made = _NUMBERS.get((kind, logical)) or _NUMBERS[kind, ""]
        if field is None:
            return k.OP_LONG, low, high, 1
        if (kind, logical) not in _NUMBERS:
            raise NotFlat
        if not logical and pt.is_floating(field.type):
            self._set(number, "double")
            return k.OP_LONG_TO_DOUBLE, low, high, 1
        is_promoted = not logical and kind == "int" and field.type == pa.int64()
        self._set(number, "value", field, field.type if is_promoted else made)
        return k.OP_LONG, low, high, factor

    def _text(self, schema: Any, kind: str, logical: str, number: int, field: Field | None, theirs: Any) -> Branch:
        op = {"string": k.OP_TEXT, "bytes": k.OP_BYTES, "fixed": k.OP_FIXED}[kind]
        size = schema["size"] if kind == "fixed" else 0
        if field is None:
            return op, size, 0, 0
        if not self._is_same and (logical or kind == "fixed") and not self._has_same(schema, theirs):
            raise NotFlat
        if logical == "decimal" and kind != "string":
            digits, scale = schema["precision"], schema.get("scale", 0)
            if not pt.is_decimal(field.type) or (field.type.precision, field.type.scale) != (digits, scale):
                raise NotFlat
            self._set(number, "decimal")
        elif logical == "uuid" and kind == "string":
            self._set(number, "uuid", field, pa.string())
        elif logical:
            raise NotFlat
        elif kind == "bytes" and pt.is_string(field.type):
            self._set(number, "text")
            op = k.OP_TEXT
        elif kind == "string" and pt.is_binary(field.type):
            self._set(number, "bytes")
        else:
            self._set(number, "text" if kind == "string" else "bytes", field, pa.string() if kind == "string" else pa.binary())
        return op, size, 0, 0

    def _enum(self, schema: Any, number: int, field: Field | None, theirs: Any) -> Branch:
        symbols = schema["symbols"]
        known = symbols
        if field is not None and not self._is_same:
            found = [
                each
                for each in self._branches_of(theirs["type"], 1)
                if isinstance(each, dict) and each["type"] == "enum" and full_name(each, "") == full_name(schema, "")
            ]
            if not found or "default" in found[0]:
                raise NotFlat
            known = found[0]["symbols"]
        first = len(self._symbols)
        for each in symbols:
            self._symbols.append(self._texts.setdefault(each, len(self._texts)) if each in known else -1)
        self._set(number, "symbol", field, pa.string())
        return k.OP_ENUM, first, len(symbols), 0

    def _has_same(self, schema: Any, theirs: Any) -> bool:
        return any(each == schema for each in self._branches_of(theirs["type"], 1))

    def _set(self, number: int, how: str | None, field: Field | None = None, made: pa.DataType | None = None) -> None:
        """Note how a column is made; all branches of a union must make it in the same way."""
        if number < 0:
            return
        if field is not None and field.type != made:
            raise NotFlat
        if how is None:
            self._columns[number] = self._columns[number] or "null"
            return
        if self._columns[number] not in (None, "null", how):
            raise NotFlat
        self._columns[number] = how


def logical_types(branches: list[Any]) -> set[str]:
    return {each["logicalType"] for each in branches if isinstance(each, dict) and "logicalType" in each}


def is_record(schema: Any) -> bool:
    return isinstance(schema, dict) and schema["type"] in ("record", "error")


def _default(theirs: Any, field: Field) -> Constant:
    if "default" not in theirs:
        raise NotFlat
    value = theirs["default"]
    kind = theirs["type"][0] if isinstance(theirs["type"], list) else theirs["type"]
    if kind == "null" and value is None:
        return Constant(None)
    if kind not in ("int", "long", "float", "double", "boolean", "string"):
        raise NotFlat
    try:
        pa.scalar(value, field.type)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):  # a text with half of a surrogate pair, or 2**70
        raise NotFlat from None
    return Constant(value)
