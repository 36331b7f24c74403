"""What the controller answers to moves, for who asked for them."""

from __future__ import annotations

from typing import cast

import pytest

from barnabas.cli.errors import Failure
from barnabas.cli.moves import alter
from barnabas.cli.wire import Wire
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


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
