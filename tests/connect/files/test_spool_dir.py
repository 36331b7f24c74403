"""Configs of SpoolDir's sources work unchanged."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path

import fastavro
import pytest

from barnabas.connect.config_types import ConfigError
from barnabas.connect.plugins.dialects.spool_dir import SpoolDir, SpoolDirAvro, SpoolDirCsv, SpoolDirJson, SpoolDirLines
from barnabas.connect.runtime.opening import config_of
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.engine.jobs import Job
from tests.connect.runtime.tasks import JSON, STRINGS, Tasks
from tests.waiting import wait_until

PACKAGE = "com.github.jcustenborder.kafka.connect.spooldir."
KEY = {"name": "k", "type": "STRUCT", "isOptional": False, "fieldSchemas": {"id": {"type": "INT64", "isOptional": False}}}
VALUE = {
    "name": "v", "type": "STRUCT", "isOptional": False,
    "fieldSchemas": {
        "id": {"type": "INT64", "isOptional": False}, "first_name": {"type": "STRING", "isOptional": True},
        "born": {"name": "org.apache.kafka.connect.data.Date", "type": "INT32", "version": 1, "isOptional": True},
        "price": {"name": "org.apache.kafka.connect.data.Decimal", "type": "BYTES", "parameters": {"scale": "2"}},
    },
}  # fmt: skip


def job(tasks: Tasks, cls: str, config: Mapping[str, str], worker: Mapping[str, str] = JSON) -> Job:
    for name in ("data", "error", "finished"):
        (tasks.folder / name).mkdir(exist_ok=True)
    given = {
        "tasks.max": "1", "input.path": str(tasks.folder / "data"), "error.path": str(tasks.folder / "error"),
        "finished.path": str(tasks.folder / "finished"), "halt.on.error": "false", "topic": tasks.topic,
        "empty.poll.wait.ms": "10",
    }  # fmt: skip
    return tasks.job(PACKAGE + cls, "source", given | dict(config), worker)


def put(tasks: Tasks, name: str, data: str | bytes) -> Path:
    hidden = tasks.folder / f".{name}"
    hidden.write_bytes(data.encode() if isinstance(data, str) else data)
    return hidden.rename(tasks.folder / "data" / name)


def read(tasks: Tasks, made: Job, count: int, name: str) -> list[tuple[object, object]]:
    with tasks.running(made) as task:
        tasks.until(lambda: len(tasks.values()) == count, task, "the records are not there")
        wait_until(lambda: (tasks.folder / "finished" / name).exists(), "the file does not move")
    return [
        (None if each.key is None else json.loads(bytes(each.key)), json.loads(bytes(each.value or b"null")))
        for each in records_of(tasks._client, tasks.topic)
    ]


def test_csv_with_schemas(tasks: Tasks) -> None:
    config = {
        "input.file.pattern": r"csv-spooldir-source\.csv", "csv.first.row.as.header": "true", "key.schema": json.dumps(KEY),
        "value.schema": json.dumps(VALUE),
    }  # fmt: skip
    made = job(tasks, "SpoolDirCsvSourceConnector", config)
    put(tasks, "other.csv", "id\n9\n")
    put(tasks, "csv-spooldir-source.csv", "id,first_name,born,price\n1,Ada,1815-12-10,1.50\n2,Grace,,\n")
    found = read(tasks, made, 2, "csv-spooldir-source.csv")
    born = -56_270  # days before 1970
    assert found[0][0] == {"id": 1}
    assert found[0][1] == {"id": 1, "first_name": "Ada", "born": born, "price": "AJY="}  # 150, the unscaled number, in base64
    assert found[1] == ({"id": 2}, {"id": 2, "first_name": "Grace", "born": None, "price": None})
    assert (tasks.folder / "data" / "other.csv").exists()


def test_csv_with_generated_schemas_has_texts(tasks: Tasks) -> None:
    config = {
        "input.file.pattern": r".*\.csv", "schema.generation.enabled": "true", "csv.first.row.as.header": "true",
        "schema.generation.key.fields": "id", "csv.separator.char": "59",
    }  # fmt: skip
    made = job(tasks, "SpoolDirCsvSourceConnector", config)
    put(tasks, "a.csv", "id;name\n1;Ada\n")
    assert read(tasks, made, 1, "a.csv") == [({"id": "1"}, {"id": "1", "name": "Ada"})]


def test_csv_without_a_header(tasks: Tasks) -> None:
    made = job(tasks, "SpoolDirCsvSourceConnector", {"input.file.pattern": ".*", "schema.generation.enabled": "true"})
    put(tasks, "a.csv", "1,Ada\n")
    assert read(tasks, made, 1, "a.csv") == [(None, {"column01": "1", "column02": "Ada"})]


def test_json(tasks: Tasks) -> None:
    made = job(tasks, "SpoolDirJsonSourceConnector", {"input.file.pattern": r".*\.json", "schema.generation.enabled": "true"})
    put(tasks, "a.json", '{"id": 1, "name": "Ada"}\n{"id": 2, "name": null}\n')
    assert read(tasks, made, 2, "a.json") == [(None, {"id": 1, "name": "Ada"}), (None, {"id": 2, "name": None})]


def test_avro(tasks: Tasks) -> None:
    """The files have their schemas."""
    schema = {
        "type": "record",
        "name": "v",
        "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
    }
    data = io.BytesIO()
    fastavro.writer(data, fastavro.parse_schema(schema), [{"id": 1, "name": "Ada"}, {"id": 2, "name": None}])
    made = job(tasks, "SpoolDirAvroSourceConnector", {"input.file.pattern": r".*\.avro"})
    put(tasks, "a.avro", data.getvalue())
    assert read(tasks, made, 2, "a.avro") == [(None, {"id": 1, "name": "Ada"}), (None, {"id": 2, "name": None})]


@pytest.mark.parametrize("cls", ["SpoolDirLineDelimitedSourceConnector", "SpoolDirSchemaLessJsonSourceConnector"])
def test_lines(tasks: Tasks, cls: str) -> None:
    made = job(tasks, cls, {"input.file.pattern": ".*"}, STRINGS)
    put(tasks, "a.json", '{"id": 1}\n{"id": 2}\n')
    assert read(tasks, made, 2, "a.json") == [(None, {"id": 1}), (None, {"id": 2})]


def test_a_bad_file_moves_to_the_folder_of_errors(tasks: Tasks) -> None:
    made = job(tasks, "SpoolDirCsvSourceConnector", {"input.file.pattern": ".*", "value.schema": json.dumps(KEY)})
    put(tasks, "bad.csv", "nonsense\n")
    with tasks.running(made) as task:
        tasks.until(lambda: (tasks.folder / "error" / "bad.csv").exists(), task, "the file does not move")
    assert tasks.values() == []


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({}, 'Missing required configuration "input.file.pattern"'),
        ({"input.file.pattern": ".*"}, "value.schema"),
        ({"input.file.pattern": ".*", "value.schema": "{}"}, "Invalid value {} for configuration value.schema"),
        ({"input.file.pattern": ".*", "value.schema": "[" * 100_000}, "for configuration value.schema: a schema such as"),
        ({"input.file.pattern": ".*", "value.schema": '{"fieldSchemas": {"a": {"type": "MAP"}}}'}, "the type of the field a"),
        ({"input.file.pattern": ".*", "schema.generation.enabled": "true", "finished.path": ""}, "configuration finished.path"),
        ({"input.file.pattern": ".*", "schema.generation.enabled": "true", "csv.escape.char": "39"}, "csv.escape.char"),
        ({"input.file.pattern": ".*", "schema.generation.enabled": "true", "csv.quote.char": "ab"}, "csv.quote.char"),
        ({"input.file.pattern": ".*", "schema.generation.enabled": "true", "timestamp.mode": "FIELD"}, "timestamp.mode"),
    ],
)
def test_what_is_wrong_is_said(config: Mapping[str, str], says: str) -> None:
    given = {"topic": "t", "input.path": "/in", "error.path": "/error", "finished.path": "/done", **config}
    with pytest.raises(ConfigError) as caught:
        config_of(SpoolDirCsv(), given)
    assert says in str(caught.value)


@pytest.mark.parametrize("cls", [SpoolDirAvro, SpoolDirJson, SpoolDirLines])
@pytest.mark.parametrize("config", [{"timestamp.mode": "FILE_TIME"}, {"cleanup.policy.maintain.relative.path": "true"}])
def test_what_no_source_has_is_refused(cls: type[SpoolDir], config: Mapping[str, str]) -> None:
    given = {"topic": "t", "input.path": "/in", "error.path": "/error", "finished.path": "/done", "input.file.pattern": ".*"}
    with pytest.raises(ConfigError, match="This key is not supported"):
        config_of(cls(), {**given, **config})


def test_tasks_share_files() -> None:
    config = SpoolDirLines.config.parse({"topic": "t", "input.path": "/in", "input.file.pattern": ".*"})
    assert SpoolDirLines.tasks(config, 2) == [{"task.number": "0", "task.count": "2"}, {"task.number": "1", "task.count": "2"}]
