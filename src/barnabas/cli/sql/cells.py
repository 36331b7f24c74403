"""The values of columns as text, as the Postgres port writes them.

Columns are Arrow's; this module knows their types by name, so that it need not import pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from typing import Any, TypeAlias

NUMERIC = ("int", "uint", "float", "double", "halffloat", "decimal")
Schema: TypeAlias = Any  # of Arrow
Batch: TypeAlias = Any
Texts = Callable[[Any], Sequence[str | None]]


def is_numeric(kind: Any) -> bool:
    """Whether values of an Arrow type stand at the right."""
    return str(kind).startswith(NUMERIC)


def texts_of(field: Any, zone: tzinfo = UTC) -> Texts:
    """A function that makes texts of a column of this field; null is None.

    Args:
        zone: of timestamps with a time zone.
    """
    from barnabas.sql.postgres.codecs import codec_of
    from barnabas.sql.postgres.messages import TEXT

    codec = codec_of(field, TEXT, zone)

    def texts(column: Any) -> Sequence[str | None]:
        written = None if codec.bulk is None else codec.bulk(column)
        if written is not None:
            found: list[bytes | None] = written.to_pylist()
        else:
            found = [None if each is None else codec.write(each) for each in codec.values(column)]
        return [None if each is None else each.decode(errors="replace") for each in found]

    return texts
