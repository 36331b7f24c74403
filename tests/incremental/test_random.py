"""For random plans and rows, the result of the incremental flow is that of the whole query."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.incremental.interface import Flow, FlowError
from barnabas.incremental.plan import Plan
from barnabas.incremental.whole import WholeFlow
from tests.incremental.flows import Follower, lines, opened
from tests.incremental.plans import plans, steps

THEN = ("commit", "commit", "rollback", "reopen")
STEPS = st.lists(st.tuples(steps(), st.sampled_from(THEN)), min_size=1, max_size=6)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans(), several=STEPS)
def test_result_is_that_of_the_whole_query(plan: Plan, several: list[tuple[dict[str, pa.Table], str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        follow(plan, several, Path(folder) / "state.duckdb")


def follow(plan: Plan, several: list[tuple[dict[str, pa.Table], str]], path: Path) -> None:
    whole, flow, follower = WholeFlow(plan), opened(plan, path), Follower(plan)
    try:
        for inputs, then in several:
            changes = tried(flow, inputs)
            assert (tried(whole, inputs) is None) == (changes is None)
            if changes is None or then == "rollback":
                flow.rollback()
                whole.rollback()
            else:
                flow.commit()
                whole.commit()
                follower.take(changes)
            if then == "reopen":
                flow.close()
                flow = opened(plan, path)
            assert flow.position == whole.position
            assert lines(flow.result()) == lines(whole.result()) == follower.lines
    finally:
        flow.close()
        whole.close()


def tried(flow: Flow, inputs: dict[str, pa.Table]) -> pa.Table | None:
    """A step; None if it fails."""
    try:
        return flow.step(flow.position + 1, inputs)
    except FlowError:
        return None
