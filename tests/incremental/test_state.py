"""The state of a flow: its file, its limits, and the plans and files that it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

from barnabas import limits
from barnabas.incremental import groups
from barnabas.incremental.flow import open_flow
from barnabas.incremental.interface import FlowError
from barnabas.incremental.plan import Groups, Plan, Rows, Sum, Sums
from barnabas.incremental.whole import WholeFlow
from tests.incremental.flows import MEMORY, lines, opened, stepped
from tests.incremental.test_conformance import BIDS, JOINED, PEOPLE, bids, named, people, planned, values

PLAN = planned(PEOPLE, BIDS, JOINED, key=None)
OUTER = planned(
    PEOPLE, BIDS, Groups((0, 1), (("id",), ("id",)), "SELECT * FROM input_0 SEMI JOIN input_1 USING (id)", PEOPLE.columns)
)
BEST = (Sum("best", "VARCHAR", "max", "name"),)
SHRINKING = planned(PEOPLE, Sums(0, (named("id", "INTEGER"),), BEST, (named("id", "INTEGER"), named("best", "VARCHAR"))))


def test_reopened_state_goes_on(tmp_path: Path) -> None:
    flow = opened(PLAN, tmp_path / "state")
    stepped(flow, people((b"1", 1, "a")))
    flow.step(1, bids((1, 5)))
    flow.close()
    flow = opened(PLAN, tmp_path / "state")
    assert (flow.plan, flow.position) == (PLAN, 0)
    stepped(flow, bids((1, 6)))
    assert values(flow.result()) == [(1, "a", 6)]
    flow.close()
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


def test_state_of_another_plan(tmp_path: Path) -> None:
    opened(PLAN, tmp_path / "state").close()
    with pytest.raises(FlowError, match="the state was made by another plan"):
        opened(planned(PEOPLE), tmp_path / "state")
    opened(PLAN, tmp_path / "state").close()


def test_state_that_is_open_already(tmp_path: Path) -> None:
    flow = opened(PLAN, tmp_path / "state")
    with pytest.raises(FlowError):
        opened(PLAN, tmp_path / "state")
    stepped(flow, people((b"1", 1, "a")))
    flow.close()


@pytest.mark.parametrize("plan", [PLAN, OUTER, SHRINKING, planned(PEOPLE)], ids=["join", "groups", "sums", "keyed"])
def test_another_duckdb_computes_the_hashes_anew(tmp_path: Path, plan: Plan) -> None:
    flow, whole = opened(plan, tmp_path / "state"), WholeFlow(plan)
    inputs = {**people((b"1", 1, "a"), (b"2", 2, "b"), (b"n", None, "n")), **bids((1, 5), (1, 6), (2, 7))}
    stepped(flow, inputs)
    stepped(whole, inputs)
    database = flow._database
    database.run("UPDATE state.flow SET version = '1.0.0'")
    hashes = "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = 'state' AND data_type = 'UBIGINT'"
    for row in database.table(hashes).to_pylist():
        database.run(f"UPDATE state.{row['table_name']} SET {row['column_name']} = 7")
    flow.close()
    flow = opened(plan, tmp_path / "state")
    inputs = {**people((b"1", 1, "A"), b"2"), **bids((1, 8))}
    stepped(flow, inputs)
    stepped(whole, inputs)
    assert lines(flow.result()) == lines(whole.result())
    assert flow._database.one("SELECT version FROM state.flow") == (duckdb.__version__,)
    flow.close()


def test_file_that_is_no_state(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(os.urandom(100_000))
    with pytest.raises(FlowError, match="not a valid DuckDB database file"):
        opened(PLAN, tmp_path / "state")
    duckdb.connect(tmp_path / "other").close()
    opened(PLAN, tmp_path / "other").close()


def test_path_with_a_quotation_mark(tmp_path: Path) -> None:
    opened(PLAN, tmp_path / "it's").close()
    assert (tmp_path / "it's").exists()


def test_functions_are_defined_at_each_start(tmp_path: Path) -> None:
    plan = planned(PEOPLE, Rows(0, (named("id", "INTEGER", "twice(id)"),)))
    for number in range(2):
        flow = open_flow(plan, tmp_path / "state", MEMORY, 1, ["CREATE MACRO twice(a) AS 2 * a"])
        stepped(flow, people((b"%d" % number, number, "a")))
        flow.close()
    with pytest.raises(FlowError):
        stepped(opened(plan, tmp_path / "state"), people((b"9", 9, "a")))


@pytest.mark.parametrize(
    "source", ["input_0, read_csv('/etc/passwd')", "input_0, '/etc/passwd'", "input_0, pytest", "input_0, people"]
)
def test_plan_reads_its_inputs_alone(source: str) -> None:
    flow = opened(planned(PEOPLE, Rows(0, (named("id", "INTEGER"),), None, source)))
    with pytest.raises(FlowError):
        flow.step(0, people((b"1", 1, "a")))
    flow.close()


def test_files_stay_out_of_reach() -> None:
    flow = opened(PLAN)
    with pytest.raises(FlowError, match="Cannot enable external access"):
        flow._database.run("SET enable_external_access = true")
    flow.close()


def test_table_without_a_column_of_the_plan() -> None:
    flow = opened(PLAN)
    rows = people((b"1", 1, "a"))["people"]
    with pytest.raises(FlowError, match="table 'people' has no column 'name'"):
        flow.step(0, {"people": rows.drop_columns("name")})
    flow.close()


def test_query_without_keys_reads_max_view_recomputed_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.MAX_VIEW_RECOMPUTED_ROWS == 1_000_000
    monkeypatch.setattr(groups, "MAX_VIEW_RECOMPUTED_ROWS", 2)
    flow = opened(planned(BIDS, Groups((0,), ((),), "SELECT * FROM input_0 ORDER BY id LIMIT 1", BIDS.columns)))
    stepped(flow, bids((1, 5), (2, 6)))
    with pytest.raises(FlowError, match=r"MAX_VIEW_RECOMPUTED_ROWS \(2\)"):
        flow.step(1, bids((3, 7)))
    assert values(flow.result()) == [(1, 5)]
    flow.close()


def test_memory_is_bounded(tmp_path: Path) -> None:
    many = Rows(
        0,
        (named("id", "INTEGER", "id + x"), named("name", "VARCHAR", "repeat(name, 100) || x")),
        None,
        "input_0, range(300000) AS t(x)",
    )
    flow = open_flow(planned(PEOPLE, many), tmp_path / "state", 100 << 20, 2)
    stepped(flow, people((b"1", 1, "abcd")))
    size = flow.size()
    assert size.rows == 300_002
    assert flow._database.one("SELECT sum(memory_usage_bytes) FROM duckdb_memory()")[0] <= 100 << 20
    flow.close()


def test_size_counts_the_rows_of_all_nodes(tmp_path: Path) -> None:
    flow = opened(PLAN, tmp_path / "state")
    empty = flow.size()
    stepped(flow, {**people((b"1", 1, "a")), **bids((1, 5), (2, 6))})
    size = flow.size()
    assert size.rows - empty.rows == 1 + 2 + 1
    assert size.size > (tmp_path / "state").stat().st_size > 0
    flow.close()
