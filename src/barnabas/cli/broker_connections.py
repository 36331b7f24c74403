"""Connections to the brokers of a cluster, for commands that send requests to one certain broker or to all brokers. A
connection is opened at its first use."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from barnabas.cli.connection import Connection
from barnabas.cli.errors import Failure
from barnabas.cli.offsets import Partition
from barnabas.cli.wire import Wire
from barnabas.error_codes import ErrorCode, code_name
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

TRANSACTION = 1  # key type of a transaction coordinator in FindCoordinator


class Brokers:
    """The connections to the brokers of one cluster.

    Raises, from every call:
        Failure: a broker cannot be reached, or refuses.
    """

    def __init__(self, connection: Connection) -> None:
        self._open = ExitStack()
        self._by_address: dict[tuple[str, int], Wire] = {}
        self.first = self._open.enter_context(connection.wire())
        self._addresses = {each.node_id: (each.host, each.port) for each in self._metadata([]).brokers}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._open.close()

    def __iter__(self) -> Any:
        for broker_id in sorted(self._addresses):
            yield broker_id, self.broker(broker_id)

    def broker(self, broker_id: int) -> Wire:
        if broker_id not in self._addresses:
            raise Failure(f"there is no broker {broker_id}")
        return self._to(self._addresses[broker_id])

    def coordinator_of(self, transactional_id: str) -> tuple[int, Wire]:
        """The broker that coordinates a transactional id."""
        answer = self.first.request(
            FindCoordinatorRequest(key=transactional_id, key_type=TRANSACTION, coordinator_keys=[transactional_id])
        )
        found = answer.coordinators[0] if answer.coordinators else answer
        if found.error_code:
            raise Failure(f"transactional id {transactional_id}: {code_name(found.error_code)}")
        return found.node_id, self._to((found.host, found.port))

    def leaders(self, topics: Iterable[str] | None) -> dict[Partition, int]:
        """The leader of each partition of `topics`, or of all topics if it is empty; partitions without a leader are
        left out."""
        found: dict[Partition, int] = {}
        for topic in self._metadata(None if topics is None else sorted(topics)).topics:
            if topic.error_code:
                raise Failure(f"topic {topic.name}: {code_name(topic.error_code)}")
            for each in topic.partitions:
                if each.error_code in (ErrorCode.NONE, ErrorCode.REPLICA_NOT_AVAILABLE) and each.leader_id in self._addresses:
                    found[topic.name or "", each.partition_index] = each.leader_id
        return found

    def _metadata(self, topics: list[str] | None) -> MetadataResponse:
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        found: MetadataResponse = self.first.request(MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
        return found

    def _to(self, address: tuple[str, int]) -> Wire:
        if address not in self._by_address:
            self._by_address[address] = self._open.enter_context(self.first.to(*address))
        return self._by_address[address]
