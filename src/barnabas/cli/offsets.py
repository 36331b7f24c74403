"""Positions in partitions: parses their notation and asks a cluster for their offsets."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from barnabas.cli.connection import reason_of
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.types import Text, checked
from barnabas.digits import INT64, is_number

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

Partition = tuple[str, int]

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[smhdw])")
MOST_TIME_BYTES = 100
ISO_DURATION = re.compile(
    r"P(?:(?P<w>[0-9]+)W)?(?:(?P<d>[0-9]+)D)?(?:T(?:(?P<h>[0-9]+)H)?(?:(?P<m>[0-9]+)M)?(?:(?P<s>[0-9]+(?:\.[0-9]+)?)S)?)?",
    re.IGNORECASE,
)


class PositionKind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    FROM_END = "from end"
    TIMESTAMP = "timestamp"


NUMBERED = {"-": PositionKind.FROM_END, "@": PositionKind.TIMESTAMP}  # prefix of a number -> unit of the number


class Position(Struct, frozen=True):
    """A position for any partition; `kind` says whether `value` is an offset, a count of records or milliseconds since
    1970."""

    kind: PositionKind
    value: int = 0


def parse_scope(text: str) -> tuple[str, list[int]]:
    """`topic` or `topic:0,1` as the name and the partitions; raises BadInput."""
    name, colon, numbers = text.partition(":")
    partitions = numbers.split(",") if colon else []
    if not name or not all(map(is_number, partitions)):
        raise BadInput(f"{text!r} is not like topic or topic:0,1")
    return name, list(map(int, partitions))


def parse_position(text: str, now_ms: int) -> Position:
    """Parses a position.

    earliest (start, beginning), latest (end), 42 (offset), -10 (ten before the end), -5m (five minutes ago), @1700000000000
    (milliseconds), 2026-01-31, 2026-01-31T12:00:00+01:00 (without a zone: the local one).

    Raises:
        BadInput: the text is none of these.
    """
    word = text.strip().lower()
    if word in {"earliest", "start", "beginning"}:
        return Position(PositionKind.EARLIEST)
    if word in {"latest", "end"}:
        return Position(PositionKind.LATEST)
    if is_number(word, INT64):
        return Position(PositionKind.OFFSET, int(word))
    if is_number(word[1:], INT64) and word[0] in NUMBERED:
        return Position(NUMBERED[word[0]], int(word[1:]))
    if word.startswith("-"):
        return Position(PositionKind.TIMESTAMP, now_ms - parse_duration_ms(word[1:], most_ms=now_ms))
    return Position(PositionKind.TIMESTAMP, parse_datetime_ms(text))


def parse_duration_ms(text: str, *, most_ms: int = INT64) -> int:
    """`90s`, `5m`, `1h30m` or ISO 8601 `PT1H30M` in milliseconds; raises BadInput, also for more than `most_ms`."""
    word = text.strip()
    iso = ISO_DURATION.fullmatch(word)
    if iso and any(iso.groupdict().values()):
        parts = [(amount, unit) for unit, amount in iso.groupdict().items() if amount]
    else:
        parts = DURATION.findall(word.lower())
        if not parts or "".join(a + u for a, u in parts) != word.lower():
            raise BadInput(f"{text!r} is not a duration such as 90s, 5m, 1h30m or PT1H30M")
    found_ms = sum(float(amount) * UNITS_MS[unit] for amount, unit in parts)
    if found_ms > most_ms:
        raise BadInput(f"{text!r} is too long a duration: it would begin before 1970")
    return int(found_ms)


def parse_datetime_ms(text: str) -> int:
    """An ISO 8601 date or time in milliseconds since 1970; without a zone it is local time. Raises BadInput."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadInput(
            f"{text!r} is not a position: give earliest, latest, an offset, -10, -5m, @milliseconds or a date"
        ) from None
    try:
        found_ms = round(moment.astimezone().timestamp() * 1000)
    except (OverflowError, ValueError, OSError):  # the year is outside the supported range of the time zone
        found_ms = -1
    if found_ms < 0:
        raise BadInput(f"{text!r} is before 1970, the first time that records can have")
    return found_ms


def _position_now(text: str) -> Position:
    return parse_position(text, time.time_ns() // 1_000_000)


def _ago_ms(text: str) -> int:
    now_ms = time.time_ns() // 1_000_000
    return now_ms - parse_duration_ms(text, most_ms=now_ms)


POSITION = Text(_position_now, most_bytes=MOST_TIME_BYTES)
SCOPE = Text(checked(parse_scope))
DATETIME, AGO = (
    Text(parse, most_bytes=MOST_TIME_BYTES) for parse in (parse_datetime_ms, _ago_ms)
)  # both return milliseconds since 1970


def list_offsets(
    admin: AdminClient,
    partitions: Iterable[Partition],
    spec: str | int,
    timeout_s: float,
    *,
    stable: bool = False,
    missing: dict[Partition, str] | None = None,
) -> dict[Partition, int]:
    """The offset of each partition at `spec`: "earliest", "latest", or milliseconds since 1970 (-1 if no record is that new).

    Args:
        stable: as for readers of committed records, "latest" is the start of the first open transaction.
        missing: a dict that gets each partition without an answer, with the reason.

    Raises:
        Failure: there is no answer for a partition, and `missing` is not given.
    """
    from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    level = IsolationLevel.READ_COMMITTED if stable else IsolationLevel.READ_UNCOMMITTED
    kind: dict[str, Callable[[], OffsetSpec]] = {"earliest": OffsetSpec.earliest, "latest": OffsetSpec.latest}
    wanted_offset = OffsetSpec.for_timestamp(spec) if isinstance(spec, int) else kind[spec]()
    request = {TopicPartition(name, partition): wanted_offset for name, partition in partitions}
    if not request:
        return {}
    result = {}
    for where, future in admin.list_offsets(request, request_timeout=timeout_s, isolation_level=level).items():
        try:
            result[where.topic, where.partition] = future.result().offset
        except KafkaException as error:
            if missing is None:
                raise Failure(f"{where.topic}:{where.partition}: {reason_of(error)}") from error
            missing[where.topic, where.partition] = reason_of(error)
    return result


def resolve_positions(
    admin: AdminClient, partitions: Iterable[Partition], position: Position, timeout_s: float, *, stable: bool = False
) -> dict[Partition, int]:
    """The offset of `position` in each partition, clamped to its range [start, end].

    Args:
        stable: the end is the one for readers of committed records; an explicit offset after it stays.
    """
    wanted = list(partitions)
    starts = list_offsets(admin, wanted, "earliest", timeout_s)
    if position.kind is PositionKind.EARLIEST:
        return starts
    ends = list_offsets(admin, wanted, "latest", timeout_s, stable=stable and position.kind is not PositionKind.OFFSET)
    if position.kind is PositionKind.LATEST:
        return ends
    if position.kind is PositionKind.TIMESTAMP:
        found = list_offsets(admin, wanted, position.value, timeout_s)
        return {where: offset if offset >= 0 else ends[where] for where, offset in found.items()}
    if position.kind is PositionKind.OFFSET:
        return {where: min(max(position.value, starts[where]), ends[where]) for where in wanted}
    return {where: max(ends[where] - position.value, starts[where]) for where in wanted}
