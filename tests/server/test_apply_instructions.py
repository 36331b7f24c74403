"""Instructions carried out: in their order, each by the part that it is for, the coordinators before and after."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from barnabas.cluster.metadata.declared import Kind
from barnabas.cluster.metadata.image import PartitionState
from barnabas.cluster.planning.instructions import (
    ChangeReplica,
    CreateLog,
    DeleteLog,
    ForgetTopics,
    Instruction,
    StandDown,
    UpdateBrokerConfig,
    UpdateDeclared,
    UpdateTopicConfig,
)
from barnabas.config.broker import BrokerConfig
from barnabas.config.topic import TopicConfig
from barnabas.server.apply_instructions import apply_instructions

ID = UUID(int=1)
CONFIG = TopicConfig()
CONFIG_OF_7, _ = BrokerConfig.from_properties({"node.id": "7"})
MADE = [CreateLog("new", number, ID, CONFIG) for number in range(3)]
GONE = [DeleteLog("old", number, ID) for number in range(2)]


class Book:
    """A broker whose parts write down what they are asked, the names of topics and how many instructions came at once."""

    def __init__(self, *, is_alone: bool) -> None:
        self.asked: list[tuple[object, ...]] = []

        def note(*what: object) -> None:
            self.asked.append(what)

        async def noted(*what: object) -> None:
            note(*what)

        replica_manager = SimpleNamespace(
            create=lambda run: noted("create", len(run)),
            remove=lambda run: noted("remove", len(run)),
            change=lambda one: noted("change", one.topic),
            stand_down=lambda: note("stand down"),
            update_config=lambda topic, _: note("settings", topic),
        )
        coordinators = SimpleNamespace(
            resign=lambda all_: note("resign", len(all_)),
            follow=lambda all_: note("follow", len(all_)),
            unload_deleted=lambda all_: note("unload", len(all_)),
            load_made=lambda all_: noted("load", len(all_)),
            delete_topics=lambda names: noted("delete offsets", *sorted(names)),
        )
        self.broker: Any = SimpleNamespace(
            member=None if is_alone else object(),
            replica_manager=replica_manager,
            coordinators=coordinators,
            declarations=SimpleNamespace(tell=lambda kinds: note("declared", *kinds)),
            update_config=lambda config: note("broker's settings", config.broker_id),
        )


async def test_each_part_is_asked_in_order_and_logs_in_runs() -> None:
    book = Book(is_alone=False)
    state = PartitionState(1, 0, (1,), (1,))
    instructions: list[Instruction] = [
        UpdateBrokerConfig(CONFIG_OF_7),
        UpdateTopicConfig("t", CONFIG),
        *GONE,
        ForgetTopics(("old",)),
        *MADE,
        ChangeReplica("t", 0, ID, state),
        ChangeReplica("u", 0, ID, state),
        StandDown(),
        UpdateDeclared(frozenset({Kind.ACL})),
    ]
    await apply_instructions(book.broker, instructions)
    assert book.asked == [
        ("resign", len(instructions)),
        ("broker's settings", 7),
        ("settings", "t"),
        ("remove", 2),
        ("create", 3),
        ("change", "t"),
        ("change", "u"),
        ("stand down",),
        ("declared", Kind.ACL),
        ("follow", len(instructions)),
    ]


async def test_a_broker_alone_leads_what_it_has_and_deletes_offsets() -> None:
    book = Book(is_alone=True)
    await apply_instructions(book.broker, [*MADE, *GONE])
    assert book.asked == [("unload", 5), ("create", 3), ("remove", 2), ("load", 5), ("delete offsets", "old")]


async def test_without_deleted_topics_no_offsets_are_looked_for() -> None:
    book = Book(is_alone=True)
    await apply_instructions(book.broker, MADE)
    assert book.asked == [("unload", 3), ("create", 3), ("load", 3)]
