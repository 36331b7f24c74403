"""Incremental snapshots of PostgreSQL, and transactions that become visible late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.connect.plugins.postgres_capture.chunks import Chunks
from tests.connect.plugins.servers import PostgresServer
from tests.connect.plugins.signalled import COUNT, Signalled
from tests.connect.plugins.test_signals import opened
from tests.connect.runtime.tasks import Tasks


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
