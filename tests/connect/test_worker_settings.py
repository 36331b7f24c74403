"""The worker files of Kafka Connect: each key is applied, refused, or named as without effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.connect.definitions import WORKER_DEFAULTS as DEFAULTS
from barnabas.connect.worker_settings import LISTENERS, REFUSED, RENAMED, TLS, WITHOUT_EFFECT, worker_settings
from barnabas.errors import ConfigError

DISTRIBUTED = {  # Kafka's connect-distributed.properties, and what its comments offer
    "bootstrap.servers": "localhost:9092",
    "group.id": "connect-cluster",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "true",
    "value.converter.schemas.enable": "true",
    "offset.storage.topic": "connect-offsets",
    "offset.storage.replication.factor": "1",
    "config.storage.topic": "connect-configs",
    "config.storage.replication.factor": "1",
    "status.storage.topic": "connect-status",
    "status.storage.replication.factor": "1",
    "producer.compression.type": "lz4",
}
IDLE = {
    "offset.flush.interval.ms": "10000",
    "plugin.path": "/usr/local/share/java,",
    "exactly.once.source.support": "enabled",
    "metrics.context.connect": "a",
    "session.timeout.ms": "10000",
    "offset.storage.file.filename": "/tmp/connect.offsets",
    "internal.key.converter": "org.apache.kafka.connect.json.JsonConverter",
}


def test_every_key_of_kafkas_file_is_applied_or_named() -> None:
    advertised = {"rest.advertised.host.name": "worker-1", "rest.advertised.port": "8083", "rest.advertised.listener": "http"}
    found = worker_settings({**DISTRIBUTED, **IDLE, **advertised, "listeners": "HTTP://:8083"})
    assert found.settings == {**DISTRIBUTED, "host.name": "worker-1"}
    assert found.idle.keys() == IDLE.keys()
    assert found.listener == "http://0.0.0.0:8083"


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("", None), ("http://127.0.0.1:18083", "http://127.0.0.1:18083"), ("HTTPS://worker:8443", "https://worker:8443"),
        ("http://[::1]:8083", "http://[::1]:8083"), ("http://localhost", "http://localhost:8083"),
    ],
)  # fmt: skip
def test_the_listener(text: str, listener: str | None) -> None:
    assert worker_settings({"listeners": text, "ssl.keystore.location": "/etc/worker.pem"}).listener == listener


def test_the_settings_of_tls_have_the_names_of_the_listener() -> None:
    with pytest.raises(ConfigError, match=r"for listeners\.https\.ssl\.keystore\.location: a key store"):
        worker_settings({"listeners": "https://:8443"})
    shared = worker_settings({"listeners": "https://:8443", "ssl.keystore.location": "/etc/client.pem"}).settings
    assert shared["listener.ssl.keystore.location"] == shared["ssl.keystore.location"] == "/etc/client.pem"
    found = worker_settings({"listeners": "https://:8443", "listeners.https.ssl.keystore.location": "/etc/worker.pem"})
    assert found.settings == {"listener.ssl.keystore.location": "/etc/worker.pem"}


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("rest.extension.classes", "org.example.BasicAuthSecurityRestExtension", "authentication.method"),
        ("listeners", "http://:8083,https://:8443", "one listener"),
        ("listeners", "ftp://:8083", "https://HOST:PORT"),
        ("listeners", "http://:x", "https://HOST:PORT"),
        ("value.converter", "io.example.ProtoConverter", "JsonConverter"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused(key: str, value: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        worker_settings({key: value})
    assert key in str(refused.value)


# that a worker has by this name, or its client: the reference has them
USED = (
    "client.id", "config.providers", "config.storage.", "connector.client.config.override.policy", "group.id", "key.converter",
    "header.converter", "value.converter", "offset.storage.", "status.storage.", "topic.creation.enable", "bootstrap.servers",
    "request.timeout.ms", "sasl.", "ssl.", "security.protocol",
)  # fmt: skip


def test_every_key_of_kafkas_workers_has_an_effect_or_a_reason() -> None:
    """The names are those of the definitions of Kafka Connect 4.3, of distributed and standalone workers."""
    names = Path(__file__).with_name("kafka-worker-keys.txt").read_text().split()
    assert len(names) > 100
    without = {}
    for name in names:
        if name in REFUSED:
            continue
        given = "http://127.0.0.1:8083" if name == LISTENERS else DEFAULTS.get(name, "1")
        found = worker_settings({name: given})
        is_used = name in RENAMED or name.startswith((TLS, "listeners", "rest.advertised.")) or name.startswith(USED)
        if name not in found.idle and not is_used:
            without[name] = found
    assert without == {}
    assert {name for name in WITHOUT_EFFECT if name not in names} == {"auto.include.jmx.reporter"}  # of Kafka Connect before 4.0
