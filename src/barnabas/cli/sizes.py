"""The limits on the size of a record, and the messages for a record that is too large or refused.

Three settings limit the size. The client's `message.max.bytes` limits its requests; commands set it to librdkafka's maximum, so
that the cluster decides. The topic's `max.message.bytes` (the broker's `message.max.bytes` if the topic has none) limits a
written batch, after compression. The brokers' `socket.request.max.bytes` limits a whole request: if a request is larger, the
broker closes the connection without a response, and librdkafka retries until its timeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.cli.connection import reason_of
from barnabas.config.mirror_settings import MIRROR_LINK
from barnabas.error_codes import ErrorCode
from barnabas.errors import BarnabasError

if TYPE_CHECKING:
    from barnabas.cli.connection import Connection

MOST_CLIENT_BYTES = 1_000_000_000  # librdkafka's limit for message.max.bytes
CLIENT_LIMIT, TOPIC_LIMIT, REQUEST_LIMIT = "message.max.bytes", "max.message.bytes", "socket.request.max.bytes"
BATCH_BYTES = 1_000_000  # librdkafka's default for batch.size
ASK_S = 2.0
LARGE_BYTES = 1_000_000  # from this record size on, the size may be the reason for a missing response


def batch_settings(connection: Connection, topic: str) -> dict[str, Any]:
    """Producer settings that keep batches small enough for the topic."""
    limit = _limit(connection, "topic", topic, TOPIC_LIMIT)
    settings: dict[str, Any] = {CLIENT_LIMIT: MOST_CLIENT_BYTES}
    if limit is not None and 0 < limit < BATCH_BYTES:
        settings["batch.size"] = limit
    return settings


def explain(connection: Connection, topic: str, error: Any, size: int, *, is_ours: bool) -> str:
    """The reason why a record of `size` bytes was not written: the error's text, and the setting if it caused the error.

    Args:
        is_ours: librdkafka refused the record before it sent anything; it uses the broker's error code for such records.
    """
    what = f"a record of {size} bytes"
    if error.code() == ErrorCode.MESSAGE_TOO_LARGE and is_ours:
        own = connection.properties.get(CLIENT_LIMIT, str(MOST_CLIENT_BYTES))
        return f"{what} is larger than the client's {CLIENT_LIMIT} ({own}), which -X {CLIENT_LIMIT}=BYTES changes"
    if error.code() == ErrorCode.MESSAGE_TOO_LARGE:
        limit = _limit(connection, "topic", topic, TOPIC_LIMIT)
        way = f"`barnabas topic alter {topic} --set {TOPIC_LIMIT}=BYTES` raises it"
        return f"{reason_of(error)}: {what} makes a batch larger than the topic's {TOPIC_LIMIT} ({limit or 'unknown'}); {way}"
    if size >= LARGE_BYTES:
        limit = _limit(connection, "broker", None, REQUEST_LIMIT)
        if limit is not None and size >= limit:
            return (
                f"{reason_of(error)}: {what} is larger than the brokers' {REQUEST_LIMIT} ({limit}), which their settings change"
            )
    if error.code() == ErrorCode.POLICY_VIOLATION and (link := _setting(connection, "topic", topic, MIRROR_LINK)):
        way = f"`barnabas mirror promote {link} {topic}` opens it for writers"
        return f"{topic} is a read-only copy of the mirror link {link}; {way} (POLICY_VIOLATION)"
    return reason_of(error)


def _limit(connection: Connection, kind: str, name: str | None, key: str) -> int | None:
    """The value of a setting that is a number; as `_setting`."""
    value = _setting(connection, kind, name, key)
    return int(value) if value is not None and value.isdigit() else None


def _setting(connection: Connection, kind: str, name: str | None, key: str) -> str | None:
    """The value of a setting; of any broker if `name` is None. None if it cannot be read."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import ConfigResource, ResourceType

    try:
        admin = connection.admin()
        if name is None:
            name = str(min(admin.list_topics(timeout=ASK_S).brokers))
        resource = ConfigResource(ResourceType[kind.upper()], name)
        found = admin.describe_configs([resource], request_timeout=ASK_S)[resource].result(ASK_S + 1)
        value: str | None = found[key].value
    except (KafkaException, BarnabasError, KeyError, ValueError, TimeoutError):
        return None
    return value
