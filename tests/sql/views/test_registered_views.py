"""Views whose rows have a registered schema, and views over tables that have one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.serializer import Deserializer
from barnabas.sql.engine import SqlEngine
from barnabas.tables import table
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, engine_of
from tests.sql.views.fake_engine import FakeEngine
from tests.sql.views.test_materialized import both


@pytest.fixture(scope="module")
def running(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeEngine]:
    folder = tmp_path_factory.mktemp("engine")
    with FakeEngine(broker.bootstrap_servers, folder, broker.schema_registry_url) as engine:
        yield engine


@pytest.fixture(scope="module")
def engine(broker: Broker) -> Iterator[SqlEngine]:
    engine = engine_of(broker, registry=broker.schema_registry_url)
    yield engine
    engine.close()


@pytest.fixture
def client(broker: Broker) -> Iterator[RegistryClient]:
    with RegistryClient(broker.schema_registry_url) as client:
        yield client


@pytest.mark.parametrize("format_name", ["avro", "json_schema", "protobuf"])
def test_rows_have_a_schema(ask: Asking, client: RegistryClient, broker: Broker, format_name: str) -> None:
    ask(f"create table sales (shop text not null, n int, at text) with (format = '{format_name}')")
    ask("insert into sales values ('Rome', 1, 'x'), ('Oslo', 2, 'y'), ('Rome', 3, null)")
    query = "select shop, sum(n) as total, max(at) as latest from sales group by shop"
    ask(f"create materialized view totals with (format = '{format_name}') as {query}")
    assert both(ask, "totals", query) == [("Oslo", 2, "y"), ("Rome", 4, "x")]
    ask("insert into sales values ('Oslo', 5, 'z')")
    assert both(ask, "totals", query) == [("Oslo", 7, "z"), ("Rome", 4, "x")]
    answer = client.get("subjects", "totals-value", "versions", "latest")
    with table("totals", broker.bootstrap_servers, format="raw") as rows:
        values = [each for each in rows.arrow(["value"]).column("value").to_pylist() if each is not None]
    assert all((each[0], int.from_bytes(each[1:5], "big")) == (0, answer["id"]) for each in values)
    if format_name != "protobuf":
        assert Deserializer(client).decode(values[-1]) == {"total": 7, "latest": "z"}
    address = RegistryAddress(broker.schema_registry_url)
    with table("totals", broker.bootstrap_servers, format=format_name, key="shop text", registry=address) as rows:
        newest = rows.newest_by_key().arrow(["shop", "total"]).to_pylist()
    assert sorted((each["shop"], each["total"]) for each in newest) == [("Oslo", 7), ("Rome", 4)]
    ask("drop table sales cascade")
    assert {"totals-value", "sales-value"} & set(client.get("subjects")) == set()


def test_another_query_keeps_the_schema(ask: Asking, client: RegistryClient) -> None:
    ask("create table points (id int primary key, v bigint)")
    ask("insert into points values (1, 10), (2, 20)")
    ask("create materialized view shown with (format = 'avro') as select id, v from points")
    before = client.get("subjects", "shown-value", "versions", "latest")
    ask("alter materialized view shown rename to other")
    ask("alter materialized view other as select id, v + 1 as v from points")
    assert sorted(ask.rows("select * from other")) == [(1, 11), (2, 21)]
    assert client.get("subjects", "shown-value", "versions", "latest") == before
    error = ask.error("alter materialized view other as select id, v::text as v from points")
    assert error.sqlstate in ("0A000", "42P16")
    assert client.get("subjects", "shown-value", "versions", "latest") == before
    ask("drop table points cascade")


def test_what_has_no_schema(ask: Asking) -> None:
    ask("create table days (id int primary key, t time)")
    error = ask.error("create materialized view v with (format = 'avro') as select id, t from days")
    assert (error.sqlstate, error.message) == ("42P16", "the format avro has no type for the column t: time")
    error = ask.error("create materialized view v with (format = 'avro') as select distinct id from days")
    assert (error.sqlstate, error.message) == ("42P16", "the format avro needs a column beside the key")
    assert ask.error("create materialized view v with (format = 'text') as select id from days").sqlstate == "22023"
    ask("drop table days")
