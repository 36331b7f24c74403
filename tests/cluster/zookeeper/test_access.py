"""ZooKeepers that demand TLS with a certificate, or a log-in by SASL: who gets in, what others see there, and whole brokers on both."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.cli.main import run
from barnabas.cluster.store.interface import ABSENT, Put, StoreUnavailable
from barnabas.cluster.zookeeper.access import access_of
from barnabas.cluster.zookeeper.address import parse_address
from barnabas.cluster.zookeeper.store import ZooKeeperStore
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.testing import Broker
from barnabas.testing.zookeeper import ZooKeeper
from tests.waiting import wait_until

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
SERVER_LOGINS = f'Server {{ {MODULE} required user_barnabas="geheim" user_eve="x"; }};\n'
ENFORCED = {
    "zookeeper.authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    "zookeeper.enforce.auth.enabled": "true",
    "zookeeper.enforce.auth.schemes": "sasl",
}
REFUSED_AFTER_MS = 1_000
WAIT_S = 60
TICK_MS = 500  # a session lasts at most 20 ticks, and a pause of a busy machine must not end it


def login(user: str = "barnabas", password: str = "geheim") -> dict[str, str]:
    return {"zookeeper.sasl.jaas.config": f'{MODULE} required username="{user}" password="{password}";'}


def opened(
    server: ZooKeeper, settings: Mapping[str, str], root: str = "/kafka/one", patience_ms: int | None = None
) -> ZooKeeperStore:
    config, warnings = BrokerConfig.from_properties(settings)
    assert warnings == ()
    return ZooKeeperStore(parse_address(server.address + root), access=access_of(config), connection_timeout_ms=patience_ms)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `barnabas security certificates` makes them: of `broker`, which the server shows, and of two clients."""
    folder = tmp_path_factory.mktemp("zookeeper") / "certificates"
    arguments = ["security", "certificates", "--out", str(folder), "--clients", "kafka,eve", "--hosts", "127.0.0.1"]
    assert run(arguments) == 0
    return folder


def logins(folder: Path) -> dict[str, str]:
    """Properties of a server that demands SASL."""
    folder.mkdir(exist_ok=True)
    file = folder / "jaas.conf"
    file.write_text(SERVER_LOGINS)
    return {**ENFORCED, "java.security.auth.login.config": str(file)}


@pytest.fixture(scope="module")
def sasl_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with ZooKeeper(tick_ms=TICK_MS, properties=logins(tmp_path_factory.mktemp("sasl"))) as running:
        yield running


@pytest.fixture(scope="module")
def tls_server(certificates: Path) -> Iterator[ZooKeeper]:
    """It takes whoever shows a certificate, and demands a log-in besides."""
    password = (certificates / "store.password").read_text().strip()
    stores = {"keyStore": certificates / "broker.p12", "trustStore": certificates / "truststore.p12"}
    properties = {f"zookeeper.ssl.{name}.location": str(path) for name, path in stores.items()}
    properties |= {f"zookeeper.ssl.{name}.password": password for name in stores}
    properties |= {f"zookeeper.ssl.{name}.type": "PKCS12" for name in stores}
    context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    context.load_cert_chain(certificates / "kafka.crt", certificates / "kafka.key")
    with ZooKeeper(tick_ms=TICK_MS, properties={**properties, **logins(certificates / "logins")}, secure=context) as running:
        yield running


def by_tls(certificates: Path, client: str = "kafka") -> dict[str, str]:
    return {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": str(certificates / "ca.crt"),
        "zookeeper.ssl.keystore.location": str(certificates / f"{client}.pem"),
    }


def test_a_log_in_closes_what_is_written(sasl_server: ZooKeeper) -> None:
    with opened(sasl_server, login()) as store:
        store.commit([Put("/users/alice", b"keys", ABSENT), Put("/brokers/1", b"here", ABSENT, ephemeral=True)])
    with opened(sasl_server, login()) as store:
        assert [entry.path for entry in store.list("/")] == ["/users/alice"]
        with pytest.raises(StoreUnavailable, match="NoAuthError"):
            opened(sasl_server, login("eve", "x")).close()


def test_who_logs_in_wrongly_or_not_at_all_is_refused(sasl_server: ZooKeeper) -> None:
    for wrong in (login(password="falsch"), login("nobody", "another")):
        with pytest.raises(StoreUnavailable, match="log-in by SASL refused") as caught:
            opened(sasl_server, wrong, patience_ms=REFUSED_AFTER_MS).close()
        assert "falsch" not in str(caught.value)
    with pytest.raises(StoreUnavailable):
        opened(sasl_server, {}, patience_ms=REFUSED_AFTER_MS).close()


def test_entries_are_open_where_that_is_asked_for(sasl_server: ZooKeeper) -> None:
    with opened(sasl_server, {**login(), "zookeeper.set.acl": "false"}, "/open") as store:
        store.commit([Put("/topics", b"t", ABSENT)])
    with opened(sasl_server, login("eve", "x"), "/open") as store:
        assert [entry.path for entry in store.list("/")] == ["/topics"]


def test_a_session_comes_back_with_its_log_in(sasl_server: ZooKeeper) -> None:
    with opened(sasl_server, login(), "/kafka/back") as store:
        store.commit([Put("/one", b"1", ABSENT)])
        sasl_server.kill()
        sasl_server.start()
        wait_until(lambda: answer_of(store) == "1")
        store.commit([Put("/one", b"2", 0)])
        assert answer_of(store) == "2"


def test_a_certificate_and_a_log_in_together(tls_server: ZooKeeper, certificates: Path) -> None:
    many = [Put(f"/many/{number:04}", bytes(500), ABSENT) for number in range(800)]
    password = (certificates / "store.password").read_text().strip()
    pkcs12 = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.protocol": "TLSv1.2",
        "zookeeper.ssl.truststore.location": str(certificates / "truststore.p12"),
        "zookeeper.ssl.truststore.password": password,
        "zookeeper.ssl.keystore.location": str(certificates / "kafka.p12"),
        "zookeeper.ssl.keystore.password": password,
        "zookeeper.ssl.keystore.type": "PKCS12",
    }
    with opened(tls_server, {**by_tls(certificates), **login()}, "/kafka/both") as store:
        store.commit(many)
    with opened(tls_server, {**pkcs12, **login()}, "/kafka/both") as store:
        assert [entry.path for entry in store.list("/many/")] == [put.path for put in many]


@pytest.mark.parametrize(
    ("leaving_out", "reason"),
    [
        ("zookeeper.ssl.client.enable", "no answer"),
        ("zookeeper.ssl.keystore.location", "no answer"),
        ("zookeeper.ssl.truststore.location", "certificate not taken"),
        ("zookeeper.sasl.jaas.config", "no answer"),
    ],
)
def test_all_of_it_is_demanded(tls_server: ZooKeeper, certificates: Path, leaving_out: str, reason: str) -> None:
    settings = {**by_tls(certificates), **login()}
    del settings[leaving_out]
    with pytest.raises(StoreUnavailable, match=reason):
        opened(tls_server, settings, patience_ms=REFUSED_AFTER_MS).close()


def test_files_are_read_anew_for_each_connection(tls_server: ZooKeeper, certificates: Path, tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    shutil.copy(certificates / "ca.crt", authority)
    settings = {**by_tls(certificates), **login(), "zookeeper.ssl.truststore.location": str(authority)}
    with opened(tls_server, settings, "/kafka/files", patience_ms=REFUSED_AFTER_MS) as store:
        store.commit([Put("/one", b"1", ABSENT)])
        authority.write_text((certificates / "eve.crt").read_text())
        tls_server.kill()
        tls_server.start()
        wait_until(lambda: "certificate not taken" in answer_of(store))
        shutil.copy(certificates / "ca.crt", authority)
        wait_until(lambda: answer_of(store) == "1")
        store.commit([Put("/one", b"2", 0)])
        assert answer_of(store) == "2"


def answer_of(store: ZooKeeperStore) -> str:
    """The answer of the store, or the reason why there is none."""
    try:
        found = store.get("/one")
    except StoreUnavailable as error:
        return str(error)
    return "nothing" if found is None else found.value.decode()


def test_a_broker_keeps_its_cluster_there(tls_server: ZooKeeper, certificates: Path) -> None:
    settings = {**by_tls(certificates), **login(), "zookeeper.connect": f"{tls_server.hosts}/kafka/whole"}
    settings |= {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}
    with Broker(settings) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("there", b"and back")
        assert producer.flush(WAIT_S) == 0
        reading = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
        consumer = Consumer(reading)
        consumer.subscribe(["there"])
        message = consumer.poll(WAIT_S)
        assert message is not None
        assert message.value() == b"and back"
        consumer.close()
    with opened(tls_server, {**by_tls(certificates), **login()}, "/kafka/whole") as store:
        assert any("there" in entry.path for entry in store.list("/"))
    with pytest.raises(StoreUnavailable, match="NoAuthError"):
        opened(tls_server, {**by_tls(certificates, "eve"), **login("eve", "x")}, "/kafka/whole").close()


def test_commands_take_their_settings_from_a_file(
    tls_server: ZooKeeper, certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "server.properties"
    settings = {**by_tls(certificates), **login(), "zookeeper.connect": "elsewhere:1", "node.id": "5"}
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = ["user", "list", "--metadata", f"{tls_server.address}/kafka/commands"]
    monkeypatch.setenv("BARNABAS_ZOOKEEPER_CONFIG", str(file))
    assert run(command) == 0
    monkeypatch.setenv("BARNABAS_ZOOKEEPER_CONFIG", str(tmp_path / "missing"))
    assert run(command) == 2


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"zookeeper.set.acl": "true"}, "zookeeper.set.acl"),
        ({"zookeeper.sasl.jaas.config": f'{MODULE} required username="geheim";'}, "zookeeper.sasl.jaas.config"),
        ({"zookeeper.sasl.jaas.config": 'x.OtherLoginModule required keyTab="geheim";'}, "zookeeper.sasl.jaas.config"),
        (
            {"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.enabled.protocols": "TLSv1.1"},
            "zookeeper.ssl.enabled.protocols",
        ),
    ],
)
def test_settings_that_do_not_hold(settings: dict[str, str], key: str) -> None:
    config, _ = BrokerConfig.from_properties(settings)
    with pytest.raises(ConfigError) as caught:
        access_of(config)
    assert caught.value.key == key
    assert "geheim" not in str(caught.value)


def test_no_text_shows_a_secret(certificates: Path) -> None:
    config, _ = BrokerConfig.from_properties({**login(), "zookeeper.digest": "barnabas:geheim", **by_tls(certificates)})
    assert "geheim" not in repr(access_of(config))
    assert "geheim" not in repr(config)


def test_a_certificate_closes_entries_where_that_is_asked_for(certificates: Path) -> None:
    config, _ = BrokerConfig.from_properties(by_tls(certificates))
    assert not access_of(config).is_private
    config, _ = BrokerConfig.from_properties({**by_tls(certificates), "zookeeper.set.acl": "true"})
    assert access_of(config).is_private


def test_a_store_that_is_not_there_is_named(tmp_path: Path) -> None:
    settings = {"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.truststore.location": str(tmp_path / "none")}
    config, _ = BrokerConfig.from_properties(settings)
    with pytest.raises(ConfigError, match=r"zookeeper\.ssl\.truststore\.location"):
        ZooKeeperStore(parse_address("zookeeper://127.0.0.1:1"), access=access_of(config))
