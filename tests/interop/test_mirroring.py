"""A mirror link from Apache Kafka: topics keep their offsets, and become writable here; TLS, groups, ACLs, quotas."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tools.kafka import KafkaNode, free_ports, java, run_tool

from barnabas.cli.broker_connections import Brokers
from barnabas.cli.connection import Connection
from barnabas.cli.errors import Failure
from barnabas.cli.mirror_migrate import Migration
from barnabas.cli.mirror_source import source_settings
from barnabas.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from barnabas.testing import Broker
from barnabas.testing.certificates import Certificates
from tests.server.mirroring.acls import AUTHORIZED, acls
from tests.server.mirroring.clusters import batches, commit, committed, create_link, ends, link, promote, wait_equal
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SHARING = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class SecuredNode(KafkaNode):
    """Also has a listener with SASL_SSL and one with TLS that requires certificates, and an authorizer."""

    def __init__(self, certificates: Certificates) -> None:
        super().__init__(heap="512m")
        self._certificates = certificates
        self.ports = free_ports(2)

    def _properties(self, port: int, controller_port: int) -> dict[str, str]:
        found = super()._properties(port, controller_port)
        more = f"SASL_SSL://127.0.0.1:{self.ports[0]},SSL://127.0.0.1:{self.ports[1]}"
        return {
            **found,
            "listeners": f"{found['listeners']},{more}",
            "advertised.listeners": f"{found['advertised.listeners']},{more}",
            "listener.security.protocol.map": f"{found['listener.security.protocol.map']},SASL_SSL:SASL_SSL,SSL:SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
            "listener.name.ssl.ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._certificates.broker.combined),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self._certificates.ca_file,
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:ANONYMOUS;User:mirror;User:CN=mirror",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
        }


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def node(certificates: Certificates) -> Iterator[SecuredNode]:
    node = SecuredNode(certificates)
    with node:
        scram = "SCRAM-SHA-512=[iterations=4096,password=secret]"
        user = ("--entity-type", "users", "--entity-name", "mirror")
        run_tool("kafka-configs", "--bootstrap-server", node.bootstrap, "--alter", *user, "--add-config", scram)
        yield node


@pytest.fixture(scope="module")
def kafka(node: SecuredNode) -> str:
    return node.bootstrap


def test_topics_of_kafka_are_copied_batch_by_batch_and_promoted(kafka: str) -> None:
    with Broker() as target:
        ours = target.bootstrap_servers
        producer = Producer({"bootstrap.servers": kafka, "transactional.id": "moving", "compression.type": "zstd"})
        producer.init_transactions()
        for number in range(10):
            producer.begin_transaction()
            for row in range(100):
                producer.produce("orders", key=str(row), value=f"{number}-{row}", headers={"at": str(number)})
            if number % 3:
                producer.commit_transaction()
            else:
                producer.flush()
                producer.abort_transaction()
        create_link(ours, kafka, topics="orders")
        wait_equal(kafka, ours, "orders")
        assert batches(ours, "orders") == batches(kafka, "orders")
        copied = ends(kafka, "orders")
        promote(ours, ["orders"])
        writer = Producer({"bootstrap.servers": ours})
        writer.produce("orders", b"here", partition=0)
        writer.flush(30)
        assert ends(ours, "orders") == {**copied, 0: copied[0] + 1}


def produce(servers: str, topic: str, count: int = 10) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for number in range(count):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(30) == 0


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SSL"])
def test_a_secured_kafka_is_a_source(node: SecuredNode, certificates: Certificates, protocol: str) -> None:
    topic = f"secured-{protocol.lower()}"
    produce(node.bootstrap, topic)
    file = {"security.protocol": protocol, "ssl.truststore.location": certificates.ca_file}
    if protocol == "SSL":
        keys = {
            "ssl.keystore.location": str(certificates.client("mirror").keystore),
            "ssl.keystore.password": certificates.password,
        }
        file |= keys
    else:
        login = f'{SCRAM} required username="mirror" password="secret";'
        file |= {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": login}
    settings = {key.replace(".", "_"): value for key, value in source_settings(file).settings.items()}
    with Broker() as target:
        ours = target.bootstrap_servers
        wrong = {"sasl_password": "wrong"} if protocol == "SASL_SSL" else {}
        create_link(ours, f"127.0.0.1:{node.ports[protocol == 'SSL']}", topics=topic, **{**settings, **wrong})
        if wrong:
            wait_until(lambda: "no log-in at" in "".join(link(ours).errors), str(link(ours).errors), within_s=60)
            create_link(ours, f"127.0.0.1:{node.ports[0]}", sasl_password="secret")
        wait_until(lambda: ends(ours, topic) == {0: 10}, "the records were not copied", within_s=60)
        assert batches(ours, topic) == batches(node.bootstrap, topic)


def is_committed(servers: str, group: str) -> bool:
    return committed(servers, group, "shared") == 6


def test_groups_of_kafka_are_copied_and_share_groups_are_told(kafka: str) -> None:
    produce(kafka, "shared")
    for protocol in ("classic", "consumer"):
        settings = {"group.id": f"of-{protocol}", "group.protocol": protocol, "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": kafka, **settings, "enable.auto.commit": False})
        consumer.subscribe(["shared"])
        assert consumer.poll(60) is not None
        consumer.commit(offsets=[TopicPartition("shared", 0, 6)], asynchronous=False)
        consumer.close()
    command = java(SHARING, "--bootstrap-server", kafka, "--topic", "shared", "--group", "sharing", "--timeout-ms", "15000")
    sharing = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    with Broker() as target:
        ours = target.bootstrap_servers
        create_link(ours, kafka, topics="shared", groups="of-.*,sharing", sync_group_offsets_interval_seconds="1")
        for group in ("of-classic", "of-consumer"):
            wait_until(partial(is_committed, ours, group), f"{group} was not copied", within_s=60)
        wait_until(lambda: link(ours).not_followed, f"the share group is not told: {sharing.stdout}{sharing.stderr}", within_s=30)
        assert link(ours).not_followed == {"share groups (sharing)": "this cluster has none"}


def test_acls_and_quotas_of_kafka_are_copied_and_users_are_refused(
    node: SecuredNode, certificates: Certificates, tmp_path: Path
) -> None:
    at = ("--bootstrap-server", node.bootstrap)
    produce(node.bootstrap, "guarded")
    run_tool("kafka-acls", *at, "--add", "--allow-principal", "User:carol", "--operation", "Read", "--topic", "guarded")
    quota = ("--add-config", "producer_byte_rate=1000", "--entity-type", "users", "--entity-name", "carol")
    run_tool("kafka-configs", *at, "--alter", *quota)
    login = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": "mirror",
        "sasl_password": "secret",
        "ssl_truststore_certificates": Path(certificates.ca_file).read_text(),
    }
    choices = {"sync_topic_acls_enabled": "true", "sync_client_quotas_enabled": "true", "sync_users_enabled": "true"}
    with Broker(AUTHORIZED) as target:
        ours = target.bootstrap_servers
        create_link(ours, f"127.0.0.1:{node.ports[0]}", topics="guarded", **login, **choices)
        wait_until(lambda: acls(ours) == {("guarded", "User:carol")}, "the ACL was not copied", within_s=60)

        def quotas() -> list[tuple[str | None, float]]:
            with Connection(ours).wire() as wire:
                entries = wire.request(DescribeClientQuotasRequest(components=[])).entries or ()
            return [(entry.entity[0].entity_name, entry.values[0].value) for entry in entries]

        wait_until(lambda: quotas() == [("carol", 1000.0)], "the quota was not copied", within_s=60)
        wait_until(lambda: link(ours).not_followed, within_s=30)
        told = "the source shows no credentials; only barnabas does. Add the users here by `barnabas user add`"
        assert link(ours).not_followed == {"users": told}


def was_committed(servers: str, group: str, topic: str, offset: int) -> bool:
    """Commit an offset; False while the coordinator of a fresh cluster is loading."""
    try:
        commit(servers, group, topic, offset)
    except KafkaException as error:
        if error.args[0].name() not in {"NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"}:
            raise
        return False
    return True


def test_a_cluster_of_kafka_is_left_for_good(kafka: str) -> None:
    """The cut-over waits until nobody writes to Kafka; producers and groups go on here."""
    with Broker() as target:
        ours = target.bootstrap_servers
        producer = Producer({"bootstrap.servers": kafka, "enable.idempotence": True})
        for number in range(2000):
            producer.produce("leaving", f"v{number}", partition=0)
        assert producer.flush(30) == 0
        wait_until(lambda: was_committed(kafka, "billing", "leaving", 700), "Kafka takes no offset")
        create_link(ours, kafka, topics="leaving", groups="billing")
        told: list[str] = []
        is_over = threading.Event()

        def write() -> None:
            while not is_over.wait(0.05):
                producer.produce("leaving", "late", partition=0)
                producer.poll(0)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            with Brokers(Connection(ours)) as brokers:
                run = Migration(brokers, "link", 60, told.append)
                assert run.catch_up(100).topics == ["leaving"]
                with pytest.raises(Failure, match="leaving of the source still gets records: stop its producers"):
                    Migration(brokers, "link", 3, told.append).wait_quiet(1)
        finally:
            is_over.set()
            writer.join()
        assert producer.flush(30) == 0
        with Brokers(Connection(ours)) as brokers:
            run = Migration(brokers, "link", 60, told.append)
            done = run.promote(run.catch_up(0).topics, run.wait_quiet(6))
        assert done.topics == ["leaving"]
        assert told[-1] == "1 topic with 1 partition: all but 0 records of the source are copied"
        assert ends(ours, "leaving") == ends(kafka, "leaving")
        assert committed(ours, "billing", "leaving") == 700
        writer_here = Producer({"bootstrap.servers": ours, "enable.idempotence": True})
        writer_here.produce("leaving", "here", partition=0)
        assert writer_here.flush(30) == 0
        assert ends(ours, "leaving")[0] == ends(kafka, "leaving")[0] + 1
