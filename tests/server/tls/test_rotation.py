"""Certificate and password change again and again while clients work: no record is lost, and who has the old password does not get in."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from barnabas.server import maintenance
from barnabas.testing.certificates import Certificates
from barnabas.tls.source import ContextSource
from tests.server.in_process import Client, running
from tests.waiting import until, wait_until

MECHANISM, USER, TOPIC = "SCRAM-SHA-512", "alice", "rotated"
LISTENERS = "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0"
ROUNDS, RECORDS = 3, 100
MORE = 500  # records of the old producer in each round
TIMEOUT_S = 30.0


class Loading(threading.Thread):
    """A producer that sends until it gets the signal to stop. `acknowledged` has the acknowledged values, `errors` everything else."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()
        self.acknowledged: list[str] = []
        self.errors: list[KafkaError] = []
        self.done = threading.Event()
        self._producer = Producer(
            {**settings, "enable.idempotence": True, "linger.ms": 1, "reconnect.backoff.ms": 10, "error_cb": self.errors.append}
        )

    def run(self) -> None:
        number = 0
        while not self.done.is_set():
            self._producer.produce(TOPIC, f"old {number}", on_delivery=self._delivered)
            self._producer.poll(0.001)
            number += 1
        self._producer.flush(TIMEOUT_S)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.append(cast(bytes, message.value()).decode())
        else:
            self.errors.append(error)


class Reading(threading.Thread):
    """A consumer that reads until it is told to stop."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()
        self.found: list[str] = []
        self.errors: list[KafkaError] = []
        self.done = threading.Event()
        self._settings = {**settings, "group.id": "g", "auto.offset.reset": "earliest", "error_cb": self.errors.append}

    def run(self) -> None:
        with closing(Consumer(self._settings)) as consumer:
            consumer.subscribe([TOPIC])
            while not self.done.is_set():
                message = consumer.poll(0.1)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    self.found.append(cast(bytes, message.value()).decode())
                else:
                    self.errors.append(error)


@asynccontextmanager
async def started(*threads: Loading | Reading) -> AsyncIterator[None]:
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.done.set()
        for thread in threads:
            await asyncio.to_thread(thread.join)  # the threads ask the broker before they end, and the broker runs in this loop


def port_of(client: Client, listener: str) -> int:
    return next(endpoint.port for endpoint in client.broker.endpoints if endpoint.listener == listener)


def change_password(port: int, password: str) -> None:
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    wanted = UserScramCredentialUpsertion(USER, credential, password.encode())
    for altered in cast(dict[str, Any], admin.alter_user_scram_credentials([wanted])).values():
        altered.result(TIMEOUT_S)


def produce(settings: dict[str, Any], number: int) -> list[str]:
    """The acknowledged values that new connections read."""
    acknowledged: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged.append(cast(bytes, message.value()).decode())

    producer = Producer({**settings, "acks": "all"})
    for index in range(RECORDS):
        producer.produce(TOPIC, f"new {number} {index}", on_delivery=delivered)
    assert producer.flush(TIMEOUT_S) == 0
    return acknowledged


def expect_refused(settings: dict[str, Any]) -> None:
    seen: list[KafkaError] = []
    shown: dict[str, Any] = {**settings, "error_cb": seen.append, "log_level": 0}
    admin = AdminClient(shown)

    def is_told() -> bool:
        admin.poll(0.05)
        return KafkaError._AUTHENTICATION in {error.code() for error in seen}

    wait_until(is_told)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=0.1)


def is_after(source: ContextSource, generation: int) -> bool:
    return source.generation > generation


def has_more(loading: Loading, acknowledged: int) -> bool:
    return len(loading.acknowledged) > acknowledged + MORE


async def test_passwords_and_certificates_change_under_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "CERTIFICATES_CHECK_MS", 20)
    certificates = Certificates(tmp_path / "authority")
    store = tmp_path / "broker.pem"
    shutil.copy(certificates.broker.combined, store)
    config = {
        **certificates.broker_settings,
        "ssl.keystore.location": str(store),
        "listeners": LISTENERS,
        "sasl.enabled.mechanisms": MECHANISM,
        "connection.failed.authentication.delay.ms": "0",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
    }
    async with running([tmp_path / "data"], None, None, **config) as client:
        plain, secure = port_of(client, "PLAINTEXT"), port_of(client, "SASL_SSL")

        def settings(password: str) -> dict[str, Any]:
            shown = {"sasl.mechanism": MECHANISM, "sasl.username": USER, "sasl.password": password}
            address = {"bootstrap.servers": f"127.0.0.1:{secure}"}
            return {**certificates.client_settings(), **address, **shown, "security.protocol": "SASL_SSL"}

        await asyncio.to_thread(change_password, plain, "password 0")
        assert await client.create(name=TOPIC) == 0
        loading, reading = Loading(settings("password 0")), Reading(settings("password 0"))
        async with started(loading, reading):
            await until(lambda: len(loading.acknowledged) > RECORDS and len(reading.found) > RECORDS)
            of_the_old = {each for each in client.broker.connections if each.listener == "SASL_SSL"}
            acknowledged: list[str] = []
            for number in range(1, ROUNDS + 1):
                source, before = client.broker.tls.of("SASL_SSL").source, len(loading.acknowledged)
                generation = source.generation
                replace_certificate(certificates, tmp_path / f"issue-{number}", store)
                await until(partial(is_after, source, generation))
                await asyncio.to_thread(change_password, plain, f"password {number}")
                acknowledged += await asyncio.to_thread(produce, settings(f"password {number}"), number)
                await asyncio.to_thread(expect_refused, settings(f"password {number - 1}"))
                await until(partial(has_more, loading, before))
            loading.done.set()
            await asyncio.to_thread(loading.join)
            sent = loading.acknowledged + acknowledged
            await until(lambda: len(reading.found) >= len(sent))
            assert {each for each in of_the_old if not each.closed} == of_the_old
        assert (loading.errors, reading.errors) == ([], [])
        assert len(acknowledged) == ROUNDS * RECORDS
        assert sorted(reading.found) == sorted(sent)
        partition = client.broker.partitions.require(TOPIC, 0)
        assert partition.log.log_end_offset == len(sent)


def replace_certificate(certificates: Certificates, folder: Path, store: Path) -> None:
    """Another certificate of the same authority and name in the place of the old one, in one step."""
    folder.mkdir()
    authority = certificates.authority
    issuing = type(authority)(folder, certificates.password, authority.certificate, authority.key)
    issuing.issue("broker", hosts=("localhost", "127.0.0.1", "::1")).combined.replace(store)
