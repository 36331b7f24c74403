"""`python -m bench run sinks`: rows from a topic into each kind of target, and from each kind of source into a topic."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from pyarrow import csv
from tools.kafka import KafkaUnavailable

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import LATEST, NewTopic
from bench import report
from bench.connect.rows import SQL_COLUMNS, fill, table_of
from bench.connect.sink_cases import SINKS, SinkCase
from bench.connect.sinks_page import COPIED, COPY
from bench.connect.source_cases import SOURCES, SourceCase
from bench.connect.stores import Stores, psql
from bench.connect.systems import ApacheIceberg, DebeziumJdbc, Ours, Worker
from bench.front import parser_of, tell
from bench.peers.peer import PeerUnavailable
from bench.peers.process import cpu_by_pid, cpu_since, forget_peak, peak_mb
from bench.servers import Barnabas
from bench.storage.result import Result, measured
from bench.wire import BadAnswer

QUICK_PART = 5  # a quick look has so much fewer rows
WITHIN_S = 240.0
POLL_S = 0.005
FILES = 5  # that a sink of files writes
COMMITTED = {"consumer.override.isolation.level": "read_committed"}  # as ours reads
WORKERS: tuple[type[Worker], ...] = (Ours, DebeziumJdbc, ApacheIceberg)
JSON = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
}


Case = SinkCase | SourceCase


class Figures(NamedTuple):
    """Of one measurement: rows a second, seconds of processor time for a million rows, MB at the peak."""

    rate: float
    cpu: float
    memory: float


class Bench:
    """Measures cases one after the other.

    Args:
        part: how many times fewer rows than those of a case.
        absent: gets the reason for each case that could not be measured.
    """

    def __init__(self, part: int, absent: dict[str, str]) -> None:
        self.results: dict[str, Result] = {}
        self._part, self._absent = part, absent
        self._number = 0

    def round(self, cases: Sequence[Case]) -> None:
        """All cases once, with a fresh broker and a fresh worker."""
        self._number += 1
        with Barnabas() as broker, Stores() as stores, BlockingClient.to(broker.bootstrap) as client:
            for make in WORKERS:
                some = [
                    each for each in cases if make is Ours or (isinstance(each, SinkCase) and each.theirs and each.worker is make)
                ]
                if some:
                    self._with(make, some, broker.bootstrap, client, stores)

    def _with(self, make: type[Worker], cases: Sequence[Case], bootstrap: str, client: BlockingClient, stores: Stores) -> None:
        try:
            with make(bootstrap) as worker:
                for case in cases:
                    name = f"{case.name}-{self._number}-{WORKERS.index(make)}"
                    one = _Measurement(worker, client, stores, name, case.rows // self._part)
                    self._tried(case, worker.name, partial(one.of, case))
                    if make is Ours and case.name == COPIED:
                        self._tried(case, COPY, partial(copied, stores, one.count))
        except (PeerUnavailable, KafkaUnavailable) as error:
            self._absent[make.name] = str(error)
            print(f"{make.name}: not measured: {error}", file=sys.stderr, flush=True)

    def _tried(self, case: Case, label: str, measure: Callable[[], Figures]) -> None:
        key = f"{case.name}: {label}"
        if key in self._absent:
            return
        try:
            found = measure()
        except (PeerUnavailable, BadAnswer) as error:
            self._absent[key] = str(error)
            print(f"{key}: not measured: {error}", file=sys.stderr, flush=True)
            return
        print(f"{key}: {found.rate:,.0f} rows/s, {found.cpu:.2f} s, {found.memory:.0f} MB", file=sys.stderr, flush=True)
        for name, value in found._asdict().items():
            unit = {"rate": "rows/s", "cpu": "s", "memory": "MB"}[name]
            result = self.results.setdefault(f"{case.name}.{name}", Result(f"{case.name}.{name}", case.title, unit, {}))
            if value > 0:
                result.figures.setdefault(label, []).append(value)


class _Measurement:
    """Of one case with one worker.

    Args:
        name: of the connector and its topic.
        count: the rows that are measured.
    """

    def __init__(self, worker: Worker, client: BlockingClient, stores: Stores, name: str, count: int) -> None:
        self.count = count
        self._worker, self._client, self._stores, self._name = worker, client, stores, name

    def of(self, case: Case) -> Figures:
        """The figures. Raises PeerUnavailable, BadAnswer."""
        return self._sink(case) if isinstance(case, SinkCase) else self._source(case)

    def _sink(self, case: SinkCase) -> Figures:
        name, bootstrap = self._name, self._worker.bootstrap
        case.prepare(self._stores, name)
        self._client.create_topics([NewTopic(name, 1)])
        fill(bootstrap, name, 0, 1, schemas=case.schemas)
        is_ours = isinstance(self._worker, Ours)
        given = case.config if is_ours or case.theirs is None else case.theirs
        config = {**given(self._stores, name), "topics": name, **self._json(case.schemas), **({} if is_ours else COMMITTED)}
        more = {}
        if "flush.size" in config:  # the last file ends with the last row
            more, config["flush.size"] = {"flush.size": "1"}, str(self.count // FILES)
        with self._connector({**config, **more}):
            self._wait(lambda: self._committed() >= 1)
            if more:
                self._worker.connect(name, config)
            fill(bootstrap, name, 1, self.count, schemas=case.schemas)
            end = self._end() - 1  # behind the last row there is the end of its transaction
            found = self._timed(lambda: self._committed() >= end)
        there = (
            None
            if case.count is None or given(self._stores, name).get("iceberg.catalog.type") == "hadoop"
            else case.count(self._stores, name)
        )
        if there not in {None, self.count + 1}:
            raise BadAnswer(f"the target has {there} rows, not {self.count + 1}")
        return found

    def _source(self, case: SourceCase) -> Figures:
        name = self._name
        case.prepare(self._stores, name, self.count)
        config = {**case.config(self._stores, name), **self._json(schemas=False), "batch.max.rows": "5000"}
        topic = f"{name}-items" if case.name == "dlt" else name
        self._client.create_topics([NewTopic(topic, 1)])
        with self._connector(config):
            self._wait(lambda: self._end(topic) > 0)
            case.emit(self._stores, name, self.count)
            begun = self._end(topic)
            return self._timed(lambda: self._end(topic) - begun >= self.count)

    @staticmethod
    def _json(schemas: bool) -> dict[str, str]:
        return {**JSON, "value.converter.schemas.enable": str(schemas).lower()}

    @contextmanager
    def _connector(self, config: dict[str, str]) -> Iterator[None]:
        self._worker.connect(self._name, config)
        try:
            yield
        finally:
            self._worker.call("DELETE", f"/connectors/{self._name}")

    def _timed(self, is_done: Callable[[], bool]) -> Figures:
        forget_peak(self._worker.pids)
        cpu, began = cpu_by_pid(self._worker.pids), time.perf_counter()
        self._wait(is_done)
        took_s = time.perf_counter() - began
        used_s = cpu_since(cpu, self._worker.pids)
        return Figures(self.count / took_s, used_s / self.count * 1_000_000, peak_mb(self._worker.pids))

    def _committed(self) -> int:
        place = self._name, 0
        return self._client.committed_offsets(f"connect-{self._name}", [place])[place].offset

    def _end(self, topic: str | None = None) -> int:
        place = topic or self._name, 0
        return self._client.list_offsets({place: LATEST})[place].offset

    def _wait(self, holds: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + WITHIN_S
        while not holds():
            if time.monotonic() > deadline_s:
                raise PeerUnavailable(f"it did not come about in {WITHIN_S:.0f} s: {self._status()}")
            time.sleep(POLL_S)

    def _status(self) -> str:
        """Why a task fails, if it does."""
        tasks = self._worker.call("GET", f"/connectors/{self._name}/status").get("tasks", [])
        return "; ".join(str(each.get("trace") or each.get("state")) for each in tasks)


def copied(stores: Stores, count: int) -> Figures:
    """The rate of psql's `\\copy` from a file of CSV into a table with the same columns."""
    table, path = "copied", stores.folder / "copied.csv"
    csv.write_csv(table_of(1, count), path, csv.WriteOptions(include_header=False))
    stores.postgres.query(f"DROP TABLE IF EXISTS {table}")
    stores.postgres.query(f"CREATE TABLE {table} ({SQL_COLUMNS})")
    began = time.perf_counter()
    psql(stores.postgres, f"\\copy {table} FROM '{path}' (FORMAT csv)\n")
    return Figures(count / (time.perf_counter() - began), 0, 0)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("bench.connect.sinks", __doc__)
    parser.add_argument("--only", default="", metavar="PATTERN", help="cases whose names fit to a regular expression")
    options = parser.parse_args(arguments)
    absent: dict[str, str] = {}
    known: tuple[Case, ...] = (*SINKS, *SOURCES)
    cases = [each for each in known if re.search(options.only, each.name)]

    def measure() -> list[Result]:
        bench = Bench(QUICK_PART if options.quick else 1, absent)
        for _ in range(1 if options.quick else options.repeat):
            bench.round(cases)
        return list(bench.results.values())

    page = measured(measure, report.command_of("bench.connect.sinks", arguments), quick=options.quick)
    return tell(page, options.json, absent=absent)


if __name__ == "__main__":
    sys.exit(main())
