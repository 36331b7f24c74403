"""Reads the fields of a record of Kafka's metadata log in the flexible encoding (KIP-482)."""

from __future__ import annotations

import struct
from uuid import UUID

FLOAT64 = struct.Struct(">d")


class Reader:
    """Reads one field after the other; raises ValueError if the bytes end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._data):
            raise ValueError(f"it ends within a field at byte {self._at}")
        self._at += size
        return self._data[self._at - size : self._at]

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise ValueError(f"a varint at byte {self._at} is too long")

    def int8(self) -> int:
        return int.from_bytes(self.take(1), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self.take(8), "big", signed=True)

    def uuid(self) -> UUID:
        return UUID(bytes=self.take(16))

    def text(self) -> str | None:
        size = self.unsigned() - 1
        return None if size < 0 else self.take(size).decode()

    def string(self) -> str:
        found = self.text()
        if found is None:
            raise ValueError(f"there is no text at byte {self._at}")
        return found

    def blob(self) -> bytes:
        return self.take(self.unsigned() - 1)

    def float64(self) -> float:
        return float(FLOAT64.unpack(self.take(8))[0])

    def count(self) -> int:
        """The number of elements of an array, 0 for a null array; a count that is too large fails when the elements are read."""
        return max(self.unsigned() - 1, 0)

    def int32s(self) -> tuple[int, ...]:
        count = max(self.unsigned() - 1, 0)
        return struct.unpack(f">{count}i", self.take(4 * count))

    def tagged(self) -> dict[int, bytes]:
        return {self.unsigned(): self.take(self.unsigned()) for _ in range(self.unsigned())}
