"""The base of every part of a broker: settings, metadata, time, threads, files, partitions, logs, counters.

A broker makes one `Services`, and its parts keep it. `config`, `metadata`, `controller`, `member` and `logs` change, or are made after the
parts. So a part does not keep them; it reads them here at each use. The constructor of a part names all other parts that it uses. A part
does not import the broker, which connects the parts.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Protocol
from uuid import UUID

from barnabas.clock import Clock
from barnabas.cluster.membership.member import Member
from barnabas.cluster.membership.standalone_controller import StandaloneController
from barnabas.cluster.metadata.image import MetadataImage
from barnabas.config.broker import BrokerConfig
from barnabas.errors import StorageError
from barnabas.replication.hosted_partitions import HostedPartitions
from barnabas.server.metrics import Metrics
from barnabas.storage.files import Files
from barnabas.storage.manager import LogManager

logger = logging.getLogger(__name__)
IO_THREADS = 4  # for deletions and checkpoints; each waits for the disk, not for a core
READING_THREADS = 2  # for data that is not in memory; separate, so that writes do not wait for slow consumers
MakeExecutor = Callable[[int, str], Executor]


class FaultReports(Protocol):
    """Takes reports of errors of a disk (`logs/storage_faults.py`)."""

    def report(self, error: StorageError) -> None: ...
    def report_read(self, directory: str, offset: int, error: OSError) -> None:
        """Report a failed read of a log. Only this read is refused."""
        ...

    async def guard(self, job: Callable[[], object]) -> bool:
        """Run a blocking job in an I/O thread, and report the errors of the disk. Returns whether the job succeeded."""
        ...


class PeerTls(Protocol):
    """The TLS settings for connections to other brokers (`tls/listeners.py`)."""

    def for_peers(self) -> ssl.SSLContext: ...


class Services:
    """The services of one broker.

    Args:
        config: the settings from the user. Later the broker replaces them by the settings that were changed at run time.
        make_executor: makes `count` threads whose names begin with `name`.
        new_id: makes a unique id.
    """

    __slots__ = (
        "clock",
        "config",
        "controller",
        "faults",
        "files",
        "io_threads",
        "is_ready",
        "is_stopping",
        "logs",
        "loop",
        "make_executor",
        "member",
        "metrics",
        "new_id",
        "partitions",
        "reading_threads",
        "tls",
    )

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        *,
        clock: Clock,
        files: Files,
        make_executor: MakeExecutor,
        new_id: Callable[[], UUID],
    ) -> None:
        self.config = config
        self.loop = loop
        self.clock = clock
        self.files = files
        self.make_executor = make_executor
        self.new_id = new_id
        self.metrics = Metrics()
        self.partitions = HostedPartitions(lambda topic, partition: self.metadata.partition(topic, partition) is not None)
        self.io_threads = make_executor(IO_THREADS, "barnabas-io")
        self.reading_threads = make_executor(READING_THREADS, "barnabas-reading")
        self.faults: FaultReports
        self.tls: PeerTls
        self.is_ready = False
        self.is_stopping = False
        self.member: Member | None = None  # set if this broker is part of a cluster
        # Set by the start
        self.controller: StandaloneController | Member
        self.logs: LogManager

    @property
    def metadata(self) -> MetadataImage:
        return self.controller.image


def report_later(faults: FaultReports, future: asyncio.Future[Any]) -> None:
    """Report the error of a background job for which no caller waits."""

    def done(finished: asyncio.Future[object]) -> None:
        error = None if finished.cancelled() else finished.exception()
        if isinstance(error, StorageError):
            faults.report(error)
        elif error is not None:
            logger.error("event=background-job-failed", exc_info=error)

    future.add_done_callback(done)
