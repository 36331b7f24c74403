"""The requests to both brokers: a case makes its topic, asks, and returns what it saw in plain values."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.records.batch import Compression, Record, build_batch
from tests.differential.older_formats.sets import (
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    SNAPPY,
    ZSTD,
    checksummed,
    message,
    message_set,
    squeeze,
    wrapped,
)
from tests.differential.older_formats.talk import PRODUCE, OldLine

T = 1_700_000_000_000
PAIRS: list[tuple[bytes | None, bytes | None]] = [
    (b"k", b"v"),
    (None, b"no key"),
    (b"no value", None),
    (b"", b""),
    (b"e", b"last"),
]
FULL = 1 << 20
CODECS = {"gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4}
Case = Callable[[OldLine, str], Any]
CASES: dict[str, Case] = {}


def case(name: str) -> Callable[[Case], Case]:
    def take(made: Case) -> Case:
        CASES[name] = made
        return made

    return take


def times(magic: int) -> int:
    return T if magic else -1


def produce_case(
    name: str, records: bytes | None, *, version: int = 2, acks: int = 1, configs: dict[str, str] | None = None
) -> None:
    """One request for partition 0 of a topic of its own, and what is stored then."""

    def ask(line: OldLine, topic: str) -> Any:
        line.create(topic, 1, configs or {})
        answer = line.produce(version, topic, [(0, records)], acks=acks)
        return {"answer": answer, "stored": None if answer == "closed" else line.stored(topic)}

    CASES[f"produce {name}"] = ask


def produce_cases() -> None:
    for magic in (0, 1):
        plain = message_set(magic, PAIRS, time=times(magic))
        for version in (0, 1, 2):
            produce_case(f"magic {magic} by version {version}", plain, version=version)
        for codec, number in CODECS.items():
            inner = message_set(magic, PAIRS, time=times(magic))
            whole = wrapped(number, magic, inner, offset=len(PAIRS) - 1, time=times(magic))
            produce_case(f"magic {magic} {codec}", whole)
            produce_case(f"magic {magic} {codec} on append time", whole, configs={"message.timestamp.type": "LogAppendTime"})
            produce_case(f"magic {magic} {codec} to uncompressed", whole, configs={"compression.type": "uncompressed"})
            produce_case(f"magic {magic} {codec} to zstd", whole, configs={"compression.type": "zstd"})
        produce_case(f"magic {magic} to gzip", plain, configs={"compression.type": "gzip"})
        produce_case(f"magic {magic} on append time", plain, configs={"message.timestamp.type": "LogAppendTime"})
        produce_case(f"magic {magic} compacted", message_set(magic, [(b"k", b"v")], time=times(magic)), configs=COMPACT)
        produce_case(f"magic {magic} compacted, no key", plain, configs=COMPACT)
        inner = message_set(magic, PAIRS, time=times(magic), first=40)
        produce_case(f"magic {magic} offsets inside from 40", wrapped(GZIP, magic, inner, offset=44, time=times(magic)))
        block = inner
        produce_case(f"magic {magic} by version 2, all acks", plain, acks=-1)
        produce_case(f"magic {magic} cut off", plain + block[:20])
        produce_case(f"magic {magic} nothing but cut off", block[:20])
        produce_case(f"magic {magic} crc", message(magic, b"k", b"v", time=times(magic), crc=1))
        produce_case(f"magic {magic} crc of the second", plain + message(magic, b"k", b"v", time=times(magic), crc=1))
        produce_case(
            f"magic {magic} crc inside", wrapped(GZIP, magic, plain + message(magic, b"k", b"v", time=times(magic), crc=1))
        )
        produce_case(f"magic {magic} nested", wrapped(GZIP, magic, wrapped(SNAPPY, magic, plain, offset=4), offset=4))
        produce_case(f"magic {magic} two wrappers", wrapped(GZIP, magic, plain) + wrapped(GZIP, magic, plain))
        produce_case(f"magic {magic} wrapper behind plain", plain + wrapped(GZIP, magic, plain))
        produce_case(f"magic {magic} plain behind wrapper", wrapped(GZIP, magic, plain) + plain)
        produce_case(f"magic {magic} wrapper of null", message(magic, None, None, time=times(magic), attributes=GZIP))
        produce_case(f"magic {magic} wrapper of nothing", wrapped(GZIP, magic, b"", time=times(magic)))
        produce_case(f"magic {magic} wrapper with a key", message(magic, b"k", squeeze(GZIP, plain, magic), attributes=GZIP))
        produce_case(f"magic {magic} cut off inside", wrapped(GZIP, magic, plain + block[:20], offset=4, time=times(magic)))
        produce_case(
            f"magic {magic} other magic inside", wrapped(GZIP, magic, message_set(1 - magic, PAIRS, time=times(1 - magic)))
        )
        produce_case(f"magic {magic} other magic behind", plain + message_set(1 - magic, PAIRS, time=times(1 - magic)))
        produce_case(f"magic {magic} zstd", wrapped(ZSTD, magic, plain))
        produce_case(f"magic {magic} codec 5", message(magic, None, b"x", attributes=5))
        produce_case(f"magic {magic} broken gzip", message(magic, None, b"broken", attributes=GZIP))
        produce_case(f"magic {magic} broken lz4", message(magic, None, b"broken", attributes=LZ4))
        other = checksummed(squeeze(LZ4, plain, magic), old=magic == 1)
        produce_case(f"magic {magic} lz4 with the other checksum", message(magic, None, other, attributes=LZ4, time=times(magic)))
        produce_case(
            f"magic {magic} large", message(magic, None, b"x" * 2000, time=times(magic)), configs={"max.message.bytes": "1000"}
        )
        many = message_set(magic, [(None, b"x" * 300)] * 5, time=times(magic))
        produce_case(f"magic {magic} large together", many, configs={"max.message.bytes": "1000"})
        produce_case(f"magic {magic} in version 3", plain, version=3)
        for acks in (2, -2):
            produce_case(f"magic {magic} with acks {acks}", plain, acks=acks)


def other_produce_cases() -> None:
    batch = build_batch([Record(0, T, b"k", b"v", (("h", b"x"),))] * 3)
    for version in (0, 1, 2):
        produce_case(f"batch by version {version}", batch, version=version)
    produce_case("batch zstd", build_batch([Record(0, T, b"k", b"v")] * 3, compression=Compression.ZSTD))
    produce_case("two batches", batch + batch)
    produce_case("batch behind a message", message(1, b"k", b"v", time=T) + batch)
    produce_case("message behind a batch", batch + message(1, b"k", b"v", time=T))
    produce_case(
        "batch of a producer", build_batch([Record(0, T, b"k", b"v")], producer_id=4711, producer_epoch=0, base_sequence=0)
    )
    produce_case("no records", b"")
    for name, size in (("13", 13), ("-1", -1)):
        produce_case(f"size {name}", struct.pack(">qiIbb", 0, size, 0, 1, 0) + bytes(20))
    produce_case("magic 3", message(3, b"k", b"v", time=T))
    produce_case("time -5", message(1, b"k", b"v", time=-5))
    produce_case("time -1", message(1, b"k", b"v", time=-1))
    produce_case("time -5 gzip", wrapped(GZIP, 1, message(1, b"k", b"v", time=-5)))
    produce_case("future", message(1, b"k", b"v", time=1 << 60))
    produce_case("past", message(1, b"k", b"v", time=T), configs={"message.timestamp.before.max.ms": "1000"})
    produce_case("past of magic 0", message(0, b"k", b"v"), configs={"message.timestamp.before.max.ms": "1000"})
    claims = message(1, b"k", b"v", time=T, attributes=LOG_APPEND_TIME)
    produce_case("claims append time", claims)
    produce_case("claims append time, on append time", claims, configs={"message.timestamp.type": "LogAppendTime"})
    produce_case("claims append time, without time", message(1, b"k", b"v", attributes=LOG_APPEND_TIME))
    whole = wrapped(GZIP, 1, message_set(1, PAIRS, time=T), time=T + 70, attributes=LOG_APPEND_TIME)
    produce_case("wrapper claims append time", whole)
    produce_case("wrapper claims append time, on append time", whole, configs={"message.timestamp.type": "LogAppendTime"})
    produce_case("plain snappy", message(0, None, squeeze(SNAPPY, message_set(0, PAIRS), 0)[20:], attributes=SNAPPY))
    produce_case("lengths that do not fit", message(0, b"k", b"v")[:18])
    odd = struct.pack(">bb", 0, 0) + struct.pack(">i", 100) + b"short"
    produce_case("length past the end", _framed(odd))
    produce_case("bytes behind the value", _framed(message(0, b"k", b"v")[16:] + b"more"))


COMPACT = {"cleanup.policy": "compact"}


def _framed(body: bytes) -> bytes:
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


produce_cases()
other_produce_cases()


@case("produce to what is not there")
def _(line: OldLine, topic: str) -> Any:
    line.create(topic, 1, {})
    records = message_set(1, PAIRS, time=T)
    unknown = [line.produce(version, topic + "-absent", [(0, records)]) for version in (0, 1, 2)]
    return [*unknown, line.produce(2, topic, [(0, records), (7, records)]), line.stored(topic)]


@case("produce without acks")
def _(line: OldLine, topic: str) -> Any:
    line.create(topic, 1, {})
    for version in (0, 1, 2):
        line.produce(version, topic, [(0, message_set(0, PAIRS))], acks=0)
    return line.produce(2, topic, [(0, message_set(0, PAIRS))])


@case("produce broken without acks")
def _(line: OldLine, topic: str) -> Any:
    line.create(topic, 1, {})
    line.produce(1, topic, [(0, message(0, b"k", b"v", crc=1))], acks=0)
    return line.produce(1, topic, [(0, message_set(0, PAIRS))])


@case("produce to several partitions")
def _(line: OldLine, topic: str) -> Any:
    line.create(topic, 3, {})
    good, bad = message_set(0, PAIRS), message(0, b"k", b"v", crc=1)
    return [line.produce(1, topic, [(0, good), (1, bad), (2, good)]), *(line.stored(topic, index) for index in range(3))]


# --- Fetch of records from a current client


def write(line: OldLine, topic: str, *batches: bytes, partition: int = 0) -> None:
    for batch in batches:
        data = PartitionProduceData(index=partition, records=batch)
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])
        answer = line.ask((PRODUCE, 8), request, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer


def records(count: int = 5, *, time: int = T, first: int = 0, value: bytes = b"value") -> list[Record]:
    """With headers, which the old formats have no room for, and with nulls."""
    return [
        Record(
            0, time + each, None if each % 3 == 1 else b"k%d" % (first + each), None if each % 4 == 3 else value, (("h", b"x"),)
        )
        for each in range(count)
    ]


def seen(line: OldLine, topic: str, offset: int, size: int = FULL, **more: int) -> list[Any]:
    return [line.fetch(version, [(topic, 0, offset, size)], **more) for version in range(4)]


for _codec in Compression:

    def _fetch_codec(line: OldLine, topic: str, codec: Compression = _codec) -> Any:
        line.create(topic, 1, {})
        write(line, topic, build_batch(records(), compression=codec), build_batch(records(first=5), compression=codec))
        return [seen(line, topic, offset) for offset in (0, 3, 5, 7)]

    CASES[f"fetch {_codec.name.lower()}"] = _fetch_codec


@case("fetch zstd behind others")
def _(line: OldLine, topic: str) -> Any:
    line.create(topic, 1, {})
    write(line, topic, build_batch(records()), build_batch(records(), compression=Compression.ZSTD))
    return [seen(line, topic, offset) for offset in (0, 5)]


@case("fetch of a topic of zstd")
def _(line: OldLine, topic: str) -> Any:
    line.create(topic, 1, {"compression.type": "zstd"})
    return seen(line, topic, 0)


@case("fetch with append time")
def _(line: OldLine, topic: str) -> Any:
    line.create(topic, 1, {"message.timestamp.type": "LogAppendTime"})
    write(line, topic, build_batch(records()), build_batch(records(), compression=Compression.GZIP))
    return [seen(line, topic, offset) for offset in (0, 5, 7)]


@case("fetch without time")
def _(line: OldLine, topic: str) -> Any:
    line.create(topic, 1, {})
    write(line, topic, build_batch([(b"k", b"v")]), build_batch([(b"k", b"v")], compression=Compression.LZ4))
    return seen(line, topic, 0)


@case("fetch outside")
def _(line: OldLine, topic: str) -> Any:
    line.create(topic, 1, {})
    write(line, topic, build_batch(records()))
    at_end, behind, before = (seen(line, topic, offset) for offset in (5, 6, -1))
    absent = [line.fetch(version, [(topic + "-absent", 0, 0, FULL), (topic, 9, 0, FULL)]) for version in range(4)]
    return [at_end, behind, before, absent]


@case("fetch with little room")
def _(line: OldLine, topic: str) -> Any:
    line.create(topic, 1, {})
    write(line, topic, build_batch(records(value=b"x" * 100)), build_batch(records(value=b"y" * 100)))
    return {str(size): seen(line, topic, 2, size) for size in (0, 1, 50, 500, 1000, 2000)}


@case("fetch with little room in all")
def _(line: OldLine, topic: str) -> Any:
    line.create(topic, 2, {})
    for partition in range(2):
        write(line, topic, build_batch(records(value=b"x" * 100)), partition=partition)
    wanted = [(topic, 0, 0, FULL), (topic, 1, 0, FULL)]
    return [line.fetch(3, wanted, max_bytes=size) for size in (1, 700, 5000)]


@case("fetch of several partitions")
def _(line: OldLine, topic: str) -> Any:
    line.create(topic, 3, {})
    write(line, topic, build_batch(records()), partition=0)
    write(line, topic, build_batch(records(), compression=Compression.SNAPPY), partition=2)
    wanted = [(topic, partition, 1, FULL) for partition in range(3)]
    return [line.fetch(version, wanted) for version in range(4)]


@case("fetch what the old have produced")
def _(line: OldLine, topic: str) -> Any:
    line.create(topic, 1, {})
    line.produce(1, topic, [(0, message_set(0, PAIRS))])
    line.produce(2, topic, [(0, message_set(1, PAIRS, time=T))])
    for number in CODECS.values():
        line.produce(1, topic, [(0, wrapped(number, 0, message_set(0, PAIRS), offset=4))])
        line.produce(2, topic, [(0, wrapped(number, 1, message_set(1, PAIRS, time=T), offset=4, time=T + 4))])
    return seen(line, topic, 0)
