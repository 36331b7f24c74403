"""Rows that jobs append: those of each step are what DuckDB makes of the rows of its streams and of whole tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from barnabas.incremental.append_only import reason_against
from barnabas.incremental.appending import AppendFlow, open_appending
from barnabas.incremental.flow import open_flow
from barnabas.incremental.interface import DELETED, KEY, FlowError
from barnabas.incremental.macros import MACROS
from barnabas.incremental.plan import Plan, decode, encode
from barnabas.sql.continuous.planned import Planned, plan_appends
from barnabas.sql.duck.types import with_marks
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.query import QueryPlan
from tests.sql.continuous.harness import CURSOR, MEMORY, Row, Rows, lines, queried, table

TABLES = {
    "clicks": table("clicks", "id int, k text, n bigint, tags int[], at timestamp"),
    "orders": table("orders", "id int, k text, n bigint", "id"),
    "names": table("names", "k text, name text", "k"),
    "log": table("log", "k text, n bigint"),
}
QUERIES = [
    "select id, n * 2 as twice from stream clicks where n > 2",
    "select * from stream orders",
    "select k, count from (select k, n as count from stream(orders) where n is not null) as o where count < 5",
    "select c.id, tag from stream clicks as c, unnest(c.tags) as t(tag)",
    "select c.id, tag from stream clicks as c left join unnest(c.tags) as t(tag) on true",
    "select id, k from stream clicks union all select id, k from stream orders where n > 1",
    "with few as (select * from stream clicks where n < 3) select id from few union all select n from few",
    "select c.id, c.k, names.name from stream clicks as c join names on c.k = names.k",
    "select c.id, names.name from stream clicks as c left join names using (k)",
    "select c.id, names.name from names right join stream clicks as c on c.k = names.k and name <> 'a'",
    "select o.id, l.n from stream orders as o join log as l on o.k = l.k where l.n > o.n",
    "select o.id, l.n from stream orders as o left join log as l on o.k = l.k and l.n > o.n",
    "select c.id, t.most from stream clicks as c join (select k, max(n) as most from log group by k) as t on c.k = t.k",
    "select id, n - (select avg(n) from log) as more from stream clicks",
    "select id, (select name from names where names.k = c.k) as name from stream clicks as c",
    "select id from stream clicks where k in (select k from names)",
    "select id from stream clicks as c where not exists (select 1 from names where names.k = c.k)",
    "select c.id, names.name, l.n from stream clicks as c left join names using (k) left join log as l on l.k = c.k",
    "select o.id, now.n from stream orders as o left join orders as now on o.id = now.id",
    "select c.id, names.name from stream clicks as c, names",
    "select c.id, v.x from stream clicks as c join (values (1, 'x'), (2, 'y')) as v(i, x) on c.n = v.i",
    "select c.id, r.k from stream clicks as c join (select k, row_number() over (order by k) as place from names) as r on r.place = c.n",
    "select id, window_start from tumble(stream(clicks), at, interval '10 minutes')",
    "select _partition, _offset, _timestamp, id from stream clicks",
]
REFUSED = {
    "select count(*) from stream clicks": "an aggregate of a stream",
    "select k, sum(n) from stream clicks group by k": "an aggregate of a stream",
    "select distinct k from stream clicks": "DISTINCT over a stream",
    "select id from stream clicks union select id from stream orders": "DISTINCT over a stream",
    "select id, row_number() over (order by id) from stream clicks": "a window function",
    "select id from stream clicks order by id limit 3": "a window function, an order, a limit",
    "select c.id from stream clicks as c join stream orders as o on c.id = o.id": "two streams are joined",
    "select id from stream clicks union all select id from orders": "a stream and a table are combined",
    "select names.k, c.id from names left join stream clicks as c on c.k = names.k": "a job cannot append",
    "select names.k, c.id from names full join stream clicks as c on c.k = names.k": "a job cannot append",
    "select k from stream clicks except select k from names": "a window function",
    "select k from names where k not in (select k from stream clicks)": "a job cannot append",
    "select id from stream clicks where n > (select avg(n) from stream clicks)": "a job cannot append",
    "select id from orders": "it reads no stream",
    "select id, now() from stream clicks": "a job cannot call now",
    "select id, random() from stream clicks": "a job cannot call random",
}


def planned(text: str) -> tuple[QueryPlan, Planned]:
    query = queried(text, TABLES)
    return query, plan_appends(query, CURSOR.cursor())


def given(found: Planned, steps: dict[str, list[Row]]) -> dict[str, pa.Table]:
    """The rows of a step, as a job gives them."""
    inputs = {}
    for name, node in found.plan.tables.items():
        relation = found.tables[name]
        rows = steps.get(getattr(relation, "source", name), [])
        if node.is_stream:
            rows = [each for each in rows if not each[DELETED]]
        fields = {each.name: each for each in (*relation.columns, *relation.hidden)}
        schema = with_marks(pa.schema([fields[each.name].with_nullable(True) for each in node.columns]))
        if node.is_keyed:
            schema = schema.append(pa.field(KEY, pa.binary())).append(pa.field(DELETED, pa.bool_()))
        if rows:
            inputs[name] = pa.Table.from_pylist([{each: row.get(each) for each in schema.names} for row in rows], schema)
    return inputs


def expected(query: QueryPlan, rows: Rows, step: dict[str, list[Row]]) -> object:
    """The rows that DuckDB makes of the rows of the streams in this step, and of all rows of the tables."""
    cursor = CURSOR.cursor()
    try:
        for each in query.inputs:
            schema = with_marks(pa.schema([one.with_nullable(True) for one in each.schema]))
            source = getattr(each.relation, "source", each.relation.name)
            is_stream = getattr(each.relation, "is_stream", False)
            every = [row for row in step.get(source, []) if not row[DELETED]] if is_stream else rows.rows[source].values()
            cursor.register(
                each.alias, pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in every], schema)
            )
        found = cursor.sql(query.sql).to_arrow_table()
        return lines(found.rename_columns([str(place) for place in range(found.num_columns)]))
    finally:
        cursor.close()


@pytest.mark.parametrize("text", QUERIES)
def test_the_rows_of_each_step_are_those_of_the_query(text: str) -> None:
    query, found = planned(text)
    plan = decode(encode(found.plan))
    rows = Rows(TABLES, 7)
    flow = open_appending(plan, None, MEMORY, 2, [MACROS])
    try:
        begun = rows.step(["names", "log", "orders"])
        flow.begin(
            [given(found, {"names": begun.get("names", []), "log": []}), _tables_only(found, begun, "log", "orders")], "here"
        )
        for number in range(1, 7):
            step = rows.step(list(TABLES))
            made = flow.step(number, given(found, step))
            flow.commit()
            mine = lines(made.rename_columns([str(place) for place in range(made.num_columns)]))
            assert mine == expected(query, rows, step), f"step {number}"
        assert flow.begun == "here"
    finally:
        flow.close()


def _tables_only(found: Planned, rows: dict[str, list[Row]], *names: str) -> dict[str, pa.Table]:
    made = given(found, {name: rows.get(name, []) for name in names})
    return {name: each for name, each in made.items() if not found.plan.tables[name].is_stream}


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_what_could_take_a_row_back_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SqlError, match=reason) as caught:
        planned(text)
    assert caught.value.sqlstate == "0A000"


def test_rows_keep_the_order_of_the_stream() -> None:
    _, found = planned("select c.id, names.name from stream clicks as c left join names using (k) where n > 0")
    flow = open_appending(found.plan, None, MEMORY, 2, [MACROS])
    names = pa.table({"k": ["a", "b"], "name": ["A", "B"], KEY: [b"a", b"b"], DELETED: [False, False]})
    flow.begin([{"names": names.select(["k", "name", KEY, DELETED])}], "")
    ids = [(each * 7_919) % 30_011 for each in range(30_011)]
    fields = found.plan.tables["STREAM(clicks)"].columns
    every = pa.table({"id": pa.array(ids, pa.int32()), "k": ["abc"[each % 3] for each in ids], "n": [1] * len(ids)})
    made = flow.step(1, {"STREAM(clicks)": every.select([each.name for each in fields])})
    flow.commit()
    assert made.column("id").to_pylist() == ids
    assert flow.size().rows < 10, "the rows of the stream are not kept"
    flow.close()


def test_a_micro_batch_makes_so_many_rows_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.incremental.appending.MAX_JOB_APPENDED_ROWS", 100)
    _, found = planned("select n from stream clicks, unnest(range(n)) as r(x)")
    flow = open_appending(found.plan, None, MEMORY, 1, [MACROS])
    flow.begin([], "")
    clicks = [pa.table({"n": pa.array([n], pa.int64())}) for n in (100, 101)]
    assert flow.step(1, {"STREAM(clicks)": clicks[0]}).num_rows == 100
    flow.commit()
    with pytest.raises(FlowError, match="MAX_JOB_APPENDED_ROWS"):
        flow.step(2, {"STREAM(clicks)": clicks[1]})
    assert flow.position == 1
    flow.close()


def test_a_state_that_was_begun_goes_on(tmp_path: Path) -> None:
    _, found = planned("select c.id, names.name from stream clicks as c join names using (k)")
    path = tmp_path / "state.duckdb"
    names = pa.table({"k": ["a"], "name": ["A"], KEY: [b"a"], DELETED: [False]})
    flow = open_appending(found.plan, path, MEMORY, 1, [MACROS])
    assert (flow.position, flow.begun) == (-1, None)
    with pytest.raises(FlowError):
        flow.begin([{"names": names}, {"names": names.drop_columns(["name"])}], "lost")
    flow.close()
    flow = open_appending(found.plan, path, MEMORY, 1, [MACROS])
    assert (flow.position, flow.begun) == (-1, None)
    flow.begin([{"names": names}], "begun")
    flow.close()
    flow = open_appending(found.plan, path, MEMORY, 1, [MACROS])
    assert (flow.position, flow.begun) == (0, "begun")
    fields = [each.name for each in found.plan.tables["STREAM(clicks)"].columns]
    click = pa.table({"id": pa.array([1], pa.int32()), "k": ["a"]}).select(fields)
    for _ in range(2):  # a step that was not committed can be taken again
        assert flow.step(1, {"STREAM(clicks)": click}).to_pylist() == [{"id": 1, "name": "A"}]
    flow.rollback()
    assert flow.position == 0
    flow.close()


def test_other_plans_are_no_flow_that_appends() -> None:
    _, found = planned("select id from stream clicks")
    assert reason_against(found.plan) is None
    other = Plan(tuple(each for each in found.plan.nodes[:1]))
    assert isinstance(open_appending(other, None, MEMORY, 1), AppendFlow)
    view = open_flow(found.plan, None, MEMORY, 1, [MACROS])
    assert view.plan.tables["STREAM(clicks)"].is_stream
    view.close()
