"""Statements with literals: those with a template give what they give without."""

from __future__ import annotations

import decimal
import random
from collections.abc import Callable, Iterator

import pytest

from barnabas import limits
from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import SqlError
from barnabas.sql.templates import MOST_CHARACTERS, MOST_VALUES, Seen, Template, template_of
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking, engine_of


@pytest.mark.parametrize(
    ("text", "template", "values"),
    [
        ("select * from t where id = 7", "select * from t where id = $1", (7,)),
        ("SELECT a1 FROM t2 WHERE id=7 AND name = 'it''s' ;\n", "SELECT a1 FROM t2 WHERE id=$1 AND name = $2", (7, "it's")),
        ('select "a 1" from "t 2" where "id 3" = 4', 'select "a 1" from "t 2" where "id 3" = $1', (4,)),
        ("insert into t values (-7, 1.50, null)", "insert into t values ($1, $2, null)", (-7, decimal.Decimal("1.50"))),
        ("insert into t values (1 -7)", "insert into t values ($1 -$2)", (1, 7)),
        ("select * from t where id = -7 limit 1", "select * from t where id = $1 limit 1", (-7,)),
        ("select * from t where id = 1e5 or id = 2", "select * from t where id = 1e5 or id = $1", (2,)),
        ("update t set a = a - 1, b = -2 where id = 3", "update t set a = a - $1, b = $2 where id = $3", (1, -2, 3)),
        ("delete from t where id = 3", "delete from t where id = $1", (3,)),
        ("select * from t where name = ''", "select * from t where name = $1", ("",)),
    ],
)  # fmt: skip
def test_literals_become_parameters(text: str, template: str, values: tuple[object, ...]) -> None:
    found = template_of(text)
    assert found == Template(template, values)
    assert found is not None
    assert [type(each) for each in found.values] == [type(each) for each in values]


@pytest.mark.parametrize(
    "text",
    [
        "select * from t",
        "select * from t where id = $1 and name = 'x'",
        "select * from t where id = 1; select 2",
        "select * from t where id = 1 -- x",
        "select /* 1 */ * from t where id = 1",
        "select * from t where name = E'x'",
        "select * from t where name = U&'x'",
        "select * from t where name = 'x",
        'select * from t where "name = 1',
        "select * from t where name = `x` and id = 1",
        "select * from t where name = 'a' '\0'",
        "select * from t where name = 'a\\b' and x = \\ 1",
        "select * from t where id = 7" + " " * MOST_CHARACTERS + "x",
        "insert into t values (" + ",".join("1" * (MOST_VALUES + 1)) + ")",
    ],
)
def test_doubtful_texts_have_no_template(text: str) -> None:
    assert template_of(text) is None


def test_few_templates_are_remembered() -> None:
    seen = Seen()
    for number in range(limits.MAX_SQL_PLANS + 10):
        seen.note(Template(f"text {number}", ()), is_useful=True)
    assert len(seen._useful) == limits.MAX_SQL_PLANS
    assert not seen.is_worth(Template("text 0", ()))
    assert seen.is_worth(Template(f"text {limits.MAX_SQL_PLANS}", ()))
    seen.clear()
    assert not seen.is_worth(Template(f"text {limits.MAX_SQL_PLANS}", ()))


@pytest.fixture(scope="module")
def engine() -> Iterator[SqlEngine]:
    with Broker() as broker:
        engine = engine_of(broker)
        yield engine
        engine.close()


CELLS = (
    "1", "-2", "'3'", "null", "true", "'x'", "1.5", "'2026-01-02 03:04:05'", "99999999999999999999", "default", "1 + 1", "'it''s'", "1e3",
    "-0.25",
)  # fmt: skip
QUERIES = (
    "select * from {} where id = {}",
    "select v as w, id from {} where id = {};",
    "select * from {} where id = {} limit 1",
    "select id, 7 as seven from {} where id = {}",
    "select * from {} where id = {} and v <> 'y'",
    "select count(*) from {} where id = {}",
    "update {} set small = small + 1, v = 'it' where id = {}",
    "update {} set small = small * 3, price = price - 2.5 where id = {}",
    "update {} set v = v where id = {} and small = 5",
    "update {} set amount = 20000000, at = '2026-05-06' where id = {}",
    "delete from {} where id = {}",
)  # fmt: skip


def outcome(ask: Asking, text: str) -> object:
    try:
        found = ask(text)
    except SqlError as error:
        return error.sqlstate, error.message.replace("general", "template")
    return found.tag, [str(each) for each in found.rows], list(found.names)


@pytest.mark.parametrize("seed", range(2))
def test_statements_with_a_template_give_what_they_give_without(
    engine: SqlEngine, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    ask, plain = asking(engine), asking(engine)
    for name in ("template", "general"):
        ask(f"drop table if exists {name}_{seed}")
        ask(
            f"create table {name}_{seed} (id bigint primary key, v text, price double, amount decimal(9, 2) default 1, at timestamptz,"
            " small smallint, active boolean default true)"
        )
    monkeypatch.setattr(type(plain.session), "_of_template", _unless(plain, type(plain.session)._of_template))
    hits = 0
    for _ in range(100):
        if chance.random() < 0.5:
            query = chance.choice(QUERIES)
            key = chance.choice(CELLS)
            one, other = (query.format(f"{name}_{seed}", key) for name in ("template", "general"))
        else:
            cells = [
                str(chance.randrange(-20, 20)) if chance.random() < 0.8 else chance.choice(CELLS),
                *(chance.choice(CELLS) for _ in range(6)),
            ]
            if chance.random() < 0.6:
                cells[1:] = ["'text'", "2.5", "1.25", "'2026-01-02 03:04:05+01:00'", "5", "false"]
            end = chance.choice(["", "", " on conflict do nothing", " returning id", " returning *"])
            one, other = (f"insert into {name}_{seed} values ({', '.join(cells)}){end}" for name in ("template", "general"))
        assert outcome(ask, one) == outcome(plain, other), one
        found = template_of(one)
        hits += found is not None and found.text in ask.session._plans
    assert hits > 10
    assert outcome(ask, f"select * from template_{seed} order by id") == outcome(
        plain, f"select * from general_{seed} order by id"
    )
    ask.session.close()
    plain.session.close()


def _unless(asking: Asking, plain: Callable[..., object]) -> Callable[..., object]:
    """`SqlSession._of_template`, which finds nothing for one session."""
    return lambda session, *arguments: None if session is asking.session else plain(session, *arguments)
