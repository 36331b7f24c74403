"""Columns whose values within structs, lists and maps are converted, and decimals as the integers that formats have for them."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.converters.json_schema import PRECISION

types: Any = pa.types
MOST_DIGITS = 76  # of a decimal of Arrow
_WIDE = Context(prec=MOST_DIGITS)
Reasons = MutableMapping[int, str]  # why rows could not be converted
Leaf = Callable[[Any, Any], tuple[Any, dict[int, str]]]  # a column and its type to be: the column, and reasons by place


def decimal_type(precision: int | None, scale: int) -> Any:
    """The type of decimals that have so many digits; None: as many as Kafka Connect's have here.

    Raises:
        ValueError: a scale or digits that no decimal of Arrow has.
    """
    if abs(scale) > MOST_DIGITS:
        raise ValueError(f"the scale {scale} is beyond {MOST_DIGITS}")
    digits = min(precision or PRECISION, MOST_DIGITS)
    return pa.decimal128(digits, scale) if digits <= PRECISION else pa.decimal256(digits, scale)


def converted(column: Any, target: Any, leaf: Leaf, bad: Reasons, rows: Any = None) -> Any:
    """The column with the types of another one.

    Args:
        leaf: converts values that are no struct, list or map, and structs that become none.
        bad: gets the reasons of rows whose values do not fit; these are null.
        rows: the number of the row of each value; None: the place is the row.
    """
    kind = column.type
    if kind == target:
        return column if kind.equals(target, check_metadata=True) else _renamed(column, target)
    if rows is None:
        rows = np.arange(len(column))
    if types.is_struct(kind) and types.is_struct(target):
        parts = zip(column.flatten(), target, strict=True)
        arrays = [converted(values, field.type, leaf, bad, rows) for values, field in parts]
        return pa.StructArray.from_arrays(arrays, fields=list(target), mask=column.is_null())
    if types.is_list(kind) and types.is_list(target):
        items = converted(column.flatten(), target.value_type, leaf, bad, rows[pc.list_parent_indices(column).to_numpy()])
        return _list(column, items, target)
    if types.is_map(kind) and types.is_map(target):
        entries = column.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
        flat = entries.flatten()
        keys, values = flat.flatten()
        items = converted(values, target.item_type, leaf, bad, rows[pc.list_parent_indices(entries).to_numpy()])
        return pa.MapArray.from_arrays(_ends(pc.list_value_length(entries)), keys, items, mask=column.is_null()).cast(target)
    found, reasons = leaf(column, target)
    bad.update({int(rows[at]): reason for at, reason in reasons.items()})
    return found


def along(kind: Any, target: Any, is_changed: Callable[[Any, Any], bool]) -> Any:
    """The type that values of a type get for a format: that of the format where it is another one, else their own."""
    if types.is_struct(kind) and types.is_struct(target):
        known = {each.name: each.type for each in target}
        return pa.struct([each.with_type(along(each.type, known.get(each.name, each.type), is_changed)) for each in kind])
    if types.is_list(kind) and types.is_list(target):
        return pa.list_(kind.value_field.with_type(along(kind.value_type, target.value_type, is_changed)))
    if types.is_map(kind) and types.is_map(target):
        made: Any = kind.item_field.with_type(along(kind.item_type, target.item_type, is_changed))
        return pa.map_(kind.key_field, made)
    return target if is_changed(kind, target) else kind


def _renamed(column: Any, target: Any) -> Any:
    return column.cast(target)


def _ends(lengths: Any) -> Any:
    return pa.array(np.concatenate([[0], np.cumsum(pc.fill_null(lengths, 0).to_numpy())]), pa.int32())


def _list(column: Any, items: Any, target: Any) -> Any:
    return pa.ListArray.from_arrays(_ends(pc.list_value_length(column)), items, type=target, mask=column.is_null())


def unscaled(column: Any) -> list[int | None]:
    """The numbers of decimals without their points."""
    width = column.type.bit_width // 8
    _, data = column.buffers()
    begin = column.offset * width
    return [
        int.from_bytes(data[begin + at * width : begin + (at + 1) * width], "little", signed=True) if is_valid else None
        for at, is_valid in enumerate(column.is_valid().to_pylist())
    ]


def decimals(values: Sequence[Decimal | None], kind: Any) -> tuple[Any, dict[int, str]]:
    """A column of decimals, and the reasons of the values that have more digits than its type."""
    unit = Decimal(1).scaleb(-kind.scale)
    found: list[Decimal | None] = []
    bad: dict[int, str] = {}
    for at, each in enumerate(values):
        fits = None if each is None else _exact(each, unit, kind.precision)
        if each is not None and fits is None:
            bad[at] = f"{str(each)[:100]} does not fit to a decimal of {kind.precision} digits with the scale {kind.scale}"
        found.append(fits)
    return pa.array(found, kind), bad


def _exact(value: Decimal, unit: Decimal, precision: int) -> Decimal | None:
    try:
        found = value.quantize(unit, context=_WIDE)
    except InvalidOperation:
        return None
    return found if found == value and len(found.as_tuple().digits) <= precision else None


def exact_decimal(number: int, scale: int) -> Decimal:
    """A decimal of its digits, however many there are."""
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))
