"""The simulated transactional producer: when it may take the last answer to an end for the outcome of its transaction."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.asynchronous import AsyncClient
from barnabas.errors import ErrorCode, KafkaError
from barnabas.testing.simulation.clients import client_config
from barnabas.testing.simulation.loop import World, new_loop
from barnabas.testing.simulation.transactions.late_requests import LateRequests
from barnabas.testing.simulation.transactions.producer import SECOND, Fenced, Lost, TransactionalProducer


class Answered(TransactionalProducer):
    """A producer whose coordinator gives these answers, one after the other."""

    answers: list[Exception]

    async def _coordinate(self, *_: Any) -> Any:
        raise self.answers.pop(0)


def refused(code: ErrorCode) -> Exception:
    return KafkaError(code)


@pytest.mark.parametrize(
    ("before", "is_sure"),
    [
        (None, True),
        (refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), True),
        (refused(ErrorCode.CONCURRENT_TRANSACTIONS), True),
        (refused(ErrorCode.NOT_COORDINATOR), False),  # a deposed coordinator may have written its decision
        (refused(ErrorCode.COORDINATOR_NOT_AVAILABLE), False),  # the decision was not committed in time
        (refused(ErrorCode.REQUEST_TIMED_OUT), False),
        (Lost(), False),
    ],
)
def test_a_fenced_end_is_the_outcome_where_no_earlier_request_may_have_ended_it(
    before: Exception | None, *, is_sure: bool
) -> None:
    world = World(0)
    errors: list[str] = []
    loop = new_loop(world, "writer", "writer", errors.append)
    producer = Answered(
        world,
        AsyncClient(client_config("broker:9092", "writer")),
        LateRequests(world, 0.0, errors.append),
        "writer",
        SECOND,
        timeout_ms=10_000,
        patience_s=10.0,
    )
    again = [] if before is None else [before, refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]
    producer.answers = [*again, refused(ErrorCode.PRODUCER_FENCED)]
    ending = loop.create_task(producer.end(commit=True))
    world.run_until(ending.done)
    assert isinstance(ending.exception(), Fenced)
    assert (producer.is_end_sure, errors) == (is_sure, [])
