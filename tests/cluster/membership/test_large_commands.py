"""Requests about more topics than one commit of the store has room for: done in several, each topic made or refused for itself."""

from __future__ import annotations

import pytest

from barnabas.cluster.planning.topics import MorePartitions, NewTopic
from barnabas.cluster.store import interface
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.base_message import ZERO_UUID
from tests.cluster.members import Members

COMMIT_BYTES = 4_000  # enough for about six topics
NAMES = [f"topic-{number}" for number in range(40)]


@pytest.fixture(autouse=True)
def small_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface, "MAX_COMMIT_BYTES", COMMIT_BYTES)


async def test_topics_are_made_widened_and_deleted_in_several_commits(cluster: Members) -> None:
    controller = cluster.controller.member
    before = cluster.controller.store.commits
    asked = [NewTopic(name, 2, 3) for name in NAMES]
    made = await controller.create_topics([*asked, NewTopic("twice", 1, 1), NewTopic("twice", 1, 1), NewTopic("no/name", 1, 1)])
    assert cluster.controller.store.commits > before + 1
    refused = {outcome.name: outcome.error.code for outcome in made if outcome.error is not None}
    assert refused == {"twice": ErrorCode.INVALID_REQUEST, "no/name": ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert sorted(outcome.name for outcome in made if outcome.error is None) == sorted(NAMES) == sorted(controller.image.topics)

    grown = await controller.create_partitions([MorePartitions(name, 3) for name in NAMES])
    assert {outcome.error for outcome in grown} == {None}
    assert {len(topic.partitions) for topic in controller.image.topics.values()} == {3}

    by_id = controller.image.topics[NAMES[0]].topic_id
    gone = await controller.delete_topics([(None, by_id), *((name, ZERO_UUID) for name in NAMES[1:]), ("missing", ZERO_UUID)])
    codes = {outcome.name: None if outcome.error is None else outcome.error.code for outcome in gone}
    assert codes == {**dict.fromkeys(NAMES), "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert not controller.image.topics


async def test_a_topic_that_is_too_large_is_refused_alone(cluster: Members) -> None:
    controller = cluster.controller.member
    made = await controller.create_topics([NewTopic("small", 1, 1), NewTopic("large", 1_000, 3), NewTopic("small-too", 1, 1)])
    assert {outcome.name: outcome.error is None for outcome in made} == {"small": True, "large": False, "small-too": True}
    assert sorted(controller.image.topics) == ["small", "small-too"]


async def test_what_fails_half_way_is_refused_and_the_rest_stands(cluster: Members) -> None:
    controller = cluster.controller
    run, runs = controller.member._run, []

    async def failing(command: object) -> object:
        runs.append(command)
        if len(runs) == 3:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        return await run(command)  # type: ignore[arg-type]  # takes any command

    controller.member._run = failing  # type: ignore[method-assign,assignment]  # the third command fails
    made = await controller.member.create_topics([NewTopic(name, 1, 1) for name in NAMES[:16]])
    codes = [None if outcome.error is None else outcome.error.code for outcome in made]
    assert codes == [None] * 8 + [ErrorCode.REQUEST_TIMED_OUT] * 8
    assert sorted(controller.image.topics) == sorted(NAMES[:8])
