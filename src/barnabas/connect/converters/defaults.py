"""The defaults of fields of a column's type, in place of nulls.

Kafka Connect's converters put the default of a field in the place of null, unless a setting says that null stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.converters.json_schema import DEFAULT
from barnabas.connect.converters.json_values import fitting

NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_KEPT = 1024
IGNORED = "ignore.default.for.nullables"  # the setting of converters with schemas in a registry


class FieldDefault(NamedTuple):
    """What stands in place of nulls in a field of a struct.

    Args:
        place: of the field.
        value: an array of its default; None: it has none.
        inner: of the fields of a field that is a struct.
    """

    place: int
    value: Any
    inner: Defaults


Defaults = Sequence[FieldDefault]


class Filler:
    """Puts defaults in place of nulls in columns, most of which have the type of the one before."""

    def __init__(self) -> None:
        self._known: tuple[Any, Defaults] = pa.null(), ()

    def filled(self, column: Any) -> Any:
        """The column with defaults in place of nulls."""
        kind, defaults = self._known
        if not column.type.equals(kind, check_metadata=True):
            defaults = defaults_of(column.type)
            self._known = column.type, defaults
        return filled(column, defaults)


def defaults_of(kind: Any) -> Defaults:
    """The defaults in a type. A default that does not fit to its type is none."""
    if not pa.types.is_struct(kind):
        return ()
    found = [FieldDefault(at, _default(field), defaults_of(field.type)) for at, field in enumerate(kind)]
    return [each for each in found if each.value is not None or each.inner]


def _default(field: Any) -> Any:
    text = (field.metadata or {}).get(DEFAULT)
    return None if text is None or pa.types.is_nested(field.type) else _value(text, field.type)


@lru_cache(_KEPT)
def _value(text: bytes, kind: pa.DataType) -> Any:
    made: Any
    value = msgspec.json.decode(text)
    if pa.types.is_floating(kind) and value in NOT_FINITE:
        value = float(value)
    _, made = fitting([0], [value], pa.field("value", kind), {})
    return made if len(made) and made.null_count == 0 else None


def filled(column: Any, defaults: Defaults) -> Any:
    """The column with defaults in place of nulls, but not within structs that are null."""
    if not defaults or column.null_count == len(column):
        return column
    arrays = [column.field(at) for at in range(column.type.num_fields)]
    before = list(arrays)
    for place, value, inner in defaults:
        found = filled(arrays[place], inner)
        arrays[place] = pc.fill_null(found, value[0]) if value is not None and found.null_count else found
    if all(one is other for one, other in zip(arrays, before, strict=True)):
        return column
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(arrays, fields=list(column.type), mask=mask)
