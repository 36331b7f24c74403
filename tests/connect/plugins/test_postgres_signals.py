"""Incremental snapshots of PostgreSQL, and transactions that become visible late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest

from barnabas.connect.plugins.postgres_capture.chunks import Chunks
from tests.connect.plugins.servers import PostgresServer
from tests.connect.plugins.signalled import COUNT, Signalled
from tests.connect.plugins.test_signals import opened
from tests.connect.runtime.tasks import Tasks
from tests.waiting import wait_until


@pytest.fixture
def capture(tasks: Tasks, postgres: PostgresServer) -> Iterator[Signalled]:
    yield from opened(tasks, postgres)


@pytest.mark.parametrize("unseen", [lambda xid: {"running": frozenset([xid])}, lambda xid: {"next_xid": xid}])
def test_a_transaction_that_becomes_visible_late_lets_a_chunk_be_read_again(
    capture: Signalled, monkeypatch: pytest.MonkeyPatch, unseen: Callable[[int], dict[str, Any]]
) -> None:
    """The stream has brought it before the window, and the reading did not see it."""
    real, seen = Chunks.chunk, list[int]()

    def chunk(self: Chunks, *arguments: Any) -> Any:
        found = real(self, *arguments)
        seen.append(len(self._xids))
        return found._replace(rows=found.rows._replace(**unseen(self._xids[-1]))) if len(seen) == 1 else found

    monkeypatch.setattr(Chunks, "chunk", chunk)
    with capture.tasks.running(capture.capturing(incremental_snapshot_chunk_size="100")) as task:
        capture.until_streaming(task)
        capture.run("UPDATE t SET v = 7 WHERE a = 2")
        capture.until("t", 1, task)
        capture.snapshot("t")
        capture.until_read(COUNT, task)
    assert len(seen) == 2
    assert seen[0] > 0


@pytest.fixture
def await_standby(postgres: PostgresServer) -> Iterator[Callable[[bool], None]]:
    """Let transactions wait for a standby that is not there, or wait no more."""

    def change(waits: bool) -> None:
        name = "nobody" if waits else ""
        postgres.query(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        postgres.query("SELECT pg_reload_conf()")
        wait_until(lambda: postgres.query("SHOW synchronous_standby_names") == [(name,)], "the setting did not come")

    yield change
    change(False)


@pytest.mark.parametrize("starts_again", [False, True])
def test_a_transaction_that_waits_for_a_standby_is_in_no_chunk_before(
    capture: Signalled, await_standby: Callable[[bool], None], starts_again: bool
) -> None:
    """The stream has it, and others do not see it yet."""
    local = "SET synchronous_commit TO local"
    with capture.tasks.running(capture.capturing(incremental_snapshot_chunk_size="100")) as task:
        capture.until_streaming(task)
        await_standby(True)
        writer = Thread(target=capture.run, args=("UPDATE t SET v = 7 WHERE a = 2",))
        writer.start()
        capture.until("t", 1, task)
        if starts_again:
            capture.tasks.stop(task)
            task = capture.tasks.start(capture.capturing(incremental_snapshot_chunk_size="100"))
        capture.snapshot("t", before=local)
        capture.tasks.until(lambda: capture.has_closed(1), task, "no chunk was read")
        capture.until_streaming(task, local)
        assert capture.read() == []
        await_standby(False)
        writer.join()
        capture.until_read(COUNT, task)
    assert capture.equals()
