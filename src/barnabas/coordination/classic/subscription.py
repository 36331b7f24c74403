"""Which topics the members of a consumer group read, as far as their metadata tells.

The metadata belongs to the clients; the coordinator looks into it only to know which committed offsets are still of use. Every
version of the consumer protocol begins with version 0, so version 0 is what is read, and what follows is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.errors import MalformedMessage
from barnabas.protocol.codec import reader_of
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all `subscriptions`; None as soon as one of them cannot be read."""
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
