"""Log-ins by Kerberos, with a key distribution centre of the tests' own on loopback (Debian's krb5-kdc and krb5-admin-server).

Needs the package gssapi too (extra `kerberos`), which is built against libkrb5-dev; where one of them is missing the tests are skipped.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from kafka import KafkaProducer
from tools.kafka import free_ports, run_tool

from barnabas.cli.main import run
from barnabas.client.asynchronous import AsyncClient
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError, LoginFailed
from barnabas.client.results import NewTopic
from barnabas.cluster.store.interface import ABSENT, Put, StoreUnavailable
from barnabas.cluster.zookeeper.access import access_of
from barnabas.cluster.zookeeper.address import parse_address
from barnabas.cluster.zookeeper.store import ZooKeeperStore
from barnabas.config.broker import BrokerConfig
from barnabas.protocol.records.batch import Record, build_batch
from barnabas.testing import Broker
from barnabas.testing.broker import BrokerFailed
from barnabas.testing.zookeeper import ZooKeeper
from tests.cluster.zookeeper.test_access import ENFORCED
from tests.server.cluster.in_process import running

pytest.importorskip("gssapi")
KRB5KDC, KDB5_UTIL, KADMIN, KINIT = (shutil.which(each, path="/usr/sbin:/usr/bin") for each in (
    "krb5kdc", "kdb5_util", "kadmin.local", "kinit",
))  # fmt: skip
pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(300),
    pytest.mark.skipif(None in {KRB5KDC, KDB5_UTIL, KADMIN, KINIT}, reason="needs krb5-kdc, krb5-admin-server and krb5-user"),
]
REALM, TIMEOUT_S = "BARNABAS.TEST", 20
MODULE = "com.sun.security.auth.module.Krb5LoginModule"
SERVICE, ZOOKEEPER = f"kafka/localhost@{REALM}", f"zookeeper/localhost@{REALM}"


class Centre:
    """A key distribution centre; its environment is what its clients need."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (port,) = free_ports(1)
        (folder / "krb5.conf").write_text(
            f"[libdefaults]\ndefault_realm = {REALM}\ndns_lookup_kdc = false\nrdns = false\nudp_preference_limit = 1\n"
            f"dns_canonicalize_hostname = false\n[realms]\n{REALM} = {{\n kdc = 127.0.0.1:{port}\n}}\n"
        )
        (folder / "kdc.conf").write_text(
            f"[kdcdefaults]\nkdc_listen = 127.0.0.1:{port}\nkdc_tcp_listen = 127.0.0.1:{port}\n[realms]\n{REALM} = {{\n"
            f" database_name = {folder}/principal\n key_stash_file = {folder}/stash\n acl_file = {folder}/acl\n}}\n"
        )
        self.environment = {
            "KRB5_CONFIG": str(folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{folder}/tickets",
            "KRB5RCACHENAME": "none:",
        }
        self._run(KDB5_UTIL, "-r", REALM, "-P", "master", "create", "-s")
        for principal, keys in ((SERVICE, "kafka.keytab"), (f"alice@{REALM}", "alice.keytab"), (ZOOKEEPER, "zookeeper.keytab")):
            self._run(KADMIN, "-r", REALM, "-q", f"addprinc -randkey {principal}")
            self._run(KADMIN, "-r", REALM, "-q", f"ktadd -k {folder}/{keys} {principal}")
        assert KRB5KDC is not None
        self._process = subprocess.Popen([KRB5KDC, "-n", "-r", REALM], env=self._environment(), stderr=subprocess.DEVNULL)
        self._wait(port)
        self._run(KINIT, "-k", "-t", f"{folder}/alice.keytab", f"alice@{REALM}")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.environment}

    def _run(self, program: str | None, *arguments: str) -> None:
        assert program is not None
        subprocess.run([program, *arguments], env=self._environment(), check=True, capture_output=True, timeout=TIMEOUT_S)

    def _wait(self, port: int) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                assert time.monotonic() < deadline, "the centre does not listen"
            else:
                return


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Centre]:
    with pytest.MonkeyPatch.context() as patch:
        made = Centre(tmp_path_factory.mktemp("kerberos"))
        for name, value in made.environment.items():
            patch.setenv(name, value)
        try:
            yield made
        finally:
            made.close()


def settings(centre: Centre, **changes: str) -> dict[str, str]:
    login = f'{MODULE} required useKeyTab=true storeKey=true keyTab="{centre.folder}/kafka.keytab" principal="{SERVICE}";'
    return {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "advertised.listeners": "SASL_PLAINTEXT://localhost:0",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.jaas.config": login,
        "connection.failed.authentication.delay.ms": "0",
        **{key.replace("_", "."): value for key, value in changes.items()},
    }


@pytest.fixture(scope="module")
def broker(centre: Centre) -> Iterator[Broker]:
    with Broker(settings(centre), log_level="debug") as running:
        yield running


def options(broker: Broker) -> dict[str, str]:
    return {
        "bootstrap_servers": f"localhost:{broker.port}",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "kafka",
        "sasl_kerberos_domain_name": "localhost",
    }


def test_kafka_python(broker: Broker) -> None:
    producer = KafkaProducer(**options(broker))
    sent = producer.send("kafka-python", b"hello").get(TIMEOUT_S)
    producer.close()
    assert (sent.topic, sent.offset) == ("kafka-python", 0)


async def test_aiokafka(broker: Broker) -> None:
    async with AIOKafkaProducer(**options(broker)) as producer:
        sent = await producer.send_and_wait("aiokafka", b"hello")
    assert (sent.topic, sent.offset) == ("aiokafka", 0)


def test_kafkas_tools(broker: Broker, centre: Centre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    login = f'{MODULE} required useKeyTab=true storeKey=true keyTab="{centre.folder}/alice.keytab" principal="alice@{REALM}";'
    file = tmp_path / "client.properties"
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\nsasl.jaas.config={login}\n"
    )
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={centre.folder}/krb5.conf")
    shown = ["--bootstrap-server", f"localhost:{broker.port}", "--command-config", str(file)]
    run_tool("kafka-topics", *shown, "--create", "--topic", "of-java")
    assert "of-java" in run_tool("kafka-topics", *shown, "--list").stdout


def ours(bootstrap: str, login: str = f"{MODULE} required useTicketCache=true;", **changes: str) -> ClientConfig:
    """Our own client's settings; the ticket is that of the cache, which is alice's."""
    shown = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": login,
    }
    return ClientConfig.from_options({**shown, **{key.replace("_", "."): value for key, value in changes.items()}})


def test_our_client(broker: Broker, centre: Centre) -> None:
    bootstrap = f"localhost:{broker.port}"
    with BlockingClient(ours(bootstrap)) as client:
        client.create_topics([NewTopic("ours", 1, 1)])
    login = (
        f'{MODULE} required useKeyTab=true keyTab="{centre.folder}/alice.keytab" principal="alice@{REALM}" serviceName="kafka";'
    )
    with BlockingClient(ours(bootstrap, login, sasl_kerberos_service_name="")) as client:
        produced = client.produce("ours", 0, build_batch([Record(0, 0, None, b"hello")]))
    assert produced.base_offset == 0


async def test_our_client_logs_in_again(centre: Centre) -> None:
    with Broker(settings(centre, connections_max_reauth_ms="1500"), log_level="debug") as broker:
        async with AsyncClient(ours(f"localhost:{broker.port}")) as client:
            await client.create_topics([NewTopic("ours", 1, 1)])
            batch = build_batch([Record(0, 0, None, b"hello")])
            logged_in = re.compile(r"event=logged-in peer=(\S+)")
            for offset in itertools.count():  # until after the end of the first session
                assert (await client.produce("ours", 0, batch)).base_offset == offset
                peers = logged_in.findall(broker.log)
                if len(peers) > len(set(peers)):
                    break
            assert peers[-1] in peers[:-1], "a connection logged in twice"


def test_the_command_line(broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n")
    shown = ["-b", f"localhost:{broker.port}", "--command-config", str(file)]
    assert run(["user", "list", *shown]) == 0
    assert run(["user", "list", *shown, "-X", "sasl.kerberos.service.name=other"]) == 1
    assert "no ticket for the service other" in capsys.readouterr().err


def test_who_has_no_ticket(broker: Broker, centre: Centre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bootstrap = f"localhost:{broker.port}"
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/none")
    keyless = f'{MODULE} required keyTab="{centre.folder}/kafka.keytab" principal="bob@{REALM}";'
    unknown = f'{MODULE} required keyTab="{centre.folder}/kafka.keytab" principal="{SERVICE}";'
    for config in (ours(bootstrap), ours(bootstrap, keyless), ours(bootstrap, unknown, sasl_kerberos_service_name="other")):
        with pytest.raises(LoginFailed, match="no ticket for the service"), BlockingClient(config) as client:
            client.create_topics([NewTopic("ours", 1, 1)])


def test_a_centre_that_does_not_answer(broker: Broker, centre: Centre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (centre.folder / "krb5.conf").read_text()
    (tmp_path / "krb5.conf").write_text(re.sub(r"kdc = .*", "kdc = 127.0.0.1:1", text))
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    shutil.copy(centre.folder / "alice.keytab", tmp_path / "unused.keytab")  # no ticket of this keytab is cached
    login = f'{MODULE} required keyTab="{tmp_path}/unused.keytab" principal="alice@{REALM}";'
    config = ours(f"localhost:{broker.port}", login, default_api_timeout_ms="500")
    with pytest.raises(ClientError, match="Cannot contact any KDC") as caught, BlockingClient(config) as client:
        client.create_topics([NewTopic("ours", 1, 1)])
    assert not isinstance(caught.value, LoginFailed)


async def test_brokers_among_themselves(centre: Centre, tmp_path: Path) -> None:
    own = settings(
        centre,
        listeners="SECURE://127.0.0.1:0",
        advertised_listeners="SECURE://localhost:0",
        listener_security_protocol_map="SECURE:SASL_PLAINTEXT",
        inter_broker_listener_name="SECURE",
        sasl_mechanism_inter_broker_protocol="GSSAPI",
        sasl_kerberos_service_name="kafka",
    )
    async with running(tmp_path, count=2, **own) as cluster:
        brokers = cluster.brokers.values()
        async with AsyncClient(ours(",".join(f"localhost:{broker.endpoints[0].port}" for broker in brokers))) as client:
            await client.create_topics([NewTopic("t", 2, 2)])
            for partition in range(2):
                await client.produce("t", partition, build_batch([Record(0, 0, None, b"hello")]))
        found = [broker.partitions.get("t", number) for broker in brokers for number in range(2)]
        await cluster.until(
            lambda: all(each is not None and not each.is_offline and each.log.log_end_offset == 1 for each in found)
        )
        assert all(broker.sasl_listeners.counts.failures == 0 for broker in brokers)


@pytest.fixture
def zookeeper(centre: Centre, tmp_path: Path) -> Iterator[ZooKeeper]:
    """It takes nobody without a ticket."""
    login = f'{MODULE} required useKeyTab=true storeKey=true keyTab="{centre.folder}/zookeeper.keytab" principal="{ZOOKEEPER}";'
    (tmp_path / "jaas.conf").write_text(f"Server {{ {login} }};\n")
    files = {
        "java.security.auth.login.config": str(tmp_path / "jaas.conf"),
        "java.security.krb5.conf": f"{centre.folder}/krb5.conf",
    }
    with ZooKeeper(properties={**ENFORCED, **files}) as running:
        yield running


def test_zookeeper(zookeeper: ZooKeeper, centre: Centre) -> None:
    address = parse_address(zookeeper.address.replace("127.0.0.1", "localhost") + "/kafka")

    def opened(who: str, keys: str, **more: str) -> ZooKeeperStore:
        login = f'{MODULE} required useKeyTab=true keyTab="{centre.folder}/{keys}.keytab" principal="{who}";'
        config, _ = BrokerConfig.from_properties({"zookeeper.sasl.jaas.config": login, **more})
        return ZooKeeperStore(address, access=access_of(config), connection_timeout_ms=1_000)

    with opened(SERVICE, "kafka", **{"zookeeper.set.acl": "true"}) as store:
        store.commit([Put("/users/alice", b"keys", ABSENT)])
        assert [entry.path for entry in store.list("/")] == ["/users/alice"]
        with opened(f"alice@{REALM}", "alice") as of_alice, pytest.raises(StoreUnavailable, match="NoAuthError"):
            of_alice.list("/")
    with pytest.raises(StoreUnavailable, match=r"log-in by SASL refused: .*no ticket for the service zookeeper"):
        opened(f"bob@{REALM}", "alice").close()


async def test_a_name_that_no_rule_is_for_stays_outside(centre: Centre) -> None:
    with Broker(settings(centre, sasl_kerberos_principal_to_local_rules="RULE:[2:$1]")) as broker:
        producer = AIOKafkaProducer(**options(broker))
        with pytest.raises(KafkaConnectionError):
            await producer.start()
        await producer.stop()
        assert "a Kerberos name that no rule is for" in broker.log


def test_a_key_tab_that_is_not_there_stops_the_start(centre: Centre) -> None:
    login = f'{MODULE} required keyTab="/none" principal="{SERVICE}";'
    with pytest.raises(BrokerFailed, match="exit code 2"):
        Broker(settings(centre, sasl_jaas_config=login)).start()
