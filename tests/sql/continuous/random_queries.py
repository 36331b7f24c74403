"""Random queries. Every relation has the columns k, v and s of one type each, so that any can stand in any place."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.sql.continuous.harness import table

TABLES = {
    each.name: each
    for each in (
        table("a", "id bigint, k int, v bigint, s text", "id"),
        table("b", "id bigint, k int not null, v bigint, s text", "id"),
        table("c", "k int, v bigint, s text"),
    )
}
COLUMNS = "k, v, s"
PREDICATES = [
    "{0}.k > 1",
    "{0}.v IS NOT NULL",
    "{0}.s IN ('a', 'b')",
    "{0}.k < {0}.v OR {0}.s = 'a'",
    "NOT {0}.k = 2",
    "{0}.v BETWEEN 1 AND 4",
]
EXPRESSIONS = [
    "{0}.k, {0}.v, {0}.s", "{0}.k + 1 AS k, {0}.v, upper({0}.s) AS s", "{0}.k, {0}.v * 2 AS v, coalesce({0}.s, 'none') AS s",
    "({0}.v % 3)::INTEGER AS k, {0}.k::BIGINT AS v, {0}.s", "CASE WHEN {0}.v > 2 THEN {0}.k END AS k, {0}.v, {0}.s",
]  # fmt: skip
ON = [
    "{0}.k = {1}.k",
    "{0}.k = {1}.k AND {0}.s = {1}.s",
    "{0}.v = {1}.k",
    "{0}.k = {1}.k AND {0}.v < {1}.v",
    "{0}.k IS NOT DISTINCT FROM {1}.k",
    "{0}.v < {1}.v",
]
BOTH = ["{0}.k, {1}.v, {0}.s", "coalesce({0}.k, {1}.k) AS k, {0}.v, {1}.s", "{1}.k, {0}.v + 1 AS v, concat({0}.s, {1}.s) AS s"]
GROUPS = [
    "SELECT k, count(*) AS v, max(s) AS s FROM {0} GROUP BY k",
    "SELECT k, sum(v)::BIGINT AS v, s FROM {0} GROUP BY k, s HAVING count(*) > 1",
    "SELECT k % 2 AS k, count(DISTINCT s) AS v, min(s) AS s FROM {0} GROUP BY 1",
    "SELECT max(k) AS k, count(*) AS v, string_agg(s, ',' ORDER BY s) AS s FROM {0}",
    "SELECT k, count(DISTINCT v) + count(DISTINCT s) AS v, s FROM {0} GROUP BY ROLLUP (k, s)",
    "SELECT min(k) AS k, avg(v)::BIGINT AS v, s FROM {0} GROUP BY s",
    "SELECT k, median(v)::BIGINT AS v, min(s) AS s FROM {0} WHERE v IS NOT NULL GROUP BY k",
    "SELECT DISTINCT k, v, s FROM {0}",
    "SELECT DISTINCT k, 0::BIGINT AS v, s FROM {0}",
    "SELECT DISTINCT ON (k) k, v, s FROM {0} ORDER BY k, v, s",
    "SELECT k, v, s FROM {0} QUALIFY row_number() OVER (PARTITION BY k ORDER BY v, s) <= 2",
    "SELECT k, sum(v) OVER (PARTITION BY s ORDER BY k)::BIGINT AS v, s FROM {0}",
    "SELECT k, v, s FROM {0} ORDER BY v DESC, k, s LIMIT 3",
]
NESTED = [
    "{0}.k IN (SELECT k FROM {1})",
    "{0}.v NOT IN (SELECT k FROM {1})",
    "EXISTS (SELECT 1 FROM {1} AS y WHERE y.k = {0}.k)",
    "NOT EXISTS (SELECT 1 FROM {1} AS y WHERE y.k = {0}.k AND y.s = {0}.s)",
    "EXISTS (SELECT 1 FROM {1} AS y WHERE y.k = {0}.k AND y.v > {0}.v)",
    "{0}.v > (SELECT avg(y.v) FROM {1} AS y)",
    "{0}.v <= (SELECT count(*) FROM {1} AS y WHERE y.k = {0}.k)",
    "NOT EXISTS (SELECT 1 FROM {1} AS y WHERE y.v > 3)",
]  # fmt: skip
SETS = ["UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"]


@st.composite
def relations(draw: DrawFn, depth: int) -> str:
    """A relation behind FROM."""
    if depth <= 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(sorted(TABLES)))
    return f"({draw(queries(depth - 1))})"


@st.composite
def queries(draw: DrawFn, depth: int = 2) -> str:
    """A query with the columns k, v and s."""
    kind = draw(st.sampled_from(["rows", "join", "join", "group", "group", "nested", "set", "scalar", "common"]))
    one = draw(relations(depth))
    if kind == "group":
        return draw(st.sampled_from(GROUPS)).format(f"{one} AS x")
    if kind == "set":
        other = draw(relations(depth - 1))
        return f"SELECT {COLUMNS} FROM {one} AS x {draw(st.sampled_from(SETS))} SELECT {COLUMNS} FROM {other} AS y"
    where = draw(st.sampled_from(["", *(f" WHERE {each.format('x')}" for each in PREDICATES)]))
    if kind == "join":
        word = draw(st.sampled_from(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]))
        on = draw(st.sampled_from(ON if word == "JOIN" else ON[:-1])).format("x", "y")
        shown, other = draw(st.sampled_from(BOTH)).format("x", "y"), draw(relations(depth - 1))
        return f"SELECT {shown} FROM {one} AS x {word} {other} AS y ON {on}{where}"
    if kind == "nested":
        test = draw(st.sampled_from(NESTED)).format("x", draw(relations(0)))
        return f"SELECT {draw(st.sampled_from(EXPRESSIONS)).format('x')} FROM {one} AS x {where or 'WHERE true'} AND {test}"
    if kind == "scalar":
        return f"SELECT x.k, (SELECT sum(y.v) FROM {draw(relations(0))} AS y WHERE y.k = x.k)::BIGINT AS v, x.s FROM {one} AS x{where}"
    if kind == "common":
        inner = draw(queries(depth - 1)) if depth > 0 else "SELECT k, v, s FROM a"
        return f"WITH w AS ({inner}) SELECT x.k, y.v, x.s FROM w AS x JOIN w AS y ON x.k = y.k{where}"
    return f"SELECT {draw(st.sampled_from(EXPRESSIONS)).format('x')} FROM {one} AS x{where}"
