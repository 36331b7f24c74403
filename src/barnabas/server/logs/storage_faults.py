"""The reaction of the broker to a disk that fails or is full.

    no room          The request gets KAFKA_STORAGE_ERROR, reads continue, and writes continue by themselves when there is room again.
                     The log has one line at the beginning and one at the end; a metric counts the refused requests.
    write, sync      The log directory goes out of use until the next start: its partitions answer KAFKA_STORAGE_ERROR, Metadata names
                     no leader for them, and groups in it are not served. The other directories continue. In a cluster the
                     controller learns of it, and lets other brokers lead (KIP-112).
    nothing left     If it is the last directory, or the one with the metadata of a single broker, the broker stops, as Kafka does.

Rules
  1. Code that meets a StorageError passes it to `report`, on the loop, and does not log it.
  2. A directory fails once. Later errors in it are consequences and are not logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from barnabas.cluster.membership.offline_replicas import MAX_SAID
from barnabas.errors import CorruptLog, LogDirFailed, StartsUnwritten, StorageError, StorageExhausted
from barnabas.server.services import report_later

if TYPE_CHECKING:
    from barnabas.cluster.membership.member import Member
    from barnabas.server.logs.log_dir_moves import LogDirMoves
    from barnabas.server.services import Services
    from barnabas.storage.log import Log

logger = logging.getLogger(__name__)
RECOVERED_AFTER_MS = 5_000  # without a refusal; then the directory takes writes again


class StorageFaults:
    """The faults of one broker's disks.

    Args:
        stop: ends the broker.
        unload_coordinator: called with a partition (topic and number) whose log is lost.
    """

    def __init__(
        self, services: Services, stop: Callable[[LogDirFailed], None], unload_coordinator: Callable[[str, int], None]
    ) -> None:
        self._services = services
        self._stop = stop
        self._unload_coordinator = unload_coordinator
        self.log_dir_moves: LogDirMoves  # the moves report their faults here
        self._exhausted: dict[str, float] = {}  # log directory -> monotonic ms of its last refusal

    def report(self, error: StorageError) -> None:
        match error:
            case StorageExhausted():
                self._refused(error)
            case LogDirFailed():
                self._fail(error)
            case StartsUnwritten():
                for failure in error.failures:
                    self.report(failure)
            case CorruptLog():
                self._services.metrics.read_errors += 1
                logger.error("event=log-unreadable file=%s position=%d reason=%r", error.path, error.position, error.reason)
            case _:
                logger.error("event=storage-failed error=%r", str(error))

    def report_read(self, directory: str, offset: int, error: OSError) -> None:
        """Report a failed read of a log. Only that read is refused, because the sectors around it may be good."""
        self._services.metrics.read_errors += 1
        logger.error("event=read-failed directory=%s offset=%d error=%r", directory, offset, str(error))

    async def guard(self, job: Callable[[], object]) -> bool:
        """Run a blocking job in an I/O thread, and report a StorageError. Returns whether the job succeeded."""
        try:
            await self._services.loop.run_in_executor(self._services.io_threads, job)
        except StorageError as error:
            self.report(error)
            return False
        return True

    # Out of room

    def _refused(self, error: StorageExhausted) -> None:
        self._services.metrics.storage_refusals += 1
        if error.path not in self._exhausted:
            logger.error("event=log-directory-refuses-writes path=%s note='reads go on' reason=%r", error.path, error.reason)
            self._services.loop.call_later(RECOVERED_AFTER_MS / 1000, self._look_again, error.path)
        self._exhausted[error.path] = self._services.clock.monotonic_ms()

    def _look_again(self, path: str) -> None:
        quiet_ms = self._services.clock.monotonic_ms() - self._exhausted[path]
        if quiet_ms >= RECOVERED_AFTER_MS:
            del self._exhausted[path]
            logger.warning("event=log-directory-takes-writes path=%s refused_nothing_ms=%d", path, quiet_ms)
        else:
            self._services.loop.call_later((RECOVERED_AFTER_MS - quiet_ms) / 1000, self._look_again, path)

    # Failed

    def _fail(self, error: LogDirFailed) -> None:
        services = self._services
        if all(str(directory.path) != error.path for directory in services.logs.directories):
            logger.error("event=storage-failed error=%r", str(error))
            return
        if any(str(directory.path) == error.path for directory in services.logs.failed_directories):
            return
        lost = services.logs.fail(error)
        logger.error(
            "event=log-directory-failed path=%s partitions=%d note='out of use until the next start' reason=%r",
            error.path, len(lost), error.reason,
        )  # fmt: skip
        for directory in services.logs.failed_directories:
            self.log_dir_moves.directory_failed(directory)
        for each in lost:
            partition = services.partitions.get(each.topic, each.partition)
            if partition is not None and not partition.is_offline and partition.log is each:
                services.partitions.take_offline(partition)
            self._unload_coordinator(each.topic, each.partition)
        if services.member is not None:
            report_later(
                self, services.loop.create_task(self._tell_cluster(services.member, lost, error), name="log-directory-failed")
            )
        reason = self._reason_to_stop()
        if reason is not None:
            logger.critical("event=broker-stops reason=%r", reason)
            self._stop(error)

    async def _tell_cluster(self, member: Member, lost: Collection[Log], error: LogDirFailed) -> None:
        """Let other brokers lead the lost partitions. Before that, make sure that the next start does not rely on these logs."""
        await self.guard(self._services.logs.forget_boots)
        member.tell_offline((each.topic_id, each.partition) for each in lost if each.topic_id is not None)
        if len(member.offline) > MAX_SAID:
            logger.critical("event=broker-stops logs=%d reason='its logs were in directories that failed'", len(member.offline))
            self._stop(error)

    def _reason_to_stop(self) -> str | None:
        directories = self._services.logs.directories
        if all(directory.failure is not None for directory in directories):
            return "the log directory failed" if len(directories) == 1 else "all log directories failed"
        if self._services.member is not None:
            return None
        return "the log directory with the metadata failed" if directories[0].failure is not None else None
