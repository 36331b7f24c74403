"""Whether a table would write some keys with the same bytes, without Arrow: its calls cost more than a few keys in plain Python. No I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow.types as pt

from barnabas.tables.column_types import mark_of
from barnabas.tables.formats import ColumnFormat, Raw
from barnabas.tables.scalar_format import ScalarFormat

_NUMBER = re.compile(rb"0|-?[1-9][0-9]{0,18}")


def are_canonical(layout: ColumnFormat, keys: Sequence[bytes | None]) -> bool | None:
    """Whether the format writes these keys with the same bytes; None if the general way must tell."""
    if not isinstance(layout, (ScalarFormat, Raw)):
        return None
    (field,) = layout.fields
    kind = field.type
    if mark_of(field):
        return None
    if pt.is_integer(kind):
        signed = not pt.is_unsigned_integer(kind)
        bits = kind.bit_width - signed
        low, high = -(1 << bits) if signed else 0, (1 << bits) - 1
        return all(key is None or (_NUMBER.fullmatch(key) is not None and low <= int(key) <= high) for key in keys) or None
    if pt.is_binary(kind):
        return True
    return (all(key is None or _is_text(key) for key in keys) or None) if pt.is_string(kind) else None


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True
