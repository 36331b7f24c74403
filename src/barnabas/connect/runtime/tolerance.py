"""What becomes of a record that cannot be converted, transformed or written: `errors.tolerance` and what belongs to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct

from barnabas.connect.converters.header_converters import HEADERS
from barnabas.connect.converters.unions import joined
from barnabas.connect.errors import ConnectError, RetriableError

if TYPE_CHECKING:
    from barnabas.connect.transforms.chain import Chain

DLQ = "errors.deadletterqueue."
PREFIX = "__connect.errors."
KEY, VALUE, HEADER = "KEY_CONVERTER", "VALUE_CONVERTER", "HEADER_CONVERTER"  # stages, by Kafka's names
TRANSFORMATION = "TRANSFORMATION"
POLL, PUT = "TASK_POLL", "TASK_PUT"
ROW = "_row"  # a column with the number of the record in the batch that was read
MOST_LOGGED = 10  # failures of a batch that the log tells one by one
ERROR_CLASS = "org.apache.kafka.connect.errors.DataException"


class Failure(Struct, frozen=True):
    """A record that failed.

    Args:
        row: its number in the batch.
        stage: where, by Kafka's names.
        what: the class of the plug-in.
    """

    row: int
    stage: str
    what: str
    reason: str


class Tolerance:
    """The settings of a connector about errors.

    Args:
        config: of the connector.
        kind: of records that fail, in messages.
    """

    def __init__(self, config: Mapping[str, str], task: int, log: logging.Logger) -> None:
        self.tolerates = config.get("errors.tolerance", "none").strip().lower() == "all"
        self.topic = config.get(f"{DLQ}topic.name", "").strip()
        self.replication = config.get(f"{DLQ}topic.replication.factor")
        self._with_context = config.get(f"{DLQ}context.headers.enable", "false").strip().lower() == "true"
        self._logs = config.get("errors.log.enable", "false").strip().lower() == "true"
        self._logs_records = config.get("errors.log.include.messages", "false").strip().lower() == "true"
        self._connector, self._task, self._log = config.get("name", ""), task, log
        self.failures = 0  # that were tolerated

    def handle(self, raw: pa.Table, failures: Sequence[Failure]) -> pa.RecordBatch | None:
        """The dead letters of records that failed; None without a topic for them.

        Args:
            raw: the batch as it was read, with keys and values as bytes.

        Raises:
            ConnectError: errors are not tolerated.
        """
        if not failures:
            return None
        if self._logs or not self.tolerates:
            self._tell(raw, failures)
        if not self.tolerates:
            raise ConnectError(_text(raw, failures[0]))
        self.failures += len(failures)
        return self._letters(raw, failures) if self.topic else None

    def _tell(self, raw: pa.Table, failures: Sequence[Failure]) -> None:
        for each in failures[:MOST_LOGGED]:
            more = f" record={raw.slice(each.row, 1).to_pylist()[0]!r}" if self._logs_records else ""
            self._log.error("event=record-failed stage=%s reason=%r%s", each.stage, _text(raw, each), more)
        if len(failures) > MOST_LOGGED:
            self._log.error("event=more-records-failed count=%d", len(failures) - MOST_LOGGED)

    def _letters(self, raw: pa.Table, failures: Sequence[Failure]) -> pa.RecordBatch:
        rows: Any = raw.take(pa.array([each.row for each in failures])).combine_chunks()
        lists = rows.column("headers").to_pylist() if "headers" in rows.column_names else [None] * len(failures)
        headers: list[Any] = [list(each or ()) for each in lists]
        if self._with_context:
            for number, failure in enumerate(failures):
                headers[number] += self._context(rows, number, failure)
        columns: dict[str, Any] = {
            "key": rows.column("key").combine_chunks(),
            "value": rows.column("value").combine_chunks(),
            "topic": pa.repeat(self.topic, len(failures)),
            "headers": pa.array(headers, HEADERS),
        }
        return pa.record_batch(columns)

    def _context(self, rows: pa.Table, number: int, failure: Failure) -> Iterable[dict[str, Any]]:
        def at(name: str) -> str | None:
            return str(rows.column(name)[number].as_py()) if name in rows.column_names else None

        told = {
            "topic": at("topic"), "partition": at("partition"), "offset": at("offset"), "connector.name": self._connector,
            "task.id": str(self._task), "stage": failure.stage, "class.name": failure.what, "exception.class.name": ERROR_CLASS,
            "exception.message": failure.reason, "exception.stacktrace": f"{ERROR_CLASS}: {failure.reason}",
        }  # fmt: skip
        return [{"key": PREFIX + name, "value": None if text is None else text.encode()} for name, text in told.items()]


def _text(raw: pa.Table, failure: Failure) -> str:
    """A failure in one line."""
    if failure.stage == POLL:
        return failure.reason  # it names the place in the source
    names = raw.column_names
    place = f"the record {failure.row} of the batch"
    if "offset" in names:
        place = "{}-{} offset {}".format(*(raw.column(each)[failure.row] for each in ("topic", "partition", "offset")))
    match failure.stage:
        case "KEY_CONVERTER" | "VALUE_CONVERTER" | "HEADER_CONVERTER":
            return f"the {failure.stage.split('_')[0].lower()} of {place} cannot be converted: {failure.reason}"
        case "TRANSFORMATION":
            return f"{place} cannot be transformed: {failure.reason}"
    return f"{place} cannot be written: {failure.reason}"


def transformed(chain: Chain, records: pa.Table, *, tolerates: bool) -> tuple[pa.Table, list[Failure]]:
    """The records behind the transforms, and those that failed: found one by one after the whole batch has failed.

    Args:
        records: with the column `_row`, if errors are tolerated.

    Raises:
        ConnectError: errors are not tolerated.
    """
    return each_or_all(chain.apply, records, TRANSFORMATION, type(chain).__name__, tolerates=tolerates)


def each_or_all(
    change: Callable[[pa.Table], pa.Table], records: pa.Table, stage: str, what: str, *, tolerates: bool
) -> tuple[pa.Table, list[Failure]]:
    """What a function makes of records; of each by itself if it fails for all of them.

    Raises:
        RetriableError: no record is at fault.
        ConnectError: errors are not tolerated.
    """
    try:
        return change(records), []
    except RetriableError:
        raise
    except ConnectError:
        if not tolerates:
            raise
    good: list[pa.Table] = []
    failures = []
    for number in range(records.num_rows):
        one = records.slice(number, 1).combine_chunks()
        try:
            good.append(change(one))
        except RetriableError:
            raise
        except ConnectError as error:
            failures.append(Failure(one.column(ROW)[0].as_py(), stage, what, str(error)))
    if not good:
        return records.slice(0, 0), failures
    return joined(good).combine_chunks(), failures
