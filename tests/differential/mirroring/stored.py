"""The batches of a partition as a cluster has them: over the wire, or in the files of a broker.

A leader epoch is a cluster's own, so it is kept beside the bytes, which have zeros in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import EARLIEST, LATEST
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.records.batch import BatchHeader, split_batches
from barnabas.protocol.records.batch_header import CRC_START
from barnabas.protocol.records.crc import crc32c
from tests.waiting import wait_through

EPOCH_BYTES = slice(12, 16)
CLEANED_S = 5.0  # the cleaner replaces the segments of a folder in less


class Unequal(AssertionError):
    """A copy is not what its source is, or a log contradicts itself."""


class Stored(NamedTuple):
    """One batch; `data` has zeros in the place of the leader epoch."""

    header: BatchHeader
    data: bytes


class PartitionLog(NamedTuple):
    """The batches of [start, end) by base offset; the first may begin below `start`.

    Args:
        where: the place that they were read from, for messages.
    """

    where: str
    start: int
    end: int
    batches: dict[int, Stored]


def split(where: str, data: bytes) -> Iterator[Stored]:
    """The whole batches in `data`.

    Raises:
        Unequal: a checksum is wrong.
    """
    for position, header in split_batches(data, allow_partial=True):
        batch = bytearray(data[position : position + header.size])
        if crc32c(batch[CRC_START:]) != header.crc:
            raise Unequal(f"{where}: the batch at offset {header.base_offset} has a wrong checksum")
        batch[EPOCH_BYTES] = b"\0" * 4
        yield Stored(header, bytes(batch))


def on_wire(client: BlockingClient, topic: str, partition: int, end: int | None = None) -> PartitionLog:
    """The batches that a client reads from the leader, uncommitted records included, up to `end` or the high watermark.

    Begins again if the start of the log passes what is read.

    Raises:
        Unequal: batches overlap, or a checksum is wrong.
        ClientError, KafkaError: the cluster does not answer.
    """
    while True:
        start = client.list_offsets({(topic, partition): EARLIEST})[topic, partition].offset
        try:
            return _on_wire_from(client, topic, partition, start, end)
        except KafkaError as error:
            was_deleted = client.list_offsets({(topic, partition): EARLIEST})[topic, partition].offset > start
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE or not was_deleted:
                raise


def _on_wire_from(client: BlockingClient, topic: str, partition: int, start: int, end: int | None) -> PartitionLog:
    key = topic, partition
    host, port = client.config.bootstrap_servers[0]
    where = f"{topic}-{partition} at {host}:{port}"
    offset = start
    end = client.list_offsets({key: LATEST})[key].offset if end is None else end
    found: list[Stored] = []
    while offset < end:
        fetched = client.fetch(topic, partition, offset)
        for batch in split(where, bytes(fetched.records)):
            offset = batch.header.next_offset
            if batch.header.base_offset < end:
                found.append(batch)
        if not len(fetched.records):  # compaction removed the rest, and the log ends with a gap
            break
    return PartitionLog(where, start, end, in_order(where, found))


def in_folder(folder: Path) -> PartitionLog:
    """The batches in the segments of a partition, as [first base offset, end of the last batch).

    Raises:
        Unequal: batches overlap for longer than the cleaner needs to replace segments, or a checksum is wrong.
    """

    def read() -> tuple[list[Stored], dict[int, Stored]]:
        found = [batch for path in sorted(folder.glob("*.log")) for batch in split(str(path), path.read_bytes())]
        return found, in_order(str(folder), found)

    found, batches = wait_through(read, FileNotFoundError, Unequal, within_s=CLEANED_S)
    return PartitionLog(str(folder), min(batches, default=0), found[-1].header.next_offset if found else 0, batches)


def in_order(where: str, found: list[Stored]) -> dict[int, Stored]:
    """The batches by base offset.

    Raises:
        Unequal: offsets overlap, or leader epochs go back.
    """
    offset, epoch = 0, -1
    for batch in found:
        if batch.header.base_offset < offset:
            raise Unequal(f"{where}: the batch at offset {batch.header.base_offset} follows one that ends before {offset}")
        if batch.header.partition_leader_epoch < epoch:
            raise Unequal(f"{where}: the leader epoch goes back from {epoch} at offset {batch.header.base_offset}")
        offset, epoch = batch.header.next_offset, batch.header.partition_leader_epoch
    return {batch.header.base_offset: batch for batch in found}
