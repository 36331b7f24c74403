"""Readers: they read committed or all records of partitions, like consumers, and report them to the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import NamedTuple

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.errors import ClientError
from barnabas.client.results import Fetched
from barnabas.errors import KafkaError
from barnabas.protocol.records.batch import BatchHeader, iterate_records, split_batches
from barnabas.protocol.records.batch_header import CRC_START
from barnabas.protocol.records.crc import crc32c
from barnabas.storage.markers import parse_marker
from barnabas.testing.simulation.history import TopicPartition, Violation
from barnabas.testing.simulation.transactions.ledger import Ledger, Seen, Transaction

MOST_IDLE = 8  # largest pause, in multiples of the shortest: a reader without new records polls less and less often


class Read(NamedTuple):
    """The content of one response.

    Args:
        records: the data records from the requested offset on.
        offsets: the offsets of all records, including control records.
        following: the next offset to read.
    """

    records: list[Seen]
    offsets: list[int]
    following: int


def read(fetched: Fetched, offset: int, *, committed: bool) -> Read:
    """The records of an answer; with `committed`, without those of aborted transactions."""
    records: list[Seen] = []
    offsets: list[int] = []
    following = offset
    skipped = _Aborted(fetched)
    for position, header in _batches(fetched):
        is_aborted = committed and skipped.is_aborted(header, fetched, position)
        for record in iterate_records(fetched.records, position):
            if record.offset < offset:
                continue
            offsets.append(record.offset)
            if not header.is_control and not is_aborted:
                records.append(Seen(record.offset, bytes(record.value or b""), None if record.key is None else bytes(record.key)))
        following = max(following, header.next_offset)
    return Read(records, offsets, following)


def _batches(fetched: Fetched) -> Iterator[tuple[int, BatchHeader]]:
    data = memoryview(fetched.records)
    for position, header in split_batches(data, allow_partial=True):
        if crc32c(data[position + CRC_START : position + header.size]) != header.crc:
            raise Violation(f"the batch at offset {header.base_offset} was served with a wrong checksum")
        yield position, header


class _Aborted:
    """A consumer's handling of the list of aborted transactions in a response."""

    def __init__(self, fetched: Fetched) -> None:
        self._coming = sorted(fetched.aborted, key=lambda each: each[1], reverse=True)
        self._open: set[int] = set()  # producers whose aborted transaction has begun and not ended

    def is_aborted(self, header: BatchHeader, fetched: Fetched, position: int) -> bool:
        while self._coming and self._coming[-1][1] <= header.last_offset:
            self._open.add(self._coming.pop()[0])
        if not header.is_control:
            return header.is_transactional and header.producer_id in self._open
        for record in iterate_records(fetched.records, position):
            decision = parse_marker(record)
            if decision is not None and decision[0]:
                self._open.discard(header.producer_id)
        return False


class Reader:
    """Reads one partition from its start, one request after the other.

    Args:
        client: its isolation level decides which records are read.
    """

    def __init__(self, client: AsyncClient, ledger: Ledger, place: TopicPartition) -> None:
        self._client = client
        self._ledger = ledger
        self._committed = client.config.read_committed
        self.place = place
        self.position = 0
        self.seen: set[int] = set()  # offsets of the records that were read

    async def poll(self, by: Transaction | None = None) -> list[Seen]:
        """Send one fetch; returns its records.

        Args:
            by: the transaction that reads them.

        Raises:
            ClientError: no answer.
            Violation: the answer is impossible.
        """
        position, place = self.position, self.place
        try:
            fetched = await self._client.fetch(*place, position)
        except KafkaError as error:
            raise Violation(f"{place[0]}-{place[1]}: a fetch at {position} was refused with {error.code.name}") from error
        found = read(fetched, position, committed=self._committed)
        if self._committed:
            self._ledger.read_committed(
                place,
                found.records,
                high_watermark=fetched.high_watermark,
                stable=fetched.last_stable_offset,
                log_start=fetched.log_start_offset,
                by=by,
            )
        else:
            self._ledger.read_any(place, found.records, fetched.high_watermark)
        if not self._ledger.partitions[place].compacted and found.offsets != list(range(position, found.following)):
            raise Violation(f"{place[0]}-{place[1]}: of [{position}, {found.following}) only {found.offsets} were served")
        self.position = found.following
        self.seen.update(record.offset for record in found.records)
        return found.records

    async def follow(self, is_over: Callable[[], bool], random: Random) -> None:
        """Poll until the run is over."""
        idle = 0
        while not is_over():
            before = self.position
            with suppress(ClientError):
                await self.poll()
            idle = 0 if self.position > before else min(idle + 1, MOST_IDLE)
            await asyncio.sleep(0.3 * (1 + idle) * random.random())

    async def read_to(self, end: int) -> list[Seen]:
        """All records below `end`."""
        records: list[Seen] = []
        while self.position < end:
            before = self.position
            records += await self.poll()
            if self.position == before:
                raise Violation(f"{self.place[0]}-{self.place[1]}: nothing is read at {before}, and the end is {end}")
        return records
