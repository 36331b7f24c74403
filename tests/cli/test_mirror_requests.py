"""Commands of mirror links wait for the right state; the brokers here only tell a status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest

from barnabas.cli.broker_connections import Brokers
from barnabas.cli.mirror_requests import wait_groups
from barnabas.mirror.status import LINK_STATUS, LinkStatus, encode
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)


class Telling:
    """A broker that tells how many rounds it has copied the offsets of groups: one number after the other, the last one for ever. None
    while it starts and has no link yet."""

    def __init__(self, rounds: Sequence[int | None]) -> None:
        self._rounds = list(rounds)

    def request(self, _: Any) -> DescribeConfigsResponse:
        told = self._rounds.pop(0) if len(self._rounds) > 1 else self._rounds[0]
        status = [] if told is None else [(LINK_STATUS, encode(LinkStatus(group_rounds=told)))]
        configs = [DescribeConfigsResourceResult(name=name, value=value) for name, value in status]
        return DescribeConfigsResponse(results=[DescribeConfigsResult(configs=configs)])


class Cluster:
    def __init__(self, *brokers: Sequence[int | None]) -> None:
        self._brokers = [Telling(rounds) for rounds in brokers]

    def __iter__(self) -> Iterator[tuple[int, Telling]]:
        return iter(enumerate(self._brokers))


@pytest.mark.parametrize(
    ("brokers", "has_groups"),
    [
        (([3, 4, 5], [7, 9]), True),
        (([3, 5], [-1]), True),  # the second copies no groups
        (([3, 5], [7, None, None, 9]), True),  # it starts again
        (([3, 5], [7, 8]), False),
        (([3, 5], [7, None]), False),
    ],
)
def test_each_broker_copies_the_offsets_of_groups_once_more(brokers: Sequence[Sequence[int | None]], has_groups: bool) -> None:
    assert wait_groups(cast(Brokers, Cluster(*brokers)), "eu", 0.5) is has_groups
