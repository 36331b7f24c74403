"""Texts of JSON objects as a column, by Arrow's parser and without a Python object for each row.

It takes the batches that most topics have: one object a record, all with the same fields of the same types. It declines all others, and
whatever the general way of `json_converter.py` might read in another way; that one says what a text means. Two things may differ without a
schema: fields have the order of the rows whose types were looked at, and `-0` among floats keeps its sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.types as pt

from barnabas.connect.converters.json_values import lacking

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array

FEW_ROWS = 512  # so many take about as long one by one
LEAST_BLOCK = 1 << 20  # bytes that the parser takes at once; a row must fit
MOST_BYTES = 1 << 30  # of a batch
MOST_EXACT: dict[Any, float] = {pa.float32(): 2.0**24, pa.float64(): 2.0**53}  # up to these a float holds each integer
BEGIN, END, LINE_FEED = b"{}\n"


def parsed(payloads: Array, kind: Any, unexpected: Literal["error", "ignore"]) -> Array | None:
    """The structs that texts are, null for a null; None if they must be read one by one.

    Args:
        payloads: binary.
        kind: of the structs.
        unexpected: what becomes of a field that the kind lacks: the batch is declined, or the field is left out.
    """
    if len(payloads) < FEW_ROWS or not (pt.is_struct(kind) and kind.num_fields and _is_readable(kind)):
        return None
    there: Any = payloads.drop_null() if payloads.null_count else payloads
    if not len(there) or there.nbytes > MOST_BYTES:
        return None
    longest = _longest_object(there)
    if longest is None:
        return None
    try:
        lines: Any = pc.binary_join_element_wise(there.cast(pa.string()), "\n", "")  # the cast checks UTF-8
        reader: Any = pa.BufferReader(lines.buffers()[2])
        table = pj.read_json(
            reader,
            pj.ReadOptions(use_threads=False, block_size=max(LEAST_BLOCK, 2 * longest)),
            pj.ParseOptions(explicit_schema=pa.schema(list(kind)), unexpected_field_behavior=unexpected),
        )
    except pa.ArrowException:
        return None
    # each text begins and ends as an object does, and there are as many objects as texts: so each text is one object
    if table.num_rows != len(there) or table.column_names != [each.name for each in kind]:
        return None
    found: Any = table.combine_chunks().to_struct_array()
    found = _of_type(found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found, kind)
    if lacking(found) is not None or _are_inexact(found):
        return None
    whole: Array = _spread(found, payloads) if payloads.null_count else found
    return whole


def _is_readable(kind: Any) -> bool:
    """Whether the parser reads a type as the general way does. Names of fields that are there twice are not for it."""
    if pt.is_struct(kind):
        names = [each.name for each in kind]
        return bool(names) and len(set(names)) == len(names) and all(_is_readable(each.type) for each in kind)
    if pt.is_list(kind):
        return _is_readable(kind.value_type)
    return bool(
        pt.is_integer(kind) or pt.is_boolean(kind) or pt.is_string(kind) or kind in {pa.float32(), pa.float64(), pa.null()}
    )


def _longest_object(texts: Any) -> int | None:
    """The bytes of the longest text, if all of them are on one line each, from brace to brace."""
    _, ends, data = texts.buffers()
    places = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    sizes = np.diff(places)
    if data is None or sizes.min() < len("{}"):
        return None
    found = np.frombuffer(data, np.uint8)
    are_objects = (found[places[:-1]] == BEGIN).all() and (found[places[1:] - 1] == END).all()
    return int(sizes.max()) if are_objects and not (found[places[0] : places[-1]] == LINE_FEED).any() else None


def _spread(found: Any, payloads: Any) -> Any:
    """The structs at the rows that have a text."""
    valid: Any = pc.is_valid(payloads)
    numbers: Any = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    return found.take(pc.if_else(valid, numbers, pa.scalar(None, pa.int64())))


def _of_type(found: Any, kind: Any) -> Any:
    """The same values in a type whose fields have the nullability and the metadata of the schema, which the parser forgets."""
    if pt.is_struct(kind):
        fields = [_of_type(found.field(at), each.type) for at, each in enumerate(kind)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=found.is_null())
    if pt.is_list(kind):
        return pa.Array.from_buffers(kind, len(found), found.buffers()[:2], children=[_of_type(found.values, kind.value_type)])
    return found


def _are_inexact(found: Any) -> bool:
    """Whether a float may come from an integer that it does not hold, or from a number beyond its range."""
    kind = found.type
    if pt.is_struct(kind):
        return any(_are_inexact(found.field(at)) for at in range(kind.num_fields))
    if pt.is_list(kind):
        return _are_inexact(found.values)
    most: Any = MOST_EXACT.get(kind)
    return most is not None and bool(pc.any(pc.greater(pc.abs(found), most), min_count=0).as_py())
