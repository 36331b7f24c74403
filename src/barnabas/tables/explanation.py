"""The account of a reading: fetched and skipped offsets, as values and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from barnabas.tables.expression import OFFSET, PARTITION, TIMESTAMP, kept_conditions
from barnabas.tables.predicate import Among, Comparison, Every, Predicate, Some, Unknown
from barnabas.tables.scan import ScanReport
from barnabas.tables.source import Bounds

MAX_SHOWN = 20  # partitions, ranges of one partition, and values of a list in the text


class Explanation(Struct, frozen=True):
    """An account of one reading; `str()` makes a text of it.

    Args:
        filter: as its library writes it; None without a filter.
        pushed_down: the part of the filter by which the scan reads less; None if there is none.
        is_exact: whether `pushed_down` says all that the filter says. The whole filter is applied to the rows in any case.
        planned: for each partition the ranges of offsets to read.
        offsets, skipped_offsets: of the snapshot, and those of them that are not read.
        indexed_offsets: those for which the index of keys was asked.
        bytes: of record batches that were fetched.
        rows_decoded, rows_returned, bad_records: in what was read until now.
    """

    topic: str
    columns: tuple[str, ...]
    filter: str | None
    pushed_down: str | None
    is_exact: bool
    planned: Mapping[int, Sequence[Bounds]]
    offsets: int
    skipped_offsets: int
    indexed_offsets: int
    bytes: int
    rows_decoded: int
    rows_returned: int
    bad_records: int

    @classmethod
    def of(
        cls, topic: str, columns: Sequence[str], text: str | None, predicate: Predicate, report: ScanReport, returned: int
    ) -> Explanation:
        """The account of a reading of which `returned` rows were taken."""
        if not report.indexed_offsets:  # without an index of keys, conditions on the key skip nothing
            predicate = kept_conditions(predicate, [PARTITION, OFFSET, TIMESTAMP])
        pushed = described(predicate)
        return cls(
            topic=topic,
            columns=tuple(columns),
            filter=text,
            pushed_down=None if text is None else pushed,
            is_exact=text is None or not _has_unknown(predicate),
            planned=report.planned,
            offsets=report.offsets,
            skipped_offsets=report.skipped_offsets,
            indexed_offsets=report.indexed_offsets,
            bytes=report.bytes,
            rows_decoded=report.rows,
            rows_returned=returned,
            bad_records=report.bad,
        )

    def __str__(self) -> str:
        lines = [f"table {self.topic}", f"  columns: {', '.join(self.columns)}"]
        if self.filter is not None:
            lines.append(f"  filter: {' '.join(self.filter.split())}")
            lines.append(f"  pushed down: {self.pushed_down or 'nothing'}")
            if not self.is_exact:
                lines.append("  applied to the rows alone: the rest of the filter")
        lines.append(f"  offsets: {self.offsets - self.skipped_offsets} of {self.offsets} to read")
        if self.indexed_offsets:
            lines.append(f"  index of keys: asked for {self.indexed_offsets} offsets")
        shown = list(self.planned.items())
        lines += [f"    partition {partition}: {_ranges(ranges)}" for partition, ranges in shown[:MAX_SHOWN]]
        if len(shown) > MAX_SHOWN:
            lines.append(f"    {len(shown) - MAX_SHOWN} more partitions")
        lines.append(
            f"  read: {self.bytes} bytes, {self.rows_decoded} rows decoded, {self.bad_records} bad records, "
            f"{self.rows_returned} rows returned"
        )
        return "\n".join(lines)


def _ranges(ranges: Sequence[Bounds]) -> str:
    shown = [f"{start} to {end - 1}" for start, end in ranges[:MAX_SHOWN]]
    more = [f"{len(ranges) - MAX_SHOWN} more ranges"] if len(ranges) > MAX_SHOWN else []
    return ", ".join([*shown, *more])


def described(predicate: Predicate) -> str | None:
    """The part of a condition that a scan can use, as text; None if there is none."""
    match predicate:
        case Comparison(column, op, value):
            return f"{column} {op} {_value(column, value)}"
        case Among(column, values):
            listed = ", ".join(_value(column, each) for each in values[:MAX_SHOWN])
            return f"{column} in ({listed}{', …' if len(values) > MAX_SHOWN else ''})"
        case Every(parts):
            texts = [(part, text) for part in parts if (text := described(part)) is not None]
            return " and ".join(f"({text})" if isinstance(part, Some) else text for part, text in texts) or None
        case Some(()):
            return "no row"
        case Some(parts):
            found = [described(part) for part in parts]
            return None if None in found else " or ".join(f"({each})" for each in found)
        case _:
            return None


def _value(column: str, value: Any) -> str:
    if column != "_timestamp" or not isinstance(value, int):
        return repr(value)
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)).isoformat()
    except OverflowError:
        return f"{value} us"


def _has_unknown(predicate: Predicate) -> bool:
    match predicate:
        case Unknown():
            return True
        case Every(parts) | Some(parts):
            return any(_has_unknown(part) for part in parts)
        case _:
            return False
