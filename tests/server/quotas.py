"""Clients with quotas, held by the hand of a test."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.request_headers import has_flexible_response_header, write_request_header
from barnabas.testing import Broker
from tests.server.wire import SIZE, Answer, Line

ALTER, FETCH, METADATA = (49, 1), (1, 12), (3, 9)


def produce_request(topic: str, batch: bytes, acks: int = 1, partition: int = 0) -> ProduceRequest:
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])]
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=data)


class Client(Line):
    """A connection with a client id of its own."""

    def __init__(self, broker: Broker | int, client_id: str) -> None:
        super().__init__(broker)
        self.client_id = client_id

    def send(self, api: tuple[int, int], request: Message, correlation_id: int = 0) -> None:
        self.send_all([(api, request)], correlation_id)

    def send_all(self, requests: Sequence[tuple[tuple[int, int], Message]], correlation_id: int = 0) -> None:
        """Several at once."""
        data = bytearray()
        for api, request in requests:
            frame = write_request_header(*api, correlation_id, self.client_id) + bytes(encode(request, api[1]))
            data += SIZE.pack(len(frame)) + frame
        self.socket.sendall(data)

    def hear(self, api: tuple[int, int], answer: type[Answer]) -> Answer:
        return decode(answer, api[1], self.receive(), 5 if has_flexible_response_header(*api) else 4)

    def produce(self, topic: str, batch: bytes, acks: int = 1, version: int = 9, partition: int = 0) -> ProduceResponse:
        return self.ask((0, version), produce_request(topic, batch, acks, partition), ProduceResponse)

    def fetch(self, topic: str, offset: int = 0, *, session: tuple[int, int] = (0, -1), max_wait_ms: int = 0) -> FetchResponse:
        wanted = [FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=2**20, current_leader_epoch=-1)]
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=2**20,
            session_id=session[0],
            session_epoch=session[1],
            topics=[FetchTopic(topic=topic, partitions=wanted)],
        )
        return self.ask(FETCH, request, FetchResponse)


def set_quota(broker: Broker, names: dict[str, str | None], **quotas: float | None) -> None:
    """Set quotas, or remove those that are None."""
    with Line(broker) as line:
        set_quota_by(line, names, **quotas)


def quota_request(names: dict[str, str | None], **quotas: float | None) -> AlterClientQuotasRequest:
    entity = [RequestEntityData(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in names.items()]
    ops = [OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()]
    return AlterClientQuotasRequest(entries=[RequestEntryData(entity=entity, ops=ops)])


def set_quota_by(line: Line, names: dict[str, str | None], **quotas: float | None) -> None:
    request = quota_request(names, **quotas)
    (entry,) = line.ask(ALTER, request, AlterClientQuotasResponse).entries
    assert entry.error_code == 0, entry.error_message


def fetched_bytes(answer: FetchResponse) -> int:
    return sum(len(p.records or b"") for topic in answer.responses for p in topic.partitions)
