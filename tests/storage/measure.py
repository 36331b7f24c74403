"""The cost of an append, its checks and a read; the best of many short rounds, so that a busy machine disturbs little.

python -m tests.storage.measure
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from barnabas.protocol.records.batch import AppendOrigin, Record, build_batch, read_header, validate_batch
from barnabas.protocol.records.scan import scan_records
from barnabas.storage.log import Log
from tests.storage.support import NOW, open_log

ROUNDS = 300


def microseconds(action: Callable[[], object], times: int) -> float:
    """The best mean of `times` calls."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        for _ in range(times):
            action()
        best = min(best, (time.perf_counter_ns() - start) / times)
    return best / 1000


def measure_append(log: Log, name: str, sizes: list[int]) -> None:
    count = len(sizes)
    data = bytearray(build_batch([Record(0, NOW, None, b"x" * size) for size in sizes]))
    view, header, body, times = memoryview(data), read_header(data), bytes(data[61:]), max(1, 300 // count)

    def append() -> None:
        data[:8] = bytes(8)
        log.appender.append_as_leader(view, leader_epoch=0, now_ms=NOW)

    whole = microseconds(append, times)
    checks = microseconds(lambda: validate_batch(view, header, config=log.config, now_ms=NOW, origin=AppendOrigin.CLIENT), times)
    scan = microseconds(lambda: scan_records(body, count), times)
    print(f"{count:5} records, {name:6}: append {whole:7.2f} us ({whole * 1000 / count:5.0f} ns each), of which checks {checks:7.2f} us, "
          f"walking the records {scan:7.2f} us")  # fmt: skip


def main() -> None:
    choices = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        log = open_log(Path(folder))
        for count in (1, 50, 1000):
            measure_append(log, "equal", [100] * count)
            measure_append(log, "varied", [choices.randint(60, 140) for _ in range(count)])
        end = log.log_end_offset
        for name, offset in (("at the end", end - 1000), ("far behind", 1000)):
            cost = microseconds(partial(log.reader.read, offset, 2**20, limit_offset=end, minimum_one=True), 50)
            print(f"read {name}: {cost:.2f} us")
        log.abandon()


if __name__ == "__main__":
    main()
