"""Debezium's transforms of its own events: the row alone, several tables in one topic, the outbox, and those that need scripts of Java."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type
from barnabas.connect.converters.header_converters import HEADERS
from barnabas.connect.errors import ConnectError
from barnabas.connect.java_patterns import java_pattern, java_replacement
from barnabas.connect.transforms.interface import Transform, column, fields_by_name, fields_of, struct_of, with_column
from barnabas.connect.validators import Refused, Regex, one_of

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
OF_ENVELOPE = ("before", "after", "op", "ts_ms", "ts_us", "ts_ns", "source", "transaction")
DROP, TOMBSTONE, REWRITE, REWRITE_WITH, TO_TOMBSTONE = (
    "drop",
    "tombstone",
    "rewrite",
    "rewrite-with-tombstone",
    "delete-to-tombstone",
)
MODES = (DROP, TOMBSTONE, REWRITE, REWRITE_WITH, TO_TOMBSTONE)


def envelope(values: Array) -> dict[str, Array] | None:
    """The fields of events; None for values that are none, such as those of heartbeats."""
    if not pa.types.is_struct(values.type):
        return None
    fields = fields_of(values, "an event")
    return fields if {"after", "op"} <= fields.keys() else None


def _is(op: Array, letter: str) -> Any:
    found: Any = pc.equal(op, pa.scalar(letter))
    return pc.fill_null(found, False)


class ExtractNewRecordState(Transform):
    """Makes the value the row after the change."""

    config = (
        ConfigDef()
        .define(
            "delete.tombstone.handling.mode", Type.STRING, "", importance=MEDIUM, validator=one_of("", *MODES),
            documentation="What becomes of a deletion and of the tombstone behind it. drop: neither stays. tombstone, the default: the "
            "tombstone stays. rewrite: the deletion is the row before with __deleted. rewrite-with-tombstone: also the tombstone. "
            "delete-to-tombstone: the deletion becomes a tombstone.",
        )
        .define("drop.tombstones", Type.BOOLEAN, True, importance=LOW, documentation="Of older releases, with delete.handling.mode.")
        .define(
            "delete.handling.mode", Type.STRING, "", importance=LOW, validator=one_of("", "drop", "rewrite", "none"),
            documentation="Of older releases: drop, rewrite, or none, by which a deletion becomes a record without a value.",
        )
        .define(
            "add.fields", Type.LIST, "", importance=LOW,
            documentation="Fields of the event that the row gets, such as op, table, source.ts_ms or op:operation.",
        )
        .define("add.fields.prefix", Type.STRING, "__", importance=LOW, documentation="Before the names of fields that are added.")
        .define("add.headers", Type.LIST, "", importance=LOW, documentation="Fields of the event that become headers, as add.fields.")
        .define("add.headers.prefix", Type.STRING, "__", importance=LOW, documentation="Before the names of headers that are added.")
        .define("route.by.field", Type.STRING, "", importance=LOW, documentation="The column of the row that names the topic.")
    )  # fmt: skip

    def __init__(self, config: Mapping[str, Any]) -> None:
        mode, old = config["delete.tombstone.handling.mode"], config["delete.handling.mode"]
        if mode:
            self._keeps_tombstones = mode in {TOMBSTONE, REWRITE_WITH}
            self._deletions = {REWRITE: REWRITE, REWRITE_WITH: REWRITE, TO_TOMBSTONE: TOMBSTONE}.get(mode, DROP)
        else:
            self._keeps_tombstones = not (old and config["drop.tombstones"])
            self._deletions = {"rewrite": REWRITE, "none": TOMBSTONE}.get(old, DROP)
        self._fields = [_reference(each, config["add.fields.prefix"]) for each in config["add.fields"]]
        self._headers = [_reference(each, config["add.headers.prefix"]) for each in config["add.headers"]]
        self._route = config["route.by.field"]

    def apply(self, records: pa.Table) -> pa.Table:
        values = column(records, "value")
        fields = envelope(values)
        if fields is None:
            return records
        deletions, nulls = _is(fields["op"], "d"), pc.is_null(values)
        kept = pc.invert(_is(fields["op"], "t"))  # a table that was emptied has no row
        if self._deletions == DROP:
            kept = pc.and_(kept, pc.invert(deletions))
        if not self._keeps_tombstones:
            kept = pc.and_(kept, pc.invert(nulls))
        if not pc.all(kept).as_py():
            records = records.filter(kept).combine_chunks()
            if not records.num_rows:
                return records
            values = column(records, "value")
            fields, deletions, nulls = fields_of(values, "an event"), deletions.filter(kept), nulls.filter(kept)
        return self._flat(records, fields, deletions, nulls)

    def _flat(self, records: pa.Table, fields: Mapping[str, Array], deletions: Any, nulls: Any) -> pa.Table:
        after = fields_of(fields["after"], "a row")
        before = fields_of(fields["before"], "a row") if "before" in fields else {}
        rows = {name: _chosen(deletions, before.get(name), each) for name, each in after.items()}
        if self._deletions == REWRITE:
            rows["__deleted"] = pc.cast(deletions, pa.string())
        for name, path in self._fields:
            rows[name] = _found(fields, path)
        routes = rows.get(self._route)
        is_gone = pc.or_(nulls, deletions) if self._deletions != REWRITE else nulls
        like: Array = pc.if_else(is_gone, pa.scalar(None, pa.bool_()), pa.scalar(True))
        row = fields_by_name(column(records, "value").type)["after"]
        made = with_column(records, "value", struct_of(rows, like, fields_by_name(row.type)), row.metadata)
        if self._headers:
            made = _with_headers(made, {name: _found(fields, path) for name, path in self._headers})
        if self._route:
            if routes is None:
                raise ConnectError(f"the row has no column {self._route}, which route.by.field names")
            topics: Array = pc.coalesce(pc.cast(routes, pa.string()), column(records, "topic"))
            made = with_column(made, "topic", topics)
        return made


def _chosen(deletions: Any, before: Array | None, after: Array) -> Array:
    """A column of the row before a deletion, or after another change."""
    if before is None or not pc.any(deletions).as_py():
        return after
    found: Array = pc.if_else(deletions, before.cast(after.type), after)
    return found


def _reference(text: str, prefix: str) -> tuple[str, list[str]]:
    """The name of a field that is added, and its place in the event: `op`, `source.lsn`, `table` or `op:operation`."""
    place, _, name = text.partition(":")
    path = place.split(".")
    return prefix + (name or "_".join(path)), path if path[0] in OF_ENVELOPE else ["source", *path]


def _found(fields: Mapping[str, Array], path: list[str]) -> Array:
    name, *rest = path
    if name not in fields:
        raise ConnectError(f"the event has no field {name}; it has {', '.join(fields)}")
    return _found(fields_of(fields[name], "an event"), rest) if rest else fields[name]


def _with_headers(records: pa.Table, added: Mapping[str, Array]) -> pa.Table:
    lists = [list(each or ()) for each in column(records, "headers").to_pylist()]
    for name, values in added.items():
        for row, value in enumerate(values.to_pylist()):
            lists[row].append({"key": name, "value": None if value is None else str(value).encode()})
    return with_column(records, "headers", pa.array(lists, HEADERS))


class ByLogicalTableRouter(Transform):
    """Gives the events of several tables to one topic; their keys get the table, so that they stay different."""

    config = (
        ConfigDef()
        .define("topic.regex", Type.STRING, importance=LOW, validator=Regex(), documentation="The topics that are routed.")
        .define("topic.replacement", Type.STRING, importance=LOW, documentation="Their topic, with $1 for the first group.")
        .define(
            "key.enforce.uniqueness", Type.BOOLEAN, True, importance=LOW,
            documentation="Whether keys get a field with the table that the event comes from.",
        )
        .define(
            "key.field.name", Type.STRING, "__dbz__physicalTableIdentifier", importance=LOW, documentation="The name of this field."
        )
        .define("key.field.regex", Type.STRING, "", importance=LOW, validator=Regex(), documentation="Of the topic before.")
        .define("key.field.replacement", Type.STRING, "", importance=LOW, documentation="What the field has; empty: the topic before.")
    )  # fmt: skip

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._topics = _route(config, "topic.regex", "topic.replacement")
        self._field = config["key.field.name"] if config["key.enforce.uniqueness"] else None
        regex, replacement = config["key.field.regex"], config["key.field.replacement"]
        if bool(regex) is not bool(replacement):
            raise ConfigError("key.field.regex and key.field.replacement go together")
        self._tables = _route(config, "key.field.regex", "key.field.replacement") if regex else None

    def apply(self, records: pa.Table) -> pa.Table:
        topics: list[Any] = column(records, "topic").to_pylist()
        routed = [_replaced(each, *self._topics) for each in topics]
        if self._field is not None and any(each is not None for each in routed):
            keys = column(records, "key")
            if pa.types.is_struct(keys.type):
                tables = [each if self._tables is None else _replaced(each, *self._tables) or each for each in topics]
                added: Array = pa.array(tables, pa.string())
                records = with_column(records, "key", struct_of({**fields_of(keys, "a key"), self._field: added}, keys))
        names = [each if there is None else there for each, there in zip(topics, routed, strict=True)]
        return with_column(records, "topic", pa.array(names, pa.string()))


def _route(config: Mapping[str, Any], regex: str, replacement: str) -> tuple[re.Pattern[str], str]:
    """The expression of two keys, and its replacement. Raises ConfigError."""
    try:
        pattern = java_pattern(config[regex])
        return pattern, java_replacement(pattern, config[replacement])
    except re.error as error:
        raise ConfigError(f"Invalid value {config[replacement]} for configuration {replacement}: {error}") from None


def _replaced(text: str, pattern: re.Pattern[str], replacement: str) -> str | None:
    found = pattern.fullmatch(text)
    return None if found is None else found.expand(replacement)


NO_SCRIPT = Refused(
    "scripts of Java do not run here; barnabas.Sql filters and changes records by a SELECT, and barnabas.Python by a function"
)


class Scripted(Transform):
    """Debezium's Filter and ContentBasedRouter, whose conditions are scripts: refused."""

    config = ConfigDef().define(
        "language",
        Type.STRING,
        importance=HIGH,
        validator=NO_SCRIPT,
        documentation="Refused: no script runs here.",
    )
