"""Signals that come as records of a topic: the key is `topic.prefix`, the value `{"type": T, "data": D}` in JSON, the partition 0."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from barnabas.client.batches import next_offset
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.keyed_topic import committed_records
from barnabas.client.results import EARLIEST, LATEST
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.debezium.settings import CaptureSettings
from barnabas.connect.plugins.debezium.signals import Signal
from barnabas.errors import BarnabasError
from barnabas.protocol.records.batch import Record

logger = logging.getLogger(__name__)
TIMEOUT_MS = 10_000  # of one look at the topic, with its retries


class SignalTopic:
    """The topic of signals of a capture. Raises ConnectError for options that do not fit, such as a wrong address."""

    def __init__(self, settings: CaptureSettings, options: Mapping[str, str]) -> None:
        self._key, self._topic, self._rest_s = settings.prefix.encode(), settings.signal_topic, settings.signal_rest_s
        self._looked_s = -self._rest_s
        try:
            config = {
                "default.api.timeout.ms": str(TIMEOUT_MS),
                **options,
                "isolation.level": "read_committed",
                "fetch.max.wait.ms": "0",
            }
            self._client = BlockingClient(ClientConfig.from_options(config))
        except BarnabasError as error:
            raise ConnectError(f"signals cannot be read from a topic: {error}") from None

    def signals(self, position: int | None) -> tuple[list[Signal], int | None]:
        """The signals from a position on, and the next position. None of them before `signal.poll.interval.ms` is over.

        Args:
            position: None: the beginning of the topic.

        Raises:
            ConnectError: the cluster cannot be reached, or refuses the reading.
        """
        if time.monotonic() - self._looked_s < self._rest_s:
            return [], position
        self._looked_s, found = time.monotonic(), list[Signal]()
        try:
            for record, behind in self._records(position):
                position = behind
                if record is not None and (signal := self._signal(record)) is not None:
                    found.append(signal)
        except BarnabasError as error:
            raise ConnectError(f"the topic of signals {self._topic} cannot be read: {error}") from error
        return found, position

    def _records(self, position: int | None) -> Iterator[tuple[Record | None, int]]:
        """The records from a position on, each with the position behind it; None for what is no record."""
        topic = self._client.topics_by_name([self._topic]).get(self._topic)
        if topic is None:
            return
        place = (self._topic, 0)
        end = self._client.list_offsets({place: LATEST}, read_committed=True)[place].offset
        if position == end:
            return
        begin = self._client.list_offsets({place: EARLIEST})[place].offset
        at = position if position is not None and begin <= position <= end else begin  # it was created again, or has lost records
        while at < end:
            fetched = self._client.fetch(*place, at)
            for record in committed_records(fetched, at):
                yield record, record.offset + 1
            at = next_offset(fetched.records, at)
            yield None, at

    def _signal(self, record: Record) -> Signal | None:
        """The signal of a record; None for one of another capture. One that cannot be read is told in the log."""
        if record.key is None or bytes(record.key) != self._key or not record.value:
            return None
        try:
            found: Any = msgspec.json.decode(record.value)
            data = found.get("data")
            return Signal(str(found.get("id")), str(found["type"]), None if data is None else msgspec.json.encode(data).decode())
        except (msgspec.MsgspecError, AttributeError, KeyError) as error:
            logger.warning("event=signal-not-understood topic=%r offset=%d reason=%r", self._topic, record.offset, str(error))
            return None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
