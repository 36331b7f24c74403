"""Topics that are made because somebody asked for them, by a controller that takes its time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from barnabas import limits
from barnabas.cluster.membership import auto_topic_creation
from barnabas.cluster.membership.auto_topic_creation import AutoTopicCreation, Told
from barnabas.errors import Closed, ErrorCode, KafkaError
from tests.waiting import until


class Controller:
    """Makes what it is asked for when it is told to."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.answer: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()

    async def make(self, names: Sequence[str]) -> Told:
        self.asked.append(list(names))
        return dict.fromkeys(names, await self.answer)


def codes(told: Told) -> dict[str, ErrorCode | None]:
    return {name: None if error is None else error.code for name, error in told.items()}


LATER = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_nobody_waits_for_long_and_each_topic_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_topic_creation, "WAIT_S", 0.01)
    controller = Controller()
    creations = AutoTopicCreation(controller.make)
    told = await asyncio.gather(creations.want(["a", "b", "a"]), creations.want(["b", "c"]), creations.want([]))
    assert list(map(codes, told)) == [{"a": LATER, "b": LATER}, {"b": LATER, "c": LATER}, {}]
    assert codes(await creations.want(["a"])) == {"a": LATER}
    assert controller.asked == [["a", "b"], ["c"]]
    assert [creations.is_under_way(name) for name in "abcd"] == [True, True, True, False]
    controller.answer.set_result(None)
    assert codes(await creations.want(["a", "c"])) == {"a": None, "c": None}
    await until(lambda: not creations._under_way)
    assert controller.asked == [["a", "b"], ["c"]]
    await creations.close()


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (ErrorCode.NOT_CONTROLLER, LATER),
        (ErrorCode.REQUEST_TIMED_OUT, LATER),
        (ErrorCode.POLICY_VIOLATION, ErrorCode.POLICY_VIOLATION),
    ],
)
async def test_what_nobody_has_decided_may_be_later(said: ErrorCode, code: ErrorCode) -> None:
    for is_raised in (False, True):
        controller = Controller()
        creations = AutoTopicCreation(controller.make)
        if is_raised:
            controller.answer.set_exception(KafkaError(said))
        else:
            controller.answer.set_result(KafkaError(said))
        assert codes(await creations.want(["a"])) == {"a": code}


async def test_only_so_many_are_in_the_making(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_topic_creation, "WAIT_S", 0.01)
    monkeypatch.setattr(limits, "MAX_TOPICS_IN_THE_MAKING", 2)
    controller = Controller()
    creations = AutoTopicCreation(controller.make)
    for names in (["a", "b", "c"], ["d"]):
        assert codes(await creations.want(names)) == dict.fromkeys(names, LATER)
    assert controller.asked == [["a", "b"]]
    await creations.close()


async def test_a_closed_store_and_faults_of_ours_are_told_to_who_asks() -> None:
    for error in (Closed("the metadata store is closed"), ValueError("a fault")):
        controller = Controller()
        controller.answer.set_exception(error)
        with pytest.raises(type(error)):
            await AutoTopicCreation(controller.make).want(["a"])
