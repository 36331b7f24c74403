"""Records of topics come into Iceberg tables, each of them once."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from barnabas.connect.api import Identity
from barnabas.connect.config_types import ConfigError
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.iceberg import iceberg_table as library
from barnabas.connect.plugins.iceberg.settings import Partition, partitions_of, settings_of
from barnabas.connect.plugins.iceberg.sink import IcebergSink
from barnabas.connect.plugins.lakes.sink import Overtaken
from barnabas.connect.runtime.opening import config_of
from barnabas.engine.jobs import Job
from tests.connect.files import fake_s3
from tests.connect.lakes import rest_catalog
from tests.connect.lakes.deaths import die_at
from tests.connect.lakes.test_delta import WORKER, objects, of_two, records
from tests.connect.runtime.tasks import Tasks
from tests.waiting import wait_until

NAME = "shop.items"


def place(tasks: Tasks) -> dict[str, str]:
    """The properties of a catalog in SQLite."""
    return {"type": "sql", "uri": f"sqlite:///{tasks.folder}/catalog.db", "warehouse": f"file://{tasks.folder}/warehouse"}


def sink(tasks: Tasks, **config: str) -> Job:
    """A job that commits what is there at once; a key with an empty value is left out."""
    given = {
        "topics": tasks.topic, "iceberg.tables": NAME, "iceberg.tables.auto-create-enabled": "true",
        "iceberg.control.commit.interval-ms": "1", **{f"iceberg.catalog.{key}": each for key, each in place(tasks).items()},
    }  # fmt: skip
    given |= {key.replace("__", "."): each for key, each in config.items()}
    chosen = {key: each for key, each in given.items() if each}
    return tasks.job("org.apache.iceberg.connect.IcebergSinkConnector", "sink", chosen, WORKER)


def catalog(tasks: Tasks) -> Catalog:
    return load_catalog("iceberg", **place(tasks))


def table(tasks: Tasks, name: str = NAME) -> Table:
    return catalog(tasks).load_table(name)


def rows(tasks: Tasks, name: str = NAME) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table(tasks, name).scan().to_arrow().to_pylist()
    return sorted(found, key=str)


def ids(tasks: Tasks, name: str = NAME) -> list[int]:
    return sorted(each["id"] for each in rows(tasks, name))


def offsets(tasks: Tasks) -> Any:
    """The offsets in the summary of the newest snapshot."""
    snapshot = table(tasks).current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    return json.loads(snapshot.summary.additional_properties[f"kafka.connect.offsets.connect-{tasks.name}"])


def test_records_become_rows(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce('{"id":1,"name":"Ada","address":{"city":"Bern"},"tags":["x"]}', '{"id":2,"name":null}')
    with tasks.running(sink(tasks)) as task:
        tasks.until(lambda: tasks.committed() == {0: (2, "")}, task, "the offset was not committed")
    assert rows(tasks) == [
        {"id": 1, "name": "Ada", "address": {"city": "Bern"}, "tags": ["x"]},
        {"id": 2, "name": None, "address": None, "tags": None},
    ]
    assert offsets(tasks) == {tasks.topic: {"0": 2}}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["create", "commit", "offsets"])
def test_a_task_that_dies_writes_no_row_twice(tasks: Tasks, monkeypatch: pytest.MonkeyPatch, step: str, *, after: bool) -> None:
    tasks.create_topic(2)
    tasks.produce(*objects(1, 2))
    tasks.produce(*objects(3), partition=1)
    owner: Any = library if step == "create" else library.Iceberg
    die_at(tasks, monkeypatch, owner, step, sink(tasks), after=after)
    tasks.produce(*objects(4))
    with tasks.running(sink(tasks)) as again:
        tasks.until(lambda: tasks.committed(2) == {0: (3, ""), 1: (1, "")}, again, "the sink did not go on")
    assert ids(tasks) == [1, 2, 3, 4]


def test_tasks_of_one_connector_write_one_table(tasks: Tasks) -> None:
    tasks.create_topic(4)
    both = [tasks.start(of_two(sink(tasks), each)) for each in range(2)]
    for number in range(40):
        tasks.produce(*objects(number), partition=number % 4)
    for each in both:
        tasks.until(lambda: tasks.committed(4) == dict.fromkeys(range(4), (10, "")), each, "not all offsets were committed")
    assert ids(tasks) == list(range(40))
    assert offsets(tasks) == {tasks.topic: {str(each): 10 for each in range(4)}}


def opened(tasks: Tasks, **config: str) -> IcebergSink:
    """A sink without a task."""
    made = IcebergSink()
    given = {"name": tasks.name, "iceberg.tables": NAME, "iceberg.tables.auto-create-enabled": "true"}
    given |= {f"iceberg.catalog.{key}": each for key, each in place(tasks).items()}
    made.open(config_of(made, {**given, **{key.replace("__", "."): each for key, each in config.items()}}))
    return made


def test_a_task_that_another_one_has_overtaken_writes_nothing_twice(tasks: Tasks) -> None:
    old, new, here = opened(tasks), opened(tasks), (tasks.topic, 0)
    for each, end in ((old, 2), (new, 3)):
        given = records(tasks, list(range(end)), [{"id": number} for number in range(end)])
        each.write(given, Identity(tasks.name, {here: (0, end)}))
    first = old.table(NAME)
    assert first is not None
    new.flush()
    with pytest.raises(Overtaken):  # its state is that before the commit of the other one
        first.commit(old._gathering.whole(NAME), {here: 2})
    old.flush()
    assert ids(tasks) == [0, 1, 2]
    assert offsets(tasks) == {tasks.topic: {"0": 3}}


def test_snapshots_of_others_hide_no_offsets(tasks: Tasks) -> None:
    one, here = opened(tasks), (tasks.topic, 0)
    one.write(records(tasks, [0], [{"id": 0}]), Identity(tasks.name, {here: (0, 1)}))
    one.flush()
    table(tasks).append(pa.table({"id": [100]}))
    one.write(records(tasks, [0, 1], [{"id": 0}, {"id": 1}]), Identity(tasks.name, {here: (0, 2)}))
    one.flush()
    assert ids(tasks) == [0, 1, 100]


def test_offsets_that_a_user_sets_bring_records_again(tasks: Tasks) -> None:
    one, here = opened(tasks), (tasks.topic, 0)
    given = records(tasks, [0, 1], [{"id": 0}, {"id": 1}])
    one.write(given, Identity(tasks.name, {here: (0, 2)}))
    one.flush()
    config = config_of(
        one,
        {"name": tasks.name, "iceberg.tables": NAME, **{f"iceberg.catalog.{key}": each for key, each in place(tasks).items()}},
    )
    for offset, wanted in ((1, [0, 1, 1]), (None, [0, 0, 1, 1, 1])):
        IcebergSink.alter_offsets(config, {here: offset})
        one.write(given, Identity(tasks.name, {here: (0, 2)}))
        one.flush()
        assert ids(tasks) == wanted


def test_rows_are_replaced_by_their_id_columns(tasks: Tasks) -> None:
    tasks.create_topic()
    config = {"iceberg.tables.upsert-mode-enabled": "true", f"iceberg.table.{NAME}.id-columns": "id"}
    with tasks.running(sink(tasks, **config)) as task:
        tasks.produce('{"id":1,"n":1}', '{"id":2,"n":2}', '{"id":1,"n":3}')
        tasks.until(lambda: tasks.committed() == {0: (3, "")}, task, "the offset was not committed")
        tasks.produce('{"id":2,"n":4}', None, '{"id":3,"n":5}')
        tasks.until(lambda: tasks.committed() == {0: (6, "")}, task, "the offset was not committed")
    assert rows(tasks) == [{"id": 1, "n": 3}, {"id": 2, "n": 4}, {"id": 3, "n": 5}]


def test_records_go_to_the_tables_of_their_route(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce(
        *(json.dumps({"id": number, "kind": {"name": kind}}) for number, kind in enumerate(("a1", "b", "a2", None, "c")))
    )
    config = {
        "iceberg.tables": "shop.a,shop.b", "iceberg.tables.route-field": "kind.name", "iceberg.table.shop.a.route-regex": "a.",
        "iceberg.table.shop.b.route-regex": "[bc]",
    }  # fmt: skip
    with tasks.running(sink(tasks, **config)) as task:
        tasks.until(lambda: tasks.committed() == {0: (5, "")}, task, "the offset was not committed")
    assert (ids(tasks, "shop.a"), ids(tasks, "shop.b")) == ([0, 2], [1, 4])


def test_a_field_names_the_table(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce('{"id":1,"to":"Shop.A"}', '{"id":2,"to":"shop.b"}', '{"id":3}')
    config = {"iceberg.tables": "", "iceberg.tables.dynamic-enabled": "true", "iceberg.tables.route-field": "to"}
    with tasks.running(sink(tasks, **config)) as task:
        tasks.until(lambda: tasks.committed() == {0: (3, "")}, task, "the offset was not committed")
    assert (ids(tasks, "shop.a"), ids(tasks, "shop.b")) == ([1], [2])


def test_columns_that_are_missing_are_added_to_a_partitioned_table(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce('{"id":1,"region":"eu","at":{"x":1}}')
    config = {
        "iceberg.tables.evolve-schema-enabled": "true", "iceberg.tables.default-partition-by": "region, truncate(id, 10)",
        "iceberg.tables.auto-create-props.write.parquet.compression-codec": "snappy",
    }  # fmt: skip
    with tasks.running(sink(tasks, **config)) as task:
        tasks.until(lambda: tasks.committed() == {0: (1, "")}, task, "the offset was not committed")
        tasks.produce('{"id":12,"region":"us","name":"b","at":{"y":true}}')
        tasks.until(lambda: tasks.committed() == {0: (2, "")}, task, "the offset was not committed")
    assert rows(tasks) == [
        {"id": 1, "region": "eu", "at": {"x": 1, "y": None}, "name": None},
        {"id": 12, "region": "us", "at": {"x": None, "y": True}, "name": "b"},
    ]
    assert [each.name for each in table(tasks).spec().fields] == ["region", "id_truncate"]
    assert table(tasks).properties["write.parquet.compression-codec"] == "snappy"
    assert len(table(tasks).inspect.files()) == 2


def test_a_table_that_is_missing_ends_the_task_with_the_way_out(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1))
    with tasks.running(sink(tasks, **{"iceberg.tables.auto-create-enabled": ""})) as task:
        wait_until(lambda: task.failure() is not None, "it did not fail")
        assert task.failure() == f"there is no table {NAME}; iceberg.tables.auto-create-enabled=true creates it"


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"iceberg.tables": ""}, "Must specify table name"),
        ({"iceberg.tables": "items"}, "the table items has no namespace: NAMESPACE.NAME"),
        ({"iceberg.tables.dynamic-enabled": "true"}, "Cannot specify both static and dynamic table names"),
        (
            {"iceberg.tables": "", "iceberg.tables.dynamic-enabled": "true"},
            "Must specify a route field if using dynamic table names",
        ),
        ({"iceberg.tables.upsert-mode-enabled": "true"}, "needs iceberg.tables.default-id-columns"),
        ({f"iceberg.table.{NAME}.route-regex": "("}, "no regular expression"),
        ({"iceberg.catalog.type": ""}, "iceberg.catalog.type is needed"),
        (
            {"iceberg.catalog.type": "nessie"},
            "Invalid value nessie for configuration iceberg.catalog.type: one of rest.*Nessie speaks",
        ),
        ({"iceberg.tables.default-partition-by": "bucket(id)"}, "bucket and truncate have a number"),
        ({"iceberg.tables.default-partition-by": "week(at)"}, "year"),
    ],
)
def test_configs_that_cannot_work(config: dict[str, str], reason: str) -> None:
    given = {"name": "i", "iceberg.tables": NAME, "iceberg.catalog.type": "rest", **config}
    with pytest.raises(ConfigError, match=reason):
        config_of(IcebergSink(), {key: each for key, each in given.items() if each})


def test_the_catalog_of_java_is_found() -> None:
    sink = IcebergSink()
    given = {
        "name": "i", "iceberg.tables": NAME, "iceberg.catalog.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "iceberg.catalog.uri": "jdbc:sqlite:/a/b.db", "iceberg.catalog.token": "secret",
    }  # fmt: skip
    found = settings_of(config_of(sink, given))
    assert found.properties == {"type": "sql", "uri": "sqlite:////a/b.db", "token": "secret"}
    assert partitions_of("p", "day(at), bucket(id, 4),x") == [
        Partition("day", "at"), Partition("bucket", "id", 4), Partition("identity", "x")
    ]  # fmt: skip


def test_a_rest_catalog(tasks: Tasks) -> None:
    tasks.create_topic(2)
    tasks.produce(*objects(1, 2))
    with rest_catalog.running(tasks.folder) as rest:
        properties = {f"iceberg.catalog.{key}": each for key, each in rest.properties.items()}
        config = {"iceberg.catalog.warehouse": "", **properties, "iceberg.tables.evolve-schema-enabled": "true"}
        both = [tasks.start(of_two(sink(tasks, **config), each)) for each in range(2)]
        for each in both:
            tasks.until(lambda: tasks.committed(2)[0] == (2, ""), each, "the offset was not committed")
        rest.failures = rest.unknown = 1  # nobody knows whether one of the commits was made
        tasks.produce(*objects(3))
        tasks.produce('{"id":4,"more":"x"}', partition=1)
        for each in both:
            tasks.until(lambda: tasks.committed(2) == {0: (3, ""), 1: (1, "")}, each, "the offset was not committed")
        for each in both:
            tasks.stop(each)
        assert (rest.failures, rest.unknown) == (0, 0)
        found = load_catalog("iceberg", **rest.properties).load_table(NAME).scan().to_arrow().to_pylist()
    assert sorted((each["id"], each["more"]) for each in found) == [(1, None), (2, None), (3, None), (4, "x")]


def test_a_catalog_that_refuses_the_log_in_is_told(tasks: Tasks) -> None:
    with rest_catalog.running(tasks.folder) as rest:
        properties = {f"iceberg.catalog.{key}": each for key, each in {**rest.properties, "token": "another"}.items()}
        with pytest.raises(ConnectError, match=r"cannot open the catalog iceberg: .*no token"):
            opened(tasks, **properties)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["add_columns", "commit"])
def test_a_task_that_dies_while_it_changes_rows_goes_on(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, step: str, *, after: bool
) -> None:
    tasks.create_topic()
    tasks.produce('{"id":1}')
    upserts = {"iceberg.tables.upsert-mode-enabled": "true", "iceberg.tables.default-id-columns": "id"}
    job = sink(tasks, **{"iceberg.tables.evolve-schema-enabled": "true", **upserts})
    with tasks.running(job) as task:
        tasks.until(lambda: tasks.committed() == {0: (1, "")}, task, "the offset was not committed")
    tasks.produce('{"id":2,"name":"b"}', '{"id":1,"name":"a"}')
    die_at(tasks, monkeypatch, library.Iceberg, step, job, after=after)
    with tasks.running(job) as again:
        tasks.until(lambda: tasks.committed() == {0: (3, "")}, again, "the sink did not go on")
    assert rows(tasks) == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def test_tables_and_namespaces_that_another_task_makes_meanwhile_are_taken(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    one, schema = opened(tasks), pa.schema([("id", pa.int64())])
    one.create(NAME, schema)
    real, seen = SqlCatalog.namespace_exists, list[Any]()

    def exists(self: SqlCatalog, namespace: Any) -> bool:
        seen.append(namespace)
        return len(seen) > 1 and real(self, namespace)

    monkeypatch.setattr(SqlCatalog, "namespace_exists", exists)
    one.create(NAME, schema)
    assert len(seen) >= 2
    assert rows(tasks) == []


def test_a_table_in_an_object_store(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1, 2))
    with fake_s3.running() as store:
        where = {
            "warehouse": "s3://bucket/lake", "s3.endpoint": store.options["store.endpoint"], "s3.region": "us-east-1",
            "s3.access-key-id": fake_s3.KEY, "s3.secret-access-key": fake_s3.SECRET,
        }  # fmt: skip
        job = sink(tasks, **{f"iceberg.catalog.{key}": each for key, each in where.items()})
        with tasks.running(job) as task:
            tasks.until(lambda: tasks.committed() == {0: (2, "")}, task, "the offset was not committed")
        found = load_catalog("iceberg", **{**place(tasks), **where}).load_table(NAME)
        assert sorted(each["id"] for each in found.scan().to_arrow().to_pylist()) == [1, 2]
        assert all(name.startswith("lake/") for name in store.objects)
