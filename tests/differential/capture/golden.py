"""The records that Debezium made of the fixed list of changes, without what differs from run to run, and schemas of some tables."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.connect.plugins.servers import PostgresServer
from tests.differential.capture.captures import Event, Events
from tests.differential.capture.postgres import CHANGING

GOLDEN = Path(__file__).with_name("golden.json")
UNCHANGED = ("public.kinds", "public.said")  # tables that no change alters
OF_A_RUN = ("ts_ms", "ts_us", "ts_ns", "lsn", "txId", "sequence")


def run(server: PostgresServer, *statements: str) -> None:
    """Run statements in one session."""
    with server.connect() as connection:
        for each in statements:
            connection.execute(each.encode())


def write(events: Events) -> None:
    """Write the file."""
    found = {table: [steady(each) for each in some] for table, some in events.items()}
    schemas = {table: schemas_of(events[table][0]) for table in UNCHANGED}
    GOLDEN.write_text(json.dumps({"events": found, "schemas": schemas}, indent=0, ensure_ascii=False) + "\n")


def read() -> dict[str, list[Event]]:
    """The events of the file, by table."""
    found = json.loads(GOLDEN.read_text())["events"]
    return {table: [tuple(each) for each in some] for table, some in found.items()}


def schemas() -> dict[str, Event]:
    """The schemas of keys and values of the file, by table, as those of an event."""
    found = json.loads(GOLDEN.read_text())["schemas"]
    return {table: ({"schema": key}, {"schema": value}) for table, (key, value) in found.items()}


def schemas_of(event: Event) -> tuple[Any, Any]:
    """The schemas of the key of an event, and of the rows in its value."""
    key, value = (each["schema"] for each in event)
    return key, {"fields": [each for each in value["fields"] if each["field"] == "after"]}


def steady(event: Sequence[Any]) -> Event:
    """An event without its schema, and without what differs from run to run."""
    key, value = (None if each is None else each["payload"] for each in event)
    if value is not None:
        value = {**_without(value), "source": _without(value["source"])}
        value |= {part: None if value[part] is None else _without(value[part], CHANGING) for part in ("before", "after")}
    return None if key is None else {"payload": key}, None if value is None else {"payload": value}


def _without(fields: Mapping[str, Any], names: Collection[str] = OF_A_RUN) -> dict[str, Any]:
    return {name: each for name, each in fields.items() if name not in names}
