"""The producers: flights with confluent-kafka, weather with kafka-python, the three reference tables with aiokafka.

Rules
  1. A stream is published in the order of its event time, one UTC day at a time. All records of a day are acknowledged before
     the next day is sent. So no partition is more than a day ahead of another, and the pipeline's watermark must allow only for
     that.
  2. The record's timestamp is the event time.
  3. All producers follow one `Pace`, so that flights and weather advance together, like live data.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, Producer
from kafka import KafkaProducer

from demo import data, topics
from demo.data import MARKER_CODE, DemoError, Slice, iso, milliseconds

Report = Callable[[int, str], None]  # arguments: records so far, and the day that they reach
ACKNOWLEDGED_WITHIN_S = 60.0
WEATHER_COLUMNS = ["origin", "temp", "humid", "wind_speed", "wind_gust", "precip", "pressure", "visib"]


@dataclass(slots=True)
class Pace:
    """The speed of the demo's year: `days_per_second`; 0 means as fast as possible."""

    days_per_second: float
    stop: threading.Event = field(default_factory=threading.Event)
    _started_s: float = field(default_factory=time.monotonic)

    def wait_for_day(self, number: int) -> bool:
        """Wait until day `number` is due; returns False if the producer must stop."""
        due_in_s = self._started_s + number / self.days_per_second - time.monotonic() if self.days_per_second else 0.0
        return not self.stop.wait(due_in_s) if due_in_s > 0 else not self.stop.is_set()


def publish_flights(bootstrap: str, part: Slice, pace: Pace, report: Report, topic: str = topics.FLIGHTS) -> int:
    """Publish the flights of the slice keyed by carrier; returns how many."""
    failures: list[KafkaError] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 2,
            "partitioner": "murmur2_random",  # the same partitioning of keys as other clients
            "delivery.report.only.error": True,
            "on_delivery": lambda error, _message: failures.append(error),
        }
    )
    published = 0
    for day, rows in data.by_day(data.flights(part)):
        if not pace.wait_for_day((day - part.start).days):
            return published
        for carrier, time_ms, value in _flight_records(rows):
            producer.produce(topic, key=carrier, value=value, timestamp=time_ms)
        _wait_acknowledged(producer, failures)
        published += len(rows)
        report(published, f"{day:%d %b}")
    marker = {"carrier": MARKER_CODE, "origin": MARKER_CODE, "time_hour": iso(part.closing), "scheduled": iso(part.closing)}
    producer.produce(topic, key=MARKER_CODE, value=json.dumps(marker), timestamp=milliseconds(part.closing))
    _wait_acknowledged(producer, failures)
    return published


def _flight_records(rows: pd.DataFrame) -> list[tuple[str, int, str]]:
    """Key, timestamp and JSON of each row; pandas writes the JSON of a whole day with one call."""
    times_ms = rows["scheduled"].astype("datetime64[ms, UTC]").astype("int64").tolist()
    as_text = {name: rows[name].dt.strftime("%Y-%m-%dT%H:%M:%SZ") for name in ("time_hour", "scheduled")}
    lines = rows.assign(**as_text).to_json(orient="records", lines=True).splitlines()
    return list(zip(rows["carrier"].tolist(), times_ms, lines, strict=True))


def _wait_acknowledged(producer: Producer, failures: list[KafkaError]) -> None:
    left = producer.flush(ACKNOWLEDGED_WITHIN_S)
    if failures or left:
        raise DemoError(f"flights were not taken: {failures[0] if failures else f'{left} unanswered'}")


def publish_weather(bootstrap: str, part: Slice, pace: Pace, report: Report) -> int:
    """Publish the weather of the slice keyed by airport; returns how many observations."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", compression_type="gzip", linger_ms=2)
    try:
        published = 0
        for day, rows in data.by_day(data.weather(part)):
            if not pace.wait_for_day((day - part.start).days):
                return published
            _send_weather(producer, rows[WEATHER_COLUMNS], rows["time_hour"])
            published += len(rows)
            report(published, f"{day:%d %b}")
        _send_weather(producer, pd.DataFrame({"origin": [MARKER_CODE]}), pd.Series([part.closing]))
        return published
    finally:
        producer.close(timeout=ACKNOWLEDGED_WITHIN_S)


def _send_weather(producer: KafkaProducer, rows: pd.DataFrame, hours: pd.Series[pd.Timestamp]) -> None:
    # json.dumps instead of pandas: a float that it writes reads back as the same float.
    futures = [
        producer.send(
            topics.WEATHER,
            key=row["origin"].encode(),
            value=_json({**row, "time_hour": iso(hour)}),
            timestamp_ms=milliseconds(hour),
        )
        for row, hour in zip(rows.to_dict("records"), hours, strict=True)
    ]
    producer.flush(ACKNOWLEDGED_WITHIN_S)
    for future in futures:
        future.get(ACKNOWLEDGED_WITHIN_S)


def publish_reference(bootstrap: str, report: Report) -> int:
    """Publish airlines, airports and planes, each row under its key; returns how many."""
    return asyncio.run(_publish_reference(bootstrap, report))


async def _publish_reference(bootstrap: str, report: Report) -> int:
    published = 0
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", compression_type="gzip", linger_ms=2) as producer:
        for topic, key in topics.REFERENCE.items():
            rows = data.table(topic).to_dict("records")
            sent = [await producer.send(topic, key=str(row[key]).encode(), value=_json(row)) for row in rows]
            await asyncio.gather(*sent)
            published += len(rows)
            report(published, topic)
    return published


def _json(row: Mapping[Hashable, Any]) -> bytes:
    """A row as JSON, with null for missing values."""
    return json.dumps({name: None if pd.isna(value) else value for name, value in row.items()}).encode()
