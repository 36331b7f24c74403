"""Rows that an insert appends, and the tables beside its streams, stay in step, whatever fails in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.engine.jobs import InputTable, Job, decode, encode
from barnabas.incremental.interface import FlowError
from barnabas.incremental.plan import Plan
from barnabas.tables.table import table
from barnabas.testing import Broker
from tests.engine.driver.appending import CLICKS, JOINED, Appending, projected, work
from tests.engine.driver.test_kept_view import PLACES, Died, fail_at


@pytest.fixture
def appending(tmp_path: Path) -> Iterator[Appending]:
    with Broker() as broker:
        made = Appending(broker.bootstrap_servers, tmp_path)
        yield made
        made.close()


def progressed(appending: Appending) -> tuple[int, object]:
    found = appending.progress()
    assert found is not None
    return found.batch, found.offsets


def test_rows_are_joined_with_the_rows_that_tables_have_then(appending: Appending) -> None:
    appending.names(a="Ada", b="Ben", c="Cy")
    appending.names(a="Anna", c=None)
    appending.clicks((1, "a"), (2, "b"))
    job = appending.open()
    job.begin()
    assert progressed(appending) == (0, {"s": {"0": 0}, "t": {"0": 5}})
    assert json.loads(job.starting_offsets) == {"s": "earliest", "t": {"0": 5}}
    appending.take(1, s=(0, 1))
    appending.names(b="Bill")
    appending.take(2, s=(1, 2), t=(5, 6))
    assert appending.written() == [(1, "Anna"), (2, "Bill")]
    appending.names(a=None)
    appending.clicks((3, "a"), (4, "b"))
    appending.take(3, t=(6, 7))
    appending.take(4, s=(2, 4))
    assert appending.written() == [(1, "Anna"), (2, "Bill"), (4, "Bill")]
    found = appending.progress()
    assert found is not None
    assert (found.batch, found.offsets, found.total_in, found.total_out) == (4, {"s": {"0": 4}, "t": {"0": 7}}, 6, 3)


@pytest.mark.parametrize("place", PLACES)
def test_rows_are_appended_once_wherever_the_process_dies(
    appending: Appending, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    appending.names(a="Ada", b="Ben")
    appending.clicks((1, "a"))
    appending.open().begin()
    appending.take(1, s=(0, 1))
    appending.clicks((2, "b"), (3, "a"), (4, None))
    appending.names(b="Bill")
    with monkeypatch.context() as patched:
        fail_at(patched, place)
        with pytest.raises(Died):
            appending.take(2, s=(1, 4), t=(2, 3))
    appending.names(a="later")
    appending.open().begin()
    appending.take(2, s=(1, 4), t=(2, 3))
    assert appending.written() == [(1, "Ada"), (2, "Bill"), (3, "Ada")]
    appending.clicks((5, "a"))
    appending.take(3, s=(4, 5), t=(3, 4))
    assert appending.written()[3:] == [(5, "later")]
    assert progressed(appending) == (3, {"s": {"0": 5}, "t": {"0": 4}})


@pytest.mark.parametrize("place", PLACES[:3])
def test_a_process_that_dies_at_the_beginning_begins_again(
    appending: Appending, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    appending.names(a="Ada")
    job = appending.open()
    with monkeypatch.context() as patched:
        fail_at(patched, place)
        with pytest.raises(Died):
            job.begin()
    appending.names(a="later")
    appending.clicks((1, "a"))
    job = appending.open()
    job.begin()
    assert json.loads(job.starting_offsets)["t"] == {"0": 1}
    appending.take(1, s=(0, 1), t=(1, 2))
    assert appending.written() == [(1, "later")]


def test_a_topic_that_is_stream_and_table_counts_once_as_each(appending: Appending) -> None:
    appending.clicks((1, "a"), (2, "b"))
    names = InputTable("s", "json", ("k", "name"), columns="k text, id int", renamed={"name": "id"})
    plan = Plan((CLICKS, JOINED.tables["t"].__class__("t", JOINED.tables["t"].columns), *JOINED.nodes[2:]))
    given = work(plan)
    made = given.__class__(given.sql, plan, {**given.tables, "t": names}, given.target)
    job = appending.open(made)
    job.begin()
    assert job.starting_offsets == '{"s":"earliest"}'
    appending.clicks((3, "a"))
    appending.take(1, s=(0, 3))
    assert sorted(appending.written()) == [(1, "1"), (1, "3"), (2, "2"), (3, "1"), (3, "3")]


def test_a_stream_begins_where_the_job_says(appending: Appending) -> None:
    appending.clicks((1, "a"), (2, "b"))
    job = appending.open(work(projected(), start={"s": {"0": 2}}))
    job.begin()
    assert json.loads(job.starting_offsets) == {"s": {"0": 2}}
    assert progressed(appending) == (0, {"s": {"0": 2}})
    appending.clicks((3, "c"), (0, "none"))
    appending.take(1, s=(2, 4))
    assert appending.written() == [(4, "c")]


def test_rows_of_a_table_with_a_key_are_upserts(appending: Appending) -> None:
    target = InputTable("out", "json", ("id", "name"), columns="name text", key="id int", is_keyed=True)
    appending.open(work(projected(), target)).begin()
    appending.clicks((1, "a"), (2, "b"), (1, "c"))
    appending.take(1, s=(0, 3))
    with table("out", appending.servers, format="json", columns="name text", key="id int") as found:
        newest = found.newest_by_key().arrow(["id", "name"]).to_pylist()
    assert sorted((row["id"], row["name"]) for row in newest) == [(2, "c"), (3, "b")]


def test_topics_of_text_and_of_bytes_get_values_as_they_are(appending: Appending) -> None:
    target = InputTable("out", "text", ("id", "name"), key="id int", renamed={"name": "value"})
    appending.open(work(projected(), target)).begin()
    appending.clicks((1, "a"))
    appending.take(1, s=(0, 1))
    with table("out", appending.servers) as found:
        assert [(row["_key"], row["value"]) for row in found.arrow().to_pylist()] == [(b"2", b"a")]


def test_what_fails_leaves_the_topic_as_it_was(appending: Appending) -> None:
    appending.clicks((1, "a"), (2**31 - 1, "b"), (2, None))
    appending.open(work(projected(), required=("name",))).begin()
    appending.take(1, s=(0, 1))
    with pytest.raises(FlowError, match=r"Out of Range"):
        appending.take(2, s=(1, 2))
    with pytest.raises(FlowError, match='null value in column "name" of "out" violates not-null constraint'):
        appending.take(2, s=(2, 3))
    assert appending.written() == [(2, "a")]
    assert progressed(appending)[0] == 1


def test_the_record_of_an_insert_can_be_read_back() -> None:
    job = Job("i", work(start={"s": {"0": 7}}))
    assert decode(encode(job), Job) == job
    assert job.kind == "insert"
