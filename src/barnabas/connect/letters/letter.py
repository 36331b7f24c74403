"""A dead letter, and which of them somebody means. No I/O.

What the headers of Kafka Connect say of a record (`__connect.errors.…`) is there if the connector wrote them
(`errors.deadletterqueue.context.headers.enable`). The headers of share groups (`__dlq.errors.…`) are read too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

PREFIXES = ("__connect.errors.", "__dlq.errors.")


class Letter(Struct, frozen=True):
    """A record of a topic of dead letters.

    Args:
        headers: those that the record had before it came here.
        about: what is said of it, by Kafka Connect's names without the prefix.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    about: dict[str, str]

    @property
    def place(self) -> str:
        """Its partition and offset, as commands take it."""
        return f"{self.partition}:{self.offset}"

    @property
    def cause(self) -> str | None:
        """Why it is here."""
        return self.about.get("exception.message")

    @property
    def connector(self) -> str | None:
        """The connector, or the share group, that did not take it."""
        return self.about.get("connector.name") or self.about.get("group")

    @property
    def origin(self) -> str | None:
        """The topic that it comes from."""
        return self.about.get("topic")


class Wanted(Struct, frozen=True):
    """Which letters somebody means; what is None does not matter.

    Args:
        cause: a regular expression that is searched in the cause.
        since_ms, until_ms: of the time of the letter; the second one is excluded.
        places: such as `0:17`.
    """

    connector: str | None = None
    cause: re.Pattern[str] | None = None
    stage: str | None = None
    key: bytes | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    places: frozenset[str] | None = None

    @property
    def is_all(self) -> bool:
        """Whether it means every letter."""
        return self == Wanted()

    def has(self, letter: Letter) -> bool:
        """Whether it means a letter."""
        return (
            (self.connector is None or letter.connector == self.connector)
            and (self.cause is None or self.cause.search(letter.cause or "") is not None)
            and (self.stage is None or letter.about.get("stage") == self.stage)
            and (self.key is None or letter.key == self.key)
            and (self.since_ms is None or letter.timestamp_ms >= self.since_ms)
            and (self.until_ms is None or letter.timestamp_ms < self.until_ms)
            and (self.places is None or letter.place in self.places)
        )


def letter_of(partition: int, record: Any) -> Letter:
    """The letter of a record (`protocol.records.batch.Record`)."""
    kept: list[tuple[str, bytes | None]] = []
    about: dict[str, str] = {}
    for name, value in record.headers:
        prefix = next((each for each in PREFIXES if name.startswith(each)), None)
        data = None if value is None else bytes(value)
        if prefix is None:
            kept.append((name, data))
        else:
            about[name.removeprefix(prefix)] = (data or b"").decode("utf-8", "replace")
    key, payload = (None if each is None else bytes(each) for each in (record.key, record.value))
    return Letter(partition, record.offset, record.timestamp, key, payload, kept, about)
