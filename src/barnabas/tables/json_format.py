"""JSON objects as columns. `json_values` has the rules for values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from barnabas.lazy_module import is_loaded
from barnabas.tables.column_types import Field, table_field
from barnabas.tables.formats import Array, Decoded, by_slices, columns_for, replaced, without_deleted
from barnabas.tables.json_columns import KERNELS, decode_objects
from barnabas.tables.json_encoding import FEW_ROWS, rows_of
from barnabas.tables.json_values import row_converter


class JsonFormat:
    """A JSON object in each payload, whose fields are columns.

    Args:
        fields: of any types that tables have; their nullability is not checked.
        names: the names in the objects of columns that have others.

    Raises:
        TableError: a type that tables do not have.
    """

    uses_headers = False

    def __init__(self, fields: Sequence[Field], names: Mapping[str, str] | None = None) -> None:
        self.fields: Sequence[Field] = tuple(table_field(each) for each in fields)
        self._names = dict(names or {})
        self._by_name = {each.name: each.with_name(self.name_of(each.name)) for each in self.fields}

    def name_of(self, column: str) -> str:
        """The name of a column in the objects."""
        return self._names.get(column, column)

    def decode(self, payloads: Array, headers: Array | None, wanted: Sequence[str]) -> Decoded:
        return decode_json([self._by_name[name] for name in wanted], payloads)

    def payload_of(self, column: str, value: Any) -> bytes | None:
        return None  # spaces and other fields may stand around it

    def encode(self, batch: pa.RecordBatch, deleted: Array | None = None) -> Array:
        columns = columns_for(self.fields, batch)
        return without_deleted(rows_of(columns, tuple(self._by_name.values()), batch.num_rows), deleted)


def _behind(payloads: Array, prefix: int) -> Array:
    """The payloads without their first bytes. (`pyarrow.compute.binary_slice` fails for a null.)"""
    if not prefix:
        return payloads
    return pa.array([None if each is None else each[prefix:] for each in payloads.to_pylist()], pa.binary())


def decode_json(fields: Sequence[Field], payloads: Array, prefix: int = 0) -> Decoded:
    """Columns of payloads that have so many bytes before their JSON objects."""
    if not fields:
        return Decoded([])

    if len(payloads) <= FEW_ROWS and not is_loaded(KERNELS):  # to load them would take longer
        return decode_each(fields, _behind(payloads, prefix))

    def decode(some: Array, headers: None) -> Decoded:
        columns, later = decode_objects(fields, some, prefix)
        if not len(later):
            return Decoded(columns)
        others = some.take(pa.array(later))
        return replaced(columns, later, decode_each(fields, _behind(others, prefix)))

    return by_slices(decode, payloads, None, len(fields))


def decode_each(fields: Sequence[Field], payloads: Array) -> Decoded:
    """Columns of the payloads, by the rules of `json_values` for one payload after the other."""
    convert = row_converter(fields)
    found = [convert(payload) for payload in payloads.to_pylist()]
    reasons = [reason for _, reason in found]
    columns = [pa.array([row[number] for row, _ in found], field.type) for number, field in enumerate(fields)]
    return Decoded(columns, pa.array(reasons, pa.string()) if any(reasons) else None)
