"""Records that do not fit, in each mode, and columns inferred from a topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.client.config import ClientConfig
from barnabas.tables import table
from barnabas.tables.client_source import ClientSource
from barnabas.tables.column_types import columns_text
from barnabas.tables.declared import columns_of
from barnabas.tables.errors import BadRecord, TableError
from barnabas.tables.inference import infer
from barnabas.tables.scan import Scan
from barnabas.testing import Broker

RECORDS: list[tuple[bytes | None, bytes | None]] = [
    (b"1", b'{"a": 1, "b": "x"}'),
    (b"2", b"oops"),
    (b"3", None),
    (b"four", b'{"a": 4, "b": "y"}'),
    (b"5", b'{"a": "5", "b": "z"}'),
    (b"six", b"[6]"),
]


@pytest.fixture(scope="module")
def topics(broker: Broker) -> str:
    settings: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers}
    admin = AdminClient(settings)
    for future in admin.create_topics([NewTopic(name, 1) for name in ("records", "empty")]).values():
        future.result()
    producer = Producer(settings)
    for key, value in RECORDS:
        producer.produce("records", value, key)
    assert producer.flush(30) == 0
    return broker.bootstrap_servers


@pytest.fixture
def source(topics: str) -> Iterator[ClientSource]:
    made = ClientSource("records", ClientConfig.from_options({"bootstrap.servers": topics}))
    yield made
    made.close()


def scan(source: ClientSource, mode: str, names: list[str]) -> Scan:
    columns = columns_of("records", format="json", columns="a int, b text", key="k bigint", mode=mode)
    return Scan(source, source.snapshot(), columns, names)


def rows(scanned: Scan) -> list[Any]:
    return [tuple(row.values()) for batch in scanned.batches() for row in batch.to_pylist()]


def test_permissive_keeps_every_row_and_the_columns_that_fit(source: ClientSource) -> None:
    scanned = scan(source, "permissive", ["k", "a", "b"])
    assert rows(scanned) == [(1, 1, "x"), (2, None, None), (3, None, None), (None, 4, "y"), (5, None, "z"), (None, None, None)]
    assert scanned.report.bad == 4
    for names in (["k"], ["a"], ["b", "k"]):
        whole = dict(zip(("k", "a", "b"), zip(*rows(scan(source, "permissive", ["k", "a", "b"])), strict=True), strict=True))
        assert list(zip(*rows(scan(source, "permissive", names)), strict=True)) == [whole[name] for name in names]


@pytest.mark.parametrize("names", [["k", "a", "b"], ["a"], ["b"], ["_offset"], []])
def test_drop_leaves_out_the_same_rows_for_all_columns(source: ClientSource, names: list[str]) -> None:
    scanned = scan(source, "drop", [*names, "_offset"] if names != ["_offset"] else names)
    assert [row[-1] for row in rows(scanned)] == [0, 2]
    assert (scanned.report.bad, scanned.report.rows) == (4, 2)


@pytest.mark.parametrize("names", [["a"], ["_offset"]])
def test_fail_names_the_first_bad_record(source: ClientSource, names: list[str]) -> None:
    with pytest.raises(BadRecord, match="records-0: the record at offset 1 does not fit the table: it is no JSON"):
        rows(scan(source, "fail", names))


@pytest.mark.parametrize("mode", ["permissive", "drop", "fail"])
def test_bad_records_are_shown_with_their_reasons(source: ClientSource, mode: str) -> None:
    found = scan(source, mode, ["_offset"]).bad_records()
    assert found.schema.names == ["_partition", "_offset", "_key", "_value", "_reason"]
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (0, 1, b"2", b"oops", "it is no JSON: Expecting value at character 1"),
        (0, 3, b"four", RECORDS[3][1], "k is four, not bigint"),
        (0, 4, b"5", RECORDS[4][1], 'a is "5", not int'),
        (0, 5, b"six", b"[6]", "k is six, not bigint; it is [6], not a JSON object"),
    ]
    assert scan(source, mode, []).bad_records(limit=2).column("_offset").to_pylist() == [1, 3]


def test_a_table_shows_its_bad_records(topics: str) -> None:
    with table("records", topics, format="json", columns="a int", mode="drop") as records:
        assert records.bad_records().column("_offset").to_pylist() == [1, 4, 5]
        assert records.bad_records(limit=1).column("_reason").to_pylist() == ["it is no JSON: Expecting value at character 1"]


def test_columns_are_inferred_from_a_topic(source: ClientSource, topics: str) -> None:
    assert columns_text(infer(source)) == "a text, b text"
    assert columns_text(infer(source, sample=2)) == "a text, b text"
    empty = ClientSource("empty", ClientConfig.from_options({"bootstrap.servers": topics}))
    with pytest.raises(TableError, match="empty: columns cannot be inferred: there are no records with a value"):
        infer(empty)
    empty.close()
