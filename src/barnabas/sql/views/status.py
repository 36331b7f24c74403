"""The tables `barnabas.views` and `barnabas.jobs`: what the jobs of a cluster do at this moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from msgspec import Struct

from barnabas.engine.jobs import JobState
from barnabas.engine.report import Report
from barnabas.sql.catalog.definitions import TableDefinition

SCHEMA = "barnabas"
MOMENT = pa.timestamp("us", tz="UTC")
_COUNTS = ("state_rows", "state_bytes", "last_batch", "rows_in", "rows_out", "late_rows", "rows_behind", "generation")
_KINDS = {
    **dict.fromkeys(_COUNTS, pa.int64()),
    **dict.fromkeys(("restarts", "tries"), pa.int32()),
    **dict.fromkeys(("last_batch_ms", "seconds_behind"), pa.float64()),
    **dict.fromkeys(("last_batch_at", "since"), MOMENT),
}
_PROGRESS = "state_rows state_bytes restarts last_batch last_batch_ms last_batch_at rows_in rows_out late_rows"
_COLUMNS = {
    "views": f"name query topic state error since rows_behind seconds_behind {_PROGRESS}",
    "jobs": f"name kind desired state error since rows_behind seconds_behind generation tries {_PROGRESS}",
}
SHAPES = {
    table: pa.schema([pa.field(name, _KINDS.get(name, pa.string())) for name in names.split()])
    for table, names in _COLUMNS.items()
}
Row = dict[str, Any]


class Known(Struct, frozen=True):
    """The facts that the rows are made of."""

    reports: list[Report]
    definitions: Mapping[str, TableDefinition]


class StatusRelation(Struct, frozen=True):
    """One of the tables; its rows are made when a statement runs."""

    name: str
    columns: pa.Schema
    known: Callable[[], Known]
    hidden: pa.Schema = pa.schema([])
    key_alias: str | None = None
    keys: tuple[str, ...] = ()
    filled: Mapping[str, str] = {}

    def rows(self) -> pa.Table:
        """The rows of this moment."""
        known = self.known()
        rows = [_job(each) for each in known.reports] if self.name == "jobs" else _views(known)
        return pa.Table.from_pylist([{name: row.get(name) for name in self.columns.names} for row in rows], self.columns)


def status(schema: str | None, name: str, known: Callable[[], Known]) -> StatusRelation | None:
    """The table of a name with its schema; None for every other name."""
    if (schema or "").lower() != SCHEMA or name.lower() not in SHAPES:
        return None
    return StatusRelation(name.lower(), SHAPES[name.lower()], known)


def _views(known: Known) -> list[Row]:
    by_name = {each.job.name: each for each in known.reports}
    found = []
    for each in sorted(known.definitions.values(), key=lambda one: one.name):
        if each.view is None or not each.view.is_materialized:
            continue
        row = (
            _job(by_name[each.topic])
            if each.topic in by_name
            else {"state": "incomplete", "error": "it has no job; DROP removes it"}
        )
        found.append({**row, "name": each.name, "query": each.view.query, "topic": each.topic})
    return found


def _job(report: Report) -> Row:
    job, state, progress = report.job, report.state, report.progress
    row: Row = {
        "name": job.name, "kind": job.kind, "desired": str(job.desired),
        "rows_behind": report.lag, "generation": job.generation, "restarts": job.restarts, **_state(state),
    }  # fmt: skip
    if progress is not None:
        behind = (time.time_ns() // 1_000_000 - progress.at_ms) / 1000 if report.lag else 0.0
        row |= {
            "seconds_behind": None if report.lag is None else round(max(behind, 0.0), 3), "state_rows": progress.state_rows,
            "state_bytes": progress.state_bytes, "last_batch": progress.batch, "last_batch_ms": progress.took_ms,
            "last_batch_at": progress.at_ms * 1000, "rows_in": progress.total_in, "rows_out": progress.total_out,
            "late_rows": progress.late_rows,
        }  # fmt: skip
    return row


def _state(state: JobState | None) -> Row:
    if state is None:
        return {"state": "new"}
    return {"state": str(state.state), "error": state.error, "since": state.since_ms * 1000, "tries": state.tries}
