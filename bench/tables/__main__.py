"""`python -m bench run tables`: rows a second from topics to Arrow, beside a loop over confluent-kafka's consumer, and the time to find a
few rows in a large topic."""

from __future__ import annotations

import datetime
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc

from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.serializer import Deserializer, Serializer
from barnabas.tables import Table, table
from bench import report
from bench.front import parser_of, tell
from bench.servers import resident_mb
from bench.storage.result import Result, judge, measured, ratio
from bench.storage.servers import OURS, Ours
from bench.tables import loop
from bench.tables.topics import COLUMNS, FIRST_ID, NAMES, RECORD_BYTES, fill, fill_with, row

LARGE_PARTITIONS = 4
LOOKUPS = 10
RANGE_ROWS = 1_000
KEYS_SHARE = 10  # a key has so many records in the topic of `newest_by_key`
DISTINCT = 10_000  # values that repeat in the topic of Avro
SPARE_BYTES = 10 << 30  # of the disk, that a measurement leaves free
LOOP = "confluent-kafka in a loop"
WIRE, FOLDER, FIRST = OURS, "barnabas, from the data folder", "barnabas, the first time"
INDEXING = "barnabas, while the index is made"
COUNTED, JSON, OFFSETS, KEY = ">= 5,000,000", ">= 2,000,000", "< 50", "< 100"
TIMES_LOOP = 10.0
SCHEMA = json.dumps({
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "price", "type": ["null", "double"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "active", "type": "boolean"},
    ],
})  # fmt: skip


class Amounts(NamedTuple):
    """The amounts of rows: of each topic, those that the loop reads, and of the large topic in bytes."""

    rows: int
    looped: int
    large_bytes: int


FULL, QUICK = Amounts(5_000_000, 500_000, 20_000_000_000), Amounts(1_000_000, 100_000, 300_000_000)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("bench.tables", __doc__)
    parser.add_argument("--large-mb", type=int, help="of the large topic, in place of 20,000 or what the disk holds")
    options = parser.parse_args(arguments)
    amounts = QUICK if options.quick else FULL
    if options.large_mb:
        amounts = amounts._replace(large_bytes=options.large_mb * 1_000_000)
    command = report.command_of("bench.tables", arguments)
    page = measured(lambda: measure(options.repeat, amounts), command, quick=options.quick)
    return tell(page, options.json)


def measure(repeat: int, amounts: Amounts) -> list[Result]:
    """All results."""
    with Ours() as broker, tempfile.TemporaryDirectory(prefix="barnabas-bench-index-") as folder:
        fill(broker, "rows", amounts.rows)
        found = _whole(broker, repeat, amounts)
        found += _avro(broker, repeat, amounts)
        fill(broker, "updates", amounts.rows, keys=amounts.rows // KEYS_SHARE)
        found += _newest(broker, repeat, amounts)
        found.append(_memory(broker, amounts))
        rows = _large_rows(Path(broker.data_dir), amounts)
        fill(broker, "large", rows, partitions=LARGE_PARTITIONS)
        found += _few(broker, repeat, rows, Path(folder))
    for result in found:
        judge(result, WIRE)
    return found


def _large_rows(folder: Path, amounts: Amounts) -> int:
    """The rows of the large topic: half of the free disk at most."""
    free = max(0, shutil.disk_usage(folder).free - SPARE_BYTES) // 2
    return max(1, min(amounts.large_bytes, free) // RECORD_BYTES)


def _opened(broker: Ours, topic: str, *, folder: bool = False, **more: Any) -> Table:
    if folder:
        return table(topic, data_folder=broker.data_dir, **more)
    return table(topic, broker.bootstrap_servers, **more)


def _rates(ways: Mapping[str, Callable[[], int]], repeat: int) -> dict[str, list[float]]:
    """The rows a second of each way, in turns; a first repetition is not counted."""
    found: dict[str, list[float]] = {label: [] for label in ways}
    for number in range(repeat + 1):
        for label, way in ways.items():
            began = time.perf_counter()
            rows = way()
            if number:
                found[label].append(rows / (time.perf_counter() - began))
    return found


def _read(opened: Table, names: Sequence[str]) -> int:
    with opened:
        return sum(batch.num_rows for batch in opened.batches(names))


def _counted(opened: Table) -> int:
    with opened:
        return opened.count()


def _compared(case: str, title: str, figures: dict[str, list[float]], target: str = "") -> Result:
    result = Result(case, title, "rows/s", figures, target)
    result.ratio = ratio(result, WIRE, LOOP)
    return result


def _whole(broker: Ours, repeat: int, amounts: Amounts) -> list[Result]:
    """The whole topic, in several ways."""
    at, count = broker.bootstrap_servers, amounts.looped
    names = ["_key", "_value", "_offset", "_timestamp"]
    declared: dict[str, Any] = {"format": "json", "columns": COLUMNS}
    counted = _rates(
        {
            WIRE: lambda: _counted(_opened(broker, "rows")),
            FOLDER: lambda: _counted(_opened(broker, "rows", folder=True)),
            LOOP: lambda: loop.counted(at, "rows", count),
        },
        repeat,
    )
    raw = _rates(
        {
            WIRE: lambda: _read(_opened(broker, "rows"), names),
            FOLDER: lambda: _read(_opened(broker, "rows", folder=True), names),
            LOOP: lambda: loop.raw(at, "rows", count),
        },
        repeat,
    )
    plain = _rates(
        {
            WIRE: lambda: _read(_opened(broker, "rows", **declared), NAMES),
            FOLDER: lambda: _read(_opened(broker, "rows", folder=True, **declared), NAMES),
            LOOP: lambda: loop.decoded(at, "rows", json.loads, count),
        },
        repeat,
    )
    one = _rates({WIRE: lambda: _read(_opened(broker, "rows", **declared), ["id"])}, repeat)
    return [
        _compared("count", "records counted", counted, COUNTED),
        _compared("raw", "keys, values, offsets and timestamps to Arrow", raw),
        _compared("json", "JSON, five columns to Arrow", plain, JSON),
        Result("json-one", "JSON, one column of five to Arrow", "rows/s", one),
    ]


def _avro(broker: Ours, repeat: int, amounts: Amounts) -> list[Result]:
    at, url = broker.bootstrap_servers, broker.schema_registry_url
    with RegistryClient(url) as client:
        serializer, deserializer = Serializer(client, "avro", schema=SCHEMA), Deserializer(client)
        fill_with(broker, "avro", [serializer.encode(_object(number)) or b"" for number in range(DISTINCT)], amounts.rows)
        figures = _rates(
            {
                WIRE: lambda: _read(_opened(broker, "avro", format="avro", registry=url), NAMES),
                LOOP: lambda: loop.decoded(at, "avro", deserializer.decode, amounts.looped),
            },
            repeat,
        )
    return [_compared("avro", "Avro, five columns to Arrow", figures)]


def _object(number: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(row(number, FIRST_ID + number))
    return {**found, "at": datetime.datetime.fromisoformat(found["at"])}


def _newest(broker: Ours, repeat: int, amounts: Amounts) -> list[Result]:
    def newest() -> int:
        opened = _opened(broker, "updates", format="json", columns=COLUMNS).newest_by_key()
        rows = _read(opened, NAMES)
        assert rows == amounts.rows // KEYS_SHARE, rows
        return amounts.rows

    title = f"newest row of each key, records read ({KEYS_SHARE} of each key)"
    return [Result("newest", title, "records/s", _rates({WIRE: newest}, repeat))]


def _memory(broker: Ours, amounts: Amounts) -> Result:
    figures: dict[str, list[float]] = {}
    for label, topic, way in (("rows as batches", "rows", "scan"), ("newest row of each key", "updates", "newest")):
        command = [sys.executable, "-m", "bench.tables.reader", broker.bootstrap_servers, topic, way]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows, peak_mb = done.stdout.split()
        assert int(rows) in (amounts.rows, amounts.rows // KEYS_SHARE), rows
        figures[label] = [float(peak_mb)]
    figures["the broker after that"] = [resident_mb(broker.pid)]
    return Result("memory", f"most memory of a process that reads {amounts.rows:,} rows of JSON", "MB", figures)


def _few(broker: Ours, repeat: int, rows: int, folder: Path) -> list[Result]:
    """A few rows of the large topic."""
    gigabytes = f"{rows * RECORD_BYTES / 1e9:.3g} GB"
    offsets: dict[str, list[float]] = {FIRST: [], WIRE: [], FOLDER: []}
    keys: dict[str, list[float]] = {INDEXING: [], FIRST: [], WIRE: []}
    for number in range(repeat):
        with _opened(broker, "large") as opened, _opened(broker, "large", folder=True) as stored:
            offsets[FIRST].append(_ms(partial(_between, opened, rows), 1))
            offsets[WIRE].append(_ms(partial(_between, opened, rows), LOOKUPS))
            offsets[FOLDER].append(_ms(partial(_between, stored, rows), LOOKUPS))
        place = folder / str(number)
        with _opened(broker, "large", key_index=place) as opened:
            keys[INDEXING].append(_ms(partial(_of_key, opened, rows), 1))
        with _opened(broker, "large", key_index=place) as opened:
            keys[FIRST].append(_ms(partial(_of_key, opened, rows), 1))
            keys[WIRE].append(_ms(partial(_of_key, opened, rows), LOOKUPS))
        shutil.rmtree(place, ignore_errors=True)  # so few rows have no index
    return [
        Result("offsets", f"{RANGE_ROWS:,} rows by their offsets, of {gigabytes}", "ms", offsets, OFFSETS),
        Result("key", f"one row by its key, with an index, of {gigabytes}", "ms", keys, KEY),
    ]


def _ms(look: Callable[[int], None], times: int) -> float:
    """The milliseconds of a look, the median of several."""
    found = []
    for number in range(times):
        began = time.perf_counter()
        look(number)
        found.append((time.perf_counter() - began) * 1e3)
    return statistics.median(found)


def _between(opened: Table, rows: int, number: int) -> None:
    """Rows from one place of one partition."""
    first = rows // LARGE_PARTITIONS * (number + 1) // (LOOKUPS + 2)
    wanted = (pc.field("_partition") == number % LARGE_PARTITIONS) & (pc.field("_offset") >= first)
    found = opened.arrow(["_offset", "_value"], wanted & (pc.field("_offset") < first + RANGE_ROWS))
    assert found.num_rows == RANGE_ROWS, found.num_rows


def _of_key(opened: Table, rows: int, number: int) -> None:
    id_ = FIRST_ID + rows * (number + 1) // (LOOKUPS + 2)
    found = opened.arrow(["_offset", "_value"], pc.field("_key") == str(id_).encode())
    assert found.num_rows == 1, found.num_rows


if __name__ == "__main__":
    sys.exit(main())
