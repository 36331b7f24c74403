"""The base of every generated message class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

ZERO_UUID = UUID(int=0)

OPEN_END = 32767  # as a last version: no upper bound
Buffer = bytes | bytearray | memoryview


class FieldSpec(NamedTuple):
    """One field of a message: its type on the wire, and the versions that have it."""

    name: str
    wire_type: str  # "struct" for a nested message
    is_array: bool = False
    first_version: int = 0
    last_version: int = OPEN_END
    first_nullable_version: int = OPEN_END
    last_nullable_version: int = OPEN_END
    tag: int | None = None  # None: not a tagged field
    item: Any = None  # class of the nested message or the array element; None for a primitive


class Message:
    """A protocol message, or a part of one, with the fields of all its versions.

    A reader keeps the defaults of fields that a version lacks, and a writer leaves these fields out. Times are integers in
    milliseconds, error codes are plain integers, arrays are sequences (lists when read), and record data is a buffer.
    """

    __slots__: tuple[str, ...] = ()
    FIRST_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_comparable(getattr(self, name)) == _comparable(getattr(other, name)) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # messages are mutable

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class WrittenOnce(list[Any]):
    """Structs of an array that many messages contain; the bytes are kept after the first writing, by version. Neither the list
    nor its structs may change."""

    __slots__ = ("written",)

    def __init__(self, items: Iterable[Message]) -> None:
        super().__init__(items)
        self.written: dict[int, bytes] = {}


def _comparable(value: object) -> object:
    """The value to compare: a tuple becomes a list, so that arrays compare by their items."""
    return list(value) if isinstance(value, tuple) else value
