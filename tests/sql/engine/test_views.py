"""Limits of temporary views."""

from __future__ import annotations

import pytest

from barnabas import limits
from barnabas.sql.engine import SqlEngine
from tests.sql.engine.asking import asking


def test_a_session_has_a_number_of_views(engine: SqlEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_TEMPORARY_VIEWS", 2)
    asked = asking(engine)
    for name in ("one", "two"):
        asked(f"create temp view {name} as select 1 as a")
    assert asked.error("create temp view three as select 1").sqlstate == "54000"
    asked("drop view one")
    asked("create temp view three as select 1")
    asked.session.close()


def test_views_of_views_have_a_number_of_parts(engine: SqlEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_VIEW_NODES", 100_000)
    asked = asking(engine)
    asked("create temp view v0 as select 1 as a")
    twice = "create temp view v{0} as select a from v{1} union all select a from v{1}"
    for number in range(1, 5):
        asked(twice.format(number, number - 1))
    monkeypatch.setattr(limits, "MAX_SQL_VIEW_NODES", 20)
    assert asked.error(twice.format(5, 4)).sqlstate == "54000"
    asked.session.close()


def test_a_prepared_statement_sees_another_view(engine: SqlEngine) -> None:
    asked = asking(engine)
    asked("create temp view seen as select 1 as a")
    prepared = asked.session.prepare("select a from seen")
    asked("create or replace temp view seen as select 2 as a")
    assert [batch.to_pylist() for batch in asked.session.execute(prepared).batches()] == [[{"a": 2}]]
    asked.session.close()
