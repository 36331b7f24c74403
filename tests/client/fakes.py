"""A cluster that is a function: plans run against it with a clock of their own, and no socket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from barnabas.client.errors import ClientError
from barnabas.client.plans import Call, Now, Pause, Plan
from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

R = TypeVar("R")
TOPIC_ID = UUID(int=7)
Answer = Callable[[Message, int], Any]


class FakeShell:
    """Runs plans: `answer(request, node id)` gives a response, or raises the ClientError that the shell would have met."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.now_ms = 1_000.0
        self.sent: list[tuple[int, Message]] = []
        self.pauses: list[float] = []

    def run(self, plan: Plan[R]) -> R:
        outcome: Any = None
        try:
            while True:
                instruction = plan.send(outcome)
                if isinstance(instruction, Now):
                    outcome = self.now_ms
                elif isinstance(instruction, Pause):
                    self.pauses.append(instruction.milliseconds)
                    self.now_ms += instruction.milliseconds
                    outcome = None
                else:
                    outcome = [self._carry_out(call) for call in instruction]
        except StopIteration as end:
            result: R = end.value
            return result

    def _carry_out(self, call: Call) -> Any:
        self.sent.append((call.node_id, call.request))
        try:
            return self._answer(call.request, call.node_id)
        except ClientError as error:
            return error


def metadata(leaders: dict[tuple[str, int], int], errors: dict[str, int] | None = None) -> MetadataResponse:
    """Two brokers, and topics whose partitions have these leaders (-1: none)."""
    names = sorted({topic for topic, _ in leaders})
    topics = [
        MetadataResponseTopic(
            name=name,
            topic_id=TOPIC_ID,
            partitions=[
                MetadataResponsePartition(partition_index=p, leader_id=leader, leader_epoch=3)
                for (topic, p), leader in sorted(leaders.items())
                if topic == name
            ],
        )
        for name in names
    ]
    topics += [MetadataResponseTopic(name=name, error_code=code) for name, code in (errors or {}).items()]
    brokers = [MetadataResponseBroker(node_id=i, host="127.0.0.1", port=9000 + i) for i in (1, 2)]
    return MetadataResponse(brokers=brokers, topics=topics, controller_id=1, cluster_id="fake")
