"""The mirror links of a broker: a runner for each link, and the appenders of logs that are copies."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.errors import ConfigError, KafkaError, StorageError
from barnabas.mirror.link import Link
from barnabas.mirror.status import LINK_STATUS, LinkStatus, encode
from barnabas.protocol.values import ResourceType
from barnabas.storage.log.appender import LogAppender
from barnabas.storage.mirror_appender import MirrorAppender

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import Resource
    from barnabas.replication.leader_partition import LeaderPartition
    from barnabas.server.logs.log_start_offsets import LogStartOffsets
    from barnabas.server.mirroring.group_sync import Coordinators
    from barnabas.server.mirroring.link_runner import LinkRunner
    from barnabas.server.services import Services
    from barnabas.storage.log import Log

logger = logging.getLogger(__name__)
LOOK_MS = 1_000  # how often links and led copies are looked up; without links a look compares two objects


class Mirrors:
    """Owns the links of this broker.

    Args:
        fit: gives a log that is no copy its appender.
        coordinators: the groups of this broker, once it is ready.
        log_start_offsets: writes checkpoints of logs that are cut.
    """

    def __init__(
        self,
        services: Services,
        fit: Callable[[Log], None],
        coordinators: Callable[[], Coordinators],
        log_start_offsets: LogStartOffsets,
    ) -> None:
        self._coordinators = coordinators
        self._log_start_offsets = log_start_offsets
        self._services = services
        self._fit = fit
        self._configs: Mapping[Resource, Mapping[str, str]] | None = None  # in which the links were looked up
        self._links: dict[str, Mapping[str, str]] = {}
        self._runners: dict[str, LinkRunner] = {}
        self._unusable: dict[str, str] = {}  # links without a runner, with the reason
        self._closing: set[asyncio.Task[None]] = set()
        self._is_look_due = self._is_closed = False

    def fit(self, log: Log) -> None:
        """Give a log the appender of a copy or that of an ordinary log, as its settings say."""
        if log.config.mirror_link:
            self.look_soon()
        if log.config.is_mirrored:
            log.appender = MirrorAppender(log)
            return
        if type(log.appender) is MirrorAppender:
            log.appender = LogAppender(log)
            self.look_soon()
        self._fit(log)

    def look_soon(self) -> None:
        """Look in the next turn of the loop, because a link or a copy has changed."""
        if not self._is_look_due and self._services.is_ready:
            self._is_look_due = True
            self._services.loop.call_soon(self.look)

    def look(self) -> None:
        """Have a runner for each link, with the copies that this broker leads; call it regularly."""
        self._is_look_due = False
        services = self._services
        if self._is_closed or not services.is_ready:
            return
        configs = services.metadata.configs
        if configs is not self._configs:
            self._configs = configs
            self._links = {name: settings for (kind, name), settings in configs.items() if kind is ResourceType.LINK}
        if not self._links and not self._runners:
            return
        self._fit_runners()
        led: dict[str, list[LeaderPartition]] = defaultdict(list)
        for partition in services.partitions:
            if partition.is_leader and partition.log.config.mirror_link and not partition.closed:
                led[partition.log.config.mirror_link].append(partition)
        for name, runner in self._runners.items():
            runner.take(led[name])
            try:
                runner.end_transactions()
            except StorageError as error:
                services.faults.report(error)

    def _fit_runners(self) -> None:
        # a broker without links loads neither the client nor the library of patterns
        from barnabas.server.mirroring.link_runner import LinkRunner
        from barnabas.server.patterns import matcher

        for name, runner in list(self._runners.items()):
            if self._links.get(name) != runner.link.settings:
                closing = self._services.loop.create_task(self._runners.pop(name).close())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
        self._unusable = {name: reason for name, reason in self._unusable.items() if name in self._links}
        for name, settings in self._links.items():
            if name in self._runners:
                continue
            try:
                self._runners[name] = LinkRunner(
                    self._services, self._coordinators(), self._log_start_offsets, Link.of(name, settings, matcher)
                )
            except (ConfigError, KafkaError) as error:  # such as a certificate that cannot be read
                if self._unusable.get(name) != str(error):
                    logger.error("event=mirror-link-not-usable link=%s error=%r", name, str(error))
                self._unusable[name] = str(error)

    @property
    def runners(self) -> Mapping[str, LinkRunner]:
        """The links that run here, by name."""
        return self._runners

    @property
    def unusable(self) -> Iterable[str]:
        """The links that cannot run here."""
        return self._unusable.keys()

    def status(self, link: str) -> dict[str, str]:
        """The status of a link on this broker, as read-only settings."""
        runner = self._runners.get(link)
        return {LINK_STATUS: encode(LinkStatus(self._unusable.get(link, "")))} if runner is None else runner.status()

    async def close(self) -> None:
        self._is_closed = True
        await asyncio.gather(*(runner.close() for runner in self._runners.values()), *self._closing)
        self._runners.clear()
