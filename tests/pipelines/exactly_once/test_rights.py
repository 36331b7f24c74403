"""The sink where brokers check rights: those that docs/exactly-once.md names are enough."""

from __future__ import annotations

from barnabas.cli.main import run
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.results import NewTopic
from barnabas.pipelines.exactly_once.state import is_two_phase
from barnabas.testing import Broker
from tests.pipelines.exactly_once.test_executor import Sink

SETTINGS: dict[str, str | int | bool] = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_spark="secret";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "transaction.two.phase.commit.enable": True,
}
SPARK = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "spark", "sasl.password": "secret"}


def allow(broker: Broker, *binding: str) -> None:
    assert run(["acl", "add", "--principal", "User:spark", *binding, "-b", broker.listeners["PLAINTEXT"]]) == 0


def test_the_rights_that_are_documented_are_enough() -> None:
    """And without the one for two-phase commit, transactions are ordinary ones."""
    with Broker(SETTINGS) as broker, BlockingClient.to(broker.listeners["PLAINTEXT"]) as admin:
        admin.create_topics([NewTopic("delays", 2, 1)])
        allow(broker, "--operation", "write", "--topic", "delays")
        allow(broker, "--operation", "read", "--operation", "write", "--operation", "create", "--topic", "_barnabas_sinks")
        ids = "--transactional-id", "barnabas-sink/", "--prefixed"
        allow(broker, "--operation", "write", "--operation", "describe", *ids)
        config = ClientConfig.from_options({**SPARK, "bootstrap.servers": broker.listeners["SASL_PLAINTEXT"]})
        with BlockingClient(config) as client:
            sink = Sink(client, "delays")
            ordinary = sink.write(sink.prepare(), 0, 0, ["left behind"])
            allow(broker, "--operation", "two-phase-commit", *ids)
            prepared = sink.write(sink.prepare(), 0, 0, ["left behind, too"])
            assert [is_two_phase(sink.name, name) for each in (ordinary, prepared) for name in each.claims] == [False, True]
            sink.batch(0, [["a", "b"], ["c"]])
            sink.batch(1, [["d"], ["e"]])
        assert Sink(admin, "delays").visible() == ["a", "b", "c", "d", "e"]
