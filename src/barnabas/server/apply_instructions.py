"""What the metadata asks of this broker, carried out: each instruction goes to the part of the broker that it is for, in their order.

The order is that of whoever hands them on (`cluster/membership/image_changes.py`, the planners). What touches the disk comes in runs of one
kind, so that a thousand logs are made at once and not one after the other.

Rules
  1. In a cluster the coordinators give up what ends before its log is another's, and take up what begins when the replicas know of it.
  2. A broker alone leads whatever it has. It answers a deletion when the offsets of the topics are gone too. In a cluster groups hear of
     every topic that goes (`ForgetTopics`), not only of those that had logs here, and nobody waits for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Protocol, cast

from barnabas.cluster.planning.instructions import (
    ChangeReplica,
    CreateLog,
    DeleteLog,
    Instruction,
    StandDown,
    UpdateBrokerConfig,
    UpdateDeclared,
    UpdateTopicConfig,
)

if TYPE_CHECKING:
    from barnabas.cluster.membership.member import Member
    from barnabas.config.broker import BrokerConfig
    from barnabas.server.coordinators import Coordinators
    from barnabas.server.declarations import DeclarationFollowers
    from barnabas.server.logs.replica_manager import ReplicaManager


class Parts(Protocol):
    """What instructions go to."""

    coordinators: Coordinators
    declarations: DeclarationFollowers
    member: Member | None
    replica_manager: ReplicaManager

    def update_config(self, config: BrokerConfig) -> None:
        """Settings of the broker changed."""
        ...


async def apply_instructions(broker: Parts, instructions: Sequence[Instruction]) -> None:
    """See the module."""
    is_alone = broker.member is None
    if is_alone:
        broker.coordinators.unload_deleted(instructions)
    else:
        broker.coordinators.resign(instructions)
    for kind, run in groupby(instructions, key=type):
        if kind is CreateLog:
            await broker.replica_manager.create(cast("list[CreateLog]", list(run)))
        elif kind is DeleteLog:
            await broker.replica_manager.remove(cast("list[DeleteLog]", list(run)))
        else:
            for instruction in run:
                await _apply_one(broker, instruction)
    if not is_alone:
        broker.coordinators.follow(instructions)
        return
    await broker.coordinators.load_made(instructions)
    if deleted := {each.topic for each in instructions if isinstance(each, DeleteLog)}:
        await broker.coordinators.delete_topics(deleted)


async def _apply_one(broker: Parts, instruction: Instruction) -> None:
    match instruction:
        case ChangeReplica():
            await broker.replica_manager.change(instruction)
        case StandDown():
            broker.replica_manager.stand_down()
        case UpdateTopicConfig(topic, config):
            broker.replica_manager.update_config(topic, config)
        case UpdateBrokerConfig(config):
            broker.update_config(config)
        case UpdateDeclared(kinds):
            broker.declarations.tell(kinds)
