"""The loop: writers and scans of both sources, a kill, a scan of the folder of the dead broker, a start, a check of all scans."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

import pyarrow as pa

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError, PartitionError
from barnabas.client.results import LATEST, NewTopic
from barnabas.columnar.count import RecordCounter
from barnabas.columnar.decode import RecordDecoder
from barnabas.tables.client_source import ClientSource
from barnabas.tables.folder_source import FolderSource
from barnabas.tables.source import Bounds, TopicSource
from barnabas.testing import Broker
from tests.spans import go_on_for, until_random_moment
from tests.tables.consumer import CommittedConsumer, ConsumedRow
from tests.torture.check import Broken
from tests.torture.tables.check import compare
from tests.torture.tables.plan import BROKER_SETTINGS, PARTITIONS, TOPICS, Plan, name_of
from tests.torture.tables.writers import Writers

MOST_SCANNED = 20_000  # partitions whose rows wait for their check; a thread then ends
MICROSECONDS = 1000


class ScannedPartition(NamedTuple):
    """The rows of one partition in one scan."""

    topic: str
    partition: int
    bounds: Bounds
    rows: list[ConsumedRow]


class Round(NamedTuple):
    """A round that kept all promises."""

    number: int
    scans: int
    rows: int
    written: int


def scan(source: TopicSource) -> list[ScannedPartition]:
    """Read a topic. Raises Broken if its count is another than the number of its rows."""
    snapshot = source.snapshot()
    found = []
    for partition, bounds in snapshot.partitions.items():
        decoder, counter = RecordDecoder(source.topic, partition), RecordCounter(source.topic, partition)
        rows, counted = [], 0
        for chunk in source.chunks(snapshot, partition, *bounds):
            counted += counter.count(chunk.records, *bounds, chunk.aborted)
            for batch in decoder.decode(chunk.records, *bounds, chunk.aborted):
                columns = [batch.column(name).to_pylist() for name in ("offset", "key", "value")]
                times = batch.column("timestamp").cast(pa.int64()).to_pylist()
                rows += [ConsumedRow(o, t // MICROSECONDS, k, v) for o, k, v, t in zip(*columns, times, strict=True)]
        if counted != len(rows):
            raise Broken(f"{source.topic}-{partition}: {counted} records were counted, and {len(rows)} decoded")
        found.append(ScannedPartition(source.topic, partition, bounds, rows))
    return found


class Scanner:
    """A thread that reads topics by one kind of source, until it is stopped."""

    def __init__(self, sources: Sequence[TopicSource], *, may_fail: bool) -> None:
        self._sources, self._may_fail = sources, may_fail
        self._stop = Event()
        self.scanned: list[ScannedPartition] = []
        self.scans = 0
        self.failure: BaseException | None = None
        self._thread = Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """Wait for the end. Raises the failure of the thread."""
        self._stop.set()
        self._thread.join()
        if self.failure is not None:
            raise Broken(f"a scan failed: {self.failure!r}") from self.failure

    def _run(self) -> None:
        try:
            while not self._stop.is_set() and len(self.scanned) < MOST_SCANNED:
                for source in self._sources:
                    self._scan(source)
        except BaseException as error:  # noqa: BLE001 - raised by `stop`
            self.failure = error

    def _scan(self, source: TopicSource) -> None:
        try:
            self.scanned += scan(source)
            self.scans += 1
        except (ClientError, PartitionError):
            if not self._may_fail:
                raise


def torture(plan: Plan) -> Iterator[Round]:
    """Run the plan. Raises Broken."""
    chance = random.Random(plan.seed)
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-tables-") as folder,
        Broker(BROKER_SETTINGS, data_dir=Path(folder) / "data", log_dirs=2) as broker,
    ):
        for number in range(1, plan.rounds + 1):
            yield _round(broker, number, plan, chance)


def _round(broker: Broker, number: int, plan: Plan, chance: random.Random) -> Round:
    topics = [name_of(kind, number) for kind in TOPICS]
    with closing(BlockingClient.to(broker.bootstrap_servers)) as client:
        client.create_topics([NewTopic(name_of(kind, number), PARTITIONS, 1, dict(each)) for kind, each in TOPICS.items()])
    config = ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers})
    over_the_wire: list[TopicSource] = [ClientSource(each, config) for each in topics]
    from_folders: list[TopicSource] = [FolderSource(each, broker.data_dirs) for each in topics]
    scanned: list[ScannedPartition] = []
    with Writers(broker.bootstrap_servers, topics, plan.seed * 1000 + number) as writers:
        scanners = [Scanner(over_the_wire, may_fail=True), Scanner(from_folders, may_fail=False)]
        until_random_moment(chance, plan.seconds, least_s=0.3 * plan.seconds)
        broker.kill()
        for source in (*from_folders, *(FolderSource(each, broker.data_dirs) for each in topics)):
            scanned += scan(source)
        broker.start()
        go_on_for(plan.seconds * 0.3)
    for scanner in scanners:
        scanner.stop()
        scanned += scanner.scanned
    for source in (*over_the_wire, *from_folders):
        source.close()
    _check(broker, scanned)
    with closing(BlockingClient.to(broker.bootstrap_servers)) as client:
        client.delete_topics(topics)
    return Round(number, sum(each.scans for each in scanners), sum(len(each.rows) for each in scanned), writers.written)


def _check(broker: Broker, scanned: Sequence[ScannedPartition]) -> None:
    """Compare all scans of a partition with one reading of a consumer, when nothing is written any more."""
    with (
        closing(CommittedConsumer(broker.bootstrap_servers)) as consumer,
        closing(BlockingClient.to(broker.bootstrap_servers)) as client,
    ):
        for place in sorted({(each.topic, each.partition) for each in scanned}):
            end = client.list_offsets({place: LATEST}, read_committed=True)[place].offset
            consumed = consumer.read(*place, 0, end)
            for each in scanned:
                if (each.topic, each.partition) == place:
                    if each.bounds.end > end:
                        raise Broken(f"{place}: a snapshot ends at {each.bounds.end}, and the last stable offset is {end}")
                    compare(*place, each.rows, each.bounds.end, consumed)
