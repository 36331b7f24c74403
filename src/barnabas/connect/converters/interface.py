"""What a converter is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    Array = pa.Array[Any]


class Converted(NamedTuple):
    """A converted column.

    Args:
        column: null where a row could not be converted.
        bad: reasons by number of the row.
    """

    column: Array
    bad: Mapping[int, str] = {}


class Converter(Protocol):
    """Converts keys or values. Made with the configs below its prefix, such as `value.converter.`, and whether it is for keys."""

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None: ...

    def decode(self, payloads: Array) -> Converted:
        """Columns of binary payloads."""

    def encode(self, column: Array, topic: str) -> Array:
        """Binary payloads for a topic. Raises ConnectError for a type that it cannot write."""
