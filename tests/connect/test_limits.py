"""Limits: a request beyond one is refused, and a connector beyond one holds up no other."""

from __future__ import annotations

import pytest

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.keyed_topic import KeyedTopicError
from barnabas.connect.herder.planning import CONFIG_TOPIC
from barnabas.connect.herder.requests import put
from barnabas.connect.leading.leader import Leader, Worker
from barnabas.connect.levels import Levels
from barnabas.connect.references import Resolver
from barnabas.connect.store.connect_topics import ConnectTopics
from barnabas.testing import Broker
from tests.connect.workers import FILE_SOURCE
from tests.waiting import wait_until

NAMES = ("config", "status", "offset")


def topics(config: ClientConfig, prefix: str) -> ConnectTopics:
    return ConnectTopics(config, {f"{name}.storage.topic": f"{prefix}-{name}" for name in NAMES})


def test_configs_have_a_size_and_a_number(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CONNECT_RECORDS", 2)
    config = ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers})
    found, client = topics(config, "small"), BlockingClient(config)
    try:
        with pytest.raises(KeyedTopicError, match="allowed are"):
            found.change_configs(client, lambda _: put({"k": "x" * limits.MAX_CONNECT_CONFIG_BYTES}, "a"))
        for name in ("a", "b"):
            found.change_configs(client, lambda _, name=name: put({}, name))  # type: ignore[misc]  # mypy knows no default here
        with pytest.raises(KeyedTopicError, match="at most 2 records"):
            found.change_configs(client, lambda _: put({}, "c"))
        assert list(found.configs().connectors) == ["a", "b"]
    finally:
        found.close()
        client.close()


def test_a_connector_beyond_the_limit_of_jobs_fails_alone(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_JOBS", 2)
    config = ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers})
    found, client = topics(config, "many"), BlockingClient(config)
    worker = Worker("w:1", {**found.names, "group.id": "g"})
    leader = Leader(config, found, worker, Resolver({}), Levels())
    leader.start()
    leader.activate(True)
    try:
        for name in ("a", "b", "c"):
            props = {"name": name, "connector.class": FILE_SOURCE, "topic": "t"}
            found.change_configs(client, lambda _, name=name, props=props: put(props, name))  # type: ignore[misc]  # see above

        def states() -> dict[str, str | None]:
            said = found.statuses()
            return {name: None if (status := said.connector(name)) is None else status.state for name in ("a", "b", "c")}

        wait_until(lambda: sorted(filter(None, states().values())) == ["FAILED", "RUNNING", "RUNNING"], "nobody failed")
        failed = next(name for name, state in states().items() if state == "FAILED")
        status = found.statuses().connector(failed)
        assert status is not None
        assert status.trace == "_barnabas_jobs has at most 2 records"
        found.change_configs(client, lambda _: dict.fromkeys([f"connector-{name}" for name in {"a", "b", "c"} - {failed}]))
        wait_until(lambda: states() == {**dict.fromkeys("abc"), failed: "RUNNING"}, "it does not run")
        assert all(each.work.worker[CONFIG_TOPIC] == "many-config" for each in leader.jobs.follow().values())  # type: ignore[union-attr]  # all are of connectors
    finally:
        leader.close()
        found.close()
        client.close()
