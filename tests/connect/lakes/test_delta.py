"""Records of topics come into Delta tables, each of them once."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from msgspec import structs

from barnabas.connect.api import Identity
from barnabas.connect.config_types import ConfigError
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.delta import delta_table as library
from barnabas.connect.plugins.delta.sink import DeltaSink
from barnabas.connect.plugins.lakes.sink import Overtaken
from barnabas.connect.runtime.opening import config_of
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.engine.jobs import ConnectorWork, Job
from tests.connect.files import fake_s3
from tests.connect.lakes.deaths import die_at
from tests.connect.runtime.tasks import JSON, STRINGS, Tasks
from tests.waiting import wait_until

WORKER = {**JSON, "key.converter": STRINGS["key.converter"]}


def sink(tasks: Tasks, **config: str) -> Job:
    """A job that commits what is there at once; a key with an empty value is left out."""
    given = {"store.url": str(tasks.folder / "lake"), "topics": tasks.topic, "flush.interval.ms": "1"}
    given |= {key.replace("__", "."): each for key, each in config.items()}
    chosen = {key: each for key, each in given.items() if each}
    return tasks.job("barnabas.DeltaSink", "sink", chosen, WORKER)


def of_two(job: Job, number: int) -> Job:
    """One of two tasks of a connector."""
    assert isinstance(job.work, ConnectorWork)
    return structs.replace(job, name=f"{job.name}-{number}", work=structs.replace(job.work, task=number, tasks=2))


def table(tasks: Tasks, name: str | None = None) -> DeltaTable:
    return DeltaTable(tasks.folder / "lake" / (name or tasks.topic))


def rows(tasks: Tasks, name: str | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table(tasks, name).to_pyarrow_table().to_pylist()
    return sorted(found, key=str)


def objects(*ids: int) -> list[str]:
    return [json.dumps({"id": each}) for each in ids]


def ids(tasks: Tasks) -> list[int]:
    return sorted(each["id"] for each in rows(tasks))


def test_records_become_rows(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce('{"id":1,"name":"Ada","address":{"city":"Bern"},"tags":["x"]}', '{"id":2,"name":null}')
    with tasks.running(sink(tasks)) as task:
        tasks.until(lambda: tasks.committed() == {0: (2, "")}, task, "the offset was not committed")
    assert rows(tasks) == [
        {"id": 1, "name": "Ada", "address": {"city": "Bern"}, "tags": ["x"]},
        {"id": 2, "name": None, "address": None, "tags": None},
    ]
    assert table(tasks).transaction_version(f"{tasks.name}/{tasks.topic}/0") == 2


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["create", "commit", "offsets"])
def test_a_task_that_dies_writes_no_row_twice(tasks: Tasks, monkeypatch: pytest.MonkeyPatch, step: str, *, after: bool) -> None:
    tasks.create_topic(2)
    tasks.produce(*objects(1, 2))
    tasks.produce(*objects(3), partition=1)
    owner: Any = library if step == "create" else library.Delta
    die_at(tasks, monkeypatch, owner, step, sink(tasks), after=after)
    tasks.produce(*objects(4))
    with tasks.running(sink(tasks)) as again:
        tasks.until(lambda: tasks.committed(2) == {0: (3, ""), 1: (1, "")}, again, "the sink did not go on")
    assert ids(tasks) == [1, 2, 3, 4]


def test_commits_are_gathered_by_size_and_by_time(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1, 2))
    with tasks.running(sink(tasks, flush__interval__ms="3600000", flush__size="3")) as task:
        tasks.until(lambda: tasks.committed()[0][0] == 0, task, "the batch was not taken")
        tasks.produce(*objects(3))
        tasks.until(lambda: tasks.committed() == {0: (3, "")}, task, "the offset was not committed")
        assert [each["operation"] for each in table(tasks).history()] == ["WRITE", "CREATE TABLE"]
        tasks.produce(*objects(4))
    with tasks.running(sink(tasks)) as task:  # the row that waited comes again
        tasks.until(lambda: tasks.committed() == {0: (4, "")}, task, "the offset was not committed")
    assert ids(tasks) == [1, 2, 3, 4]


def test_tasks_of_one_connector_write_one_table(tasks: Tasks) -> None:
    tasks.create_topic(4)
    both = [tasks.start(of_two(sink(tasks), each)) for each in range(2)]
    for number in range(40):
        tasks.produce(*objects(number), partition=number % 4)
    for each in both:
        tasks.until(lambda: tasks.committed(4) == dict.fromkeys(range(4), (10, "")), each, "not all offsets were committed")
    assert ids(tasks) == list(range(40))
    found = table(tasks)
    assert {found.transaction_version(f"{tasks.name}/{tasks.topic}/{each}") for each in range(4)} == {10}


def records(tasks: Tasks, offsets: list[int], values: list[Any]) -> pa.Table:
    """Records as a sink gets them."""
    columns: dict[str, Any] = {
        "value": values, "topic": [tasks.topic] * len(offsets), "partition": pa.array([0] * len(offsets), pa.int32()),
        "offset": pa.array(offsets, pa.int64()),
    }  # fmt: skip
    return pa.table(columns)


def opened(tasks: Tasks, **config: str) -> DeltaSink:
    """A sink without a task."""
    made = DeltaSink()
    given = {"name": tasks.name, "store.url": str(tasks.folder / "lake"), "flush.interval.ms": "1"}
    made.open(config_of(made, {**given, **{key.replace("__", "."): each for key, each in config.items()}}))
    return made


def test_a_task_that_another_one_has_overtaken_writes_nothing_twice(tasks: Tasks) -> None:
    old, new = opened(tasks), opened(tasks)
    place = (tasks.topic, 0)
    for each, end in ((old, 2), (new, 3)):
        each.write(
            records(tasks, list(range(end)), [{"id": number} for number in range(end)]), Identity(tasks.name, {place: (0, end)})
        )
    first = old.table(tasks.topic)
    assert first is not None
    new.flush()
    with pytest.raises(Overtaken):  # its state is that before the commit of the other one
        first.commit(old._gathering.whole(tasks.topic), {place: 2})
    old.flush()
    assert ids(tasks) == [0, 1, 2]
    assert table(tasks).transaction_version(f"{tasks.name}/{tasks.topic}/0") == 3


def test_offsets_that_a_user_sets_bring_records_again(tasks: Tasks) -> None:
    one, place = opened(tasks), (tasks.topic, 0)
    given = records(tasks, [0, 1], [{"id": 0}, {"id": 1}])
    one.write(given, Identity(tasks.name, {place: (0, 2)}))
    one.flush()
    config = config_of(one, {"name": tasks.name, "store.url": str(tasks.folder / "lake")})
    for offset, wanted in ((1, [0, 1, 1]), (None, [0, 0, 1, 1, 1])):
        DeltaSink.alter_offsets(config, {place: offset})
        one.write(given, Identity(tasks.name, {place: (0, 2)}))
        one.flush()
        assert ids(tasks) == wanted


UPSERT = {"insert.mode": "upsert", "pk.mode": "record_key", "pk.fields": "id", "delete.enabled": "true"}


def test_rows_are_replaced_and_deleted_by_their_key(tasks: Tasks) -> None:
    tasks.create_topic()
    for key, value in (("a", '{"n":1}'), ("b", '{"n":2}'), ("a", '{"n":3}'), ("c", '{"n":4}')):
        tasks.produce(value, key=key)
    with tasks.running(sink(tasks, **UPSERT)) as task:
        tasks.until(lambda: tasks.committed() == {0: (4, "")}, task, "the offset was not committed")
        assert rows(tasks) == [{"id": "a", "n": 3}, {"id": "b", "n": 2}, {"id": "c", "n": 4}]
        tasks.produce(None, key="b")
        tasks.produce(None, '{"n":6}', None, key="c")
        tasks.produce('{"n":7}', key="d")
        tasks.until(lambda: tasks.committed() == {0: (9, "")}, task, "the offset was not committed")
    assert rows(tasks) == [{"id": "a", "n": 3}, {"id": "d", "n": 7}]


def test_columns_that_are_missing_are_added(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce('{"id":1,"at":{"x":1}}')
    with tasks.running(sink(tasks, auto__evolve="true", partition__field__name="id")) as task:
        tasks.until(lambda: tasks.committed() == {0: (1, "")}, task, "the offset was not committed")
        tasks.produce('{"id":2,"name":"b","at":{"y":true}}', '{"id":3}')
        tasks.until(lambda: tasks.committed() == {0: (3, "")}, task, "the offset was not committed")
    assert rows(tasks) == [
        {"id": 1, "at": {"x": 1, "y": None}, "name": None}, {"id": 2, "at": {"x": None, "y": True}, "name": "b"},
        {"id": 3, "at": None, "name": None},
    ]  # fmt: skip
    assert table(tasks).metadata().partition_columns == ["id"]
    found = table(tasks).to_pyarrow_dataset()
    assert duckdb.from_arrow(found).filter("id = 2").project("name").fetchall() == [("b",)]


def test_a_column_that_is_missing_ends_the_task_with_the_way_out(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce('{"id":1}')
    with tasks.running(sink(tasks)) as task:
        tasks.until(lambda: tasks.committed() == {0: (1, "")}, task, "the offset was not committed")
        tasks.produce('{"id":2,"at":{"y":1}}')
        wait_until(lambda: task.failure() is not None, "it did not fail")
        assert task.failure() == f"the table {tasks.topic} has no column at.y; auto.evolve=true adds it"


def test_values_that_do_not_fit_become_dead_letters(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce('{"id":1}')
    dlq = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": f"dlq-{tasks.name}"}
    with tasks.running(sink(tasks, **dlq)) as task:
        tasks.until(lambda: tasks.committed() == {0: (1, "")}, task, "the offset was not committed")
        tasks.produce('{"id":2.0}', '{"id":2.5}', None, '{"id":null}')
        tasks.until(lambda: tasks.committed() == {0: (5, "")}, task, "the offset was not committed")
    assert [each["id"] for each in rows(tasks)] == [1, 2, None]
    letters = [each.value for each in records_of(tasks._client, f"dlq-{tasks.name}")]
    assert [value and bytes(value) for value in letters] == [None, b'{"id":2.5}']


def test_tables_have_the_names_of_the_config(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1))
    config = {"delta.lake.topic2table.map": f"{tasks.topic}:sales/eu, x:y"}
    with tasks.running(sink(tasks, **config)) as task:
        tasks.until(lambda: tasks.committed() == {0: (1, "")}, task, "the offset was not committed")
    assert rows(tasks, "sales/eu") == [{"id": 1}]
    made = opened(tasks, table__name__format="raw_${topic}")
    assert made.choice.table_of("t") == "raw_t"


def test_a_table_in_an_object_store(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1, 2))
    with fake_s3.running() as store:
        with tasks.running(sink(tasks, store__url="s3://bucket/lake", **store.options)) as task:
            tasks.until(lambda: tasks.committed() == {0: (2, "")}, task, "the offset was not committed")
        options = {key.removeprefix("store."): each for key, each in store.options.items()}
        found = DeltaTable(f"s3://bucket/lake/{tasks.topic}", storage_options={**options, "allow_http": "true"})
        assert sorted(each["id"] for each in found.to_pyarrow_table().to_pylist()) == [1, 2]
        assert all(name.startswith(f"lake/{tasks.topic}/") for name in store.objects)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"store.url": "lake"}, "an absolute path or a URL"),
        ({"insert.mode": "upsert"}, "insert.mode upsert needs a key: set pk.mode"),
        ({"delete.enabled": "true"}, "Deletes are only supported for insert.mode upsert and pk.mode record_key"),
        ({"pk.mode": "kafka", "pk.fields": "a,b"}, "pk.mode kafka needs three names of columns, or none; there are 2"),
        ({"delta.lake.topic2table.map": "a"}, "pairs such as topic1:table1,topic2:table2"),
        ({"table.name.format": "../x"}, "table.name.format does not leave store.url"),
        ({"flush.size": "0"}, "flush.size"),
    ],
)
def test_configs_that_cannot_work(config: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        config_of(DeltaSink(), {"name": "d", "store.url": "/lake", **config})


def test_a_place_that_is_no_table_is_named(tasks: Tasks) -> None:
    (tasks.folder / "lake").write_text("a file")
    with pytest.raises(ConnectError, match=rf"cannot create the table .*/lake/{tasks.topic}: "):
        opened(tasks).write(records(tasks, [0], [{"id": 1}]), Identity(tasks.name, {(tasks.topic, 0): (0, 1)}))
    with pytest.raises(ConnectError, match=r"partition\.field\.name names day, which the records lack; they have id"):
        opened(tasks, store__url=str(tasks.folder / "b"), partition__field__name="day").write(
            records(tasks, [0], [{"id": 1}]), Identity(tasks.name, {(tasks.topic, 0): (0, 1)})
        )
    with pytest.raises(ConnectError, match="the sink needs values that are structs"):
        opened(tasks).write(records(tasks, [0], ["x"]), Identity(tasks.name, {(tasks.topic, 0): (0, 1)}))


@pytest.mark.parametrize("after", [False, True])
def test_a_task_that_dies_while_it_adds_a_column_goes_on(tasks: Tasks, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> None:
    tasks.create_topic()
    tasks.produce('{"id":1}')
    job = sink(tasks, auto__evolve="true", **UPSERT | {"pk.mode": "record_value", "delete.enabled": ""})
    with tasks.running(job) as task:
        tasks.until(lambda: tasks.committed() == {0: (1, "")}, task, "the offset was not committed")
    tasks.produce('{"id":2,"name":"b"}', '{"id":1,"name":"a"}')
    die_at(tasks, monkeypatch, library.Delta, "add_columns", job, after=after)
    with tasks.running(job) as again:
        tasks.until(lambda: tasks.committed() == {0: (3, "")}, again, "the sink did not go on")
    assert rows(tasks) == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
