"""Debezium's sink of JDBC by its class name and keys: its events, and rows, into tables."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.connect.api import Identity
from barnabas.connect.catalog import Kind, find
from barnabas.connect.converters.json_converter import JsonConverter
from barnabas.connect.errors import BadRecords, ConnectError
from barnabas.connect.plugins.dialects.debezium_jdbc import DebeziumJdbcSink
from tests.connect.plugins.targets import Target
from tests.connect.runtime.tasks import Tasks

CLASS = "io.debezium.connector.jdbc.JdbcSinkConnector"
TOPIC = "dbserver1.inventory.customers"
TABLE = "dbserver1_inventory_customers"
# the example of its documentation has these keys beside the database
EXAMPLE = {
    "insert.mode": "upsert", "delete.enabled": "true", "primary.key.mode": "record_key", "schema.evolution": "basic",
    "use.time.zone": "UTC", "connection.password": "pgpassword",
}  # fmt: skip
ID = {"type": "int32", "optional": False, "field": "id"}
NAME = {"type": "string", "optional": True, "field": "name"}


def semantic(name: str, kind: str, field: str) -> dict[str, Any]:
    return {"type": kind, "optional": True, "name": f"io.debezium.{name}", "version": 1, "field": field}


def decoded(schema: Mapping[str, Any], payloads: Sequence[Any]) -> Any:
    texts = [None if each is None else json.dumps({"schema": schema, "payload": each}).encode() for each in payloads]
    found = JsonConverter({}, is_key=False).decode(pa.array(texts, pa.binary()))
    assert not found.bad
    return found.column


def struct(*fields: Mapping[str, Any], field: str = "") -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields), "optional": True, **({"field": field} if field else {})}


def change(op: str, before: Any, after: Any) -> dict[str, Any]:
    return {"before": before, "after": after, "source": {"table": "customers"}, "op": op, "ts_ms": 5}


def events(keys: Sequence[Any], changes: Sequence[Any], *fields: Mapping[str, Any]) -> pa.Table:
    """Records as a sink gets them, from the JSON of Debezium."""
    own = struct(ID, *(fields or (NAME,)))
    schema = struct(
        {**own, "field": "before"}, {**own, "field": "after"}, struct(NAME | {"field": "table"}, field="source"),
        NAME | {"field": "op"}, {"type": "int64", "optional": True, "field": "ts_ms"},
    )  # fmt: skip
    return batch(decoded(struct(ID), keys), decoded(schema, changes))


def batch(keys: Any, values: Any, topic: str = TOPIC) -> pa.Table:
    count = len(values)
    places: dict[str, Any] = {"topic": pa.repeat(topic, count), "partition": pa.nulls(count, pa.int32()).fill_null(0)}
    return pa.table({"key": keys, "value": values, **places, "offset": pa.array(range(count), pa.int64())})


class Sinking:
    """A sink into a file of SQLite."""

    def __init__(self, folder: Path) -> None:
        self.target = Target(f"jdbc:sqlite:{folder / 'rows.db'}")
        self._open: list[DebeziumJdbcSink] = []
        self._written = 0

    def __call__(self, **more: str) -> DebeziumJdbcSink:
        config = {"name": "c", "connection.url": self.target.url, **EXAMPLE, **more}
        assert not {key: each.errors for key, each in DebeziumJdbcSink.config.validate(config).items() if each.errors}
        assert DebeziumJdbcSink.validate(config) == {}
        made = DebeziumJdbcSink()
        made.open({**config, **DebeziumJdbcSink.config.parse(config)})
        self._open.append(made)
        return made

    def write(self, records: pa.Table, **more: str) -> None:
        """Write records as the next ones of their topic."""
        begin, self._written = self._written, self._written + records.num_rows
        offsets = pa.array(range(begin, self._written), pa.int64())
        records = records.set_column(records.column_names.index("offset"), "offset", offsets)
        topic = records.column("topic")[0].as_py()
        self(**more).write(records, Identity("c", {(topic, 0): (begin, self._written)}))

    def rows(self, table: str = TABLE) -> list[tuple[Any, ...]]:
        return self.target.run(f'SELECT * FROM "{table}" ORDER BY 1')

    def close(self) -> None:
        for each in self._open:
            each.close()


@pytest.fixture
def sinking(tmp_path: Path) -> Iterator[Sinking]:
    made = Sinking(tmp_path)
    yield made
    made.close()


ANNE, MARIE, ED = {"id": 4, "name": "Anne"}, {"id": 4, "name": "Anne Marie"}, {"id": 3, "name": "Ed"}
KEYS = [{"id": 3}, {"id": 4}, {"id": 4}]
CHANGES = [change("r", None, ED), change("c", None, ANNE), change("u", ANNE, MARIE)]


def test_events_become_rows_of_a_table_named_by_the_topic(sinking: Sinking) -> None:
    sinking.write(events(KEYS, CHANGES))
    assert sinking.rows() == [(3, "Ed"), (4, "Anne Marie")]


def test_a_deletion_and_its_tombstone_delete_the_row(sinking: Sinking) -> None:
    sinking.write(events(KEYS, CHANGES))
    sinking.write(events([{"id": 4}, {"id": 4}], [change("d", MARIE, None), None]))
    assert sinking.rows() == [(3, "Ed")]
    sinking.write(events([{"id": 3}], [change("d", ED, None)]))  # a batch without any row
    assert sinking.rows() == []


def test_deletions_are_left_out_unless_they_are_enabled(sinking: Sinking) -> None:
    gone = events([{"id": 4}, {"id": 4}, {"id": 4}], [change("d", MARIE, None), None, change("t", None, None)])
    for records in (events(KEYS, CHANGES), gone):
        sinking.write(records, **{"delete.enabled": "false"})
    assert sinking.rows() == [(3, "Ed"), (4, "Anne Marie")]


def test_a_table_that_is_emptied_stays(sinking: Sinking) -> None:
    sinking.write(events([*KEYS, {"id": 4}], [*CHANGES, change("t", None, None)]))
    assert sinking.rows() == [(3, "Ed"), (4, "Anne Marie")]


def test_rows_that_are_no_events_are_written_too(sinking: Sinking) -> None:
    sinking.write(batch(decoded(struct(ID), [{"id": 4}, {"id": 3}]), decoded(struct(ID, NAME), [ANNE, None])))
    assert sinking.rows() == [(4, "Anne")]


def test_columns_are_added_by_basic_evolution_alone(sinking: Sinking) -> None:
    phone = NAME | {"field": "phone"}
    sinking.write(events(KEYS, CHANGES))
    more = events([{"id": 5}], [change("c", None, {"id": 5, "name": "New", "phone": "1"})], NAME, phone)
    with pytest.raises(ConnectError, match=r"missing fields \(phone\).*set schema.evolution=basic, or add them"):
        sinking.write(more, **{"schema.evolution": "none"})
    sinking.write(more)
    assert sinking.rows()[-1] == (5, "New", "1")


DAY = datetime.date(2016, 1, 16)
NOON = datetime.datetime(2016, 1, 16, 12, 0, 0, 123_000, datetime.UTC)
NOON_MS = int(NOON.timestamp() * 1000)
SCALED = struct({"type": "int32", "field": "scale"}, {"type": "bytes", "field": "value"}) | {
    "name": "io.debezium.data.VariableScaleDecimal", "version": 1, "field": "v",
}  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (semantic("time.Date", "int32", "v"), (DAY - datetime.date(1970, 1, 1)).days, DAY),
        (semantic("time.Timestamp", "int64", "v"), NOON_MS, NOON.replace(tzinfo=None)),
        (semantic("time.MicroTimestamp", "int64", "v"), NOON_MS * 1000, NOON.replace(tzinfo=None)),
        (semantic("time.NanoTimestamp", "int64", "v"), NOON_MS * 1_000_000 + 999, NOON.replace(tzinfo=None)),
        (semantic("time.ZonedTimestamp", "string", "v"), "2016-01-16T13:00:00.123+01:00", NOON),
        (semantic("time.Time", "int32", "v"), 1234, datetime.time(0, 0, 1, 234_000)),
        (semantic("time.MicroTime", "int64", "v"), 1_234_567, datetime.time(0, 0, 1, 234_567)),
        (semantic("time.NanoTime", "int64", "v"), 1_234_567_999, datetime.time(0, 0, 1, 234_567)),
        (semantic("data.Json", "string", "v"), "{}", "{}"),
        (SCALED, {"scale": 2, "value": "BNI="}, Decimal("12.34")),
        (SCALED, {"scale": 0, "value": "/w=="}, Decimal(-1)),
    ],
)
def test_types_of_debezium_are_those_of_sql(
    sinking: Sinking, field: Any, value: Any, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[pa.Table] = []
    sink = sinking()
    tables = sink._tables
    assert tables is not None
    fitted = tables.fit

    def fit(table: Any, rows: pa.Table, keys: Sequence[str], *, is_mixed: bool) -> pa.Table:
        written.append(rows)
        return fitted(table, rows, keys, is_mixed=is_mixed)

    monkeypatch.setattr(tables, "fit", fit)
    records = events(
        [{"id": 1}, {"id": 2}], [change("c", None, {"id": id_, "v": it}) for id_, it in ((1, value), (2, None))], field
    )
    sink.write(records, Identity("c", {(TOPIC, 0): (0, 2)}))
    assert written[0].column("v").to_pylist() == [expected, None]


@pytest.mark.parametrize(
    ("name", "kind", "good", "bad", "error"),
    [
        ("time.ZonedTimestamp", "string", "2016-01-16T12:00:00Z", "soon", "the field v:"),
        ("time.MicroTime", "int64", 5, -3_600_000_000, "-3600000000 microseconds are no time of a day"),
        ("time.Time", "int32", 5, 86_400_000, "86400000000 microseconds are no time of a day"),
        ("time.NanoTime", "int64", 5, -1_000, "-1 microseconds are no time of a day"),
    ],
)
def test_a_value_that_is_none_of_its_type_is_named(
    sinking: Sinking, name: str, kind: str, good: Any, bad: Any, error: str
) -> None:
    field = semantic(name, kind, "v")
    rows = [{"id": 1, "v": good}, {"id": 2, "v": bad}]
    records = events(
        [{"id": 0}, {"id": 1}, {"id": 2}], [change("t", None, None), *(change("c", None, each) for each in rows)], field
    )
    with pytest.raises(BadRecords) as failed:
        sinking.write(records)
    assert list(failed.value.reasons) == [2]
    assert error in failed.value.reasons[2]


def test_a_record_without_a_key_is_named_by_its_own_number(sinking: Sinking) -> None:
    records = events([{"id": 1}, None], [change("t", None, None), change("c", None, ED)])
    with pytest.raises(BadRecords, match=r"it has no key, and primary.key.mode record_key needs one") as failed:
        sinking.write(records)
    assert list(failed.value.reasons) == [1]


@pytest.mark.parametrize(
    ("more", "table", "rows"),
    [
        ({"collection.name.format": "k_${topic}"}, f"k_{TABLE}", [(3, "Ed"), (4, "Anne Marie")]),
        ({"table.name.format": "people"}, "people", [(3, "Ed"), (4, "Anne Marie")]),
        ({"field.exclude.list": "name"}, TABLE, [(3,), (4,)]),
        ({"field.exclude.list": "other:name"}, TABLE, [(3, "Ed"), (4, "Anne Marie")]),
        ({"field.include.list": f"id,{TOPIC}:name"}, TABLE, [(3, "Ed"), (4, "Anne Marie")]),
        ({"field.include.list": "id"}, TABLE, [(3,), (4,)]),
        (
            {"primary.key.mode": "record_value", "primary.key.fields": "id", "delete.enabled": "false"}, TABLE,
            [(3, "Ed"), (4, "Anne Marie")],
        ),
        (
            {"primary.key.mode": "none", "insert.mode": "INSERT", "delete.enabled": "false"}, TABLE,
            [(3, "Ed"), (4, "Anne"), (4, "Anne Marie")],
        ),
    ],
)  # fmt: skip
def test_keys(sinking: Sinking, more: dict[str, str], table: str, rows: list[Any]) -> None:
    sinking.write(events(KEYS, CHANGES), **more)
    assert sinking.rows(table) == rows


@pytest.mark.parametrize(
    ("config", "key", "error"),
    [
        ({"primary.key.mode": "record_header"}, "primary.key.mode", "the primary key cannot come from headers"),
        ({"primary.key.mode": "none", "delete.enabled": "false"}, "insert.mode", "needs a primary key: set primary.key.mode"),
        ({"primary.key.mode": "none"}, "delete.enabled", "only supported for primary.key.mode record_key"),
        ({"truncate.enabled": "true"}, "truncate.enabled", "not supported"),
        ({"collection.name.format": "${source.table}"}, "collection.name.format", r"\$\{source.table\} is not known"),
        ({"field.include.list": "a", "field.exclude.list": "b"}, "field.exclude.list", "field.include.list is set too"),
        ({"connection.url": "jdbc:sqlserver://h/d"}, "connection.url", "is none of jdbc:postgresql"),
    ],
)  # fmt: skip
def test_configs_that_cannot_work(config: dict[str, str], key: str, error: str) -> None:
    found = DebeziumJdbcSink.validate({"connection.url": "jdbc:sqlite:x", **EXAMPLE, **config})
    texts = " ".join(found.get(key, ()))
    assert re.search(error, texts), found


def test_the_short_name_is_that_of_confluents_sink() -> None:
    assert find(CLASS, [Kind.SINK]).load() is DebeziumJdbcSink
    assert find("JdbcSinkConnector", [Kind.SINK]).name == "io.confluent.connect.jdbc.JdbcSinkConnector"


def test_topics_whose_keys_and_types_differ(tasks: Tasks, tmp_path: Path) -> None:
    target, first = Target(f"jdbc:sqlite:{tmp_path / 'two.db'}"), tasks.topic
    worker = {f"{side}.converter": "org.apache.kafka.connect.json.JsonConverter" for side in ("key", "value")}
    job = tasks.job(
        CLASS, "sink", {**EXAMPLE, **target.config, "topics": f"{first},{first}-two", "quote.identifiers": "true"}, worker
    )
    number = {"type": "int32", "optional": False, "field": "n"}
    word = {"type": "string", "optional": False, "field": "code"}
    for topic, key, value in (
        (first, envelope(struct(number), {"n": 1}), envelope(struct(number, number | {"field": "v"}), {"n": 1, "v": 7})),
        (
            f"{first}-two", envelope(struct(word), {"code": "a"}),
            envelope(struct(word, semantic("time.Date", "int32", "v")), {"code": "a", "v": 1}),
        ),
    ):  # fmt: skip
        tasks.topic = topic
        tasks.create_topic()
        tasks.produce(value, key=key)
    with tasks.running(job) as task:
        tasks.until(lambda: tasks.committed() == {0: (1, "")}, task, "not all records were taken")
    assert target.run(f'SELECT * FROM "{first}"') == [(1, 7)]
    assert target.run(f'SELECT * FROM "{first}-two"') == [("a", "1970-01-02")]


def envelope(schema: Mapping[str, Any], payload: Any) -> str:
    return json.dumps({"schema": schema, "payload": payload})
