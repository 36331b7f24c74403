"""Any source or resource of dlt: each resource into a topic of its own.

Rules
  1. A round runs the source once, from the state that the last one has left. Its rows and the state behind them are one transaction.
  2. The primary key of a resource is the key of its records; of several columns, a struct.
  3. A row whose column with the hint `hard_delete` is set becomes a record without a value.
  4. Values stay nested as the source gives them; nothing becomes tables of its own.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.api import Batch, Config, Offset, Source
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type, invalid
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.dlt_source.extraction import MISSING, Extraction, Items, argument, function_of, is_installed
from barnabas.connect.plugins.dlt_source.values import table_of
from barnabas.connect.validators import Checked, Range

HIGH, MEDIUM = Importance.HIGH, Importance.MEDIUM
ARGUMENT = "dlt.arg."
MOST_ROWS = 10_000  # of a batch


def _names_function(name: str, value: Any) -> None:
    if value is not None and re.fullmatch(r"[\w.]+:[\w.]+", value) is None:
        raise invalid(name, value, "It has no form such as module:function")


KEYS = (
    ConfigDef()
    .define(
        "dlt.source", Type.STRING, importance=HIGH, validator=Checked(_names_function, "module:function"),
        documentation="The function that makes a source or a resource of dlt: module:function, such as "
        "dlt.sources.rest_api:rest_api_source.",
    )
    .define(
        "dlt.resources", Type.LIST, "", importance=HIGH,
        documentation="The resources that are read. Empty: all that the source selects.",
    )
    .define("topic.prefix", Type.STRING, "", importance=HIGH, documentation="The topic is this text and the name of the resource.")
    .define(
        "poll.interval.ms", Type.LONG, 60_000, importance=HIGH, validator=Range(-1),
        documentation="The pause between two rounds, in milliseconds; -1: one round after each start.",
    )
)  # fmt: skip


class DltSource(Source):
    """See the module."""

    families = (ARGUMENT,)
    config = KEYS

    def __init__(self) -> None:
        self._closed = threading.Event()

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        if not is_installed():
            return {"dlt.source": [MISSING]}
        try:
            function_of(config["dlt.source"])
        except ConnectError as error:
            return {"dlt.source": [str(error)]}
        return {}

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        offset: Offset = next((offset for partition, offset in offsets if not partition), {})
        arguments = {key.removeprefix(ARGUMENT): argument(value) for key, value in config.items() if key.startswith(ARGUMENT)}
        function, every_ms = function_of(config["dlt.source"]), config["poll.interval.ms"]
        while not self._closed.is_set():
            extraction = Extraction(function, arguments, config["dlt.resources"], offset)
            for topic, items in gathered(extraction.items()):
                if self._closed.is_set():
                    return
                yield Batch(records_of(items), None, topic=config["topic.prefix"] + topic, is_records=True)
            offset = extraction.offset
            yield Batch((), offset)
            if every_ms < 0:
                return
            self._closed.wait(every_ms / 1000)
            yield None

    def close(self) -> None:
        self._closed.set()


def gathered(all_items: Iterator[Items]) -> Iterator[tuple[str, Items]]:
    """Items by resource, those of rows together as long as they are few: many sources give them one by one."""
    waiting: dict[str, list[Any]] = {}
    last: dict[str, Items] = {}
    for items in all_items:
        name = items.resource
        if isinstance(items.rows, pa.Table):
            yield name, items
            continue
        waiting.setdefault(name, []).extend(items.rows)
        last[name] = items
        if len(waiting[name]) >= MOST_ROWS:
            yield name, Items(name, waiting.pop(name), items.key, items.deletes)
    for name, rows in waiting.items():
        yield name, Items(name, rows, last[name].key, last[name].deletes)


def records_of(items: Items) -> pa.Table:
    """Rows as records with keys; those that are gone have no value. Raises ConnectError."""
    rows = items.rows if isinstance(items.rows, pa.Table) else table_of(items.rows, items.resource)
    rows = rows.combine_chunks()
    if missing := [name for name in items.key if name not in rows.column_names]:
        raise ConnectError(f"the rows of {items.resource} have no column {missing[0]}, which is in their primary key")
    value: Any = rows.to_struct_array()
    if isinstance(value, pa.ChunkedArray):
        value = pa.concat_arrays(value.chunks)
    if items.deletes in rows.column_names:
        value = pc.if_else(_is_set(rows.column(items.deletes)), pa.scalar(None, value.type), value)
    made = pa.table({"value": value})
    if len(items.key) == 1:
        return made.append_column("key", rows.column(items.key[0]))
    return made.append_column("key", rows.select(list(items.key)).to_struct_array()) if items.key else made


def _is_set(column: Any) -> Any:
    """Which rows are gone: the hint's column is true, or has a value if it is no truth value, as dlt understands it."""
    if pa.types.is_boolean(column.type):
        return pc.fill_null(column, False).combine_chunks()
    return pc.is_valid(column).combine_chunks()
