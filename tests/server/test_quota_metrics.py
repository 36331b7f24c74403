"""The metrics of quotas, and when a client is dropped from them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas import limits
from barnabas.clock import SystemClock
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.quota.meters import MeterKey
from barnabas.server.broker import Broker
from tests.server.in_process import running
from tests.server.quotas import set_quota_by
from tests.server.scraped import render
from tests.server.wire import Line

ENTITY = '{client_id="limits",quota="producer_byte_rate",user=""}'  # the client id of the test connections


class Forward(SystemClock):
    """A clock that can be put forward."""

    ahead_ms = 0.0

    def monotonic_ms(self) -> float:
        return super().monotonic_ms() + self.ahead_ms


def measured(broker: Broker) -> dict[str, float]:
    lines = [line.rsplit(" ", 1) for line in render(broker).decode().splitlines() if not line.startswith("#")]
    return {name.removeprefix("barnabas_"): float(value) for name, value in lines}


async def test_what_a_client_uses_is_shown_until_it_is_long_gone(tmp_path: Path) -> None:
    clock = Forward()
    async with running([tmp_path], None, clock) as client:
        assert await client.create() == 0
        await client.in_thread(lambda: set_quota_by(client.line, {"client_id": "limits"}, producer_byte_rate=1e6))
        assert await client.produce(b"v" * 10_000) == 0
        shown = measured(client.broker)
        assert shown[f"quota_bound{ENTITY}"] == 1e6
        assert 900 < shown[f"quota_rate{ENTITY}"] < 1_100, "10 kB over ten windows"
        assert shown[f"quota_throttled_seconds_total{ENTITY}"] == 0
        clock.ahead_ms = limits.QUOTA_METER_IDLE_MS + 1_000.0
        client.broker.quotas.expire()
        shown = measured(client.broker)
        assert (shown["quota_meters"], f"quota_rate{ENTITY}" in shown) == (0, False)
        assert await client.produce(b"v" * 10_000) == 0
        assert measured(client.broker)["quota_meters"] == 1


async def test_no_more_clients_are_shown_than_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_QUOTA_SERIES", 1)
    async with running([tmp_path]) as client:
        meters = client.broker.quotas.meters
        for number in range(3):
            meters.get(MeterKey("producer_byte_rate", "", f"client-{number}"), 1.0, 1_000.0 * number)
        shown = [name for name in measured(client.broker) if name.startswith("quota_rate")]
        assert shown == ['quota_rate{client_id="client-2",quota="producer_byte_rate",user=""}'], "the one used last"


async def test_connections_that_wait_for_their_rate_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_WAITING_CONNECTIONS", 1)
    settings = {"max_connection_creation_rate": "1", "quota_window_num": "1"}
    async with running([tmp_path], **settings) as client:

        def knock() -> bool:
            with Line(cast(Any, SimpleNamespace(port=client.broker.endpoints[0].port))) as waiting:
                waiting.send((3, 9), MetadataRequest(topics=[]))
                with Line(cast(Any, SimpleNamespace(port=client.broker.endpoints[0].port))) as beyond:
                    return beyond.is_closed() and bool(waiting.receive())

        assert await client.in_thread(knock)
        shown = measured(client.broker)
        assert (shown["connections_delayed_total"], shown["connections_refused_total"]) == (2, 1)
