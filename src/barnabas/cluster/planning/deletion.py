"""Finds the topics of a DeleteTopics request, given by name or by id, and refuses contradictions (KIP-516)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from barnabas.cluster.metadata.image import MetadataImage
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.base_message import ZERO_UUID

UNKNOWN_NAME = "This server does not host this topic-partition."
UNKNOWN_ID = "This server does not host this topic ID."


class DeleteOutcome(NamedTuple):
    """A topic to delete, or the error."""

    name: str | None
    topic_id: UUID
    error: KafkaError | None = None


def resolve_deletions(image: MetadataImage, requests: Sequence[tuple[str | None, UUID]]) -> list[DeleteOutcome]:
    """One outcome for each topic; a topic that occurs twice gets one refusal."""
    times = Counter(requests)
    by_name = {name for name, topic_id in requests if name is not None and topic_id == ZERO_UUID}
    outcomes: dict[tuple[str | None, UUID], DeleteOutcome] = {}
    for request, count in times.items():
        outcome = _resolve(image, *request, count)
        if request[0] is None and outcome.name in by_name:
            reason = "The provided topic name maps to an ID that was already supplied."
            outcome = outcome._replace(error=KafkaError(ErrorCode.INVALID_REQUEST, reason))
            outcomes[outcome.name, ZERO_UUID] = outcome
        elif request not in outcomes:
            outcomes[request] = outcome
    return list(outcomes.values())


def _resolve(image: MetadataImage, name: str | None, topic_id: UUID, times: int) -> DeleteOutcome:
    error: KafkaError | None = None
    if name is not None and topic_id != ZERO_UUID:
        error = KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    elif name is None and topic_id == ZERO_UUID:
        error = KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    elif times > 1:
        error = KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {'id' if name is None else 'name'}.")
    elif name is not None:
        topic_id = image.topic_id(name) or ZERO_UUID
        if topic_id == ZERO_UUID:
            error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_NAME)
    else:
        name = image.topic_name(topic_id)
        if name is None:
            error = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, UNKNOWN_ID)
    return DeleteOutcome(name, topic_id, error)
