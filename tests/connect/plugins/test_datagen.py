"""Records that are made up."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from barnabas.connect.plugins.datagen.source import Datagen
from barnabas.connect.plugins.datagen.templates import TEMPLATES
from barnabas.connect.runtime.source_offsets import records_of
from tests.connect.runtime.tasks import JSON, Tasks


def has(written: Callable[[], list[Any]], count: int) -> bool:
    return len(written()) >= count


CLASS = "io.confluent.kafka.connect.datagen.DatagenConnector"


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_a_quickstart_goes_on_where_it_was(tasks: Tasks, name: str) -> None:
    tasks.create_topic()
    config = {"kafka.topic": tasks.topic, "quickstart": name, "max.interval": "1"}

    def written() -> list[Any]:
        return list(records_of(tasks._client, tasks.topic))

    for most in (3, 5):
        with tasks.running(tasks.job(CLASS, "source", {**config, "iterations": str(most)}, JSON)) as task:
            tasks.until(partial(has, written, most), task, "there are no records")
    records = written()
    rows = [msgspec.json.decode(each.value or b"") for each in records]
    assert len(rows) == 5
    assert [msgspec.json.decode(each.key or b"") for each in records] == [each[TEMPLATES[name].key] for each in rows]
    every = {**config, "name": "x", "iterations": "5", "max.interval": "0"}
    [batch] = Datagen().read(Datagen.config.parse(every), [])
    assert batch is not None
    assert batch.rows == rows


def test_what_it_cannot_make_is_refused() -> None:
    assert "quickstart is one of users" in Datagen.validate({"schema.string": "{}"})["schema.string"][0]
    assert "quickstart is needed" in Datagen.validate({})["quickstart"][0]


def test_tasks_make_records_of_their_own() -> None:
    config = {"kafka.topic": "t", "quickstart": "users", "iterations": "3", "max.interval": "0"}
    made = []
    for task in Datagen.tasks(Datagen.config.parse(config), 2):
        [batch] = Datagen().read(Datagen.config.parse({**config, **task}), [])
        assert batch is not None
        made.append(batch.rows)
    assert made[0] != made[1]
