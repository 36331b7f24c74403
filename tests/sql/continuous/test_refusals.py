"""Queries that cannot be kept are refused, with the place and the reason."""

from __future__ import annotations

import pyarrow as pa
import pytest

from barnabas.sql.catalog.relations import MemoryRelation
from barnabas.sql.continuous.planned import plan_view
from barnabas.sql.interface import SqlError
from tests.sql.continuous.cases import tables
from tests.sql.continuous.harness import CURSOR, planned, queried, table

TABLES = tables("views")


def refused(text: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        planned(text, TABLES)
    return caught.value


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("SELECT now() FROM people", "now"),
        ("SELECT id FROM people WHERE joined > current_timestamp - INTERVAL '1 day'", "current_timestamp"),
        ("SELECT current_date FROM people", "current_date"),
        ("SELECT id, age(joined) FROM people", "age"),
        ("SELECT random() FROM people", "random"),
        ("SELECT id, gen_random_uuid() FROM people", "gen_random_uuid"),
        ("SELECT id FROM people WHERE rand() < 0.5", "rand"),
        ("SELECT id FROM people TABLESAMPLE (10 PERCENT)", "sample"),
        ("SELECT id FROM people WHERE age = $1", "parameters"),
        (
            "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < age) SELECT r.n FROM r, people",
            "recursive",
        ),
        ("SELECT id, _headers FROM people", "_headers"),
        ("SELECT id, name AS _w FROM people", "_w"),
    ],
)
def test_not_supported(text: str, word: str) -> None:
    error = refused(text)
    assert error.sqlstate == "0A000"
    assert word in str(error)


def test_the_place_of_a_function() -> None:
    error = refused("SELECT id FROM people WHERE joined > now()")
    assert error.position == 38
    assert error.hint


def test_tables_that_nobody_else_sees() -> None:
    temporary = table("pg_temp_1f.mine", "id bigint", "id")
    memory = MemoryRelation("given", pa.schema([("id", pa.int64())]))
    tables = {"mine": temporary, "given": memory}
    for name in tables:
        with pytest.raises(SqlError, match=name) as caught:
            plan_view(queried(f"SELECT * FROM {name}", tables), CURSOR.cursor())
        assert caught.value.sqlstate == "0A000"


def test_columns_of_one_name() -> None:
    assert refused("SELECT id, id FROM people").sqlstate == "42701"
    found = plan_view(queried("SELECT id, id FROM people", TABLES), CURSOR.cursor(), ["a", "b"])
    assert [each.name for each in found.plan.columns] == ["a", "b"]
    with pytest.raises(SqlError) as caught:
        plan_view(queried("SELECT id FROM people", TABLES), CURSOR.cursor(), ["a", "b"])
    assert caught.value.sqlstate == "42601"


def test_faults_are_duckdbs() -> None:
    assert refused("SELECT nothing FROM people").sqlstate == "42703"
    assert refused("SELECT name FROM people JOIN items ON true").sqlstate == "42702"
    assert refused("SELECT no_such(id) FROM people").sqlstate == "42883"
    assert refused("SELECT name, count(*) FROM people").sqlstate == "42803"


def test_an_order_means_nothing() -> None:
    _, found = planned("SELECT name FROM people ORDER BY name", TABLES)
    assert found.notices == ("ORDER BY without LIMIT is ignored: the rows of a view have no order",)
