"""What the controller's instructions mean on this broker: logs made, deleted and set anew.

Making and deleting folders goes to a thread; the partition appears to requests only once its log is there, and is gone from them before its
log goes.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, cast

from barnabas.cluster.instructions import CreateLog, DeleteLog, Instruction, UpdateBrokerConfig, UpdateTopicConfig
from barnabas.errors import StorageError
from barnabas.replication.partition import Partition

if TYPE_CHECKING:
    from barnabas.server.broker import Broker
    from barnabas.storage.garbage import Garbage
    from barnabas.storage.log import Log

log = logging.getLogger(__name__)


class Hosting:
    """Carries out instructions for one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def host_all(self) -> None:
        """At start: make partitions of the logs that the metadata knows; make logs that a crash left unmade."""
        broker = self._broker
        for topic in broker.metadata.topics.values():
            config = broker.controller.topic_config(topic.name)
            for index, state in enumerate(topic.partitions):
                if broker.config.broker_id not in state.replicas:
                    continue
                found = broker.logs.get(topic.name, index)
                if found is not None and found.topic_id != topic.topic_id:
                    log.warning("removing the log of a deleted topic topic=%s partition=%d", topic.name, index)
                    broker.logs.delete(topic.name, index).remove()
                    found = None
                if found is None:
                    found = broker.logs.create(topic.name, index, topic.topic_id, config)
                self._host(found, state.leader_epoch)
        deleted = broker.controller.deleted_topics
        for stray in [each for each in broker.logs.logs() if broker.partitions.get(each.topic, each.partition) is None]:
            if stray.topic_id in deleted:
                log.info("finishing the deletion of a topic topic=%s partition=%d", stray.topic, stray.partition)
                broker.logs.delete(stray.topic, stray.partition).remove()
            else:
                log.warning("a log that the metadata does not know stays untouched directory=%s", stray.directory)
        broker.controller.forget_deleted_topics()

    async def apply(self, instructions: Sequence[Instruction]) -> None:
        """Carry out `instructions` in their order; what touches the disk goes to a thread, a run of one kind at a time."""
        for kind, run in groupby(instructions, key=type):
            if kind is CreateLog:
                await self._create(cast("list[CreateLog]", list(run)))
            elif kind is DeleteLog:
                await self._delete(cast("list[DeleteLog]", list(run)))
            else:
                for instruction in run:
                    self._update(instruction)
        deleted = {i.topic for i in instructions if isinstance(i, DeleteLog)}
        if deleted:
            await self._broker.groups.delete_topics(sorted(deleted))

    def _update(self, instruction: Instruction) -> None:
        match instruction:
            case UpdateTopicConfig(topic, config):
                for found in self._broker.partitions.topic(topic).values():
                    found.log.update_config(config)
                self._broker.cleaner.update_config()
            case UpdateBrokerConfig(config):
                self._broker.update_config(config)

    async def _delete(self, instructions: list[DeleteLog]) -> None:
        """The folders are renamed before the deletion is answered; their files go when the disk has time."""
        broker = self._broker
        gone = [i for i in instructions if broker.partitions.remove(i.topic, i.partition) is not None]
        retired = [broker.logs.retire(i.topic, i.partition) for i in gone]
        garbage = await broker.loop.run_in_executor(broker.io_threads, broker.logs.rename, retired)
        await broker.cleaner.forget((i.topic, i.partition) for i in gone)
        broker.loop.run_in_executor(broker.io_threads, _remove_all, garbage)

    async def _create(self, instructions: list[CreateLog]) -> None:
        broker = self._broker
        try:
            logs = await broker.loop.run_in_executor(broker.io_threads, self._make_logs, instructions)
        except (StorageError, OSError) as error:
            log.error("log not made topic=%s error=%s", instructions[0].topic, error)
            return
        for made, instruction in zip(logs, instructions, strict=True):
            self._host(made, instruction.leader_epoch)

    def _make_logs(self, instructions: list[CreateLog]) -> list[Log]:
        made = []
        for instruction in instructions:
            created = self._broker.logs.create(instruction.topic, instruction.partition, instruction.topic_id, instruction.config)
            if instruction.is_leader:
                created.begin_epoch(instruction.leader_epoch)
            made.append(created)
        return made

    def _host(self, found: Log, leader_epoch: int) -> None:
        self._broker.partitions.add(Partition(found, leader_id=self._broker.config.broker_id, leader_epoch=leader_epoch))


def _remove_all(garbage: Sequence[Garbage]) -> None:
    for each in garbage:
        each.remove()
