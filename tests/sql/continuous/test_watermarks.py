"""Views over tables with watermarks: the query over all rows that are not late, a state that forgets, and rows that are final."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.incremental.plan import Plan
from tests.incremental.flows import Follower
from tests.sql.continuous.timed import Stream, listed, opened, oracle, plan_of, shown

TUMBLE = "tumble(%s, at, INTERVAL '10 minutes')"
A, B = TUMBLE % "a", TUMBLE % "b"
WITHIN = "a.k = b.k AND a.at BETWEEN b.at - INTERVAL '7 minutes' AND b.at + INTERVAL '3 minutes'"
SESSION = "session(a, at, INTERVAL '5 minutes') PARTITION BY k"
COUNTED = f"(SELECT window_start, count(*) AS n FROM {A} AS a GROUP BY 1) p"
OTHERS = f"(SELECT window_start, count(*) AS m FROM {B} AS b GROUP BY 1) q"
QUERIES = {
    "tumble": f"SELECT window_start, k, count(*) AS n, max(x) AS m FROM {A} GROUP BY window_start, k",
    "hop": "SELECT window_start, window_end, count(*) AS n FROM hop(a, at, INTERVAL '5 minutes', INTERVAL '15 minutes') GROUP BY 1, 2",
    "struct": "SELECT window.end AS e, k, avg(x) AS v FROM a GROUP BY window(at, '10 minutes'), k",
    "struct hop": "SELECT window.start AS s, count(*) AS n FROM a GROUP BY window(at, '15 minutes', '5 minutes')",
    "trunc": "SELECT date_trunc('hour', at) AS h, k, count(*) AS n FROM a GROUP BY 1, 2",
    "bucket": "SELECT time_bucket(INTERVAL '20 minutes', at) AS h, min(x) AS n FROM a WHERE x > 1 GROUP BY 1",
    "time": "SELECT at, k, count(*) AS n FROM a GROUP BY at, k",
    "rows": "SELECT at, x + 1 AS x FROM a WHERE k = 'u'",
    "distinct": "SELECT DISTINCT date_trunc('day', at) AS d, k FROM a",
    "query": f"SELECT window_start, k, string_agg(x, ',' ORDER BY x) AS l FROM {A} GROUP BY window_start, k",
    "count distinct": f"SELECT window_start, count(DISTINCT x) AS n, count(DISTINCT k) AS m FROM {A} GROUP BY 1",
    "first": f"SELECT * FROM (SELECT window_start, k, x, at, row_number() OVER (PARTITION BY window_start, k ORDER BY at, x) AS place "
    f"FROM {A}) AS r WHERE place <= 2",
    "union": "SELECT date_trunc('hour', at) AS h, count(*) AS n FROM (SELECT at FROM a UNION ALL SELECT at FROM b) AS u GROUP BY 1",
    "within": f"SELECT a.at, a.k, x, y FROM a JOIN b ON {WITHIN}",
    "within 2": "SELECT b.at AS at, x, y FROM a, b WHERE a.k = b.k AND b.at >= a.at AND b.at < a.at + INTERVAL '10 minutes'",
    "within 3": "SELECT a.at AS one, b.at AS other FROM a JOIN b ON a.k = b.k AND a.at - b.at <= INTERVAL '5 minutes' "
    "AND a.at - b.at >= INTERVAL '-5 minutes'",
    "within grouped": f"SELECT date_trunc('hour', a.at) AS h, count(*) AS n FROM a JOIN b ON {WITHIN} GROUP BY 1",
    "left": f"SELECT a.at, a.k, x, y FROM a LEFT JOIN b ON {WITHIN}",
    "right": f"SELECT b.at, b.k, x, y FROM a RIGHT JOIN b ON {WITHIN}",
    "full": f"SELECT a.at, b.at AS other, x, y FROM a FULL JOIN b ON {WITHIN}",
    "exists": f"SELECT at, x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE {WITHIN})",
    "not exists": f"SELECT at, x FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE {WITHIN})",
    "in": f"SELECT window_start AS s, k, x FROM {A} AS a WHERE window_start IN (SELECT window_start FROM {B} AS b)",
    "pairs": f"SELECT window_start AS s, k, x FROM {A} AS a WHERE (window_start, k) IN (SELECT (window_start, k) FROM {B} AS b)",
    "windows joined": f"SELECT p.window_start AS s, p.n, q.m FROM {COUNTED} JOIN {OTHERS} ON p.window_start = q.window_start",
    "windows left joined": f"SELECT p.window_start AS s, p.n, q.m FROM {COUNTED} LEFT JOIN {OTHERS} USING (window_start)",
    "table": f"SELECT window_start, name, count(*) AS n FROM {A} AS a LEFT JOIN people USING (k) GROUP BY 1, 2",
    "sessions": f"SELECT k, window_start, window_end, count(*) AS n, max(x) AS m FROM {SESSION} AS a GROUP BY k, window_start, window_end",
    "rows of sessions": f"SELECT a.*, a.x + 1 AS y FROM {SESSION} AS a",
    "session of a group": "SELECT session_window.end AS e, sum(x) AS s FROM a GROUP BY session_window(at, '4 minutes')",
    "sessions joined": f"SELECT a.window_end AS e, x, y FROM {SESSION} AS a JOIN session(b, at, INTERVAL '5 minutes') AS b "
    "ON a.window_end = b.window_end",
    "all": "SELECT count(*) AS n, max(at) AS m FROM a",
    "all keys": "SELECT k, count(*) AS n FROM a JOIN b USING (k) GROUP BY k",
}
NEVER_FINAL = ("table", "all", "all keys", "full", "pairs")  # their rows may change whenever
FINAL = (
    "tumble", "struct hop", "rows", "first", "union", "within", "within 3", "left", "right", "in", "windows left joined", "sessions",
    "sessions joined",
)  # fmt: skip
BOUNDED = ("tumble", "struct hop", "query", "first", "within", "left", "not exists", "windows left joined", "sessions", "all")
THEN = st.sampled_from(("commit", "commit", "commit", "rollback", "reopen", "release"))
SEVERAL = ["commit", "reopen", "rollback", "commit", "release", "commit"]


def follow(plan: Plan, seed: int, then: Sequence[str], path: Path) -> None:
    """Compare a flow with the oracle after each step."""
    whole, flow, follower, stream = oracle(plan), opened(plan, path), Follower(plan), Stream(seed)
    is_released = False
    try:
        for each in then:
            inputs = stream.step(plan.tables)
            changes = flow.step(flow.position + 1, inputs)
            whole.step(whole.position + 1, inputs)
            assert flow.late() == whole.late()
            if each == "rollback":
                flow.rollback()
                whole.rollback()
            else:
                flow.commit()
                whole.commit()
                follower.take(changes)
            if each == "reopen":
                flow.close()
                flow = opened(plan, path)
            if each == "release":
                flow.release()
                is_released = True
            assert shown(follower, plan) == listed(whole.result(), plan)
            assert listed(flow.result(), plan) <= listed(whole.result(), plan)
            assert is_released or listed(flow.result(), plan) == listed(whole.result(), plan)
    finally:
        flow.close()
        whole.close()


@pytest.mark.parametrize("name", QUERIES)
def test_view_is_the_query_over_rows_in_time(name: str, tmp_path: Path) -> None:
    follow(plan_of(QUERIES[name]), 7, SEVERAL, tmp_path / "state")


@pytest.mark.parametrize("name", FINAL)
def test_final_rows_come_once(name: str, tmp_path: Path) -> None:
    plan = plan_of(QUERIES[name], is_final=True)
    assert plan.only_grows(len(plan.nodes) - 1)
    follow(plan, 8, SEVERAL, tmp_path / "state")


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(list(QUERIES)),
    seed=st.integers(0, 1 << 16),
    then=st.lists(THEN, min_size=4, max_size=9),
    final=st.booleans(),
)
def test_random_rows(name: str, seed: int, then: list[str], final: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        follow(plan_of(QUERIES[name], is_final=final and name not in NEVER_FINAL), seed, then, Path(folder) / "state")


@pytest.mark.parametrize("name", BOUNDED)
def test_state_is_bounded(name: str) -> None:
    plan, stream = plan_of(QUERIES[name]), Stream(1, minutes=60)
    flow = opened(plan)
    flow.step(0, {})
    flow.commit()
    flow.release()
    given_rows = most = 0
    for number in range(1, 16):
        inputs = stream.step(plan.tables, most=60)
        given_rows += sum(each.num_rows for each in inputs.values())
        flow.step(number, inputs)
        flow.commit()
        most = max(most, flow.size().rows)
    flow.close()
    assert most * 3 < given_rows, (most, given_rows)
