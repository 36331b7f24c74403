"""A transactional producer like those of real clients: one transactional id, one epoch, one transaction at a time, in one of
two flows.

Rules
  1. In the older flow the producer adds partitions at the coordinator before it writes to them. In the newer flow (KIP-890) the
     broker does that, and the producer takes its next epoch from the answer to each end.
  2. If an answer is lost, the producer sends the same request again. If it gives up a batch, there is a gap: it aborts the
     transaction. In the older flow it also requests the next epoch (KIP-360).
  3. An end may be executed although the answer is another retriable error. If a coordinator is deposed between the write and
     the commit of its decision, it answers NOT_COORDINATOR. The next coordinator finds the decision in the log. Kafka does the
     same.
  4. Requests come late or twice only if the flow is safe against that. In the older flow a late end or late offsets may affect
     the next transaction; the newer flow fixes this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.errors import ClientError
from barnabas.client.operations import LAST_VERSION_WITH_NAMES, known, leading, refresh
from barnabas.client.plans import Plan, call
from barnabas.errors import BarnabasError, ErrorCode, KafkaError
from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.records.batch import Record, build_batch
from barnabas.testing.simulation.history import TopicPartition, Violation
from barnabas.testing.simulation.transactions.late_requests import Delivery, LateRequests
from barnabas.testing.simulation.transactions.ledger import Owner

if TYPE_CHECKING:
    from barnabas.testing.simulation.loop import World

GROUP_KEY, TRANSACTION_KEY = 0, 1  # key types in FindCoordinator
FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING})
TO_ABORT = frozenset({ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE})
AGAIN = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})  # the broker has changed nothing
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5


class Fenced(BarnabasError):
    """Another producer has the transactional id, or the coordinator has ended the transaction."""


class Refused(BarnabasError):
    """The transaction cannot continue; the producer must abort it."""


class GivenUp(BarnabasError):
    """The client stopped waiting for an answer; its request may be executed or not."""


class Flow(Struct, frozen=True):
    """The newest versions that a client speaks, and whether they let the broker add partitions."""

    second: bool
    produce: int
    end: int
    commit_offsets: int
    late: frozenset[type[Message]]  # requests that the simulation may delay or repeat


OLDER = Flow(
    False, 11, 4, 4, frozenset({ProduceRequest, AddPartitionsToTxnRequest, AddOffsetsToTxnRequest, InitProducerIdRequest})
)
SECOND = Flow(
    True, LAST_VERSION_WITH_NAMES, 5, 5, frozenset({ProduceRequest, EndTxnRequest, TxnOffsetCommitRequest, InitProducerIdRequest})
)


class TransactionalProducer:
    """The producer of one client.

    Args:
        timeout_ms: the timeout of its transactions.
        patience_s: how long it repeats a request before it gives up.
    """

    def __init__(
        self,
        world: World,
        client: AsyncClient,
        late_requests: LateRequests,
        transactional_id: str,
        flow: Flow,
        *,
        timeout_ms: int,
        patience_s: float,
    ) -> None:
        self._world = world
        self._client = client
        self._late_requests = late_requests
        self._random = Random(world.random.getrandbits(64))
        self._flow = flow
        self._timeout_ms = timeout_ms
        self._patience_s = patience_s
        self._coordinators: dict[tuple[int, str], int] = {}
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[object] = set()
        self._has_gap = False  # a batch was given up, so later batches of the same epoch would be out of order
        self.transactional_id = transactional_id
        self.owner = Owner(-1, -1)
        self.is_end_sure = True  # whether each request to end the transaction, except the last one, certainly had no effect

    # --- operations of a client

    async def init(self) -> Owner:
        """Become the owner of the transactional id; repeats the request until there is an answer."""
        return await self._init(Owner(-1, -1))

    async def _init(self, expected: Owner) -> Owner:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=expected.producer_id,
            producer_epoch=expected.epoch,
        )
        answer = await self._until_answered(lambda: self._coordinate(request, None, TRANSACTION_KEY, self.transactional_id))
        self._become(Owner(answer.producer_id, answer.producer_epoch))
        return self.owner

    async def send(self, place: TopicPartition, records: list[Record], codec: int) -> int:
        """Write a batch; returns the offset of its first record.

        Raises:
            Fenced, Refused, GivenUp: the transaction cannot be committed.
        """
        if not self._flow.second:
            await self._add(place)
        sequence = self._sequences.get(place, 0)
        batch = build_batch(
            records,
            producer_id=self.owner.producer_id,
            producer_epoch=self.owner.epoch,
            base_sequence=sequence,
            transactional=True,
            compression=codec,
        )
        try:
            offset: int = await self._until_answered(lambda: self._produce(place, batch))
        except (Refused, GivenUp):
            self._has_gap = True
            raise
        self._sequences[place] = sequence + len(records)
        return offset

    async def commit_offsets(self, group: str, offsets: dict[TopicPartition, int]) -> None:
        """Commit offsets with the transaction; raises as `send`."""
        owner = self.owner
        if not self._flow.second and group not in self._added:
            adding = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id, producer_id=owner.producer_id, producer_epoch=owner.epoch, group_id=group
            )
            await self._until_answered(lambda: self._coordinate(adding, None, TRANSACTION_KEY, self.transactional_id))
            self._added.add(group)
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, index), offset in offsets.items():
            topics.setdefault(topic, []).append(TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset))
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=owner.producer_id,
            producer_epoch=owner.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=name, partitions=items) for name, items in topics.items()],
        )
        await self._until_answered(lambda: self._coordinate(request, self._flow.commit_offsets, GROUP_KEY, group))

    async def end(self, *, commit: bool) -> None:
        """Commit or abort; raises as `send`. After an error, `is_end_sure` says whether earlier requests certainly had no
        effect."""
        self.is_end_sure = True
        owner = self.owner
        request = EndTxnRequest(
            transactional_id=self.transactional_id, producer_id=owner.producer_id, producer_epoch=owner.epoch, committed=commit
        )
        answer = await self._until_answered(
            lambda: self._coordinate(request, self._flow.end, TRANSACTION_KEY, self.transactional_id), ends=True
        )
        self._added.clear()
        if self._flow.second:
            self._become(Owner(answer.producer_id, answer.producer_epoch))
        elif self._has_gap:
            await self._init(self.owner)

    async def abort(self) -> None:
        """Abort the transaction, if there is one. If the coordinator does not know the transaction, there is nothing to abort."""
        try:
            await self.end(commit=False)
        except Refused:
            self._added.clear()
            if not self._flow.second and self._has_gap:
                await self._init(self.owner)

    def _become(self, owner: Owner) -> None:
        if owner != self.owner:
            self._sequences.clear()
        self.owner = owner
        self._added.clear()
        self._has_gap = False

    # --- requests

    async def _add(self, place: TopicPartition) -> None:
        if place in self._added:
            return
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.owner.producer_id,
            v3_and_below_producer_epoch=self.owner.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=place[0], partitions=[place[1]])],
        )
        await self._until_answered(lambda: self._coordinate(request, 3, TRANSACTION_KEY, self.transactional_id))
        self._added.add(place)

    async def _until_answered(self, attempt: Callable[[], Any], *, ends: bool = False) -> Any:
        """Repeat `attempt` until there is a final answer; raises Fenced, Refused, GivenUp, or Violation for any other error."""
        end_s = self._world.now_s + self._patience_s
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                return await attempt()
            except KafkaError as error:
                self._sort(error)
                if ends and error.code not in AGAIN:
                    self.is_end_sure = False
            except ClientError:
                if ends:
                    self.is_end_sure = False
            if self._world.now_s > end_s:
                raise GivenUp
            await asyncio.sleep(pause_s * (0.5 + self._random.random()))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _sort(self, error: KafkaError) -> None:
        code = error.code
        if code in FENCED:
            raise Fenced from error
        if code in TO_ABORT:
            raise Refused from error
        if not code.retriable and code not in AGAIN:
            raise Violation(f"{self.transactional_id}: refused with {code.name}") from error

    async def _coordinate(self, request: Message, at_most: int | None, kind: int, key: str) -> Any:
        """Send a request to a coordinator; if it has moved, find it again."""
        node_id = self._coordinators.get((kind, key))
        try:
            if node_id is None:
                node_id = self._coordinators[kind, key] = await self._client.run(self._find(kind, key))
            answer = await self._send(request, node_id, at_most)
            _check(answer)
        except BarnabasError:
            self._coordinators.pop((kind, key), None)
            raise
        return answer

    def _find(self, kind: int, key: str) -> Plan[int]:
        yield from refresh(self._client.config, self._client.cluster, [])
        response = yield from call(FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key]))
        (found,) = response.coordinators
        if found.error_code:
            raise KafkaError(ErrorCode(found.error_code))
        return int(found.node_id)

    async def _produce(self, place: TopicPartition, batch: bytes) -> int:
        topic, index = place
        client = self._client
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=batch)])
        request = ProduceRequest(
            transactional_id=self.transactional_id, acks=-1, timeout_ms=client.config.request_timeout_ms, topic_data=[data]
        )
        try:
            await client.run(known(client.config, client.cluster, [place]))
            leader = leading(client.cluster, topic, index)[1].leader
            response = await self._send(request, leader, self._flow.produce)
            (item,) = response.responses[0].partition_responses
            if item.error_code:
                raise KafkaError(ErrorCode(item.error_code))
        except BarnabasError:
            client.cluster.forget(topic)
            raise
        return int(item.base_offset)

    async def _send(self, request: Message, node_id: int, at_most: int | None) -> Any:
        """Send a request over the connection, or late or twice by `LateRequests`."""
        client = self._client
        broker = client.cluster.brokers.get(node_id)
        delivery = self._late_requests.draw() if type(request) in self._flow.late and broker is not None else Delivery.NORMAL
        if delivery is not Delivery.NORMAL and broker is not None:
            self._late_requests.later(f"{broker.host}:{broker.port}", request, at_most)
            self.is_end_sure = False  # a request to end the transaction may arrive again
        if delivery is Delivery.LATE:
            await asyncio.sleep(client.config.request_timeout_ms / 1000 * self._random.random())
            raise Lost
        return await client.run(call(request, node_id, at_most))


class Lost(ClientError):
    """The connection broke before an answer came."""


def _check(answer: Any) -> None:
    """Raise the first error in an answer of a coordinator."""
    for code in _codes(answer):
        if code:
            raise KafkaError(ErrorCode(code))


def _codes(answer: Any) -> list[int]:
    match type(answer).__name__:
        case "AddPartitionsToTxnResponse":
            return [p.partition_error_code for t in answer.results_by_topic_v3_and_below for p in t.results_by_partition]
        case "TxnOffsetCommitResponse":
            return [p.error_code for t in answer.topics for p in t.partitions]
    return [answer.error_code]
