"""Produce requests with schema ids that the broker does not know: held until the schema registry has answered.

The general way has appended the other partitions. It then handles the waiting partitions as a separate request, and gives one answer for
all. If the ids of a partition are still unknown, it is refused, and its producer tries again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas import limits
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.produce import PartitionAnswer, PartitionRecords, ProduceHead
from barnabas.server.producing.delayed import Topics, must_wait, refused
from barnabas.server.producing.holding import HoldingBroker, hold_back
from barnabas.server.schema_validation.subject import Question

if TYPE_CHECKING:
    from barnabas.replication.leader_partition import LeaderPartition
    from barnabas.server.connection import Connection
    from barnabas.server.schema_validation.topic_check import SchemaIdsUnknown
    from barnabas.server.schema_validation.validation import SchemaValidation

PAUSE = "schemas"
Waiting = list[tuple["LeaderPartition", int]]


class ValidatingBroker(HoldingBroker, Protocol):
    """The parts of the broker that this module uses."""

    schema_validation: SchemaValidation


class SchemasUnknown(PartitionAnswer):
    """The answer of a partition unless the registry is asked."""

    questions: tuple[Question, ...]
    request: PartitionRecords

    @classmethod
    def by(cls, answer: PartitionAnswer, request: PartitionRecords, error: SchemaIdsUnknown) -> SchemasUnknown:
        made = cls(*answer)
        made.questions, made.request = tuple(error.questions), request
        return made


class Earlier(NamedTuple):
    """The earlier results of a request: answers of partitions whose batches are not in the remaining request any more.

    Fields:
        waiting: partitions that wait for more than the append, with their last offsets.
        is_asked: the schema registry was asked.
    """

    answers: Topics
    waiting: Waiting
    is_asked: bool


GoOn = Callable[[memoryview, ProduceHead, Earlier], None]


def without(head: ProduceHead, answers: Topics) -> ProduceHead:
    """The same request without the partitions that have an answer."""
    done = {(key, answer.partition) for key, partitions in answers for answer in partitions}
    topics = [(key, [each for each in wanted if (key, each.partition) not in done]) for key, wanted in head.topics]
    return head._replace(topics=[topic for topic in topics if topic[1]])


def merged(answers: Topics, earlier: Topics) -> Topics:
    """The topics of both, with one entry for each topic."""
    found: dict[bytes, list[PartitionAnswer]] = {}
    for key, partitions in (*answers, *earlier):
        found.setdefault(key, []).extend(partitions)
    return list(found.items())


def ask_registry(
    broker: ValidatingBroker,
    connection: Connection,
    frame: memoryview,
    head: ProduceHead,
    answers: Topics,
    waiting: Waiting,
    go_on: GoOn,
) -> bool:
    """Hold the request if the registry must be asked about some of its batches. Returns False if not.

    Args:
        answers: of all partitions, after the append of all valid batches.
        go_on: called with a copy of the frame, the request of the waiting batches, and the other answers.
    """
    unknown = [(key, answer) for key, partitions in answers for answer in partitions if isinstance(answer, SchemasUnknown)]
    if not unknown:
        return False
    questions = {question for _, answer in unknown for question in answer.questions}
    topics: dict[bytes, list[PartitionRecords]] = {}
    for key, answer in unknown:
        records = answer.request.records
        copied = answer.request._replace(records=None if records is None else memoryview(bytearray(records)))
        topics.setdefault(key, []).append(copied)
    rest = head._replace(topics=list(topics.items()))
    others = [(key, [each for each in told if not isinstance(each, SchemasUnknown)]) for key, told in answers]
    others = [topic for topic in others if topic[1]]
    held = memoryview(bytearray(frame))
    kept = len(held) + sum(len(each.records or b"") for wanted in topics.values() for each in wanted)

    async def ask() -> Callable[[], None]:
        await broker.schema_validation.ask(questions, limits.SCHEMA_QUESTION_TIMEOUT_S)
        return lambda: go_on(held, rest, Earlier(*_still_waiting(others, waiting, head.acks), True))

    hold_back(broker, connection, PAUSE, kept, ask)
    return True


def _still_waiting(answers: Topics, waiting: Waiting, acks: int) -> tuple[Topics, Waiting]:
    """The current results of the appended partitions: some are committed now, some have another leader."""
    still, failed = [], {}
    for partition, last_offset in waiting:
        if partition.closed:
            for key in (partition.topic.encode(), partition.topic_id.bytes):
                failed[key, partition.index] = refused(partition.index, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        elif last_offset >= partition.high_watermark and must_wait(partition, last_offset, acks):
            still.append((partition, last_offset))
    told = [(key, [failed.get((key, each.partition), each) for each in partitions]) for key, partitions in answers]
    return told, still
