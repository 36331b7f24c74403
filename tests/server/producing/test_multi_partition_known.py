"""Which partitions a connection knows: as many as there is room for, while they are there, and while it may write to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas import limits
from barnabas.errors import ErrorCode
from barnabas.protocol.codec import decode
from barnabas.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.security.acls import Acl, Operation, ResourceType
from barnabas.server.fastpath.recogniser import find
from barnabas.server.producing import multi_partition
from barnabas.server.producing.request_template import ProduceTemplate
from tests.server.authorization.people import ALICE, acl, guarded
from tests.server.in_process import running
from tests.server.producing.multi_partition_requests import (
    ALONE,
    PARTITIONS,
    TOGETHER,
    VERSIONS,
    Sent,
    batch_of,
    create,
    everywhere,
    frame_of,
    pipelined,
    told,
)
from tests.server.quotas import ALTER, quota_request
from tests.server.wire import CLIENT_ID


async def test_what_could_never_go_together_stops_being_tried(tmp_path: Path, taken: list[int]) -> None:
    squeezed = Sent([(0, index, batch_of(b"x" * 99, compression=1)) for index in range(PARTITIONS)])
    async with running([tmp_path]) as client:
        await create(client, {"compression_type": "uncompressed"})
        await pipelined(client, [squeezed] * 30)
        (connection,) = client.broker.connections
        template = find(connection.recognisers, ProduceTemplate)
        assert template is not None
        assert template.multi_partition.count == 0
    assert not taken


async def test_connections_know_more_partitions_while_their_broker_has_room(
    tmp_path: Path, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("MAX_REPEATED_REQUESTS", 2), ("MAX_REPEATED_REQUESTS_OF_ONE", 5), ("MAX_REPEATED_REQUESTS_OF_ALL", 4)):
        monkeypatch.setattr(limits, name, most)
    async with running([tmp_path]) as client:
        await create(client)
        room = client.broker.template_budget.multi_partition
        (connection,) = client.broker.connections
        await pipelined(client, [everywhere(b"v")] * 3)
        template = find(connection.recognisers, ProduceTemplate)
        assert template is not None
        assert (template.multi_partition.count, room.left) == (5, 1)
        assert not taken, "there was room for some of the partitions only"
        few = [Sent([(0, 0, batch_of(b"v")), (0, 1, batch_of(b"v"))])] * 3
        await pipelined(client, few)
        assert sum(taken) == 3
        for name in TOGETHER:
            await client.delete(name)
        await pipelined(client, [everywhere(b"v")], ALONE)
        assert (template.multi_partition.count, room.left) == (5, 1), "those of closed partitions made room"
        connection.forget_learnt()
        assert (template.multi_partition.count, room.left) == (0, 4)


async def test_a_topic_made_again_is_another_one(tmp_path: Path, taken: list[int]) -> None:
    async with running([tmp_path]) as client:
        await create(client)
        await pipelined(client, [everywhere(b"old")] * 4)
        frames = [frame_of(client, everywhere(b"v"), TOGETHER, number) for number in range(3)]
        for name in TOGETHER:
            await client.delete(name)

        def ask() -> list[bytes]:
            client.line.socket.sendall(b"".join(frames))
            return [client.line.receive() for _ in frames]

        for answer in await client.in_thread(ask):
            assert {code for _, code, _ in told(answer)} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        for name in TOGETHER:
            assert await client.create(PARTITIONS, name=name) == 0
        before = sum(taken)
        answers = await pipelined(client, [everywhere(b"new")] * 4)
        assert [told(answer)[0] for answer in answers] == [(0, 0, 2 * number) for number in range(4)]
        assert sum(taken) > before


def may_write(name: str) -> Acl:
    return acl(ResourceType.TOPIC, name, Operation.WRITE)


async def test_who_may_not_write_any_more_does_not(tmp_path: Path, taken: list[int]) -> None:
    async with guarded(tmp_path) as people:
        await create(people.admin)
        await people.allow(may_write(TOGETHER[0]), may_write(TOGETHER[1]))
        alice = await people.connect(ALICE)
        await pipelined(alice, [everywhere(b"v")] * 4)
        assert sum(taken) == 3
        await people.forget()
        await people.allow(may_write(TOGETHER[1]))
        answers = await pipelined(alice, [everywhere(b"v")] * 4)
        for number, answer in enumerate(answers, 4):
            denied = [(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1) for index in range(PARTITIONS)]
            allowed = [(index, 0, 2 * number) for index in range(PARTITIONS)]
            assert sorted(told(answer), key=lambda each: (-each[1], each[0])) == denied + allowed
        assert sum(taken) == 3


async def test_what_the_audit_log_samples_is_not_learnt(tmp_path: Path, taken: list[int]) -> None:
    async with guarded(tmp_path, audit_log_file=str(tmp_path / "audit"), audit_log_data_sample_rate="1") as people:
        await create(people.admin)
        await people.allow(may_write(TOGETHER[0]), may_write(TOGETHER[1]))
        alice = await people.connect(ALICE)
        await pipelined(alice, [everywhere(b"v")] * 4)
    assert not taken


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_has_a_quota_is_paid_together_and_told_with_the_last_answer(
    version: int, tmp_path: Path, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    paid: list[int] = []

    def pay(broker: object, connection: object, budget: object, size: int) -> int:
        assert budget is not None
        paid.append(size)
        return 123

    async with running([tmp_path]) as client:
        await create(client)
        quota = quota_request({"client_id": CLIENT_ID}, producer_byte_rate=1e9)
        answer = await client.ask(ALTER, quota, AlterClientQuotasResponse)
        assert [each.error_code for each in answer.entries] == [0]
        await pipelined(client, [everywhere(b"v", version)])
        monkeypatch.setattr(multi_partition, "charge_produce", pay)
        requests = [everywhere(b"v", version)] * 4
        answers = await pipelined(client, requests)
        sizes = [len(frame_of(client, each, TOGETHER, 0)) for each in requests]
    waits = [decode(ProduceResponse, version, answer, 5 if version >= 9 else 4).throttle_time_ms for answer in answers]
    assert sum(paid) == sum(sizes)
    lasts = {sum(taken[: number + 1]) - 1 for number in range(len(taken))}
    assert waits == [123 if number in lasts else 0 for number in range(4)]
