"""Where a job is, and where its next step ends."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.engine.driver.position import Position, by_topic, note_of
from barnabas.engine.jobs import JobProgress
from barnabas.incremental.interface import FlowError


def at(first: int, second: int = 0) -> dict[str, Any]:
    return {"t": {"0": first, "1": second}, "#topicIds": {"t": "abc"}}


def progress(batch: int, first: int, second: int = 0) -> JobProgress:
    return JobProgress("v", 0, batch, {"t": {"0": first, "1": second}})


def test_a_step_ends_where_the_records_end_and_never_before_it_begins() -> None:
    position = Position(3, note_of(at(5, 7)), progress(3, 5, 7))
    assert position.ahead(at(5, 7)) is None
    assert position.ahead(at(4, 7)) is None, "a micro-batch that is repeated"
    assert position.ahead(at(6, 2)) == at(6, 7), "one partition of the job is before the query, and one behind it"
    assert position.is_at(at(5, 7))
    assert not position.is_at(at(5, 8))
    position.reach(at(6, 7))
    assert position.ahead(at(6, 7)) is None


def test_a_partition_that_was_added_is_ahead_also_without_records() -> None:
    position = Position(3, note_of({"t": {"0": 5}}), None)
    assert position.ahead({"t": {"0": 5, "1": 0}}) == {"t": {"0": 5, "1": 0}}


def test_a_step_that_only_the_topic_has_is_taken_again_as_it_was() -> None:
    position = Position(3, note_of(at(5)), progress(4, 9, 2))
    assert position.ahead(at(20, 20)) == at(9, 2)
    assert not position.is_at(at(5)), "the records of another micro-batch are others"
    position.reach(at(9, 2))
    assert position.ahead(at(20, 20)) == at(20, 20)


def test_a_state_of_an_earlier_version_is_where_its_progress_is() -> None:
    position = Position(3, "", progress(3, 5))
    assert position.offsets == {"t": {"0": 5, "1": 0}}
    for known in (None, progress(2, 4)):
        with pytest.raises(FlowError, match="the state does not say which offsets its step 3 has"):
            Position(3, "", known)


def test_a_state_that_was_set_back_is_refused() -> None:
    with pytest.raises(FlowError, match="the topic has the rows of step 5, and the state ends with step 3"):
        Position(3, note_of(at(5)), progress(5, 9))


def test_a_state_without_a_step_begins_where_the_caller_says() -> None:
    position = Position(0, "", None)
    assert position.offsets is None
    position.begin(at(1))
    assert position.ahead(at(2)) == at(2)
    assert by_topic(at(2)) == {"t": {0: 2, 1: 0}}
