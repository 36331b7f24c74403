"""The record of a sink."""

from __future__ import annotations

import pytest

from barnabas.client.transactions import Owner
from barnabas.pipelines.exactly_once.state import (
    MOST_QUERIES,
    Pending,
    SinkState,
    UnreadableState,
    extra_id,
    from_json,
    is_of_task,
    is_two_phase,
    ordinary_id,
    sink_id,
    slot_id,
    to_json,
)

PENDING = Pending("q", 4, {"barnabas-sink/s/2/0": Owner(7, 1), "barnabas-sink/s/2/1": Owner(8, 0)})


@pytest.mark.parametrize("state", [SinkState(), SinkState({"q": 3, "r": 0}), SinkState({"q": 3}, PENDING)])
def test_it_is_read_as_it_was_written(state: SinkState) -> None:
    assert from_json("s", to_json(state)) == state


@pytest.mark.parametrize("value", [b"", b"[]", b'{"format": 1}', b'{"format": 2}', b'{"format": 1, "decided": {"q": "x"}}'])
def test_what_nobody_wrote_is_told(value: bytes) -> None:
    with pytest.raises(UnreadableState, match="of the sink 's' cannot be read"):
        from_json("s", value)


def test_batches_are_in_when_they_are_settled() -> None:
    state = SinkState({"q": 3}).with_pending(PENDING)
    assert not state.has("q", 4)
    assert state.settled().has("q", 4)
    assert not state.settled().has("q", 3)
    assert not state.settled().has("r", 0)
    assert not state.given_up().has("q", 4)


def test_a_write_without_a_number_is_never_in() -> None:
    state = SinkState({"q": 3}).with_pending(Pending("", -1, {})).settled()
    assert state == SinkState({"q": 3})
    assert not state.has("", -1)


def test_old_queries_are_forgotten() -> None:
    state = SinkState()
    for number in range(3 * MOST_QUERIES):
        state = state.with_pending(Pending(f"q{number}", 0, {})).settled()
    assert len(state.decided) == MOST_QUERIES
    assert list(state.decided)[-1] == f"q{3 * MOST_QUERIES - 1}"


def test_ids_of_one_sink_are_not_those_of_another() -> None:
    for name in (slot_id("s", 1), extra_id("s", 1, "n"), ordinary_id("s", 1, "n")):
        assert is_of_task("s", name)
        assert not is_of_task("s2", name)
        assert not is_of_task("", name)
    assert not is_of_task("s", sink_id("s"))
    assert is_two_phase("s", slot_id("s", 1))
    assert not is_two_phase("s", ordinary_id("s", 1, "n"))
