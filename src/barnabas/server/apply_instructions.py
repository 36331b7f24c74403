"""Executes the instructions of the metadata for this broker: each instruction goes to its part of the broker, in order.

The planners and `cluster/membership/image_changes.py` decide the order. They put instructions of one kind that touch the disk together, so
the broker makes a thousand logs in one step.

Rules
  1. In a cluster, the coordinators unload an ended partition before its log belongs to another broker. They load a partition when its
     replica knows that it leads.
  2. A broker that is alone leads all its partitions. It answers a deletion when the offsets of the topics are gone too. In a cluster,
     groups learn of every deleted topic (`ForgetTopics`), also of topics without logs here, and the answer does not wait for them.
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
    """The parts of the broker that instructions go to."""

    coordinators: Coordinators
    declarations: DeclarationFollowers
    member: Member | None
    replica_manager: ReplicaManager

    def update_config(self, config: BrokerConfig) -> None:
        """Take over changed settings of the broker."""
        ...


async def apply_instructions(broker: Parts, instructions: Sequence[Instruction]) -> None:
    """Execute `instructions` in their order; the module's docstring has the rules."""
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
