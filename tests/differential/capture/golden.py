"""The records that Debezium made of the fixed list of changes, without their schemas and without what differs from run to run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.connect.plugins.servers import PostgresServer
from tests.differential.capture.captures import Event, Events

GOLDEN = Path(__file__).with_name("golden.json")
OF_A_RUN = ("ts_ms", "ts_us", "ts_ns", "lsn", "txId", "sequence")


def run(server: PostgresServer, *statements: str) -> None:
    """Run statements in one session."""
    with server.connect() as connection:
        for each in statements:
            connection.execute(each.encode())


def write(events: Events) -> None:
    """Write the file."""
    found = {table: [steady(each) for each in some] for table, some in events.items()}
    GOLDEN.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n")


def read() -> dict[str, list[Event]]:
    """The events of the file, by table."""
    return {table: [tuple(each) for each in some] for table, some in json.loads(GOLDEN.read_text()).items()}


def steady(event: Sequence[Any]) -> Event:
    """An event without its schema, and without what differs from run to run."""
    key, value = (None if each is None else each["payload"] for each in event)
    if value is not None:
        value = {**_without(value), "source": _without(value["source"])}
    return None if key is None else {"payload": key}, None if value is None else {"payload": value}


def _without(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in fields.items() if name not in OF_A_RUN}
