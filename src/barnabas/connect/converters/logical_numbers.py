"""Dates and times as the numbers that a format has for them, and back: casts through types in between.

Structs, lists and maps are cast with what is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

types: Any = pa.types
Chain = Callable[[Any, Any], Sequence[Any]]  # the types through which one type becomes another; none: it stays
MILLIS: Any = pa.timestamp("ms", "UTC")
TIME: Any = pa.time32("ms")


def steps_of(kind: Any, target: Any, chain: Chain) -> list[Any]:
    """The types through which a type becomes another one."""
    if types.is_struct(kind) and types.is_struct(target):
        known = {each.name: each.type for each in target}
        parts = [steps_of(each.type, known.get(each.name, each.type), chain) for each in kind]
        fields = list(kind)
        return [
            pa.struct([field.with_type(_at(part, step, field.type)) for field, part in zip(fields, parts, strict=True)])
            for step in range(max(map(len, parts), default=0))
        ]
    if types.is_list(kind) and types.is_list(target):
        items = steps_of(kind.value_type, target.value_type, chain)
        return [pa.list_(kind.value_field.with_type(each)) for each in items]
    if types.is_map(kind) and types.is_map(target):
        items = steps_of(kind.item_type, target.item_type, chain)
        return [pa.map_(kind.key_field, kind.item_field.with_type(each)) for each in items]
    return list(chain(kind, target))


def _at(part: Sequence[Any], step: int, kind: Any) -> Any:
    return part[min(step, len(part) - 1)] if part else kind


def avro_numbers(kind: Any, target: Any) -> Sequence[Any]:
    """Times of day as the codec of Avro takes them: milliseconds in 32 bits, or microseconds in 64."""
    if not types.is_time(kind):
        return ()
    return {pa.int32(): (TIME, pa.int32()), pa.int64(): (pa.time64("us"), pa.int64())}.get(target, ())


def json_numbers(kind: Any, target: Any) -> Sequence[Any]:
    """Days, and milliseconds of a day or since 1970: the integers of JSON Schema."""
    if not types.is_integer(target):
        return ()
    if types.is_time(kind):
        return (TIME, pa.int32(), target)
    if types.is_date(kind):
        return (pa.date32(), pa.int32(), target)
    return (MILLIS, pa.int64()) if types.is_timestamp(kind) else ()


LOGICAL_OF: Mapping[str, Any] = {"Date": pa.date32(), "Time": TIME, "Timestamp": MILLIS}
