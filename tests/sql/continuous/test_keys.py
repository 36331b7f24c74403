"""The key of a result, what is never null, and what EXPLAIN says."""

from __future__ import annotations

import pytest

from barnabas.sql.continuous.explain import explain
from barnabas.sql.continuous.planned import Planned
from tests.sql.continuous.cases import tables
from tests.sql.continuous.harness import planned

TABLES = tables("views")


def view(text: str) -> Planned:
    return planned(text, TABLES)[1]


@pytest.mark.parametrize(
    ("text", "key", "hidden"),
    [
        ("SELECT * FROM people", ("id",), ()),
        ("SELECT name, id AS person FROM people", ("person",), ()),
        ("SELECT name FROM people", ("id",), ("id",)),
        ("SELECT name AS id FROM people", ("id_2",), ("id_2",)),
        ("SELECT price FROM bids", None, ()),
        ("SELECT _partition, _offset, price FROM bids", ("_partition", "_offset"), ()),
        ("SELECT id, unnest(tags) FROM orders", None, ()),
        ("SELECT city, count(*) FROM people GROUP BY city", ("city",), ()),
        ("SELECT count(*) FROM people GROUP BY city, age", ("g0", "g1"), ("g0", "g1")),
        ("SELECT id, city, count(*) FROM people GROUP BY id, city", ("id",), ()),
        ("SELECT count(*) FROM people", ("_only",), ("_only",)),
        ("SELECT p.name, o.item FROM people p JOIN orders o ON o.person_id = p.id", ("id_2",), ("id_2",)),
        ("SELECT o.item, p.name FROM orders o LEFT JOIN people p ON o.person_id = p.id", ("id",), ("id",)),
        ("SELECT p.id, o.id AS o FROM people p, orders o WHERE p.city = o.item", ("id", "o"), ()),
        ("SELECT DISTINCT city, age FROM people", ("city", "age"), ()),
        ("SELECT id FROM people WHERE id IN (SELECT person_id FROM orders)", ("id",), ()),
        ("SELECT name FROM people UNION ALL SELECT item FROM orders", None, ()),
        ("SELECT name FROM people UNION SELECT item FROM orders", ("name",), ()),
        ("SELECT auction, row_number() OVER (PARTITION BY auction ORDER BY price) AS n FROM bids", ("auction", "n"), ()),
        ("SELECT id, name FROM people ORDER BY name LIMIT 3", ("id",), ()),
        (
            "SELECT a.id, b.id AS b FROM people a JOIN people b ON a.score = b.id",
            ("id", "b"),
            (),
        ),  # several bigints can equal a double
        ("SELECT a.id, b.id AS b FROM people a JOIN people b ON a.age = b.id", ("id",), ()),
    ],
)
def test_key(text: str, key: tuple[str, ...] | None, hidden: tuple[str, ...]) -> None:
    found = view(text)
    assert (found.plan.key, found.plan.hidden) == (key, hidden)
    names = [each.name for each in found.plan.columns]
    assert names[len(names) - len(hidden) :] == list(hidden)


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("SELECT id, name FROM people", {"id"}),
        ("SELECT id, name, age FROM people WHERE age > 3 AND name IS NOT NULL", {"id", "name", "age"}),
        ("SELECT who, count(*) AS n, max(ms) AS m FROM clicks GROUP BY who", {"who", "n"}),
        ("SELECT city, count(*) AS n FROM people GROUP BY city", {"n"}),
        ("SELECT coalesce(city, '') AS c, count(*) AS n FROM people GROUP BY 1", {"c", "n"}),
        ("SELECT o.id, p.id AS p FROM orders o LEFT JOIN people p ON o.person_id = p.id", {"id"}),
        ("SELECT o.id, p.id AS p FROM orders o FULL JOIN people p ON o.person_id = p.id", set()),
        ("SELECT o.person_id, p.name FROM orders o JOIN people p ON o.person_id = p.id", {"person_id", "id"}),
        ("SELECT id + 1 AS next, date_trunc('hour', bids.at) AS h FROM bids, orders WHERE false", {"next", "h"}),
    ],
)
def test_never_null(text: str, never: set[str]) -> None:
    found = view(text)
    assert set(found.not_null) - set(found.plan.hidden) | (never & set(found.plan.hidden)) == never


def test_explain() -> None:
    found = view("SELECT city, max(age) AS m, median(score) AS s FROM people JOIN bids ON bidder = id GROUP BY city")
    text = explain(found.plan)
    assert text.splitlines() == [
        "0: table people; keeps the newest row of each key; a change costs the rows that it touches",
        "1: table bids; keeps nothing; a change costs the rows that come",
        '2: join of 0 and 1 on input_1."bidder" = input_0."id"; keeps the rows of 0 and 1; a change costs the rows that it touches',
        '3: query over 2 by input_0."city"; keeps the rows of 2; a change recomputes its group',
        "4: rows of 3; keeps nothing; a change costs the rows that it touches",
        "result: a row of each city",
    ]


def test_explain_of_what_is_computed_whole() -> None:
    text = explain(view("SELECT count(DISTINCT auction) AS n, sum(price) AS s FROM bids WHERE price > 0 ORDER BY 1 LIMIT 1").plan)
    assert "where input_0" in text
    assert "a change recomputes everything" in text
    assert text.endswith("result: a row of each _only (hidden)")
    grown = explain(
        view(
            "SELECT b.price FROM bids b WHERE NOT EXISTS (SELECT 1 FROM people p WHERE p.id = b.bidder) UNION ALL SELECT age FROM people"
        ).plan
    )
    assert "without" in grown
    assert grown.endswith("no columns identify a row")
