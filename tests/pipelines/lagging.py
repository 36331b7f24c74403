"""A cluster in which each broker learns of changes late, in virtual time, and a client of it.

A broker answers from its own state: one that has led still answers, from what it had then; one that does not know that a topic
was deleted still has its records. All brokers learn of all changes in their order, each after a lag of its own for each change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from msgspec import Struct, field

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError, ConnectionFailed
from barnabas.client.plans import Call, Now, Pause, Plan
from barnabas.error_codes import ErrorCode as E
from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.records.record import build_batch

BROKERS = (1, 2, 3)
REQUEST_MS, EMPTY_FETCH_MS = 1.0, 100.0


class Log(Struct):
    """The records of one partition of one topic id; `ended` is how long it was when the leader of each epoch ceased to be that."""

    values: list[bytes] = field(default_factory=list)
    ended: dict[int, int] = field(default_factory=dict)

    def seen_in(self, epoch: int) -> list[bytes]:
        return self.values[: self.ended.get(epoch, len(self.values))]


class Incarnation(Struct, frozen=True):
    """A topic as a broker may know it: its id, and leader and epoch of each partition."""

    topic_id: UUID
    leaders: tuple[tuple[int, int], ...]


View = dict[str, Incarnation]


class LaggingCluster:
    """Owns the truth and what each broker knows of it.

    Args:
        lag_ms: how late a broker learns of the next change.
    """

    def __init__(self, lag_ms: Callable[[], float]) -> None:
        self.now_ms = 0.0
        self.truth: View = {}
        self.logs: dict[tuple[UUID, int], Log] = {}
        self._lag_ms = lag_ms
        self._coming: dict[int, list[tuple[float, View]]] = {broker: [] for broker in BROKERS}
        self._known: dict[int, View] = {broker: {} for broker in BROKERS}
        self._ids = 0

    def create(self, topic: str, partitions: int) -> None:
        self._ids += 1
        topic_id = UUID(int=self._ids)
        self._change({**self.truth, topic: Incarnation(topic_id, ())})
        self.grow(topic, partitions)

    def delete(self, topic: str) -> None:
        self._change({name: it for name, it in self.truth.items() if name != topic})

    def grow(self, topic: str, partitions: int) -> None:
        it = self.truth[topic]
        added = range(len(it.leaders), partitions)
        self.logs.update({(it.topic_id, p): Log() for p in added})
        self._change({**self.truth, topic: Incarnation(it.topic_id, (*it.leaders, *((BROKERS[p % 3], 0) for p in added)))})

    def move(self, topic: str, partition: int, leader: int) -> None:
        it = self.truth[topic]
        log, (_, epoch) = self.logs[it.topic_id, partition], it.leaders[partition]
        log.ended[epoch] = len(log.values)
        leaders = tuple((leader, epoch + 1) if p == partition else each for p, each in enumerate(it.leaders))
        self._change({**self.truth, topic: Incarnation(it.topic_id, leaders)})

    def append(self, topic: str, partition: int, value: bytes) -> None:
        self.logs[self.truth[topic].topic_id, partition].values.append(value)

    def settle(self) -> None:
        """Let every broker know everything."""
        self.now_ms = max([self.now_ms, *(at for coming in self._coming.values() for at, _ in coming)])

    def _change(self, view: View) -> None:
        self.truth = view
        for broker in BROKERS:
            coming = self._coming[broker]
            coming.append((max(self.now_ms + self._lag_ms(), coming[-1][0] if coming else 0.0), view))

    def view_of(self, broker: int) -> View:
        coming = self._coming[broker]
        while coming and coming[0][0] <= self.now_ms:
            self._known[broker] = coming.pop(0)[1]
        return self._known[broker]

    def answer(self, broker: int, request: Any) -> Any:
        self.now_ms += REQUEST_MS
        view = self.view_of(broker)
        if isinstance(request, MetadataRequest):
            return _metadata(view, request)
        if isinstance(request, ListOffsetsRequest):
            return self._offsets(broker, view, request)
        assert isinstance(request, FetchRequest)
        return self._fetch(broker, view, request)

    def _leads(self, broker: int, it: Incarnation | None, partition: int, epoch: int, unknown: E) -> E:
        if it is None or partition >= len(it.leaders):
            return unknown
        leader, current = it.leaders[partition]
        if epoch != current:
            return E.FENCED_LEADER_EPOCH if epoch < current else E.UNKNOWN_LEADER_EPOCH
        return E.NONE if leader == broker else E.NOT_LEADER_OR_FOLLOWER

    def _offsets(self, broker: int, view: View, request: ListOffsetsRequest) -> ListOffsetsResponse:
        topics = []
        for topic in request.topics:
            items = []
            it = view.get(topic.name)
            for p in topic.partitions:
                code = self._leads(broker, it, p.partition_index, p.current_leader_epoch, E.UNKNOWN_TOPIC_OR_PARTITION)
                offset = -1
                if it is not None and not code:
                    log = self.logs[it.topic_id, p.partition_index]
                    offset = len(log.seen_in(p.current_leader_epoch)) if p.timestamp == -1 else 0
                items.append(ListOffsetsPartitionResponse(partition_index=p.partition_index, error_code=code, offset=offset))
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=items))
        return ListOffsetsResponse(topics=topics)

    def _fetch(self, broker: int, view: View, request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        (wanted,) = topic.partitions
        it = next((it for it in view.values() if it.topic_id == topic.topic_id), None)
        code = self._leads(broker, it, wanted.partition, wanted.current_leader_epoch, E.UNKNOWN_TOPIC_ID)
        end, records = -1, b""
        if it is not None and not code:
            values = self.logs[it.topic_id, wanted.partition].seen_in(wanted.current_leader_epoch)
            end = len(values)
            if wanted.fetch_offset > end:
                code = E.OFFSET_OUT_OF_RANGE
            elif wanted.fetch_offset == end:
                self.now_ms += EMPTY_FETCH_MS
            else:
                rows = [(None, value) for value in values[wanted.fetch_offset : wanted.fetch_offset + 3]]
                records = build_batch(rows, base_offset=wanted.fetch_offset, timestamp_ms=0)
        data = PartitionData(
            partition_index=wanted.partition,
            error_code=code,
            high_watermark=end,
            last_stable_offset=end,
            log_start_offset=0,
            records=records,
        )
        return FetchResponse(responses=[FetchableTopicResponse(topic_id=topic.topic_id, partitions=[data])])


def _metadata(view: View, request: MetadataRequest) -> MetadataResponse:
    names = sorted(view) if request.topics is None else [topic.name for topic in request.topics]
    topics = []
    for name in names:
        it = view.get(name or "")
        if it is None:
            topics.append(MetadataResponseTopic(name=name, error_code=E.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        items = [
            MetadataResponsePartition(partition_index=p, leader_id=leader, leader_epoch=epoch)
            for p, (leader, epoch) in enumerate(it.leaders)
        ]
        topics.append(MetadataResponseTopic(name=name, topic_id=it.topic_id, partitions=items))
    brokers = [MetadataResponseBroker(node_id=i, host="broker", port=i) for i in BROKERS]
    return MetadataResponse(brokers=brokers, topics=topics, controller_id=1, cluster_id="lagging")


class LaggingConnection:
    """To one broker; what was sent is answered when the answer is read."""

    def __init__(self, cluster: LaggingCluster, broker: int) -> None:
        self._cluster, self._broker = cluster, broker
        self._sent: list[Any] = []

    def send(self, call: Call) -> None:
        self._sent.append(call.request)

    def receive(self, *, reuse: bool = False) -> Any:
        return self._cluster.answer(self._broker, self._sent.pop(0))

    def close(self) -> None:
        self._sent.clear()


class LaggingClient(BlockingClient):
    """A client whose sockets and clock are the cluster.

    Args:
        any_broker: which one is asked where any will do.
    """

    def __init__(self, cluster: LaggingCluster, config: ClientConfig, any_broker: Callable[[], int]) -> None:
        super().__init__(config)
        self._lagging = cluster
        self._any_broker = any_broker
        self._open: dict[int, LaggingConnection] = {}

    def run(self, plan: Plan[Any]) -> Any:
        outcome: Any = None
        try:
            while True:
                instruction = plan.send(outcome)
                if isinstance(instruction, Now):
                    outcome = self._lagging.now_ms
                elif isinstance(instruction, Pause):
                    self._lagging.now_ms += instruction.milliseconds
                    outcome = None
                else:
                    outcome = self._ask(instruction)
        except StopIteration as end:
            return end.value

    def _ask(self, calls: Sequence[Call]) -> list[Any]:
        answers: list[Any] = []
        for call in calls:
            try:
                answers.append(self._lagging.answer(self._number(call.node_id), call.request))
            except ClientError as error:
                answers.append(error)
        return answers

    def _number(self, node_id: int) -> int:
        if node_id < 0:
            return self._any_broker()
        if node_id not in self.cluster.brokers:
            raise ConnectionFailed(f"broker {node_id}", "the metadata does not have its address")
        return node_id

    def connection_to(self, node_id: int) -> Any:
        return self._open.setdefault(node_id, LaggingConnection(self._lagging, self._number(node_id)))

    def drop(self, connection: Any) -> None:
        connection.close()

    def commit_offsets(self, *arguments: Any, **more: Any) -> None:
        """No group is told."""
