"""The connectors that ship are found by their names, and their definitions are whole."""

from __future__ import annotations

import pytest

from barnabas.connect.catalog import Kind, find
from barnabas.connect.functions import connector_class


@pytest.mark.parametrize(
    ("name", "kind", "needs_spark"),
    [
        ("barnabas.DebeziumSource", Kind.SOURCE, False), ("barnabas.DltSource", Kind.SOURCE, False),
        ("barnabas.SparkSource", Kind.SOURCE, True), ("barnabas.SparkSink", Kind.SINK, True),
    ],
)  # fmt: skip
def test_an_adapter_is_there_without_what_it_adapts(name: str, kind: Kind, needs_spark: bool) -> None:
    found = find(name, [kind])
    assert found is find(name.rpartition(".")[2], [kind])
    cls = connector_class(found.load())
    assert cls.needs_spark is needs_spark
    assert all(key.documentation for key in cls.config)


@pytest.mark.parametrize("name", ["JdbcSinkConnector", "JdbcSourceConnector"])
def test_the_names_of_the_aiven_connectors_of_databases(name: str) -> None:
    """Configs of theirs have the same keys."""
    assert find(f"io.aiven.connect.jdbc.{name}") is find(f"io.confluent.connect.jdbc.{name}")
