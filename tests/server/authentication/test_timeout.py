"""Clients that do not log in in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas import limits
from tests.server.in_process import running
from tests.server.scraped import render
from tests.waiting import until

SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.jaas.config": "x.PlainLoginModule required user_alice=geheim;",
}


async def test_a_connection_that_does_not_log_in_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOGIN_TIMEOUT_S", 0.05)
    async with running([tmp_path], **SETTINGS) as client:
        assert await client.in_thread(client.line.is_closed)
        await until(lambda: not client.broker.connections)
        assert "barnabas_failed_logins_total 0.0" in render(client.broker).decode()
