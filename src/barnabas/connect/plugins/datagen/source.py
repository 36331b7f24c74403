"""Makes up records without end: `io.confluent.kafka.connect.datagen.DatagenConnector`.

A row depends on the seed, the task and its number alone. So a task that starts again goes on with the rows that it would have made.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from random import Random
from typing import Any

from barnabas.connect.api import Batch, Config, Offset, Source
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type
from barnabas.connect.plugins.datagen.templates import TEMPLATES
from barnabas.connect.validators import NonEmptyString, Range, one_of

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
TASK, NUMBER = "task.id", "current.iteration"  # of partitions and offsets, as in Confluent's
SCHEMAS = ("schema.string", "schema.filename")
MOST_ROWS = 1000  # of a batch, if there is no pause between rows


class Datagen(Source):
    """See the module."""

    config = (
        ConfigDef()
        .define("kafka.topic", Type.STRING, importance=HIGH, validator=NonEmptyString(), documentation="The topic that is written.")
        .define(
            "quickstart", Type.STRING, "", importance=HIGH, validator=one_of("", *TEMPLATES), documentation="The kind of records.",
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
        .define("schema.string", Type.STRING, "", importance=LOW, documentation="Refused: records are those of quickstart.")
        .define("schema.filename", Type.STRING, "", importance=LOW, documentation="Refused: records are those of quickstart.")
        .define(TASK, Type.INT, 0, importance=LOW, documentation="The number of the task; the connector sets it.")
    )  # fmt: skip

    def __init__(self) -> None:
        self._closed = threading.Event()

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        given = [key for key in SCHEMAS if config.get(key)]
        if given:
            return {given[0]: [f"{given[0]} is not supported: quickstart is one of {', '.join(TEMPLATES)}"]}
        if not config.get("quickstart"):
            return {"quickstart": [f"quickstart is needed: one of {', '.join(TEMPLATES)}"]}
        return {}

    @classmethod
    def tasks(cls, config: Config, most: int) -> list[Mapping[str, str]]:
        """As many as there may be; each makes records of its own."""
        return [{TASK: str(at)} for at in range(most)]

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        task, template = config[TASK], TEMPLATES[config["quickstart"]]
        partition = {TASK: task}
        begin = next((int(offset[NUMBER]) for known, offset in offsets if known == partition), 0)
        last, pause_s = config["iterations"], config["max.interval"] / 1000
        key = (config["schema.keyfield"] or template.key,)
        rows: list[Mapping[str, Any]] = []
        for number in count(begin) if last < 1 else range(begin, last):
            chance = Random(f"{config['random.seed']}-{task}-{number}")
            wait_s = chance.random() * pause_s  # also without a pause, so that the row is the same
            if wait_s and self._closed.wait(wait_s):
                return
            rows.append(template.make(chance, number))
            if pause_s or len(rows) == MOST_ROWS or number + 1 == last:
                yield Batch(rows, {NUMBER: number + 1}, partition, topic=config["kafka.topic"], key=key)
                rows = []
            if self._closed.is_set():
                return

    def close(self) -> None:
        self._closed.set()
