"""Quota callbacks: clients with equal tags share a limit, and limits change when the callback says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.plugins import Principal, QuotaEntity, QuotaType
from barnabas.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.plugins.samples import ASKED, HERE, Quotas
from tests.server.in_process import TOPIC, running
from tests.server.in_process import Client as Asking
from tests.server.quotas import ALTER, Client, quota_request
from tests.server.wire import batch_of
from tests.waiting import until

CALLBACK = {"client.quota.callback.class": f"{HERE}Quotas"}
BATCH = batch_of(10_000)


@pytest.fixture(autouse=True)
def nothing_asked() -> None:
    ASKED.clear()


async def throttled(client: Asking, client_id: str) -> int:
    """Produce once; the time to wait that the answer tells."""

    def produce() -> int:
        with Client(client.broker.endpoints[0].port, client_id) as line:
            return line.produce(TOPIC, BATCH).throttle_time_ms

    return await client.in_thread(produce)


async def declare(client: Asking, rate: float | None, **entity: str | None) -> None:
    await client.ask(ALTER, quota_request(dict(entity), producer_byte_rate=rate), AlterClientQuotasResponse)


async def test_equal_tags_share_a_limit(tmp_path: Path) -> None:
    async with running([tmp_path], **CALLBACK) as client:
        callback = Quotas.instances[-1]
        await client.create()
        assert await throttled(client, "red-1") == 0, "no limit"
        await declare(client, 20_000.0, user="shared")
        await declare(client, 5.0, user=None, client_id="x")
        assert [each for each in ASKED if each[0] == "update"] == [
            ("update", QuotaType.PRODUCE, QuotaEntity("shared"), 20_000.0),
            ("update", QuotaType.PRODUCE, QuotaEntity("", "x"), 5.0),
        ]
        assert (QuotaType.PRODUCE, Principal("ANONYMOUS"), "red-1") in ASKED
        assert await throttled(client, "red-1") > 0
        assert await throttled(client, "red-2") > 400, "of the same team"
        assert await throttled(client, "free-1") == 0
        callback.limits[QuotaType.PRODUCE] = 1e9
        callback.reset = True
        await until(lambda: not callback.reset)
        assert await throttled(client, "blue-1") == 0
        await declare(client, None, user="shared")
        assert ("remove", QuotaType.PRODUCE, QuotaEntity("shared")) in ASKED
        await until(lambda: callback.topics == [TOPIC])


async def test_what_is_declared_is_told_at_the_start(tmp_path: Path) -> None:
    async with running([tmp_path], **CALLBACK) as client:
        await declare(client, 7.0, user="shared")
    ASKED.clear()
    async with running([tmp_path], **CALLBACK):
        assert ASKED[0] == ("update", QuotaType.PRODUCE, QuotaEntity("shared"), 7.0)


async def test_who_cannot_be_asked_about_is_not_served(tmp_path: Path) -> None:
    async with running([tmp_path], **CALLBACK) as client:
        Quotas.instances[-1].fails = True
        with pytest.raises((EOFError, ConnectionError)):
            await client.ask((3, 9), MetadataRequest(topics=[]), MetadataResponse)
