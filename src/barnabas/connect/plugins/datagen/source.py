"""Makes up records without end: `io.confluent.kafka.connect.datagen.DatagenConnector`.

A row depends on the seed, the task and its number alone. So a task that starts again goes on with the rows that it would have made.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from barnabas.connect.api import Batch, Config, Offset, Source
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type, invalid
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.datagen.avro_rows import Record, Unknown, record_of
from barnabas.connect.plugins.datagen.templates import TEMPLATES, record
from barnabas.connect.validators import Checked, NonEmptyString, Range, ValidString

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
TASK, NUMBER = "task.id", "current.iteration"  # of partitions and offsets, as in Confluent's
TEXT, FILE = "schema.string", "schema.filename"
SCHEMAS = ("quickstart", TEXT, FILE)
MOST_ROWS = 1000  # of a batch, if there is no pause between rows


def _schema(name: str, value: Any) -> None:
    if value:
        try:
            record_of(value)
        except Unknown as error:
            raise invalid(name, value, str(error)) from None


class Datagen(Source):
    """See the module."""

    config = (
        ConfigDef()
        .define("kafka.topic", Type.STRING, importance=HIGH, validator=NonEmptyString(), documentation="The topic that is written.")
        .define(
            "quickstart", Type.STRING, "", importance=HIGH, validator=ValidString(("", *TEMPLATES), is_case_sensitive=False),
            documentation=f"The kind of records: {', '.join(TEMPLATES)}.",
        )
        .define(
            "max.interval", Type.LONG, 500, importance=HIGH, validator=Range(0),
            documentation="The longest time between two records, in milliseconds; 0: as fast as they can be made.",
        )
        .define(
            "iterations", Type.INT, -1, importance=HIGH, documentation="How many records each task makes; less than one: without end.",
        )
        .define(
            "schema.keyfield", Type.STRING, "", importance=MEDIUM, documentation="The field that is the key. Empty: that of the kind.",
        )
        .define("random.seed", Type.LONG, 0, importance=LOW, documentation="Another number makes other records.")
        .define(
            TEXT, Type.STRING, "", importance=HIGH, validator=Checked(_schema, "a record in Avro"),
            documentation="In place of quickstart: a schema in Avro, whose arg.properties say what values are like.",
        )
        .define(
            FILE, Type.STRING, "", importance=HIGH, documentation="In place of quickstart: a file of the worker with such a schema.",
        )
        .define(
            "generate.timeout", Type.LONG, -1, importance=LOW, documentation="Without effect: a record takes no time worth a limit.",
        )
        .define(TASK, Type.INT, 0, importance=LOW, documentation="The number of the task; the connector sets it.")
    )  # fmt: skip

    def __init__(self) -> None:
        self._closed = threading.Event()

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        given = [key for key in SCHEMAS if config.get(key)]
        if not given:
            return {"quickstart": [f"one of {', '.join(SCHEMAS)} is needed; quickstart is one of {', '.join(TEMPLATES)}"]}
        if len(given) > 1:
            return {given[1]: [f"{given[0]} is set too; there is one of {', '.join(SCHEMAS)}"]}
        return {}

    @classmethod
    def tasks(cls, config: Config, most: int) -> list[Mapping[str, str]]:
        """As many as there may be; each makes records of its own."""
        return [{TASK: str(at)} for at in range(most)]

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        task, (made, key) = config[TASK], _record(config)
        partition = {TASK: task}
        begin = next((int(offset[NUMBER]) for known, offset in offsets if known == partition), 0)
        last, pause_s = config["iterations"], config["max.interval"] / 1000
        rows: list[Mapping[str, Any]] = []
        for number in count(begin) if last < 1 else range(begin, last):
            chance = Random(f"{config['random.seed']}-{task}-{number}")
            wait_s = chance.random() * pause_s  # also without a pause, so that the row is the same
            if wait_s and self._closed.wait(wait_s):
                return
            rows.append(made.make(chance, number))
            if pause_s or len(rows) == MOST_ROWS or number + 1 == last:
                table = pa.Table.from_pylist(rows, made.schema)
                yield Batch(table, {NUMBER: number + 1}, partition, topic=config["kafka.topic"], key=key, name=made.name)
                rows = []
            if self._closed.is_set():
                return

    def close(self) -> None:
        self._closed.set()


def _record(config: Config) -> tuple[Record, tuple[str, ...]]:
    """What makes rows, and the field of the key; none if there is none. Raises ConnectError."""
    kind, field = str(config["quickstart"]).lower(), config["schema.keyfield"]
    if kind:
        made, field = record(kind), field or TEMPLATES[kind].key
    else:
        try:
            made = record_of(config[TEXT] or Path(config[FILE]).read_text())
        except (Unknown, OSError, UnicodeDecodeError) as error:
            raise ConnectError(f"{FILE} {config[FILE]} has no schema: {error}") from None
    if field and field not in made.schema.names:
        raise ConnectError(f"schema.keyfield is {field}, and the fields are {', '.join(made.schema.names)}")
    return made, (field,) if field else ()
