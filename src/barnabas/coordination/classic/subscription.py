"""The topics that the members of a consumer group read, according to their metadata.

The metadata belongs to the clients; the coordinator reads it only to know which committed offsets are still used. Every version
of the consumer protocol begins with the fields of version 0, so only these are read.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.errors import MalformedMessage
from barnabas.protocol.codec import reader_of
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all `subscriptions`; None if one of them does not parse."""
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            topics.update(_topics_of(subscription))
    except MalformedMessage:
        return None
    return frozenset(topics)


def _topics_of(subscription: bytes) -> Iterable[str]:
    if len(subscription) < 2 or subscription[0] & 0x80:
        raise MalformedMessage("ConsumerProtocolSubscription", -1, "no version")
    message: ConsumerProtocolSubscription = reader_of(ConsumerProtocolSubscription, 0)(memoryview(subscription), 2)[0]
    return message.topics
