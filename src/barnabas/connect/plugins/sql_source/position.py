"""Where a source is in a table: the greatest number and the latest time so far, as Confluent's offsets have them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.connect.api import Offset

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Position(NamedTuple):
    """See the module. Times are in UTC."""

    number: int | None = None
    time: datetime.datetime | None = None

    @property
    def offset(self) -> Offset:
        """As it is stored."""
        found: dict[str, Any] = {}
        if self.number is not None:
            found["incrementing"] = self.number
        if self.time is not None:
            micros = (self.time - EPOCH) // datetime.timedelta(microseconds=1)
            found |= {"timestamp": micros // 1000, "timestamp_nanos": micros % 1_000_000 * 1000}
        return found


def position_of(offset: Mapping[str, Any]) -> Position:
    """The position that an offset has."""
    time = None
    if offset.get("timestamp") is not None:
        second = offset["timestamp"] // 1000
        nanos = offset.get("timestamp_nanos", offset["timestamp"] % 1000 * 1_000_000)
        time = EPOCH + datetime.timedelta(seconds=second, microseconds=nanos // 1000)
    return Position(offset.get("incrementing"), time)
