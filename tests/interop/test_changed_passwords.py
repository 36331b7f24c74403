"""The password of a database changes: the status of connectors says why they fail, and a PUT of the new one lets them go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Producer

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.testing import Broker
from barnabas.testing.services import ServicesProcess
from tests.connect.plugins.servers import MariadbServer, PostgresServer
from tests.connect.runtime.tasks import JSON
from tests.interop.test_connect import Worker
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
WITHIN_S = 120.0
USER = "changing"


class Connected:
    """Two databases, a broker, and a worker with its engine."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.postgres = stack.enter_context(closing(PostgresServer()))
        self.mariadb = stack.enter_context(closing(MariadbServer()))
        self.bootstrap = stack.enter_context(Broker()).bootstrap_servers
        settings = {"bootstrap.servers": self.bootstrap}
        self._client = BlockingClient(ClientConfig.from_options({**settings, "isolation.level": "read_committed"}))
        stack.callback(self._client.close)
        given = {**settings, "engine.data.dir": str(folder / "engine")}
        stack.enter_context(closing(ServicesProcess("engine", given, folder / "engine.log")))
        connect = stack.enter_context(closing(ServicesProcess("connect", settings, folder / "connect.log")))
        self.worker = Worker(int(connect.url.rpartition(":")[2]))

    def values(self, topic: str) -> list[Any]:
        """The values of a topic."""
        found = [each.value for each in records_of(self._client, topic)]
        return [msgspec.json.decode(each) for each in found if each is not None]

    def configs(self, password: str) -> dict[str, dict[str, str]]:
        """The connectors, by name."""
        database = {"database.hostname": "127.0.0.1", "database.user": USER, "database.password": password}
        sql = {"connection.user": USER, "connection.password": password}
        return {
            "changes": {
                **database, **JSON, "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "topic.prefix": "p",
                "database.port": str(self.postgres.port), "database.dbname": "postgres", "table.include.list": "public.t",
            },
            "log": {
                **database, **JSON, "connector.class": "io.debezium.connector.mariadb.MariaDbConnector", "topic.prefix": "m",
                "database.port": str(self.mariadb.port), "database.server.id": "77", "table.include.list": "shop.t",
            },
            "rows": {
                **sql, **JSON, "connector.class": "JdbcSourceConnector", "connection.url": self.postgres.url, "topic.prefix": "rows-",
                "mode": "incrementing", "incrementing.column.name": "id", "table.whitelist": "t", "poll.interval.ms": "200",
            },
            "copy": {
                **sql, **JSON, "connector.class": "JdbcSinkConnector", "connection.url": self.mariadb.url, "topics": "numbers",
                "auto.create": "true",
            },
        }  # fmt: skip

    def put(self, password: str) -> None:
        """Put all configs, with a password."""
        for name, config in self.configs(password).items():
            self.worker.has_answered("PUT", f"/connectors/{name}/config", config)

    def insert(self, number: int) -> None:
        """One row or record for each connector."""
        self.postgres.query(f"INSERT INTO t VALUES ({number})")
        self.mariadb.query(f"INSERT INTO shop.t VALUES ({number})")
        producer = Producer({"bootstrap.servers": self.bootstrap})
        producer.produce("numbers", b'{"id":%d}' % number)
        assert producer.flush(WITHIN_S) == 0

    def numbers(self) -> list[list[int]]:
        """The numbers that each connector has brought; nothing while a table is missing."""
        has_copy = self.mariadb.query("SHOW TABLES FROM shop LIKE 'numbers'")
        return [
            [each["after"]["id"] for each in self.values("p.public.t")],
            [each["after"]["id"] for each in self.values("m.shop.t")],
            [each["id"] for each in self.values("rows-t")],
            [number for (number,) in self.mariadb.query("SELECT id FROM shop.numbers ORDER BY id")] if has_copy else [],
        ]

    def is_refused(self, name: str) -> bool:
        """Whether the status of a connector says in one line that the user is refused."""
        status = self.worker.ask("GET", f"/connectors/{name}/status")
        reason: str = (status["tasks"][0].get("trace") or "") if status and status["tasks"] else ""
        assert "\n" not in reason
        return USER in reason


@pytest.fixture
def connected(tmp_path: Path) -> Iterator[Connected]:
    with ExitStack() as stack:
        yield Connected(stack, tmp_path)


def test_connectors_go_on_with_the_new_password(connected: Connected) -> None:
    connected.postgres.query("CREATE TABLE t (id int PRIMARY KEY)")
    connected.mariadb.query("CREATE TABLE shop.t (id int PRIMARY KEY)")
    servers = (connected.postgres, connected.mariadb)
    for server in servers:
        server.create_user(USER, "one")
    connected.insert(1)
    connected.put("one")

    def have(*numbers: int) -> Callable[[], bool]:
        return lambda: connected.numbers() == [list(numbers)] * 4

    wait_until(have(1), "the first rows did not come", within_s=WITHIN_S)
    for server in servers:
        server.change_password(USER, "two")
        server.end_connections(USER)
    connected.insert(2)
    for name in connected.configs("one"):
        wait_until(partial(connected.is_refused, name), f"{name} did not fail", within_s=WITHIN_S)
    connected.put("two")
    wait_until(have(1, 2), "the second rows did not come", within_s=WITHIN_S)
    assert have(1, 2)()
