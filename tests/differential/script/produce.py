"""Produce, InitProducerId and DescribeProducers: stored records are read back with Fetch."""

from __future__ import annotations

from uuid import UUID

from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.differential.batch import BASE_TIME_MS, CODEC_BITS, Batch, Record, old_message_set, values
from tests.differential.script.common import fetch, produce
from tests.differential.talk import Talk

VERSION = 9  # for cases that do not depend on the version
HOUR_MS = 3_600_000


def _stored(talk: Talk, step: str, topic: str, offset: int = 0) -> None:
    talk.ask(f"what is stored {step}", fetch(topic, offset), 11)


def produce_versions(talk: Talk) -> None:
    for version in talk.versions_of("Produce"):
        topic = talk.create(f"v{version}", 2)
        topic_id = talk.wait_for_topic(topic, 2)
        for acks in (-1, 1):
            talk.ask(f"acks {acks}", produce(topic, Batch(values("a", "b")), acks=acks, topic_id=topic_id), version)
        talk.line.send(produce(topic, Batch(values("c")), acks=0, topic_id=topic_id), version)
        talk.line.forget_last()
        talk.ask(f"after acks 0 in version {version}", MetadataRequest(topics=[]), 1)
        talk.ask("acks 2", produce(topic, Batch(), acks=2, topic_id=topic_id), version)
        talk.ask("absent partition", produce(topic, Batch(), partition=5, topic_id=topic_id), version)
        absent = produce(talk.name("absent"), Batch(), topic_id=UUID(int=5))
        talk.ask("absent topic", absent, version)
        talk.ask("no record data", produce(topic, b"", topic_id=topic_id), version)
        talk.ask("bad checksum", produce(topic, Batch(crc=1), topic_id=topic_id), version)
        talk.ask("nothing", ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=[]), version)
        talk.ask("negative partition", produce(topic, Batch(), partition=-1, topic_id=topic_id), version)
        many = [
            PartitionProduceData(index=0, records=Batch(values("x")).to_bytes()),
            PartitionProduceData(index=1, records=Batch(crc=1).to_bytes()),
            PartitionProduceData(index=9, records=Batch(values("y")).to_bytes()),
        ]
        others = TopicProduceData(
            name=talk.name("absent"), topic_id=UUID(int=5), partition_data=[PartitionProduceData(index=0, records=b"")]
        )
        data = [TopicProduceData(name=topic, topic_id=topic_id, partition_data=many), others]
        talk.ask("good and bad", ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=data), version)
        if version < 13:
            talk.ask("wrong topic name", produce("a/b", Batch()), version)
        _stored(talk, f"after version {version}", topic)


def produce_wrong_batches(talk: Talk) -> None:
    whole = Batch(values("a", "b", "c")).to_bytes()
    cases: dict[str, Batch | bytes] = {
        "bad checksum": Batch(crc=0),
        "one bit wrong": whole[:-1] + bytes([whole[-1] ^ 1]),
        "format 0": old_message_set(b"old", magic=0),
        "format 1": old_message_set(b"old", magic=1),
        "format 3": Batch(magic=3),
        "format -1": Batch(magic=-1),
        "more records counted than there are": Batch(values("a", "b"), count=3, last_offset_delta=2),
        "fewer records counted than there are": Batch(values("a", "b"), count=1, last_offset_delta=0),
        "count and last offset disagree": Batch(values("a", "b"), last_offset_delta=5),
        "last offset below the count": Batch(values("a", "b"), last_offset_delta=0),
        "negative last offset": Batch(values("a", "b"), last_offset_delta=-1),
        "negative count": Batch(values("a"), count=-1),
        "no record": Batch([]),
        "no record, last offset 0": Batch([], last_offset_delta=0, count=0),
        "offset deltas with a gap": Batch([Record(), Record(offset_delta=2)], last_offset_delta=2),
        "offset deltas with a gap, count right": Batch([Record(), Record(offset_delta=5)]),
        "offset deltas going back": Batch([Record(offset_delta=1), Record(offset_delta=0)]),
        "two batches": whole + Batch(values("d")).to_bytes(),
        "cut short": whole[:-4],
        "a header only": whole[:30],
        "bytes behind": whole + b"\0" * 5,
        "bytes behind, long": whole + b"\0" * 80,
        "length too small": Batch(length=20),
        "length negative": Batch(length=-1),
        "length 0": Batch(length=0),
        "garbage": b"\xff" * 100,
        "control batch": Batch(attributes=32),
        "transactional without an id": Batch(attributes=16),
        "codec 5": Batch(attributes=5),
        "codec 7": Batch(attributes=7),
        "broken gzip": Batch(attributes=CODEC_BITS["gzip"]),
        "broken snappy": Batch(attributes=CODEC_BITS["snappy"]),
        "broken lz4": Batch(attributes=CODEC_BITS["lz4"]),
        "broken zstd": Batch(attributes=CODEC_BITS["zstd"]),
        "append time asked by the producer": Batch(attributes=8),
        "base offset 7": Batch(values("seven"), base_offset=7),
        "leader epoch 9": Batch(values("nine"), leader_epoch=9),
        "unused attribute bit": Batch(values("bit"), attributes=128),
    }  # fmt: skip
    for index, (case, batch) in enumerate(cases.items()):
        topic = talk.create(f"topic-{index}")
        answer = talk.ask(case, produce(topic, batch), VERSION)
        if answer is not None and not answer.responses[0].partition_responses[0].error_code:
            _stored(talk, f"after: {case}", topic)


def produce_contents(talk: Talk) -> None:
    records = [
        Record(value=None, key=b"tombstone"),
        Record(value=b"", key=b""),
        Record(value=b"no key", key=None),
        Record(headers=(("h", b"1"), ("h", b"2"), ("empty", b""), ("null", None), ("", b"no name"))),
        Record(value=bytes(range(256)), key="größe".encode()),
        Record(timestamp_delta=-5),
        Record(timestamp_delta=1000),
    ]
    for codec in CODEC_BITS:
        topic = talk.create(codec)
        talk.ask(f"codec {codec}", produce(topic, Batch(records, codec=codec)), VERSION)
        _stored(talk, f"with codec {codec}", topic)
    for version in (3, 6):
        topic = talk.create(f"zstd-in-version-{version}")
        talk.ask("zstd in an old version", produce(topic, Batch(codec="zstd")), version)
        _stored(talk, f"of zstd in version {version}", topic)


def produce_recompressed(talk: Talk) -> None:
    for target in ("uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"):
        topic = talk.create(f"to-{target}", compression_type=target)
        for codec in CODEC_BITS:
            talk.ask(f"{codec} to {target}", produce(topic, Batch(values("a", "b", "c"), codec=codec)), VERSION)
        _stored(talk, f"as {target}", topic)


def produce_timestamps(talk: Talk) -> None:
    topic = talk.create("append-time", message_timestamp_type="LogAppendTime")
    talk.ask("append time asked by the producer too", produce(topic, Batch(values("a", "b"), attributes=8)), VERSION)
    for codec in ("none", "gzip"):
        talk.ask(f"append time, {codec}", produce(topic, Batch(values("a", "b"), codec=codec)), VERSION)
    talk.ask("append time, far future", produce(topic, Batch(base_timestamp_ms=BASE_TIME_MS * 3)), VERSION)
    _stored(talk, "with append time", topic)
    topic = talk.create("create-time", message_timestamp_before_max_ms=str(HOUR_MS), message_timestamp_after_max_ms=str(HOUR_MS))
    talk.ask("too old", produce(topic, Batch()), VERSION)
    talk.ask("too old, in version 7", produce(topic, Batch()), 7)
    two = [Record(), Record(timestamp_delta=HOUR_MS * 24 * 365 * 50)]
    talk.ask("one too old, one in the future", produce(topic, Batch(two)), VERSION)
    topic = talk.create("any-time")
    talk.ask("far future", produce(topic, Batch(base_timestamp_ms=BASE_TIME_MS * 3)), VERSION)
    talk.ask("far future, gzip", produce(topic, Batch(base_timestamp_ms=BASE_TIME_MS * 3, codec="gzip")), VERSION)
    talk.ask("no timestamp", produce(topic, Batch(base_timestamp_ms=-1)), VERSION)
    talk.ask("timestamp -2", produce(topic, Batch(base_timestamp_ms=-2)), VERSION)
    talk.ask("wrong max timestamp", produce(topic, Batch(max_timestamp_ms=BASE_TIME_MS + 99)), VERSION)
    talk.ask("max timestamp -1", produce(topic, Batch(max_timestamp_ms=-1)), VERSION)
    _stored(talk, "with any time", topic)


def produce_sizes(talk: Talk) -> None:
    topic = talk.create("small", max_message_bytes="200")
    header_and_rest = 61 + 1 + 1 + 1 + 1 + 2 + 1  # bytes up to the value, and the header count, of a record without a key
    for extra in (-1, 0, 1):
        value = b"v" * (200 - header_and_rest - 1 + extra)
        batch = Batch([Record(value=value, key=None)])
        talk.ask(f"{len(batch.to_bytes())} bytes of 200", produce(topic, batch), VERSION)
    talk.ask("large but well compressed", produce(topic, Batch([Record(value=b"v" * 5000)], codec="gzip")), VERSION)
    talk.ask("two batches, one too large", produce(topic, Batch(), Batch([Record(value=b"v" * 300)])), VERSION)
    _stored(talk, "within 200 bytes", topic)
    topic = talk.create("default-size")
    talk.ask("one million bytes", produce(topic, Batch([Record(value=b"m" * 1_000_000)])), VERSION)
    talk.ask("too large for the default", produce(topic, Batch([Record(value=b"m" * 1_048_600)])), VERSION)
    topic = talk.create("small-segment", segment_bytes="1048576")
    talk.ask("larger than a segment", produce(topic, Batch([Record(value=b"s" * 1_048_500)])), VERSION)


def produce_to_a_compacted_topic(talk: Talk) -> None:
    for policy in ("compact", "compact,delete"):
        topic = talk.create(policy.replace(",", "-"), cleanup_policy=policy)
        talk.ask(f"{policy}: with keys", produce(topic, Batch(values("a", "b"))), VERSION)
        talk.ask(f"{policy}: without keys", produce(topic, Batch(values("a", "b", key=None))), VERSION)
        talk.ask(f"{policy}: without keys, version 7", produce(topic, Batch(values("a", key=None))), 7)
        some = [Record(), Record(key=None), Record(), Record(key=None)]
        talk.ask(f"{policy}: some without keys", produce(topic, Batch(some)), VERSION)
        talk.ask(f"{policy}: some without keys, gzip", produce(topic, Batch(some, codec="gzip")), VERSION)
        talk.ask(f"{policy}: empty key", produce(topic, Batch([Record(key=b"")])), VERSION)
        _stored(talk, f"in {policy}", topic)


def init_producer_id(talk: Talk) -> None:
    for version in talk.versions_of("InitProducerId"):
        for case, producer_id, epoch in (
            ("new", -1, -1),
            ("with an id only", 5, -1),
            ("with an epoch only", -1, 5),
            ("with both", 7, 3),
        ):
            request = InitProducerIdRequest(
                transactional_id=None, transaction_timeout_ms=60_000, producer_id=producer_id, producer_epoch=epoch
            )
            talk.ask(case, request, version)
        talk.ask("no timeout", InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), version)
        talk.ask("empty transactional id", InitProducerIdRequest(transactional_id="", transaction_timeout_ms=60_000), version)


def _initialised(talk: Talk) -> int:
    answer = talk.do(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4)
    return int(answer.producer_id)


def _describe_producers(talk: Talk, step: str, topic: str) -> None:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    talk.ask(step, request, 0)


def idempotence(talk: Talk) -> None:
    topic = talk.create("one")
    producer_id = _initialised(talk)

    def batch(sequence: int, *items: str, epoch: int = 0, who: int = producer_id) -> Batch:
        return Batch(values(*items), producer_id=who, producer_epoch=epoch, base_sequence=sequence)

    steps = {
        "first": batch(0, "a", "b"),
        "the same again": batch(0, "a", "b"),
        "next": batch(2, "c"),
        "the first once more": batch(0, "a", "b"),
        "the same sequence, other length": batch(0, "a"),
        "a gap": batch(9, "z"),
        "after the gap, the right one": batch(3, "d"),
        **{f"sequence {n}": batch(n, "e") for n in range(4, 9)},
        "older than the last five": batch(0, "a", "b"),
        "fifth last": batch(4, "e"),
        "sixth last": batch(3, "d"),
        "a new epoch, not from 0": batch(9, "f", epoch=1),
        "a new epoch": batch(0, "g", epoch=1),
        "the old epoch": batch(9, "h"),
        "the new epoch goes on": batch(1, "i", epoch=1),
        "an epoch left out": batch(0, "j", epoch=3),
        "negative sequence": batch(-1, "k", epoch=3),
        "negative epoch": batch(1, "l", epoch=-1),
        "an id that nobody was given, from 0": batch(0, "m", who=99_999),
        "an id that nobody was given, from 5": batch(5, "n", who=99_998),
    }
    for step, each in steps.items():
        talk.ask(step, produce(topic, each), VERSION)
    two = produce(topic, batch(1, "o", epoch=3), batch(2, "p", epoch=3))
    talk.ask("two batches at once", two, VERSION)
    talk.ask("with a transactional id", produce(topic, batch(3, "q", epoch=3), transactional_id="t"), VERSION)
    _stored(talk, "by idempotent producers", topic)
    _describe_producers(talk, "known ones", topic)


def idempotence_wraps_around(talk: Talk) -> None:
    topic = talk.create("wrap")
    producer_id = _initialised(talk)
    last = 2**31 - 1
    for sequence, items in ((last - 1, "ab"), (0, "c"), (1, "d"), (last - 1, "ab")):
        batch = Batch(values(*items), producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        talk.ask(f"sequence {sequence}, {len(talk.recording)}", produce(topic, batch), VERSION)
    _stored(talk, "around the end of the sequence", topic)


def describe_producers(talk: Talk) -> None:
    topic = talk.create("idle", 2)
    _describe_producers(talk, "none yet", topic)
    wrong = [
        TopicRequest(name=topic, partition_indexes=[0, 1, 7]),
        TopicRequest(name=talk.name("absent"), partition_indexes=[0]),
        TopicRequest(name="a/b", partition_indexes=[0]),
    ]
    talk.ask("absent ones", DescribeProducersRequest(topics=wrong), 0)
    talk.ask("nothing", DescribeProducersRequest(topics=[]), 0)
