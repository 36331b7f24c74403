"""The messages between consumers of the classic protocol: subscriptions and assignments.

Both begin with a version; bytes after the known fields are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from barnabas.coordination.consumer.interfaces import Topics
from barnabas.coordination.version_prefix import NUMBER_BYTES, begin, leading_number
from barnabas.errors import MalformedMessage
from barnabas.protocol.codec import reader_of, writer_of
from barnabas.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

LAST_ASSIGNMENT, LAST_SUBSCRIPTION = ConsumerProtocolAssignment.LAST_VERSION, ConsumerProtocolSubscription.LAST_VERSION


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """The topics of a member, and from version 1 on its partitions. Raises MalformedMessage."""
    version = _version(data, "ConsumerProtocolSubscription")
    message: ConsumerProtocolSubscription
    message, _ = reader_of(ConsumerProtocolSubscription, min(version, LAST_SUBSCRIPTION))(memoryview(data), NUMBER_BYTES)
    return message


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """The assignment of a member; no bytes mean an empty one. Raises MalformedMessage."""
    if not data:
        return ConsumerProtocolAssignment()
    version = _version(data, "ConsumerProtocolAssignment")
    message: ConsumerProtocolAssignment
    message, _ = reader_of(ConsumerProtocolAssignment, min(version, LAST_ASSIGNMENT))(memoryview(data), NUMBER_BYTES)
    return message


def write_assignment(assigned: Mapping[UUID, Iterable[int]], topics: Topics, subscription: bytes) -> bytes:
    """An assignment in the version of the member's subscription; deleted topics are left out."""
    version = min(_version(subscription, "ConsumerProtocolSubscription"), LAST_ASSIGNMENT)
    parts = [
        TopicPartition(topic=name, partitions=sorted(partitions))
        for topic_id, partitions in assigned.items()
        if (name := topics.topic_name(topic_id)) is not None
    ]
    out = begin(version)
    writer_of(ConsumerProtocolAssignment, version)(ConsumerProtocolAssignment(assigned_partitions=parts), out)
    return bytes(out)


def _version(data: bytes, name: str) -> int:
    version = leading_number(data, name)
    if version < 0:
        raise MalformedMessage(name, version, "no version")
    return version


def by_id(parts: Iterable[tuple[str, Iterable[int]]], topics: Topics) -> dict[UUID, frozenset[int]]:
    """Partitions by the ids of their topics; deleted topics are left out."""
    found: dict[UUID, frozenset[int]] = {}
    for name, partitions in parts:
        topic_id = topics.topic_id(name)
        if topic_id is not None:
            found[topic_id] = found.get(topic_id, frozenset()) | frozenset(partitions)
    return found
