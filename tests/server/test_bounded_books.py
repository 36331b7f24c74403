"""A broker's state of clients, addresses, partitions and tokens is bounded; beyond the bound further ones are served or
refused.

The limits are made small here, and met by peers that come over sockets.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from barnabas import limits
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.server.in_process import TOPIC, Client, running
from tests.server.quotas import Client as Named
from tests.server.quotas import set_quota_by
from tests.server.test_quota_metrics import measured
from tests.server.wire import Line, batch_of

JOIN_GROUP = (11, 5)
GOOD, WRONG = b"\0alice\0geheim", b"\0alice\0falsch"
SASL = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security_inter_broker_protocol": "SASL_PLAINTEXT",
    "sasl_enabled_mechanisms": "PLAIN",
    "sasl_jaas_config": 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="geheim";',
    "connection_failed_authentication_delay_ms": "0",
}


def port_of(client: Client) -> int:
    return client.broker.endpoints[0].port


@pytest.mark.parametrize("name", ["MAX_QUOTA_METERS", "MAX_QUOTA_BUDGETS"])
async def test_names_without_number_are_held_to_their_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(limits, name, 3)

    def all_are_throttled() -> bool:
        told = []
        for number in range(8):
            with Named(port_of(client), f"client-{number}") as line:
                told.append(line.produce(TOPIC, batch_of(30_000)).throttle_time_ms)
        return all(told)

    async with running([tmp_path]) as client:
        await client.create()
        await client.in_thread(lambda: set_quota_by(client.line, {"client_id": None}, producer_byte_rate=100_000.0))
        assert await client.in_thread(all_are_throttled)
        most = 4 if name == "MAX_QUOTA_METERS" else 8  # clients above the limit share a fourth meter
        assert 3 <= measured(client.broker)["quota_meters"] <= most
        assert len(client.broker.quotas._budgets) <= (3 if name == "MAX_QUOTA_BUDGETS" else 100)


async def test_so_many_groups_have_a_quota_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_QUOTA_GROUPS", 1)

    def join(group: str) -> None:
        with Named(port_of(client), f"of {group}") as line:
            protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
            request = JoinGroupRequest(
                group_id=group, session_timeout_ms=30_000, rebalance_timeout_ms=30_000, protocol_type="c", protocols=protocols
            )
            request.member_id = line.ask(JOIN_GROUP, request, JoinGroupResponse).member_id
            assert line.ask(JOIN_GROUP, request, JoinGroupResponse).error_code == 0

    async with running([tmp_path], group_initial_rebalance_delay_ms="0") as client:
        for group in ("a", "b"):
            await client.in_thread(partial(set_quota_by, client.line, {"group": group}, consumer_byte_rate=1.0))
            await client.in_thread(partial(join, group))
        members = client.broker.quotas.members
        await members.refresh()
        found = [members.groups_of(f"of {group}", "127.0.0.1") for group in ("a", "b")]
    assert found == [("a",), ()]


async def test_addresses_without_number_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_RATED_ADDRESSES", 2)

    def come() -> None:
        for number in range(1, 7):
            with Line(port_of(client), source=f"127.0.0.{number}") as line:
                line.send((3, 9), MetadataRequest(topics=[]))
                assert line.receive()

    async with running([tmp_path]) as client:
        await client.in_thread(lambda: set_quota_by(client.line, {"ip": None}, connection_creation_rate=1_000.0))
        await client.in_thread(come)
        # an entry goes as soon as its allowance is full again, after one millisecond
        assert 0 < len(client.broker.connection_rates._addresses) <= 2


async def test_failures_of_addresses_without_number_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_PENALIZED_HOSTS", 2)

    def fail() -> None:
        for number in range(1, 7):
            with Line(port_of(client), source=f"127.0.0.{number}") as line:
                assert log_in(line, WRONG) == ErrorCode.SASL_AUTHENTICATION_FAILED

    async with running([tmp_path], **SASL) as client:
        await client.in_thread(fail)
        assert client.broker.sasl_listeners.counts.failures == 6
        assert len(client.broker.sasl_listeners.penalties) == 2


def log_in(line: Line, token: bytes) -> int:
    line.ask((17, 1), SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
    return line.ask((36, 2), SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse).error_code


async def test_there_is_an_end_to_delegation_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_DELEGATION_TOKENS", 2)
    wanted = CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name=None, renewers=[], max_lifetime_ms=-1)

    def create() -> list[int]:
        assert log_in(client.line, GOOD) == 0
        return [client.line.ask((38, 3), wanted, CreateDelegationTokenResponse).error_code for _ in range(3)]

    async with running([tmp_path], **SASL, delegation_token_secret_key="key") as client:
        assert await client.in_thread(create) == [0, 0, ErrorCode.POLICY_VIOLATION]


async def alter(client: Client, path: Path, *topics: str) -> list[int]:
    named = [AlterReplicaLogDirTopic(name=name, partitions=[0]) for name in topics]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(path), topics=named)])
    answer = await client.ask((34, 2), request, AlterReplicaLogDirsResponse)
    return [partition.error_code for result in answer.results for partition in result.partitions]


async def test_places_chosen_for_partitions_to_come_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest choice is forgotten first: its topic is made in the directory with the fewest partitions."""
    monkeypatch.setattr(limits, "MAX_PREFERRED_LOG_DIRS", 2)
    dirs = [tmp_path / name for name in ("disk", "disk-2")]
    names = [f"later-{number}" for number in range(4)]
    async with running(dirs) as client:
        assert await alter(client, dirs[1], *names) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 4
        for name in reversed(names):
            await client.create(name=name)
        homes = {name: client.broker.logs.directory_of(name, 0).path.name for name in names}
    assert homes == {"later-3": "disk-2", "later-2": "disk-2", "later-1": "disk", "later-0": "disk"}


async def test_so_many_logs_move_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_MOVES_OF_LOGS", 1)
    dirs = [tmp_path / name for name in ("disk", "disk-2")]
    async with running(dirs, replica_alter_log_dirs_io_max_bytes_per_second="1") as client:
        for name in ("one", "two"):
            await client.create(name=name)
            for _ in range(2):
                await client.produce(b"v" * 1_000, name=name)
        elsewhere = {name: next(d for d in dirs if d != client.broker.logs.directory_of(name, 0).path) for name in ("one", "two")}
        assert await alter(client, elsewhere["one"], "one") == [0]
        assert await alter(client, elsewhere["two"], "two") == [ErrorCode.KAFKA_STORAGE_ERROR]
        assert len(client.broker.log_dir_moves) == 1
