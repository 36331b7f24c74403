"""Principal builders: what they are told of each kind of connection, and that what they say holds for rights and in a cluster."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from barnabas.cli.bindings import creation_of
from barnabas.client.asynchronous import AsyncClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError
from barnabas.client.plans import call
from barnabas.config.broker import BrokerConfig
from barnabas.plugins import PlaintextContext, Principal, SaslContext, TlsContext
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.security.acls import AclFilter, Operation, ResourceType
from barnabas.server.authorization.access_control import STANDARD
from barnabas.server.broker import Broker
from barnabas.testing.certificates import Certificates
from tests.plugins.samples import ASKED, HERE
from tests.server.authorization.people import acl
from tests.server.cluster.in_process import running as cluster_running
from tests.server.in_process import Client, running
from tests.server.wire import framed

BUILDER = {"principal.builder.class": f"{HERE}Names"}
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SASL = {
    "listeners": "SECURE://127.0.0.1:0",
    "listener.security.protocol.map": "SECURE:SASL_PLAINTEXT",
    "inter.broker.listener.name": "SECURE",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.jaas.config": f"{LOGIN} username=broker password=geheim user_broker=geheim user_alice=pw user_mallory=pw;",
    "authorizer.class.name": STANDARD,
    "super.users": "User:BROKER",
}


@pytest.fixture(autouse=True)
def nothing_asked() -> None:
    ASKED.clear()


def creation(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=9_000)


async def may_create(client: Client, name: str) -> bool:
    answer = await client.ask((19, 7), creation(name), CreateTopicsResponse)
    return bool(answer.topics[0].error_code == 0)


@asynccontextmanager
async def broker_running(folder: Path, **settings: str) -> AsyncIterator[Broker]:
    config, _ = BrokerConfig.from_properties({"log.dirs": str(folder), **settings})
    broker = Broker(config, asyncio.get_running_loop())
    try:
        await broker.start()
        yield broker
    finally:
        await broker.stop()


def user(port: int, name: str, password: str) -> AsyncClient:
    shown = {"sasl.mechanism": "PLAIN", "sasl.username": name, "sasl.password": password, "security.protocol": "SASL_PLAINTEXT"}
    return AsyncClient(ClientConfig.from_options({"bootstrap.servers": f"127.0.0.1:{port}", **shown}))


async def test_a_connection_without_authentication_is_named(tmp_path: Path) -> None:
    rights = {"authorizer.class.name": STANDARD, "super.users": "Host:PLAINTEXT@127.0.0.1"}
    async with running([tmp_path], **BUILDER, **rights) as client:
        assert await may_create(client, "t")
        assert [PlaintextContext("PLAINTEXT", "127.0.0.1", "PLAINTEXT")] == ASKED, "asked once for a connection"


async def test_who_is_not_named_does_not_come_in(tmp_path: Path) -> None:
    async with running([tmp_path], **{"principal.builder.class": f"{HERE}NoNames"}) as client:
        with pytest.raises((EOFError, ConnectionError)):
            await client.ask((3, 9), MetadataRequest(topics=[]), MetadataResponse)


async def test_who_logged_in_is_named_and_brokers_hand_the_name_on(tmp_path: Path) -> None:
    async with cluster_running(tmp_path, count=2, **SASL, **BUILDER) as cluster:
        follower = next(i for i, broker in cluster.brokers.items() if broker.member and not broker.member.is_controller)
        port = cluster.brokers[follower].endpoints[0].port
        right = acl(ResourceType.CLUSTER, "kafka-cluster", Operation.CREATE, principal="Group:staff")
        async with user(port, "broker", "geheim") as admin:
            assert (await admin.run(call(creation_of([right])))).results[0].error_code == 0
        known = AclFilter(principal="Group:staff")
        await cluster.until(lambda: all(b.authorizer and b.authorizer.matching(known) for b in cluster.brokers.values()))
        async with user(port, "alice", "pw") as alice:
            answer = await alice.run(call(creation("t")))
            assert answer.topics[0].error_code == 0, "the controller, which is another broker, knows her group"
            names = {(each.principal, each.groups) for each in cluster.brokers[follower].connections}
            assert ("User:ALICE", ("Group:staff",)) in names
        async with user(port, "mallory", "pw") as mallory:
            with pytest.raises(ClientError):
                await mallory.run(call(MetadataRequest(topics=[])))
        assert SaslContext("SECURE", "127.0.0.1", "SASL_PLAINTEXT", "PLAIN", "alice", ()) in ASKED


async def test_who_shows_a_certificate_or_none_is_named(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    listener = {"listeners": "TLS://127.0.0.1:0", "listener.security.protocol.map": "TLS:SSL"}
    rules = {"inter.broker.listener.name": "TLS", "ssl.principal.mapping.rules": "RULE:CN=(al.*)/$1/"}
    folder = tmp_path / "data"
    folder.mkdir()
    async with broker_running(folder, **listener, **rules, **certificates.broker_settings, **BUILDER) as broker:
        for name in ("alice", "bob", None):
            context = ssl.create_default_context(cafile=certificates.ca_file)
            if name is not None:
                files = certificates.client(name)
                context.load_cert_chain(files.certificate, files.key)
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.endpoints[0].port, ssl=context)
            writer.write(framed((3, 9), MetadataRequest(topics=[])))
            await reader.readexactly(4)
            writer.close()
        asked = [each for each in ASKED if isinstance(each, TlsContext)]
    assert [each.subject for each in asked] == ["CN=alice", "CN=bob", ""]
    assert [each.default for each in asked] == [Principal("alice"), None, Principal("ANONYMOUS")]
    assert [each.certificate is None for each in asked] == [False, False, True]
    assert {(each.listener_name, each.client_address, each.security_protocol) for each in asked} == {("TLS", "127.0.0.1", "SSL")}
