"""A campaign against a live broker: millions of requests of every API and version on many connections at once.

Most are what real clients sent (`corpus.py`) with a few values changed, or well-formed and full of unlikely values. The last one on a
connection may have its bytes damaged, for after that there is nothing more to say: who sends nonsense is closed with one line in the log.

A broker survives it if that log shows no exception, its memory is flat once what the requests have made is deleted, it answers a fresh
client, and no connection is left.

    python -m tests.fuzz.campaign --requests 2000000

Half of the requests are sent to a broker that lets everybody in, and half to one with log-ins and access control: by its administrator,
by a user who may do nothing, and by nobody.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.protocol.request_headers import write_request_header
from barnabas.testing import Broker
from tests.fuzz.corpus import SIZE, recorded
from tests.fuzz.requests import altered, damaged, frames, odd

AT_ONCE = 48  # connections at the same time
MOST_FRAMES = 12  # frames on one connection
SILENCE_S = 0.05  # the client leaves a connection that is silent for so long: long polls are not the target
ROUND = 25_000  # requests between two measurements of the broker's memory
WARM_ROUNDS = 3  # after these rounds the memory must stay flat
MAX_GROWTH_MB = 64
WITHIN_S = 60.0
ANSWER_TIMEOUT_S = 10.0
GUARDED: dict[str, str | int | bool] = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_admin="a" user_bob="b";',
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}
AS_ADMIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "admin", "sasl.password": "a"}
CONFIG: dict[str, str | int | bool] = {
    "auto.create.topics.enable": "false",
    "connections.max.idle.ms": 5_000,
    "num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for the broker: its memory after each round."""

    requests: int
    answers: int
    connections: int
    memory_mb: tuple[float, ...]

    @property
    def grown_mb(self) -> float:
        """Since it was warm."""
        return self.memory_mb[-1] - self.memory_mb[min(WARM_ROUNDS, len(self.memory_mb) - 1)]


class Attack:
    """The requests to one broker, by the choices of one seed."""

    def __init__(self, port: int, seed: int, log_ins: Sequence[bytes] = (b"",)) -> None:
        """Args: log_ins: what connections begin with, one of these."""
        self._port = port
        self._log_ins = log_ins
        self._choices = random.Random(seed)
        self.requests = self.answers = self.connections = 0

    async def round(self, requests: int) -> None:
        """So many more, on `AT_ONCE` connections at a time."""
        end = self.requests + requests
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._go_on(end))

    async def _go_on(self, end: int) -> None:
        while self.requests < end:
            count = self._choices.randint(1, MOST_FRAMES)
            self.requests += count
            self.connections += 1
            with contextlib.suppress(OSError):  # the broker closes connections that send nonsense
                await self._connect(self._choices.choice(self._log_ins) + _stream(self._choices, count))

    async def _connect(self, data: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            cut = self._choices.randrange(len(data) + 1)
            writer.write(data[:cut])
            await asyncio.sleep(0)  # the broker gets the rest in a later turn
            writer.write(data[cut:])
            with contextlib.suppress(TimeoutError, asyncio.IncompleteReadError):
                while True:
                    (size,) = SIZE.unpack(await asyncio.wait_for(reader.readexactly(SIZE.size), SILENCE_S))
                    await asyncio.wait_for(reader.readexactly(size), WITHIN_S)
                    self.answers += 1
        finally:
            writer.transport.abort()


def _stream(choices: random.Random, count: int) -> bytes:
    """So many requests of which the last may be broken, or nothing but noise."""
    if not choices.randrange(100):
        return choices.randbytes(choices.randrange(1, 4096))
    data = bytearray()
    for _ in range(count - 1):
        frame = _well_formed(choices)
        data += SIZE.pack(len(frame)) + frame
    last = (
        _well_formed(choices)
        if choices.randrange(2)
        else damaged(choices.choice(choices.choice((recorded(), frames()))), choices)
    )
    size = len(last) if choices.randrange(20) else choices.choice((-1, 0, len(last) - 1, len(last) + 1, 2**31 - 1))
    return bytes(data + SIZE.pack(size) + last)


def _well_formed(choices: random.Random) -> bytes:
    return altered(choices.choice(recorded()), choices) if choices.randrange(3) else odd(choices)


def log_in(user: str, password: str) -> bytes:
    """The requests of a log-in by PLAIN."""
    token = f"\0{user}\0{password}".encode()
    asked = (17, 1, SaslHandshakeRequest(mechanism="PLAIN")), (36, 2, SaslAuthenticateRequest(auth_bytes=token))
    data = b""
    for api_key, version, request in asked:
        frame = write_request_header(api_key, version, 1, "fuzz") + bytes(encode(request, version))
        data += SIZE.pack(len(frame)) + frame
    return data


def run(requests: int, seed: int, *, guarded: bool = False) -> Outcome:
    """Send so many requests, in rounds.

    Args:
        guarded: to a broker with log-ins and access control.

    Raises:
        AssertionError: the broker ended, does not answer, grew, keeps connections, or wrote about an exception.
    """
    with Broker({**CONFIG, **(GUARDED if guarded else {})}, log_level="warning") as broker:
        log_ins = [log_in("admin", "a"), log_in("admin", "a"), log_in("bob", "b"), b""] if guarded else [b""]
        attack, memory = Attack(broker.port, seed, log_ins), [resident_mb(broker)]
        while attack.requests < requests:
            began = time.monotonic()
            asyncio.run(attack.round(min(ROUND, requests - attack.requests)))
            assert broker.is_running(), broker.log[-4000:]
            tidy(broker, AS_ADMIN if guarded else {})
            memory.append(resident_mb(broker))
            print(
                f"{attack.requests} requests, {time.monotonic() - began:.0f} s, {memory[-1]:.0f} MB", file=sys.stderr, flush=True
            )
        deadline = time.monotonic() + WITHIN_S
        check_answers(broker)
        while open_sockets(broker) >= AT_ONCE:  # throttled connections end by the idle time-out
            assert time.monotonic() < deadline, "connections are left"
            check_answers(broker)
        lines = broker.log.splitlines()
        assert not any("Traceback" in line for line in lines), excerpt(lines)
        assert len([line for line in lines if "event=connection-closed" in line]) <= attack.connections, (
            "more than one line for one"
        )
        outcome = Outcome(attack.requests, attack.answers, attack.connections, tuple(memory))
        assert outcome.grown_mb < MAX_GROWTH_MB, (
            f"the broker's memory after each round, in MB: {[round(each) for each in memory]}"
        )
    return outcome


def tidy(broker: Broker, settings: Mapping[str, str]) -> None:
    """Delete the topics and groups that requests have made."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, **settings})
    topics = [name for name in admin.list_topics(timeout=WITHIN_S).topics if not name.startswith("__")]
    deleting = list(admin.delete_topics(topics).values()) if topics else []
    groups = [group.group_id for group in admin.list_consumer_groups().result(WITHIN_S).valid]
    deleting += admin.delete_consumer_groups(groups).values() if groups else []
    for each in deleting:
        with contextlib.suppress(KafkaException):  # a group becomes empty shortly after its members leave
            each.result(WITHIN_S)


def open_sockets(broker: Broker) -> int:
    """Of the broker's process."""
    folder = Path(f"/proc/{broker.pid}/fd")
    links = []
    for entry in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(entry))
    return sum(link.startswith("socket:") for link in links)


def excerpt(lines: list[str]) -> str:
    """The log without what is as it should be."""
    return "\n".join(line for line in lines if "event=connection-closed" not in line)[-16_000:]


def connect(broker: Broker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), timeout=ANSWER_TIMEOUT_S)


def check_answers(broker: Broker) -> None:
    """A fresh client is served."""
    request = ApiVersionsRequest(client_software_name="fuzz", client_software_version="1")
    frame = write_request_header(18, 3, 1, "fuzz") + bytes(encode(request, 3))
    with connect(broker) as line:
        line.sendall(SIZE.pack(len(frame)) + frame)
        with line.makefile("rb") as answers:
            (size,) = SIZE.unpack(answers.read(4))
            answer = decode(ApiVersionsResponse, 3, answers.read(size), 4)
    assert answer.error_code == 0
    assert answer.api_keys


def resident_mb(broker: Broker) -> float:
    """Memory of the broker's process."""
    for line in Path(f"/proc/{broker.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise AssertionError("the broker has no memory: it ended")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for guarded in (False, True):
        outcome = run(options.requests // 2, options.seed, guarded=guarded)
        memory = ", ".join(f"{each:.0f}" for each in outcome.memory_mb[:: max(1, len(outcome.memory_mb) // 10)])
        print(
            f"{'guarded' if guarded else 'open'} broker: {outcome.requests} requests on {outcome.connections} connections, "
            f"{outcome.answers} answers; memory in MB: {memory}",
            flush=True,
        )


if __name__ == "__main__":
    main()
