"""Produce requests to a topic with schema validation, on a broker in this process and a small registry."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from barnabas import limits
from barnabas.errors import ErrorCode
from barnabas.protocol.codec import decode
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.records.batch import Record, build_batch
from barnabas.protocol.records.compression import Compression
from tests.server.in_process import Client, running
from tests.server.schema_validation.small_registry import SmallRegistry, small_registry
from tests.server.wire import NOW_MS, Line, framed
from tests.waiting import until

PRODUCE = (0, 12)
OK, INVALID, UNASKED = 0, int(ErrorCode.INVALID_RECORD), int(ErrorCode.NOT_ENOUGH_REPLICAS)
GOOD, ELSEWHERE, ABSENT = (b"\0\0\0\0" + bytes([number]) + b"rest" for number in (1, 2, 3))
GUID = b"\1" + bytes(range(16))
VALIDATED: dict[str, Any] = {"confluent_value_schema_validation": "true"}
Records = Sequence[Any]


@pytest.fixture
def registry() -> Iterator[SmallRegistry]:
    with small_registry() as registry:
        registry.subjects = {1: ["t-value", "t-key", "u-value"], 2: ["other-value"]}
        registry.guids["00010203-0405-0607-0809-0a0b0c0d0e0f"] = [{"context": ".", "id": 1}]
        yield registry


@pytest_asyncio.fixture
async def client(registry: SmallRegistry, tmp_path: Path) -> AsyncIterator[Client]:
    async with running([tmp_path], confluent_schema_registry_url=registry.url) as client:
        yield client


def request_of(batches: dict[tuple[str, int], bytes], *, acks: int = -1, transactional_id: str | None = None) -> ProduceRequest:
    topics: dict[str, list[PartitionProduceData]] = {}
    for (name, index), batch in batches.items():
        topics.setdefault(name, []).append(PartitionProduceData(index=index, records=batch))
    data = [TopicProduceData(name=name, partition_data=partitions) for name, partitions in topics.items()]
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=data, transactional_id=transactional_id)


def batch_of(*values: bytes | None, **fields: Any) -> bytes:
    return bytes(build_batch([(b"k", value) for value in values], timestamp_ms=NOW_MS, **fields))


async def produce(client: Client, batches: dict[tuple[str, int], bytes], **options: Any) -> dict[tuple[str, int], Any]:
    answer = await client.ask(PRODUCE, request_of(batches, **options), ProduceResponse)
    return {(topic.name, each.index): each for topic in answer.responses for each in topic.partition_responses}


async def codes_of(client: Client, *values: bytes | None, **options: Any) -> int:
    return int((await produce(client, {("t", 0): batch_of(*values)}, **options))["t", 0].error_code)


@pytest.mark.parametrize(
    ("records", "code", "told"),
    [
        ([(None, GOOD)], OK, ""),
        ([(None, GOOD), (b"k", None), (b"k", GOOD)], OK, ""),
        ([(None, b"plain", (("__value_schema_id", GUID),))], OK, ""),
        ([(None, ELSEWHERE)], INVALID, "Record 0 has schema id 2 in its value, which is not registered under subject t-value."),
        ([(None, GOOD), (None, ABSENT)], INVALID, "Record 1 has schema id 3 in its value, which is not registered"),
        ([(None, b"plain")], INVALID, "Record 0 has no schema id in its value, which subject t-value requires."),
        (
            [(None, GOOD, (("__value_schema_id", GUID[:-1] + b"\0"),))],
            INVALID,
            "schema GUID 00010203-0405-0607-0809-0a0b0c0d0e00",
        ),
    ],
)
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
async def test_records(client: Client, records: Records, code: int, told: str, codec: Compression) -> None:
    await client.create(**VALIDATED)
    batch = bytes(build_batch([Record(0, NOW_MS, *each) for each in records], compression=codec))
    for _ in range(3):  # also with a cached schema, and by the path of repeated requests
        answer = (await produce(client, {("t", 0): batch}))["t", 0]
        assert answer.error_code == code
        assert told in (answer.error_message or "")
        assert bool(answer.record_errors) is (code == INVALID)
    assert len((await client.fetch())[1]) == (0 if code else 3 * len(records))


async def test_keys_and_values_have_settings_of_their_own(client: Client) -> None:
    await client.create(confluent_key_schema_validation="true", name="t")
    ids = {("t", 0): bytes(build_batch([(GOOD, b"plain")], timestamp_ms=NOW_MS))}
    assert (await produce(client, ids))["t", 0].error_code == OK
    wrong = {("t", 0): bytes(build_batch([(b"plain", GOOD)], timestamp_ms=NOW_MS))}
    assert (await produce(client, wrong))["t", 0].error_code == INVALID


async def test_a_topic_without_validation_asks_nobody(client: Client, registry: SmallRegistry) -> None:
    await client.create()
    assert await codes_of(client, b"plain") == OK
    assert registry.asked == []


async def test_an_id_is_asked_about_once(client: Client, registry: SmallRegistry) -> None:
    await client.create(partitions=2, **VALIDATED)
    batches = {("t", 0): batch_of(GOOD, GOOD), ("t", 1): batch_of(GOOD)}
    for _ in range(3):
        assert [each.error_code for each in (await produce(client, batches)).values()] == [OK, OK]
    assert len(registry.asked) == 1


async def test_settings_change_while_requests_repeat(client: Client) -> None:
    await client.create()
    for _ in range(3):
        assert await codes_of(client, b"plain") == OK
    await set_validation(client, "true")
    assert await codes_of(client, b"plain") == INVALID
    assert await codes_of(client, GOOD) == OK
    await set_validation(client, "false")
    assert await codes_of(client, b"plain") == OK


async def set_validation(client: Client, value: str) -> None:
    config = AlterableConfig(name="confluent.value.schema.validation", config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
    answer = await client.ask((44, 1), IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse)
    assert answer.responses[0].error_code == 0


async def test_what_can_be_appended_is_and_the_rest_waits_for_one_answer(client: Client, registry: SmallRegistry) -> None:
    await client.create(partitions=3, **VALIDATED)
    await client.create(name="u")
    registry.open.clear()
    batches = {
        ("u", 0): batch_of(b"plain"),
        ("t", 0): batch_of(GOOD),
        ("t", 1): batch_of(ELSEWHERE),
        ("t", 2): batch_of(b"x"),
        ("t", 9): batch_of(GOOD),
    }
    asked = asyncio.ensure_future(produce(client, batches))
    await until(lambda: len(registry.asked) == 2)
    registry.open.set()
    found = {key: each.error_code for key, each in (await asked).items()}
    assert found == {("u", 0): OK, ("t", 0): OK, ("t", 1): INVALID, ("t", 2): INVALID, ("t", 9): 3}
    assert (await client.fetch(name="u"))[1] == [b"plain"]
    assert (await client.fetch())[1] == [GOOD]


@pytest.mark.parametrize("deleted", [False, True])
async def test_partitions_that_were_appended_to_may_be_flushed_or_gone_meanwhile(
    client: Client, registry: SmallRegistry, deleted: bool
) -> None:
    await client.create(**VALIDATED)
    flushed: dict[str, Any] = {"flush_messages": "1"}
    await client.create(name="u", **flushed)
    registry.open.clear()
    asked = asyncio.ensure_future(ask_elsewhere(client, {("u", 0): batch_of(b"plain"), ("t", 0): batch_of(GOOD)}))
    await until(lambda: registry.asked)
    partition = client.broker.partitions.require_leader("u", 0)
    await until(lambda: partition.high_watermark == 1)
    if deleted:
        await client.delete("u")
    registry.open.set()
    gone = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert {key: each.error_code for key, each in (await asked).items()} == {("t", 0): OK, ("u", 0): gone if deleted else OK}


async def ask_elsewhere(client: Client, batches: dict[tuple[str, int], bytes]) -> dict[tuple[str, int], Any]:
    """As `produce`, on a connection of its own."""

    def ask() -> ProduceResponse:
        with Line(client.broker.endpoints[0].port) as line:
            return line.ask(PRODUCE, request_of(batches), ProduceResponse)

    answer = await client.broker.loop.run_in_executor(None, ask)
    return {(topic.name, each.index): each for topic in answer.responses for each in topic.partition_responses}


async def test_a_slow_registry_delays_only_who_needs_it_and_keeps_the_order(client: Client, registry: SmallRegistry) -> None:
    await client.create(**VALIDATED)
    await client.create(name="u")
    registry.open.clear()

    def pipelined() -> list[int]:
        with Line(client.broker.endpoints[0].port) as line:
            requests = [batch_of(GOOD), batch_of(ELSEWHERE), batch_of(GOOD)]
            frames = [framed(PRODUCE, request_of({("t", 0): batch}), number) for number, batch in enumerate(requests)]
            frames.append(framed(PRODUCE, request_of({("u", 0): batch_of(b"plain")}), 3))
            line.socket.sendall(b"".join(frames))
            answers = [line.receive() for _ in frames]
        assert [int.from_bytes(answer[:4]) for answer in answers] == [0, 1, 2, 3]
        decoded = [decode(ProduceResponse, PRODUCE[1], answer, 5) for answer in answers]
        return [each.responses[0].partition_responses[0].error_code for each in decoded]

    waiting = client.broker.loop.run_in_executor(None, pipelined)
    await until(lambda: registry.asked)
    assert (await produce(client, {("u", 0): batch_of(b"1")}))["u", 0].error_code == OK
    assert (await client.fetch(name="u"))[1] == [b"1"], "the pipelined request waits behind the one that asks"
    registry.open.set()
    assert await waiting == [OK, INVALID, OK, OK]
    assert (await client.fetch())[1] == [GOOD, GOOD]


@pytest.mark.parametrize("partitions", [1, 2])
async def test_requests_that_arrive_together(client: Client, partitions: int) -> None:
    await client.create(partitions=partitions, **VALIDATED)
    values = [GOOD, GOOD, GOOD, ELSEWHERE, GOOD, GOOD, b"plain", GOOD] * 4

    def pipelined() -> list[int]:
        with Line(client.broker.endpoints[0].port) as line:
            for _ in range(2):  # the broker learns the template in the first round
                for index in range(partitions):
                    line.ask(PRODUCE, request_of({("t", index): batch_of(GOOD)}), ProduceResponse)
            batches = [(number % partitions, batch_of(value)) for number, value in enumerate(values)]
            line.socket.sendall(b"".join(framed(PRODUCE, request_of({("t", index): batch})) for index, batch in batches))
            decoded = [decode(ProduceResponse, PRODUCE[1], line.receive(), 5) for _ in batches]
        return [each.responses[0].partition_responses[0].error_code for each in decoded]

    codes = await client.broker.loop.run_in_executor(None, pipelined)
    assert codes == [OK if value == GOOD else INVALID for value in values]
    stored = [len((await client.fetch(index))[1]) for index in range(partitions)]
    assert sum(stored) == 2 * partitions + values.count(GOOD)


async def test_an_idempotent_producer_goes_on_after_a_refusal(client: Client) -> None:
    await client.create(**VALIDATED)
    made = await client.ask(
        (22, 4), InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), InitProducerIdResponse
    )
    assert made.error_code == 0
    producer = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
    for sequence, value, code in ((0, GOOD, OK), (1, ELSEWHERE, INVALID), (1, GOOD, OK), (1, GOOD, OK)):
        batch = batch_of(value, base_sequence=sequence, **producer)
        assert (await produce(client, {("t", 0): batch}))["t", 0].error_code == code
    assert (await client.fetch())[1] == [GOOD, GOOD], "the last one was a duplicate"


async def test_transactions(client: Client, registry: SmallRegistry) -> None:
    await client.create(partitions=2, **VALIDATED)
    request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    made = await client.ask((22, 4), request, InitProducerIdResponse)
    while made.error_code:  # the broker creates __transaction_state
        made = await client.ask((22, 4), request, InitProducerIdResponse)
    fields = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch, "base_sequence": 0, "transactional": True}
    registry.open.clear()
    batches = {("t", 0): batch_of(GOOD, **fields), ("t", 1): batch_of(ELSEWHERE, **fields)}
    asked = asyncio.ensure_future(produce(client, batches, transactional_id="x"))
    await until(lambda: len(registry.asked) == 2)
    registry.open.set()
    assert {key: each.error_code for key, each in (await asked).items()} == {("t", 0): OK, ("t", 1): INVALID}
    batches = {("t", 1): batch_of(GOOD, **fields)}
    assert (await produce(client, batches, transactional_id="x"))["t", 1].error_code == OK


async def test_without_answers_a_refusal_closes_the_connection(client: Client) -> None:
    await client.create(**VALIDATED)

    def unanswered(value: bytes) -> bool:
        with Line(client.broker.endpoints[0].port) as line:
            line.send(PRODUCE, request_of({("t", 0): batch_of(value)}, acks=0))
            line.send(PRODUCE, request_of({("t", 0): batch_of(GOOD)}, acks=1))
            try:
                line.receive()
            except (EOFError, ConnectionError):
                return True
            return False

    in_thread = client.broker.loop.run_in_executor
    assert not await in_thread(None, unanswered, GOOD)
    assert await in_thread(None, unanswered, ELSEWHERE)
    assert (await client.fetch())[1] == [GOOD, GOOD]


async def test_an_error_of_the_batch_itself_comes_first(client: Client, registry: SmallRegistry) -> None:
    await client.create(**VALIDATED)
    damaged = bytearray(batch_of(ABSENT))
    damaged[-5] ^= 1
    assert (await produce(client, {("t", 0): bytes(damaged)}))["t", 0].error_code == ErrorCode.CORRUPT_MESSAGE
    assert registry.asked == []


@pytest.mark.parametrize("status", [401, 500])
async def test_a_registry_that_fails_is_retriable_and_comes_back(
    client: Client, registry: SmallRegistry, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.create(**VALIDATED)
    monkeypatch.setattr(limits, "SCHEMA_REGISTRY_PAUSE_S", 60.0)
    registry.status = status
    assert await codes_of(client, GOOD) == UNASKED
    asked = len(registry.asked)
    assert await codes_of(client, GOOD) == UNASKED
    assert len(registry.asked) == asked, "it is left alone for a while"
    client.broker.schema_validation._paused_until_s = 0.0
    registry.status = 200
    await until_accepted(lambda: codes_of(client, GOOD))
    registry.status = status
    assert await codes_of(client, GOOD) == OK, "a known id does not need the registry"


async def until_accepted(send: Callable[[], Any]) -> None:
    while (code := await send()) != OK:
        assert code == UNASKED
        await asyncio.sleep(0)


async def test_a_registry_that_hangs(client: Client, registry: SmallRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SCHEMA_QUESTION_TIMEOUT_S", 0.05)
    await client.create(**VALIDATED)
    registry.open.clear()
    answer = (await produce(client, {("t", 0): batch_of(GOOD)}))["t", 0]
    assert answer.error_code == UNASKED
    assert "no answer within 0.05 s" in answer.error_message
    registry.open.set()
    await until_accepted(lambda: codes_of(client, GOOD))


async def test_a_url_that_hangs_gives_way_to_the_next(
    registry: SmallRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SCHEMA_REGISTRY_TIMEOUT_S", 0.05)
    with small_registry() as hanging:
        hanging.open.clear()
        async with running([tmp_path], confluent_schema_registry_url=f"{hanging.url},{registry.url}") as client:
            await client.create(**VALIDATED)
            assert await codes_of(client, GOOD) == OK
        assert len(hanging.asked) == 1
        hanging.open.set()


async def test_a_broker_stops_while_it_asks(registry: SmallRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SCHEMA_REGISTRY_TIMEOUT_S", 100.0)
    monkeypatch.setattr(limits, "SCHEMA_QUESTION_TIMEOUT_S", 100.0)
    registry.open.clear()
    loop = asyncio.get_running_loop()
    async with running([tmp_path], confluent_schema_registry_url=registry.url) as client:
        await client.create(**VALIDATED)
        line = Line(client.broker.endpoints[0].port)
        line.send(PRODUCE, request_of({("t", 0): batch_of(GOOD)}))
        await until(lambda: registry.asked)
        began = loop.time()
    line.socket.close()
    assert loop.time() - began < 60


async def test_an_id_that_is_registered_later(client: Client, registry: SmallRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "UNKNOWN_SCHEMA_ID_KEPT_S", 0.0)
    await client.create(**VALIDATED)
    assert await codes_of(client, ABSENT) == UNASKED, "the answer is forgotten at once"
    registry.subjects[3] = ["t-value"]
    assert await codes_of(client, ABSENT) == OK


async def test_questions_are_bounded(client: Client, registry: SmallRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SCHEMA_QUESTIONS", 1)
    await client.create(**VALIDATED)
    registry.subjects[9] = ["t-value"]
    both = (GOOD, b"\0\0\0\0\x09")
    assert await codes_of(client, *both) == UNASKED
    assert await codes_of(client, *both) == OK


async def test_a_registry_that_nobody_named(tmp_path: Path) -> None:
    async with running([tmp_path]) as client:
        assert await client.create(**VALIDATED) == ErrorCode.INVALID_CONFIG
        assert await client.create() == 0


async def test_a_url_that_was_taken_away(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with running([tmp_path], confluent_schema_registry_url=url) as client:
            await client.create(**VALIDATED)
    async with running([tmp_path]) as client:
        answer = (await produce(client, {("t", 0): batch_of(GOOD)}))["t", 0]
        assert answer.error_code == UNASKED
        assert "confluent.schema.registry.url is not set" in answer.error_message


@pytest.mark.parametrize("key", ["confluent.value.subject.name.strategy", "confluent.key.subject.name.strategy"])
async def test_strategies_have_names(client: Client, key: str) -> None:
    name = key.replace(".", "_")
    for good in ("TopicName", "RecordName", "TopicRecordName"):
        config: dict[str, Any] = {name: f"io.confluent.kafka.serializers.subject.{good}Strategy"}
        assert await client.create(name=good, **config) == 0
    config = {name: "TopicNameStrategy"}
    assert await client.create(name="bad", **config) == ErrorCode.INVALID_CONFIG


async def test_the_broker_logs_in(registry: SmallRegistry, tmp_path: Path) -> None:
    settings = {
        "confluent_schema_registry_url": f"http://127.0.0.1:1,{registry.url}",
        "confluent_basic_auth_credentials_source": "USER_INFO",
        "confluent_basic_auth_user_info": "ann:secret",
    }
    async with running([tmp_path], **settings) as client:
        await client.create(**VALIDATED)
        assert await codes_of(client, GOOD) == OK
    assert registry.logins == {"Basic YW5uOnNlY3JldA=="}
