"""The cluster's answers to moves, as commands show them."""

from __future__ import annotations

import sys
from typing import Any, cast

import pytest

from barnabas.cli.errors import Failure
from barnabas.cli.moves import Layout, Manner, alter, carry_out, watch
from barnabas.cli.output import Output
from barnabas.cli.resources import Operation
from barnabas.cli.throttle import FOLLOWERS, LEADERS, RATES
from barnabas.cli.wire import Wire
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from barnabas.protocol.values import ResourceType


class Controller:
    """In the place of a `Wire`: answers each partition with `code`."""

    def __init__(self, code: ErrorCode) -> None:
        self._code = code
        self.asked: list[tuple[str, int]] = []

    def request(self, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
        responses = []
        for topic in request.topics:
            numbers = [each.partition_index for each in topic.partitions]
            self.asked += [(topic.name, number) for number in numbers]
            answers = [ReassignablePartitionResponse(partition_index=number, error_code=self._code) for number in numbers]
            responses.append(ReassignableTopicResponse(name=topic.name, partitions=answers))
        return AlterPartitionReassignmentsResponse(responses=responses)


def test_a_move_that_ended_before_it_could_be_taken_back_is_no_failure() -> None:
    controller = Controller(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    alter(cast(Wire, controller), {("t", 0): None, ("t", 1): None})
    assert controller.asked == [("t", 0), ("t", 1)]
    with pytest.raises(Failure, match="t-0 is refused: NO_REASSIGNMENT_IN_PROGRESS"):
        alter(cast(Wire, controller), {("t", 0): (1, 2)})


def test_another_refusal_of_taking_back_is_one() -> None:
    with pytest.raises(Failure, match="t-0 is refused: UNKNOWN_TOPIC_OR_PARTITION"):
        alter(cast(Wire, Controller(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)), {("t", 0): None})


class Moving:
    """In the place of a `Wire`: of partitions that are being moved one has arrived each time it is asked."""

    def __init__(self, partitions: int) -> None:
        self._left = partitions + 1

    def request(self, _: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
        self._left -= 1
        moving = [OngoingPartitionReassignment(partition_index=number) for number in range(self._left)]
        return ListPartitionReassignmentsResponse(topics=[OngoingTopicReassignment(name="t", partitions=moving)])


def test_who_watches_at_a_terminal_sees_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    watch(cast(Wire, Moving(2)), [("t", 0), ("t", 1)])
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "moving" in shown.err
    assert "100%" in shown.err


def test_nothing_is_shown_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    watch(cast(Wire, Moving(1)), [("t", 0)])
    assert capsys.readouterr() == ("", "")


class Cluster:
    """In the place of a `Wire`: keeps settings, and moves nothing."""

    def __init__(self, alive: set[int]) -> None:
        self._alive = alive
        self.settings: dict[tuple[int, str], dict[str, str | None]] = {}
        self.throttled_at_the_move: set[tuple[int, str]] = set()

    def to(self, _host: str, _port: int) -> Cluster:
        return self

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to close."""

    def request(self, request: object) -> Any:
        match request:
            case DescribeClusterRequest():
                return DescribeClusterResponse(brokers=[DescribeClusterBroker(broker_id=each) for each in self._alive])
            case ListPartitionReassignmentsRequest():
                return ListPartitionReassignmentsResponse()
            case AlterPartitionReassignmentsRequest():
                self.throttled_at_the_move = {where for where, settings in self.settings.items() if settings}
                return AlterPartitionReassignmentsResponse()
            case IncrementalAlterConfigsRequest(resources=[resource]):
                settings = self.settings.setdefault((resource.resource_type, resource.resource_name), {})
                for config in resource.configs:
                    if config.config_operation == Operation.SET:
                        settings[config.name] = config.value
                    else:
                        settings.pop(config.name, None)
                return IncrementalAlterConfigsResponse(responses=[AlterConfigsResourceResponse()])
            case DescribeConfigsRequest(resources=[resource]):
                settings = self.settings.get((resource.resource_type, resource.resource_name), {})
                configs = [
                    DescribeConfigsResourceResult(name=name, value=value, config_source=1) for name, value in settings.items()
                ]
                return DescribeConfigsResponse(results=[DescribeConfigsResult(configs=configs)])
        raise AssertionError(f"nobody asks this: {request}")


def move(cluster: Cluster, believed_alive: set[int]) -> None:
    """With a throttle, from brokers 1 and 3 to 1 and 2."""
    layout = Layout({("t", 0): (3, 1)}, dict.fromkeys(believed_alive), {})
    manner = Manner(only_plan=False, no_wait=True, throttle=1_000)
    carry_out(cast(Wire, cluster), Output(as_json=False), layout, {("t", 0): (2, 1)}, manner)


def test_a_dead_broker_is_left_out_of_the_throttle() -> None:
    cluster = Cluster({1, 2})
    move(cluster, {1, 2})
    rates = dict.fromkeys(RATES, "1000")
    assert cluster.settings == {
        (ResourceType.TOPIC, "t"): {LEADERS: "0:3,0:1", FOLLOWERS: "0:2"},
        (ResourceType.BROKER, "1"): rates,
        (ResourceType.BROKER, "2"): rates,
    }
    assert cluster.throttled_at_the_move == cluster.settings.keys()


def test_a_throttle_that_fails_on_the_way_is_taken_back() -> None:
    cluster = Cluster({1, 2})
    with pytest.raises(Failure, match="there is no broker 3"):
        move(cluster, {1, 2, 3})
    assert cluster.settings.keys() == {(ResourceType.TOPIC, "t"), (ResourceType.BROKER, "1"), (ResourceType.BROKER, "2")}
    assert not any(cluster.settings.values())
    assert not cluster.throttled_at_the_move
