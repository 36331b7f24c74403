"""The proof: compares every window in the results topic with the same figures from pandas, computed directly from the package.

Rules
  1. This module shares only the names of the figures and the length of a window with the pipeline. It joins and groups whole
     tables, without topics, streams or watermarks.
  2. Windows are equal if all their figures are exactly equal. A missing window, or one that should not exist, is a difference.
  3. Writing is exactly once: a window that occurs twice is a difference, even with the same figures.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from confluent_kafka import Consumer, KafkaError, TopicPartition

from demo import data, topics
from demo.data import WINDOW_HOURS, DemoError, Slice, iso

LATE_MINUTES = 15
SHOWN = 5
IDLE_S = 30.0
FIGURES = [
    "airline",
    "window_end",
    "flights",
    "departed",
    "dep_delay_sum",
    "dep_delay_max",
    "delayed",
    "arrived",
    "arr_delay_sum",
    "with_weather",
    "with_wind",
    "wind_sum",
    "rain_departed",
    "rain_dep_delay_sum",
]

Key = tuple[str, str]  # carrier, start of the window
Windows = dict[Key, dict[str, Any]]


@dataclass(slots=True)
class Verdict:
    """The result of the comparison."""

    expected: int
    equal: int
    differences: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return self.expected > 0 and self.equal == self.expected and not self.differences


def expected_windows(part: Slice) -> Windows:
    """The expected figures, computed with pandas."""
    table = _flights_with_weather(part)
    groups = table.groupby(["carrier", "window_start"])
    windows = groups.agg(
        airline=("name", "first"),
        flights=("flight", "size"),
        departed=("dep_delay", "count"),
        dep_delay_sum=("dep_delay", "sum"),
        dep_delay_max=("dep_delay", "max"),
        delayed=("delayed", "sum"),
        arrived=("arr_delay", "count"),
        arr_delay_sum=("arr_delay", "sum"),
        with_weather=("temp_reported", "sum"),
        with_wind=("wind", "count"),
        wind_sum=("wind", "sum"),
        rain_departed=("rain_departed", "sum"),
        rain_dep_delay_sum=("rain_dep_delay", "sum"),
    ).reset_index()
    windows["window_end"] = (windows["window_start"] + pd.Timedelta(hours=WINDOW_HOURS)).map(iso)
    windows["window_start"] = windows["window_start"].map(iso)
    rows = windows.to_dict("records")
    return {(row["carrier"], row["window_start"]): {name: _plain(row[name]) for name in FIGURES} for row in rows}


def _flights_with_weather(part: Slice) -> pd.DataFrame:
    """A row for each flight, with the weather of its airport and hour if there is a report."""
    flights = part.cut(data.table("flights"))[["carrier", "flight", "origin", "time_hour", "dep_delay", "arr_delay"]]
    weather = part.cut(data.table("weather"))[["origin", "time_hour", "wind_speed", "precip"]].assign(temp_reported=1)
    table = flights.merge(weather, on=["origin", "time_hour"], how="left").merge(data.table("airlines"), on="carrier", how="left")
    rain_departed = (table["precip"] > 0) & table["dep_delay"].notna()
    return table.assign(
        window_start=table["time_hour"].dt.floor(f"{WINDOW_HOURS}h"),
        delayed=table["dep_delay"] >= LATE_MINUTES,
        wind=np.floor(table["wind_speed"] * 100 + 0.5),
        rain_departed=rain_departed,
        rain_dep_delay=table["dep_delay"].where(rain_departed),
    )


def _plain(value: Any) -> Any:
    """A value of pandas as None, text or int."""
    if isinstance(value, str):
        return value
    return None if pd.isna(value) else int(value)


def read_results(bootstrap: str) -> Iterator[dict[str, Any]]:
    """Every committed record of the results topic, up to the end of each partition at the time when the reader reaches it.

    Raises:
        DemoError: the topic does not exist, or cannot be read.
    """
    ends = topics.end_offsets(bootstrap, topics.RESULTS)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "demo-verify",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    try:
        consumer.assign([TopicPartition(topics.RESULTS, partition, first) for partition, (first, _) in ends.items()])
        ended: set[int | None] = set()
        read_at_s = time.monotonic()
        while len(ended) < len(ends):
            for message in consumer.consume(10_000, timeout=0.5):
                read_at_s = time.monotonic()
                error = message.error()
                if error is None:
                    yield json.loads(message.value() or b"{}")
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                else:
                    raise DemoError(f"reading {topics.RESULTS}: {error}")
            if time.monotonic() - read_at_s > IDLE_S:
                raise DemoError(f"reading {topics.RESULTS}: no record came for {IDLE_S:g} s, and the end is not reached")
    finally:
        consumer.close()


def compare(expected: Windows, results: Iterable[dict[str, Any]]) -> Verdict:
    """Compare each expected window with the received one."""
    verdict = Verdict(expected=len(expected), equal=0)
    actual: Windows = {}
    for result in results:
        key = (str(result.get("carrier")), str(result.get("window_start")))
        figures = {name: result.get(name) for name in FIGURES}
        if actual.setdefault(key, figures) is figures:
            continue
        verdict.differences.append(f"{' '.join(key)}: came twice{'' if actual[key] == figures else ' with different figures'}")
    verdict.differences += [f"{' '.join(key)}: should not be there" for key in actual.keys() - expected.keys()]
    for key, figures in expected.items():
        difference = _difference(figures, actual.get(key))
        if difference:
            verdict.differences.append(f"{' '.join(key)}: {difference}")
        else:
            verdict.equal += 1
    return verdict


def _difference(expected: dict[str, Any], actual: dict[str, Any] | None) -> str:
    """The difference of two windows as text; empty if they are equal."""
    if actual is None:
        return "missing"
    return ", ".join(f"{n} is {actual[n]}, pandas says {expected[n]}" for n in FIGURES if actual[n] != expected[n])


def verify(results: Iterable[dict[str, Any]], part: Slice, say: Callable[[str], None]) -> Verdict:
    """Compare and print the result."""
    verdict = compare(expected_windows(part), results)
    colour = "green" if verdict.passed else "red"
    say(
        f"[{colour}]{verdict.equal:,} of {verdict.expected:,} windows are equal[/{colour}] to the figures by pandas from the package"
    )
    for text in verdict.differences[:SHOWN]:
        say(f"  [red]{text}[/red]")
    if len(verdict.differences) > SHOWN:
        say(f"  and {len(verdict.differences) - SHOWN:,} more differences")
    return verdict
