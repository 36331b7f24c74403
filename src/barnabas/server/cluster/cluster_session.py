"""The session of a broker with the metadata of its cluster, from the first read to the leave.

make_member     before the broker opens its data folder: a session with the store
join            when everything is ready: register, become active, begin to lead
leave           before the sockets close: give leaderships to other brokers
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.cluster.membership.lost_partitions import LastRecord
from barnabas.cluster.membership.member import Member
from barnabas.cluster.membership.offline_replicas import MAX_SAID
from barnabas.cluster.metadata.image import BrokerRegistration, Kept, Topic
from barnabas.config.cordoning import absolute
from barnabas.errors import LogDirFailed
from barnabas.protocol.values import NO_LEADER
from barnabas.storage.checkpoints import encode_uuid
from barnabas.storage.directory import LogDirectory

if TYPE_CHECKING:
    from barnabas.cluster.planning.instructions import Instruction
    from barnabas.cluster.store.interface import MetadataStore
    from barnabas.config.broker import BrokerConfig
    from barnabas.config.listeners import Endpoint
    from barnabas.server.periodic_jobs import PeriodicJobs
    from barnabas.server.services import Services

Run = Callable[[Callable[[], None]], object]
Apply = Callable[[Sequence["Instruction"]], Awaitable[None]]
GIVEN_BACK_EVERY_MS = 1_000
LEAVE_TIMEOUT_MS = 30_000  # for the controller to move the leaderships of this broker
logger = logging.getLogger(__name__)


async def make_member(services: Services, open_store: Callable[[BrokerConfig, Run], MetadataStore]) -> Member:
    """The membership of this broker in its cluster. It has read nothing yet.

    Raises:
        StoreUnavailable: the store does not answer.
        ConfigError: the address of the store is invalid.
    """
    config, loop = services.config, services.loop
    thread = services.make_executor(1, "barnabas-metadata")
    try:
        store = await loop.run_in_executor(thread, open_store, config, loop.call_soon_threadsafe)
    except BaseException:
        thread.shutdown(wait=False)
        raise
    return Member(store, config, new_id=services.new_id, incarnation=str(services.new_id()), thread=thread)


async def join(services: Services, member: Member, endpoints: Sequence[Endpoint], apply: Apply) -> None:
    """Join the cluster with the addresses `endpoints`; `apply` executes the instructions of the metadata for this broker.

    Raises BrokerIdInUse, StoreUnavailable, and LogDirFailed if too many logs are in failed directories to report all of them to the
    cluster.
    """
    config = services.config
    if len(member.offline) > MAX_SAID:
        path = services.logs.failed_directories[0].path
        raise LogDirFailed(str(path), f"{len(member.offline)} logs are in no directory that works")
    registration = BrokerRegistration(
        config.broker_id,
        tuple(endpoints),
        config.broker_rack,
        log_dirs=tuple(encode_uuid(directory.id) for directory in services.logs.directories if directory.failure is None),
        log_dir_paths=absolute(config.log_dirs),
        cordoned=config.cordoned_log_dirs,
        kept=what_was_kept(services.logs.directories),
    )
    if registration.kept is not Kept.ALL and len(services.logs):
        logger.warning("event=logs-in-doubt broker=%d kept=%s", config.broker_id, registration.kept.value)

    async def settled() -> None:
        await services.faults.guard(services.logs.remember_boot)

    member.find_log = partial(find_log, services)
    await member.join(registration, apply, settled, timeout_ms=config.initial_broker_registration_timeout_ms)


def schedule(config: BrokerConfig, member: Member, periodic_jobs: PeriodicJobs) -> None:
    """Schedule the jobs of the controller that give leaderships back to preferred leaders, if the settings ask for it."""
    if config.auto_leader_rebalance_enable:
        periodic_jobs.every(GIVEN_BACK_EVERY_MS, member.give_back, "leaders-given-back")
        periodic_jobs.every(config.leader_imbalance_check_interval_seconds * 1000, member.balance, "leader-balance")


def find_log(services: Services, topic: Topic, index: int, leader_epoch: int) -> LastRecord | None:
    """The end of a log that no broker leads or follows any more in this leader epoch; None if this is not so yet."""
    found = services.partitions.get(topic.name, index)
    if found is None or found.is_offline or found.topic_id != topic.topic_id:
        return None
    if found.leader_id != NO_LEADER or found.leader_epoch != leader_epoch:
        return None
    return found.log.reader.epoch_of_end, found.log.log_end_offset


def what_was_kept(directories: Sequence[LogDirectory]) -> Kept:
    """The part of the logs that survived: the smallest one that any of the log directories reports."""
    doubtful = [directory for directory in directories if not directory.has_all]
    if any(directory.last_boot is None for directory in doubtful):
        return Kept.UNKNOWN
    return Kept.SYNCED if doubtful else Kept.ALL


async def leave(services: Services) -> None:
    """Leave the cluster in order, if the broker has joined it and `controlled.shutdown.enable` is set."""
    if services.member is not None and services.is_ready and services.config.controlled_shutdown_enable:
        await services.member.leave(LEAVE_TIMEOUT_MS)
