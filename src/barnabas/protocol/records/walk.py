"""Walking over the records of a batch, one by one: what `scan` answers, in a form that mypyc turns into machine code.

The package's build compiles a copy of this file where a C compiler is at hand (`tools/build_hook.py`); `scan` uses the compiled copy if
it is there and of this very text. Then a record costs 10 ns, whatever it looks like; interpreted it would be 2 us, so without it `scan`
has other ways and never comes here.

Rules
  1. As all of `scan`: says yes only to what is well-formed, and nothing to what is wrong or rare (varints longer than any sane batch
     needs).
  2. Nothing but integers and bytes, annotated, so that no Python object is made on the way.

Ugly: every varint is read in place, since a function that returns two integers is a slow one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import i64


def walk_records(data: bytes, count: i64) -> tuple[i64, i64, bool] | None:  # noqa: C901 (one loop for speed)
    """Smallest and largest timestamp delta (or 0) and whether a key is null, if `count` records fill `data`; None says nothing.

    Raises:
        IndexError: the records do not end with the data.
    """
    position: i64 = 0
    index: i64 = 0
    min_delta: i64 = 0
    max_delta: i64 = 0
    has_null_key = False
    while index < count:
        byte: i64 = data[position]
        value: i64 = byte & 0x7F
        position += 1
        shift: i64 = 7
        while byte >= 0x80:
            if shift > 21:
                return None
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        if value & 1:
            return None
        end: i64 = position + (value >> 1)

        position += 1  # attributes
        byte = data[position]
        value = byte & 0x7F
        position += 1
        shift = 7
        while byte >= 0x80:
            if shift > 49:
                return None
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        timestamp_delta: i64 = (value >> 1) ^ -(value & 1)
        if timestamp_delta < min_delta:
            min_delta = timestamp_delta
        elif timestamp_delta > max_delta:
            max_delta = timestamp_delta

        byte = data[position]
        value = byte & 0x7F
        position += 1
        shift = 7
        while byte >= 0x80:
            if shift > 21:
                return None
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        if value != index << 1:
            return None

        # Key and value, then the headers: their number, and for each a key and a value
        lengths_left: i64 = 2
        while lengths_left:
            byte = data[position]
            value = byte & 0x7F
            position += 1
            shift = 7
            while byte >= 0x80:
                if shift > 21:
                    return None
                byte = data[position]
                position += 1
                value |= (byte & 0x7F) << shift
                shift += 7
            if value & 1:
                if value != 1:
                    return None
                if lengths_left == 2:
                    has_null_key = True
            else:
                position += value >> 1
            lengths_left -= 1

        byte = data[position]
        value = byte & 0x7F
        position += 1
        shift = 7
        while byte >= 0x80:
            if shift > 21:
                return None
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        if value & 1:
            return None
        lengths_left = value  # zigzag has doubled it: a key and a value for each header
        while lengths_left:
            byte = data[position]
            value = byte & 0x7F
            position += 1
            shift = 7
            while byte >= 0x80:
                if shift > 21:
                    return None
                byte = data[position]
                position += 1
                value |= (byte & 0x7F) << shift
                shift += 7
            if value & 1:
                if value != 1 or not lengths_left & 1:  # a header's key cannot be null
                    return None
            else:
                position += value >> 1
            lengths_left -= 1

        if position != end:
            return None
        index += 1
    return (min_delta, max_delta, has_null_key) if position == len(data) else None
