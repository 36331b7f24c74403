"""What a table says about the values of a column beside their type: whether there is always one, and what stands there if nobody gives one.

A column that is NOT NULL is required in schemas, so each row has a value there. A row that lacks it, such as an old row of which the server
sends the key alone, has the default of the column, or what Debezium takes for nothing: 0, an empty text, midnight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.converters.json_schema import DEFAULT, NAME, PARAMETERS
from barnabas.connect.converters.json_text import column_values

ZONED = {"io.debezium.time.ZonedTimestamp": "1970-01-01T00:00:00Z", "io.debezium.time.ZonedTime": "00:00:00Z"}


class Filling(NamedTuple):
    """See the module.

    Args:
        is_required: whether the column is NOT NULL.
        default: its default, an array of one value; None: it has none.
    """

    is_required: bool = False
    default: Any = None

    def field(self, name: str, kind: Any, schema: str | None = None, parameters: Mapping[str, str] | None = None) -> Any:
        """The field of the column.

        Args:
            schema: the name of its schema in Kafka Connect.
            parameters: of this schema.
        """
        metadata = {} if schema is None else {NAME: schema.encode()}
        if parameters:
            metadata[PARAMETERS] = msgspec.json.encode(parameters)
        if self.default is not None:
            metadata[DEFAULT] = msgspec.json.encode(column_values(self.default)[0])
        return pa.field(name, kind, nullable=not self.is_required, metadata=metadata or None)

    def filled(self, values: Any, absent: Any, nothing: Callable[[], Any]) -> Any:
        """The values of a column, with one in each row of a required column.

        Args:
            absent: the rows that are not there, a mask.
            nothing: makes an array of the value that stands where there is no default.
        """
        if not self.is_required or values.null_count <= np.count_nonzero(absent):
            return values
        other = nothing() if self.default is None else self.default
        lacking = values.is_null().to_numpy(zero_copy_only=False) & ~np.asarray(absent)
        places = np.where(lacking, len(values), np.arange(len(values)))
        if pa.types.is_nested(values.type):
            return pa.concat_arrays([values, other.cast(values.type)]).take(pa.array(places))
        return pc.if_else(pa.array(lacking), other[0], values)


def decimal_parameters(kind: Any) -> dict[str, str]:
    """The parameters of the schema of a type of decimals."""
    return {"scale": str(kind.scale), "connect.decimal.precision": str(kind.precision)}


def nothing_of(kind: Any, schema: str | None) -> Any:
    """An array of the value that Debezium takes for nothing in a column of a type.

    Args:
        schema: the name of its schema in Kafka Connect.
    """
    if schema in ZONED:
        return pa.array([ZONED[schema]], kind)
    if pa.types.is_list(kind):
        return pa.array([[]], kind)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.array([b""], pa.binary()).cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array([False])
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pa.array([Decimal(0) if pa.types.is_decimal(kind) else 0.0], kind)
    return pa.array([0], pa.int32() if kind.bit_width == 32 and not pa.types.is_integer(kind) else None).cast(kind)
