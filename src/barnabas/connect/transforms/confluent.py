"""Confluent's transforms that are small and common; its Filter, whose condition is a JSONPath, is refused."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type
from barnabas.connect.errors import ConnectError
from barnabas.connect.transforms.interface import Transform, column, fields_of, with_column
from barnabas.connect.transforms.java_texts import date_text
from barnabas.connect.transforms.times import moment_of, utc
from barnabas.connect.validators import NonEmptyList, Refused, one_of

logger = logging.getLogger(__name__)
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW


class Drop(Transform):
    """Makes the key or the value null."""

    config = ConfigDef().define(
        "schema.behavior", Type.STRING, "nullify", importance=MEDIUM, validator=one_of("nullify", "retain", "force_optional"),
        documentation="Without effect: a null has no schema.",
    )  # fmt: skip

    def apply(self, records: pa.Table) -> pa.Table:
        return with_column(records, self.side, pa.nulls(records.num_rows))


class ExtractTopic(Transform):
    """Makes the topic of the key or value, of a field of it, or of a header."""

    config = (
        ConfigDef()
        .define("field", Type.STRING, "", importance=HIGH, documentation="The field; of headers the name. Empty: the whole.")
        .define(
            "skip.missing.or.null", Type.BOOLEAN, False, importance=LOW,
            documentation="Whether a record without the field keeps its topic; otherwise it is an error.",
        )
    )  # fmt: skip

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._field, self._skips = config["field"], config["skip.missing.or.null"]
        if self.side == "headers" and not self._field:
            raise ConfigError('Missing required configuration "field" which has no default value.')

    def apply(self, records: pa.Table) -> pa.Table:
        topics = []
        for before, after in zip(column(records, "topic").to_pylist(), self._found(records), strict=True):
            if not after and not self._skips:
                raise ConnectError(f"the record has no topic at {self._field or 'its ' + self.side}: missing, null or empty")
            topics.append(after or before)
        return with_column(records, "topic", pa.array(topics, pa.string()))

    def _found(self, records: pa.Table) -> list[Any]:
        if self.side == "headers":
            return [_last(each or (), self._field) for each in column(records, "headers").to_pylist()]
        values = column(records, self.side)
        if self._field:
            values = fields_of(values, "topic extraction").get(self._field, pa.nulls(records.num_rows))
        if not (pa.types.is_string(values.type) or pa.types.is_null(values.type)):
            raise ConnectError(f"a topic is a text; {self._field or 'the ' + self.side} is {values.type}")
        return values.to_pylist()


def _last(headers: Sequence[Mapping[str, Any]], name: str) -> str | None:
    found = [each["value"] for each in headers if each["key"] == name]
    if not found or found[-1] is None:
        return None
    try:
        return str(found[-1].decode())
    except UnicodeDecodeError:
        raise ConnectError(f"the header {name} is no text") from None


class MessageTimestampRouter(Transform):
    """Makes the topic of the topic and of a time in the value."""

    config = (
        ConfigDef()
        .define(
            "message.timestamp.keys", Type.LIST, importance=HIGH, validator=NonEmptyList(),
            documentation="Fields of the value; the first one that a record has is taken.",
        )
        .define(
            "topic.format", Type.STRING, "${topic}-${timestamp}", importance=HIGH,
            documentation="Format string which can contain ${topic} and ${timestamp}.",
        )
        .define(
            "message.timestamp.format", Type.STRING, "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", importance=HIGH,
            documentation="The form of times that are texts, as java.text.SimpleDateFormat has it. Numbers are milliseconds.",
        )
        .define(
            "topic.timestamp.format", Type.STRING, "yyyyMMdd", importance=HIGH,
            documentation="The form of the time in the topic, as java.text.SimpleDateFormat has it.",
        )
    )  # fmt: skip

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._names, self._topic = config["message.timestamp.keys"], config["topic.format"]
        self._reading, self._writing = config["message.timestamp.format"], config["topic.timestamp.format"]
        for each in (self._reading, self._writing):
            date_text(datetime.datetime.now(datetime.UTC), each)  # raises for a format that it does not know

    def apply(self, records: pa.Table) -> pa.Table:
        fields = fields_of(column(records, "value"), "message timestamp routing")
        rows = zip(*(fields[name].to_pylist() for name in self._names if name in fields), strict=True)
        times = [next((each for each in row if each is not None), None) for row in rows] or [None] * records.num_rows
        routed = []
        for topic, value in zip(column(records, "topic").to_pylist(), times, strict=True):
            if value is None:
                raise ConnectError(f"the record has no timestamp in {', '.join(self._names)}")
            text = date_text(utc(moment_of(value, self._reading)), self._writing)
            routed.append(self._topic.replace("${topic}", topic).replace("${timestamp}", text))
        return with_column(records, "topic", pa.array(routed, pa.string()))


class TombstoneHandler(Transform):
    """Leaves out records without a value, or fails with them."""

    config = ConfigDef().define(
        "behavior", Type.STRING, "warn", importance=MEDIUM, validator=one_of("ignore", "warn", "fail"),
        documentation="What a record without a value does: it is left out, with a line in the log, or is an error.",
    )  # fmt: skip

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._behavior = config["behavior"]

    def apply(self, records: pa.Table) -> pa.Table:
        values = column(records, "value")
        if not values.null_count:
            return records
        if self._behavior == "fail":
            raise ConnectError("the record has no value: a tombstone")
        logger.log(
            logging.WARNING if self._behavior == "warn" else logging.DEBUG,
            "event=tombstones-left-out records=%d",
            values.null_count,
        )
        kept: Any = pc.is_valid(values)
        return records.filter(kept).combine_chunks()


NO_CONDITION = Refused(
    "conditions of JSONPath do not run here; barnabas.Sql filters by a SELECT, and org.apache.kafka.connect.transforms.Filter by "
    "a predicate"
)


class Filter(Transform):
    """Confluent's filter, whose condition is a JSONPath: refused."""

    config = ConfigDef().define(
        "filter.condition", Type.STRING, importance=HIGH, validator=NO_CONDITION,
        documentation="Refused: no JSONPath runs here.",
    )  # fmt: skip
