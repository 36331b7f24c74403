"""Jobs that go over all partitions give others their turns of the loop."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.server import maintenance
from barnabas.storage.producer_state import ProducerEntry, ProducerStates
from tests.turns import turns_of

EXPIRATION_MS = 10


async def test_producers_are_counted_over_partitions_until_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "LOOKED_AT_AT_ONCE", 6)
    of_logs = [ProducerStates(ProducerEntry(number, last_timestamp=0) for number in range(3)) for _ in range(20)]
    logs = [SimpleNamespace(reader=SimpleNamespace(expire_producers_in_parts=states.expire_in_parts)) for states in of_logs]
    broker: Any = SimpleNamespace(
        partitions=[SimpleNamespace(log=log) for log in logs],
        clock=SimpleNamespace(now_ms=lambda: EXPIRATION_MS),
        config=SimpleNamespace(producer_id_expiration_ms=EXPIRATION_MS),
    )
    _, turns = await turns_of(maintenance._expire_producers(broker))
    assert turns >= 20 * 3 // 6 - 1
    assert not any(map(len, of_logs))
