"""Debezium's transforms, on small batches of events."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from barnabas.connect.catalog import Kind, find
from barnabas.connect.config_types import ConfigError
from barnabas.connect.errors import ConnectError
from barnabas.connect.transforms.chain import Chain
from tests.connect.transforms.test_transforms import applied, values

UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
OUTBOX = "io.debezium.transforms.outbox.EventRouter"


def event(op: str, before: Any, after: Any) -> dict[str, Any]:
    return {"before": before, "after": after, "op": op, "ts_ms": 5, "source": {"table": "t", "lsn": 9}}


A, B = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
CHANGES = [event("c", None, A), event("u", A, B), event("d", B, None), None]


def events(rows: list[Any], **more: Any) -> pa.Table:
    count = len(rows)
    columns = {"value": pa.array(rows), "key": pa.array([{"id": 1}] * count), "topic": pa.array(["db.public.t"] * count)}
    return pa.table({**columns, **more})


@pytest.mark.parametrize(
    ("config", "rows"),
    [
        ({}, [A, B, None]),
        ({"delete.tombstone.handling.mode": "drop"}, [A, B]),
        ({"delete.tombstone.handling.mode": "delete-to-tombstone"}, [A, B, None]),
        (
            {"delete.tombstone.handling.mode": "rewrite"},
            [A | {"__deleted": "false"}, B | {"__deleted": "false"}, B | {"__deleted": "true"}],
        ),
        (
            {"delete.tombstone.handling.mode": "rewrite-with-tombstone"},
            [A | {"__deleted": "false"}, B | {"__deleted": "false"}, B | {"__deleted": "true"}, None],
        ),
        ({"drop.tombstones": "false"}, [A, B, None]),
        ({"delete.handling.mode": "none"}, [A, B, None]),
        ({"delete.handling.mode": "drop"}, [A, B]),
    ],
)
def test_the_row_alone(config: dict[str, str], rows: list[Any]) -> None:
    assert values(applied(UNWRAP, config, events(CHANGES))) == rows


def test_fields_keep_what_is_known_about_them() -> None:
    day = pa.field("day", pa.int32(), metadata={"connect.name": "io.debezium.time.Date"})
    row = pa.StructArray.from_arrays(
        [pa.array([1], pa.int32()), pa.array([1], pa.int32())], fields=[pa.field("id", pa.int32(), False), day]
    )
    rows = [pa.field(name, row.type, metadata={"connect.name": "t.Value"}) for name in ("before", "after")]
    event_of = pa.StructArray.from_arrays([row, row, pa.array(["u"])], fields=[*rows, pa.field("op", pa.string())])
    value = applied(UNWRAP, {}, pa.table({"value": event_of, "topic": ["t"]})).schema.field("value")
    found: Any = value.type
    assert value.metadata == {b"connect.name": b"t.Value"}
    assert [(each.name, each.nullable, each.metadata) for each in found] == [("id", False, None), ("day", True, day.metadata)]


def test_fields_and_headers_of_the_event_go_along() -> None:
    config = {"add.fields": "op,source.lsn,table,op:kind", "add.headers": "ts_ms", "route.by.field": "name"}
    found = applied(UNWRAP, config, events(CHANGES[:1]))
    assert values(found) == [A | {"__op": "c", "__source_lsn": 9, "__table": "t", "__kind": "c"}]
    assert values(found, "headers") == [[{"key": "__ts_ms", "value": b"5"}]]
    assert values(found, "topic") == ["a"]
    with pytest.raises(ConnectError, match=r"no field nix; it has table, lsn"):
        applied(UNWRAP, {"add.fields": "nix"}, events(CHANGES[:1]))


def test_other_values_pass() -> None:
    heartbeat = events([{"ts_ms": 1}])
    assert applied(UNWRAP, {}, heartbeat).equals(heartbeat)


def test_tables_in_one_topic_keep_their_keys_apart() -> None:
    name = "io.debezium.transforms.ByLogicalTableRouter"
    config = {"topic.regex": r"(.*)shard_\d+", "topic.replacement": "$1all"}
    topics = pa.array(["db.shard_1", "db.shard_2", "db.other"])
    found = applied(name, config, events(CHANGES[:3], topic=topics))
    assert values(found, "topic") == ["db.all", "db.all", "db.other"]
    assert values(found, "key")[0] == {"id": 1, "__dbz__physicalTableIdentifier": "db.shard_1"}
    more = {"key.field.name": "shard", "key.field.regex": r".*_(\d+)", "key.field.replacement": "$1"}
    assert values(applied(name, config | more, events(CHANGES[:2], topic=topics[:2])), "key")[1] == {"id": 1, "shard": "2"}
    off = config | {"key.enforce.uniqueness": "false"}
    assert values(applied(name, off, events(CHANGES[:2], topic=topics[:2])), "key")[1] == {"id": 1}


ROW = {"id": "e1", "aggregatetype": "Order", "aggregateid": "7", "type": "OrderCreated", "payload": '{"total": 3}'}


def test_rows_of_an_outbox_become_messages() -> None:
    given = events([event("c", None, ROW), event("d", ROW, None), None])
    found = applied(OUTBOX, {"table.fields.additional.placement": "type:header:eventType"}, given)
    assert found.select(["topic", "key", "value"]).to_pylist() == [
        {"topic": "outbox.event.Order", "key": "7", "value": '{"total": 3}'}
    ]
    assert values(found, "headers") == [[{"key": "id", "value": b"e1"}, {"key": "eventType", "value": b"OrderCreated"}]]
    wide = {
        "table.expand.json.payload": "true",
        "table.fields.additional.placement": "type:envelope",
        "route.topic.replacement": "x",
    }
    found = applied(OUTBOX, wide, given)
    assert (values(found), values(found, "topic")) == ([{"payload": {"total": 3}, "type": "OrderCreated"}], ["x"])


def test_an_update_of_an_outbox_is_left_out_or_an_error() -> None:
    given = events([event("u", ROW, ROW)])
    assert applied(OUTBOX, {}, given).num_rows == 0
    with pytest.raises(ConnectError, match="was updated"):
        applied(OUTBOX, {"table.op.invalid.behavior": "fatal"}, given)
    with pytest.raises(ConnectError, match="the outbox has no column aggregateid"):
        applied(OUTBOX, {}, events([event("c", None, A)]))


@pytest.mark.parametrize("name", ["Filter", "ContentBasedRouter"])
def test_scripts_are_refused(name: str) -> None:
    config = {"transforms": "x", "transforms.x.type": f"io.debezium.transforms.{name}", "transforms.x.language": "jsr223.groovy"}
    with pytest.raises(ConfigError, match=r"scripts of Java do not run here; barnabas\.Sql"):
        Chain(config)
    assert find("Filter", [Kind.TRANSFORMATION]).name == "org.apache.kafka.connect.transforms.Filter"
