"""Our capture of PostgreSQL against the records that Debezium made of the same changes."""

from __future__ import annotations

from contextlib import closing

from tests.connect.plugins.servers import PostgresServer
from tests.differential.capture import golden, postgres
from tests.differential.capture.captures import await_event, ours
from tests.differential.capture.comparison import differences, schema_differences


def test_records_are_those_of_debezium() -> None:
    with closing(PostgresServer()) as server:
        golden.run(server, *postgres.SCHEMA)
        with ours(postgres.config(server.port, "mine", r"public\..*")) as topics:
            await_event(topics, postgres.DONE, 1)
            golden.run(server, *postgres.CHANGES, "INSERT INTO done VALUES (1)")
            await_event(topics, postgres.DONE, 2)
            for table, theirs in golden.read().items():
                assert list(differences(theirs, [golden.steady(each) for each in topics.events(table)])) == [], table
            for table, schemas in golden.schemas().items():
                key, value = golden.schemas_of(topics.events(table)[0])
                assert list(schema_differences(schemas, ({"schema": key}, {"schema": value}))) == [], table
