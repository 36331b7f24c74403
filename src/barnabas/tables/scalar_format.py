"""One value in each payload, as keys mostly have it: a number, a text, a UUID, a date.

Rules
  1. Booleans, whole numbers, UUIDs, dates, text, bytes and JSON have one payload for each value: a number without spaces, `+` or zeros
     before it, a UUID in lower case, a date such as `2026-01-31`. Another spelling does not fit. So a search for a value is a search
     for its payload.
  2. Other types take any spelling that JSON has for them, with or without quotation marks.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from barnabas.lazy_module import LazyModule
from barnabas.tables.column_types import JSON, UUID, Field, mark_of, table_field, type_name
from barnabas.tables.formats import Array, Decoded, Raw, columns_for, replaced, without_deleted
from barnabas.tables.json_columns import column, decode_values
from barnabas.tables.json_encoding import texts_of
from barnabas.tables.json_text import Misfit, parse
from barnabas.tables.json_values import converter

if TYPE_CHECKING:
    from barnabas.tables.kernels import json_spans
else:
    json_spans = LazyModule("barnabas.tables.kernels.json_spans")

_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


class ScalarFormat:
    """One column from the whole payload.

    Args:
        field: its name and type; `column_types` has fields for `json` and `uuid`.

    Raises:
        TableError: a type that tables do not have.
    """

    uses_headers = False

    def __init__(self, field: Field) -> None:
        self._field = table_field(field)
        self.fields: Sequence[Field] = (self._field,)
        self._mark = mark_of(self._field)
        kind = self._field.type
        self._is_bytes = pt.is_binary(kind) or (pt.is_string(kind) and not self._mark)
        self._is_exact = self._is_bytes or bool(self._mark) or pt.is_boolean(kind) or pt.is_integer(kind) or pt.is_date(kind)
        self._class: type = (
            bool if pt.is_boolean(kind) else int if pt.is_integer(kind) else datetime.date if pt.is_date(kind) else str
        )
        self._raw = Raw(self._field.name, kind) if self._is_bytes else None
        self._convert = converter(self._field)

    def decode(self, payloads: Array, headers: Array | None, wanted: Sequence[str]) -> Decoded:
        if not wanted:
            return Decoded([])
        if self._raw is not None:
            return self._raw.decode(payloads, headers, wanted)
        if self._mark == JSON or not self._is_exact:
            return self._json(payloads)
        found = self._at_once(payloads)
        return self._each(payloads) if found is None else Decoded([found])

    def _json(self, payloads: Array) -> Decoded:
        """The column of values that JSON has, by the kernels; other payloads one by one."""
        spans = decode_values(payloads)
        if self._mark != JSON:
            made = column(self._field, spans)
        later = np.flatnonzero(spans.states == json_spans.LATER)
        if self._mark == JSON:
            whole = (
                payloads
                if not len(later)
                else pc.if_else(pa.array(spans.states == json_spans.TAKEN), payloads, pa.scalar(None, pa.binary()))
            )
            made = whole.cast(pa.string())
        return replaced([made], later, self._each(payloads.take(pa.array(later)))) if len(later) else Decoded([made])

    def _at_once(self, payloads: Array) -> Array | None:
        """The column if all payloads fit, by Arrow alone."""
        try:
            texts = payloads.cast(pa.string())
            if self._mark == UUID:
                return texts if pc.all(pc.match_substring_regex(texts, _UUID)).as_py() is not False else None
            values = texts.cast(self._field.type)
        except pa.ArrowInvalid:
            return None
        return values if pc.all(pc.equal(values.cast(pa.string()), texts)).as_py() is not False else None

    def _each(self, payloads: Array) -> Decoded:
        values: list[Any] = []
        reasons: list[str | None] = []
        for payload in payloads.to_pylist():
            value = reason = None
            try:
                value = None if payload is None else self._value(payload)
            except Misfit as misfit:
                reason = str(misfit)
            values.append(value)
            reasons.append(reason)
        return Decoded([pa.array(values, self._field.type)], pa.array(reasons, pa.string()) if any(reasons) else None)

    def _value(self, payload: bytes) -> Any:
        name = self._field.name
        if self._mark == JSON:
            parse(payload)
            return payload.decode()
        try:
            value, text = parse(payload)
        except Misfit:
            try:
                value = payload.decode()
            except UnicodeDecodeError as error:
                raise Misfit(f"byte {error.start} is no UTF-8") from None
            text = value
        found = self._convert(value, text, name)
        exact = (
            datetime.date(1970, 1, 1) + datetime.timedelta(found) if self._class is datetime.date and found is not None else found
        )
        if self._is_exact and self._payload(exact) != payload:
            raise Misfit(f"{name} is {text[:60]}, not {type_name(self._field)} in its only spelling")
        if found is None:
            raise Misfit(f"{name} is null as a text")
        return found

    def payload_of(self, column: str, value: Any) -> bytes | None:
        if self._raw is not None:
            return self._raw.payload_of(column, value)
        if self._mark == UUID and isinstance(value, uuid.UUID):
            value = str(value)
        return self._payload(value) if self._is_exact and type(value) is self._class else None

    def _payload(self, value: Any) -> bytes | None:
        """The payload of an exact type's value."""
        if isinstance(value, bool):
            return b"true" if value else b"false"
        return None if value is None else str(value).encode()

    def encode(self, batch: pa.RecordBatch, deleted: Array | None = None) -> Array:
        (column,) = columns_for(self.fields, batch)
        if self._raw is not None:
            return self._raw.encode(batch, deleted)
        texts = texts_of(column, self._field)
        kind = self._field.type
        is_quoted = self._mark == UUID or pt.is_date(kind) or pt.is_time(kind) or pt.is_timestamp(kind) or pt.is_interval(kind)
        payloads = (pc.utf8_trim(texts, '"') if is_quoted else texts).cast(pa.binary())
        return without_deleted(payloads, deleted)
