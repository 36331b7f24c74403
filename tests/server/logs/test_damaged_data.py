"""Damaged data on disk: its fetch gets CORRUPT_MESSAGE, what lies before and after stays readable, and the broker says so."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from barnabas.config.topic import TopicConfig
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.records.batch_header import BatchHeader, split_batches
from barnabas.protocol.records.record import Record, build_batch
from barnabas.server import page_cache
from barnabas.storage.file_region import FileRegion
from barnabas.storage.files import OsFiles
from barnabas.storage.integrity import SegmentIntegrity
from barnabas.storage.segment import Segment
from barnabas.testing import Broker
from tests.server.wire import Line
from tests.storage.support import append, open_log

NOW = 1_700_000_000_000
BATCHES, RECORDS = 30, 3
FETCH, LIST_OFFSETS = (1, 12), (2, 7)
# (batch, damaged byte): offset, length, magic, CRC, attributes, last offset delta, times, count, records.
DAMAGES = [(15, 1), (15, 6), (15, 7), (15, 8), (15, 11), (15, 16), (15, 17), (15, 21), (15, 23), (15, 26), (15, 30), (15, 60),
           (15, 70), (0, 70), (0, 11), (0, 26), (29, 70), (29, 8), (29, 11), (29, 26), (28, 26), (27, 9),
           (0, 2), (0, 7), (15, 2)]  # fmt: skip
NAME = "00000000000000000000.log"


class Damaged:
    """A broker that was stopped, damaged and started again; partition n has the n-th damage."""

    def __init__(self, folder: Path) -> None:
        self.config = {"auto.create.topics.enable": False, "log.retention.ms": -1}  # the timestamps of the records are old
        self.folder = folder
        self.whole: list[list[tuple[int, BatchHeader]]] = []
        self.data: list[bytes] = []
        with Broker(config=self.config, data_dir=folder) as broker, BlockingClient.to(broker.bootstrap_servers) as client:
            client.create_topics([NewTopic("d", len(DAMAGES), configs={"index.interval.bytes": "400"})])
            for partition in range(len(DAMAGES)):
                for number in range(BATCHES):
                    records = [Record(0, NOW + number, b"key", b"value %02d %d" % (number, n)) for n in range(RECORDS)]
                    client.produce("d", partition, build_batch(records))
        for partition, (number, at) in enumerate(DAMAGES):
            path = folder / f"d-{partition}" / NAME
            data = path.read_bytes()
            batches = split_batches(data)
            self.whole.append(batches)
            self.data.append(data)
            damaged = bytearray(data)
            damaged[batches[number][0] + at] ^= 0x55
            path.write_bytes(damaged)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Damaged:
    return Damaged(tmp_path_factory.mktemp("damaged") / "data")


def fetch(line: Line, partition: int, offset: int, max_bytes: int, topic: str = "d") -> tuple[int, bytes]:
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes, log_start_offset=-1)
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=2**20, topics=[FetchTopic(topic=topic, partitions=[wanted])])
    (answer,) = line.ask(FETCH, request, FetchResponse).responses[0].partitions
    return answer.error_code, bytes(answer.records or b"")


def test_only_the_damaged_batch_cannot_be_read(damaged: Damaged) -> None:
    with Broker(config=damaged.config, data_dir=damaged.folder) as broker, Line(broker) as line:
        for partition, (number, at) in enumerate(DAMAGES):
            batches, data = damaged.whole[partition], damaged.data[partition]
            position, header = batches[number]
            for max_bytes in (2**20, 200):
                for offset in range(BATCHES * RECORDS):
                    code, records = fetch(line, partition, offset, max_bytes)
                    place = f"damage {number, at}, offset {offset}, max_bytes {max_bytes}"
                    if header.base_offset <= offset <= header.last_offset:
                        assert (code, records) == (ErrorCode.CORRUPT_MESSAGE, b""), place
                        continue
                    assert code == 0, place
                    start, first = next((p, h) for p, h in batches if h.last_offset >= offset)
                    assert data[start : start + len(records)] == records, place
                    assert len(records) >= first.size, place
                    assert not start <= position < start + len(records), place
            end = line.ask(LIST_OFFSETS, list_offsets(partition, -1), ListOffsetsResponse).topics[0].partitions[0]
            assert (end.error_code, end.offset) == (0, BATCHES * RECORDS)
        lines = [line for line in broker.log.splitlines() if "event=corrupt-data" in line]
        told = {int(match[1]) for line in lines if (match := re.search(r"(?:partition=|/d-)(\d+)", line))}
        assert told == set(range(len(DAMAGES)))


def list_offsets(partition: int, timestamp: int) -> ListOffsetsRequest:
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=-1)
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="d", partitions=[wanted])])


def test_lookups_by_time(damaged: Damaged) -> None:
    with Broker(config=damaged.config, data_dir=damaged.folder) as broker, Line(broker) as line:
        partition = DAMAGES.index((15, 70))
        found = [
            line.ask(LIST_OFFSETS, list_offsets(partition, NOW + number), ListOffsetsResponse).topics[0].partitions[0]
            for number in range(BATCHES)
        ]
        assert [answer.error_code for answer in found] == [2 if number == 15 else 0 for number in range(BATCHES)]
        assert all(answer.offset == RECORDS * number for number, answer in enumerate(found) if number != 15)
        partition = DAMAGES.index((15, 8))  # the length is damaged: a walk over the headers stops there
        answer = line.ask(LIST_OFFSETS, list_offsets(partition, NOW + 15), ListOffsetsResponse).topics[0].partitions[0]
        assert answer.error_code == ErrorCode.CORRUPT_MESSAGE


def test_records_go_on_behind_damage_and_survive_a_crash(tmp_path: Path) -> None:
    """Damage below the recovery point is no torn tail: neither a clean start nor a recovery cuts there."""
    folder = tmp_path / "data"
    with Broker(data_dir=folder) as broker, BlockingClient.to(broker.bootstrap_servers) as client:
        client.create_topics([NewTopic("d", 1)])
        for number in range(10):
            client.produce("d", 0, build_batch([(b"k", b"%d" % number)], timestamp_ms=NOW))
    path = folder / "d-0" / NAME
    data = bytearray(path.read_bytes())
    last = split_batches(data)[-1][0]
    data[last + 62] ^= 1
    path.write_bytes(data)
    with Broker(data_dir=folder) as broker:
        for number in range(2):
            with BlockingClient.to(broker.bootstrap_servers) as client, Line(broker) as line:
                assert client.produce("d", 0, build_batch([(b"k", b"new")], timestamp_ms=NOW)).base_offset == 10 + number
                assert fetch(line, 0, 9, 2**20)[0] == ErrorCode.CORRUPT_MESSAGE
                assert fetch(line, 0, 8, 2**20)[0] == 0
                assert split_batches(fetch(line, 0, 10, 2**20)[1])[0][1].base_offset == 10
            broker.kill()
            broker.start()
    assert len(path.read_bytes()) > len(data)


def test_the_metric(damaged: Damaged) -> None:
    with Broker(config=damaged.config, data_dir=damaged.folder) as broker, Line(broker) as line:
        partition = DAMAGES.index((15, 70))
        for _ in range(3):
            assert fetch(line, partition, 45, 2**20)[0] == ErrorCode.CORRUPT_MESSAGE
        assert broker.log.count(f"event=corrupt-data topic=d partition={partition} first_offset=45 last_offset=47") == 1


class BadSector(OsFiles):
    """A disk that refuses to read one stretch."""

    def pread(self, fileno: int, size: int, position: int, /) -> bytes:
        if position < 8192 and position + size > 4096:
            raise OSError(errno.EIO, "Input/output error")
        return OsFiles.pread(fileno, size, position)


def test_a_sector_that_cannot_be_read_ends_what_is_served(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(20):
        append(log, b"x" * 1000)
    region = log.reader.read(0, 2**20, limit_offset=20, minimum_one=True)
    assert region is not None
    data = OsFiles.pread(region.fileno, region.size, 0)
    batches = split_batches(data)
    hit = [header for position, header in batches if position < 8192 and position + header.size > 4096]
    doubted = FileRegion(region.fileno, region.position, region.size, 0, SegmentIntegrity(BadSector(), 10**9))
    (loaded,) = page_cache.load(BadSector(), [(doubted, region)])  # type: ignore[list-item]  # any object with a descriptor works
    assert not isinstance(loaded, OSError)
    verified = loaded.verified
    assert verified.end == next(position for position, header in batches if header is hit[0])
    assert verified.damage is not None
    assert (verified.damage.first_offset, verified.damage.next_offset) == (hit[0].base_offset, hit[-1].next_offset)
    assert verified.damage.reason == "the disk cannot read it"
    log.close()


def test_lookups_step_over_a_sector_that_cannot_be_read(tmp_path: Path) -> None:
    log = open_log(tmp_path, TopicConfig(index_interval_bytes=10**6))  # each lookup walks from the first batch
    for _ in range(20):
        append(log, b"x" * 1000)
    log.close()
    (path,) = (tmp_path / "topic-0").glob("*.log")
    batches = split_batches(path.read_bytes())
    hit = [header for position, header in batches if position < 8192 and position + header.size > 4096]
    segment = Segment.existing(BadSector(), tmp_path / "topic-0", 0, NOW)
    segment.next_offset = 20
    for offset in range(20):
        found = segment.lookup.find(offset)
        assert found is not None
        position = next(position for position, header in batches if header.base_offset == offset)
        if offset in (header.base_offset for header in hit[1:]):
            assert found.position <= position  # a read from there reaches the damaged sector
        else:
            assert found.position == position, offset
    segment.close()
