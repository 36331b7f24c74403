"""Transforms that choose the topic of a record, and the filter."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type
from barnabas.connect.errors import ConnectError
from barnabas.connect.java_patterns import java_pattern, java_replacement
from barnabas.connect.transforms.interface import Transform, column, with_column
from barnabas.connect.transforms.java_texts import date_text
from barnabas.connect.transforms.times import utc


class RegexRouter(Transform):
    """Gives the record to another topic if its topic fits to a regular expression."""

    config = (
        ConfigDef()
        .define("regex", Type.STRING, importance=Importance.HIGH, documentation="Regular expression to use for matching.")
        .define("replacement", Type.STRING, importance=Importance.HIGH, documentation="Replacement string.")
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        try:
            self._pattern = java_pattern(config["regex"])
        except re.error as error:
            raise ConfigError(f"Invalid value {config['regex']} for configuration regex: Invalid regex: {error}") from None
        try:
            self._replacement = java_replacement(self._pattern, config["replacement"])
        except re.error as error:
            raise ConfigError(f"Invalid value {config['replacement']} for configuration replacement: {error}") from None

    def apply(self, records: pa.Table) -> pa.Table:
        topics: list[Any] = column(records, "topic").to_pylist()
        routed = {}
        for each in set(topics):
            match = self._pattern.fullmatch(each)
            routed[each] = match.expand(self._replacement) if match is not None else each
        return with_column(records, "topic", pa.array([routed[each] for each in topics], pa.string()))


class TimestampRouter(Transform):
    """Makes the topic of the topic and the time of the record."""

    config = (
        ConfigDef()
        .define(
            "topic.format", Type.STRING, "${topic}-${timestamp}", importance=Importance.HIGH,
            documentation="Format string which can contain ${topic} and ${timestamp}.",
        )
        .define(
            "timestamp.format", Type.STRING, "yyyyMMdd", importance=Importance.HIGH,
            documentation="Format string for the timestamp, as java.text.SimpleDateFormat has it.",
        )
    )  # fmt: skip

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._topic, self._form = config["topic.format"], config["timestamp.format"]
        date_text(datetime.datetime.now(datetime.UTC), self._form)  # raises for a format that it does not know

    def apply(self, records: pa.Table) -> pa.Table:
        routed = []
        times = column(records, "timestamp").to_pylist()
        for topic, moment in zip(column(records, "topic").to_pylist(), times, strict=True):
            if moment is None:
                raise ConnectError(f"Timestamp missing on record of the topic {topic}")
            text = date_text(utc(moment), self._form)
            routed.append(self._topic.replace("${topic}", topic).replace("${timestamp}", text))
        return with_column(records, "topic", pa.array(routed, pa.string()))


class Filter(Transform):
    """Leaves out all records that it gets; a predicate says which these are."""

    def apply(self, records: pa.Table) -> pa.Table:
        return records.slice(0, 0)
