"""Values and keys with schemas of a registry as columns.

The newest version of the subject gives the columns. Each record names the schema that it was written with, in the payload or in a header:
Avro is resolved by the rules of its readers, Protobuf by the numbers of fields, JSON by names.

How it works: rows are grouped by the id in their payload. Kernels decode Avro records and JSON objects. Other rows are decoded one by
one: other schemas, ids in headers, and records that the kernels do not take, for which this gives the reason too.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from barnabas.schemas.arrow.columns import REASON, VALUE, Reader, RegistryAddress, Writer, decode, encode, registered_schemas
from barnabas.schemas.arrow.shapes import shape_of
from barnabas.schemas.errors import SchemaDataError
from barnabas.schemas.framing import KEY_HEADER, VALUE_HEADER
from barnabas.schemas.registered import RegisteredSchema
from barnabas.schemas.subject_names import topic_name
from barnabas.tables.column_types import Field
from barnabas.tables.errors import TableError
from barnabas.tables.formats import Array, Decoded, binary_parts, by_slices, columns_for, joined, replaced, without_deleted

if TYPE_CHECKING:
    from barnabas.tables.avro_program import Program
    from barnabas.tables.avro_tree import Tree

PREFIX = 5  # bytes: 0 and the id
OTHER = -1  # in place of an id
MOST_IDS = 32  # whose records are decoded in bulk at once
_PROGRAMS = 256  # that a format keeps
_lock = threading.Lock()  # the schemas of a process are not safe for several threads

Rows = npt.NDArray[np.intp]


class RegisteredFormat:
    """One part of records, with columns of a registered schema.

    Attributes:
        is_struct: whether the schema has fields; otherwise the only column is the whole value.

    Args:
        schema: the one that gives the columns, and that rows are written with.
        message: the Protobuf message; None: the first one.
        name: of the column if the schema describes no fields, such as that of a string.

    Raises:
        SchemaDataError: the schema has no form in Arrow.
    """

    uses_headers = True

    def __init__(
        self,
        address: RegistryAddress,
        schema: RegisteredSchema,
        *,
        is_key: bool = False,
        message: str | None = None,
        name: str = "value",
    ) -> None:
        self._reader = Reader(address, schema, message=message, is_key=is_key)
        self._writer = Writer(schema, message)
        shape = shape_of(schema, message)
        kind: Any = shape.type
        self.is_struct = pt.is_struct(kind)
        self.fields: Sequence[Field] = tuple(kind) if self.is_struct else (shape.field(name),)
        self._by_name = {field.name: field for field in self.fields}
        self._header = KEY_HEADER if is_key else VALUE_HEADER
        self._programs: dict[int, Program | Tree | None] = {}

    @property
    def schema(self) -> RegisteredSchema:
        """The schema of the values."""
        return self._reader.schema

    def decode(self, payloads: Array, headers: Array | None, wanted: Sequence[str]) -> Decoded:
        fields = [self._by_name[name] for name in wanted]
        if not fields:
            return Decoded([])
        ids = schema_ids(payloads)
        if headers is not None:
            ids[_rows_with(headers, self._header)] = OTHER
        named = ids[ids != 0]
        if not len(named):
            return Decoded([pa.nulls(len(payloads), field.type) for field in fields])
        ids[ids == 0] = named[0]  # a null is null by any schema
        found, counts = np.unique(ids, return_counts=True)
        if len(found) > MOST_IDS:  # anybody who writes to the topic can name many; the rare ones are decoded one by one
            ids[~np.isin(ids, found[np.argsort(counts)[-MOST_IDS + 1 :]])] = OTHER
            found = np.unique(ids)
        if len(found) == 1:
            return self._decode(int(found[0]), payloads, headers, fields)
        rows = [np.flatnonzero(ids == each) for each in found]
        parts = [
            self._decode(
                int(each), payloads.take(pa.array(some)), None if headers is None else headers.take(pa.array(some)), fields
            )
            for each, some in zip(found, rows, strict=True)
        ]
        return _merged(parts, rows, len(payloads))

    def _decode(self, schema_id: int, payloads: Array, headers: Array | None, fields: Sequence[Field]) -> Decoded:
        """Columns of payloads with the same id, or without one."""
        if schema_id != OTHER and self.is_struct:
            if self._reader.schema.schema_type == "JSON" and self._is_json(schema_id):
                from barnabas.tables.json_format import decode_json

                return decode_json(fields, payloads, PREFIX)
            program = self._program(schema_id) if self._reader.schema.schema_type == "AVRO" else None
            if program is not None:
                return by_slices(partial(self._decode_avro, program, fields), payloads, headers, program.width(payloads))
        return self._decode_each(payloads, headers, fields)

    def _decode_avro(self, program: Program | Tree, fields: Sequence[Field], payloads: Array, headers: Array | None) -> Decoded:
        from barnabas.tables.avro_columns import decode_avro

        columns, later = decode_avro(program, self.fields, fields, payloads, PREFIX)
        if not len(later):
            return Decoded(columns)
        rows = pa.array(later)
        others = self._decode_each(payloads.take(rows), None if headers is None else headers.take(rows), fields)
        return replaced(columns, later, others)

    def _decode_each(self, payloads: Array, headers: Array | None, fields: Sequence[Field]) -> Decoded:
        with _lock:
            found = decode(self._reader, payloads, headers)
        values: Any = found.field(VALUE)
        reasons = found.field(REASON)
        columns = [pc.struct_field(values, field.name) for field in fields] if self.is_struct else [values]
        return Decoded(columns, reasons if reasons.null_count < len(reasons) else None)

    def _program(self, schema_id: int) -> Program | Tree | None:
        if schema_id not in self._programs:
            writer = self._schema(schema_id)
            if writer is None:
                return None  # it may be registered later
            if len(self._programs) >= _PROGRAMS:
                self._programs.clear()
            self._programs[schema_id] = _compiled(writer, self._reader.schema, self.fields)
        return self._programs[schema_id]

    def _is_json(self, schema_id: int) -> bool:
        schema = self._schema(schema_id)
        return schema is not None and schema.schema_type == "JSON"

    def _schema(self, schema_id: int) -> RegisteredSchema | None:
        with _lock:
            try:
                return registered_schemas(self._reader.address).get(schema_id, self._reader.context)
            except SchemaDataError:
                return None

    def payload_of(self, column: str, value: Any) -> bytes | None:
        return None  # each version of the schema has its own payload

    def encode(self, batch: pa.RecordBatch, deleted: Array | None = None) -> Array:
        columns = columns_for(self.fields, batch)
        data: Any = columns[0]
        if self.is_struct:  # the fields of a deleted row may be null although the schema requires them
            mask = pc.fill_null(deleted, False) if deleted is not None and pc.any(deleted).as_py() else None
            data = pa.StructArray.from_arrays(columns, fields=list(self.fields), mask=mask)
        try:
            return without_deleted(encode(self._writer, data), deleted)
        except SchemaDataError as error:
            raise TableError(str(error)) from None


def registered_format(address: RegistryAddress, schema_id: int) -> RegisteredFormat:
    """The format of values with the schema of an id; a process remembers it. Raises TableError, RegistryError, RegistryUnreachable."""
    known = address, schema_id
    found = _formats.get(known)
    if found is None:
        try:
            with _lock:
                schema = registered_schemas(address).get(schema_id)
            found = RegisteredFormat(address, schema)
        except SchemaDataError as error:
            raise TableError(str(error)) from None
        if len(_formats) >= _KEPT_FORMATS:
            _formats.clear()
        _formats[known] = found
    return found


_formats: dict[tuple[RegistryAddress, int], RegisteredFormat] = {}
_KEPT_FORMATS = 256


def newest(address: RegistryAddress, topic: str, *, is_key: bool = False) -> RegisteredSchema:
    """The newest schema of the subject of a topic's values or keys. Raises SchemaDataError, RegistryError, RegistryUnreachable."""
    with _lock:
        return registered_schemas(address).latest(topic_name(topic, is_key, None))


def schema_ids(payloads: Array) -> npt.NDArray[np.int64]:
    """The id in each payload; 0 for a null, OTHER for a payload without an id."""
    data, ends = binary_parts(payloads)
    ids = np.full(len(payloads), OTHER, np.int64)
    if payloads.null_count:
        ids[payloads.is_null().to_numpy(zero_copy_only=False)] = 0
    begins = ends[:-1]
    rows = np.flatnonzero((np.diff(ends) >= PREFIX) & (ids == OTHER))
    at = begins[rows].astype(np.intp)
    is_framed = data[at] == 0
    rows, at = rows[is_framed], at[is_framed]
    number = np.zeros(len(at), np.int64)
    for step in range(1, PREFIX):
        number = (number << 8) | data[at + step]
    ids[rows] = np.where(number == 0, OTHER, number)  # ids begin at 1
    return ids


def _rows_with(headers: Array, name: str) -> Rows:
    """The rows with a header of this name."""
    names: Any = pc.struct_field(headers.flatten(), "key")
    is_equal: Any = pc.equal(names, pa.scalar(name))
    if not pc.any(is_equal).as_py():
        return np.zeros(0, np.intp)
    is_named = is_equal.to_numpy(zero_copy_only=False)  # names are never null
    parents: Any = pc.list_parent_indices(headers)
    rows: Rows = parents.to_numpy()[is_named]  # they rise
    return rows[np.diff(rows, prepend=-1) > 0]


def _compiled(writer: RegisteredSchema, reader: RegisteredSchema, fields: Sequence[Field]) -> Program | Tree | None:
    from barnabas.schemas.avro_codec import parse
    from barnabas.tables.avro_program import compile_program
    from barnabas.tables.avro_tree import compile_tree

    if writer.schema_type != "AVRO":
        return None
    try:
        ours = parse(writer)
        theirs = ours if writer.is_same(reader) else parse(reader)
        return compile_program(ours, theirs, fields) or compile_tree(ours, theirs, fields)
    except SchemaDataError:
        return None


def _merged(parts: Sequence[Decoded], rows: Sequence[Rows], count: int) -> Decoded:
    """The parts, each of which has some of the rows, in the order of the rows."""
    places = np.empty(count, np.intp)
    places[np.concatenate(rows)] = np.arange(count)
    taken: Array = pa.array(places)
    whole = joined(parts, [len(each) for each in rows])
    return Decoded([column.take(taken) for column in whole.columns], None if whole.reasons is None else whole.reasons.take(taken))
