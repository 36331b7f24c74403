"""Columns to Avro data in bulk: a plan for a schema and a type of Arrow, and its kernel. No Python object for a value.

A plan exists for records, arrays and maps of primitive types, enums, fixed, decimals, dates and times, and for unions of null and one type.
For others, and for rows with a value that does not fit, `columns` encodes row by row; it has the rules that plans follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.lazy_module import LazyModule
from barnabas.schemas.avro_names import NAMED, full_name

if TYPE_CHECKING:
    from barnabas.schemas.arrow import avro_kernels as k
else:
    k = LazyModule("barnabas.schemas.arrow.avro_kernels")

types: Any = pa.types
Convert = Callable[[Any], Any]
REFUSED = -1  # of the kernels, which need not be loaded for it
MOST_BYTES = 1 << 30  # that a kernel may write at once
LESS = 0.8  # of the bytes of an array, that its halves must have
RAW = ("bytes", {"type": "bytes"})  # data of this schema has no length before it
_DAY_US = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # years 1 to 9999
_INT, _LONG = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
_MOMENTS = (_FIRST_DAY * _DAY_US, (_LAST_DAY + 1) * _DAY_US - 1)
_MILLIS = {"timestamp-millis": 1000, "timestamp-micros": 1, "local-timestamp-millis": 1000, "local-timestamp-micros": 1}
_LOGICAL_LONGS = {"", "time-micros", *_MILLIS}
_LOGICAL_INTS = {"", "date", "time-millis"}


class Node(NamedTuple):
    """A part of a schema with a type of Arrow.

    Args:
        op, first, second: as the kernel has them.
        null, before: its NULL_BYTE and VALUE_BYTE.
        parts: below it.
        convert: makes the array that the kernel reads. Raises pyarrow.ArrowException for values that have no such form.
    """

    op: int
    first: int = 0
    second: int = 0
    null: int = REFUSED
    before: int = REFUSED
    parts: tuple[Node, ...] = ()
    convert: Convert | None = None


class Encoded(NamedTuple):
    """Encoded values.

    Args:
        rows: their bytes, null for null.
        later: the rows with a value that does not fit; they are null too.
    """

    rows: pa.Array[Any]
    later: npt.NDArray[np.intp]


class NoPlan(Exception):
    """The kernel has no way for a schema and a type."""


def plan_of(schema: Any, kind: pa.DataType) -> Node | None:
    """The plan for a whole schema and the type of its values; None if there is none."""
    if schema in RAW:
        return None
    try:
        return _Planner().made(schema, kind)
    except (NoPlan, RecursionError):
        return None


def encoded(plan: Node, data: pa.Array[Any], prefix: bytes, most_room: float = math.inf) -> Encoded | None:
    """The bytes of each value behind a prefix. None: values are not as their type says, or the kernel does not take these arrays.

    Args:
        most_room: None if they may take more bytes. A part of an array has the items of all its lists, so parts are not always smaller.
    """
    try:
        data.validate(full=True)
        table = _Table()
        table.add(plan, data)
    except (pa.ArrowException, NoPlan):
        return None
    room = len(data) * len(prefix) + table.room
    if room <= MOST_BYTES or len(data) == 1:
        return _run(table, data, prefix, room) if room < 1 << 31 else None
    half = len(data) // 2
    first = encoded(plan, data.slice(0, half), prefix, room * LESS) if room <= most_room else None
    second = None if first is None else encoded(plan, data.slice(half), prefix, room * LESS)
    if first is None or second is None:
        return None
    later = np.concatenate([first.later, second.later + half])
    try:
        return Encoded(pa.concat_arrays([first.rows, second.rows]), later)
    except pa.ArrowException:  # more bytes than an array can have
        return None


def _run(table: _Table, data: pa.Array[Any], prefix: bytes, room: int) -> Encoded:
    count = len(data)
    nodes = np.array(table.rows, np.int64).reshape(-1)
    out, ends = np.empty(room, np.uint8), np.zeros(count + 1, np.int32)
    is_later = np.zeros(count, np.uint8)
    nulls = data.null_count
    is_null: Any = data.is_null().to_numpy(zero_copy_only=False) if nulls else None
    if nulls:
        is_later[:] = is_null
    left = k.encode_rows(nodes, np.frombuffer(prefix, np.uint8), out, ends, is_later)
    missing = nulls + left
    valid = _buffer(np.packbits(is_later == 0, bitorder="little")) if missing else None
    buffers = [valid, _buffer(ends), _buffer(out[: ends[-1]])]
    made = pa.Array.from_buffers(pa.binary(), count, buffers, missing)
    later = np.flatnonzero(is_later if not nulls else (is_later != 0) & ~is_null) if left else np.zeros(0, np.intp)
    return Encoded(made, later)


def _buffer(values: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(values)  # type: ignore[arg-type]  # numpy arrays are buffers, which the stubs do not know


class _Table:
    """The rows of the kernel's table.

    Attributes:
        room: the bytes that the values can take.
    """

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.room = 0
        self._kept: list[Any] = []  # arrays whose addresses the table has

    def add(self, node: Node, array: Any) -> None:
        """Add a node and those below it. Raises NoPlan, pyarrow.ArrowException."""
        if node.convert is not None:
            array = node.convert(array)
        self._kept.append(array)
        buffers = array.buffers()
        at = len(self.rows)
        valid, first = _address(buffers[0]), _address(buffers[1]) if len(buffers) > 1 else 0
        last = _address(buffers[2]) if len(buffers) > 2 else 0
        is_text = node.op in (k.OP_TEXT, k.OP_FIXED)
        ends = first if is_text or node.op in (k.OP_ARRAY, k.OP_MAP) else 0
        values = last if is_text else first
        row = [node.op, 0, len(node.parts), node.null, node.before, valid, array.offset, values, ends, node.first, node.second]
        self.rows.append(row)
        count = len(array)
        self.room += count * (k.MOST[node.op] + (node.before >= 0))
        if is_text:
            self.room += _text_bytes(array, buffers[1])
        elif node.op == k.OP_DECIMAL:
            self.room += count * node.first
        for part, each in zip(node.parts, _parts(node.op, array), strict=True):
            self.add(part, each)
        row[k.SIZE] = len(self.rows) - at


def _parts(op: int, array: Any) -> list[Any]:
    if op == k.OP_RECORD:
        return [array.field(number) for number in range(array.type.num_fields)]
    if op == k.OP_ARRAY:
        return [array.values]
    return [array.keys, array.items] if op == k.OP_MAP else []


def _address(buffer: Any) -> int:
    if buffer is None:
        return 0
    address: int = buffer.address
    if address % 8:
        raise NoPlan
    return address


def _text_bytes(array: Any, ends: Any) -> int:
    if not len(array):
        return 0
    found = np.frombuffer(ends, np.int32, len(array) + 1, array.offset * 4)
    return int(found[-1]) - int(found[0])


class _Planner:
    """Makes the plan of one schema."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {}

    def made(self, schema: Any, kind: Any) -> Node:
        """Raises NoPlan."""
        if isinstance(schema, list):
            return self._union(schema, kind)
        if isinstance(schema, str):
            if schema in self._names:
                return self.made(self._names[schema], kind)
            return _value({"type": schema}, kind)
        inner = schema["type"]
        if isinstance(inner, dict | list):
            return self.made(inner, kind)
        if inner in NAMED:
            self._names[full_name(schema, "")] = schema
        match inner:
            case "record":
                return self._record(schema, kind)
            case "array" if types.is_list(kind):
                return Node(k.OP_ARRAY, parts=(self.made(schema["items"], kind.value_type),))
            case "map" if types.is_map(kind) and types.is_string(kind.key_type):
                return Node(k.OP_MAP, parts=(Node(k.OP_TEXT), self.made(schema["values"], kind.item_type)))
        if inner in self._names and inner not in NAMED and not isinstance(self._names[inner], str):
            return self.made(self._names[inner], kind)
        return _value(schema, kind)

    def _record(self, schema: Any, kind: Any) -> Node:
        fields = schema["fields"]
        if not types.is_struct(kind) or sorted(each.name for each in kind) != sorted(each["name"] for each in fields):
            raise NoPlan
        order = [kind.get_field_index(each["name"]) for each in fields]
        if min(order, default=0) < 0:
            raise NoPlan
        parts = tuple(self.made(each["type"], kind.field(place).type) for each, place in zip(fields, order, strict=True))
        in_order: Convert | None = None if order == sorted(order) else lambda array: _reordered(array, order)
        return Node(k.OP_RECORD, parts=parts, convert=in_order)

    def _union(self, branches: list[Any], kind: Any) -> Node:
        others = [number for number, each in enumerate(branches) if each != "null"]
        if len(others) != 1 or len(branches) > 2:
            raise NoPlan
        (own,) = others
        made = self.made(branches[own], kind)
        if made.before != REFUSED or made.op == k.OP_NULL or self._is_ambiguous(branches, branches[own], kind):
            raise NoPlan
        return made._replace(before=2 * own, null=2 * (1 - own) if len(branches) == 2 else REFUSED)

    def _is_ambiguous(self, branches: list[Any], own: Any, kind: Any) -> bool:
        """Whether a value may be taken for a branch with its name around it."""
        if not types.is_struct(kind) or kind.num_fields != 1:
            return False
        schema = self._names.get(own, own) if isinstance(own, str) else own
        name = full_name(schema, "")
        return kind.field(0).name in {"null", name, name.rpartition(".")[2]}


def _reordered(array: Any, order: list[int]) -> Any:
    fields = [array.type.field(place) for place in order]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays([array.field(place) for place in order], fields=fields, mask=mask)


def _value(schema: Any, kind: Any) -> Node:
    """A value without parts. Raises NoPlan."""
    name, logical = schema["type"], schema.get("logicalType", "")
    match name:
        case "null":
            return Node(k.OP_NULL, null=k.NOTHING)
        case "boolean" if types.is_boolean(kind):
            return Node(k.OP_BOOLEAN)
        case "int" if logical in _LOGICAL_INTS:
            return _int(logical, kind)
        case "long" if logical in _LOGICAL_LONGS:
            return _long(logical, kind)
        case "float" | "double" if not logical:
            return _float(name, kind)
        case "string" if not logical and types.is_string(kind):
            return Node(k.OP_TEXT)
        case "enum" if types.is_string(kind):
            symbols = pa.array(schema["symbols"], pa.string())
            return Node(k.OP_SYMBOL, 0, len(symbols) - 1, convert=lambda array: _places(array, symbols))
        case "bytes" | "fixed" if logical == "decimal":
            return _decimal(schema, kind)
        case "bytes" if not logical and types.is_binary(kind):
            return Node(k.OP_TEXT)
        case "fixed" if not logical and types.is_binary(kind):
            return Node(k.OP_FIXED, schema["size"])
    raise NoPlan


def _int(logical: str, kind: Any) -> Node:
    if logical == "date" and types.is_date32(kind):
        return Node(k.OP_INT, _FIRST_DAY, _LAST_DAY)
    if types.is_int64(kind):
        return Node(k.OP_LONG, *_INT)
    return Node(k.OP_INT, *_INT, convert=_as_integers(kind, pa.int32()))


def _long(logical: str, kind: Any) -> Node:
    if types.is_timestamp(kind):
        zone = "" if logical.startswith("local-") else "UTC"
        if logical not in _MILLIS or kind != pa.timestamp("us", zone or None):
            raise NoPlan
        return Node(k.OP_MILLIS if _MILLIS[logical] == 1000 else k.OP_LONG, *_MOMENTS)
    if types.is_int32(kind):
        return Node(k.OP_INT, *_INT)
    return Node(k.OP_LONG, *_LONG, convert=_as_integers(kind, pa.int64()))


def _as_integers(kind: Any, wanted: Any) -> Convert | None:
    if kind == wanted:
        return None
    if not types.is_integer(kind):
        raise NoPlan
    return lambda array: array.cast(wanted)


def _float(name: str, kind: Any) -> Node:
    if types.is_float32(kind):
        return Node(k.OP_FLOAT if name == "float" else k.OP_FLOAT_TO_DOUBLE)
    if types.is_float64(kind):
        return Node(k.OP_DOUBLE_TO_FLOAT if name == "float" else k.OP_DOUBLE)
    raise NoPlan


def _decimal(schema: Mapping[str, Any], kind: Any) -> Node:
    is_fixed = schema["type"] == "fixed"
    if not types.is_decimal128(kind) or kind.scale != schema.get("scale", 0) or kind.precision > schema["precision"]:
        raise NoPlan
    return Node(k.OP_DECIMAL, schema["size"] if is_fixed else 0, int(is_fixed))


def _places(array: Any, symbols: Any) -> Any:
    """The places of texts among symbols; -1 for one that is none of them, and null for null."""
    found: Any = pc.index_in(array, symbols)
    found = pc.fill_null(found, -1)
    return pc.if_else(array.is_valid(), found, pa.scalar(None, pa.int32())) if array.null_count else found
