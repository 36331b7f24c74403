"""The ways to write a position."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.offsets import Position, PositionKind, list_offsets, parse_datetime_ms, parse_duration_ms, parse_position

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", Position(PositionKind.EARLIEST)),
        ("Beginning", Position(PositionKind.EARLIEST)),
        ("latest", Position(PositionKind.LATEST)),
        ("end", Position(PositionKind.LATEST)),
        ("0", Position(PositionKind.OFFSET, 0)),
        ("42", Position(PositionKind.OFFSET, 42)),
        ("-10", Position(PositionKind.FROM_END, 10)),
        ("-5m", Position(PositionKind.TIMESTAMP, NOW_MS - 300_000)),
        ("-1h30m", Position(PositionKind.TIMESTAMP, NOW_MS - 5_400_000)),
        ("@123", Position(PositionKind.TIMESTAMP, 123)),
        ("1970-01-01T00:00:01+00:00", Position(PositionKind.TIMESTAMP, 1_000)),
    ],
)
def test_positions(text: str, position: Position) -> None:
    assert parse_position(text, NOW_MS) == position


@pytest.mark.parametrize("text", ["", "yesterday", "-5x", "-", "@x", "2026-13-01", "1.5"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_position(text, NOW_MS)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("90s", 90_000), ("1.5h", 5_400_000), ("250ms", 250), ("2d", 172_800_000), ("PT1H30M", 5_400_000), ("P1DT0.5S", 86_400_500)],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "5", "5 parsecs", "m5"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_duration_ms(text)


@given(st.datetimes(min_value=datetime(1980, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - Hypothesis adds tzinfo
def test_moments_keep_their_milliseconds(moment: datetime) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    assert parse_datetime_ms(moment.isoformat()) == round(moment.timestamp() * 1000)


def test_a_partition_that_cannot_be_asked_may_be_left_out() -> None:
    def told(request: dict[TopicPartition, object], **_: object) -> dict[TopicPartition, Future[Any]]:
        futures: dict[TopicPartition, Future[Any]] = {}
        for where in request:
            futures[where] = Future()
            if where.partition:
                futures[where].set_exception(KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE)))
            else:
                futures[where].set_result(SimpleNamespace(offset=7))
        return futures

    admin: Any = SimpleNamespace(list_offsets=told)
    places = [("t", 0), ("t", 1)]
    missing: dict[tuple[str, int], str] = {}
    assert list_offsets(admin, places, "latest", 1.0, missing=missing) == {("t", 0): 7}
    assert "LEADER_NOT_AVAILABLE" in missing["t", 1]
    with pytest.raises(Failure, match=r"t:1: .*LEADER_NOT_AVAILABLE"):
        list_offsets(admin, places, "latest", 1.0)
