"""ListOffsets 0: offsets at which segments begin."""

from __future__ import annotations

import time

from barnabas.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.differential.batch import BASE_TIME_MS, Batch, Record, values
from tests.differential.script.common import produce
from tests.differential.talk import Talk

LATEST, EARLIEST = -1, -2
DAY_MS = 86_400_000


def _before(topic: str, timestamp: int, count: int, *, partition: int = 0, replica_id: int = -1) -> ListOffsetsRequest:
    place = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, max_num_offsets=count)
    return ListOffsetsRequest(replica_id=replica_id, topics=[ListOffsetsTopic(name=topic, partitions=[place])])


def _ask_all(talk: Talk, step: str, topic: str) -> None:
    times = {
        "latest": LATEST,
        "earliest": EARLIEST,
        "minus 3": -3,
        "0": 0,
        "the records' time": BASE_TIME_MS,
        "tomorrow": round(time.time() * 1000) + DAY_MS,
        "the end of time": 2**63 - 1,
    }
    for case, timestamp in times.items():
        for count in (0, 1, 2, 3, 10, 2**31 - 1, -1):
            talk.ask(f"{step}: {case}, {count} offsets", _before(topic, timestamp, count), 0)


def segments(talk: Talk) -> None:
    """A log of several segments, which begins in the middle of one, and then at its end."""
    topic = talk.create("segments", segment_bytes=str(1 << 20))
    _ask_all(talk, "empty", topic)
    talk.do(produce(topic, Batch(values("a", "b", "c"))), 9)
    _ask_all(talk, "one segment", topic)
    for _ in range(3):  # each batch starts a segment
        large = Batch([Record(value=b"v" * 350_000), Record(offset_delta=1, value=b"w" * 350_000)])
        answer = talk.do(produce(topic, large), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer
    _ask_all(talk, "four segments", topic)
    for offset in (4, 9):
        place = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
        talk.do(DeleteRecordsRequest(topics=[place], timeout_ms=30_000), 2)
        _ask_all(talk, f"from {offset} on", topic)


def places(talk: Talk) -> None:
    topic = talk.create("places", 2)
    talk.do(produce(topic, Batch(values("a", "b"))), 9)
    for replica_id in (-1, -2, -3, 99, talk.node_id):
        who = "the broker" if replica_id == talk.node_id else f"replica {replica_id}"
        talk.ask(f"asked by {who}", _before(topic, LATEST, 5, replica_id=replica_id), 0)
        talk.ask(f"a partition that is absent, by {who}", _before(topic, LATEST, 5, partition=7, replica_id=replica_id), 0)
    talk.ask("a negative partition", _before(topic, LATEST, 5, partition=-1), 0)
    talk.ask("an absent topic", _before(talk.name("absent"), LATEST, 5), 0)
    talk.ask("a wrong name", _before("a/b", LATEST, 5), 0)
    talk.ask("an empty name", _before("", LATEST, 5), 0)
    talk.ask("nothing", ListOffsetsRequest(replica_id=-1), 0)
    twice = [ListOffsetsPartition(partition_index=0, timestamp=each, max_num_offsets=2) for each in (LATEST, EARLIEST)]
    talk.ask("a partition twice", ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=twice)]), 0)
