"""The results of our source for the cases, without Spark."""

from __future__ import annotations

from typing import Any

from barnabas.pipelines.offsets import OffsetRange, Offsets
from barnabas.pipelines.options import ReadOptions, read_options
from barnabas.pipelines.planner import Planner
from barnabas.pipelines.read_task import ReadTask
from barnabas.pipelines.reading import read_range
from tests.pipelines.beside_spark.cases import Case

IMPATIENT = {"kafkaConsumer.pollTimeoutMs": "300", "kafka.fetch.max.wait.ms": "50", "commitOffsets": "false"}
MOST_BATCHES = 50


def outcome(bootstrap: str, case: Case) -> dict[str, Any]:
    """In the words of `run.outcome`."""
    given = {"kafka.bootstrap.servers": bootstrap, **IMPATIENT, **case.given}
    try:
        options = read_options(given, streaming=case.kind == "stream")
        planner = Planner(options)
        try:
            ranges = planner.batch_ranges() if case.kind == "batch" else _stream(planner, options)
            return {"took": _spans(options, ranges, dict(planner.topic_ids))}
        finally:
            planner.close()
    except Exception as error:  # noqa: BLE001 - the test compares any error
        return {"refused": str(error)}


def _stream(planner: Planner, options: ReadOptions) -> list[OffsetRange]:
    """The records that a query takes with Trigger.AvailableNow."""
    ranges: list[OffsetRange] = []
    planner.prepare_available_now()
    start: Offsets = planner.initial()
    everything = options.max_offsets_per_trigger is None
    for _ in range(MOST_BATCHES):
        end = planner.latest(start, everything=everything, now_ms=0)
        ranges += planner.stream_ranges(start, end)
        if end == start and not options.starting.moves:
            break
        start = end
    return ranges


def _spans(options: ReadOptions, ranges: list[OffsetRange], ids: dict[str, str]) -> list[list[Any]]:
    offsets: dict[tuple[str, int], list[Any]] = {}
    for each in ranges:
        task = ReadTask(
            each,
            options.client,
            options.include_headers,
            options.fail_on_data_loss,
            options.poll_timeout_ms,
            topic_id=ids.get(each.topic, ""),
        )
        for batch in read_range(task):
            offsets.setdefault((each.topic, each.partition), []).extend(batch.column("offset").to_pylist())
    return [[*place, min(found), len(found)] for place, found in sorted(offsets.items()) if found]
