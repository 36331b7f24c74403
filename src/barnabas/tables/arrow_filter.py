"""Reads pyarrow's expressions, which show their parts to nobody, into the tree of `expression`.

How it works: pickling turns an expression into an Arrow IPC file with one row. Its columns are the constants, and the metadata of
its schema lists the parts in order: `call`, `field_ref`, `literal`, `options`, `end`. Substrait would be another way. It cannot
express some functions and casts, and then the whole expression is lost, not one part.

Ugly: metadata may repeat a key, and pyarrow shows each key once. So this module reads it from the C structure of the schema, whose
layout Arrow's C data interface fixes.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.tables.expression import Call, Constant, Field, Node

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class _Schema(ctypes.Structure):
    """The first members of `struct ArrowSchema`."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


def node_of(expression: pc.Expression) -> Node | None:
    """The tree of an expression; None if it cannot be read, as with columns that are given by their position."""
    try:
        reduced: Any = expression.__reduce__()
        with pa.ipc.open_file(reduced[1][0]) as file:
            row = file.get_batch(0)
            return _Reader(_pairs(file.schema), row).node()
    except (pa.ArrowException, NotImplementedError, ValueError, LookupError, StopIteration, TypeError):
        return None


class _Reader:
    def __init__(self, pairs: Iterator[tuple[str, str]], row: pa.RecordBatch) -> None:
        self._pairs, self._row = pairs, row

    def _constant(self, place: str) -> Any:
        return self._row.column(int(place))[0]

    def node(self) -> Node:
        """The next tree; raises LookupError or ValueError if the parts are no tree."""
        open_calls: list[tuple[str, list[Node], dict[str, Any]]] = []
        while True:
            kind, value = next(self._pairs)
            made: Node
            if kind == "call":
                open_calls.append((value, [], {}))
                continue
            if kind == "options":
                options = self._constant(value)
                open_calls[-1][2].update((name, _plain(options[name])) for name in options)
                continue
            if kind == "end":
                name, arguments, found = open_calls.pop()
                made = Call(name, tuple(arguments), found)
            elif kind == "literal":
                made = Constant(self._constant(value))
            elif kind == "field_ref":
                made = Field((value,))
            elif kind == "nested_field_ref":
                made = Field(tuple(self._name() for _ in range(int(value))))
            else:
                raise ValueError(kind)
            if not open_calls:
                return made
            open_calls[-1][1].append(made)

    def _name(self) -> str:
        kind, value = next(self._pairs)
        if kind != "field_ref":
            raise ValueError(kind)
        return value


def _plain(value: Any) -> Any:
    """Options as Python values; a list stays a sequence of scalars, which keep their types."""
    return list(value.values) if value.is_valid and pa.types.is_list(value.type) else value.as_py()


def _pairs(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """The metadata of a schema, in its order: a count, then lengths and texts."""
    capsule = schema.__arrow_c_schema__()
    address = ctypes.cast(_pointer_of(capsule, b"arrow_schema"), ctypes.POINTER(_Schema)).contents.metadata
    if not address:
        return
    (count,) = struct.unpack("=i", ctypes.string_at(address, 4))
    address += 4
    for _ in range(count):
        texts = []
        for _ in range(2):
            (length,) = struct.unpack("=i", ctypes.string_at(address, 4))
            texts.append(ctypes.string_at(address + 4, length).decode())
            address += 4 + length
        yield texts[0], texts[1]
