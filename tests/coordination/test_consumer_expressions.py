"""Members of consumer groups that subscribe by regular expressions, which the broker matches with the topics they may know of."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest
from msgspec.structs import replace

from barnabas import limits
from barnabas.coordination.consumer.consumer_group_records import RegularExpressionValue
from barnabas.coordination.consumer.draft import MATCHED_AT_ONCE, Draft
from barnabas.coordination.consumer.group import expression_record
from barnabas.coordination.result import CoordinatorResult
from barnabas.errors import ErrorCode
from tests.coordination.consumer_driver import (
    Client,
    all_of,
    consumer_driver,
    consumer_group,
    refusal,
    settle,
)
from tests.coordination.driver import GROUP


def test_an_expression_finds_topics_that_come_and_go() -> None:
    driver = consumer_driver(**{"logs-a": 1, "metrics": 2})
    client = Client(driver, "a", topics=None, regex="logs-.*")
    client.beat()
    assert client.partitions == {("logs-a", 0)}
    driver.topics.set("logs-b", 2)
    client.nudge()
    assert client.partitions == {("logs-a", 0), ("logs-b", 0), ("logs-b", 1)}
    driver.topics.set("logs-a", 0)
    client.nudge()
    settle(client)
    assert client.partitions == all_of("logs-b", 2)


def test_an_expression_goes_with_its_last_subscriber() -> None:
    driver = consumer_driver(**{"logs-a": 2})
    clients = [Client(driver, name, topics=None, regex="logs.*") for name in "ab"]
    settle(*clients)
    clients[0].topics, clients[0].regex = ("logs-a",), ""
    clients[0].beat()
    assert set(consumer_group(driver).expressions) == {"logs.*"}
    clients[1].leave()
    assert not consumer_group(driver).expressions
    settle(clients[0])
    assert clients[0].partitions == all_of("logs-a", 2)


def test_members_that_go_together_take_the_expressions_along_that_nobody_else_has() -> None:
    driver = consumer_driver(**{"logs-a": 2, "metrics": 1})
    clients = [
        Client(driver, name, topics=None, regex=regex) for name, regex in zip("abcd", ["logs.*"] * 3 + ["me.*"], strict=True)
    ]
    settle(*clients)
    group = consumer_group(driver)
    draft = Draft(group, driver.topics, driver.clock.now())
    draft.remove(group.members[name] for name in "abd")
    assert draft.records.count(expression_record(GROUP, "me.*", None)) == 1
    assert len(draft.records) == 3 * 3 + 1
    draft = Draft(group, driver.topics, driver.clock.now())
    draft.remove(group.members[name] for name in "abcd")
    assert len(draft.records) == 4 * 3 + 2


def test_no_name_of_a_topic_is_taken_for_an_expression() -> None:
    driver = consumer_driver(**{"logs-a": 1})
    clients = [Client(driver, "a", topics=None, regex="logs.*"), Client(driver, "b", topics=("\0logs.*",))]
    settle(*clients)
    clients[0].leave()
    group = consumer_group(driver)
    group.validate()
    assert not group.expressions
    assert not group.is_subscribed_to("logs-a")


def test_an_expression_that_is_none_is_refused() -> None:
    driver = consumer_driver(t=1)
    client = Client(driver, "a", topics=None, regex="(")
    code, message = refusal(client.request(), client)
    assert code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert (message or "").startswith("SubscribedTopicRegex `(` is not a valid regular expression: ")
    assert GROUP not in driver.shard.groups


def test_members_with_different_rights_leave_each_other_s_expressions_alone() -> None:
    driver = consumer_driver(**{"v-1": 2, "v-2": 2})

    def only_the_first(names: Collection[str]) -> Collection[str]:
        return [name for name in names if name == "v-1"]

    one = Client(driver, "a", topics=None, regex="v-.*")
    other = Client(driver, "b", topics=None, regex="v-.*", may_describe=only_the_first)
    settle(one)
    settle(one, other)
    settle(other, one)
    assert one.partitions | other.partitions == all_of("v-1", 2) | all_of("v-2", 2)
    one.driver = other.driver = driver = driver.restarted()
    epoch = consumer_group(driver).epoch
    settle(other, one)
    settle(one, other)
    assert one.partitions | other.partitions == all_of("v-1", 2)
    assert consumer_group(driver).epoch == epoch + 1
    driver.clock.advance(driver.config.group_consumer_regex_refresh_interval_ms)
    settle(one, other)
    settle(other, one)
    assert one.partitions | other.partitions == all_of("v-1", 2) | all_of("v-2", 2)
    assert consumer_group(driver).epoch == epoch + 2


def test_an_expression_that_was_never_resolved_is() -> None:
    driver = consumer_driver(**{"v-1": 2})
    client = Client(driver, "a", topics=None, regex="v-.*")
    settle(client)
    driver.carry_out(CoordinatorResult(records=[expression_record(GROUP, "v-.*", None)]))
    driver.topics.set("v-2", 1)
    client.driver = driver = driver.restarted()
    client.nudge()
    assert client.partitions == all_of("v-1", 2) | {("v-2", 0)}


def test_an_expression_of_another_broker_s_that_is_none_here_keeps_nobody_from_going_on() -> None:
    driver = consumer_driver(t=2)
    client = Client(driver, "a", topics=None, regex="t")
    settle(client)
    strange = replace(consumer_group(driver).members["a"], member_id="b", regex="(")
    resolved = RegularExpressionValue(topics=["t"], version=0, timestamp_ms=0)
    driver.carry_out(CoordinatorResult(records=[strange.to_member_record(GROUP), expression_record(GROUP, "(", resolved)]))
    client.driver = driver = driver.restarted()
    driver.topics.set("u", 2)
    client.regex = "t|u"
    client.beat()
    client.beat()
    assert client.partitions == all_of("u", 2), "the other has what its record says"


def test_topics_that_came_before_a_load_are_matched_though_the_log_refuses_at_first() -> None:
    driver = consumer_driver(**{"v-1": 1})
    client = Client(driver, "a", topics=None, regex="v-.*")
    settle(client)
    driver.topics.set("v-2", 1)
    client.driver = driver = driver.restarted()
    driver.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    assert client.error() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.refusal = None
    client.nudge()
    assert client.partitions == {("v-1", 0), ("v-2", 0)}


def test_expressions_are_resolved_again_a_few_with_each_heartbeat() -> None:
    driver = consumer_driver(**{f"topic-{i}": 1 for i in range(MATCHED_AT_ONCE // 2)})
    clients = [Client(driver, name, topics=None, regex=f"{name}.*") for name in "abcdef"]
    settle(*clients)
    compiled: list[str] = []
    matcher = driver.topics.matcher

    def counting(pattern: str) -> Callable[[str], bool]:
        compiled.append(pattern)
        found: Callable[[str], bool] = matcher(pattern)
        return found

    driver.topics.matcher = counting
    driver.clock.advance(driver.config.group_consumer_regex_refresh_interval_ms)
    for done, client in enumerate(clients, start=1):
        client.nudge()
        assert len(compiled) == min(2 * done, len(clients))
    assert sorted(compiled) == sorted(client.regex or "" for client in clients)
    driver.topics.set("another", 1)
    clients[0].nudge()
    assert len(compiled) == 2 * len(clients), "one name is soon matched with all"


def test_a_group_has_room_for_so_many_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_GROUP_EXPRESSIONS", 2)
    driver = consumer_driver(t=1)
    settle(
        *(Client(driver, name, topics=None, regex=f"{name}|t") for name in "ab"), Client(driver, "c", topics=None, regex="b|t")
    )
    client = Client(driver, "d", topics=None, regex="d|t")
    message = "The group has 2 different SubscribedTopicRegex, which is the most that one may have."
    assert refusal(client.request(), client) == (ErrorCode.INVALID_REQUEST, message)
    client.regex = "a|t"
    client.beat()


def test_both_ways_of_subscribing_together() -> None:
    driver = consumer_driver(t=1, u=1)
    client = Client(driver, "a", topics=("t",), regex="u|v")
    settle(client)
    assert client.partitions == {("t", 0), ("u", 0)}
    client.regex = ""
    settle(client)
    assert client.partitions == {("t", 0)}
