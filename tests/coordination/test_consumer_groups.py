"""The responses to members of consumer groups, request by request."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordination.classic.group import ClassicGroup
from barnabas.coordination.consumer.interfaces import GroupSettings
from barnabas.coordination.consumer.member import MemberState
from barnabas.errors import ErrorCode, KafkaError
from barnabas.limits import MAX_SUBSCRIPTION_CHARACTERS
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from tests.coordination.consumer_driver import (
    LEAVE_STATIC,
    Client,
    TopicTable,
    all_of,
    consumer_driver,
    consumer_group,
    refusal,
    settle,
)
from tests.coordination.driver import GROUP
from tests.coordination.support import Config

# -- joining --------------------------------------------------------------------------------------------------------------


def test_the_first_member_gets_everything_at_once() -> None:
    client = Client(consumer_driver(t=3), "a")
    answer = client.beat()
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 2, 5_000)
    assert client.partitions == all_of("t", 3)
    assert consumer_group(client.driver).state == "Stable"


def test_a_heartbeat_without_news_writes_nothing_and_tells_nothing() -> None:
    client = Client(consumer_driver(t=3), "a")
    client.beat()
    written = len(client.driver.log)
    answer = client.nudge()
    assert answer.assignment is None
    assert answer.member_epoch == 2
    assert len(client.driver.log) == written
    assert client.beat().assignment is not None, "who says all is told all"


def test_version_0_is_given_a_member_id() -> None:
    client = Client(consumer_driver(t=1), "a")
    assert client.send(client.request(member_id=""), version=0).member_id == "made-a"


def test_a_second_member_waits_for_what_the_first_gives_up() -> None:
    driver = consumer_driver(t=4)
    first, second = Client(driver, "a"), Client(driver, "b")
    first.beat()
    second.beat()
    assert second.epoch == 3
    assert second.partitions == set()
    assert consumer_group(driver).members["b"].state is MemberState.UNRELEASED_PARTITIONS
    first.nudge()  # has to give up two partitions, and keeps its epoch
    assert first.epoch == 2
    assert len(first.partitions) == 2
    second.nudge()
    assert second.partitions == set(), "they are not free before they are reported as gone"
    first.beat()
    assert first.epoch == 3
    second.nudge()
    assert len(second.partitions) == 2
    assert not first.partitions & second.partitions
    assert consumer_group(driver).state == "Stable"


def test_names_of_topics_that_do_not_exist_are_waited_for() -> None:
    driver = consumer_driver(t=1)
    client = Client(driver, "a", topics=("t", "later"))
    settle(client)
    driver.topics.set("later", 2)
    client.nudge()
    assert client.epoch == 3
    assert client.partitions == {("t", 0), ("later", 0), ("later", 1)}


def test_more_partitions_and_deleted_topics_bring_another_epoch() -> None:
    driver = consumer_driver(t=1, u=1)
    client = Client(driver, "a", topics=("t", "u"))
    settle(client)
    driver.topics.set("t", 3)
    settle(client)
    assert client.partitions == all_of("t", 3) | {("u", 0)}
    driver.topics.set("t", 0)
    client.nudge()
    settle(client)
    assert client.partitions == {("u", 0)}
    driver.topics.set("t", 2)  # another topic with the same name
    client.nudge()
    settle(client)
    assert client.partitions == all_of("t", 2) | {("u", 0)}


def test_a_change_of_other_topics_changes_nothing() -> None:
    driver = consumer_driver(t=1)
    client = Client(driver, "a")
    client.beat()
    driver.topics.set("other", 4)
    assert client.nudge().member_epoch == 2


def test_the_assignment_interval_puts_the_next_assignment_off() -> None:
    driver = consumer_driver(t=2)
    driver.topics.settings = GroupSettings(assignment_interval_ms=1_000)
    first, second = Client(driver, "a"), Client(driver, "b")
    first.beat()
    driver.clock.advance(300)
    second.beat()
    group = consumer_group(driver)
    assert (group.epoch, group.assignment_epoch, second.epoch) == (3, 2, 2)
    assert group.state == "Assigning"
    driver.advance(699)
    assert group.assignment_epoch == 2
    driver.advance(1)
    assert group.assignment_epoch == 3
    settle(first, second)


def test_members_choose_the_assignor() -> None:
    driver = consumer_driver(t=4, u=4)
    clients = [Client(driver, name, topics=("t", "u"), assignor="range") for name in "ab"]
    settle(*clients)
    assert clients[0].partitions == {("t", 0), ("t", 1), ("u", 0), ("u", 1)}


# -- refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
        ({"member_id": "m" * 40_000}, "A name is too long."),
        (
            {"subscribed_topic_names": ["t" * MAX_SUBSCRIPTION_CHARACTERS, "u"]},
            f"SubscribedTopicNames must not have more than {MAX_SUBSCRIPTION_CHARACTERS} characters.",
        ),
    ],
)
def test_requests_that_make_no_sense(changes: dict[str, Any], message: str) -> None:
    client = Client(consumer_driver(t=1), "a")
    assert refusal(client.request(**changes), client) == (ErrorCode.INVALID_REQUEST, message)


def test_assignors_that_are_not_there() -> None:
    client = Client(consumer_driver(t=1), "a", assignor="mine")
    message = "ServerAssignor mine is not supported. Supported assignors: uniform, range."
    assert refusal(client.request(), client) == (ErrorCode.UNSUPPORTED_ASSIGNOR, message)


def test_groups_and_members_that_are_not_there() -> None:
    driver = consumer_driver(t=1)
    client = Client(driver, "a")
    assert client.error(epoch=1) is ErrorCode.GROUP_ID_NOT_FOUND
    assert client.error(epoch=-1) is ErrorCode.GROUP_ID_NOT_FOUND
    client.beat()
    other = Client(driver, "b")
    assert other.error(epoch=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert other.error(epoch=-1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert other.error(epoch=1, instance_id="i") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_has_room_for_so_many() -> None:
    driver = consumer_driver(t=1)
    driver.config.group_consumer_max_size = 1
    first, second = Client(driver, "a"), Client(driver, "b")
    first.beat()
    assert refusal(second.request(), second) == (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The consumer group has reached its maximum capacity of 1 members.",
    )
    first.beat()


def test_epochs_are_fenced_but_for_the_one_before() -> None:
    driver = consumer_driver(t=2)
    first, second = Client(driver, "a"), Client(driver, "b")
    settle(first, second)
    first.topics = ("t", "u")
    first.beat()
    assert (first.epoch, consumer_group(driver).members["a"].previous_epoch) == (4, 3)
    assert first.error(epoch=5) is ErrorCode.FENCED_MEMBER_EPOCH
    assert first.error(epoch=1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert first.error(epoch=3, topic_partitions=None) is ErrorCode.FENCED_MEMBER_EPOCH
    assert first.error(epoch=3) is ErrorCode.NONE, "the answer may have been lost"


def test_a_join_whose_answer_was_lost_is_answered_again() -> None:
    client = Client(consumer_driver(t=2), "a")
    client.beat()
    client.epoch, client.owned = 0, {}
    assert client.beat().member_epoch == 2
    assert client.partitions == all_of("t", 2)


def test_a_broker_may_have_the_protocol_switched_off() -> None:
    driver = consumer_driver(t=1)
    driver.config.group_coordinator_rebalance_protocols = ("classic",)
    assert Client(driver, "a").error() is ErrorCode.UNSUPPORTED_VERSION


# -- leaving --------------------------------------------------------------------------------------------------------------


def test_who_leaves_frees_its_partitions() -> None:
    driver = consumer_driver(t=4)
    first, second = Client(driver, "a"), Client(driver, "b")
    settle(first, second)
    first.leave()
    assert consumer_group(driver).state == "Assigning"
    second.nudge()
    assert second.partitions == all_of("t", 4)


def test_who_is_silent_is_out() -> None:
    driver = consumer_driver(t=4)
    first, second = Client(driver, "a"), Client(driver, "b")
    settle(first, second)
    driver.advance(44_000)
    second.nudge()
    driver.advance(2_000)
    assert set(consumer_group(driver).members) == {"b"}
    second.nudge()
    assert second.partitions == all_of("t", 4)


def test_who_does_not_give_up_in_time_is_out() -> None:
    driver = consumer_driver(t=4)
    first, second = Client(driver, "a", clings=True, rebalance_timeout_ms=10_000), Client(driver, "b")
    first.beat()
    second.beat()
    for _ in range(3):
        first.beat()
        assert first.epoch == 2
        driver.advance(3_000)
    second.nudge()
    assert second.partitions == set()
    driver.advance(2_000)
    assert set(consumer_group(driver).members) == {"b"}
    second.nudge()
    assert second.partitions == all_of("t", 4)


def test_a_deadline_whose_record_is_refused_comes_again() -> None:
    driver = consumer_driver(t=4)
    Client(driver, "a").beat()
    driver.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    driver.advance(46_000)
    assert set(consumer_group(driver).members) == {"a"}
    driver.refusal = None
    driver.advance(1_000)
    assert consumer_group(driver).is_empty


def test_a_refused_write_changes_nothing() -> None:
    driver = consumer_driver(t=4)
    first, second = Client(driver, "a"), Client(driver, "b")
    settle(first)
    driver.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    assert second.error() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.topics.set("t", 5)
    assert first.error() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.refusal = None
    assert set(consumer_group(driver).members) == {"a"}
    first.nudge()
    assert first.partitions == all_of("t", 5), "what could not be written is found again"


# -- static members -------------------------------------------------------------------------------------------------------


def test_a_static_member_that_comes_back_has_what_it_had() -> None:
    driver = consumer_driver(t=4)
    static, other = Client(driver, "a", instance_id="i"), Client(driver, "b")
    settle(static, other)
    had, epoch = static.partitions, static.epoch
    static.leave(LEAVE_STATIC)
    other.nudge()
    assert len(other.partitions) == 2
    back = Client(driver, "a2", instance_id="i")
    back.beat()
    assert back.partitions == had
    assert (back.epoch, consumer_group(driver).epoch) == (epoch, epoch)
    assert set(consumer_group(driver).members) == {"a2", "b"}


def test_a_static_member_may_come_back_under_its_own_id() -> None:
    driver = consumer_driver(t=2)
    static = Client(driver, "a", instance_id="i")
    settle(static)
    static.leave(LEAVE_STATIC)
    static.beat()
    assert static.partitions == all_of("t", 2)


def test_a_static_member_that_stays_away_is_out() -> None:
    driver = consumer_driver(t=4)
    static, other = Client(driver, "a", instance_id="i"), Client(driver, "b")
    settle(static, other)
    static.leave(LEAVE_STATIC)
    driver.advance(40_000)
    other.nudge()
    driver.advance(6_000)
    other.nudge()
    assert other.partitions == all_of("t", 4)


def test_a_member_that_joins_again_has_what_it_had() -> None:
    client = Client(consumer_driver(t=2), "a")
    settle(client)
    client.topics = ("t", "u")
    client.beat()
    client.epoch, client.owned = 0, {}
    assert client.beat().member_epoch == 3
    assert client.partitions == all_of("t", 2)


def test_a_member_of_a_new_group_may_read_nothing() -> None:
    client = Client(consumer_driver(t=2), "a", topics=())
    assert client.beat().member_epoch == 1
    assert consumer_group(client.driver).state == "Stable"


def test_an_instance_has_one_member_at_a_time() -> None:
    driver = consumer_driver(t=2)
    first, second = Client(driver, "a", instance_id="i"), Client(driver, "b", instance_id="i")
    first.beat()
    assert second.error() is ErrorCode.UNRELEASED_INSTANCE_ID
    assert second.error(epoch=1) is ErrorCode.FENCED_INSTANCE_ID
    first.leave(LEAVE_STATIC)
    second.beat()
    assert first.error(epoch=1) is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_leaves_for_good_frees_its_instance() -> None:
    driver = consumer_driver(t=2)
    first = Client(driver, "a", instance_id="i")
    first.beat()
    first.leave()
    assert consumer_group(driver).static_members == {}


# -- offsets --------------------------------------------------------------------------------------------------------------


def commit_error(client: Client, epoch: int, version: int = 9, member_id: str | None = None) -> ErrorCode:
    topics: TopicTable = client.driver.topics
    try:
        return client.driver.commit(
            1, client.member_id if member_id is None else member_id, epoch, version=version, topic_id=topics.topic_id("t")
        )
    except KafkaError as error:
        return error.code


def test_commits_have_to_know_the_epoch_or_the_partition() -> None:
    driver = consumer_driver(t=2)
    client = Client(driver, "a")
    settle(client)
    assert commit_error(client, 2) is ErrorCode.NONE
    assert commit_error(client, 2, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert commit_error(client, 3) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit_error(client, 2, member_id="b") is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_error(client, -1, member_id="") is ErrorCode.UNKNOWN_MEMBER_ID
    driver.topics.set("t", 3)
    client.nudge()
    assert client.epoch == 3
    assert commit_error(client, 2) is ErrorCode.NONE, "it has had the partition since epoch 2"
    assert commit_error(client, 1) is ErrorCode.STALE_MEMBER_EPOCH
    client.leave()
    assert commit_error(client, -1, member_id="") is ErrorCode.NONE


def test_offsets_are_told_to_who_knows_the_epoch() -> None:
    driver = consumer_driver(t=1)
    client = Client(driver, "a")
    settle(client)

    def fetch(member_id: str | None, epoch: int) -> ErrorCode:
        try:
            driver.shard.fetch_offsets(
                OffsetFetchRequestGroup(group_id=GROUP, member_id=member_id, member_epoch=epoch, topics=[])
            )
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    assert fetch(None, -1) is ErrorCode.NONE
    assert fetch("a", 2) is ErrorCode.NONE
    assert fetch("a", 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert fetch("b", 1) is ErrorCode.UNKNOWN_MEMBER_ID


# -- the log --------------------------------------------------------------------------------------------------------------


def test_members_go_on_after_a_restart() -> None:
    driver = consumer_driver(t=4)
    first, second = Client(driver, "a", instance_id="i"), Client(driver, "b", topics=None, regex="t|u")
    settle(first, second)
    first.topics = ("t", "u")
    first.beat()
    restarted = driver.restarted()
    first.driver = second.driver = restarted
    group = consumer_group(restarted)
    assert group.members == consumer_group(driver).members
    assert (group.epoch, group.target, group.expressions) == (4, consumer_group(driver).target, {"t|u": frozenset({"t"})})
    second.nudge()
    settle(first, second)
    restarted.advance(46_000)
    assert consumer_group(restarted).is_empty


def test_who_has_to_give_up_something_has_to_after_a_restart() -> None:
    driver = consumer_driver(t=2)
    first, second = Client(driver, "a", clings=True, rebalance_timeout_ms=5_000), Client(driver, "b")
    first.beat()
    second.beat()
    first.nudge()
    restarted = driver.restarted()
    restarted.advance(5_001)
    assert set(consumer_group(restarted).members) == {"b"}


def test_an_empty_group_may_be_deleted() -> None:
    driver = consumer_driver(t=2)
    client = Client(driver, "a", topics=None, regex="t")
    client.beat()
    with pytest.raises(KafkaError, match="NON_EMPTY_GROUP"):
        driver.shard.delete_group(GROUP)
    client.leave()
    driver.carry_out(driver.shard.delete_group(GROUP))
    assert GROUP not in driver.shard.groups
    assert GROUP not in driver.restarted().shard.groups


def test_an_empty_group_goes_with_its_last_offset() -> None:
    driver = consumer_driver(t=2)
    client = Client(driver, "a")
    client.beat()
    assert commit_error(client, 2) is ErrorCode.NONE
    client.leave()
    driver.advance(Config.offsets_retention_minutes * 60_000 + Config.offsets_retention_check_interval_ms)
    assert GROUP not in driver.shard.groups


def test_a_group_that_only_stores_offsets_becomes_one_of_consumers() -> None:
    driver = consumer_driver(t=2)
    driver.commit(5)
    assert isinstance(driver.shard.groups[GROUP], ClassicGroup)
    Client(driver, "a").beat()
    assert consumer_group(driver).state == "Stable"
    assert driver.fetch() == 5
    assert driver.restarted().fetch() == 5


def test_what_is_told_of_a_group() -> None:
    driver = consumer_driver(t=2)
    Client(driver, "a", instance_id="i", regex="x.*").beat()
    told = driver.shard.describe_consumers(GROUP)
    assert (told.group_state, told.group_epoch, told.assignment_epoch, told.assignor_name) == ("Stable", 2, 2, "uniform")
    (member,) = told.members
    assert (member.member_id, member.instance_id, member.member_epoch, member.member_type) == ("a", "i", 2, 1)
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (["t"], "x.*")
    assert member.assignment == member.target_assignment
    assert [(p.topic_name, p.partitions) for p in member.assignment.topic_partitions] == [("t", [0, 1])]
    with pytest.raises(KafkaError, match="Group g is not a classic group"):
        driver.shard.describe(GROUP)
