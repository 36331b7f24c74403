"""Views that were not created to the end, and servers without an engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.engine.jobs import JobProgress, JobState, State
from barnabas.engine.stores import progress_of, states_of
from barnabas.sql.statements import materialized
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking, engine_of


@pytest.fixture
def alone() -> Iterator[Asking]:
    """A session over a cluster where no engine runs."""
    with Broker() as broker:
        engine = engine_of(broker)
        asked = asking(engine, statement_timeout="60s")
        asked("create table base (a int)")
        asked("insert into base values (1)")
        yield asked
        asked.session.close()
        engine.close()


def _leave_without_job(asked: Asking, *, with_topic: bool) -> None:
    """Create the view `left`, and take away what a server that was killed in between would not have made."""
    asked("create materialized view left_over with (topic = 'left.topic') as select a from base with no data")
    client: BlockingClient = asked.session.client
    asked.session.view_jobs.store.put(client, {"left.topic": None})
    if not with_topic:
        client.delete_topics(["left.topic"])


def test_without_an_engine_the_view_waits_for_one(alone: Asking) -> None:
    assert alone.tag("create materialized view later as select a from base") == "CREATE MATERIALIZED VIEW"
    (notice,) = [each for each in alone.session.take_notices() if "no engine runs" in each.message]
    assert "barnabas engine start" in (notice.hint or "")
    alone("create table empty (a int)")
    alone("create materialized view of_nothing as select a from empty with no data")
    assert alone.error("refresh materialized view of_nothing").sqlstate == "55000"
    alone("drop table empty cascade")
    assert alone.rows("select * from later") == []
    assert alone.rows("select name, state, rows_behind from barnabas.views") == [("later", "new", None)]
    assert alone.rows("select * from later") == []
    alone("insert into base values (2)")
    alone.session.take_notices()
    alone("flush")
    assert [each.severity for each in alone.session.take_notices()] == ["WARNING"]
    assert alone.error("refresh materialized view later").sqlstate == "55000"
    alone("drop materialized view later")
    assert alone.rows("select * from barnabas.views") == []


@pytest.mark.parametrize("with_topic", [False, True])
def test_a_view_that_was_left_is_dropped_or_completed(alone: Asking, monkeypatch: pytest.MonkeyPatch, with_topic: bool) -> None:
    _leave_without_job(alone, with_topic=with_topic)
    assert alone.rows("select name, state from barnabas.views") == [("left_over", "incomplete")]
    assert alone.error("pause left_over").sqlstate == "55000"
    create = "create materialized view left_over with (topic = 'left.topic') as select a from base with no data"
    assert alone.error(create).sqlstate == "42P07"  # another server may be at it
    monkeypatch.setattr(materialized, "LEFT_S", -1.0)
    alone(create)
    assert alone.rows("select name, state from barnabas.views") == [("left_over", "new")]
    _drop_job(alone)
    alone("drop materialized view left_over")
    assert "left.topic" not in alone.session.client.topics()
    alone(create)
    alone("drop table base cascade")


def _drop_job(asked: Asking) -> None:
    asked.session.view_jobs.store.put(asked.session.client, {"left.topic": None})


def test_refresh_says_why_a_view_fails_though_nothing_is_missing(alone: Asking) -> None:
    """The topic was deleted and made again, for example."""
    alone("create materialized view stuck as select a from base with no data")
    session = alone.session
    job = session.view_jobs.jobs()["stuck"]
    config = session.client.config
    progress, states = progress_of(config), states_of(config)
    progress.put(session.client, {"stuck": JobProgress("stuck", job.generation, 1, {"base": {"0": 99}})})
    alone("refresh materialized view stuck")
    state = JobState("stuck", job.generation, job.restarts, State.WAITING, 0, 3, "another topic")
    states.put(session.client, {"stuck": state})
    error = alone.error("refresh materialized view stuck")
    assert (error.sqlstate, error.message) == ("55000", 'the view "stuck" does not run: another topic')
    assert alone.rows("select rows_behind, error from barnabas.views") == [(None, "another topic")]
    for each in (progress, states):
        each.close()
