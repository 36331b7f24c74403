"""Records that are made up."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.datagen.source import Datagen
from barnabas.connect.plugins.datagen.templates import TEMPLATES
from barnabas.connect.runtime.source_offsets import records_of
from tests.connect.runtime.tasks import JSON, Tasks


def has(written: Callable[[], list[Any]], count: int) -> bool:
    return len(written()) >= count


CLASS = "io.confluent.kafka.connect.datagen.DatagenConnector"


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_the_rows_of_a_quickstart_have_a_key_and_types(name: str) -> None:
    config = {"kafka.topic": "t", "quickstart": name.upper(), "iterations": "50", "max.interval": "0"}
    assert Datagen.validate(config) == {}
    [batch] = Datagen().read(Datagen.config.parse(config), [])
    assert batch is not None
    assert batch.key == (TEMPLATES[name].key,)
    assert isinstance(batch.rows, pa.Table)
    assert batch.rows.schema.names == list(TEMPLATES[name].fields)
    assert all(not column.null_count for column in batch.rows.columns)


@pytest.mark.parametrize("name", ["orders", "shoe_orders", "users_array_map"])
def test_a_quickstart_goes_on_where_it_was(tasks: Tasks, name: str) -> None:
    tasks.create_topic()
    config = {"kafka.topic": tasks.topic, "quickstart": name, "max.interval": "1"}

    def written() -> list[Any]:
        return list(records_of(tasks._client, tasks.topic))

    for most in (3, 5):
        with tasks.running(tasks.job(CLASS, "source", {**config, "iterations": str(most)}, JSON)) as task:
            tasks.until(partial(has, written, most), task, "there are no records")
    records = written()
    rows = [msgspec.json.decode(each.value or b"") for each in records]
    assert len(rows) == 5
    assert [msgspec.json.decode(each.key or b"") for each in records] == [each[TEMPLATES[name].key] for each in rows]
    every = {**config, "name": "x", "iterations": "5", "max.interval": "0"}
    [batch] = Datagen().read(Datagen.config.parse(every), [])
    assert batch is not None
    assert isinstance(batch.rows, pa.Table)
    assert [in_json(each) for each in batch.rows.to_pylist(maps_as_pydicts="strict")] == rows


def in_json(row: dict[str, Any]) -> dict[str, Any]:
    """The row as JSON has it: times are milliseconds."""
    return {
        name: int(each.timestamp() * 1000) if isinstance(each, datetime.datetime) else each for name, each in row.items()
    }  # fmt: skip


def rows_by(schema: Any, count: int = 20) -> list[Any]:
    """The rows that a schema makes."""
    config = {"kafka.topic": "t", "schema.string": json.dumps(schema), "iterations": str(count), "max.interval": "0"}
    assert Datagen.validate(config) == {}
    [batch] = Datagen().read(Datagen.config.parse(config), [])
    assert batch is not None
    assert isinstance(batch.rows, pa.Table)
    return batch.rows.to_pylist(maps_as_pydicts="strict")


def fields(**kinds: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "r",
        "namespace": "n",
        "fields": [{"name": name, "type": kind} for name, kind in kinds.items()],
    }


def given(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": kind, "arg.properties": properties}


@pytest.mark.parametrize(
    ("kind", "holds"),
    [
        (given("int", range={"min": 3, "max": 5}), lambda each: each in {3, 4}),
        (given("double", range={"min": 3, "max": 5}), lambda each: 3 <= each <= 5),
        (given("string", options=["a", "b"]), lambda each: each in {"a", "b"}),
        (given("string", regex=r"[A-C]{2}\.\d(x|yz)?-[^a-zA-Z]+"), re.compile(r"[A-C]{2}\.\d(x|yz)?-[0-9]+").fullmatch),
        (given("string", prefix="<", suffix=">", length=3), re.compile("<[a-zA-Z0-9]{3}>").fullmatch),
        (given("string", length={"min": 2, "max": 4}), lambda each: len(each) in {2, 3}),
        (given("boolean", odds=1), lambda each: each is True),
        (given("bytes", length=2), lambda each: len(each) == 2),
        ({"type": "fixed", "name": "f", "size": 4}, lambda each: len(each) == 4),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, lambda each: each in {"A", "B"}),
        ({**given("array", length=2), "items": given("int", range={"min": 1, "max": 2})}, lambda each: each == [1, 1]),
        (
            {**given("map", length=1, keys={"options": ["k"]}), "values": given("string", options=["v"])},
            lambda each: each == {"k": "v"},
        ),
        (["null", given("int", range={"min": 1, "max": 2})], lambda each: each in {None, 1}),
        ({"type": "int", "logicalType": "date", "arg.properties": {"options": [1]}}, lambda each: each == datetime.date(1970, 1, 2)),
        (fields(deep=given("int", options=[7])), lambda each: each == {"deep": 7}),
        ({"type": given("int", options=[7])}, lambda each: each == 7),
    ],
)  # fmt: skip
def test_values_are_as_their_properties_say(kind: Any, holds: Callable[[Any], Any]) -> None:
    rows = rows_by(fields(v=kind))
    assert len(rows) == 20
    assert all(holds(each["v"]) for each in rows)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (given("long", iteration={"start": 5}), [5, 6, 7, 8]),
        (given("int", iteration={"start": 0, "step": 10, "restart": 30}), [0, 10, 20, 0]),
        (given("int", iteration={"start": 0, "initial": 2, "restart": 3}), [2, 0, 1, 2]),
        (given("string", iteration={"start": 1}), ["1", "2", "3", "4"]),
        (given("boolean", iteration={"start": True}), [True, False, True, False]),
    ],
)
def test_iterations_count_rows(kind: Any, values: list[Any]) -> None:
    assert [each["v"] for each in rows_by(fields(v=kind), 4)] == values


@pytest.mark.parametrize(
    ("config", "key", "error"),
    [
        ({}, "quickstart", "one of quickstart, schema.string, schema.filename is needed; quickstart is one of users"),
        ({"quickstart": "users", "schema.filename": "f"}, "schema.filename", "quickstart is set too"),
        ({"quickstart": "nothing"}, "quickstart", "String must be one of"),
        ({"schema.string": "{"}, "schema.string", "is no schema in Avro"),
        ({"schema.string": '"int"'}, "schema.string", "is no record"),
        ({"schema.string": json.dumps(fields(v="nix"))}, "schema.string", "v: the type nix is not known"),
        ({"schema.string": json.dumps(fields(v=["int", "string"]))}, "schema.string", "v is a union of 2 types"),
        ({"schema.string": json.dumps(fields(v=given("int", foo=1)))}, "schema.string", "foo is not known"),
        ({"schema.string": json.dumps(fields(v=given("string", length=10**9)))}, "schema.string", "no number up to"),
        ({"schema.string": json.dumps(fields(v=given("string", regex="a{1,99999}")))}, "schema.string", "no count up to"),
        ({"schema.string": json.dumps(fields(v=given("string", regex="(a")))}, "schema.string", "a group has no end"),
        ({"schema.string": json.dumps(fields(v=given("string", options={"file": "x"})))}, "schema.string", "no list of values"),
    ],
)  # fmt: skip
def test_what_it_cannot_make_is_refused(config: dict[str, str], key: str, error: str) -> None:
    found = Datagen.config.validate({"kafka.topic": "t", **config})[key].errors or Datagen.validate(config).get(key, ())
    assert error in " ".join(found)


def test_a_schema_in_a_file_and_its_key(tmp_path: Path) -> None:
    path = tmp_path / "schema.avsc"
    path.write_text(json.dumps(fields(v=given("int", options=[7]))))
    config = {"kafka.topic": "t", "schema.filename": str(path), "iterations": "1", "max.interval": "0"}
    [batch] = Datagen().read(Datagen.config.parse({**config, "schema.keyfield": "v"}), [])
    assert batch is not None
    assert (batch.key, batch.name) == (("v",), "n.r")
    for more, error in (
        ({"schema.keyfield": "w"}, "the fields are v"),
        ({"schema.filename": str(tmp_path / "nix")}, "has no schema"),
    ):
        with pytest.raises(ConnectError, match=error):
            next(Datagen().read(Datagen.config.parse({**config, **more}), []))


def test_tasks_make_records_of_their_own() -> None:
    config = {"kafka.topic": "t", "quickstart": "users", "iterations": "3", "max.interval": "0"}
    made = []
    for task in Datagen.tasks(Datagen.config.parse(config), 2):
        [batch] = Datagen().read(Datagen.config.parse({**config, **task}), [])
        assert batch is not None
        made.append(batch.rows)
    assert made[0] != made[1]
