"""Two streams that are joined within a time: the rows that a job appends are DuckDB's join over the records of the log that came in time,
each once, whatever restarts in between; and the state forgets."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from barnabas.incremental.appending import AppendFlow, open_appending
from barnabas.incremental.macros import MACROS
from barnabas.incremental.plan import Plan, decode, encode
from barnabas.sql.continuous.planned import plan_appends
from barnabas.sql.interface import SqlError
from tests.sql.continuous.harness import CURSOR, MEMORY, queried
from tests.sql.continuous.timed import EPOCH, TABLES, Stream

WITHIN = "a.k = b.k AND a.at BETWEEN b.at - INTERVAL '7 minutes' AND b.at + INTERVAL '3 minutes'"
QUERIES = {
    "inner": f"SELECT a.at, a.k, x, y FROM a JOIN b ON {WITHIN}",
    "left": f"SELECT a.at, a.k, x, y FROM a LEFT JOIN b ON {WITHIN}",
    "right": f"SELECT b.at, b.k, x, y FROM a RIGHT JOIN b ON {WITHIN}",
    "full": f"SELECT a.at AS one, b.at AS other, a.k, b.k AS j, x, y FROM a FULL JOIN b ON {WITHIN}",
    "where": f"SELECT a.at, x + y AS z FROM a JOIN b ON {WITHIN} WHERE x > 1 AND y < x",
    "comma": "SELECT b.at, x, y FROM a , b WHERE a.k = b.k AND b.at >= a.at AND b.at < a.at + INTERVAL '10 minutes'",
    "filtered": f"SELECT a.at, x, y FROM (SELECT * FROM a WHERE x > 1) AS a LEFT JOIN b ON {WITHIN} AND y > 1",
    "with itself": "SELECT a.at, a.x, b.x AS y FROM a JOIN a AS b ON a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL '2 minutes'",
}
DELAYS = {"a": dt.timedelta(minutes=10), "b": dt.timedelta(minutes=5)}  # of the watermarks
END = EPOCH + dt.timedelta(days=30)  # later than all: then no row waits for a partner
REFUSED = {
    "SELECT a.at FROM STREAM a JOIN STREAM b ON a.k = b.k": "without a bound of time",
    "SELECT a.at FROM STREAM a LEFT JOIN STREAM b ON a.k = b.k": "without a bound of time",
    "SELECT a.at FROM STREAM a JOIN STREAM b ON a.k = b.k AND a.at > b.at": "without a bound of time",
    f"SELECT a.at FROM STREAM a JOIN STREAM plain b ON {WITHIN}": "without a bound of time",
    f"SELECT a.at FROM STREAM a JOIN people p ON p.k = a.k JOIN STREAM b ON {WITHIN}": "a table is joined with one stream before another",
    f"SELECT a.at FROM STREAM a JOIN STREAM b ON {WITHIN} UNION ALL SELECT at FROM STREAM a": "in a join of streams, and beside it",
}
Row = dict[str, Any]


def streaming(text: str) -> str:
    """The query over streams."""
    for name in ("a", "b"):
        for word in ("FROM", "JOIN", ","):
            text = text.replace(f"{word} {name} ", f"{word} STREAM {name} ")
    return text


def planned(text: str) -> Plan:
    return decode(encode(plan_appends(queried(text, TABLES), CURSOR.cursor()).plan))


class Log:
    """The rows that came in time, by stream."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {"a": [], "b": []}
        self._marks: dict[str, dt.datetime] = {}

    def add(self, name: str, rows: Sequence[Row]) -> None:
        """The rows of a step; those behind the watermark of the steps before do not count."""
        mark = self._marks.get(name)
        kept = [each for each in rows if each["at"] is not None and (mark is None or each["at"] >= mark)]
        self.rows[name] += kept
        times = [each["at"] - DELAYS[name] for each in kept]
        if times:
            self._marks[name] = max([*times, *([] if mark is None else [mark])])

    def joined(self, text: str) -> Counter[str]:
        """The query over all of it, by DuckDB."""
        with duckdb.connect() as connection:
            for name in self.rows:
                schema = schema_of(name)
                rows = [{each: row[each] for each in schema.names} for row in self.rows[name]]
                connection.register(name, pa.Table.from_pylist(rows, schema))
            return told(connection.sql(text).to_arrow_table())


def schema_of(name: str) -> pa.Schema:
    """Of the rows of a stream."""
    kinds: dict[str, pa.DataType] = {"at": pa.timestamp("us"), "k": pa.string(), "x" if name == "a" else "y": pa.int64()}
    return pa.schema(kinds)


def told(rows: pa.Table) -> Counter[str]:
    """Rows as text, with times in UTC."""
    times = [each.name for each in rows.schema if pa.types.is_timestamp(each.type)]
    for name in times:
        rows = rows.set_column(rows.schema.get_field_index(name), name, rows.column(name).cast(pa.timestamp("us")))
    return Counter(repr(list(row.values())) for row in rows.to_pylist())


def opened(plan: Plan, path: Path) -> AppendFlow:
    return open_appending(plan, path, MEMORY, 1, [MACROS])


def inputs_of(plan: Plan, rows: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The rows of a step by the names of the streams."""
    return {
        name: rows[name[7:-1]].select([each.name for each in node.columns])
        for name, node in plan.tables.items()
        if name[7:-1] in rows
    }


class Whole:
    """The tables of `Stream` with all of their columns."""

    is_keyed = False

    def __init__(self, name: str) -> None:
        self.columns = [each for each in TABLES[name].columns if each.name in ("at", "k", "x", "y")]


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("name", QUERIES)
def test_each_pair_comes_once_and_rows_without_a_partner_when_they_get_none_any_more(
    name: str, seed: int, tmp_path: Path
) -> None:
    plan, log, stream = planned(streaming(QUERIES[name])), Log(), Stream(seed)
    made = Counter[str]()
    flow = opened(plan, tmp_path / "state")
    flow.begin([], "")
    for number in range(1, 14):
        rows = stream.step({each: Whole(each) for each in log.rows}, most=8)
        if number == 13:
            last = {"at": END, "k": "last", "x": 0, "y": 0}
            rows = {each: pa.Table.from_pylist([last], schema_of(each)) for each in log.rows}
        inputs = inputs_of(plan, rows)
        if number % 3 == 0:  # a process that dies takes the step again
            flow.step(number, inputs)
            flow.rollback()
        if number % 4 == 0:
            flow.step(number, inputs)
            flow.close()
            flow = opened(plan, tmp_path / "state")
        made += told(flow.step(number, inputs))
        flow.commit()
        for each, table in rows.items():
            log.add(each, table.cast(schema_of(each)).to_pylist())
        if name in ("inner", "where", "comma"):
            assert made == log.joined(QUERIES[name]), f"step {number}: pairs come at once"
    flow.step(14, {})
    flow.commit()
    flow.close()
    expected = log.joined(QUERIES[name])
    assert sum(expected.values()) > 4
    missing = {each for each in expected - made if "last" not in each and "2024, 1, 31" not in each}
    assert not missing
    assert not made - expected


def test_the_state_forgets_rows_behind_the_watermarks(tmp_path: Path) -> None:
    plan, stream = planned(streaming(QUERIES["full"])), Stream(1, minutes=60)
    flow = opened(plan, tmp_path / "state")
    flow.begin([], "")
    came = most = 0
    for number in range(1, 16):
        rows = stream.step({each: Whole(each) for each in "ab"}, most=60)
        came += sum(each.num_rows for each in rows.values())
        flow.step(number, inputs_of(plan, rows))
        flow.commit()
        most = max(most, flow.size().rows)
    assert flow.late() > 0
    flow.close()
    assert most * 2 < came, (most, came)


def test_joined_streams_meet_a_table_as_one_stream_does(tmp_path: Path) -> None:
    plan = planned(f"SELECT a.at, x, y, name FROM STREAM a JOIN STREAM b ON {WITHIN} LEFT JOIN people AS p ON a.k = p.k")
    flow = opened(plan, tmp_path / "state")
    flow.begin([], "")
    at = EPOCH + dt.timedelta(minutes=1)

    def step(number: int, **rows: Sequence[Row]) -> list[Row]:
        inputs = {}
        for name, node in plan.tables.items():
            given = rows.get(name.removeprefix("STREAM(").removesuffix(")"))
            if given:
                kinds: dict[str, pa.DataType] = {"at": pa.timestamp("us"), "k": pa.string(), "name": pa.string()}
                fields = {each.name: kinds.get(each.name, pa.int64()) for each in node.columns}
                schema = pa.schema(fields | ({"_key": pa.binary(), "_deleted": pa.bool_()} if node.is_keyed else {}))
                inputs[name] = pa.Table.from_pylist([{each: row.get(each) for each in schema.names} for row in given], schema)
        made = flow.step(number, inputs)
        flow.commit()
        return [{each: row[each] for each in ("x", "y", "name")} for row in made.to_pylist()]

    assert step(1, a=[{"at": at, "k": "u", "x": 1}]) == []
    assert step(2, b=[{"at": at, "k": "u", "y": 2}]) == [{"x": 1, "y": 2, "name": None}]
    assert step(3, people=[{"k": "u", "name": "Ann", "_key": b"u", "_deleted": False}]) == []
    assert step(4, b=[{"at": at, "k": "u", "y": 3}]) == [{"x": 1, "y": 3, "name": "Ann"}]
    flow.close()


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_joins_whose_rows_would_wait_for_ever_are_refused(text: str, reason: str) -> None:
    with pytest.raises(SqlError, match=reason) as caught:
        planned(text)
    assert caught.value.sqlstate == "0A000"
    if "bound" in reason:
        assert "INTERVAL" in str(caught.value.hint)
        assert "WATERMARK" in str(caught.value.hint)
