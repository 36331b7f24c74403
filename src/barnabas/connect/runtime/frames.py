"""DataFrames of Spark as batches of Arrow, and records of a sink as a DataFrame.

The tasks of Spark send their batches over sockets to this process, which passes them on one by one.

Rules
  1. Neither this process nor the JVM of the driver holds more of a DataFrame than a few batches. A task waits while nobody takes them.
  2. All rows come, or an error does: each task reports how many rows it sent, and the sums are compared. An attempt that Spark repeats
     sends its rows again, so the sums differ, and the transaction of the source is given up.
"""

from __future__ import annotations

import logging
import queue
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from barnabas.connect.api import Batch, Offset
from barnabas.connect.errors import ConnectError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)
MOST_WAITING = 4  # batches that came and were not taken
TOKEN_BYTES = 32
LOOK_S = 0.2
LATE_S = 30.0  # how long rows that were sent may take to come
ROWS = "rows bigint"  # the report of a task


def is_frame(rows: object) -> bool:
    """Whether these rows are a DataFrame."""
    from pyspark.sql import DataFrame

    return isinstance(rows, DataFrame)


def frame_of(spark: SparkSession, records: pa.Table) -> DataFrame:
    """The records of a sink's batch as a DataFrame; a column without a type gets that of texts, because no format can write it."""
    for at, field in enumerate(records.schema):
        if pa.types.is_null(field.type):
            empty: Any = pa.nulls(records.num_rows, pa.string())
            records = records.set_column(at, field.name, empty)
    made: DataFrame = spark.createDataFrame(records)
    return made


def parts_of(
    frame: DataFrame, offset: Offset, closed: threading.Event, *, topic: str | None = None, key: Sequence[str] = ()
) -> Iterator[Batch]:  # fmt: skip
    """The rows of a DataFrame as batches of one transaction, with the offset behind the last one. Raises as `batches_of`."""
    for rows in batches_of(frame, closed):
        yield Batch(rows, None, topic=topic, key=key)
    if not closed.is_set():
        yield Batch((), offset)


def batches_of(frame: DataFrame, closed: threading.Event) -> Iterator[pa.RecordBatch]:
    """The rows of a DataFrame, in no order; none after the event.

    Raises:
        ConnectError: not all rows came. Spark's errors pass.
    """
    receiver = _Receiver(frame.sparkSession)
    group = f"barnabas-{secrets.token_hex(8)}"
    done: Future[int] = Future()
    send = partial(_send, receiver.address, receiver.token)
    threading.Thread(target=_run, args=(frame, group, send, done), name="frame-job", daemon=True).start()
    try:
        yield from receiver.batches(done, closed)
    finally:
        receiver.close()
        if not done.done():
            frame.sparkSession.sparkContext.cancelJobGroup(group)


def _run(frame: DataFrame, group: str, send: Callable[[Any], Any], done: Future[int]) -> None:
    """Let the tasks of Spark send the rows."""
    try:
        frame.sparkSession.sparkContext.setJobGroup(group, "rows for a connector", interruptOnCancel=True)
        done.set_result(sum(row.rows for row in frame.mapInArrow(send, ROWS).collect()))
    except BaseException as error:  # noqa: BLE001 - the thread that takes the rows raises it
        done.set_exception(error)


def _send(address: tuple[str, int], token: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in a task of Spark: sends its batches, and reports how many rows they have."""
    rows = 0
    with socket.create_connection(address) as connection, connection.makefile("wb") as file:
        file.write(token)
        stream = None
        for batch in batches:
            if stream is None:
                stream = pa.ipc.new_stream(file, batch.schema)
            stream.write_batch(batch)
            rows += batch.num_rows
        if stream is not None:
            stream.close()
    yield pa.record_batch({"rows": pa.array([rows], pa.int64())})


class _Receiver:
    """Takes the batches of the tasks."""

    def __init__(self, spark: SparkSession) -> None:
        conf = spark.sparkContext.getConf()
        host = conf.get("spark.driver.host") or socket.gethostname()
        self._server = socket.create_server((conf.get("spark.driver.bindAddress") or host, 0))
        self.address, self.token = (host, int(self._server.getsockname()[1])), secrets.token_bytes(TOKEN_BYTES)
        self._came: queue.Queue[pa.RecordBatch] = queue.Queue(MOST_WAITING)
        self._closed = threading.Event()
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, name="frame-server", daemon=True)]
        self._threads[0].start()

    def batches(self, done: Future[int], closed: threading.Event) -> Iterator[pa.RecordBatch]:
        """What comes until the job has ended, and all of its rows are here. Raises ConnectError, and what the job raised."""
        rows, ended_s = 0, None
        while not closed.is_set():
            if done.done():
                if rows >= done.result() and self._came.empty():
                    break
                ended_s = ended_s or time.monotonic()
                if time.monotonic() - ended_s > LATE_S:
                    break
            try:
                batch = self._came.get(timeout=LOOK_S if ended_s is None else LOOK_S / 10)
            except queue.Empty:
                continue
            rows += batch.num_rows
            yield batch
        if not closed.is_set() and rows != done.result():
            raise ConnectError(f"Spark's tasks sent {done.result()} rows, and {rows} came: one of them may have run twice")

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:  # it is closed
                return
            self._connections.append(connection)
            taking = threading.Thread(target=self._take, args=(connection,), name="frame-rows", daemon=True)
            self._threads.append(taking)
            taking.start()

    def _take(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as file:
                if secrets.compare_digest(file.read(TOKEN_BYTES), self.token) and file.peek(1):
                    for batch in pa.ipc.open_stream(file):
                        self._pass_on(batch)
        except (OSError, ValueError, pa.ArrowException) as error:
            if not self._closed.is_set():
                logger.warning("event=rows-cut-off error=%r", str(error))  # the sums of the rows differ then

    def _pass_on(self, batch: pa.RecordBatch) -> None:
        while not self._closed.is_set():
            try:
                self._came.put(batch, timeout=LOOK_S)
            except queue.Full:
                continue
            return

    def close(self) -> None:
        """Let the tasks that send fail, and release the sockets."""
        self._closed.set()
        _shut(self._server)
        self._threads[0].join()  # behind it there is no other connection
        self._server.close()
        for each in self._connections:
            _shut(each)
        for thread in self._threads:
            thread.join()


def _shut(each: socket.socket) -> None:
    """End a call of another thread that waits for this socket."""
    try:
        each.shutdown(socket.SHUT_RDWR)
    except OSError:
        logger.debug("event=socket-was-closed")
