"""The rows of a table become those of another one, by a topic and whichever converter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from msgspec.structs import replace

from barnabas.engine.jobs import ConnectorWork, Job
from tests.connect.plugins.servers import PostgresServer
from tests.connect.plugins.targets import Target
from tests.connect.plugins.test_postgres_capture import PostgresCapture, capturing
from tests.connect.runtime.tasks import Tasks

CONVERTERS = {
    "json": "org.apache.kafka.connect.json.JsonConverter",
    "avro": "io.confluent.connect.avro.AvroConverter",
    "json-schema": "io.confluent.connect.json.JsonSchemaConverter",
    "protobuf": "io.confluent.connect.protobuf.ProtobufConverter",
}
SINK, DEBEZIUM = "JdbcSinkConnector", "io.debezium.connector.jdbc.JdbcSinkConnector"
OPTIONS = {
    SINK: {
        "pk.mode": "record_key", "pk.fields": "id", "auto.create": "true", "transforms": "u",
        "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState",
    },
    DEBEZIUM: {"primary.key.mode": "record_key", "schema.evolution": "basic"},
}  # fmt: skip
ROWS = (
    "INSERT INTO a SELECT n, n * 12345.67, -n, decode(lpad(to_hex(n), 4, '0'), 'hex'), date '1969-12-30' + n, "
    "timestamp '1969-12-31 23:59:59.5' + n * interval '1 hour', 't' || n FROM generate_series(1, {count}) AS n"
)
NULLS = "INSERT INTO a (id) VALUES (0)"


@pytest.fixture
def capture(tasks: Tasks, postgres: PostgresServer) -> Iterator[PostgresCapture]:
    yield from capturing(tasks, postgres)


@pytest.mark.parametrize("name", CONVERTERS)
def test_a_table_becomes_another_one(capture: PostgresCapture, name: str) -> None:
    check_copies(capture, name, "connect", SINK)


@pytest.mark.parametrize("name", ["avro", "json-schema"])
def test_names_of_debeziums_times_go_along(capture: PostgresCapture, name: str) -> None:
    check_copies(capture, name, "adaptive", DEBEZIUM)


def check_copies(capture: PostgresCapture, name: str, times: str, sink: str) -> None:
    """Capture a table by a converter, and write it into another one."""
    tasks, server = capture.tasks, capture.server
    capture.run(
        "CREATE TABLE a (id int PRIMARY KEY, n numeric(12,2), w numeric(38,0), b bytea, d date, at timestamp(3), t text)",
        ROWS.format(count=20),
    )
    registry = {"schema.registry.url": tasks.broker.schema_registry_url} if name != "json" else {}
    converters = {
        f"{part}.converter{key}": value
        for part in ("key", "value")
        for key, value in {"": CONVERTERS[name], **{f".{key}": value for key, value in registry.items()}}.items()
    }
    source = capture.job(time_precision_mode=times, table_include_list=f"{capture.name}.a")
    target = Target(server.url, "postgres")
    options = {
        "topics": capture.topic("a"), **target.config, "insert.mode": "upsert", **OPTIONS[sink],
        **dict.fromkeys(("table.name.format", "collection.name.format"), f"{capture.name}.copy"),
    }  # fmt: skip
    compared = (  # texts of numbers have the scale, too
        f"SELECT count(*) FROM {capture.name}.a JOIN {capture.name}.copy c USING (id) "
        "WHERE ROW(a.*) IS NOT DISTINCT FROM ROW(c.*) AND a.n::text IS NOT DISTINCT FROM c.n::text"
    )
    with tasks.running(with_converters(source, converters)) as reading:
        capture.until_streaming(reading)
        capture.run(ROWS.replace("FROM generate_series(1,", "FROM generate_series(21,").format(count=30), NULLS)
        with tasks.running(tasks.job(sink, "sink", options, converters)) as writing:
            tasks.until(lambda: target.has_table(f"{capture.name}.copy"), writing, "there is no table")
            tasks.until(lambda: server.query(compared) == [(31,)], writing, "not all rows are equal")


def with_converters(job: Job, converters: Mapping[str, str]) -> Job:
    assert isinstance(job.work, ConnectorWork)
    return replace(job, work=replace(job.work, worker=converters))
