"""What a converter is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    Array = pa.Array[Any]

Metadata = Mapping[bytes, bytes] | None  # of a column: what `json_schema.py` knows of its schema beside its type


class Converted(NamedTuple):
    """A converted column.

    Args:
        column: null where a row could not be converted.
        bad: reasons by number of the row.
        metadata: of the column.
    """

    column: Array
    bad: Mapping[int, str] = {}
    metadata: Metadata = None


class Converter(Protocol):
    """Converts keys or values. Made with the configs below its prefix, such as `value.converter.`, and whether it is for keys."""

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None: ...

    def decode(self, payloads: Array) -> Converted:
        """Columns of binary payloads."""

    def encode(self, column: Array, topic: str, metadata: Metadata = None) -> Array:
        """Binary payloads for a topic. Raises ConnectError for a type that it cannot write.

        Args:
            metadata: of the column, such as the name of its schema.
        """
