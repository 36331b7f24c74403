"""A broker that is one of several: its session with the cluster's metadata, from the first reading to the last word.

open_member     before the data folder is opened: what is the cluster called, which topics are there
join            when everything is ready: register, become active, take up what is to be led
leave           before the sockets close: what others can lead is led by others
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.cluster.membership.lost_partitions import LastRecord
from barnabas.cluster.membership.member import Member
from barnabas.cluster.membership.offline_replicas import MAX_SAID
from barnabas.cluster.metadata.image import BrokerRegistration, Kept, Topic
from barnabas.config.cordoning import absolute
from barnabas.errors import LogDirFailed
from barnabas.protocol.values import NO_LEADER
from barnabas.server.apply_instructions import apply_instructions
from barnabas.server.cluster.forwarding import Forwarder
from barnabas.server.cluster.liveness_prober import LivenessProber
from barnabas.server.cluster.quorum import Quorum
from barnabas.storage.checkpoints import encode_uuid
from barnabas.storage.directory import LogDirectory

if TYPE_CHECKING:
    from barnabas.server.broker import Broker
    from barnabas.server.periodic_jobs import PeriodicJobs

GIVEN_BACK_EVERY_MS = 1_000
LEAVE_TIMEOUT_MS = 30_000  # for the controller to move away what this broker leads
logger = logging.getLogger(__name__)


async def open_member(broker: Broker, cluster_id: str) -> Member:
    """The broker's part in its cluster, which is called `cluster_id` if it has no name yet.

    Raises:
        StoreUnavailable: the store does not answer.
        ConfigError: its address is none.
    """
    config, loop = broker.config, broker.loop
    thread = broker.environment.make_executor(1, "barnabas-metadata")
    try:
        run = loop.call_soon_threadsafe
        store = await loop.run_in_executor(thread, broker.environment.open_cluster_store, config, run)
    except BaseException:
        thread.shutdown(wait=False)
        raise
    member = Member(store, config, new_id=broker.new_id, incarnation=str(broker.new_id()), thread=thread)
    broker.member = member
    broker.take_controller(member)
    broker.forwarder = Forwarder(broker, member)
    broker.quorum = Quorum(broker)
    await member.open(cluster_id, timeout_ms=config.initial_broker_registration_timeout_ms)
    return member


async def join(broker: Broker, member: Member, periodic_jobs: PeriodicJobs) -> None:
    """Raises BrokerIdInUse, StoreUnavailable, and LogDirFailed where too much is in directories that failed for the cluster to be told."""
    config = broker.config
    if len(member.offline) > MAX_SAID:
        path = broker.logs.failed_directories[0].path
        raise LogDirFailed(str(path), f"{len(member.offline)} logs are in no directory that works")
    registration = BrokerRegistration(
        config.broker_id,
        tuple(broker.endpoints),
        config.broker_rack,
        log_dirs=tuple(encode_uuid(directory.id) for directory in broker.logs.directories if directory.failure is None),
        log_dir_paths=absolute(config.log_dirs),
        cordoned=config.cordoned_log_dirs,
        kept=what_was_kept(broker.logs.directories),
    )
    if registration.kept is not Kept.ALL and len(broker.logs):
        logger.warning("event=logs-in-doubt broker=%d kept=%s", config.broker_id, registration.kept.value)

    async def settled() -> None:
        await broker.faults.guard(broker.logs.remember_boot)

    member.find_log = partial(find_log, broker)
    broker.liveness_responder = broker.environment.make_liveness_responder(broker.loop)
    await member.join(
        registration, partial(apply_instructions, broker), settled, timeout_ms=config.initial_broker_registration_timeout_ms
    )
    broker.liveness_prober = LivenessProber(broker, member)
    if config.auto_leader_rebalance_enable:
        periodic_jobs.every(GIVEN_BACK_EVERY_MS, member.give_back, "leaders-given-back")
        periodic_jobs.every(config.leader_imbalance_check_interval_seconds * 1000, member.balance, "leader-balance")


def find_log(broker: Broker, topic: Topic, index: int, leader_epoch: int) -> LastRecord | None:
    """How far a log goes that nobody leads or follows any more in this leader epoch; None while that is not so yet."""
    found = broker.partitions.get(topic.name, index)
    if found is None or found.is_offline or found.topic_id != topic.topic_id:
        return None
    if found.leader_id != NO_LEADER or found.leader_epoch != leader_epoch:
        return None
    return found.log.reader.epoch_of_end, found.log.log_end_offset


def what_was_kept(directories: Sequence[LogDirectory]) -> Kept:
    """What the log directories can say of their logs: the least of what one of them can."""
    doubtful = [directory for directory in directories if not directory.has_all]
    if any(directory.last_boot is None for directory in doubtful):
        return Kept.UNKNOWN
    return Kept.SYNCED if doubtful else Kept.ALL


async def leave(broker: Broker) -> None:
    """Where the broker had joined, and is to leave in order."""
    if broker.liveness_prober is not None:
        await broker.liveness_prober.close()
    if broker.member is not None and broker.ready and broker.config.controlled_shutdown_enable:
        await broker.member.leave(LEAVE_TIMEOUT_MS)
