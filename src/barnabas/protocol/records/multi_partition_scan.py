"""Scans Produce requests with batches for several partitions: the Python version of the functions in `_request_scan.c`.

It follows the rules of `request_scan`, for versions of Produce from 7 on. `read_requests` groups the batches of requests that
arrived together by partition, `check_batches` checks each group like a run, and after the append `answer_spread` writes the
responses, request by request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from struct import Struct
from struct import error as StructError  # `struct` calls its error just `error`
from typing import NamedTuple

from barnabas.protocol.produce import FIRST_FLEXIBLE_VERSION, FIRST_TOPIC_ID_VERSION
from barnabas.protocol.records.batch_header import HEADER_SIZE, Buffer
from barnabas.protocol.records.request_scan import Batches, Limits, NotSane, read_short
from barnabas.protocol.records.rows import NUMBER, REQUEST, ROW

FIRST_VERSION_WITH_RECORD_ERRORS = 8  # of Produce answers
ID_BYTES, LONGEST_NAME = 16, 249  # of a topic id; of a topic name at most
_I16, _I32, _TOLD = Struct(">H"), Struct(">i"), Struct(">hqqq")
_NOT_FITTING = "tables that do not fit the requests in the data"


class _Batch(NamedTuple):
    """The position of a batch, and the position of its topic if the batch is the topic's first one.

    Fields:
        name: the name of the topic, or its id.
        partition: the position of the partition index.
        topic: begin and end of the topic (its name or id, and its number of partitions); None for its other batches.
    """

    name: bytes
    partition: int
    start: int
    end: int
    topic: tuple[int, int] | None


def read_requests(
    data: Buffer,
    position: int,
    start: bytes,
    version: int,
    max_request: int,
    max_batch: int,
    most: int,
    numbers: Mapping[bytes, int],
    targets: int,
) -> tuple[bytes, bytes, tuple[int, ...], tuple[bytes, ...], int]:
    """The whole Produce requests from `position` on that begin alike and have only batches for known partitions.

    Args:
        data: the received bytes.
        start: the bytes of such a request after its size, up to and with the timeout; its correlation id is ignored.
        max_request, max_batch: the maximum size of a request, and of a batch, in bytes.
        most: the maximum number of batches of all requests together.
        numbers: the numbers of the known partitions, all below `targets`; a key is the topic's name or id and the four bytes of the
            partition index.

    Returns:
        A `REQUEST` for each request; for each batch, in order, the `NUMBER` of its group; the partition's number for each group; the
        rows of each group; and the position of the next request. A group has the batches for one partition. Its rows are a `ROW` for
        each batch, in order, with the number of its request first, and without the records and the timestamp.

    Raises:
        ValueError: `position` is not in the data, or `start` is not the start of a request.
    """
    if not 0 <= position <= len(data) or len(start) < 8 or targets < 0:
        raise ValueError("no position in the data, or no start of a request")
    requests: list[bytes] = []
    order: list[int] = []
    rows: dict[int, list[bytes]] = {}
    while len(data) - position >= 4 + len(start) and len(order) < most:
        (size,) = _I32.unpack_from(data, position)
        begin, stop = position + 4, position + 4 + size
        if not len(start) <= size <= max_request or stop > len(data):
            break
        if data[begin : begin + 4] != start[:4] or data[begin + 8 : begin + len(start)] != start[8:]:
            break
        try:
            batches = list(_batches(data, begin + len(start), stop, version))
        except (NotSane, StructError, IndexError):
            break
        found = [numbers.get(each.name + bytes(data[each.partition : each.partition + 4]), -1) for each in batches]
        if len(order) + len(found) > most or any(not 0 <= number < targets for number in found):
            break
        if any(each.end - each.start > max_batch for each in batches):
            break
        for number, each in zip(found, batches, strict=True):
            rows.setdefault(number, []).append(ROW.pack(len(requests), each.start, each.end, 0, 0))
        order += found
        requests.append(REQUEST.pack(_I32.unpack_from(data, begin + 4)[0], begin, stop, len(batches)))
        position = stop
    groups = {number: group for group, number in enumerate(rows)}
    ordered = b"".join(NUMBER.pack(groups[number]) for number in order)
    return b"".join(requests), ordered, tuple(rows), tuple(b"".join(each) for each in rows.values()), position


def _batches(data: Buffer, at: int, stop: int, version: int) -> Iterator[_Batch]:
    """The batches of a request; `at` is the position after its timeout."""
    flexible = version >= FIRST_FLEXIBLE_VERSION
    topics, at = _count(data, at, stop, flexible=flexible)
    for _ in range(topics):
        topic = at
        size = ID_BYTES
        if not flexible:
            size, at = _I16.unpack_from(data[:stop], at)[0], at + 2
        elif version < FIRST_TOPIC_ID_VERSION:
            size, at = read_short(data[:stop], at, longest=5)
            size -= 1
        if not 0 <= size <= min(LONGEST_NAME, stop - at):
            raise NotSane
        name, at = bytes(data[at : at + size]), at + size
        partitions, at = _count(data, at, stop, flexible=flexible)
        told: tuple[int, int] | None = (topic, at)
        for _ in range(partitions):
            index, at = at, at + 4
            if at > stop:
                raise NotSane
            length, at = _length(data, at, stop, flexible=flexible)
            if not HEADER_SIZE <= length <= stop - at:
                raise NotSane
            yield _Batch(name, index, at, at + length, told)
            told, at = None, _behind_tags(data, at + length, stop, flexible=flexible)
        at = _behind_tags(data, at, stop, flexible=flexible)
    if _behind_tags(data, at, stop, flexible=flexible) != stop:
        raise NotSane


def _length(data: Buffer, at: int, stop: int, *, flexible: bool) -> tuple[int, int]:
    """A length or a number of elements, -1 for null, and the position after it."""
    if flexible:
        length, at = read_short(data[:stop], at, longest=5)
        return length - 1, at
    return _I32.unpack_from(data[:stop], at)[0], at + 4


def _count(data: Buffer, at: int, stop: int, *, flexible: bool) -> tuple[int, int]:
    """The number of elements of an array, which must be at least one, and the position after it."""
    count, at = _length(data, at, stop, flexible=flexible)
    if count < 1:
        raise NotSane
    return count, at


def _behind_tags(data: Buffer, at: int, stop: int, *, flexible: bool) -> int:
    """The position after the tagged fields, which must be empty, if the version has them."""
    if not flexible:
        return at
    if at >= stop or data[at]:
        raise NotSane
    return at + 1


def check_batches(data: Buffer, rows: bytes, limits: Limits) -> tuple[bytes, int, int, int, int, bool]:
    """Check the batches of `rows`, up to the first one that is not good or does not follow the batches before it.

    A batch is good under the same conditions as in `request_scan.walk_requests`.

    Args:
        rows: as from `read_requests`, for one partition.
        limits: the limits of batches apply, those of requests do not.

    Returns:
        A `Run` of the good batches, with their records and timestamps in the rows; it does not give the position of the next request.

    Raises:
        ValueError: `rows` are not whole rows, or a batch is not in the data.
    """
    if len(rows) % ROW.size:
        raise ValueError("no whole rows")
    batches = Batches(data, limits)
    for request, start, end, _, _ in ROW.iter_unpack(rows):
        if start < 0 or end > len(data) or end - start < HEADER_SIZE:
            raise ValueError("a batch that is not in the data")
        if not batches.take(request, start, end):
            break
    return batches.told(behind=0)


def answer_spread(
    data: Buffer, requests: bytes, order: bytes, groups: Sequence[tuple[bytes, int, int]], start_size: int, version: int
) -> bytes:
    """The answers to requests whose batches were appended, one after the other.

    Args:
        data: the data with the requests.
        requests, order: as from `read_requests`, or the first ones of these.
        groups: for each group, the rows with their records, the offset of the first record, and the log start offset.
        start_size: bytes of a request up to and with the timeout.

    Raises:
        ValueError: the tables do not fit the requests.
    """
    if len(requests) % REQUEST.size or len(order) % NUMBER.size or any(len(rows) % ROW.size for rows, *_ in groups):
        raise ValueError("no whole rows")
    if start_size < 8:
        raise ValueError(_NOT_FITTING)
    told = [(_told(rows, first_offset, version, log_start)) for rows, first_offset, log_start in groups]
    numbers = NUMBER.iter_unpack(order)
    answers = bytearray()
    for correlation_id, begin, stop, count in REQUEST.iter_unpack(requests):
        if begin < 0 or stop > len(data) or stop < begin + start_size:
            raise ValueError(_NOT_FITTING)
        try:
            batches = list(_batches(data, begin + start_size, stop, version))
            if len(batches) != count:
                raise ValueError(_NOT_FITTING)
            answer = _answer(
                data, begin + start_size, batches, [next(told[number]) for (number,) in _first(numbers, count)], version
            )
        except (NotSane, StructError, IndexError, StopIteration) as error:
            raise ValueError(_NOT_FITTING) from error
        frame = _I32.pack(correlation_id) + answer
        answers += _I32.pack(len(frame)) + frame
    return bytes(answers)


def _first(numbers: Iterator[tuple[int]], count: int) -> list[tuple[int]]:
    """The next `count` numbers; raises IndexError for a number below zero, which no group has."""
    found = [next(numbers) for _ in range(count)]
    if any(number < 0 for (number,) in found):
        raise IndexError
    return found


def _told(rows: bytes, offset: int, version: int, log_start: int) -> Iterator[bytes]:
    """The response fields of each batch of a group, after the partition index."""
    for *_, count, _ in ROW.iter_unpack(rows):
        told = _TOLD.pack(0, offset, -1, log_start)  # no error; -1: the producer sets the timestamps
        if version >= FIRST_FLEXIBLE_VERSION:
            told += b"\1\0\0"  # no record errors, no error message, no tagged fields
        elif version >= FIRST_VERSION_WITH_RECORD_ERRORS:
            told += bytes(4) + b"\xff\xff"
        yield told
        offset += count


def _answer(data: Buffer, at: int, batches: Sequence[_Batch], told: Sequence[bytes], version: int) -> bytes:
    """The answer after its correlation id; it repeats names, ids and numbers of elements of the request."""
    tags = b"\0" if version >= FIRST_FLEXIBLE_VERSION else b""
    (topic, _) = batches[0].topic or (at, at)
    answer = tags + bytes(data[at:topic])
    for number, (batch, each) in enumerate(zip(batches, told, strict=True)):
        if batch.topic is not None:
            answer += (tags if number else b"") + bytes(data[slice(*batch.topic)])
        answer += bytes(data[batch.partition : batch.partition + 4]) + each
    return answer + tags + bytes(4) + tags  # throttle time 0
