"""Debezium's outbox: rows that are inserted into a table become messages."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type
from barnabas.connect.converters.header_converters import HEADERS
from barnabas.connect.errors import ConnectError
from barnabas.connect.transforms.debezium import envelope
from barnabas.connect.transforms.interface import Transform, column, fields_of, struct_of, with_column
from barnabas.connect.validators import one_of

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array

logger = logging.getLogger(__name__)
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
ROUTED = "${routedByValue}"


class _Placed(NamedTuple):
    """A column that goes along: where, and under which name."""

    column: str
    is_header: bool
    name: str


class EventRouter(Transform):
    """Makes messages of the rows of an outbox: the topic of one column, the key of another one, and the value of the payload."""

    config = (
        ConfigDef()
        .define("table.field.event.id", Type.STRING, "id", importance=LOW, documentation="The column for the header id.")
        .define("table.field.event.key", Type.STRING, "aggregateid", importance=LOW, documentation="The column for the key.")
        .define("table.field.event.payload", Type.STRING, "payload", importance=LOW, documentation="The column for the value.")
        .define(
            "table.fields.additional.placement", Type.LIST, "", importance=LOW,
            documentation="Columns that go along: type:header:eventType, or type:envelope for a field beside the payload.",
        )
        .define(
            "table.expand.json.payload", Type.BOOLEAN, False, importance=MEDIUM,
            documentation="Whether a payload of JSON becomes a value with fields.",
        )
        .define(
            "table.op.invalid.behavior", Type.STRING, "warn", importance=LOW, validator=one_of("warn", "error", "fatal"),
            documentation="What an updated row does: it is left out with a line in the log, or is an error.",
        )
        .define("route.by.field", Type.STRING, "aggregatetype", importance=LOW, documentation="The column that names the topic.")
        .define(
            "route.topic.replacement", Type.STRING, f"outbox.event.{ROUTED}", importance=LOW,
            documentation="The topic, with ${routedByValue} for the value of the column.",
        )
    )  # fmt: skip

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._id, self._key, self._payload, self._route = (
            config[key]
            for key in ("table.field.event.id", "table.field.event.key", "table.field.event.payload", "route.by.field")
        )
        self._topic, self._parses = config["route.topic.replacement"], config["table.expand.json.payload"]
        self._raises = config["table.op.invalid.behavior"] != "warn"
        self._placed = [_placed(each) for each in config["table.fields.additional.placement"]]

    def apply(self, records: pa.Table) -> pa.Table:
        fields = envelope(column(records, "value"))
        if fields is None:
            return records
        op = fields["op"]
        if pc.any(pc.equal(op, pa.scalar("u"))).as_py():
            if self._raises:
                raise ConnectError("a row of the outbox was updated; rows are inserted and deleted alone")
            logger.warning("event=outbox-row-updated")
        inserted: Any = pc.is_in(op, value_set=pa.array(["c", "r"]))
        records = records.filter(inserted).combine_chunks()
        if not records.num_rows:
            return records
        return self._messages(records, fields_of(fields_of(column(records, "value"), "an event")["after"], "a row"))

    def _messages(self, records: pa.Table, row: Mapping[str, Array]) -> pa.Table:
        wanted = (self._id, self._key, self._payload, self._route, *(each.column for each in self._placed))
        if missing := [name for name in wanted if name not in row]:
            raise ConnectError(f"the outbox has no column {missing[0]}; it has {', '.join(row)}")
        payload = _parsed(row[self._payload]) if self._parses else row[self._payload]
        beside = {each.name: row[each.column] for each in self._placed if not each.is_header}
        value = struct_of({"payload": payload, **beside}, pa.array([True] * records.num_rows)) if beside else payload
        routes = row[self._route].to_pylist()
        topics = pa.array([self._topic.replace(ROUTED, str(each)) for each in routes], pa.string())
        names = {"id": row[self._id], **{each.name: row[each.column] for each in self._placed if each.is_header}}
        lists: list[list[dict[str, Any]]] = [[] for _ in routes]
        for name, values in names.items():
            for at, each in enumerate(values.to_pylist()):
                lists[at].append({"key": name, "value": None if each is None else str(each).encode()})
        for name, made in (("value", value), ("key", row[self._key]), ("topic", topics), ("headers", pa.array(lists, HEADERS))):
            records = with_column(records, name, made)
        return records


def _placed(text: str) -> _Placed:
    parts = text.split(":")
    if len(parts) not in {2, 3} or parts[1] not in {"header", "envelope"}:
        raise ConfigError(
            f"Invalid value {text} for configuration table.fields.additional.placement: it is COLUMN:header, COLUMN:envelope, or "
            "one of these with :NAME"
        )
    return _Placed(parts[0], parts[1] == "header", parts[-1] if len(parts) == 3 else parts[0])


def _parsed(values: Array) -> Array:
    """Texts of JSON as values. Raises ConnectError."""
    try:
        made: Array = pa.array([None if each is None else json.loads(each) for each in values.to_pylist()])
    except (ValueError, TypeError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ConnectError(f"a payload is not JSON, or has another form than those beside it: {error}") from None
    return made
