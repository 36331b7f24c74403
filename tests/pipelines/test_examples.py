"""The examples, each with a stream small enough to see what must come out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from examples.spark.common import write
from examples.spark.deduplication import payments_once
from examples.spark.late_windows import five_minutes
from examples.spark.running_count import counts
from examples.spark.sessions import alarms
from examples.spark.stream_join import clicks_of_impressions
from examples.spark.table_join import orders_with_addresses

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


class Example:
    """Runs one example again and again, and says what is in its output topic."""

    def __init__(self, servers: str, folder: Path, topic: Callable[..., str], produce: Callable[..., None]) -> None:
        self.servers, self._folder, self._produce = servers, folder, produce
        self.make, self._out = topic, topic()

    def put(self, topic: str, *values: Any, key: bytes | None = None) -> None:
        self._produce(topic, [(0, key, None if value is None else json.dumps(value).encode()) for value in values])

    def run(self, rows: DataFrame, key: str | None = None, mode: str = "append") -> None:
        write(rows, self.servers, self._out, str(self._folder / "checkpoint"), key=key, mode=mode).awaitTermination()

    def out(self, spark: SparkSession) -> list[Any]:
        reader = spark.read.format("barnabas").option("kafka.bootstrap.servers", self.servers).option("subscribe", self._out)
        return [json.loads(row.value) for row in reader.load().orderBy("offset").collect()]


@pytest.fixture
def example(kafka_server: str, tmp_path: Path, topic: Callable[..., str], produce: Callable[..., None]) -> Example:
    return Example(kafka_server, tmp_path, topic, produce)


def at(minute: int) -> str:
    return f"2024-05-01T{12 + minute // 60:02}:{minute % 60:02}:00.000Z"


def test_a_count_is_kept_up_to_date(spark: SparkSession, example: Example) -> None:
    orders = example.make()
    for amounts in ((1.0, 2.0), (4.0,)):
        example.put(orders, *({"customer": "k", "amount": amount} for amount in amounts))
        example.run(counts(spark, example.servers, orders), "customer", "update")
    assert example.out(spark) == [{"customer": "k", "orders": 2, "amount": 3.0}, {"customer": "k", "orders": 3, "amount": 7.0}]


def test_streams_are_joined_within_their_time(spark: SparkSession, example: Example) -> None:
    impressions, clicks = example.make(), example.make()
    example.put(impressions, {"ad": "a", "shown": at(0)}, {"ad": "b", "shown": at(0)}, {"ad": "c", "shown": at(5)})
    example.run(clicks_of_impressions(spark, example.servers, impressions, clicks), "ad")
    example.put(clicks, {"ad": "a", "clicked": at(3)}, {"ad": "b", "clicked": at(30)}, {"ad": "z", "clicked": at(6)})
    example.run(clicks_of_impressions(spark, example.servers, impressions, clicks), "ad")
    assert example.out(spark) == [{"ad": "a", "shown": at(0), "clicked": at(3), "seconds": 180}]


def test_late_readings_count_until_their_window_is_closed(spark: SparkSession, example: Example) -> None:
    readings = example.make()

    def read(*minutes: tuple[int, float]) -> None:
        example.put(readings, *({"sensor": "s", "at": at(minute), "celsius": celsius} for minute, celsius in minutes))
        example.run(five_minutes(spark, example.servers, readings), "sensor")

    read((0, 10.0), (1, 20.0), (9, 5.0))
    read((2, 30.0), (16, 7.0))  # late, but in time: the window 0 to 5 stays open until an event of minute 15
    read((3, 99.0), (17, 7.0))  # too late
    assert example.out(spark) == [{"sensor": "s", "start": at(0), "readings": 3, "mean": 20.0}]


def test_what_was_sent_twice_is_kept_once(spark: SparkSession, example: Example) -> None:
    payments = example.make()
    one, two = {"id": "1", "at": at(0), "amount": 5.0}, {"id": "2", "at": at(1), "amount": 7.0}
    example.put(payments, one, two, one)
    example.run(payments_once(spark, example.servers, payments), "id")
    example.put(payments, two, {**one, "id": "3"})
    example.run(payments_once(spark, example.servers, payments), "id")
    assert sorted(row["id"] for row in example.out(spark)) == ["1", "2", "3"]


def test_state_of_ones_own_outlives_a_restart(spark: SparkSession, example: Example) -> None:
    logins = example.make()

    def login(*tries: tuple[int, str, bool]) -> None:
        example.put(logins, *({"user": user, "at": at(minute), "ok": ok} for minute, user, ok in tries))
        example.run(alarms(spark, example.servers, logins), "user")

    login((0, "eve", False), (1, "eve", False), (2, "bob", False), (3, "bob", True))
    login((4, "eve", False), (5, "bob", False), (6, "bob", False))
    assert example.out(spark) == [{"user": "eve", "failures": 3, "at": at(4)}]


def test_a_stream_meets_the_table_as_it_is_then(spark: SparkSession, example: Example) -> None:
    orders, customers = example.make(), example.make(cleanup_policy="compact")
    example.put(customers, {"address": "Prague"}, key=b"k")
    example.put(customers, {"address": "Vienna"}, key=b"m")
    rows = orders_with_addresses(spark, example.servers, orders, customers)
    example.put(orders, {"customer": "k", "item": "book"}, {"customer": "x", "item": "pen"})
    example.run(rows, "customer")
    example.put(customers, {"address": "Kierling"}, key=b"k")
    example.put(customers, None, key=b"m")
    example.put(orders, {"customer": "k", "item": "lamp"}, {"customer": "m", "item": "ink"})
    example.run(rows, "customer")
    found = {row["item"]: row.get("address") for row in example.out(spark)}
    assert found == {"book": "Prague", "pen": None, "lamp": "Kierling", "ink": None}
